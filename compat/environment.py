"""What was found out about a machine, its packages and its workload (contract ``compat/environment/1``).

``None`` means *unknown* everywhere in this module, an empty tuple or mapping means *none*. The JSON form is read by
``compat.read.described`` and written by :func:`Environment.to_json`; both are documented in
``docs/schemas/environment-1.json``.
"""

from __future__ import annotations

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

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
        return {"kind": self.kind, **self.details} if self.details else self.kind


@record(frozen=True)
class Distribution:
    """One installed or locked distribution; ``name`` is normalised as in PEP 503.

    ``marker`` is set where a file holds several releases of one distribution and says which one applies where.
    ``specifier`` is set instead of ``version`` where only a range is asked for (``">=4.51,<4.57"``, PEP 440).
    """

    name: str
    version: str | None = None
    source: Source | None = None
    marker: str | None = None
    specifier: str | None = None
    extra: Mapping[str, Any] = EMPTY

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
class Workload:
    """What is run, and how.

    ``features`` are known to be on and ``features_absent`` known to be off; every other one is unknown unless
    ``features_complete``. ``origins`` says where each value was read ("train.py:12") and ``script`` what is started; both are
    shown, neither is part of the JSON.
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

    def to_json(self) -> dict[str, Any]:
        """The described environment as plain JSON values; unknown keys are left out."""
        workload = None if self.workload is None else self.workload.to_json()
        return {"schema": SCHEMA, **_known(
            python=self.python, os=self.os, machine=self.machine, platform=self.platform, glibc=self.glibc,
            distributions=None if self.distributions is None else [d.to_json() for d in self.distributions],
            distributions_complete=self.distributions_complete or None,
            accelerators=None if self.accelerators is None else [a.to_json() for a in self.accelerators],
            driver=self.driver, driver_state=self.driver_state, cuda_toolkit=self.cuda_toolkit,
            variables=None if self.variables is None else dict(self.variables),
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
