"""Inputs made from seeds: lines, words, values and bytes are lost, doubled, moved, mixed and replaced."""

from __future__ import annotations

import random
import re
from typing import Any

from tests.fuzz import bombs, trees

SIZES = (1_000, 100_000, 2_000_000)
_WORD = re.compile(rb"[A-Za-z_][\w-]*|\d+(?:\.\d+)*|\s+|[^\w\s]")
_VALUE = re.compile(rb"(?m)^([^\n=:]{1,40}[=:])([^\n]*)$")
_EVIL = [each.encode("utf-8", "surrogatepass") for each in (
    "", " ", "\n", "\t", "\0", "\ufeff", "\u2028", "\x85", "\x0b", "\x1b[2J", "\u202e", "é", "²", "٣", "ſ", "İ", "\ud800", "\U0001f600", "\\", "'", '"', '"""', "'''",
    "#", "$", "${X}", "${X:-${Y}}", "${", "$(", "`", "{", "}", "[", "]", "[[", "]]", "(", ")", ";", ",", "=", "==", "===", "!=", "~=", "<", ">=", "@", "@ ",
    "*", "&a", "*a", "<<:", "|", ">", "- ", "? ", "!!python/object/apply:os.system", "%YAML 1.1", "---", "...", "~", "null", "true", "no", "0x1F", "1e999", ".inf",
    "nan", "-1", "0", "1", "99999999999999999999", "1.0.0.0.0", "1!2.0", "1.0a1.post2.dev3+local.1", "v1", "1.*", "==1.*", "2.6.0+cu124", "٣.١", "1_0", "1.0-1",
    "-r base.txt", "-r ../../etc/passwd", "-r /etc/passwd", "-c file:///etc/passwd", "-r link-passwd.txt", "-r pipe.txt", "-r folder.txt", "-r sparse.txt",
    "-r link-up/outside/requirements.txt", "-r link-self.txt", "-r link-zero.txt", "-r wide.txt", "-r chain-00.txt", "-r loop-a.txt", "-r .", "-r ''", "-e .", "-e ..",
    "../outside", "../outside/Dockerfile", "/etc/passwd", "/dev/zero", "/dev/stdin", "file:///etc/passwd", "https://host.example/a-1-py3-none-any.whl", "C:\\x", "\\\\h\\s",
    "os_name == 'nt'", "extra == 'x'", "python_version in '3.8 3.9'", "'x' in extras", "not in", "and", "or", "implementation_version == '1!2'", "platform_release>='x'",
    "torch", "python", "vllm", "pytorch", "cuda", "linux-64", "pip", "conda", "uv", "name", "version", "source", "marker", "extras", "dependencies", "packages",
    "<<<<<<< HEAD", "=======", ">>>>>>> branch", "||||||| base", "exec(open('/etc/passwd').read())", "__import__('os').system('id')", "{__import__('os')}",
)]  # fmt: skip
_VALUES = [each.encode() for each in (
    "1", "-1", "1.5", "1e999", "true", "null", "[]", "{}", '""', '"a"', "[1]", '["a", 1]', "{a = 1}", '{"a": 1}', "{a: 1}", "[[]]", "~", "2024-01-01", "12:00:00",
    "'", "|", ">-", "*x", "&x a", "!!binary a", "inf", "nan", "0x10", "99999999999999999999999", '"\\ud800"', '"\\u0000"', "",
)]  # fmt: skip


