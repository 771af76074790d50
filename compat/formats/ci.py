"""Jobs of GitHub Actions and GitLab CI: one listing for each that installs or starts something.

Of a workflow the steps are read in order, of a pipeline also ``before_script``, ``extends`` and the image.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from compat.errors import InputError
from compat.formats.installs.edit import InstallScript
from compat.formats.installs.files import InstallFormat
from compat.formats.installs.unread import mentions_install
from compat.formats.installs.words import is_release
from compat.formats.jobs import Job, JobFile, Script, unread_installs, variables_of
from compat.formats.listing import Listing
from compat.formats.pins import pins_of
from compat.model import Environment
from compat.records import record, replace
from compat.redact import excerpt
from compat.syntax.yaml import Document, Table, Value

_SHELLS_OF_STEPS = ("", "bash", "sh", "pwsh", "powershell", "cmd")
"""Shells with the same syntax for install commands."""
_SYSTEMS_OF_RUNNERS = {"ubuntu": "linux", "windows": "windows", "macos": "darwin", "linux": "linux"}
_PYTHON = ("actions/setup-python", "astral-sh/setup-uv", "conda-incubator/setup-miniconda")
_OF_MATRIX = re.compile(r"python-version['\"]?\s*:\s*['\"]?\$\{\{\s*matrix\.([\w-]+)\s*\}\}")
_MOST_PYTHONS = 12
_WORKFLOW = "a GitHub Actions workflow"
_NOTHING = "no job installs a package or starts a known program"


@record(frozen=True)
class _WorkflowStep:
    """A step that runs shell text."""

    run: Value
    certain: bool
    directory: str | None
    variables: Mapping[str, str]


class Workflow(InstallFormat):
    """A workflow; :class:`InputError` for invalid YAML and for values of a wrong type."""

    kind = "workflow"
    apply = "git add {path}"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        file = JobFile(path, text, _WORKFLOW)
        jobs = (_WorkflowJob(file, document, name, table) for document, name, table in _workflow_jobs(file))
        found = [listing for job in jobs for listing in job.listings()]
        kept = tuple(each for each in found if each.is_relevant)
        return kept or (Listing(path, self.kind, notes=(f"{path}: {_NOTHING}",)),)

    def collect(self, script: InstallScript) -> None:
        file = JobFile(script.path, script.text, _WORKFLOW)
        for document, name, table in _workflow_jobs(file):
            file.edited(script, [step.run for step in _WorkflowJob(file, document, name, table).steps()])


def _workflow_jobs(file: JobFile) -> Iterator[tuple[Document, str, Table]]:
    """Yield the jobs of a workflow by name, with the workflow-level settings under separate keys."""
    for document in file.documents():
        root = document.table(document.root, "the workflow")
        outer = {f"\0{key}": root[key] for key in ("env", "defaults") if key in root}
        for name, value in document.table(root.get("jobs"), "jobs").items():
            yield document, name, {**document.table(value, f"jobs.{name}"), **outer}


class _WorkflowJob:
    """A job being converted to a listing."""

    def __init__(self, file: JobFile, document: Document, name: str, table: Table) -> None:
        self.file = file
        self.document = document
        self.name = name
        self.table = table
        self.unread: dict[int, str] = {}
        """What was not read, by line."""
        self.elsewhere: dict[int, str] = {}
        self.local: list[str] = []
        """The actions and workflows of the project that it uses."""
        outer = variables_of(document, table.get("\0env"), "env")
        self.variables = {**outer, **variables_of(document, table.get("env"), "env")}

    def _default(self, key: str) -> str:
        """Return ``defaults.run`` of the job or of the workflow."""
        for place in ("defaults", "\0defaults"):
            run = self.document.table(self.document.table(self.table.get(place), "defaults").get("run"), "defaults.run")
            if key in run:
                return self.document.text(run[key], key) or ""
        return ""

    def _own_steps(self) -> list[Table]:
        return [self.document.table(each, "a step") for each in self.document.items(self.table.get("steps"), "steps")]

    def steps(self) -> Iterator[_WorkflowStep]:
        """Yield the steps that run shell text; those in another language are skipped."""
        for step in self._own_steps():
            run = step.get("run")
            shell = self.document.text(step.get("shell"), "shell") or self._default("shell")
            # an action that is given an install command, or is part of the project
            for key, value in self.document.table(step.get("with"), "with").items():
                if value.is_text and mentions_install(str(value.content)):
                    self.unread[value.line] = f"what the action installs was not read ({excerpt(key, 40)})"
            action = step.get("uses")
            if action is not None and str(action.content).startswith("./"):
                self.elsewhere[action.line] = f"what the action {excerpt(str(action.content), 60)} installs was not read"
                self.local.append(str(action.content))
            if run is None or not run.is_text or (shell.split() or [""])[0] not in _SHELLS_OF_STEPS:
                if run is not None and mentions_install(str(run.content)):
                    self.unread[run.line] = (
                        f"what the step installs was not read: it is not a shell script ({excerpt(shell, 20)})"
                    )
                continue
            directory = self.document.text(step.get("working-directory"), "working-directory") or self._default(
                "working-directory"
            )
            variables = {**self.variables, **variables_of(self.document, step.get("env"), "env")}
            yield _WorkflowStep(run, "if" not in step, directory or None, variables)

    def listings(self) -> Iterator[Listing]:
        """Yield what the job installs, once for each Python of its matrix."""
        pythons = self._pythons()
        for version in pythons or (None,):
            yield self.listing(version, f"job {self.name}, Python {version}" if len(pythons) > 1 else f"job {self.name}")

    def listing(self, python: str | None, label: str) -> Listing:
        document = self.document
        container = self.table.get("container")
        if container is not None and container.is_table:
            container = document.table(container, "container").get("image")
        image = document.text(container, "container") or None
        job = Job(self.file.path, image=image, line=1 if container is None else container.line)
        for step in self.steps():
            script = Script(tuple(self.file.placed(step.run)), step.certain, step.directory)
            job.run(script, step.variables)
        for line, problem in self.unread.items():
            job.files.not_read(f"{self.file.path}:{line}", problem)
        for line, remark in self.elsewhere.items():
            job.files.not_here(f"{self.file.path}:{line}", remark)
        if "uses" in self.table:
            self.local.append(str(self.table["uses"].content))
            job.files.not_here(f"{self.file.path}:{self.table['uses'].line}", "the workflow that the job uses was not read")
        for name in self.local:
            for file in (name,) if name.endswith((".yml", ".yaml")) else (f"{name}/action.yml", f"{name}/action.yaml"):
                job.files.loose += pins_of(file, job.files.text(file, None, "uses") or "")
        job.start_last_command(self.variables, only_jobs=True)  # most jobs run tests or build something
        runner = self.table.get("runs-on")
        system = document.text(runner, "runs-on") if runner is not None and runner.is_text else None
        system = _SYSTEMS_OF_RUNNERS.get((system or "").partition("-")[0].lower())
        context = Environment(python=python, os=system)
        listing = job.listing("workflow", label=label, context=context, variables=self.variables)
        if any("${.." in str(step.run.content) for step in self.steps()):
            note = f"{self.file.path}: job {self.name}: what ${{{{ … }}}} expands to is unknown"
            return replace(listing, notes=(note, *listing.notes))
        return listing

    def _pythons(self) -> tuple[str, ...]:
        """Return the Pythons that an action installs: a version, or those that the matrix has for it; empty if unknown."""
        document = self.document
        steps = [
            step for step in self._own_steps() if (document.text(step.get("uses"), "uses") or "").partition("@")[0] in _PYTHON
        ]
        version = document.table(steps[0].get("with"), "with").get("python-version") if len(steps) == 1 else None
        text = document.text(version, "python-version") if version is not None and version.is_text else None
        if version is None or text is None:
            return ()
        key = _OF_MATRIX.search(self.file.written_on(version.line))
        versions = self._of_matrix(key[1]) if key is not None else (text,)
        return tuple(dict.fromkeys(each for each in versions if is_release(each, 2, 3)))[:_MOST_PYTHONS]

    def _of_matrix(self, key: str) -> Iterator[str]:
        """Yield the values that ``strategy.matrix`` has for a key, also those of combinations that it includes."""
        document = self.document
        matrix = document.inner(document.inner(self.table.get("strategy"), "strategy").get("matrix"), "strategy.matrix")
        listed = matrix.get(key)
        values = list(document.items(listed, f"matrix.{key}")) if listed is not None and listed.is_list else []
        more = matrix.get("include")
        for each in document.items(more, "matrix.include") if more is not None and more.is_list else ():
            value = document.inner(each, "matrix.include").get(key)
            values += [] if value is None else [value]
        yield from (document.text(each, f"matrix.{key}") or "" for each in values if each.is_text)


_NO_JOBS_OF_GITLAB = (
    "stages", "variables", "default", "image", "services", "before_script", "after_script", "cache", "include",
    "workflow", "spec",
)  # fmt: skip
_SCRIPTS_OF_GITLAB = ("before_script", "script")
_DEEPEST = 10
_MOST_LINES = 20_000
"""Lines of all jobs together, each with its ``before_script`` and what it extends; in real files fewer than 2,000."""


class GitLab(InstallFormat):
    """A pipeline of GitLab CI; :class:`InputError` for invalid YAML and for values of a wrong type."""

    kind = "gitlab"
    apply = "git add {path}"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        pipeline = _Pipeline(path, text)
        found = [pipeline.listing(name, table, self.kind) for name, table in pipeline.jobs()]
        outside = pipeline.outside()
        kept = tuple(each for each in found if each.is_relevant)
        kept = kept or (Listing(path, self.kind, notes=(f"{path}: {_NOTHING}",), unread=unread_installs(path, text)),)
        return tuple(replace(each, notes=(*each.notes, *outside), elsewhere=(*each.elsewhere, *outside)) for each in kept)

    def collect(self, script: InstallScript) -> None:
        pipeline = _Pipeline(script.path, script.text)
        every = {value.start: value for _, table in pipeline.jobs() for value in pipeline.scripts(table)}
        pipeline.file.edited(script, every.values())


class _Pipeline:
    """The jobs and templates of a file, and their defaults."""

    def __init__(self, path: str, text: str) -> None:
        self.file = JobFile(path, text, "a GitLab CI pipeline")
        self._tables: dict[str, tuple[Document, Table]] = {}
        self._root: Table = {}
        self._lines = 0
        self._document = Document("", path)
        for document in self.file.documents():
            self._document = document
            self._root = document.table(document.root, "the pipeline")

    def jobs(self) -> Iterator[tuple[str, Table]]:
        """Yield the jobs that have a script, with what they extend."""
        defaults: Table = {key: self._root[key] for key in ("image", "before_script") if key in self._root}
        defaults.update(self._document.inner(self._root.get("default"), "default"))
        for name, value in self._root.items():
            if name not in _NO_JOBS_OF_GITLAB and not name.startswith(".") and value.is_table:
                table = self._extended(value, 0)
                if "script" in table:
                    yield name, {**defaults, **table}

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
        for key in _SCRIPTS_OF_GITLAB:
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
