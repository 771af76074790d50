"""What the commands of a script do to its text: loops written out, and the output of ``echo``, ``printf`` and ``cat``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compat.records import replace
from compat.syntax.shell import SimpleCommand, Word

_MOST_ROUNDS = 200
_MOST_COMMANDS = 20_000
"""Commands of a script after its loops are written out; a loop that would exceed it is read once."""
_PRINTED = 1 << 16
"""Characters of a command's output."""


def unrolled(commands: Sequence[SimpleCommand]) -> list[SimpleCommand]:
    """Return the commands with the body of ``for NAME in WORD…`` once for each word, after an assignment of ``NAME``.

    The body of any other loop is read once.
    """
    found: list[SimpleCommand] = []
    open_ones: list[tuple[SimpleCommand | None, int]] = []
    """The loops around a command: the ``for`` and the number of commands before its body, or ``None`` for another loop."""
    waiting: SimpleCommand | None = None
    for command in commands:
        for keyword in command.keywords:
            if keyword == "do":
                open_ones.append((waiting, len(found)))
                waiting = None
            elif keyword == "done" and open_ones:
                loop, start = open_ones.pop()
                if loop is not None:
                    found[start:] = _rounds(loop, found[start:], len(found))
        if _is_for(command):
            waiting = command
            found.append(replace(command, words=()))
        else:
            found.append(command)
    return found


def _is_for(command: SimpleCommand) -> bool:
    words = [word.value for word in command.words[:3]]
    return words[:1] == ["for"] and words[2:] == ["in"] and words[1].isidentifier() and len(command.words) > 3


def _rounds(loop: SimpleCommand, body: Sequence[SimpleCommand], before: int) -> list[SimpleCommand]:
    values = loop.words[3:]
    if len(values) > _MOST_ROUNDS or before + len(values) * (len(body) + 1) > _MOST_COMMANDS:
        return list(body)
    name = loop.words[1].value
    found: list[SimpleCommand] = []
    for word in values:
        found.append(SimpleCommand("\n", (), (Word(f"{name}={word.value}", word.start, word.end, word.spans),)))
        found += body
    return found


def braces(word: str) -> list[str]:
    """Return the words that ``a{b,c}d`` stands for; the word itself without such braces, or with nested ones."""
    found = re.fullmatch(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)", word)
    if found is None or found[1].endswith("$"):
        return [word]
    return [f"{found[1]}{each}{found[3]}" for each in found[2].split(",")]


def fed(words: Sequence[str], text: str) -> list[str] | None:
    """Return the command that ``xargs`` runs with the words of a text; ``None`` for any other program."""
    if words[0] != "xargs":
        return None
    at = 1
    place = None
    while at < len(words) and words[at].startswith("-"):
        option, attached = words[at][:2], words[at][2:]
        if option in ("-I", "-n", "-P", "-L", "-d", "-E", "-s", "-a"):
            at += not attached
            place = (attached or "".join(words[at : at + 1])) if option == "-I" else place
        at += 1
    inner, given = list(words[at:]), text.split()
    if place and len(given) * inner.count(place) > _PRINTED:
        return None
    if place:
        return [each for word in inner for each in (given if word == place else [word])]
    return [*inner, *given] if inner else None


def printed(words: Sequence[str], documents: Sequence[str], taken: str | None) -> str | None:
    """Return what a command prints, ``None`` if that is unknown. ``taken`` is what it reads from a pipe."""
    name, operands = words[0], list(words[1:])
    if name == "echo":
        while operands and re.fullmatch(r"-[neE]+", operands[0]):
            operands.pop(0)
        return _interpreted(" ".join(operands)) + "\n"
    if name == "printf" and operands and not operands[0].startswith("-"):
        return _formatted(_interpreted(operands[0]), operands[1:])
    if name in ("cat", "tee") and (name == "tee" or not [each for each in operands if each != "-"]):
        return documents[-1] if documents else taken
    return None


def _interpreted(text: str) -> str:
    return text[:_PRINTED].replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")


def _formatted(form: str, operands: Sequence[str]) -> str | None:
    """Return the output of ``printf``, which repeats its format; only ``%s`` and ``%b`` are known."""
    pieces = re.split(r"%[sb]", form.replace("%%", "\0"))
    if any("%" in piece for piece in pieces):
        return None
    holes = len(pieces) - 1
    parts: list[str] = []
    for at in range(0, max(len(operands), 1), max(holes, 1)):
        values = [*operands[at : at + holes], *[""] * holes][:holes]
        parts += [text for pair in zip(pieces, [*values, ""], strict=True) for text in pair]
        if not holes or len(parts) > _PRINTED:
            break
    return "".join(parts).replace("\0", "%")
