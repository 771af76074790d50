"""Which of the packages that a lock lists can fail beside each other: the others need not be told apart."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from compat.matrix.surface.rows import Rows

_MOST = 32
"""Combinations that are tried one by one."""


def broken_together(releases: Iterable[tuple[str, str | None]], rows: Rows, *, later: bool) -> frozenset[str]:
    """The packages of every row that some choice of the listed releases breaks; ``later``: those of calls too."""
    from compat.matrix.surface.reach import eager_rows

    listed: dict[str, dict[str, None]] = {}
    for name, version in releases:
        if version is not None and name in rows.packages:
            listed.setdefault(name, {})[version] = None
    found: set[str] = set()
    for installed in _choices({name: tuple(versions) for name, versions in listed.items()}):
        for row, chain in eager_rows(rows, installed):
            found |= {row.consumer, row.package}
            found |= {package for node in chain if (package := rows.package_of(node)) is not None}
        if later:
            found |= {name for row in rows.broken(installed) for name in (row.consumer, row.package)}
    return frozenset(found)


def _choices(listed: dict[str, tuple[str, ...]]) -> Iterator[dict[str, str]]:
    """Choices of one release each; where they are too many, so many that every two releases meet of which one is alone."""
    count = 1
    for versions in listed.values():
        count *= len(versions)
    if count <= _MOST:
        chosen: list[dict[str, str]] = [{}]
        for name, versions in listed.items():
            chosen = [{**each, name: version} for each in chosen for version in versions]
        yield from chosen
        return
    plain = {name: versions[0] for name, versions in listed.items()}
    yield plain
    for name, versions in listed.items():
        for version in versions[1:]:
            yield {**plain, name: version}
    yield {name: versions[-1] for name, versions in listed.items()}


def used_by_code(paths: tuple[str, ...]) -> frozenset[str]:
    """The packages that code uses, and those that their classes inherit from."""
    from compat.judge.code.findings import wanted_of

    return frozenset(wanted_of(paths).packages()) | _INHERITED_FROM


_INHERITED_FROM = frozenset(("transformers", "accelerate", "peft", "torch", "huggingface-hub", "datasets"))
