"""Questions about releases that are not listed but implied: those that a listed release pins, and those an installer selects.

torch 2.9.1 also pins triton, NCCL and cuDNN, and vLLM from an image without a name is taken for that of the project. What is
required with a range, or listed without a release, is the newest release that the others accept, in a new installation. All of
this can be otherwise, so a finding about an implied release is a question. Only the torch that a release in a file pins is as
certain as if it were listed: an installer takes no other one.
"""

from __future__ import annotations

from compat.checks.implied_releases import WITH_REQUIREMENTS, Implied, implied_by, newest_by
from compat.checks.needed import needed_by
from compat.checks.questions import LEAST, likelihood
from compat.model import Distribution, Environment, Finding, is_release
from compat.records import replace
from compat.rules.unknown import of_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from compat.rules.compiled import Matrix
    from compat.rules.evaluate import Answers
    from compat.tables.declared import Declared

_HALF = 180
"""The number of days after which half of the environments with a release have been made."""
_FEW = 8
"""The maximum number of listed releases for which the others are selected."""
_LATER = (30, 120, 270)
"""The numbers of days after the newest listed release for which the other releases are selected."""


_OF_MACHINE = frozenset(("accelerators", "driver"))
"""The facts of a machine, on which a release alone may fail."""


def with_implied(environment: Environment, found: tuple[Finding, ...], matrix: Matrix) -> tuple[Finding, ...]:
    """Add the likely questions about implied releases to the findings of an environment."""
    from compat.checks import disagreements
    from compat.tables.declared import open_declared

    declared = open_declared()
    pinned = implied_by(environment, declared)
    found = (*found, *disagreements.judge(environment, pinned, found, declared))
    certain = {each.rule for each in found if each.verdict == "hit"}
    likely = {each.rule: each for each in _questions(environment, pinned, matrix) if each.rule not in certain}
    listed = {copy.name: copy.version for copy in environment.distributions or () if copy.version and is_release(copy)}
    for newest in _selected_later(environment, listed, pinned, declared):
        for each in _questions(environment, {**pinned, **newest}, matrix):
            ours = not listed.keys().isdisjoint(each.packages) or not _OF_MACHINE.isdisjoint(each.facts)
            if each.rule not in certain and each.severity == "error" and ours:
                likely.setdefault(each.rule, each)
    if not environment.distributions:
        for each in (*_of_machine(environment), *_of_job(environment, matrix, declared)):
            likely.setdefault(each.rule, each)
    return (*(each for each in found if each.rule not in likely), *likely.values())


def _questions(environment: Environment, implied: Mapping[str, Implied], matrix: Matrix) -> Iterator[Finding]:
    """Yield the likely questions about implied releases."""
    from compat.checks import builds, guards, interfaces
    from compat.rules import evaluate as rules
    from compat.rules.facts import Facts, seen_by_torch

    if not implied:
        return
    whole = _completed(environment, implied)
    facts = Facts(whole)
    derived = (
        *builds.judge(facts),
        *(each for each in (*guards.judge(facts), *interfaces.judge(facts)) if each.verdict == "hit"),
    )
    for each in (*rules.judge(seen_by_torch(whole), matrix), *derived):
        if not implied.keys().isdisjoint(each.packages) and likelihood(asked := _question(each, implied)) >= LEAST:
            yield asked


def _of_machine(environment: Environment) -> Iterator[Finding]:
    """Yield the questions about the torch that a machine without any listed release gets."""
    from compat.checks import builds
    from compat.checks.needed import releases_for
    from compat.rules.facts import Facts

    errors: dict[str, list[Finding]] = {}

    def fails(version: str) -> bool:
        whole = _completed(environment, {"torch": Implied("torch", version, "")})
        errors[version] = [each for each in builds.judge(Facts(whole)) if each.severity == "error" and "torch" in each.packages]
        return bool(errors[version])

    for version, by, often in releases_for(environment, fails):
        for each in errors[version]:
            if likelihood(asked := _question(each, {"torch": Implied("torch", version, by, often=often)})) >= LEAST:
                yield asked


def _of_job(environment: Environment, matrix: Matrix, declared: Declared) -> Iterator[Finding]:
    """Yield the questions about what the job needs on a machine without any listed release, in the newest releases."""
    needed = tuple(Distribution(name, None) for name in needed_by(environment) if name != "torch")
    newest = newest_by(replace(environment, distributions=needed), {}, declared) if environment.accelerators else {}
    asked = {name: each for name, each in newest.items() if name != "torch"}
    yield from (each for each in _questions(environment, asked, matrix) if not _OF_MACHINE.isdisjoint(each.facts))


