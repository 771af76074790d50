"""The data model: a machine, its packages and its workload (contract ``compat/environment/1``), and the report about them.

``None`` means *unknown* everywhere in this module, an empty tuple or mapping means *none*. The JSON form is read by
``compat.formats.described`` and written by :func:`Environment.to_json`; both are documented in
``docs/schemas/environment-1.json``.
"""

from __future__ import annotations

from compat.records import record
from compat.redact import redacted, without_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from compat.errors import InputError


SCHEMA = "compat/environment/1"

SOURCE_KINDS = ("index", "vcs", "url", "directory", "conda", "image", "nightly")
_OF_NO_INDEX = ("vcs", "directory", "image", "nightly", "url")
LAUNCHERS = ("python", "accelerate", "torchrun", "deepspeed", "ray", "slurm")
SYSTEMS = ("linux", "windows", "darwin")
DRIVER_STATES = ("not-loaded", "mismatched")

EMPTY: Mapping[str, Any] = {}


@record(frozen=True)
class Source:
    """Where a distribution came from.

    ``kind`` is one of :data:`SOURCE_KINDS` (other values are kept unchanged); ``details`` holds everything else known:
    ``url``, ``more`` (additional indexes), ``commit``, ``editable``, ``shadows`` (other copies on the path, each with version
    and path) and ``contains`` (text detector → whether the installed file contains that text).
    """

    kind: str
    details: Mapping[str, Any] = EMPTY

    def to_json(self) -> str | dict[str, object]:
        shown = {key: redacted(value) if isinstance(value, str) else value for key, value in self.details.items()}
        return {"kind": self.kind, **shown} if self.details else self.kind


@record(frozen=True)
class Distribution:
    """One installed or locked distribution; ``name`` is normalised as in PEP 503.

    ``marker`` is set if a file lists several releases of one distribution and selects between them by marker.
    ``specifier`` is set instead of ``version`` if only a range is required (``">=4.51,<4.57"``, PEP 440).
    ``requires`` holds the Requires-Dist lines of an installed distribution, without those of extras; not part of the JSON.
    """

    name: str
    version: str | None = None
    source: Source | None = None
    marker: str | None = None
    specifier: str | None = None
    extra: Mapping[str, Any] = EMPTY
    requires: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, object]:
        source = None if self.source is None else self.source.to_json()
        known = _known(name=self.name, version=self.version, specifier=self.specifier, source=source, marker=self.marker)
        return {**known, **self.extra}


@record(frozen=True)
class Accelerator:
    """One device; ``compute_capability`` like ``"9.0"`` (NVIDIA), ``gfx`` like ``"gfx942"`` (AMD), memory in MiB."""

    vendor: str | None = None
    name: str | None = None
    compute_capability: str | None = None
    memory_mib: int | None = None
    gfx: str | None = None
    extra: Mapping[str, object] = EMPTY

    def to_json(self) -> dict[str, object]:
        return {**_known(vendor=self.vendor, name=self.name, compute_capability=self.compute_capability,
                         memory_mib=self.memory_mib, gfx=self.gfx), **self.extra}  # fmt: skip


@record(frozen=True)
class Option:
    """An option passed to a program's ``parser``: ``name`` as written, its ``place`` ("the command", "sft.yaml:3"), its value.

    ``value`` is ``None`` for a switch and for anything but a string or a number that is known before the program runs.
    """

    parser: str
    name: str
    place: str
    value: str | None = None


@record(frozen=True)
class Workload:
    """What is run, and how.

    ``model_type`` is what the configuration of a model's folder says of its architecture ("qwen3_vl").
    ``features`` are known to be on and ``features_absent`` known to be off; all others are unknown unless
    ``features_complete``. ``origins`` maps each value to where it was read ("train.py:12") and ``script`` is the file that is
    started; both are displayed. Neither is part of the JSON, nor are ``code`` (the files to check), ``options``, and the
    ``program`` that the command names ("accelerate").
    """

    task: str | None = None
    trainer: str | None = None
    model: str | None = None
    model_type: str | None = None
    launcher: str | None = None
    processes: int | None = None
    nodes: int | None = None
    rank: int | None = None
    batch_size: int | None = None
    precision: str | None = None
    quantization: str | None = None
    features: tuple[str, ...] | None = None
    features_absent: tuple[str, ...] | None = None
    features_complete: bool = False
    extra: Mapping[str, object] = EMPTY
    origins: Mapping[str, str] = EMPTY
    script: str | None = None
    code: tuple[str, ...] | None = None
    options: tuple[Option, ...] | None = None
    program: str | None = None

    def to_json(self) -> dict[str, object]:
        return {**_known(
            task=self.task, trainer=self.trainer, model=self.model, model_type=self.model_type, launcher=self.launcher,
            processes=self.processes, nodes=self.nodes, rank=self.rank, batch_size=self.batch_size, precision=self.precision,
            quantization=self.quantization, features=_listed(self.features),
            features_absent=_listed(self.features_absent), features_complete=self.features_complete or None,
        ), **self.extra}  # fmt: skip


