"""The lines of a requirements file: decoded and joined as pip does, parsed into requirements and options with positions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TypeAlias

from compat.errors import InputError
from compat.files import MARKS
from compat.formats.listing import Entry
from compat.formats.requirements.requirement import INDEX, Unnamed, name_at_start, parse_editable, parse_requirement
from compat.formats.specifiers import disjoint
from compat.model import Distribution, Source
from compat.records import record, replace
from compat.redact import excerpt
from compat.versions import key_of

_EDITABLE = re.compile(r"(?:-e|--editable)[=\s]*")
_CONFLICT = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_DECLARED = ("utf-8", "utf8", "ascii", "us-ascii", "latin-1", "latin1", "iso-8859-1", "iso-8859-15", "cp1252", "windows-1252",
             "gbk", "gb2312", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr", "koi8-r", "cp1251")  # fmt: skip
"""What ``# -*- coding: … -*-`` may name: plain text encodings, no codecs that decompress or execute."""


def decode(content: bytes, path: str) -> str:
    """Decode a requirements file and strip its byte order mark (UTF-8, UTF-16 or UTF-32).

    Raises :class:`InputError` if the content is not in the encoding given by the mark or the first two lines (else UTF-8).
    """
    mark, encoding = next((each for each in MARKS if content.startswith(each[0])), (b"", ""))
    encoding = encoding or _declared(content, path)
    content = content[len(mark) :]
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as problem:
        line = content[: problem.start].decode(encoding, "replace").count("\n") + 1
        raise InputError(f"is not {encoding.upper()} text (byte {problem.start})", path, line) from None


def _declared(content: bytes, path: str) -> str:
    """Return the encoding declared by a comment in the first two lines."""
    for number, line in enumerate(content[:1000].split(b"\n")[:2], 1):
        start = line.find(b"coding")
        if line[:1] != b"#" or start < 0 or line[start + 6 : start + 7] not in (b":", b"="):
            continue
        words = line[start + 7 :].decode("ascii", "replace").split()
        encoding = words[0].lower().replace("_", "-") if words else ""
        known = {each.replace("_", "-"): each for each in _DECLARED}
        if encoding not in known:
            raise InputError(
                f"expected UTF-8, or a plain text encoding in its 'coding' comment, not {excerpt(encoding, 40)!r}", path, number
            )
        return known[encoding]
    return "utf-8"


