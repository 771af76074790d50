"""Questions about releases that are not listed but implied: those that a listed release pins, and those an installer selects.

torch 2.9.1 also pins triton, NCCL and cuDNN, and vLLM from an image without a name is taken for that of the project. What is
required with a range, or listed without a release, is the newest release that the others accept, in a new installation. All of
this can be otherwise, so a finding about an implied release is a question, never a hit.
"""

from __future__ import annotations

from compat.checks.needed import needed_by
from compat.checks.questions import LEAST, likelihood
from compat.checks.requirements import may_apply
from compat.model import Distribution, Environment, Finding, is_release, of_no_index
from compat.records import record, replace
from compat.rules.unknown import of_paths
from compat.versions import EVERY, contains, is_final, is_version, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from compat.rules.compiled import Matrix
    from compat.rules.evaluate import Answers
    from compat.tables.declared import Declared, Package

_PINNED = 0.8
"""The likelihood that a pinned release is installed."""
_SELECTED = 0.5
"""The likelihood that a new installation has the release that an installer would select today."""
_HALF = 180
"""The number of days after which half of the environments with a release have been made."""
_FEW = 8
"""The maximum number of listed releases for which the others are selected."""
_LATER = (30, 120, 270)
"""The numbers of days after the newest listed release for which the other releases are selected."""


_OF_MACHINE = frozenset(("accelerators", "driver"))
"""The facts of a machine, on which a release alone may fail."""


@record(frozen=True)
class Implied:
    """A release that is not listed: ``by`` says what pins, contains or requires it, ``copy`` what an image says of it.

    ``root`` is the listed distribution whose pins lead to it.
    """

    name: str
    version: str
    by: str
    copy: Distribution | None = None
    often: float = _PINNED
    root: str = ""


def with_implied(environment: Environment, found: tuple[Finding, ...], matrix: Matrix) -> tuple[Finding, ...]:
    """Add the likely questions about implied releases to the findings of an environment."""
    from compat.checks import disagreements
    from compat.tables.declared import open_declared

    declared = open_declared()
    pinned = implied_by(environment, declared)
    found = (*found, *disagreements.judge(environment, _with_roots(pinned), found, declared))
    certain = {each.rule for each in found if each.verdict == "hit"}
    likely = {each.rule: each for each in _questions(environment, pinned, matrix) if each.rule not in certain}
    listed = {copy.name: copy.version for copy in environment.distributions or () if copy.version and is_release(copy)}
    for newest in _selected_later(environment, listed, pinned, declared):
        for each in _questions(environment, {**pinned, **newest}, matrix):
            ours = not listed.keys().isdisjoint(each.packages) or not _OF_MACHINE.isdisjoint(each.facts)
            if each.rule not in certain and each.severity == "error" and ours:
                likely.setdefault(each.rule, each)
    if not environment.distributions:
        for each in _of_machine(environment):
            likely.setdefault(each.rule, each)
    return (*(each for each in found if each.rule not in likely), *likely.values())


def _questions(environment: Environment, implied: Mapping[str, Implied], matrix: Matrix) -> Iterator[Finding]:
    """Yield the likely questions about implied releases."""
    from compat.checks import builds
    from compat.rules import evaluate as rules
    from compat.rules.facts import Facts, seen_by_torch

    whole = _completed(environment, implied) if implied else None
    for each in () if whole is None else (*rules.judge(seen_by_torch(whole), matrix), *builds.judge(Facts(whole))):
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


def _selected_later(
    environment: Environment, listed: Mapping[str, str], pinned: Mapping[str, Implied], declared: Declared
) -> Iterator[Mapping[str, Implied]]:
    """Yield what an installer selected beside a few listed releases some time after the newest of them was published.

    Environments with a release are made soon after it, so a conflict with a release of that time is likely, and one with a
    release of years later is not. A long list would name what it conflicts with.
    """
    days = [package.day(version) for name, version in listed.items() if (package := declared.package(name)) is not None]
    before: Mapping[str, str] = {}
    given = any(copy.source is not None and copy.source.kind in _WITH_REQUIREMENTS for copy in environment.distributions or ())
    needed = () if given else needed_by(environment)
    whole = replace(
        environment, distributions=(*(environment.distributions or ()), *(Distribution(name, None) for name in needed))
    )
    for later in _LATER if any(days) else ():
        newest = newest_by(whole, pinned, declared, max(days) + later)
        if len(listed) > _FEW:
            newest = {name: each for name, each in newest.items() if name in needed}
        selected = {name: each.version for name, each in newest.items()}
        if selected != before:
            yield {name: replace(each, often=0.5 ** (later / _HALF)) for name, each in newest.items()}
        before = selected


def of_new_installation(
    environment: Environment, found: Collection[Finding], matrix: Matrix, answers: Answers
) -> Iterator[Finding]:
    """Yield the errors of a new installation of what a file lists: its pins with the newest releases that they accept.

    Pins that require different releases of another package are no question.

    ``answers`` caches the results of rules for similar environments.
    """
    from compat.checks import builds, disagreements, interfaces
    from compat.rules import evaluate as rules
    from compat.rules.facts import Facts, seen_by_torch
    from compat.tables.declared import open_declared

    declared = open_declared()
    pinned = implied_by(environment, declared)
    yield from disagreements.judge(environment, _with_roots(pinned), found, declared)
    stated = {copy.name for copy in environment.distributions or () if copy.version is not None}
    on_machine = bool(environment.accelerators or environment.driver)
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


def _with_roots(pinned: Mapping[str, Implied]) -> Iterator[tuple[str, Distribution]]:
    return ((each.root, Distribution(each.name, each.version)) for each in pinned.values())


