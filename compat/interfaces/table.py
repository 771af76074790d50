"""The shipped table of one package: the contents of every known release, opened module by module.

A file is a header and separately compressed chunks of blocks, with one block per module: a query about one module reads
the header and one chunk. docs/surface.md describes the format; ``scripts/surface/tables.py`` writes it.
"""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from compat.files import DATA, read_table
from compat.interfaces.at_once import place_of
from compat.interfaces.release import NO_PACKAGES
from compat.interfaces.source.records import Class, Function, Imported, Module, Rename, SelfCall, Signature, Value
from compat.model import normalized
from compat.records import cached, kept

if TYPE_CHECKING:
    from compat.syntax.json import Scanner

    Row: TypeAlias = list[Any]
    """What a statement is about, then pairs: the number of a set of releases, what it says in them."""
    Statement: TypeAlias = tuple[Any, Any]
    """What a statement is about, and what it says in one release; its section says of which form both are."""


T = TypeVar("T")
MAGIC = b"surface2"
FOLDER = os.path.join(DATA, "surface")
_PARTIAL = "partial"


def path_of(package: str) -> str:
    return os.path.join(FOLDER, f"{normalized(package)}.bin")


def tracked() -> dict[str, str]:
    """Map each top-level module that has a table to its package; the index is read once."""
    return _index(path_of("index"))


@cached
def _index(path: str) -> dict[str, str]:
    return cast("dict[str, str]", value_at(read_table(path).decode("ascii")))


def open_table(package: str) -> Table | None:
    """Open the shipped table of a package; ``None`` if it has none."""
    return Table(read_table(path_of(package))) if package in tracked().values() else None