@record(frozen=True)
class LogicalLine:
    """One line, or several joined by ``\\``, without comments; ``number`` is the first, ``start`` … ``end`` its span in the
    file with the line ending. ``pieces`` are the joined parts with offsets; the text starts ``lead`` letters into them."""

    number: int
    text: str
    start: int
    end: int
    pieces: tuple[tuple[str, int], ...]
    lead: int

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return start and end of a part of the text in the file; an empty part is after the preceding letter."""
        if start == end:
            at = self._offset(start - 1) + 1 if start else self._offset(0)
            return at, at
        return self._offset(start), self._offset(end - 1) + 1

    def _offset(self, at: int) -> int:
        at += self.lead
        for piece, start in self.pieces:
            if at < len(piece):
                return start + at
            at -= len(piece)
        raise IndexError(at)


def logical_lines(text: str) -> Iterator[LogicalLine]:
    """Yield the logical lines of a file as pip joins them, without comments and empty lines."""
    pieces: list[tuple[str, int]] = []
    first = start = at = 0
    for number, (line, whole) in enumerate(zip(text.splitlines(), text.splitlines(keepends=True)), 1):
        is_comment = line.lstrip()[:1] == "#"
        if not pieces:
            first, start = number, at
        here, at = at, at + len(whole)
        if line.endswith("\\") and not is_comment:
            pieces.append((line.strip("\\"), here + len(line) - len(line.lstrip("\\"))))
            continue
        if is_comment and pieces:
            pieces.append((" ", here))  # a comment ends the continuation; the blank keeps it a comment
        yield from _logical(first, start, at, (*pieces, (line, here)))
        pieces = []
    if pieces:
        yield from _logical(first, start, at, tuple(pieces))


def _logical(number: int, start: int, end: int, pieces: tuple[tuple[str, int], ...]) -> Iterator[LogicalLine]:
    text = pieces[0][0] if len(pieces) == 1 else "".join(piece for piece, _ in pieces)
    at = text.find("#")
    while at > 0 and not text[at - 1].isspace():  # an address may contain one
        at = text.find("#", at + 1)
    kept = text if at < 0 else text[:at]
    stripped = kept.lstrip()
    if stripped:
        yield LogicalLine(number, stripped.rstrip(), start, end, pieces, len(kept) - len(stripped))


def header(lines: list[str]) -> list[str]:
    """Return the comments at the top of the file."""
    comments = takewhile(lambda line: line[0] == "#", filter(None, map(str.strip, lines)))
    return [line.lstrip("#").strip() for line in comments]


# --- Options of a requirements file, on a separate line or after a requirement.


_SHORT = {"-r": "--requirement", "-c": "--constraint", "-e": "--editable", "-i": "--index-url", "-f": "--find-links",
          "-C": "--config-settings", "-U": "--upgrade"}  # fmt: skip
INDEX_URL = ("--index-url", "--pypi-url", "--default-index")
"""Names of the option that replaces the index."""
_VALUED = frozenset((
    "--requirement", "--constraint", "--editable", *INDEX_URL, "--extra-index-url", "--find-links", "--no-binary",
    "--only-binary", "--trusted-host", "--use-feature", "--hash", "--global-option", "--install-option", "--build-option",
    "--config-setting",
    "--config-settings", "--only-final", "--all-releases",
))  # fmt: skip
_FLAGS = frozenset((
    "--no-index", "--pre", "--prefer-binary", "--require-hashes", "--no-build-isolation", "--no-deps", "--upgrade",
    "--no-cache-dir", "--process-dependency-links", "--always-unzip",
))  # fmt: skip
"""Some are command-line only; real files contain them anyway, and they do not change what is listed."""


def options_of(line: str, path: str, number: int) -> list[tuple[str, str]]:
    """Return the options of a line with their values (``""`` for a flag); :class:`InputError` if it is invalid.

    The operand of ``-e`` is the rest of the line, because a marker may follow an address.
    """
    words = _words(line, path, number)
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, given, value = word.partition("=")
        if word[:2] in _SHORT:
            name, given, value = _SHORT[word[:2]], word[2:], word[2:]
        if name in _FLAGS and not given:
            found.append((name, ""))
            continue
        if name not in _VALUED:
            # a word that was torn off an address may be a part of its password
            what = "an operand" if "://" in line and not word.startswith("-") else f"'{excerpt(word, 60)}'"
            raise InputError(f"{what} is not an option of a requirements file", path, number)
        if not given and at == len(words):
            raise InputError(f"expected a value after {name}", path, number)
        if not given:
            value = words[at]
            at += 1
        if name == "--editable":
            value = " ".join((value, *words[at:]))
            at = len(words)
        found.append((name, value))
    return found


def _words(line: str, path: str, number: int) -> list[str]:
    """Split as a shell does; a line with a marker is split at blanks, since its quotes belong to the marker."""
    if ";" in line or ("'" not in line and '"' not in line and "\\" not in line):
        return line.split()
    from compat.syntax.shell import shell_words

    try:
        return shell_words(line)
    except ValueError:
        raise InputError(f"expected a closing quote in '{excerpt(line, 60)}'", path, number) from None


# --- The statements of a file, for the reader and the editor.


@record(frozen=True)
class Option:
    """An option on a separate line, with its value (``""`` for a flag)."""

    line: LogicalLine
    name: str
    value: str

    @property
    def index(self) -> tuple[int, int] | None:
        """The start and end of an index address in the line; ``None`` for any other option."""
        at = self.line.text.rfind(self.value) if self.name in (*INDEX_URL, "--extra-index-url", "--find-links") else -1
        return None if at < 0 else (at, at + len(self.value))


@record(frozen=True)
class Requirement:
    """A requirement, or the operand of ``-e``, at ``start`` … ``end`` of a logical line; ``lead`` is where ``-e`` starts.

    ``found`` is ``None`` if the package is unknown, for the reason in ``problem``. ``variable``: its version depends on a
    variable, which pip takes from its environment. ``options`` are the names of the options after it.
    """

    line: LogicalLine
    lead: int
    start: int
    end: int
    found: Distribution | None
    problem: str = ""
    options: tuple[str, ...] = ()
    editable: bool = False
    variable: bool = False


Statement: TypeAlias = "Requirement | Option"


def requires_hashes(statement: Statement) -> bool:
    """Whether, because of this statement, pip refuses every requirement of the file that has no hash."""
    return "--hash" in statement.options if isinstance(statement, Requirement) else statement.name == "--require-hashes"


_READ: dict[tuple[str, str, tuple[int, ...]], tuple[Statement, ...]] = {}
"""The statements of the last few texts: a fix reads its file for the plan, for each edit and for the check of the result."""
_MOST_READ = 8


def statements_of(path: str, text: str, numbers: Sequence[int] = ()) -> tuple[Statement, ...]:
    """Return what a file says, in order. ``numbers`` are the line numbers if the text is a part of another file.

    Raises :class:`InputError` for a line that is neither a requirement nor an option.
    """
    key = (path, text, tuple(numbers))
    found = _READ.get(key)
    if found is None:
        found = tuple(_statements(*key))
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        _READ[key] = found
    return found


def _statements(path: str, text: str, numbers: Sequence[int]) -> Iterator[Statement]:
    lines = text.splitlines()
    frozen = python_of_freeze(lines) is not None
    for line in logical_lines(text):
        if numbers:
            line = replace(line, number=numbers[line.number - 1])
        elif frozen and line.number == 1:
            continue
        if line.text[0] != "-":
            yield _requirement(path, line)
            continue
        for name, value in options_of(line.text, path, line.number):
            if name == "--editable":
                comment = "" if numbers or line.number < 2 else lines[line.number - 2]
                yield _editable(path, line, value, comment)
            else:
                yield Option(line, name, value)


def _requirement(path: str, line: LogicalLine) -> Requirement:
    text, option, rest = line.text.partition(" -")
    names = tuple(name for name, _ in options_of(f"-{rest}", path, line.number)) if option else ()
    found = Requirement(line, 0, 0, len(text.rstrip()), None, options=names)
    try:
        return replace(found, found=parse_requirement(text))
    except Unnamed as problem:
        return replace(found, problem=str(problem))
    except ValueError as problem:
        if text.startswith(_CONFLICT):
            raise InputError("has an unresolved merge conflict", path, line.number) from None
        if "}" not in text.partition("${")[2]:
            raise InputError(f"expected a requirement or an option: {problem}", path, line.number) from None
    name = name_at_start(text)  # torch==${TORCH}
    if name is None:
        return replace(found, variable=True, problem=f"{excerpt(text, 60)} was not read: it depends on a variable")
    return replace(found, variable=True, found=Distribution(name, source=INDEX))


def _editable(path: str, line: LogicalLine, operand: str, comment: str) -> Requirement:
    """Parse ``-e operand``; ``comment`` is the line above it, in which ``pip freeze`` names the package of a bare path."""
    at = _EDITABLE.search(line.text)
    lead, start = (0, 0) if at is None else at.span()
    found = Requirement(line, lead, start, len(line.text), None, editable=True)
    try:
        return replace(found, found=parse_editable(operand))
    except Unnamed:
        pass
    except ValueError as problem:
        raise InputError(f"expected a directory or a repository after -e: {problem}", path, line.number) from None
    # "# Editable install with no version control (verl==0.4.0)"
    if comment.startswith("# Editable ") and comment.rstrip().endswith(")"):
        try:
            named = parse_requirement(comment.rstrip()[:-1].rpartition("(")[2])
        except ValueError:
            pass
        else:
            return replace(found, found=replace(named, source=Source("directory", {"path": operand, "editable": True})))
    return replace(found, problem=f"-e {operand} is a separate project; skipped, as its name is unknown")


def python_of_freeze(lines: list[str]) -> str | None:
    """Return the Python version in the header of ``uv pip freeze`` output."""
    words = lines[0].split() if lines else []
    if words[:2] != ["Using", "Python"] or len(words) < 3 or (len(words) > 3 and words[3] != "environment"):
        return None
    try:
        key_of(words[2])
    except ValueError:
        return None
    return words[2]


# --- Constraints (``-c``): they narrow requirements and install nothing by themselves.


_MOST = 32
"""Most different constraints on one distribution; real files have one."""


def apply_constraints(entries: Iterable[Entry], constraints: Iterable[Entry], notes: list[str]) -> tuple[Entry, ...]:
    """Return the entries narrowed by the constraints of the same name; constraints that do not apply are added to ``notes``.

    A pin becomes the entry's version, ranges are combined. ``extra["constraint"]`` is the constraint's file and line, and
    ``extra["excluded_by"]`` that of one that no version of the requirement satisfies. :class:`InputError` if there are too many
    for one distribution: none is left out.
    """
    by_name: dict[str, dict[object, Entry]] = {}
    for constraint in constraints:
        limit = constraint.distribution
        by_name.setdefault(limit.name, {}).setdefault((limit.version, limit.specifier, limit.marker), constraint)
    if not by_name:
        return tuple(entries)
    found = []
    for entry in entries:
        asked = entry.distribution
        limits = list(by_name.get(asked.name, {}).values())
        if len(limits) > _MOST:
            raise InputError(f"has more than {_MOST} constraints on {asked.name}", limits[_MOST].file, limits[_MOST].line)
        for constraint in limits:
            asked = _narrowed(asked, constraint, notes)
        found.append(entry if asked is entry.distribution else replace(entry, distribution=asked))
    return tuple(found)


def of_others(entries: Iterable[Entry], constraints: Iterable[Entry]) -> tuple[Distribution, ...]:
    """Return the constraints on packages that are not listed, which installers apply to what the listed ones require."""
    listed = {entry.distribution.name for entry in entries}
    found = (each.distribution for each in constraints if each.distribution.name not in listed)
    return tuple(each for each in found if each.version is not None or each.specifier is not None)


def apply_override(entry: Entry, override: Distribution, place: str) -> Entry:
    """Return the entry as an override leaves it, whose file and line are ``place``: it replaces version, range and marker."""
    asked = entry.distribution
    direct = override.source is not None and override.source.kind not in ("index", "nightly")
    changed = replace(
        asked, version=override.version, specifier=override.specifier, extra={**asked.extra, "override": place},
        marker=override.marker, source=override.source if direct else asked.source,
    )  # fmt: skip
    return replace(entry, distribution=changed)


def not_together(entries: Iterable[Entry], file: str) -> list[Entry]:
    """Return what one command installs; ``extra["excluded_by"]`` is an earlier requirement that excludes a later one."""
    found: list[Entry] = []
    first: dict[tuple[str, object], Entry] = {}
    for entry in entries:
        asked = entry.distribution
        before = first.setdefault((asked.name, asked.marker), entry)
        if before is not entry and "excluded_by" not in asked.extra and disjoint(before.distribution, asked):
            limit = _limit(before.distribution, f"{before.file or file}:{before.line}")
            entry = replace(entry, distribution=replace(asked, extra={**asked.extra, **limit}))
        found.append(entry)
    return found


def _limit(excluding: Distribution, place: str) -> dict[str, dict[str, str]]:
    return {"excluded_by": {"specifier": excluding.specifier or f"=={excluding.version}", "place": place}}


def _narrowed(asked: Distribution, constraint: Entry, notes: list[str]) -> Distribution:
    limit = constraint.distribution
    place = f"{constraint.file}:{constraint.line}"
    if limit.marker is not None and limit.marker != asked.marker:
        notes.append(f"{place}: the constraint on {limit.name} only applies if {limit.marker}; it was ignored")
        return asked
    if disjoint(asked, limit):
        return replace(asked, extra={**asked.extra, **_limit(limit, place)})
    extra = {**asked.extra, "constraint": place}
    direct = limit.source is not None and "url" in limit.source.details
    if asked.version is not None or (asked.source is not None and asked.source.kind not in ("index", "nightly")):
        return asked
    if limit.version is not None or direct:
        return replace(asked, version=limit.version, specifier=None, source=limit.source, extra=extra)
    if limit.specifier is None:
        return asked
    both = ",".join(dict.fromkeys(each for each in (asked.specifier, limit.specifier) if each))
    return replace(asked, specifier=both, extra=extra)
