"""Needs of releases that some releases of other packages do not meet: rows from comparing all pairs of tracked packages.

One file: a header with the releases of every package, then blocks for each consumer: the needs of its imports (``E``), those
of code that runs later (``R``), and which of its modules import which (``X``), limited to imports that lead to a row.
``scripts/surface/rows.py`` writes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from compat.files import read_table
from compat.interfaces.at_once import AVAILABLE_FROM, bit_of, importable, least_available, place_of, with_older
from compat.records import kept, record
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypedDict

    EvidenceRow: TypeAlias = tuple[int, str, int, bool]
    RowValues: TypeAlias = tuple[
        str, int, list[int], str, str, str, list[str], str, str, str | None, str, str, list[EvidenceRow]
    ]
    """Package, mask of the releases that lack it, pairs of (mask of consumer releases, line), then the fields of a
    :class:`Row` from ``tier`` on. Read from JSON, so a list at run time."""
    State: TypeAlias = tuple[int, frozenset[str]] | None
    """Of a package in one environment: see :meth:`Rows.state`; ``None`` if it is not installed."""

    class Block(TypedDict):
        """The rows of one consumer, or with kind ``X`` its imports; ``masks`` are sets of releases."""

        masks: list[int]
        rows: list[Any]


MAGIC = b"surfrow3"
E1, E2, R1 = "E1", "E2", "R1"


@record(frozen=True)
class Evidence:
    """A line of a release, where a name is used or missing."""

    version: str
    path: str
    line: int
    has: bool

    @property
    def place(self) -> str:
        return place_in(self.path, self.line)


@record(frozen=True)
class Row:
    """``consumer`` at ``version`` needs something that ``package`` does not have in the releases ``bad``.

    ``tier``: E1 the import of the package itself fails, E2 that of one of its modules, R1 a later call or import. ``asks``:
    applies only if these packages are installed too. ``kind`` and ``target`` describe the need (:mod:`.needs`), ``problem`` why
    it is not met (``name``, ``keyword``, ``positional``, ``override-keyword``, ``override-positional``), ``missing`` the name.
    """

    consumer: str
    version: str
    tier: str
    module: str
    path: str
    line: int
    scope: str
    asks: tuple[str, ...]
    package: str
    kind: str
    target: str
    name: str | None
    problem: str
    missing: str
    bad: tuple[str, ...]
    evidence: tuple[Evidence, ...]

    @property
    def place(self) -> str:
        return place_in(self.path, self.line)

    @property
    def what(self) -> str:
        """The need in short: ``accelerate.utils.memory.clear_device_cache``, ``peft.get_peft_model(low_memory=)``."""
        whole = f"{self.target}.{self.name}" if self.name and self.kind != "override" else self.target
        if self.problem == "keyword":
            return f"{whole}({self.missing}=)"
        if self.problem == "positional":
            return f"{whole}(…)"
        return self.missing if self.problem == "name" else f"{whole}.{self.name}"


def place_in(path: str, line: int) -> str:
    """Format a line of a file, or the file alone if the line is unknown (0)."""
    return f"{path}:{line}" if line else path


def module_of(path: str) -> str:
    """Return the module name of a file of a release."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def open_rows() -> Rows:
    """Open the shipped rows."""
    from compat.interfaces.table import path_of

    return Rows(read_table(path_of("rows")))


class Walk:
    """A step of a walk along imports: the package read next and, by its state, what comes after; at the end, the result.

    Environments in which the same packages have the same state have the same result, whatever else is installed.
    """

    def __init__(self) -> None:
        self.package = ""
        self.after: dict[State, Walk] = {}
        self.found: Mapping[str, str] | None = None
        self._kept = 0

    def keep(self, read: Iterable[tuple[str, State]], found: Mapping[str, str]) -> None:
        """Keep the result of a walk that started here and read these packages."""
        self._kept += 1
        if self._kept > _MOST_KEPT:
            return
        walk = self
        for package, state in read:
            walk.package = package
            walk = walk.after.setdefault(state, Walk())
        walk.found = found


