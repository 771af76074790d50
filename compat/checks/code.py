"""Check the user's code against one environment: find names and arguments that the installed releases do not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from compat.checks.fix_commands import nearest_fixes
from compat.errors import InputError
from compat.interfaces.code.files import read_code
from compat.interfaces.code.releases import Releases
from compat.interfaces.code.wanted import Wanted, WantedOf, follows, imported
from compat.interfaces.table import open_table, tracked
from compat.model import Finding, Fix, Location
from compat.versions import is_version

if TYPE_CHECKING:
    from compat.interfaces.code.records import Code
    from compat.interfaces.needs import Need


INHERITED_FROM = frozenset(("transformers", "accelerate", "peft", "torch", "huggingface-hub", "datasets"))
"""Packages whose classes are subclassed by other packages: code may use them without importing them."""
_kept: dict[tuple[tuple[str, float, int], ...], WantedOf] = {}
_releases: list[Releases] = []


def wanted_of(paths: tuple[str, ...]) -> WantedOf:
    """The needs of the code in some files, cached until a file changes."""
    key = tuple((path, *_stamp(path)) for path in paths)
    if key not in _kept:
        _kept.clear()
        _kept[key] = WantedOf(_code(paths), tracked())
    return _kept[key]


def _code(paths: tuple[str, ...]) -> Code:
    from compat.interfaces.code.records import Code

    try:
        return read_code(paths)
    except InputError as problem:
        return Code((), (problem,))


def _stamp(path: str) -> tuple[float, int]:
    import os

    try:
        found = os.stat(path)
    except OSError:
        return 0.0, 0
    return found.st_mtime, found.st_size


def releases() -> Releases:
    """The releases in the shipped tables, with their cached answers."""
    if not _releases:
        _releases.append(Releases(open_table, tracked()))
    return _releases[0]


def remember(paths: tuple[str, ...], installed: Mapping[str, str]) -> None:
    """Load the cached answers about the releases that the code uses; :func:`judge_code` adds to the cache."""
    used = {*wanted_of(paths).packages(), *INHERITED_FROM}
    releases().remember({name: version for name, version in installed.items() if name in used})


def judge_code(paths: tuple[str, ...], installed: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each name or argument that the code uses and an installed release does not have."""
    wanted = wanted_of(paths)
    known = releases()
    seen: set[str] = set()
    gone: set[str] = set()
    for each in wanted.all:
        if follows(each.need, gone):
            continue  # report each missing name once
        for package in wanted.packages_of(each):
            found = None if package not in installed else lacked_by(known, package, installed, each.need)
            if found is None:
                continue
            gone.update(filter(None, (imported(each.need),)))
            finding = _finding(each, package, found, wanted, installed, known)
            if finding.rule not in seen:
                seen.add(finding.rule)
                yield finding
            break
    known.save()


def lacked_by(known: Releases, package: str, installed: Mapping[str, str], need: Need) -> str | None:
    """The package whose installed release does not meet a need: ``package``, or the one it defers to; ``None`` if met."""
    depth = 0
    while package in installed and depth < 4:
        answer = known.answer(package, installed[package], need)
        if answer.met is False:
            return package
        if answer.lean is None:
            return None
        package, need, depth = answer.lean.package, answer.lean.need, depth + 1
    return None


def _finding(
    each: Wanted, package: str, lacking: str, wanted: WantedOf, installed: Mapping[str, str], known: Releases
) -> Finding:
    about = {name: installed[name].partition(" ")[0] for name in (package, lacking)}
    nowhere = known.nowhere(package, each.need)
    fixes = fixes_of(each, package, lacking, wanted, installed, known, nowhere=nowhere)
    path = each.file.path
    return Finding(
        rule=f"surface-{package}-{_short(each)}",
        origin="surface", verdict="hit", severity="error" if each.sure else "warning", effect="crash", confidence="confirmed",
        title=_title(each, package, lacking, installed, nowhere=nowhere), why=_why(each, package, lacking, installed),
        packages=about, facts=("workload",), fixes=tuple(fixes),
        evidence=tuple(_evidence(each, package, lacking, installed, known)),
        here=", ".join(f"{name} {version}" for name, version in about.items()),
        location=Location(path, None if each.file.is_notebook else each.line),
    )  # fmt: skip


def _title(each: Wanted, package: str, lacking: str, installed: Mapping[str, str], *, nowhere: bool) -> str:
    name = f"{lacking} {installed[lacking]}"
    if nowhere:
        return f"{each.what} is in no known release of {package}"
    if lacking != package and each.need.kind != "override":
        both = f"{package} {installed[package]} nor {name}"
        return f"{each.what} is {'accepted by' if each.need.keywords or each.need.positional else 'in'} neither {both}"
    if each.need.kind == "override":
        return f"{name} calls {each.need.name} in a way that your {each.need.name} does not take"
    if each.need.keywords:
        return f"{each.what} is not accepted by {name}"
    if each.need.positional:
        return f"{each.what}: {name} accepts fewer"
    return f"{each.what} is not in {name}"


