"""GitLab CI: one listing for each job that installs or starts something, with ``before_script``, ``extends`` and its image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.formats.installs.files import InstallFormat
from compat.formats.jobs import Job, JobFile, Script, variables_of
from compat.formats.listing import Listing
from compat.model import Environment
from compat.records import replace
from compat.syntax.yaml import Document, Value

if TYPE_CHECKING:
    from compat.formats.installs.edit import InstallScript
    from compat.syntax.yaml import Table


_SETTINGS = ("stages", "variables", "default", "image", "services", "before_script", "after_script", "cache", "include",
             "workflow", "spec")  # fmt: skip
_SCRIPTS = ("before_script", "script")
_DEEPEST = 10
_MOST_LINES = 20_000
"""Lines of all jobs together, each with its ``before_script`` and what it extends; in real files fewer than 2,000."""
_NOTHING = "no job installs a package or starts a known program"


class GitLab(InstallFormat):
    """A pipeline of GitLab CI; :class:`InputError` for invalid YAML and for values of a wrong type."""

    kind = "gitlab"
    apply = "git add {path}"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        pipeline = _Pipeline(path, text)
        found = [pipeline.listing(name, table, self.kind) for name, table in pipeline.jobs()]
        outside = pipeline.outside()
        kept = tuple(each for each in found if each.entries or each.unread or each.context.workload is not None)
        kept = kept or (Listing(path, self.kind, notes=(f"{path}: {_NOTHING}",)),)
        return tuple(replace(each, notes=(*each.notes, *outside), elsewhere=(*each.elsewhere, *outside)) for each in kept)

    def collect(self, script: InstallScript) -> None:
        pipeline = _Pipeline(script.path, script.text)
        every = {value.start: value for _, table in pipeline.jobs() for value in pipeline.scripts(table)}
        pipeline.file.edited(script, every.values())


class _Pipeline:
    """The jobs and templates of a file, and their defaults."""

    def __init__(self, path: str, text: str) -> None:
        self.file = JobFile(path, text, "a pipeline of GitLab CI")
        self._tables: dict[str, tuple[Document, Table]] = {}
        self._root: Table = {}
        self._lines = 0
        self._document = Document("", path)
        for document in self.file.documents():
            self._document = document
            self._root = document.table(document.root, "the pipeline")

    def jobs(self) -> Iterator[tuple[str, Table]]:
        """Yield the jobs that have a script, with what they extend."""
        for name, value in self._root.items():
            if name not in _SETTINGS and not name.startswith(".") and value.is_table:
                table = self._extended(value, 0)
                if "script" in table:
                    yield name, {**self._defaults(), **table}

    def _defaults(self) -> Table:
        outer: Table = {key: self._root[key] for key in ("image", "before_script") if key in self._root}
        return {**outer, **self._document.inner(self._root.get("default"), "default")}

    def _extended(self, value: Value, depth: int) -> Table:
        own = self._document.table(value, "a job")
        parent = own.get("extends")
        if parent is None or depth > _DEEPEST:
            return own
        names = self._document.items(parent, "extends") if parent.is_list else [parent]
        merged: Table = {}
        for each in names:
            template = self._root.get(self._document.text(each, "extends") or "")
            if template is not None and template.is_table:
                merged.update(self._extended(template, depth + 1))
        return {**merged, **own}

    def outside(self) -> tuple[str, ...]:
        """Return a note if jobs or templates come from other files."""
        value = self._root.get("include")
        return () if value is None else (f"{self.file.path}:{value.line}: include was not read: it may add jobs and templates",)

    def scripts(self, table: Table) -> Iterator[Value]:
        """Yield the shell text of a job in order."""
        for key in _SCRIPTS:
            if key in table:
                yield from self._texts(table[key], 0)

    def _texts(self, value: Value, depth: int) -> Iterator[Value]:
        """Yield the texts of a script: a text, a list, lists inside it, and ``!reference [.template, script]``."""
        if value.is_text:
            yield value
        elif value.is_list and depth < _DEEPEST:
            items = self._document.items(value, "a script")
            names = [self._document.text(each, "a reference") if each.is_text else None for each in items]
            if depth and len(names) == 2 and names[0] in self._root and names[1] is not None:
                referred = self._document.inner(self._root.get(names[0] or ""), "a template").get(names[1])
                items = [] if referred is None else [referred]
            for each in items:
                yield from self._texts(each, depth + 1)

    def listing(self, name: str, table: Table, kind: str) -> Listing:
        document = self._document
        image = table.get("image")
        if image is not None and image.is_table:
            image = document.table(image, "image").get("name")
        outer = self._root.get("variables")
        variables = {**self._variables(outer), **self._variables(table.get("variables"))}
        job = Job(self.file.path, image=document.text(image, "image") or None, line=1 if image is None else image.line)
        lines = [placed for value in self.scripts(table) for placed in self.file.placed(value)]
        self._lines += len(lines)
        if self._lines > _MOST_LINES:
            raise InputError(f"its jobs run more than {_MOST_LINES} lines", self.file.path, lines[0].number)
        job.run(Script(tuple(lines)), variables)  # one shell runs all of them
        job.start_last_command(variables, only_jobs=True)
        return job.listing(kind, label=f"job {name}", context=Environment(os="linux"), variables=variables)

    def _variables(self, value: Value | None) -> dict[str, str]:
        if value is None or not value.is_table:
            return {}
        plain = {key: each for key, each in self._document.table(value, "variables").items() if each.is_text}
        return variables_of(self._document, value.as_table(plain), "variables")