@record(frozen=True)
class Environment:
    """Everything known about one environment in which the software runs.

    ``variables`` maps a name to its value, or to ``None`` if the variable is known to be unset.
    ``folders`` are the interpreter's module search path, ``started`` says that the program of the workload already runs, so
    that there is no time to follow its imports; neither is part of the JSON.
    ``driver_state`` is ``"not-loaded"`` or ``"mismatched"`` if a driver is installed but unusable.
    """

    python: str | None = None
    os: str | None = None
    machine: str | None = None
    platform: str | None = None
    glibc: str | None = None
    distributions: tuple[Distribution, ...] | None = None
    distributions_complete: bool = False
    accelerators: tuple[Accelerator, ...] | None = None
    driver: str | None = None
    driver_state: str | None = None
    cuda_toolkit: str | None = None
    variables: Mapping[str, str | None] | None = None
    workload: Workload | None = None
    extra: Mapping[str, object] = EMPTY
    folders: tuple[str, ...] | None = None
    started: bool = False

    def to_json(self) -> dict[str, object]:
        """The described environment as plain JSON values; unknown values are omitted."""
        workload = None if self.workload is None else self.workload.to_json()
        return {"schema": SCHEMA, **_known(
            python=self.python, os=self.os, machine=self.machine, platform=self.platform, glibc=self.glibc,
            distributions=None if self.distributions is None else [d.to_json() for d in self.distributions],
            distributions_complete=self.distributions_complete or None,
            accelerators=None if self.accelerators is None else [a.to_json() for a in self.accelerators],
            driver=self.driver, driver_state=self.driver_state, cuda_toolkit=self.cuda_toolkit,
            variables=None if self.variables is None else without_secrets(self.variables),
            workload=workload), **self.extra}  # fmt: skip


def _known(**values: object) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def _listed(words: tuple[str, ...] | None) -> list[str] | None:
    return None if words is None else list(words)


def of_no_index(copy: Distribution) -> bool:
    """Whether the distribution does not come from an index, so that its version does not identify its content."""
    return copy.source is not None and copy.source.kind in _OF_NO_INDEX


def is_release(copy: Distribution) -> bool:
    """Whether the version identifies the content: it is from an index, or the address is that of a wheel of pure Python.

    A compiled wheel installed by URL is often a different build, with different requirements.
    """
    if not of_no_index(copy):
        return True
    source, version = copy.source, copy.version
    if source is None or source.kind != "url" or version is None or "+" in version:
        return False
    return str(source.details.get("url")).partition("?")[0].lower().endswith("-none-any.whl")


def normalized(name: str) -> str:
    """A distribution's name as PEP 503 compares it: lower case, runs of ``-``, ``_`` and ``.`` as one ``-``."""
    name = name.lower().replace("_", "-").replace(".", "-")
    while "--" in name:
        name = name.replace("--", "-")
    return name


# --- Output: findings, fixes and the report (contract ``compat/report/1``, ``docs/schemas/report-1.json``).


REPORT_SCHEMA = "compat/report/1"

SEVERITIES = ("error", "warning", "info")
"""Worst first."""

EFFECTS = ("crash", "wrong-result", "hang", "slow", "memory", "install")
CONFIDENCES = ("reproduced", "confirmed", "reported")
FIX_KINDS = ("upgrade", "downgrade", "pin", "source-install", "uninstall", "launch", "config", "env-var", "driver")


@record(frozen=True)
class Fix:
    """One way to fix a finding; the alternatives of a finding are ordered best first."""

    kind: str
    package: str | None = None
    spec: str | None = None
    text: str = ""
    command: str | None = None

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "package": self.package, "spec": self.spec, "text": self.text, "command": self.command}


@record(frozen=True)
class Location:
    """Where a finding was read: a file and a 1-based line in it."""

    file: str
    line: int | None = None

    def to_json(self) -> dict[str, object]:
        return {"file": self.file, "line": self.line}