def _selected_later(
    environment: Environment, listed: Mapping[str, str], pinned: Mapping[str, Implied], declared: Declared
) -> Iterator[Mapping[str, Implied]]:
    """Yield what an installer selected beside a few listed releases some time after the newest of them was published.

    Environments with a release are made soon after it, so a conflict with a release of that time is likely, and one with a
    release of years later is not. A long list would name what it conflicts with.
    """
    days = [package.day(version) for name, version in listed.items() if (package := declared.package(name)) is not None]
    before: Mapping[str, str] = {}
    given = any(copy.source is not None and copy.source.kind in WITH_REQUIREMENTS for copy in environment.distributions or ())
    needed = () if given else needed_by(environment)
    whole = replace(
        environment, distributions=(*(environment.distributions or ()), *(Distribution(name, None) for name in needed))
    )
    for later in _LATER if any(days) and (needed or len(listed) <= _FEW) else ():
        newest = newest_by(whole, pinned, declared, max(days) + later)
        if len(listed) > _FEW:
            newest = {name: each for name, each in newest.items() if name in needed}
        selected = {name: each.version for name, each in newest.items()}
        if selected != before:
            yield {name: replace(each, often=0.5 ** (later / _HALF)) for name, each in newest.items()}
        before = selected


def of_new_installation(
    environment: Environment, found: Collection[Finding], matrix: Matrix, answers: Answers, alone: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield the errors of a new installation of what a file lists: its pins with the newest releases that they accept.

    Pins that require different releases of another package are no question, nor is what the GPU or driver makes of a torch
    that a release pins.

    ``answers`` caches the results of rules for similar environments, ``alone`` are the distributions that are installed
    without what they require.
    """
    from compat.checks import builds, disagreements, interfaces
    from compat.rules import evaluate as rules
    from compat.rules.facts import Facts, seen_by_torch
    from compat.tables.declared import open_declared

    declared = open_declared()
    pinned = implied_by(environment, declared)
    yield from disagreements.judge(environment, pinned, found, declared)
    yield from disagreements.without_files(environment, pinned, found, declared)
    on_machine = bool(environment.accelerators or environment.driver)
    torch = pinned.get("torch") if on_machine else None
    if torch is not None and torch.root and torch.root not in alone:
        yield from _of_pinned_torch(torch, _completed(environment, {"torch": torch}), found)
    stated = {copy.name for copy in environment.distributions or () if copy.version is not None}
    newest = newest_by(environment, pinned, declared) if stated or on_machine else {}
    if not newest:
        return
    known = {each.rule for each in found if each.verdict == "hit" or likelihood(each) >= LEAST}
    implied = {**pinned, **newest}
    whole = _completed(environment, implied)
    whole = replace(whole, distributions=tuple(map(answers.same, whole.distributions or ())))
    facts = Facts(whole)
    more = (*builds.judge(facts), *interfaces.judge(facts))
    errors = (
        each for each in more
        if each.severity == "error" and (each.verdict == "hit" or not _OF_MACHINE.isdisjoint(each.facts))
    )  # fmt: skip
    for each in (*rules.errors_with(newest, seen_by_torch(whole), matrix, answers), *errors):
        about = each.packages.keys()
        listed = not stated.isdisjoint(about) or not _OF_MACHINE.isdisjoint(each.facts)
        if each.rule not in known and listed and not newest.keys().isdisjoint(about):
            yield _question(each, implied)


def _of_pinned_torch(torch: Implied, whole: Environment, found: Collection[Finding]) -> Iterator[Finding]:
    """Yield the errors of a pinned torch on the machine, unless one about the release that pins it is already found."""
    from compat.checks import builds
    from compat.checks.advice import accompanied
    from compat.rules.facts import Facts

    if any(torch.root in each.packages and not _OF_MACHINE.isdisjoint(each.facts) for each in found if each.verdict == "hit"):
        return
    root = next(copy.version for copy in whole.distributions or () if copy.name == torch.root)
    for each in builds.judge(Facts(whole)):
        is_error = each.severity == "error" and each.verdict == "hit"
        if is_error and "torch" in each.packages and not _OF_MACHINE.isdisjoint(each.facts):
            fixes = (accompanied(fix, whole) for fix in each.fixes if fix.kind != "pin")  # another build is refused, too
            here = f"{each.here}, as {torch.by} torch=={torch.version}"
            yield replace(each, packages={torch.root: root, **each.packages}, fixes=tuple(fixes), here=here)


def _completed(environment: Environment, implied: Mapping[str, Implied]) -> Environment:
    listed = (copy for copy in environment.distributions or () if copy.name not in implied)
    more = (each.copy or Distribution(each.name, each.version) for each in implied.values())
    return replace(environment, distributions=(*listed, *more))


def _question(finding: Finding, implied: Mapping[str, Implied]) -> Finding:
    """Convert a finding about implied releases into the question whether they are installed."""
    names = [name for name in finding.packages if name in implied]
    stated = (f"{name} {version}" for name, version in finding.packages.items() if name not in implied and version)
    known = of_paths(finding.unknown) if finding.likelihood is None else finding.likelihood
    return replace(
        finding, verdict="possible",
        unknown=tuple(dict.fromkeys((*finding.unknown, *(f"distributions.{name}" for name in names)))),
        missing=tuple(dict.fromkeys((*finding.missing, "distributions"))),
        likelihood=min(implied[name].often for name in names) * (1.0 if finding.verdict == "hit" else known),
        packages={name: None if name in implied else version for name, version in finding.packages.items()},
        here="; ".join((*stated, *(f"{name} {implied[name].version}, which {implied[name].by}" for name in names))),
    )  # fmt: skip
