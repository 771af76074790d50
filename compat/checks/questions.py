"""Rank open questions: ask likely ones about installed packages, and fold the rest into one line or drop them."""

from __future__ import annotations

from compat.checks.requirements import may_apply
from compat.model import Distribution, Environment, Finding, is_release
from compat.records import record, replace
from compat.rules.unknown import of_paths
from compat.versions import is_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compat.rules.compiled import Matrix
    from compat.tables.declared import Declared


MOST = 3
"""The maximum number of open questions asked at a time."""
LEAST = 0.25
"""The minimum likelihood of a question that is asked."""
_WEIGHTS = {"error": 1.0, "warning": 0.9, "info": 0.2}
"""The weight of a question by the severity of its finding."""


def about_listed_packages(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings without questions that have likelihood 0, such as those about distributions that are not listed."""
    return tuple(finding for finding in findings if finding.verdict != "possible" or likelihood(finding) > 0)


def fold_questions(findings: Sequence[Finding], *, remarks: bool = False) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings without unlikely questions, and notes with their number and the facts that would settle most of them.

    Without ``remarks``, hits of severity ``info`` that rest on nothing but installed releases are counted, too (nothing shows
    that the job uses what they are about), and so are violated requirements that the project overrides.
    """
    rest: list[Finding] = []
    quiet: list[Finding] = []
    for each in findings:
        (quiet if _is_remark(each) and not remarks else rest).append(each)
    shown, notes = _without_unlikely(rest)
    overridden = sum(each.origin == "metadata" for each in quiet)
    return shown, (
        *notes,
        *_counted(overridden, "requirements that the project overrides"),
        *_counted(len(quiet) - overridden, "features not known to be in use"),
    )


def _counted(count: int, subject: str) -> tuple[str, ...]:
    these, them = ("1 remark", "it") if count == 1 else (f"{count} remarks", "them")
    return (f"{these} on {subject} (--all shows {them})",) if count else ()


def _is_remark(finding: Finding) -> bool:
    by_release = finding.origin in ("rule", "build") and set(finding.facts) <= {"build"}
    overridden = finding.origin == "metadata" and finding.rule.startswith("requires-")
    return finding.verdict == "hit" and finding.severity == "info" and (by_release or overridden)


def _without_unlikely(findings: Sequence[Finding]) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    questions = [finding for finding in findings if finding.verdict == "possible"]
    order = sorted(questions, key=lambda finding: -likelihood(finding))
    likeliest: dict[tuple[str, ...], Finding] = {}
    for finding in order:
        # the answer to one settles the others with the same unknown facts, and perhaps those with more of them
        if likelihood(finding) >= LEAST and not any(set(asked) <= set(finding.unknown) for asked in likeliest):
            likeliest[finding.unknown] = finding
    asked = list(likeliest.values())[:MOST]
    left = [finding for finding in questions if finding not in asked]
    if not left:
        return tuple(findings), ()
    kept = tuple(finding for finding in findings if finding.verdict != "possible" or finding in asked)
    return kept, (_note(left),)


def likelihood(finding: Finding) -> float:
    """The likelihood (0 to 1) that the unknown facts make the finding apply, weighted by its severity."""
    return likelihood_of(finding) * _WEIGHTS[finding.severity]


def likelihood_of(finding: Finding) -> float:
    """The likelihood that the unknown facts make the finding apply, whatever its severity."""
    return of_paths(finding.unknown) if finding.likelihood is None else finding.likelihood


def _note(left: Sequence[Finding]) -> str:
    facts: dict[str, int] = {}
    for finding in left:
        for path in finding.unknown:
            word = path.removeprefix("workload.").removeprefix("distributions.")
            word = f"the version of {word}" if path.startswith("distributions.") else word
            facts[word] = facts.get(word, 0) + 1
    most = sorted(facts, key=lambda word: (-facts[word], word))[:4]
    count = len(left)
    return (
        f"{count} more unlikely {'question' if count == 1 else 'questions'} (--all shows {'it' if count == 1 else 'them'}); "
        f"these facts would settle most: {', '.join(most)}"
    )


# --- Questions about releases that are not listed but implied: those that a listed release pins.
#
# torch 2.9.1 also pins triton, NCCL and cuDNN, and vLLM from an image without a name is taken for that of the project. A pin
# can be overridden, so a finding about an implied release is a question, never a hit. Ranges imply nothing: the newest release
# that they allow may be incompatible with older listed releases, which would cause false warnings.


_PINNED = 0.8
"""The likelihood that a pinned release is installed."""


@record(frozen=True)
class Implied:
    """A release that is not listed; ``by`` says what pins or contains it, ``copy`` what is known of it in an image."""

    name: str
    version: str
    by: str
    copy: Distribution | None = None


def with_implied(environment: Environment, found: tuple[Finding, ...], matrix: Matrix) -> tuple[Finding, ...]:
    """Add the likely questions about implied releases to the findings of an environment."""
    from compat.checks import builds
    from compat.rules import evaluate as rules
    from compat.rules.facts import Facts, seen_by_torch
    from compat.tables.declared import open_declared

    implied = implied_by(environment, open_declared())
    if not implied:
        return found
    more = (each.copy or Distribution(each.name, each.version) for each in implied.values())
    whole = replace(environment, distributions=(*(environment.distributions or ()), *more))
    again = (*rules.judge(seen_by_torch(whole), matrix), *builds.judge(Facts(whole)))
    certain = {each.rule for each in found if each.verdict == "hit"}
    asked = {
        each.rule: _question(each, implied) for each in again
        if each.rule not in certain and not implied.keys().isdisjoint(each.packages)
    }  # fmt: skip
    likely = {rule: each for rule, each in asked.items() if likelihood(each) >= LEAST}
    return (*(each for each in found if each.rule not in likely), *likely.values())


def implied_by(environment: Environment, declared: Declared) -> Mapping[str, Implied]:
    """The pinned releases that are not listed, by name; empty if the list is complete."""
    if environment.distributions_complete:
        return {}
    listed = environment.distributions or ()
    known = {copy.name for copy in listed}
    waiting = [(copy.name, copy.version) for copy in listed if copy.version is not None and is_release(copy)]
    found = {each.name: each for copy in listed for each in _in_its_image(copy) if each.name not in known}
    known |= found.keys()
    while waiting:
        for each in _pinned(*waiting.pop(0), environment, declared):
            if each.name not in known:
                known.add(each.name)
                found[each.name] = each
                waiting.append((each.name, each.version))
    return found


_IMAGES = {"vllm": "vllm/vllm-openai:v"}
"""Distributions with an image of their own, tagged with their release."""


def _in_its_image(copy: Distribution) -> Iterator[Implied]:
    """Yield what the project's own image contains besides a distribution that is from an image of unknown name."""
    source = copy.source
    if (
        copy.name not in _IMAGES
        or copy.version is None
        or source is None
        or source.kind != "image"
        or source.details.get("image")
    ):
        return
    from compat.formats.docker.base_images import known_stack

    for each in known_stack(f"{_IMAGES[copy.name]}{copy.version}").distributions or ():
        if each.name != copy.name and each.version is not None:
            yield Implied(each.name, each.version, f"the image of {copy.name} {copy.version} contains", each)


def _pinned(name: str, version: str, environment: Environment, declared: Declared) -> Iterator[Implied]:
    """Yield the releases that a release pins regardless of extras.

    A requirement whose marker may hold counts; a package with several different specifiers is skipped.
    """
    package = declared.package(name)
    place = None if package is None else package.place(version)
    if package is None or place is None:
        return
    for asked in package.asks:
        specifiers = {
            each[0] for each in package.requirements(place, asked) if each[3] is None and may_apply(each, environment)
        }
        pin = specifiers.pop().removeprefix("==") if len(specifiers) == 1 else ""
        if is_version(pin):
            yield Implied(asked, pin, f"{name} {version} requires")


def _question(finding: Finding, implied: Mapping[str, Implied]) -> Finding:
    """Convert a finding about implied releases into the question whether they are installed."""
    names = [name for name in finding.packages if name in implied]
    stated = (f"{name} {version}" for name, version in finding.packages.items() if name not in implied and version)
    known = of_paths(finding.unknown) if finding.likelihood is None else finding.likelihood
    return replace(
        finding, verdict="possible",
        unknown=tuple(dict.fromkeys((*finding.unknown, *(f"distributions.{name}" for name in names)))),
        missing=tuple(dict.fromkeys((*finding.missing, "distributions"))),
        likelihood=_PINNED * (1.0 if finding.verdict == "hit" else known),
        packages={name: None if name in implied else version for name, version in finding.packages.items()},
        here="; ".join((*stated, *(f"{name} {implied[name].version}, which {implied[name].by}" for name in names))),
    )  # fmt: skip
