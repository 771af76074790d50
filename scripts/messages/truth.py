"""``python -m scripts.messages.truth [PACKAGE…]``: random rows of the tables against the files of the releases.

Each row is a message at one place. The first release that has it there has to have its words among the string literals of the
module, and mostly of the function; the release before all that have it must not have them in that function. The files are read
from the index once more, and searched by tokens: neither the store nor the syntax trees of the miner are used. Exit code 1
where a row is refuted.
"""

from __future__ import annotations

import argparse
import csv
import io
import random
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from compat.index import Index, gather
from compat.index import Store as IndexStore
from compat.index.metadata import Unread
from compat.index.settings import Settings
from compat.index.transport import Transport
from compat.interfaces.messages import HOLE, Messages, Place, Template
from compat.records import replace
from scripts.messages.tables import FOLDER
from scripts.surface.fetch import missing
from scripts.surface.members import read_members

CONFIRMED, OUTSIDE, NOT_THERE = "confirmed", "in the module outside the function", "not in the release"
THERE_BEFORE, UNREAD = "in the release before", "not read"


@dataclass(frozen=True)
class Answer:
    result: str
    package: str
    version: str
    before: str
    module: str
    function: str
    template: str


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.messages.truth", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all)")
    parser.add_argument("--rows", type=int, default=160)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, metavar="TABLE.csv", help="also write the rows to a file")
    words = parser.parse_args(arguments)
    messages = Messages(str(FOLDER))
    releases = Releases(replace(gather(), timeout=60.0, retries=5), messages)
    answers = []
    for template, place in sampled(messages, words.packages or messages.packages, words.rows, words.seed):
        answers.append(answered(template, place, releases))
        print(*(getattr(answers[-1], field.name) or "-" for field in fields(Answer)), sep=" | ", flush=True)
    if words.out is not None:
        with words.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(Answer)])
            writer.writerows([getattr(answer, field.name) for field in fields(Answer)] for answer in answers)
    counts = Counter(answer.result for answer in answers)
    print(", ".join(f"{count} {result}" for result, count in counts.most_common()))
    return int(counts[NOT_THERE] + counts[THERE_BEFORE] > 0)


def sampled(messages: Messages, packages: Iterable[str], count: int, seed: int) -> list[tuple[Template, Place]]:
    """Return random places of uniformly chosen messages, in the order of their packages."""
    chosen = random.Random(seed)
    numbers = [(package, number) for package in packages for number in range(len(messages.table(package)))]
    templates = [messages.table(package).template(number) for package, number in sorted(chosen.sample(numbers, count))]
    return [(template, chosen.choice(template.places)) for template in templates]


def answered(template: Template, place: Place, releases: Releases) -> Answer:
    """Check one row against the releases."""
    version = place.versions[0]
    first = min(template.known.index(each) for each in releases.having(template))
    before = template.known[first - 1] if first else ""

    def answer(result: str) -> Answer:
        return Answer(result, template.package, version, before, place.module, place.function, template.text)

    try:
        source = releases.module(template.package, version, place.module)
        earlier = releases.module(template.package, before, place.module) if before else None
    except Unread:
        return answer(UNREAD)
    if source is None or not says(source, template.text):
        return answer(NOT_THERE)
    if earlier is not None and says(function_of(earlier, place.function), template.text):
        return answer(THERE_BEFORE)
    # the text may be a constant of the module, or of a function around this one
    return answer(CONFIRMED if says(function_of(source, place.function), template.text) else OUTSIDE)


