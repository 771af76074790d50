"""GitHub Actions workflows: one listing for each job that installs or starts something, with its steps in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from compat.formats.installs.files import InstallFormat
from compat.formats.installs.unread import mentions_install
from compat.formats.installs.words import is_release
from compat.formats.jobs import Job, JobFile, Script, variables_of
from compat.formats.listing import Listing
from compat.model import Environment
from compat.records import record, replace
from compat.redact import excerpt
from compat.syntax.yaml import Document, Value

if TYPE_CHECKING:
    from compat.formats.installs.edit import InstallScript
    from compat.syntax.yaml import Table


_SHELLS = ("", "bash", "sh", "pwsh", "powershell", "cmd")
"""Shells with the same syntax for install commands."""
_SYSTEMS = {"ubuntu": "linux", "windows": "windows", "macos": "darwin", "linux": "linux"}
_EXPECTED = "a workflow of GitHub Actions"
_NOTHING = "no job installs a package or starts a known program"


@record(frozen=True)
class _Step:
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
        file = JobFile(path, text, _EXPECTED)
        found = [_Job(file, document, name, table).listing() for document, name, table in _jobs(file)]
        kept = tuple(
            each for each in found if each.entries or each.unread or each.elsewhere or each.context.workload is not None
        )
        return kept or (Listing(path, self.kind, notes=(f"{path}: {_NOTHING}",)),)

    def collect(self, script: InstallScript) -> None:
        file = JobFile(script.path, script.text, _EXPECTED)
        for document, name, table in _jobs(file):
            file.edited(script, [step.run for step in _Job(file, document, name, table).steps()])


def _jobs(file: JobFile) -> Iterator[tuple[Document, str, Table]]:
    """Yield the jobs of a workflow by name, with the workflow-level settings under separate keys."""
    for document in file.documents():
        root = document.table(document.root, "the workflow")
        outer = {f"\0{key}": root[key] for key in ("env", "defaults") if key in root}
        for name, value in document.table(root.get("jobs"), "jobs").items():
            yield document, name, {**document.table(value, f"jobs.{name}"), **outer}


class _Job:
    """A job being converted to a listing."""

    def __init__(self, file: JobFile, document: Document, name: str, table: Table) -> None:
        self.file = file
        self.document = document
        self.name = name
        self.table = table
        self.unread: dict[int, str] = {}
        """What was not read, by line."""
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

    def steps(self) -> Iterator[_Step]:
        """Yield the steps that run shell text; those in another language are skipped."""
        for step in self._own_steps():
            run = step.get("run")
            shell = self.document.text(step.get("shell"), "shell") or self._default("shell")
            if run is None or not run.is_text or (shell.split() or [""])[0] not in _SHELLS:
                if run is not None and mentions_install(str(run.content)):
                    self.unread[run.line] = (
                        f"what the step installs was not read: it is not a shell script ({excerpt(shell, 20)})"
                    )
                continue
            directory = self.document.text(step.get("working-directory"), "working-directory") or self._default(
                "working-directory"
            )
            variables = {**self.variables, **variables_of(self.document, step.get("env"), "env")}
            yield _Step(run, "if" not in step, directory or None, variables)

    def listing(self) -> Listing:
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
        if "uses" in self.table:
            job.files.not_here(f"{self.file.path}:{self.table['uses'].line}", "the workflow that the job uses was not read")
        job.start_last_command(self.variables, only_jobs=True)  # most jobs run tests or build something
        context = Environment(python=self._python(), os=self._system())
        listing = job.listing("workflow", label=f"job {self.name}", context=context, variables=self.variables)
        if any("${.." in str(step.run.content) for step in self.steps()):
            note = f"{self.file.path}: job {self.name}: what ${{{{ … }}}} expands to is unknown"
            return replace(listing, notes=(note, *listing.notes))
        return listing

    def _python(self) -> str | None:
        """Return the Python that ``actions/setup-python`` or ``astral-sh/setup-uv`` installs, if it is a single version."""
        found = []
        for step in self._own_steps():
            uses = self.document.text(step.get("uses"), "uses") or ""
            if uses.partition("@")[0] in ("actions/setup-python", "astral-sh/setup-uv", "conda-incubator/setup-miniconda"):
                version = self.document.table(step.get("with"), "with").get("python-version")
                found.append(self.document.text(version, "python-version") if version is not None and version.is_text else None)
        text = found[0] if len(found) == 1 else None
        return text if text is not None and is_release(text, 2, 3) else None

    def _system(self) -> str | None:
        value = self.table.get("runs-on")
        if value is None or not value.is_text:
            return None
        return _SYSTEMS.get((self.document.text(value, "runs-on") or "").partition("-")[0].lower())