class Maker:
    """Makes inputs of one reader; number and seed say which, so every input can be made again."""

    def __init__(self, form: str, seeds: list[bytes], slices: list[bytes], seed: int) -> None:
        self.own = seeds
        self.seeds = [*seeds, *slices]
        self.seed = seed
        self._form = form
        forms = ("toml", "json", "yaml") if form == "any" else (form,)
        found = [(trees.parsed(each.decode("utf-8", "replace"), one), one) for each in seeds for one in forms]
        self._trees = [(tree, one) for tree, one in found if isinstance(tree, (dict, list))]

    def fixed(self) -> int:
        """How many inputs are the same for every seed: the seeds themselves, and every bomb in three sizes."""
        return len(self.seeds) + bombs.COUNT * (2 * len(SIZES))

    def small(self) -> int:
        """How many inputs come before the larger bombs: the seeds, and every bomb in its smallest size."""
        return len(self.seeds) + bombs.COUNT

    def made(self, number: int) -> bytes:
        """Input ``number``."""
        if number < len(self.seeds):
            return self.seeds[number]
        number -= len(self.seeds)
        if number < bombs.COUNT * 2 * len(SIZES):
            return self._bombed(number)
        chance = random.Random(self.seed * 1_000_003 + number)
        if self._trees and chance.random() < 0.35:
            tree, form = chance.choice(self._trees)
            text = trees.written(trees.changed(tree, chance), form, chance)
            content = text.encode("utf-8", "surrogatepass" if chance.random() < 0.3 else "replace")
        else:
            content = chance.choice(self.own if chance.random() < 0.5 else self.seeds)
        for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3, 5, 8))):
            content = self._mutated(content, chance)
        return content

    def _bombed(self, number: int) -> bytes:
        """Every bomb alone, and in the middle of a line of a seed."""
        which, rest = number % bombs.COUNT, number // bombs.COUNT
        text = bombs.bomb(which, SIZES[rest % len(SIZES)]).encode("utf-8", "surrogatepass")
        if rest < len(SIZES):
            return text
        base = self.own[which % len(self.own)]
        chance = random.Random(number)
        spans = [found.span() for found in _WORD.finditer(base)]
        start, end = chance.choice(spans)
        return base[:start] + text + base[end:]

    def _mutated(self, content: bytes, chance: random.Random) -> bytes:
        how = chance.random()
        if how < 0.40:
            return self._lines(content, chance)
        if how < 0.72:
            return _words(content, chance)
        if how < 0.84:
            return _value(content, chance)
        if how < 0.985:
            return _bytes(content, chance)
        size = int(10 ** (1 + 3.3 * chance.random() ** 2))
        return _put(content, bombs.piece_of(chance.randrange(bombs.WITHIN), size).encode("utf-8", "surrogatepass"), chance)

    def _lines(self, content: bytes, chance: random.Random) -> bytes:
        lines = content.split(b"\n")
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        how = chance.randrange(10)
        if how == 0:
            del lines[at : at + chance.choice((1, 1, 1, 2, 5))]
        elif how == 1:
            lines.insert(other, lines[at])
        elif how == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif how <= 4:
            donor = chance.choice(self.seeds).split(b"\n")
            start = chance.randrange(len(donor))
            lines[at:at] = donor[start : start + chance.choice((1, 2, 4, 8))]
        elif how == 5:
            lines[at] = chance.choice((b" ", b"  ", b"    ", b"\t", b"- ", b"# ", b"#")) + lines[at]
        elif how == 6:
            lines[at] = lines[at].lstrip() if chance.random() < 0.5 else lines[at][1:]
        elif how == 7:
            lines[at : at + 2] = [b"".join(lines[at : at + 2])]
        elif how == 8:
            lines[at:at] = [b"<<<<<<< HEAD", lines[at], b"=======", lines[other], b">>>>>>> branch"]
        else:
            lines[at:at] = [lines[at]] * int(10 ** (2 * chance.random()))
        return b"\n".join(lines)


def _words(content: bytes, chance: random.Random) -> bytes:
    """One to three words replaced, lost, doubled or swapped."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        start = chance.randrange(len(content) + 1)
        found = _WORD.search(content, start)
        if found is None:
            return content + chance.choice(_EVIL)
        begin, end = found.span()
        how = chance.randrange(8)
        if how <= 3:
            new = chance.choice(_EVIL)
        elif how == 4:
            new = b""
        elif how == 5:
            new = found[0] * chance.choice((2, 2, 3, 50))
        else:
            other = _WORD.search(content, chance.randrange(len(content) + 1))
            new = b"" if other is None else other[0]
        content = content[:begin] + new + content[end:]
    return content


def _value(content: bytes, chance: random.Random) -> bytes:
    """What stands behind a ``=`` or ``:`` gets another type."""
    found = _VALUE.search(content, chance.randrange(len(content) + 1)) or _VALUE.search(content)
    if found is None:
        return content
    space = b" " if chance.random() < 0.9 else b""
    comma = b"," if found[2].rstrip().endswith(b",") else b""
    return content[: found.start()] + found[1] + space + chance.choice(_VALUES) + comma + content[found.end() :]


def _bytes(content: bytes, chance: random.Random) -> bytes:
    how = chance.randrange(12)
    at = chance.randrange(len(content) + 1)
    if how == 0:
        return content[:at]
    if how == 1:
        return content[at:]
    if how == 2:
        return b"\xef\xbb\xbf" + content
    if how == 3:
        return content.replace(
            b"\n", chance.choice((b"\r\n", b"\r", b"\n\n", b"\n \n", b"\xe2\x80\xa8", b" ", b"\x0c", b"\n\r"))
        )
    if how == 4 and chance.random() < 0.2:
        return content.decode("utf-8", "replace").encode(
            chance.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7")), "replace"
        )
    if how <= 6 and content:
        return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
    if how == 7:
        return (
            content[:at]
            + chance.choice((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5", b"\xe2\x82", b"\0", b"\x1a", b"\xf4\x90\x80\x80"))
            + content[at:]
        )
    if how == 8:
        end = chance.randrange(at, len(content) + 1)
        return content[:at] + content[end:]
    if how == 9:
        end = min(len(content), at + chance.randrange(200))
        return content[:end] + content[at:end] * chance.choice((1, 1, 2, 10)) + content[end:]
    return _put(content, chance.choice(_EVIL), chance)


def _put(content: bytes, what: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + what + content[at:]


def maker(reader: Any, name: str, seed: int) -> Maker:
    """The maker of a reader's inputs, with every seed that is at hand."""
    from tests.fuzz.seeds import seeds_of, slices_of

    return Maker(reader.form, seeds_of(name), slices_of(name), seed)
