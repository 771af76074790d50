"""``setup.py``: what the code passes to ``setup()``, followed as syntax and never run."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Sequence

from compat.errors import InputError
from compat.formats.edit.changes import Change, requirement_for
from compat.formats.edit.dispatch import Span, edit_spans
from compat.formats.edit.files import Edit, Replacement
from compat.formats.edit.installer import Installer
from compat.formats.include import NotRead
from compat.formats.installs.unread import installs_from_code
from compat.formats.listing import Listing
from compat.formats.project.inline import PythonScript
from compat.formats.registry import Commands
from compat.formats.requirements.lines import decode
from compat.formats.setuptools.code import Followed
from compat.formats.setuptools.setup_cfg import Collected, read_configuration
from compat.syntax.python import Positions, parsed
from compat.syntax.values import Table, Text, Unknown, Value, lines_of


class SetupPy(PythonScript):
    """A setup.py; a Python file of this name that does not import setuptools is read as a script."""

    kind = "setup.py"
    lists_packages, says_build = True, False

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        project = _Project(path, text)
        return super().read(path, text) if project.call is None else (project.read().listing(self.kind),)

    def commands_in(self, path: str, text: str) -> Iterable[tuple[int, str]] | None:
        """Return the strings of a script; the reader of ``setup()`` says itself which of its requirements it did not read."""
        return super().commands_in(path, text) if _Project(path, text).call is None else None

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        project = _Project(path, self.decode(path, content))
        if project.call is None:
            return super().edit(path, content, changes, depth)
        return edit_spans(self, path, content, changes, project.read().statements, project.addition)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        return Commands()  # install the changed releases one by one: the project itself may need special build options


_BUILDERS = ("setuptools", "distutils", "skbuild")


def _is_packaging(node: ast.AST) -> bool:
    """Whether a node imports what packages are built with."""
    names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
    names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
    return any(name.partition(".")[0] in _BUILDERS for name in names)


class _Project:
    """The call of ``setup()`` in some code, with its lists."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        # a form feed does not indent, and keeps the offsets of a text with a byte order mark
        self.text = f"\f{text[1:]}" if text.startswith("\ufeff") else text
        self._tree = parsed(self.text, path)
        self.call: Table | None = None
        self._collected = Collected(path, None)
        self._positions = Positions(self.text)
        self._reads = 0
        if any(map(_is_packaging, ast.walk(self._tree))):
            followed = Followed(self._tree, os.path.basename(self.path), self._opened)
            wanted = [call for call in followed.setups if "install_requires" in call or "extras_require" in call]
            self.call = next(iter(wanted or followed.setups), {})
            name = self.call.get("name")
            self._collected = Collected(self.path, name.value if isinstance(name, Text) else None)
            if not followed.whole or not followed.setups:
                why = "no call of setup() was found" if followed.whole else "the code is too long to be followed"
                self._collected.not_read(1, f"{why}: requirements may be missing")

    def _opened(self, name: str) -> Text | None:
        """Return the text of a file of the project; each may be read several times."""
        self._reads += 1
        found = self._collected.open(name, f"code {self._reads}")
        if isinstance(found, NotRead):
            return None
        try:
            return Text(decode(found[1], found[0]), 1, found[0])
        except InputError:
            return None

    def read(self) -> Collected:
        """Return what the call requires, and what setup.cfg adds to it."""
        assert self.call is not None
        found = self._collected
        python = self.call.get("python_requires")
        if isinstance(python, Text):
            found.python(python.value, python.line)
        if "install_requires" in self.call:
            self._list(self.call["install_requires"], found.node(""), "install_requires")
        extras = self.call.get("extras_require")
        for key, value in extras.items() if isinstance(extras, dict) else ():
            if isinstance(key, Unknown):
                found.computed("the name of an extra", key.line)
            else:
                self._list(value, found.node(key), f"extra {key}")
        if isinstance(extras, Unknown):
            found.computed("extras_require", extras.line)
        for key in self.call:
            if isinstance(key, Unknown):
                found.computed("a part of an argument of setup()", key.line)
        if "install_requires" not in self.call:
            # setuptools reads setup.cfg, too; a pyproject.toml with the requirements is only named
            configuration = found.open("setup.cfg", "configuration")
            if not isinstance(configuration, NotRead):
                read_configuration(configuration[0], decode(configuration[1], configuration[0]), found)
            declared = found.open("pyproject.toml", "project")
            if not isinstance(declared, NotRead) and b"\n[project]" in b"\n" + declared[1]:
                found.not_read(1, "the requirements are in pyproject.toml: check that file")
        if installs_from_code(self.text):
            found.not_read(1, "what its code installs was not read")
        return found

    def _list(self, value: Value, node: tuple[int, str | None], key: str) -> None:
        """Add a list of requirements, a text with one on each line, or a requirements file."""
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Unknown) and each.file is not None:
                self._collected.file(each.file.value, each.line, node, key)
            elif isinstance(each, list):
                self._list(each, node, key)
            elif isinstance(each, Text):
                for line in [each] if each.node is not None and "\n" not in each.value else lines_of(each):
                    self._text(line, node, key)
            elif each is not None:
                self._collected.computed(key, each.line if isinstance(each, Unknown) else 1)

    def _text(self, text: Text, node: tuple[int, str | None], key: str) -> None:
        if text.condition is not None:
            self._collected.conditional(key, text.value, text.condition)
        elif text.file is not None:
            self._collected.requirement(text.value, text.line, node, key, file=text.file)
        else:
            self._collected.requirement(text.value, text.line, node, key, span=self._span(text))

    def _span(self, text: Text) -> Span | None:
        place = None if text.node is None else self._positions.quoted(text.node)
        if place is None or text.node is None or text.value != str(text.node.value).strip():
            return None
        start, end = place
        return Span(start + 1, end - 1, self.text[start + 1 : end - 1], self.text[start], self._gone(start, end))

    def _gone(self, start: int, end: int) -> tuple[int, int] | None:
        """Return what to delete with a string that is an item of a list: its comma, and its line if nothing else is on it."""
        before = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        after = self.text[end : (self.text.find("\n", end) + 1) or len(self.text)]
        rest = after.lstrip(" \t").removeprefix(",").lstrip(" \t")
        if not before.strip() and rest[:1] in ("\n", "\r", "#"):
            return start - len(before), end + len(after)
        if rest is after or not after.lstrip(" \t").startswith(","):
            return None
        return start, end + len(after) - len(rest)

    # --- Adding a requirement to the list that setup() is given.

    def addition(self, change: Change) -> Replacement | None:
        """Return the insertion of a requirement at the end of the list of ``install_requires``; ``None`` if there is none."""
        items = self._install_requires()
        spans = [self._positions.span(each) for each in items]
        if not items or change.is_direct_url:
            return None
        start, end = spans[-1]
        quote = "'" if self.text[start] == "'" else '"'  # an item may be computed: deps["trl"]
        new = f"{quote}{requirement_for(change)}{quote}"
        line = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        if line.strip():
            return end, end, f", {new}"
        rest = self.text[end : (self.text.find("\n", end) + 1) or len(self.text)]
        comma = rest.lstrip(" \t").startswith(",")
        if not comma and rest.strip():  # a bracket or a comment directly behind it
            return end, end, f",\n{line}{new}"
        at = end + len(rest.rstrip("\r\n"))
        return (at, at, f"\n{line}{new},") if comma else (end, end, f",\n{line}{new}")

    def _install_requires(self) -> list[ast.expr]:
        for node in ast.walk(self._tree):
            given = node.keywords if isinstance(node, ast.Call) else ()
            value = next((each.value for each in given if each.arg == "install_requires"), None)
            if isinstance(value, ast.Name):
                bound = [
                    each.value for each in self._tree.body
                    if isinstance(each, ast.Assign) and any(isinstance(t, ast.Name) and t.id == value.id for t in each.targets)
                ]  # fmt: skip
                value = bound[0] if len(bound) == 1 else None
            if isinstance(value, ast.List):
                return value.elts
        return []