@record(frozen=True)
class Finding:
    """One known-bad combination that applies (``hit``) or may apply (``possible``) to this environment.

    ``packages`` maps each distribution involved to its version here (``None`` if unknown), ``facts`` lists the other facts
    the finding depends on, in the vocabulary of the contract; ``missing`` lists in the same vocabulary the facts needed to
    decide it, and ``unknown`` the same facts by full name (``workload.launcher``, ``distributions.trl``).
    ``here`` explains why it applies to this environment. ``target`` names the declared deployment and
    ``selections`` the installable selections of a lock file ("extra vllm") it was found for; empty means all of them.
    ``likelihood`` is that of a possible finding (``None``: based on its unknown facts alone); not part of the JSON.
    What most findings have in common is the default: a confirmed error that ends the job.
    """

    rule: str
    origin: str
    title: str
    why: str
    verdict: str = "hit"
    severity: str = "error"
    effect: str = "crash"
    confidence: str = "confirmed"
    packages: Mapping[str, str | None] = EMPTY
    facts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    evidence: tuple[str, ...] = ()
    here: str = ""
    location: Location | None = None
    target: str | None = None
    selections: tuple[str, ...] = ()
    likelihood: float | None = None

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "rule": self.rule, "origin": self.origin, "verdict": self.verdict, "missing": list(self.missing),
            "unknown": list(self.unknown), "severity": self.severity, "effect": self.effect, "title": self.title,
            "why": self.why, "here": self.here, "packages": dict(self.packages), "facts": list(self.facts),
            "fixes": [fix.to_json() for fix in self.fixes], "evidence": list(self.evidence),
            "confidence": self.confidence, "location": None if self.location is None else self.location.to_json(),
        }  # fmt: skip
        if self.target is not None:
            found["target"] = self.target
        if self.selections:
            found["selections"] = list(self.selections)
        return found

    def order(self) -> tuple[int, int, bool, str]:
        """Sort key: worst first, certain before possible, packages with known versions before others, then by rule."""
        unknown = self.verdict != "hit" and None in self.packages.values()
        return SEVERITIES.index(self.severity), self.verdict != "hit", unknown, self.rule


@record(frozen=True)
class Report:
    """Findings about one environment. ``notes`` describe what could not be read or was assumed.

    ``file`` is the file the environment was read from, ``None`` for a machine. If a file defines several environments
    (services of a compose file, stages of a Dockerfile), ``parts`` holds all of them with their names, and ``environment``
    is the one with the worst finding. ``ignored`` and ``known`` count the findings left out because the project ignores
    them or because a baseline contains them. ``partial``: something that decides what gets installed was not read.
    ``together`` are the commands that carry out fixes of all errors, if those of single findings are not to be combined freely.
    """

    environment: Environment
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    exit: int = 0
    file: str | None = None
    parts: tuple[tuple[str, Environment], ...] = ()
    ignored: int = 0
    known: int = 0
    partial: bool = False
    together: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        parts = [{"name": name, "environment": environment.to_json()} for name, environment in self.parts]
        return {
            "schema": REPORT_SCHEMA, **({} if self.file is None else {"file": self.file}),
            "environment": self.environment.to_json(),
            **({"parts": parts} if parts else {}),
            "findings": [finding.to_json() for finding in self.findings], "notes": list(self.notes),
            **({"together": list(self.together)} if self.together else {}),
            "plan": None, "exit": self.exit,
        }  # fmt: skip


@record(frozen=True)
class Outcome:
    """The result for one input: a report, or the error that prevented one.

    ``project`` is the file of the project that declares its targets, for outputs that need a file for every finding.
    """

    name: str
    report: Report | None = None
    error: InputError | None = None
    project: str | None = None

    @property
    def exit(self) -> int:
        """The exit code for this input; 2 if it could not be read."""
        return 2 if self.report is None else self.report.exit

    def to_json(self) -> dict[str, object]:
        if self.report is None:
            return {"file": self.name, "error": str(self.error), "exit": 2}
        return {"file": self.name, **self.report.to_json()}


def exit_code(findings: tuple[Finding, ...], threshold: str) -> int:
    """1 if a certain finding is at or above ``threshold``, else 0 (``"never"``: always 0).

    A possible finding never fails a build by itself; it is printed as a question.
    """
    if threshold == "never":
        return 0
    limit = SEVERITIES.index(threshold)
    return int(any(f.verdict == "hit" and SEVERITIES.index(f.severity) <= limit for f in findings))
