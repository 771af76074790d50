"""What was found out about a machine, its packages and its workload (contract ``compat/environment/1``).

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

    ``kind`` is one of :data:`SOURCE_KINDS` (another word is kept as it is); ``details`` holds what else is known:
    ``url``, ``commit``, ``editable``, ``shadows`` (other copies on the path, each with version and path) and
    ``contains`` (text detector → whether the installed file holds that text).
    """

    kind: str
    details: Mapping[str, Any] = EMPTY

    def to_json(self) -> str | dict[str, Any]:
        shown = {key: redacted(value) if isinstance(value, str) else value for key, value in self.details.items()}
        return {"kind": self.kind, **shown} if self.details else self.kind


@record(frozen=True)
class Distribution:
    """One installed or locked distribution; ``name`` is normalised as in PEP 503.

    ``marker`` is set where a file holds several releases of one distribution and says which one applies where.
    ``specifier`` is set instead of ``version`` where only a range is asked for (``">=4.51,<4.57"``, PEP 440).
    ``requires`` are the Requires-Dist lines of an installed one but those of extras, no part of the JSON.
    """

    name: str
    version: str | None = None
    source: Source | None = None
    marker: str | None = None
    specifier: str | None = None
    extra: Mapping[str, Any] = EMPTY
    requires: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
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
    extra: Mapping[str, Any] = EMPTY

    def to_json(self) -> dict[str, Any]:
        return {**_known(vendor=self.vendor, name=self.name, compute_capability=self.compute_capability,
                         memory_mib=self.memory_mib, gfx=self.gfx), **self.extra}  # fmt: skip


@record(frozen=True)
class Option:
    """What a program's ``parser`` is given: ``name`` as it is written, and the ``place`` ("the command", "sft.yaml:3")."""

    parser: str
    name: str
    place: str


@record(frozen=True)
class Workload:
    """What is run, and how.

    ``features`` are known to be on and ``features_absent`` known to be off; every other one is unknown unless
    ``features_complete``. ``origins`` says where each value was read ("train.py:12") and ``script`` what is started; both are
    shown, neither is part of the JSON, and nor are ``code`` (the files to judge) and ``options``.
    """

    task: str | None = None
    trainer: str | None = None
    model: str | None = None
    launcher: str | None = None
    processes: int | None = None
    rank: int | None = None
    batch_size: int | None = None
    precision: str | None = None
    quantization: str | None = None
    features: tuple[str, ...] | None = None
    features_absent: tuple[str, ...] | None = None
    features_complete: bool = False
    extra: Mapping[str, Any] = EMPTY
    origins: Mapping[str, str] = EMPTY
    script: str | None = None
    code: tuple[str, ...] | None = None
    options: tuple[Option, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        return {**_known(
            task=self.task, trainer=self.trainer, model=self.model, launcher=self.launcher,
            processes=self.processes, rank=self.rank, batch_size=self.batch_size, precision=self.precision,
            quantization=self.quantization, features=_listed(self.features),
            features_absent=_listed(self.features_absent), features_complete=self.features_complete or None,
        ), **self.extra}  # fmt: skip


@record(frozen=True)
class Environment:
    """Everything that is known about one place where the software runs.

    ``variables`` maps a name to its value, or to ``None`` where the variable is known not to be set.
    ``folders`` are where its interpreter looks for modules, no part of the JSON.
    ``driver_state`` is ``"not-loaded"`` or ``"mismatched"`` where a driver is installed but cannot be used.
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
    extra: Mapping[str, Any] = EMPTY
    folders: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """The described environment as plain JSON values; unknown keys are left out."""
        workload = None if self.workload is None else self.workload.to_json()
        return {"schema": SCHEMA, **_known(
            python=self.python, os=self.os, machine=self.machine, platform=self.platform, glibc=self.glibc,
            distributions=None if self.distributions is None else [d.to_json() for d in self.distributions],
            distributions_complete=self.distributions_complete or None,
            accelerators=None if self.accelerators is None else [a.to_json() for a in self.accelerators],
            driver=self.driver, driver_state=self.driver_state, cuda_toolkit=self.cuda_toolkit,
            variables=None if self.variables is None else without_secrets(self.variables),
            workload=workload), **self.extra}  # fmt: skip


def _known(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _listed(words: tuple[str, ...] | None) -> list[str] | None:
    return None if words is None else list(words)


def of_no_index(copy: Distribution) -> bool:
    """Whether no index has the like of it: its version says nothing of what it holds."""
    return copy.source is not None and copy.source.kind in _OF_NO_INDEX


def normalized(name: str) -> str:
    """A distribution's name as PEP 503 compares it: lower case, runs of ``-``, ``_`` and ``.`` as one ``-``."""
    name = name.lower().replace("_", "-").replace(".", "-")
    while "--" in name:
        name = name.replace("--", "-")
    return name


# --- What comes out: findings, fixes and the report (contract ``compat/report/1``, ``docs/schemas/report-1.json``).


REPORT_SCHEMA = "compat/report/1"

SEVERITIES = ("error", "warning", "info")
"""Worst first."""

EFFECTS = ("crash", "wrong-result", "hang", "slow", "memory", "install")
ORIGINS = ("rule", "metadata", "build", "surface", "release", "guard", "message", "fleet", "estimate")
CONFIDENCES = ("reproduced", "confirmed", "reported")
FIX_KINDS = ("upgrade", "downgrade", "pin", "source-install", "uninstall", "launch", "config", "env-var", "driver")


@record(frozen=True)
class Fix:
    """One way to fix a finding; alternatives of one finding come best first."""

    kind: str
    package: str | None = None
    spec: str | None = None
    text: str = ""
    command: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "package": self.package, "spec": self.spec, "text": self.text, "command": self.command}


