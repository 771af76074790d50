"""``cog.yaml``: the image that Cog builds: Python, CUDA, packages, a requirements file and commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compat.formats.edit.changes import Statement, requirement_for
from compat.formats.edit.files import Edit, line_end
from compat.formats.edit.spans import Span, edit_spans
from compat.formats.installs.command import install_of
from compat.formats.installs.files import InstallFormat
from compat.formats.jobs import Job, JobFile, Script, known_version
from compat.formats.listing import Listing
from compat.model import Environment
from compat.syntax.yaml import Document, Value

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.files import Replacement
    from compat.formats.installs.edit import InstallScript
    from compat.formats.installs.words import Install
    from compat.syntax.yaml import Table


class Cog(InstallFormat):
    """A cog.yaml; :class:`InputError` for invalid YAML and for values of a wrong type."""

    kind = "cog"
    apply = "cog build"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return (_Build(path, text).listing(self.kind),)

    def collect(self, script: InstallScript) -> None:
        build = _Build(script.path, script.text)
        build.file.edited(script, build.commands())

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        """Edit the packages, then the commands; a new requirement becomes a package."""
        build = _Build(path, self.decode(path, content))
        run = {entry.distribution.name for listing in self.listings(path, content) for entry in listing.entries
               if entry.file is None} - {each.found.name for each in build.statements()}  # fmt: skip
        own = [change for change in changes if change.name not in run]
        edits = edit_spans(self, path, content, own, list(build.statements()), build.addition) if own else ()
        after = next((each.after for each in edits if each.path == path), content)
        others = [change for change in changes if change.name in run]
        if not others:
            return edits
        edited = super().edit(path, after, others, depth)
        final = next((each.after for each in edited if each.path == path), after)
        return (Edit(path, content, final), *(each for each in (*edits, *edited) if each.path != path))


class _Build:
    """The ``build`` table of a cog.yaml."""

    def __init__(self, path: str, text: str) -> None:
        self.file = JobFile(path, text, "a cog.yaml")
        self.document = next(iter(self.file.documents()), None) or Document("", path)
        self._table: Table = self.document.table(self.document.table(self.document.root, "the file").get("build"), "build")

    def packages(self) -> list[Value]:
        return self.document.items(self._table.get("python_packages"), "python_packages")

    def commands(self) -> list[Value]:
        """Return the shell text of ``run``: texts, or tables with a ``command``."""
        found = []
        for each in self.document.items(self._table.get("run"), "run"):
            value = self.document.table(each, "a command").get("command") if each.is_table else each
            found += [value] if value is not None and value.is_text else []
        return found

    def listing(self, kind: str) -> Listing:
        document = self.document
        job = Job(self.file.path)
        for each in self.packages():
            install = _installed(document.needed_text(each, "a package", each))
            if install is not None:
                job.step(install, each.line)
        requirements = self._table.get("python_requirements")
        if requirements is not None and (name := document.text(requirements, "python_requirements")):
            job.requirements(name, requirements.line)
        for each in self.commands():
            job.run(Script(tuple(self.file.placed(each))))
        python, toolkit = (document.text(self._table.get(key), key) for key in ("python_version", "cuda"))
        context = Environment(os="linux", python=known_version(python), cuda_toolkit=known_version(toolkit))
        return job.listing(kind, context=context)

    def statements(self) -> Iterator[Statement[Span | None]]:
        """Yield the packages with their places; one may be followed by options of pip."""
        for each in self.packages():
            text = self.document.text(each, "a package") or ""
            install = _installed(text)
            value = text.partition(" #")[0].partition(" -")[0].strip()
            placed = self.file.placed(each)
            offset = placed[0].offset if len(placed) == 1 else None
            for found in () if install is None else install.requirements[:1]:
                span = None
                if offset is not None and self.file.text.startswith(value, offset):
                    before = self.file.text[offset - 1 : offset]
                    quote = before if before in ("'", '"') else ""
                    span = Span(offset, offset + len(value), value, quote, self._line_of(offset))
                yield Statement(found, self.file.path, each.line, span)

    def _line_of(self, offset: int) -> tuple[int, int] | None:
        """Return the line of a list item; ``None`` for a list on one line."""
        text = self.file.text
        start, end = text.rfind("\n", 0, offset) + 1, (text.find("\n", offset) + 1) or len(text)
        return (start, end) if text[start:offset].strip().rstrip("'\"").strip() == "-" else None

    def addition(self, change: Change) -> Replacement | None:
        """Return the insertion of a package behind the last one; ``None`` if they are not on lines of their own."""
        last = list(self.statements())[-1:]
        span = last[0].place if last else None
        if span is None or span.gone is None:
            return None
        line = self.file.text[span.gone[0] : span.start]
        new = f"{line}{requirement_for(change)}{span.quote}"
        text = self.file.text
        at = span.gone[1]
        return (at, at, f"{new}{line_end(text)}") if text[at - 1 : at] == "\n" else (at, at, f"{line_end(text)}{new}")


def _installed(text: str) -> Install | None:
    """Return what a line of ``python_packages`` installs, as pip reads it in a requirements file: options may follow."""
    wanted, *options = text.partition(" #")[0].replace(" -", "\n-").split("\n")
    words = [word for option in options for word in option.replace("=", " ", 1).split()]
    return install_of(["pip", "install", *words, wanted.strip()], {}) if wanted.strip() else None