class Releases:
    """The Python files of releases, read from the index; the most recent few are cached."""

    def __init__(self, settings: Settings, messages: Messages) -> None:
        self._index, self._transport, self._messages = Index(settings, IndexStore()), Transport(settings), messages
        self._kept: dict[tuple[str, str], dict[str, bytes]] = {}

    def having(self, template: Template) -> set[str]:
        """Return the releases that contain a text, even under another class."""
        table = self._messages.table(template.package)
        numbers = (number for number, text in enumerate(table.texts) if text == template.text)
        return {version for number in numbers for version in table.template(number).versions}

    def module(self, package: str, version: str, module: str) -> str | None:
        """Return the source of a module; ``None`` if the release does not contain it."""
        if (package, version) not in self._kept:
            files = [file for file in self._index.files(package) or () if file.version == version]
            file = next(iter(missing(files, package, set())), None)
            if file is None:
                raise Unread(f"{package} {version} has no file")
            if len(self._kept) > 6:
                del self._kept[next(iter(self._kept))]
            self._kept[package, version] = read_members(self._transport, file).members
        members = self._kept[package, version]
        stem = module.replace(".", "/")
        found = members.get(f"{stem}.py", members.get(f"{stem}/__init__.py"))
        return None if found is None else found.decode("utf-8", "replace")


def function_of(source: str, function: str) -> str:
    """Return the lines of a function, by its indentation; the whole source if it is unnamed or not found."""
    name = function.rpartition(".")[2]
    lines = list(io.StringIO(source))
    kept: list[str] = []
    for at, line in enumerate(lines):
        heading = re.match(rf"(\s*)(?:async )?(?:def|class) {re.escape(name)}\b", line) if name else None
        if heading is None:
            continue
        kept.append(line)
        depth = len(heading[1])
        body = True
        for below in lines[at + 1 :]:
            inside = not below.strip() or len(below) - len(below.lstrip()) > depth or below.lstrip()[:1] in ")]}#\"'"
            body = body and inside
            if not body:
                break
            kept.append(below)
    return "".join(kept) if name else source


_BREAK = "\0"
"""Stands where something other than a literal comes between two of them."""
_INSERTED = rf"(?:\{{[^{_BREAK}]{{0,300}}?\}}|%[\w().+#*-]*?[a-zA-Z]|{_BREAK}(?:[^{_BREAK}]{{0,80}}{_BREAK})?)+"


def says(source: str, template: str) -> bool:
    """Return whether the string literals of a source contain a template, with text inserted at its placeholders."""
    parts = (rf"[ {_BREAK}]+".join(re.escape(word) for word in part.split(" ")) for part in plain(template).split(HOLE) if part)
    return re.search(_INSERTED.join(parts), literals_of(source)) is not None


def literals_of(source: str) -> str:
    """Return the contents of all string literals of a source, normalized by :func:`plain`."""
    found = []
    try:
        for kind, text in _whole_strings(source):
            if kind == tokenize.STRING:
                found.append(re.sub(r"^[A-Za-z]*('''|\"\"\"|'|\")|('''|\"\"\"|'|\")$", "", text))
            elif kind not in (tokenize.NL, tokenize.COMMENT):
                found.append(_BREAK)
    except (tokenize.TokenError, SyntaxError):
        pass  # the extracted lines of a function may end in the middle of a token
    return re.sub(rf"{_BREAK}+", _BREAK, plain("".join(found)))


def _whole_strings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the tokens of a source. Since Python 3.12 an f-string is several tokens; here it is one on every Python."""
    lines = list(io.StringIO(source))
    opened: list[tuple[int, int]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            opened.append(token.start)
        elif name == "FSTRING_END":
            (row, column), (last, end) = opened.pop(), token.end
            if not opened:
                text = "".join(lines[row - 1 : last])
                yield tokenize.STRING, text[column : len(text) - len(lines[last - 1]) + end]
        elif not opened:
            yield token.type, token.string


def plain(text: str) -> str:
    """Strip escapes and formatting characters, which differ between literals and templates, and collapse whitespace."""
    text = re.sub(r"\\[ntr]|\\\n", " ", text).replace("\\", "").replace("{{", "{").replace("}}", "}").replace("%%", "%")
    text = re.sub(r"\{([\w.()\[\]]+)=\}", r"\1={}", text)
    return " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
