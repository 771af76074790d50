"""Rows of the tables as findings: one for each pair of packages and tier, with the releases that would do."""

from __future__ import annotations

from compat.report import Finding, Fix
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from compat.environment import Environment
    from compat.judge.facts import Facts
    from compat.matrix.surface.rows import Evidence, Row, Rows

    Pair = tuple[str, str]


def of_imports(broken: Iterable[Row], installed: Mapping[str, str], rows: Rows) -> Iterator[Finding]:
    """Imports that fail when a package is imported."""
    for (consumer, package), found in _paired(broken).items():
        first = found[0]
        module = first.consumer if first.module.partition(".")[0] == first.module else first.module
        here, there = installed[consumer], installed[package]
        yield Finding(
            rule=f"surface-{consumer}-{package}",
            origin="surface", verdict="hit", severity="error", effect="crash", confidence="confirmed",
            title=f"{consumer} {here} imports {first.what}, which {package} {there} does not have",
            why=f"{_place(first)} imports it as soon as {module} is imported, under no condition." + _others(found),
            packages={consumer: here, package: there},
            fixes=tuple(_fixes(consumer, package, found, installed, rows, "E")),
            evidence=tuple(_evidence(first, here, there)),
            here=f"{consumer} {here}, {package} {there}",
        )  # fmt: skip


def of_reached(facts: Facts, installed: Mapping[str, str], rows: Rows) -> Iterator[Finding]:
    """What fails later, where the trainer or the model is known to come past it."""
    trainer, model = facts.workload.trainer, facts.workload.model
    reached = [row for row in rows.broken(installed, tiers=("E2", "R1")) if _comes_past(row, trainer, model)]
    for (consumer, package), found in _paired(reached).items():
        yield _later(consumer, package, found, installed, rows, "hit")


def of_unreached(environment: Environment, installed: Mapping[str, str], rows: Rows) -> Iterator[Finding]:
    """The same where nobody said what is run."""
    workload = environment.workload
    trainer, model = (workload.trainer, workload.model) if workload is not None else (None, None)
    left = [row for row in rows.broken(installed, tiers=("E2", "R1")) if not _comes_past(row, trainer, model)]
    for (consumer, package), found in _paired(left).items():
        yield _later(consumer, package, found, installed, rows, "possible")


def _later(consumer: str, package: str, found: list[Row], installed: Mapping[str, str], rows: Rows, verdict: str) -> Finding:
    first = min(found, key=lambda row: row.tier)
    here, there = installed[consumer], installed[package]
    fails = f"import of {first.module}" if first.tier == "E2" else f"call in {first.scope or first.module}"
    return Finding(
        rule=f"surface-{consumer}-{package}-later",
        origin="surface", verdict=verdict, severity="warning", effect="crash", confidence="confirmed",
        title=f"{consumer} {here} {_asks(first)} {package} {there} does not have",
        why=f"{_place(first)}: the {fails} fails where it is come to." + _others(found),
        packages={consumer: here, package: there}, facts=("workload",),
        missing=("workload",) if verdict == "possible" else (), unknown=("workload.task",) if verdict == "possible" else (),
        fixes=tuple(_fixes(consumer, package, found, installed, rows, None)),
        evidence=tuple(_evidence(first, here, there)),
        here=f"{consumer} {here}, {package} {there}",
    )  # fmt: skip


def _asks(row: Row) -> str:
    if row.kind == "import":
        return f"imports {row.what}, which"
    return f"overrides {row.what} in a way that" if row.kind == "override" else f"uses {row.what}, which"


def _comes_past(row: Row, trainer: str | None, model: str | None) -> bool:
    if trainer and row.scope.partition(".")[0].lower() == trainer.lower():
        return True
    name = (model or "").lower().replace("-", "_")
    return bool(name) and f".models.{name}." in f"{row.module}."


def _paired(rows: Iterable[Row]) -> dict[Pair, list[Row]]:
    found: dict[Pair, list[Row]] = {}
    for row in rows:
        found.setdefault((row.consumer, row.package), []).append(row)
    return found


def _place(row: Row) -> str:
    return f"{row.path}:{row.line}" if row.line else row.path


def _others(found: list[Row]) -> str:
    names = list(dict.fromkeys(row.what for row in found))[1:]
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f" So are {', '.join(names[:3])}{more}."


def _evidence(row: Row, here: str, there: str) -> Iterator[str]:
    yield f"{row.consumer} {here} {_place(row)}"
    known = sorted(row.evidence, key=lambda each: _apart(each, there))
    for has in (False, True):
        each = next((one for one in known if one.has is has), None)
        if each is not None:
            where = f"{each.path}:{each.line}" if each.line else each.path
            yield f"{row.package} {each.version} {where}" + ("" if has else f" has no {row.missing}")


def _apart(each: Evidence, there: str) -> tuple[int, ...]:
    key, here = key_of(each.version)[1], key_of(there)[1]
    return tuple(abs(mine - other) for mine, other in zip((*key, 0, 0), (*here, 0, 0)))


def _fixes(
    consumer: str, package: str, found: list[Row], installed: Mapping[str, str], rows: Rows, kind: str | None
) -> Iterator[Fix]:
    """The nearest releases of either of the two with which this is gone."""
    bad = {version for row in found for version in row.bad}
    good = [version for version in rows.versions(package) if version not in bad]
    yield from nearest_fixes(package, installed[package], good, rows.versions(package), f"has what {consumer} needs")
    if kind is not None:
        broken = {
            version for when, row in rows.all_of(consumer, kind=kind)
            if row.package == package and row.tier == "E1" and installed[package] in row.bad for version in when
        }  # fmt: skip
        good = [version for version in rows.versions(consumer) if version not in broken]
        yield from nearest_fixes(
            consumer, installed[consumer], good, rows.versions(consumer), f"takes {package} {installed[package]}"
        )


def nearest_fixes(
    name: str, here: str, good: Iterable[str], known: tuple[str, ...], text: str, *, check: Callable[[str], bool] | None = None
) -> Iterator[Fix]:
    """The first good release after and the last one before the one that is there; ``check`` may turn a release down."""
    key = key_of(here)
    finals = [version for version in good if is_version(version) and key_of(version)[2:] == _FINAL[2:]] or list(good)
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