class Table:
    """All known releases of a package; :attr:`versions` oldest first."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        header, start = header_of(content, MAGIC)
        self.package: str = header["package"]
        self.versions: tuple[str, ...] = tuple(header["versions"])
        self.uploaded: tuple[str, ...] = tuple(header["uploaded"])
        self._masks: list[int] = header["masks"]
        self._modules: dict[str, int] = {name: at for at, name in enumerate(header["modules"])}
        self._life: list[int] = header["life"]
        self._read: list[int] = header["read"]
        self._chunk: list[int] = header["chunk"]
        self._length: list[int] = header["length"]
        self._opaque: dict[str, int] = header["opaque"]
        self._starts = list(accumulate(header["chunks"], initial=start))
        self.tops = frozenset(name.partition(".")[0] for name in self._modules) - NO_PACKAGES
        self._chunks: dict[int, str] = {}
        self._offsets: dict[int, int] = {}
        self._made: dict[int, Any] = {}
        self._folders: dict[str, int] = {}

    def surface(self, version: str) -> TableSurface | None:
        """Return one release, ignoring its local label; ``None`` if it is not in the table."""
        at = place_of(self.versions, version)
        return TableSurface(self, at) if at is not None else None

    def surfaces(self) -> Iterator[TableSurface]:
        """Yield every release, oldest first."""
        return (TableSurface(self, at) for at in range(len(self.versions)))

    def modules(self) -> tuple[str, ...]:
        """Return every module of any release, read or not."""
        return (*self._modules, *self._opaque)

    def names_in(self, module: str) -> frozenset[str]:
        """Return the names in the table that any release has in a module; for suggestions."""
        return self.known(module) if module in self._modules else frozenset()

    def renames(self, module: str, owner: str, old: str) -> tuple[tuple[str | None, str | None, tuple[str, ...]], ...]:
        """Return announced renames of a keyword: the new name, the version of its removal, the releases that announce it."""
        found = []
        for row in self.block(module).get("rename", ()) if module in self._modules else ():
            if row[0] == [owner, old]:
                whole = self._life[self._modules[module]]
                found += [(*says, self._releases(number or whole)) for number, says in zip(row[1::2], row[2::2])]
        return tuple(found)

    def _releases(self, number: int) -> tuple[str, ...]:
        mask = self._mask(number, 0)
        return tuple(version for at, version in enumerate(self.versions) if mask >> at & 1)

    # For the surfaces

    def _mask(self, number: int, whole: int) -> int:
        """Return a set of releases by its number; 0 is ``whole``, -1 the empty set."""
        return whole if number == 0 else self._masks[number - 1] if number > 0 else 0

    def has(self, module: str, bit: int) -> str | None:
        """Return ``source``, ``opaque`` or ``None`` for a module in one release."""
        place = self._modules.get(module)
        if place is not None and self._mask(self._life[place], 0) & bit:
            return "source" if self._chunk[place] >= 0 and self._mask(self._read[place], 0) & bit else "opaque"
        number = self._opaque.get(module)
        return "opaque" if number is not None and self._mask(number, 0) & bit else None

    def is_package(self, module: str) -> bool:
        return self._length[self._modules[module]] < 0

    @kept
    def block(self, module: str) -> dict[str, list[Row]]:
        place = self._modules[module]
        chunk = self._chunk[place]
        if chunk < 0:
            return {}
        if chunk not in self._chunks:
            self._chunks[chunk] = text_of(self._content[self._starts[chunk] : self._starts[chunk + 1]])
            offset = 0
            for at in range(self._chunk.index(chunk), len(self._chunk)):
                if self._chunk[at] == chunk:
                    self._offsets[at] = offset
                    offset += abs(self._length[at])
        return cast("dict[str, list[Row]]", value_at(self._chunks[chunk], self._offsets[place]))

    @kept
    def known(self, module: str) -> frozenset[str]:
        block = self.block(module)
        return frozenset(row[0] for kind in ("define", "lazy") for row in block.get(kind, ()))

    def statements(self, module: str, section: str, bit: int) -> Iterator[Statement]:
        """Yield the statements of a section that apply to one release."""
        return self._applying(module, self.block(module).get(section, ()), bit)

    def lazy(self, module: str, name: str, bit: int) -> str | None:
        """The place of a lazy name of a module in one release."""
        places = [place for _, place in self._applying(module, self._lazy_rows(module).get(name, ()), bit)]
        place = places[-1] if places else None
        return place + name if place is not None and place.endswith(".") else place

    @kept
    def _lazy_rows(self, module: str) -> dict[str, list[Row]]:
        rows: dict[str, list[Row]] = {}
        for row in self.block(module).get("lazy", ()):
            rows.setdefault(row[0], []).append(row)
        return rows

    def _applying(self, module: str, rows: Iterable[Row], bit: int) -> Iterator[Statement]:
        whole = self._mask(self._life[self._modules[module]], 0)
        masks = self._masks
        for row in rows:
            if len(row) == 3 and row[1] == 0:
                yield row[0], row[2]
                continue
            for at in range(1, len(row), 2):
                if (masks[row[at] - 1] if row[at] else whole) & bit:
                    yield row[0], row[at + 1]

    def once(self, says: object, make: Callable[[Any], T]) -> T:
        """Return ``make(says)``, cached so that releases share the result for the same statement."""
        key = id(says)  # blocks stay in memory, so ids are not reused
        found: T | None = self._made.get(key)
        if found is None:
            found = self._made[key] = make(tuples(says))
        return found

    def folders(self) -> Mapping[str, int]:
        """Map each dotted name to the releases that have modules below it, as a bit mask."""
        if not self._folders:
            modules = *((name, self._life[at]) for name, at in self._modules.items()), *self._opaque.items()
            for name, number in modules:
                outer, mask = name.rpartition(".")[0], self._mask(number, 0)
                while outer and self._folders.get(outer, 0) | mask != self._folders.get(outer):
                    self._folders[outer] = self._folders.get(outer, 0) | mask
                    outer = outer.rpartition(".")[0]
        return self._folders


class TableSurface:
    """One release of a table."""

    def __init__(self, table: Table, at: int) -> None:
        self.table, self.package, self.version = table, table.package, table.versions[at]
        self._bit = 1 << at
        self.tops = table.tops

    def holds(self, name: str) -> str | None:
        found = self.table.has(name, self._bit)
        if found is not None:
            return found
        outer = name
        while "." in outer:
            outer = outer.rpartition(".")[0]
            if self.table.has(outer, self._bit) == "opaque" and outer in self.table._opaque:
                return "opaque"
        return "folder" if self.table.folders().get(name, 0) & self._bit else None

    def had(self, name: str) -> bool:
        return any(self.table.has(name, 1 << at) for at in range(self._bit.bit_length() - 1))

    def had_method(self, module: str, owner: str, name: str) -> bool:
        known = module in self.table._modules
        return known and any(tuple(row[0]) == (owner, name) for row in self.table.block(module).get("method", ()))

    def provided_by_modules(self, package: str) -> dict[str, str]:
        return {}  # the table lists them explicitly

    @kept
    def module(self, name: str) -> Module | None:
        if self.table.has(name, self._bit) != "source":
            return None

        def statements(section: str) -> Iterator[Statement]:
            return self.table.statements(name, section, self._bit)

        definitions: dict[str, Any] = {}
        for about, says in statements("define"):
            definitions[about] = self.table.once(says, _definition)
        members = _Members(self.table, statements, {about for about, each in definitions.items() if isinstance(each, dict)})
        for about, each in definitions.items():
            if isinstance(each, dict):
                definitions[about] = members.finish(about, each)
        opened = [about for about, _ in statements("open")]
        renames = tuple(Rename(owner, old, new, until, 0) for (owner, old), (new, until) in statements("rename"))
        return Module(
            name, self.table.is_package(name), definitions=definitions, stars=tuple(star for star, _ in statements("star")),
            lazy=_LazyNames(self.table, name, self._bit), open=None in opened, renames=renames,
            wrappers={about: tuples(taken) for about, taken in statements("wrapper")}, known=self.table.known(name),
            partial="some" in self.table.block(name), unsure=frozenset(filter(None, opened)),
        )  # fmt: skip


class _LazyNames(Mapping[str, str]):
    """The lazy names of a module in one release: thousands, of which one is looked up in each of hundreds of releases."""

    def __init__(self, table: Table, module: str, bit: int) -> None:
        self._table, self._module, self._bit = table, module, bit

    def __getitem__(self, name: str) -> str:
        place = self._table.lazy(self._module, name, self._bit)
        if place is None:
            raise KeyError(name)
        return place

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._table.statements(self._module, "lazy", self._bit)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _definition(says: tuple[Any, ...]) -> Function | Imported | Value | dict[str, Any]:
    if says[0] == "f":
        return Function(0, Signature(*says[1]))
    if says[0] == "i":
        return Imported(0, says[1], says[2])
    if says[0] == "c":
        return {"bases": says[1], "decorators": says[2], "dynamic": says[3], _PARTIAL: says[4]}
    return Value(0)


def _method(says: tuple[Any, ...]) -> Function:
    return Function(0, Signature(*says))


class _Members:
    """The members of a module's classes, by class."""

    def __init__(self, table: Table, statements: Callable[[str], Iterator[Statement]], names: set[str]) -> None:
        self._once = table.once
        self.found: dict[str, dict[str, list[Statement]]] = {name: {} for name in names}
        if names:
            for section in ("method", "field", "attribute", "instance", "made", "call"):
                for (owner, member), says in statements(section):
                    self.found[owner].setdefault(section, []).append((member, says))

    def finish(self, name: str, shell: dict[str, Any]) -> Class:
        of = self.found[name]
        fields = tuple(of.get("field", ()))
        return Class(
            0, shell["bases"], {member: self._once(says, _method) for member, says in of.get("method", ())}, fields,
            tuple(member for member, _ in of.get("attribute", ())), tuple(member for member, _ in of.get("instance", ())),
            dict(of.get("made", ())), tuple(SelfCall(*(member, *tuples(says), 0)) for member, says in of.get("call", ())),
            shell["decorators"], shell["dynamic"], shell[_PARTIAL],
        )  # fmt: skip


# --- The encoding of the surface files: JSON text under LZMA, in parts that are opened separately.
#
# LZMA compresses repetitions in text better than marshal's references: the files are a sixth smaller.


FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 0, "dict_size": 4 << 20}]
_scanner: list[Scanner] = []


def text_of(part: bytes) -> str:
    return lzma.decompress(part, lzma.FORMAT_RAW, None, FILTERS).decode("ascii")


def value_at(text: str, start: int = 0) -> Any:
    """Decode the JSON value that begins at ``start``."""
    if not _scanner:
        from compat.syntax.json import decoder

        _scanner.append(decoder())
    return _scanner[0](text, start)[0]


def value_of(part: bytes) -> Any:
    """Decompress and decode the value of a part."""
    return value_at(text_of(part))


def header_of(content: bytes, magic: bytes) -> tuple[Any, int]:
    """Return the header of a file, which follows ``magic`` and the header's length, and the offset of the rest."""
    at = len(magic) + 4
    end = at + int.from_bytes(content[len(magic) : at], "little")
    return value_of(content[at:end]), end


def tuples(value: object) -> Any:
    """Convert nested lists to tuples, which can be hashed."""
    return tuple([tuples(each) for each in value]) if type(value) is list else value
