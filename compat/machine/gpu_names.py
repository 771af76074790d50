"""Match names of GPUs, as reported by drivers, listed in catalogues or typed by users, to rows of the GPU table.

A real device reports its own capability; names matter for descriptions ("A100:2", "RTX 4090") and pasted text.
A name is compared as a set of words: brands and form factors that distinguish nothing are dropped, and the
remaining words must match a row exactly. "RTX 4000" matches three cards: that is reported, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from compat.records import record

Row: TypeAlias = tuple[str, str, str | None, str | None, tuple[int, ...]]
"""(name, vendor, compute capability, gfx, memory sizes in MiB; none known or shared with the CPU: empty)."""
Spelling: TypeAlias = tuple[int, tuple[str, ...], tuple[str, ...]]
"""(row, its words, those of them that a name must have)."""
GpuTable: TypeAlias = tuple[tuple[Row, ...], tuple[Spelling, ...], dict[str, tuple[int, ...]]]
"""Plain values, so that it can be marshalled; the last part finds spellings by a word they need."""


_SILENT = frozenset((
    "nvidia", "corporation", "corp", "inc", "amd", "ati", "advanced", "micro", "devices", "geforce", "tesla", "grid",
    "tegra", "gpu", "gpus", "graphics", "card", "accelerator", "series", "generation", "gen", "tm", "r", "c", "with",
    "w", "design", "the", "by", "and", "sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "express", "hbm2", "hbm2e",
    "hbm3", "hbm3e", "gddr5", "gddr6", "gddr6x", "gddr7", "dgxs", "hgx", "dgx", "oam", "fhhl", "ls", "ac", "lovelace",
    "edition", "workstation", "server", "desktop", "collectors", "ceo", "refresh", "developer", "engineering",
    "instinct", "radeon", "nvl72", "nvl36", "nvl4", "reference", "devkit", "kit", "module", "nvgpu", "integrated",
    "vram", "memory"
))  # fmt: skip
"""Words that do not distinguish any cards in the table."""
_FORM = frozenset(("pcie", "pci", "nvl"))
_BRANDS = frozenset(("quadro", "titan"))
_OPTIONAL = _FORM | frozenset(("rtx", "gtx", "quadro", "ada", "pro", "blackwell", "jetson", "rx", "ai", "sff"))
"""Words that users omit if the number is enough ("4090", "H100")."""
_MOBILE = frozenset(("laptop", "mobile", "notebook", "maxq"))
_GLUED = ("geforce", "quadro", "radeon", "tesla", "rtx", "gtx", "rx")
_ENDINGS = {
    "ti": ("ti",), "super": ("super",), "tisuper": ("ti", "super"), "xtx": ("xtx",), "xt": ("xt",), "gre": ("gre",),
    "ada": ("ada",), "d": ("d",),
}  # fmt: skip
_VENDORS = {
    "nvidia": "nvidia", "geforce": "nvidia", "quadro": "nvidia", "tesla": "nvidia", "rtx": "nvidia", "gtx": "nvidia",
    "titan": "nvidia", "jetson": "nvidia", "grid": "nvidia", "tegra": "nvidia", "amd": "amd", "ati": "amd", "radeon": "amd",
    "instinct": "amd", "ryzen": "amd", "firepro": "amd", "apple": "apple", "intel": "intel", "arc": "intel", "gaudi": "intel",
}  # fmt: skip
_APART = str.maketrans(dict.fromkeys("-_/,;:()[]®™+@|\t", " "))


@record(frozen=True)
class GpuMatch:
    """The table's facts for a name: the values its rows agree on, ``None`` if they differ or there is no row.

    ``names`` are the matching rows (empty: the name is unknown), ``candidates`` the same if they differ in capability
    or gfx target, so that a more precise name is required. ``memory_mib`` is the nominal size.
    """

    vendor: str | None = None
    compute_capability: str | None = None
    gfx: str | None = None
    memory_mib: int | None = None
    candidates: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class _Name:
    """A parsed name: the words to compare, and the memory, vendor, family and form it states."""

    def __init__(self, text: str) -> None:
        lowered = text.lower().replace("…", "...").strip()
        self.cut = lowered.endswith("...")
        inside = lowered.partition("[")[2].partition("]")[0]
        if any(character.isdecimal() for character in inside):
            lowered = inside  # lspci: "GA102 [GeForce RTX 3090]"
        tokens = lowered.removesuffix("...").replace("max-q", "maxq").translate(_APART).split()
        self.partial = tokens[-1] if self.cut and tokens and not text.removesuffix("...").endswith(" ") else ""
        self.all_words = tuple(_unglued(tokens))
        self.vendor = next((_VENDORS[word] for word in self.all_words if word in _VENDORS), None)
        self.memory: int | None = None
        self.shared = False
        self.family: str | None = None
        self.words = frozenset(self._counting(self.all_words))
        self.mobile = not _MOBILE.isdisjoint(self.all_words) and "workstation" not in self.all_words
        self.words -= _MOBILE

    def _counting(self, all_words: Sequence[str]) -> Iterable[str]:
        for position, word in enumerate(all_words):
            size = _gigabytes(word, all_words[position + 1 : position + 2])
            profile = any(map(_virtual, all_words[position + 1 : position + 3]))
            if profile and _digits(word) and len(word) == 1:
                continue  # A100D-3-40C: the slices of a MIG instance under a virtual GPU
            if size is not None:
                self.memory = size * 1024
            elif "g." in word or word == "mig" or _virtual(word):
                self.shared = True  # a MIG instance ("1g.10gb") or a virtual GPU ("40c"): a part of the card's memory
            elif _family(word, all_words[position + 1 : position + 2]):
                self.family = word.rstrip("x")
            elif word not in _SILENT and word not in ("gb", "gib"):
                # V100D, A100X, H100XM, H100L: virtual GPUs name boards by memory and form
                yield word.rstrip("dlmx") if profile and _digits(word[1:].rstrip("dlmx")) else word


def _unglued(tokens: Iterable[str]) -> Iterable[str]:
    """Split joined words: ``rtx4090`` → rtx 4090, ``1080ti`` → 1080 ti, ``rtx6000ada`` → rtx 6000 ada."""
    for token in tokens:
        brand = next((each for each in _GLUED if token.startswith(each) and token[len(each) :][1:2].isdecimal()), None)
        if brand:
            yield brand
            token = token[len(brand) :]
        rest = token.lstrip("0123456789")
        number = token[: len(token) - len(rest)]
        if len(number) < 3 or rest not in _ENDINGS:
            yield token
            continue
        yield number
        yield from _ENDINGS[rest]


def _gigabytes(word: str, following: Sequence[str]) -> int | None:
    number = word.removesuffix("ib").removesuffix("b").removesuffix("g")
    written = word[len(number) :] in ("g", "gb", "gib") or (number == word and following[:1] in (("gb",), ("gib",)))
    return int(number) if written and _digits(number) and len(number) < 5 else None


def _virtual(word: str) -> bool:
    """Whether a word is the profile of a virtual GPU: ``24q``, ``141c``, ``2b``, ``8a``."""
    return word[-1] in "qcba" and _digits(word[:-1]) and len(word) < 5


def _family(word: str, following: Sequence[str]) -> bool:
    """Whether a word names a family: ``50`` before ``series``, ``50xx``, ``7000`` before ``series``."""
    if word.endswith("xx") and len(word) == 4 and _digits(word[:2]):
        return True
    return "series" in following and _digits(word) and (len(word) == 2 or (len(word) == 4 and word.endswith("000")))


def _digits(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def lookup(table: GpuTable, name: str) -> GpuMatch:
    """Look up a name in the table; see :class:`GpuMatch`. Never raises."""
    given = _Name(name)
    target = next((word for word in given.all_words if _is_target(word)), None)
    if target is not None:
        named = tuple(row[0] for row in table[0] if row[3] == target)
        return GpuMatch(vendor="amd", gfx=target, names=named or (target,))
    if given.vendor == "apple":
        return GpuMatch(vendor="apple", names=(" ".join(name.split()),))
    found = _rows(table, given)
    if not found and "/" in name:  # "Radeon RX 7900 XT/7900 XTX" names several cards
        found = list(dict.fromkeys(row for part in name.split("/") for row in _rows(table, _Name(part))))
    rows = [table[0][row] for row in found]
    if not rows:
        return GpuMatch(vendor=given.vendor)
    vendors, capabilities, targets = {row[1] for row in rows}, {row[2] for row in rows}, {row[3] for row in rows}
    names = tuple(row[0] for row in rows)
    return GpuMatch(
        vendor=next(iter(vendors)) if len(vendors) == 1 else given.vendor,
        compute_capability=next(iter(capabilities)) if len(capabilities) == 1 else None,
        gfx=next(iter(targets)) if len(targets) == 1 else None,
        memory_mib=_agreed_memory(rows, given),
        candidates=names if len(capabilities) > 1 or len(targets) > 1 else (),
        names=names,
    )


def _rows(table: GpuTable, given: _Name) -> list[int]:
    if given.family:
        return _members(table, given)
    return _cut(table, given) if given.cut else _fitting(table, given)


def _is_target(word: str) -> bool:
    return (
        word.startswith("gfx")
        and len(word) in (6, 7)
        and word[3].isdecimal()
        and all(each in "0123456789abcdef" for each in word[3:])
    )


def _fitting(table: GpuTable, given: _Name) -> list[int]:
    """Return rows that match all words, else without the form factor, else also without the brand, which may be outdated."""
    for words in dict.fromkeys((given.words, given.words - _FORM, given.words - _FORM - _BRANDS)):
        found = _with_words(table, words)
        if found:
            return found
    return []


def _with_words(table: GpuTable, words: frozenset[str]) -> list[int]:
    _, spellings, index = table
    found: dict[int, None] = {}
    exact: dict[int, None] = {}
    for number in sorted({number for word in words for number in index.get(word, ())}):
        row, known, needed = spellings[number]
        if words.issubset(known) and words.issuperset(needed):
            found[row] = None
            if len(known) == len(words):
                exact[row] = None
    return list(exact or found)


def _cut(table: GpuTable, given: _Name) -> list[int]:
    """Return rows that match a name truncated by nvidia-smi: "NVIDIA GeForce RTX 309...", "NVIDIA A100-SXM..."."""
    whole = given.words - {given.partial}
    if not any(character.isdecimal() for word in (*whole, given.partial) for character in word):
        return []
    found: dict[int, None] = {}
    for row, known, _ in table[1]:
        left = [word for word in known if word not in whole]
        if len(left) + len(whole) == len(known) and (not given.partial or any(word.startswith(given.partial) for word in left)):
            found[row] = None
    return list(found) or _with_words(table, whole)


def _members(table: GpuTable, given: _Name) -> list[int]:
    """Return the rows of a family: "RTX 50 series" is GeForce RTX 5050 to 5090, not the RTX 5000."""
    start = (given.family or "").removesuffix("000")
    brand = "Radeon RX " if given.vendor == "amd" else "GeForce "
    found: dict[int, None] = {}
    for row, known, _ in table[1]:
        model = next((word for word in known if len(word) == 4 and _digits(word)), "")
        if model.startswith(start) and table[0][row][0].startswith(brand) and given.words.issubset(known):
            found[row] = None
    return list(found)


def _agreed_memory(rows: Sequence[Row], given: _Name) -> int | None:
    """Return the stated size if a row has it, else the only size. Laptop GPUs share names with desktop ones but not memory."""
    sizes = {size for row in rows for size in row[4]}
    if given.shared:
        return None
    if given.memory is not None:
        return given.memory if given.memory in sizes else None
    if given.mobile or given.cut or given.family or len(sizes) != 1 or not all(row[4] for row in rows):
        return None
    return next(iter(sizes))


def nearest(table: GpuTable, name: str, count: int = 3) -> tuple[str, ...]:
    """Return the names in the table closest to a misspelled one, most likely first."""
    from difflib import get_close_matches

    spoken = {_plain(row[0]): row[0] for row in table[0]}
    wanted = _plain(name)
    found = get_close_matches(wanted, spoken, n=count, cutoff=0.6)
    return tuple(spoken[each] for each in found)


def _plain(name: str) -> str:
    return " ".join(word for word in _unglued(name.lower().translate(_APART).split()) if word not in _SILENT)


def spelling(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a name, and those of them that a text must have to mean it."""
    words = tuple(sorted(_Name(name).words))
    numbered = any(character.isdecimal() for word in words for character in word)
    needed = tuple(word for word in words if word not in _OPTIONAL) if numbered else words
    return words, needed
