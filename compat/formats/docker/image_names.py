"""The name of an image as a file writes it, piece by piece: ``FROM ${BASE}`` with ``ARG BASE=nvidia/cuda:${CUDA}-devel``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from compat.formats.docker.base_images import name_and_tag
from compat.formats.docker.text import Instruction, Setting, parse_dockerfile
from compat.formats.edit.files import Mapped, Replacement, encoding_of, replaced
from compat.formats.requirements.lines import decode
from compat.syntax.parameters import name_end
from compat.syntax.shell import written_words

_LINE = re.compile(r"^[ \t]*(?:-[ \t]+)?(?:image:|container:)[ \t]+[\"']?([^\s\"']+)", re.MULTILINE)
_PARTS = re.compile(r"[^\W\d]+|[\d.]+|.")
_DEEPEST = 8
"""Variables within the values of variables."""
_LONGEST = 4_000
"""Characters of a name or a value: each ``ARG`` may repeat the one before it several times."""


def image_names(path: str, content: bytes, *, dockerfile: bool) -> list[Mapped]:
    """Return the images that a file starts from, with the place of each letter; variables have their default.

    Those that are computed are left out.
    """
    text = decode(content, path)
    found = _of_dockerfile(path, text) if dockerfile else (_part(text, *each.span(1)) for each in _LINE.finditer(text))
    filled = (_filled(each, {}) for each in found if each is not None)
    return [each for each in filled if each is not None]


def with_image(path: str, content: bytes, image: str, better: str, *, dockerfile: bool) -> bytes | None:
    """Return the content with another tag of an image: wherever the name is spelled out, else in the variables it is made of.

    ``None`` if the tag is not written in the file.
    """
    whole = re.compile(rb"(?<![\w./:@-])" + re.escape(image.encode()) + rb"(?![\w.:@-])")
    if whole.search(content):
        return whole.sub(better.encode(), content)
    text = decode(content, path)
    places = [each for each in image_names(path, content, dockerfile=dockerfile) if each.text == image]
    edits = [_edits(each, better) for each in places]
    if edits and None not in edits:
        after = replaced(text, (one for each in edits for one in each or ()))
        return encoding_of(path, content, text).encode(after)
    tag, other = (name_and_tag(each)[1].encode() for each in (image, better))
    assigned = re.compile(rb"(?<==)([\"']?)" + re.escape(tag) + rb"(?![\w.-])")
    return assigned.sub(rb"\g<1>" + other, content) if tag and len(assigned.findall(content)) == 1 else None


def _of_dockerfile(path: str, text: str) -> Iterator[Mapped | None]:
    """Yield what follows each ``FROM``, with the values of the ``ARG`` before the first one."""
    known: dict[str, Mapped] = {}
    started = False
    for instruction in parse_dockerfile(path, text).instructions:
        if instruction.name == "FROM":
            started = True
            word = next(written_words(instruction.text), None)
            yield None if word is None else _filled(_unquoted(instruction.mapped().part(word.start, word.end)), known)
        elif instruction.name == "ARG" and not started:
            for each in instruction.settings():
                value = _value(instruction, each, known)
                if value is None:
                    known.pop(each.name, None)
                else:
                    known[each.name] = value


def _value(instruction: Instruction, setting: Setting, known: Mapping[str, Mapped]) -> Mapped | None:
    if setting.value is None:
        return None
    written = instruction.mapped().part(setting.start, setting.start + len(setting.value))
    return _filled(_unquoted(written), known)


def _unquoted(written: Mapped) -> Mapped:
    text = written.text
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return written.part(1, len(text) - 1) if quoted else written


def _filled(written: Mapped, known: Mapping[str, Mapped], depth: int = 0) -> Mapped | None:
    """Substitute ``$NAME``, ``${NAME}`` and ``${NAME:-default}``; ``None`` for other forms, what is unknown or long."""
    text, offsets, at = "", list[int](), 0
    while at < len(written.text):
        sign = written.text.find("$", at)
        end = len(written.text) if sign < 0 else sign
        pieces = [written.part(at, end)]
        if sign >= 0:
            value, end = _reference(written, sign, known)
            filled = None if value is None or depth > _DEEPEST else _filled(value, known, depth + 1)
            if filled is None:
                return None
            pieces.append(filled)
        for each in pieces:
            text += each.text
            offsets += each.offsets
        if len(text) > _LONGEST:
            return None
        at = end
    return Mapped(text, offsets)


def _reference(written: Mapped, sign: int, known: Mapping[str, Mapped]) -> tuple[Mapped | None, int]:
    """Return the value of the variable at ``sign``, and the end of its name."""
    text = written.text
    if not text.startswith("${", sign):
        end = name_end(text, sign + 1)
        return known.get(text[sign + 1 : end]), end
    close = text.find("}", sign)
    if close < 0:
        return None, len(text)
    end = name_end(text, sign + 2)
    value = known.get(text[sign + 2 : end])
    form = text[end:close]
    if form.startswith((":-", "-")) and value is None:
        value = written.part(close - len(form.lstrip(":")) + 1, close)
    return (value if not form or form.startswith((":-", "-")) else None), close + 1


def _part(text: str, start: int, end: int) -> Mapped:
    return Mapped(text[start:end], range(start, end))


def _edits(name: Mapped, better: str) -> list[Replacement] | None:
    """Return the changes to the pieces of a name; ``None`` if a part that differs is made of several pieces."""
    old, new = _PARTS.findall(name.text), _PARTS.findall(better)
    if len(old) != len(new):
        old, new = [name.text], [better]
    found: list[Replacement] = []
    at = 0
    for before, after in zip(old, new):
        if before != after:
            places = name.offsets[at : at + len(before)]
            if not places or places[-1] - places[0] != len(before) - 1:
                return None
            found.append((places[0], places[-1] + 1, after))
        at += len(before)
    return found
