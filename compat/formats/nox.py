"""``noxfile.py``: what each session installs, read from the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.formats.installs.command import install_of
from compat.formats.installs.files import InstallFormat
from compat.formats.installs.values import Values
from compat.formats.jobs import Job, known_version
from compat.formats.listing import Listing
from compat.model import Environment
from compat.syntax.python import Positions
from compat.syntax.shell import Word
from compat.workload.notebook import parsed

if TYPE_CHECKING:
    from compat.formats.installs.edit import InstallScript


_INSTALLERS = {
    "install": ("pip", "install"),
    "conda_install": ("conda", "install"),
    "run": (),
    "run_install": (),
    "run_always": (),
}


class Nox(InstallFormat):
    """A noxfile.py; each session that installs something is a listing."""

    kind = "nox"
    apply = "nox --noxfile {path}"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        file = _NoxFile(path, text)
        found = tuple(file.listing(session, self.kind) for session in file.sessions)
        kept = tuple(each for each in found if each.entries or each.unread)
        return kept or (Listing(path, self.kind, notes=(f"{path}: no session installs a package by name",)),)

    def collect(self, script: InstallScript) -> None:
        from compat.formats.edit.files import Mapped

        file = _NoxFile(script.path, script.text)
        positions = Positions(file.text)
        mapped = Mapped(file.text, range(len(file.text)))
        for session in file.sessions:
            for call, start in file.calls(session):
                words = [Word(each, 0, 0) for each in start]
                for node in call.args:
                    span = positions.quoted(node)
                    text = node.value if isinstance(node, ast.Constant) else None
                    words.append(Word(str(text), *span) if span is not None else Word("${...}", 0, 0))
                script.read_words(mapped, words, json=True)


class _NoxFile:
    """The sessions of a noxfile; :class:`InputError` if it is not valid Python."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        # a form feed does not indent, and keeps the offsets of a text with a byte order mark
        self.text = f"\f{text[1:]}" if text.startswith("\ufeff") else text
        tree = parsed(self.text, path)
        self._values = Values()
        self._functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._values.bind(target, node.value)
        self.sessions = [each for each in self._functions.values() if any(map(_is_session, each.decorator_list))]

    def calls(self, function: ast.FunctionDef, depth: int = 0) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
        """Yield the calls that may install something, in the order of the text, with the words before their arguments."""
        for node in sorted((each for each in ast.walk(function) if isinstance(each, ast.Call)), key=lambda each: each.lineno):
            if isinstance(node.func, ast.Attribute) and node.func.attr in _INSTALLERS and isinstance(node.func.value, ast.Name):
                yield node, _INSTALLERS[node.func.attr]
            elif isinstance(node.func, ast.Name) and node.func.id in self._functions and depth < 3:
                yield from self.calls(self._functions[node.func.id], depth + 1)

    def listing(self, session: ast.FunctionDef, kind: str) -> Listing:
        job = Job(self.path)
        for call, start in self.calls(session):
            words = ["${...}" if isinstance(each, ast.Starred) else self._values.text(each) for each in call.args]
            install = install_of([*start, *words], {})
            if install is not None:
                job.step(install, call.lineno)
        return job.listing(kind, label=f"session {session.name}", context=Environment(python=self._python(session)))

    def _python(self, session: ast.FunctionDef) -> str | None:
        """Return the Python of a session that runs with only one."""
        for each in session.decorator_list:
            for given in each.keywords if isinstance(each, ast.Call) else ():
                if given.arg == "python" and isinstance(given.value, ast.Constant):
                    return known_version(str(given.value.value))
        return None


def _is_session(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) == "session"
