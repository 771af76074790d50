"""Environments in which tests run: those of tox.ini, with the conditions on their factors, and the sessions of noxfile.py."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import product

from compat.formats.edit.changes import Change, Statement
from compat.formats.edit.dispatch import Span, edit_spans
from compat.formats.edit.files import Edit, Mapped, line_around
from compat.formats.include import NotRead, WorkingFolders
from compat.formats.installs.command import install_of
from compat.formats.installs.edit import InstallScript
from compat.formats.installs.files import InstallFormat
from compat.formats.installs.runners import tables_of
from compat.formats.installs.values import Values
from compat.formats.jobs import Job, Placed, Script, check_size, known_version
from compat.formats.listing import Entry, Listing
from compat.formats.pins import numbered_lines, pins_of, texts_of_code
from compat.formats.registry import Format
from compat.formats.requirements.file import read_requirements
from compat.formats.requirements.requirement import parse_requirement
from compat.model import Environment
from compat.records import replace
from compat.syntax.ini import Ini, IniLine, parse_ini
from compat.syntax.python import Positions, parsed
from compat.syntax.shell import Word

_CONDITION = re.compile(r"[\w.!,{}-]+")
_REFERENCE = re.compile(r"\{\[([^\]]+)\]([\w-]+)\}")
_FOLDER = re.compile(r"\{(?:toxinidir|tox_root)\}/?")
_PYTHON = re.compile(r"py(?:thon)?(\d)\.?(\d+)")
_MOST = 200
"""Environments of one file."""
_DEEPEST = 5


class Tox(Format):
    """A tox.ini; environments that install the same are one listing. :class:`InputError` for an invalid line."""

    kind = "tox"
    apply = "tox --conf {path} --notest"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        check_size(path, text, "a tox.ini")
        ini = parse_ini(text, path)
        found: dict[tuple[tuple[Placed, ...], tuple[Placed, ...]], list[str]] = {}
        for name in _environments(ini):
            lines = tuple(Placed(line.number, wanted, None) for line, wanted in _deps(ini, name))
            found.setdefault((lines, _commands(ini, name)), []).append(name)
        listings: list[Listing] = []
        started = {commands: _started(path, commands) for _, commands in found}
        merged: dict[tuple[tuple[Placed, ...], tuple[Placed, ...]], list[str]] = {}
        for (lines, commands), names in found.items():
            merged.setdefault((lines, commands if started[commands] else ()), []).extend(names)
        for (lines, commands), names in merged.items():
            if not lines and not commands:
                continue
            texts = "\n".join(line.text for line in lines)
            label = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            pythons = {_python(name) for name in names}
            for listing in read_requirements(path, texts, [line.number for line in lines]):
                python = pythons.pop() if len(pythons) == 1 else None
                whole = _started(path, commands, listing) or listing
                listings.append(replace(
                    whole, kind=self.kind, label=f"environment {label}", complete=False,
                    requires_python=f"=={python}.*" if python else None,
                ))  # fmt: skip
        unread = tuple(
            f"{path}:{options['conda_deps'].line}: conda_deps was not read"
            for options in ini.values()
            if "conda_deps" in options
        )
        listings += [Listing(path, self.kind, unread=unread)] if unread else []
        listings += _of_project(path, ini)
        return tuple(listings) or (Listing(path, self.kind, notes=(f"{path}: no environment lists a dependency",)),)

    def commands_in(self, path: str, text: str) -> Iterable[tuple[int, str]] | None:
        return numbered_lines(text)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        text = self.decode(path, content)
        return edit_spans(self, path, content, changes, list(_statements(path, text)), lambda change: None)


def _of_project(path: str, ini: Ini) -> Iterator[Listing]:
    """Yield what the extras and groups of the project install: it is not read here, and its pins are named."""
    found = WorkingFolders(path)
    for key, table in (("extras", "project.optional-dependencies"), ("dependency_groups", "dependency-groups")):
        lines = [options[key].line for options in ini.values() if key in options]
        if not lines:
            continue
        pins: tuple[Entry, ...] = ()
        with suppress(NotRead):
            file, content = found.open("pyproject.toml", None, key)
            pins = pins_of(file, tables_of(content.decode("utf-8", "replace"), (table,)))
        remark = f"{path}:{lines[0]}: what the {key.replace('_', ' ')} install was not read: check pyproject.toml"
        yield Listing(path, "tox", notes=(remark,), elsewhere=(remark,), loose=pins)


def _environments(ini: Ini) -> list[str]:
    """Return the names of the environments, with braces expanded: those of ``envlist``, and those with a separate section."""
    tox = ini.get("tox", {})
    listed = tox.get("envlist") or tox.get("env_list")
    names = [name for line in listed.lines for part in _parts(line.text) for name in _braces(part)] if listed else []
    names += [section.partition(":")[2] for section in ini if section.startswith("testenv:")]
    if not names:  # tox -e FACTOR
        deps = ini.get("testenv", {}).get("deps")
        conditions = [_divided(line.text)[0] for line in deps.lines] if deps else []
        names = [
            "testenv",
            *(each for text in conditions for part in _parts(text) for each in _braces(part) if "!" not in each),
        ]
    return list(dict.fromkeys(name.strip() for name in names if name.strip()))[:_MOST]


_COMMANDS = ("install_command", "commands_pre", "commands", "commands_post")
_SUBSTITUTION = re.compile(r"\{([^{}]*)\}")


def _commands(ini: Ini, name: str) -> tuple[Placed, ...]:
    """Return the commands of an environment as shell text; what only tox knows is a variable."""
    found: list[Placed] = []
    for key in _COMMANDS:
        section = next((each for each in (f"testenv:{name}", "testenv") if key in ini.get(each, {})), None)
        for line, text in _lines(ini, section, key, set(name.split("-")), 0) if section else ():
            placed = Placed(line.number, _SUBSTITUTION.sub(_substituted, text.lstrip("-! ")), None)
            if found and found[-1].text.endswith("\\"):
                found[-1] = replace(found[-1], text=f"{found[-1].text[:-1]} {placed.text}")
            else:
                found.append(placed)
    return tuple(found)


def _substituted(found: re.Match[str]) -> str:
    name, colon, default = found[1].partition(":")
    if name in ("envpython", "env_python"):
        return "python"
    if name in ("opts", "packages", "toxinidir", "tox_root", "envbindir", "env_bin_dir"):
        return "" if name in ("opts", "packages") else "."
    return default if name == "posargs" and colon else "$POSARGS" if name == "posargs" else "${TOX}"


def _started(path: str, commands: tuple[Placed, ...], installed: Listing | None = None) -> Listing | None:
    """Return what commands install in addition to the declared dependencies; ``None`` if they install nothing."""
    job = Job(path)
    if installed is not None:
        job.lock(installed)
    for line in commands:
        job.run(Script((line,)))
    return job.listing("tox", context=Environment()) if commands and job.is_relevant else None


def _parts(text: str) -> list[str]:
    """Split at commas outside of braces."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "{") - (letter == "}")
        if (letter == "," or letter.isspace()) and depth <= 0:
            found.append("")
        else:
            found[-1] += letter
    return [each for each in found if each]