_MOST_KEPT = 100
_UNKNOWN = -1


class Rows:
    """The rows, opened block by block: blocks of packages that are not installed are never read."""

    def __init__(self, content: bytes) -> None:
        from compat.interfaces.table import header_of, value_of

        self._content, self._value_of = content, value_of
        header, self._start = header_of(content, MAGIC)
        self._versions: dict[str, tuple[str, ...]] = {name: tuple(each) for name, each in header["versions"].items()}
        self._blocks: dict[tuple[str, str], tuple[int, int]] = {
            (package, kind): (start, length) for package, kind, start, length in header["blocks"]
        }
        self._tops: dict[str, str] = header["tops"]
        self._bit_of: dict[tuple[str, str], int] = {}
        self._mentioned: dict[tuple[str, str, str], tuple[frozenset[str], frozenset[str]]] = {}
        self.walks: dict[tuple[str, ...], Walk] = {}

    @property
    def consumers(self) -> frozenset[str]:
        return frozenset(consumer for consumer, kind in self._blocks if kind != "X")

    @property
    def packages(self) -> frozenset[str]:
        return frozenset(self._versions)

    def versions(self, package: str) -> tuple[str, ...]:
        """Return the known releases of a package, oldest first."""
        return self._versions.get(package, ())

    def broken(
        self, installed: Mapping[str, str], *, tiers: Iterable[str] = (E1, E2, R1), consumers: Iterable[str] | None = None
    ) -> list[Row]:
        """Return the rows for needs that the installed releases (by normalised name) do not meet, in these tiers.

        Rows with packages in ``asks`` that are not installed are omitted. The caller decides whether an E2 or R1 row is ever
        reached.
        """
        found: list[Row] = []
        wanted = frozenset(tiers)
        kinds = [kind for kind, of in (("E", (E1, E2)), ("R", (R1,))) if wanted & set(of)]
        tops = importable(installed)
        known = {package: version for package, version in installed.items() if package in self._versions}
        bits = {package: self._bits(package, (version,)) for package, version in known.items()}
        for consumer in _chosen(known, consumers):
            for kind in kinds:
                if (consumer, kind) in self._blocks:
                    rows = self._of(consumer, known[consumer], kind, bits)
                    found += [row for row in rows if row.tier in wanted and tops.issuperset(row.asks)]
        return found

    def broken_by_some(
        self, listed: Mapping[str, Iterable[str]], *, tiers: Iterable[str], later: bool = False,
        consumers: Iterable[str] | None = None,
    ) -> list[Row]:  # fmt: skip
        """Return the rows of :meth:`broken` for any choice of one release per package, in one pass; ``later`` includes R1."""
        wanted = frozenset((*tiers, R1) if later else tiers)
        tops = importable(listed)
        bits = self.bits(listed)
        kinds = ("E", "R")[: 1 + later]
        return [
            row for consumer in _chosen(listed, consumers) for kind in kinds for version in listed[consumer]
            for row in self._of(consumer, version, kind, bits) if row.tier in wanted and tops.issuperset(row.asks)
        ]  # fmt: skip

    def of(self, consumer: str, version: str, *, kind: str = "E", needed: Mapping[str, str] | None = None) -> list[Row]:
        """Return the rows of one release; with ``needed``, only those that these releases of other packages do not meet."""
        bits = None if needed is None else {package: self._bits(package, (version,)) for package, version in needed.items()}
        return self._of(consumer, version, kind, bits)

    def _of(self, consumer: str, version: str, kind: str, bits: Mapping[str, int] | None) -> list[Row]:
        at = self._position(consumer, version)
        if at is None:
            return []
        block = self._block(consumer, kind)
        masks = block["masks"]
        found = []
        for row in block["rows"]:
            package = row[0]
            if bits is not None and not bits.get(package):
                continue  # most rows are about packages that are not there
            bad = self._lacking(row, masks)
            if bits is not None and not bits[package] & bad:
                continue
            bad &= ~self._passed_over(consumer, version, package)
            if not (bad if bits is None else bits.get(package, 0) & bad):
                continue
            line = next((line for mask, line in zip(row[2][::2], row[2][1::2]) if masks[mask] >> at & 1), None)
            if line is not None:
                found.append(self._row(consumer, version, row, bad, line))
        return found

    def _by_least(self, consumer: str, package: str, when: tuple[int, ...], bad: int) -> list[tuple[tuple[int, ...], int]]:
        """Group places of a consumer's releases by the releases of ``bad`` that they do not pass over; those without any go."""
        if (consumer, package) not in AVAILABLE_FROM:
            return [(when, bad)]
        groups: dict[int, list[int]] = {}
        for at in when:
            groups.setdefault(bad & ~self._passed_over(consumer, self.versions(consumer)[at], package), []).append(at)
        return [(tuple(places), left) for left, places in groups.items() if left]

    def _passed_over(self, consumer: str, version: str, package: str) -> int:
        """The releases of a package that a release of the consumer takes for not installed, as a bit mask."""
        least = least_available(consumer, version, package)
        return 0 if least is None else self._before(package, least)

    @kept
    def _before(self, package: str, least: str) -> int:
        older = (at for at, each in enumerate(self.versions(package)) if key_of(each) < key_of(least))
        return sum(1 << at for at in older) | 1 << len(self.versions(package))

    @kept
    def failing_with(self, consumer: str, kind: str, package: str, version: str) -> frozenset[str]:
        """The releases of a consumer that have a row which this release of another package does not meet."""
        block, here = self._block(consumer, kind), self._bits(package, (version,))
        masks, when = block["masks"], 0
        for row in block["rows"]:
            if row[0] == package and self._lacking(row, masks) & here:
                for mask in row[2][::2]:
                    when |= masks[mask]
        return frozenset(each for at, each in enumerate(self.versions(consumer)) if when >> at & 1)

    def all_of(
        self, consumer: str, *, kind: str = "E", tier: str = "", needed: Mapping[str, int] | None = None
    ) -> list[tuple[tuple[str, ...], Row]]:  # fmt: skip
        """Return every row of a package (of a tier) with the releases it applies to; the row is that of the newest one.

        With ``needed``, only the rows that some of these releases (:meth:`bits`) of another package do not meet.
        """
        block = self._block(consumer, kind)
        versions, found = self.versions(consumer), []
        for row in block["rows"]:
            if (tier and row[3] != tier) or (
                needed is not None and not needed.get(row[0], 0) & self._lacking(row, block["masks"])
            ):
                continue
            lines = [(block["masks"][mask], line) for mask, line in zip(row[2][::2], row[2][1::2])]
            when = tuple(at for at in range(len(versions)) if any(mask >> at & 1 for mask, _ in lines))
            for places, bad in self._by_least(consumer, row[0], when, block["masks"][row[1]]):
                last = next(line for mask, line in lines if mask >> places[-1] & 1)
                made = self._row(consumer, versions[places[-1]], row, bad, last)
                found.append((tuple(versions[at] for at in places), made))
        return found

    def mentioned(self, consumer: str, *, kind: str = "E", tier: str = "") -> tuple[frozenset[str], frozenset[str]]:
        """Return the packages that the rows of a package (of a tier) are about, and the names that must be importable."""
        asked = consumer, kind, tier
        if asked not in self._mentioned:
            rows = [row for row in self._block(consumer, kind)["rows"] if not tier or row[3] == tier]
            self._mentioned[asked] = frozenset(row[0] for row in rows), frozenset(name for row in rows for name in row[6])
        return self._mentioned[asked]

    def importing(self, name: str) -> Iterator[tuple[str, str, str]]:
        """Yield (consumer, package, module) for the imports of a name that some release of the package does not have."""
        for consumer, kind in self.parts:
            for row in self.part(consumer, kind)["rows"] if kind != "X" else ():
                package, _, _, _, _, _, _, need, target, imported, problem, *_ = row
                if imported == name and need == "import" and problem == "name":
                    yield consumer, package, target

    # Imports

    def package_of(self, node: str) -> str | None:
        """Return the package of a module, by its top-level module."""
        return self._tops.get(node.partition(":")[0].partition(".")[0])

    def tops(self, package: str) -> tuple[str, ...]:
        return tuple(top for top, each in self._tops.items() if each == package)

    def state(self, package: str, version: str, here: Collection[str]) -> State:
        """What :meth:`steps` depends on: the release, and those of the packages its imports ask for that are ``here``."""
        at = self._position(package, version)
        return (_UNKNOWN, frozenset()) if at is None else (at, self._asked_for(package).intersection(here))

    @kept
    def _asked_for(self, package: str) -> frozenset[str]:
        return frozenset(name for _, *steps in self._block(package, "X")["rows"] for asks in steps[1::3] for name in asks)

    @kept
    def steps(self, package: str, state: State) -> dict[str, tuple[str, ...]]:
        """Return what each module imports when it runs, limited to imports that lead to a row; see :meth:`state`."""
        if state is None or state[0] == _UNKNOWN:
            return {}
        at, present = state
        block, found = self._block(package, "X"), {}
        now = [mask >> at & 1 for mask in block["masks"]]
        for start, *steps in block["rows"]:
            taken = [
                end for mask, asks, ends in zip(steps[::3], steps[1::3], steps[2::3])
                if now[mask] and present.issuperset(asks) for end in ends
            ]  # fmt: skip
            if taken:
                found[start] = tuple(taken)
        return found

    def _row(self, consumer: str, version: str, row: RowValues, bad: int, line: int) -> Row:
        package, _, _, tier, path, scope, asks, kind, target, name, problem, missing, evidence = row
        versions = self._versions[package]
        return Row(
            consumer, version, tier, module_of(path), path, line, scope, tuple(asks), package, kind, target, name, problem,
            missing, tuple(each for at, each in enumerate(versions) if bad >> at & 1),
            tuple(Evidence(versions[at], path, line, has) for at, path, line, has in evidence),
        )  # fmt: skip

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The package and kind of each block."""
        return tuple(self._blocks)

    def part(self, package: str, kind: str) -> Block:
        """Return a block in its stored form, for the scripts that write rows."""
        return self._block(package, kind)

    @kept
    def _block(self, consumer: str, kind: str) -> Block:
        if (consumer, kind) not in self._blocks:
            return {"masks": [], "rows": []}
        start, length = self._blocks[consumer, kind]
        block: Block = self._value_of(self._content[self._start + start : self._start + start + length])
        return block

    @kept
    def _position(self, package: str, version: str) -> int | None:
        """Return the index of a version among the known releases, ignoring its local label."""
        return place_of(self.versions(package), version)

    def bits(self, listed: Mapping[str, Iterable[str]]) -> dict[str, int]:
        """Return sets of releases, by package, as bit masks."""
        return {package: self._bits(package, versions) for package, versions in listed.items()}

    def _bits(self, package: str, versions: Iterable[str]) -> int:
        """Return the set of these releases as a bit mask."""
        return sum({self._bit(package, version) for version in versions})

    def _bit(self, package: str, version: str) -> int:
        """Return the bit of one release, which every consumer asks for."""
        asked = package, version
        if asked not in self._bit_of:
            self._bit_of[asked] = bit_of(self.versions(package), version)
        return self._bit_of[asked]

    def _lacking(self, row: RowValues, masks: list[int]) -> int:
        """Return the releases that do not have what a row needs; an override fits those that do not call it."""
        return masks[row[1]] if row[10].startswith("override") else with_older(masks[row[1]], self.versions(row[0]))


def _chosen(names: Iterable[str], consumers: Iterable[str] | None) -> list[str]:
    """Return the names in ``consumers`` (all names for ``None``), in their order."""
    wanted = None if consumers is None else frozenset(consumers)
    return [name for name in names if wanted is None or name in wanted]
