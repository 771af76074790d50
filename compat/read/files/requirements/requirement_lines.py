"""The text of a requirements file → its logical lines, as pip joins, cuts and decodes them."""

from __future__ import annotations

from compat.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_DECLARED = ("utf-8", "utf8", "ascii", "us-ascii", "latin-1", "latin1", "iso-8859-1", "iso-8859-15", "cp1252", "windows-1252",
             "gbk", "gb2312", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr", "koi8-r", "cp1251")  # fmt: skip
"""What ``# -*- coding: … -*-`` may name: plain text encodings and nothing that unpacks or executes."""


def decode(content: bytes, path: str) -> str:
    """The text of a requirements file, without a byte order mark, which may also be one of UTF-16 or UTF-32.

    Raises :class:`InputError` where the content is not in the encoding that its mark or its first two lines name (else UTF-8).
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _decoded(content[len(mark) :], encoding, path)
    return _decoded(content, _declared(content, path), path)


def _decoded(content: bytes, encoding: str, path: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as problem:
        line = content[: problem.start].decode(encoding, "replace").count("\n") + 1
        raise InputError(f"is not {encoding.upper()} text (byte {problem.start})", path, line) from None


def _declared(content: bytes, path: str) -> str:
    """The encoding that a comment in the first two lines names."""
    for number, line in enumerate(content[:1000].split(b"\n")[:2], 1):
        start = line.find(b"coding")
        if line[:1] != b"#" or start < 0 or line[start + 6 : start + 7] not in (b":", b"="):
            continue
        words = line[start + 7 :].decode("ascii", "replace").split()
        encoding = words[0].lower().replace("_", "-") if words else ""
        known = {each.replace("_", "-"): each for each in _DECLARED}
        if encoding not in known:
            raise InputError(
                f"expected UTF-8, or a plain text encoding in its 'coding' comment, not {encoding[:40]!r}", path, number
            )
        return known[encoding]
    return "utf-8"


def logical_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """(number of the first line, text) of what stands on one line or on several joined by ``\\``, without comments."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(lines, 1):
        is_comment = line.lstrip()[:1] == "#"
        if not parts:
            first = number
        if line.endswith("\\") and not is_comment:
            parts.append(line.strip("\\"))
            continue
        if parts:
            # a comment ends what is joined; the blank keeps it a comment
            line = "".join((*parts, " " if is_comment else "", line))
            parts = []
        line = _without_comment(line)
        if line:
            yield first, line
    if parts:
        line = _without_comment("".join(parts))
        if line:
            yield first, line


def _without_comment(line: str) -> str:
    """A comment starts with ``#`` at the beginning or behind a blank: an address may hold one."""
    at = line.find("#")
    while at > 0 and not line[at - 1].isspace():
        at = line.find("#", at + 1)
    return (line if at < 0 else line[:at]).strip()


def header(lines: list[str]) -> list[str]:
    """The comments that stand before anything else."""
    found: list[str] = []
    for line in lines:
        stripped = line.strip()
        if stripped and stripped[0] != "#":
            break
        if stripped:
            found.append(stripped.lstrip("#").strip())
    return found