def _braces(text: str) -> Iterator[str]:
    """Yield ``py38-a`` and ``py39-a`` for ``py{38,39}-a``."""
    pieces = re.split(r"\{([^{}]*)\}", text)
    choices = [piece.split(",") if at % 2 else [piece] for at, piece in enumerate(pieces)]
    total = 1
    for each in choices:
        total *= len(each)
    if total <= _MOST:
        yield from ("".join(part.strip() for part in parts) for parts in product(*choices))


def _deps(ini: Ini, name: str) -> Iterator[tuple[IniLine, str]]:
    """Yield the lines of ``deps`` of an environment whose conditions hold, and their requirement or option."""
    for section in (f"testenv:{name}", "testenv"):
        if "deps" in ini.get(section, {}):
            yield from _lines(ini, section, "deps", set(name.split("-")), 0)
            break
    for section in (f"testenv:{name}", "testenv"):
        if "constraints" in ini.get(section, {}):
            for line, text in _lines(ini, section, "constraints", set(name.split("-")), 0):
                yield line, text if text.startswith("-c") else f"-c {text}"
            break


def _lines(ini: Ini, section: str, key: str, factors: set[str], depth: int) -> Iterator[tuple[IniLine, str]]:
    option = ini.get(section, {}).get(key)
    for line in option.lines if option is not None else ():
        condition, text = _divided(line.text)
        if condition and not _holds(condition, factors):
            continue
        referred = _REFERENCE.fullmatch(text)
        if referred is not None and depth < _DEEPEST:
            yield from _lines(ini, referred[1], referred[2].replace("-", "_"), factors, depth + 1)
        elif not text.startswith((".", "{", "/")):
            yield line, _FOLDER.sub("", text)


