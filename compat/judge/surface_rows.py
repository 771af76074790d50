"""Rows of the tables as findings: one for each two packages, with the nearest releases that would do."""

from __future__ import annotations

from compat.report import Finding, Fix
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from compat.matrix.surface.rows import Evidence, Row, Rows

    Pair = tuple[str, str]


def of_imports(broken: Iterable[tuple[Row, tuple[str, ...]]], installed: Mapping[str, str], rows: Rows) -> Iterator[Finding]:
    """Imports that fail when a package is imported; each row with the imports that lead to it."""
    chains = {id(row): chain for row, chain in broken}
    for (consumer, package), found in paired(row for row, _ in broken).items():
        first = found[0]
        here, there = installed[consumer], installed[package]
        yield Finding(
            rule=f"surface-{consumer}-{package}",
            origin="surface", verdict="hit", severity="error", effect="crash", confidence="confirmed",
            title=f"{consumer} {here} imports {first.what}, which {package} {there} does not have",
            why=_why(first, chains[id(first)]) + said_of_others(found),
            packages={consumer: here, package: there},
            fixes=tuple(fixes_of(consumer, package, found, installed, rows)),
            evidence=tuple(evidence_of(first, here, there)),
            here=f"{consumer} {here}, {package} {there}",
        )  # fmt: skip


def _why(row: Row, chain: tuple[str, ...]) -> str:
    if len(chain) > 1:
        steps = " → ".join(dict.fromkeys(step.partition(":")[0] for step in chain))
        return f"{row.place} is run by import {chain[0].partition(':')[0]} ({steps})."
    return f"{row.place} is run as soon as {row.consumer} is imported, under no condition."


def paired(rows: Iterable[Row]) -> dict[Pair, list[Row]]:
    """Rows by who needs something, and of whom."""
    found: dict[Pair, list[Row]] = {}
    for row in rows:
        found.setdefault((row.consumer, row.package), []).append(row)
    return found


def said_of_others(found: list[Row]) -> str:
    """What else of the same two packages is not there, in a sentence."""
    names = list(dict.fromkeys(row.what for row in found))[1:]
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f" So it is with {', '.join(names[:3])}{more}."


def evidence_of(row: Row, here: str, there: str) -> Iterator[str]:
    """The line that needs it, the file without it nearest to the release that is there, and the line that has it."""
    yield f"{row.consumer} {here} {row.place}"
    known = sorted(row.evidence, key=lambda each: _apart(each, there))
    for has in (False, True):
        each = next((one for one in known if one.has is has), None)
        if each is not None:
            yield f"{row.package} {each.version} {each.place}" + ("" if has else f" has no {row.missing}")


def _apart(each: Evidence, there: str) -> tuple[int, ...]:
    key, here = key_of(each.version)[1], key_of(there)[1]
    return tuple(abs(mine - other) for mine, other in zip((*key, 0, 0), (*here, 0, 0)))


def fixes_of(consumer: str, package: str, found: list[Row], installed: Mapping[str, str], rows: Rows) -> Iterator[Fix]:
    """The nearest releases of either of the two with which this is gone."""
    bad = {version for row in found for version in row.bad}
    good = [version for version in rows.versions(package) if version not in bad]
    yield from nearest_fixes(package, installed[package], good, rows.versions(package), f"has what {consumer} needs")
    kinds = {"R" if row.tier == "R1" else "E" for row in found}
    broken = {
        version for kind in kinds for when, row in rows.all_of(consumer, kind=kind)
        if row.package == package and installed[package] in row.bad for version in when
    }  # fmt: skip
    good = [version for version in rows.versions(consumer) if version not in broken]
    text = f"takes {package} {installed[package]}"
    yield from nearest_fixes(consumer, installed[consumer], good, rows.versions(consumer), text)


def nearest_fixes(
    name: str, here: str, good: Iterable[str], known: tuple[str, ...], text: str, *, check: Callable[[str], bool] | None = None
) -> Iterator[Fix]:
    """The first good release after and the last one before the one that is there; ``check`` may turn a release down."""
    key = key_of(here)
    candidates = list(good)
    finals = [version for version in candidates if is_version(version) and key_of(version)[2:] == _FINAL[2:]] or candidates
    after = (version for version in finals if key_of(version) > key and (check is None or check(version)))
    before = (version for version in reversed(finals) if key_of(version) < key and (check is None or check(version)))
    above = next(after, None)
    if above is not None:
        stays = known[-1] in finals and (check is None or check(known[-1]))
        spec = f">={above}" if stays else f"=={above}"
        yield Fix("upgrade", name, spec, f"the next release that {text}", f'pip install "{name}{spec}"')
    below = next(before, None)
    if below is not None:
        yield Fix("downgrade", name, f"=={below}", f"the last release before that {text}", f'pip install "{name}=={below}"')


_FINAL = key_of("1")