def _completed(environment: Environment, implied: Mapping[str, Implied]) -> Environment:
    listed = (copy for copy in environment.distributions or () if copy.name not in implied)
    more = (each.copy or Distribution(each.name, each.version) for each in implied.values())
    return replace(environment, distributions=(*listed, *more))


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
        name, version = waiting.pop(0)
        for each in _pinned(name, version, environment, declared):
            if each.name not in known:
                known.add(each.name)
                found[each.name] = replace(each, root=found[name].root if name in found else name)
                waiting.append((each.name, each.version))
    return found


def newest_by(
    environment: Environment, pinned: Mapping[str, Implied], declared: Declared, until: int | None = None
) -> Mapping[str, Implied]:
    """What an installer selects of what is listed without a release, or required and not listed, by name.

    ``until`` is the day of the installation as :meth:`Package.day` counts (``None``: today). An installer that must go back for
    the sake of what it selected before may end anywhere, so a distribution whose newest release does not go with the others is
    left out.
    """
    listed = environment.distributions or ()
    releases = {copy.name: copy.version for copy in listed if copy.version is not None}
    releases |= {each.name: each.version for each in pinned.values()}
    found: dict[str, Implied] = {}
    names = {copy.name for copy in listed} | pinned.keys()
    complete = {copy.name for copy in listed if copy.source is not None and copy.source.kind in _WITH_REQUIREMENTS}
    waiting = [(copy, "an installer selects") for copy in listed if copy.version is None and not of_no_index(copy)]
    waiting.sort(key=lambda each: names.isdisjoint(_pinned_by_newest(each[0].name, environment, declared)))
    asking = [each for each in releases.items() if each[0] not in complete]
    pins: dict[str, str] = {}  # by what was selected
    while waiting or asking:
        for copy, by in waiting:
            version = _newest(copy, releases, found, pins, environment, declared, until)
            if version is not None:
                found[copy.name] = Implied(copy.name, version, by, often=_SELECTED)
                asking.append((copy.name, version))
                pins |= {each.name: each.version for each in _pinned(copy.name, version, environment, declared)}
        waiting = []
        for name, version in asking:
            for other in _required(name, version, environment, declared):
                if other not in names:
                    names.add(other)
                    waiting.append((Distribution(other, None), f"an installer selects for {name} {version}"))
        asking = []
    return found


def _pinned_by_newest(name: str, environment: Environment, declared: Declared) -> frozenset[str]:
    """The distributions that the newest release of one pins."""
    package = declared.package(name)
    newest = package.versions[-1:] if package is not None else ()
    return frozenset(each.name for version in newest for each in _pinned(name, version, environment, declared))


_WITH_REQUIREMENTS = ("image", "conda")
"""The sources that come with what a distribution requires, so that no installer selects it."""


def _newest(
    copy: Distribution, releases: Mapping[str, str], selected: Mapping[str, Implied], pins: Mapping[str, str],
    environment: Environment, declared: Declared, until: int | None,
) -> str | None:  # fmt: skip
    """The newest final release that an open requirement, the Python and the releases accept, if those selected do, too.

    What one of the selected releases pins is that release.
    """
    package = declared.package(copy.name)
    if package is None:
        return None
    try:
        admitted = EVERY if copy.specifier is None else ranges_of(copy.specifier)
    except ValueError:  # "===0.6.*", "==2.5.1+cu124,<3"
        return None

    def concerned(others: Iterable[tuple[str, str]]) -> list[tuple[str, str, Package | None]]:
        found = [(name, other, declared.package(name)) for name, other in others]
        return [each for each in found if each[0] in package.asks or (each[2] is not None and copy.name in each[2].asks)]

    def accepted(version: str, others: list[tuple[str, str, Package | None]]) -> bool:
        return all(
            _accepts(package, version, name, other, environment)
            and (theirs is None or _accepts(theirs, other, copy.name, version, environment))
            for name, other, theirs in others
        )

    stated = concerned(releases.items())
    pin = pins.get(copy.name)
    for version in reversed(package.versions) if pin is None else (pin,):
        key, release = key_of(version), package.published(version)
        if (
            (until is None or package.day(version) <= until) and is_final(key) and contains(admitted, key)
            and release is not None and release.is_offered(environment.python) and accepted(version, stated)
        ):  # fmt: skip
            others = concerned((each.name, each.version) for each in selected.values())
            return version if accepted(version, others) else None
    return None


def _accepts(package: Package, version: str, name: str, other: str, environment: Environment) -> bool:
    """Whether a release accepts the release of another distribution; one that is not recorded accepts all."""
    place = package.place(version)
    rows = () if place is None else package.requirements(place, name)
    return all(contains(each[1], key_of(other)) for each in rows if each[3] is None and may_apply(each, environment))


def _required(name: str, version: str, environment: Environment, declared: Declared) -> Iterator[str]:
    """Yield the distributions that a release requires regardless of extras."""
    package = declared.package(name)
    place = None if package is None else package.place(version)
    if package is not None and place is not None:
        always = package.extra(place, "")
        for asked in dict.fromkeys((*always, *package.asks)):
            rows = package.requirements(place, asked)
            if any(each[3] is None and may_apply(each, environment) for each in rows) or (not rows and asked in always):
                yield asked


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
        likelihood=min(implied[name].often for name in names) * (1.0 if finding.verdict == "hit" else known),
        packages={name: None if name in implied else version for name, version in finding.packages.items()},
        here="; ".join((*stated, *(f"{name} {implied[name].version}, which {implied[name].by}" for name in names))),
    )  # fmt: skip