@record(frozen=True)
class Location:
    """Where a finding was read: a file, and a 1-based line of it."""

    file: str
    line: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "line": self.line}


@record(frozen=True)
class Finding:
    """One known-bad combination that holds (``hit``) or could hold (``possible``) here.

    ``packages`` maps each distribution it is about to its version here (``None`` where unknown), ``facts`` lists the
    other facts it rests on, in the vocabulary of the contract; ``missing`` lists in the same vocabulary what would have
    to be known to decide it, and ``unknown`` the same in full (``workload.launcher``, ``distributions.trl``).
    ``here`` says in words why it applies to this environment. ``target`` names the declared deployment and
    ``selections`` the installable selections of a lock file ("extra vllm") it was found for; empty means for all of them.
    ``likelihood`` is that of a possible finding (``None``: by the kind of its unknown facts alone); it is not part of the JSON.
    """

    rule: str
    origin: str
    verdict: str
    severity: str
    effect: str
    title: str
    why: str
    confidence: str
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

    def to_json(self) -> dict[str, Any]:
        found = {
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
        """Sort key: worst first, certain before possible, packages in known versions before others, then by name."""
        unknown = self.verdict != "hit" and None in self.packages.values()
        return SEVERITIES.index(self.severity), self.verdict != "hit", unknown, self.rule


@record(frozen=True)
class Report:
    """Findings about one environment. ``notes`` are what could not be read or was taken for granted, in words.

    ``file`` is what the environment was read from, ``None`` for a machine. Where a file holds several environments (services
    of a compose file, stages of a Dockerfile), ``parts`` are all of them, each with what it is called, and ``environment``
    is the one with the worst finding. ``ignored`` and ``known`` count the findings that are left out because the project
    ignores them, or because a baseline has them.
    """

    environment: Environment
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    exit: int = 0
    file: str | None = None
    parts: tuple[tuple[str, Environment], ...] = ()
    ignored: int = 0
    known: int = 0

    def to_json(self) -> dict[str, Any]:
        parts = [{"name": name, "environment": environment.to_json()} for name, environment in self.parts]
        return {
            "schema": REPORT_SCHEMA, **({} if self.file is None else {"file": self.file}),
            "environment": self.environment.to_json(),
            **({"parts": parts} if parts else {}),
            "findings": [finding.to_json() for finding in self.findings], "notes": list(self.notes),
            "plan": None, "exit": self.exit,
        }  # fmt: skip


@record(frozen=True)
class Outcome:
    """What became of one thing that was to be judged: a report, or the one line that says why there is none."""

    name: str
    report: Report | None = None
    error: InputError | None = None

    @property
    def exit(self) -> int:
        """The exit code of this one; 2 where it could not be read."""
        return 2 if self.report is None else self.report.exit

    def to_json(self) -> dict[str, Any]:
        if self.report is None:
            return {"file": self.name, "error": str(self.error), "exit": 2}
        return {"file": self.name, **self.report.to_json()}


def exit_code(findings: tuple[Finding, ...], threshold: str) -> int:
    """1 where a finding that certainly holds is at or above ``threshold``, else 0 (``"never"``: always 0).

    A finding that is only possible never fails a build by itself: it is a question, and it is printed as one.
    """
    if threshold == "never":
        return 0
    limit = SEVERITIES.index(threshold)
    return int(any(f.verdict == "hit" and SEVERITIES.index(f.severity) <= limit for f in findings))
