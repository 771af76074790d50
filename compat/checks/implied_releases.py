"""Releases that are not listed but implied: those that a listed release pins, and those that an installer selects.

torch 2.9.1 also pins triton, NCCL and cuDNN, and vLLM from an image without a name is taken for that of the project. What is
required with a range, or listed without a release, is the newest release that the others accept, in a new installation.
"""

from __future__ import annotations

from compat.checks.requirements import may_apply
from compat.model import Distribution, Environment, is_release, of_no_index
from compat.records import record, replace
from compat.versions import EVERY, contains, is_final, is_version, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from compat.tables.declared import Declared, Package

_PINNED = 0.8
"""The likelihood that a pinned release is installed."""
_SELECTED = 0.5
"""The likelihood that a new installation has the release that an installer would select today."""


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
        for each in pinned_by(name, version, environment, declared):
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
    complete = {copy.name for copy in listed if copy.source is not None and copy.source.kind in WITH_REQUIREMENTS}
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
                pins |= {each.name: each.version for each in pinned_by(copy.name, version, environment, declared)}
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
    return frozenset(each.name for version in newest for each in pinned_by(name, version, environment, declared))


WITH_REQUIREMENTS = ("image", "conda")
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


def pinned_by(name: str, version: str, environment: Environment, declared: Declared) -> Iterator[Implied]:
    """Yield the releases that a release pins regardless of extras.

    A requirement whose marker may hold counts; a package with several different specifiers is skipped. The libraries of a torch
    for another CUDA than that of the index's build (``2.5.1+cu121``) are not known.
    """
    package = declared.package(name)
    place = None if package is None else package.place(version)
    if package is None or place is None:
        return
    others = name == "torch" and "+" in version and _is_for_other_cuda(version)
    for asked in package.asks:
        if others and asked.startswith("nvidia-"):
            continue
        specifiers = {
            each[0] for each in package.requirements(place, asked) if each[3] is None and may_apply(each, environment)
        }
        pin = specifiers.pop().removeprefix("==") if len(specifiers) == 1 else ""
        if is_version(pin):
            yield Implied(asked, pin, f"{name} {version} requires")


def _is_for_other_cuda(torch: str) -> bool:
    """Whether the label of a torch names another CUDA than that of the build on the default index, or none."""
    from compat.checks.torch_build import cuda_of
    from compat.tables.builds import open_code_tables

    release, _, label = torch.partition("+")
    cuda = cuda_of(label)
    usual = {each.cuda for each in open_code_tables().torch_builds(release) if each.default and each.cuda}
    return cuda is not None and bool(usual) and cuda not in usual