def _divided(line: str) -> tuple[str, str]:
    """Return the condition of a line and the rest; "" if it has none."""
    head, _, rest = line.partition(":")
    is_condition = rest[:1].isspace() and _CONDITION.fullmatch(head.strip()) is not None
    return (head.strip(), rest.strip()) if is_condition else ("", line)


def _holds(condition: str, factors: set[str]) -> bool:
    """Whether one of the alternatives (``py38-torch20,!cpu``) holds for an environment with these factors."""
    alternatives = [each for part in _parts(condition) for each in _braces(part)]
    return any(
        all((word[1:] not in factors) if word.startswith("!") else (word in factors) for word in each.split("-"))
        for each in alternatives
    )


def _python(name: str) -> str | None:
    found = [match for part in name.split("-") if (match := _PYTHON.fullmatch(part))]
    return f"{found[0][1]}.{found[0][2]}" if found else None


def _statements(path: str, text: str) -> Iterator[Statement[Span | None]]:
    """Yield every requirement of every ``deps`` with its place."""
    for section, options in parse_ini(text, path).items():
        if not section.startswith("testenv") or "deps" not in options:
            continue
        for line in options["deps"].lines:
            written = _divided(line.text)[1].partition(" #")[0].strip()
            try:
                found = parse_requirement(written)
            except ValueError:
                continue
            start = line.offset + line.text.index(written)
            span = Span(start, start + len(written), written, gone=line_around(text, start))
            yield Statement(found, path, line.number, span)


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
        kept = tuple(each for each in found if each.is_relevant)
        return kept or (Listing(path, self.kind, notes=(f"{path}: no session installs a package by name",)),)

    def commands_in(self, path: str, text: str) -> Iterable[tuple[int, str]] | None:
        return texts_of_code(path, text)

    def collect(self, script: InstallScript) -> None:
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
                    self._values.assign(target, node.value)
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
            words = [word for each in call.args for word in self._words(each)]
            install = install_of([*start, *words], {})
            if install is not None:
                job.step(install, call.lineno)
            elif not start and words:
                line = " ".join(f'"{word}"' if "$" in word else shlex.quote(word) for word in words)
                job.run(Script((Placed(call.lineno, line, None),)))
        return job.listing(kind, label=f"session {session.name}", context=Environment(python=self._python(session)))

    def _words(self, node: ast.expr) -> list[str]:
        """Return the words of an argument; the positional arguments of the session are only known when nox runs."""
        if not isinstance(node, ast.Starred):
            return [self._values.text(node)]
        if isinstance(node.value, ast.Attribute) and node.value.attr == "posargs":
            return ["$POSARGS"]
        return self._values.listed(node.value) or ["${...}"]

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