def _why(each: Wanted, package: str, lacking: str, installed: Mapping[str, str]) -> str:
    error = "ImportError" if each.need.kind == "import" else "AttributeError" if each.need.kind == "attribute" else "TypeError"
    if each.need.kind in ("method", "inherited") and not each.need.keywords and not each.need.positional:
        error = "AttributeError"
    text = f"{_line(each)} uses it, and the installed release does not have it: this raises {error}."
    if lacking != package:
        text = f"{_line(each)} uses it, and {package} {installed[package]} takes it from {lacking}, which does not have it: "
        f"this raises {error}."
    return text if each.sure else f"{text} The line only runs under a condition."


def _line(each: Wanted) -> str:
    """The location without the file name, which is shown separately."""
    return f"Line {each.line}" if not each.file.is_notebook else each.place.removeprefix(each.file.path).strip().capitalize()


def _short(each: Wanted) -> str:
    kind, target, name, bases, _, keywords, _ = each.need
    last = (bases[0] if bases else target).rpartition(".")[2]
    parts = [last]
    if name and kind != "import" and name != "__init__":
        parts.append(name)
    elif name and kind == "import":
        parts = [name]
    return "-".join((*parts, *keywords))


def fixes_of(
    each: Wanted,
    package: str,
    lacking: str,
    wanted: WantedOf,
    installed: Mapping[str, str],
    known: Releases,
    *,
    nowhere: bool,
    what: str = "has everything your code uses",
) -> Iterator[Fix]:
    """Yield fixes for a need that ``lacking`` does not meet; ``what`` describes a release that meets all needs."""
    from compat.interfaces.code.renamed import nearest

    if nowhere:
        near = nearest(known, package, each.need)
        if near:
            yield Fix("config", None, None, f"did you mean {near}?")
        return
    for moved in dict.fromkeys((lacking, package)):  # an earlier release may have defined it itself
        found = tuple(_by_moving(moved, each, package, wanted, installed, known, what))
        if found:
            yield from found
            return


def _by_moving(
    moved: str, each: Wanted, package: str, wanted: WantedOf, installed: Mapping[str, str], known: Releases, what: str
) -> Iterator[Fix]:
    """Yield the nearest releases that have it, and its name in the installed release if it was renamed."""
    from compat.interfaces.code.renamed import in_other_release

    if not is_version(installed[moved]):
        return  # read from a source tree: it has no next release
    table = known.table(moved)
    versions = () if table is None else table.versions
    about = [
        one for one in wanted.all if {moved, package} & set(wanted.packages_of(one)) and _says(known, one, wanted, installed)
    ]

    now = [one for one in about if one is each or _met(known, one, wanted, installed)]

    def has(which: list[Wanted]) -> Callable[[str], bool]:
        return lambda version: all(_met(known, one, wanted, {**installed, moved: version}) for one in which)

    here = moved, installed[moved], versions, versions
    fixes = tuple(nearest_fixes(*here, what, check=has(about))) or tuple(
        nearest_fixes(*here, "has this, but not everything your code uses: see compat script", check=has(now))
    )
    nearby = next((fix.spec.lstrip("=>") for fix in fixes if fix.spec), None)
    lean = known.answer(package, installed[package], each.need).lean
    need = each.need if lean is None or moved == package else lean.need
    found = None if nearby is None else in_other_release(known, moved, need, nearby, installed[moved])
    if found is not None and found.said:
        yield Fix("config", None, None, f"{moved} {installed[moved]} calls it {found.name}")
    yield from fixes


def _met(known: Releases, each: Wanted, wanted: WantedOf, installed: Mapping[str, str]) -> bool:
    return all(lacked_by(known, name, installed, each.need) is None for name in wanted.packages_of(each))


def _says(known: Releases, each: Wanted, wanted: WantedOf, installed: Mapping[str, str]) -> bool:
    """Whether a need distinguishes releases: one that no known release meets does not."""
    return all(
        name not in installed or lacked_by(known, name, installed, each.need) is None or not known.nowhere(name, each.need)
        for name in wanted.packages_of(each)
    )


def _evidence(each: Wanted, package: str, lacking: str, installed: Mapping[str, str], known: Releases) -> Iterator[str]:
    need = each.need
    world = known.world(package, installed[package])
    found = None if world is None else world.find(need.bases[0] if need.bases else need.target)
    if found is not None and found.module:
        yield f"{package} {installed[package]} {found.module.replace('.', '/')}.py"
