"""The environment of this machine: interpreter, hardware, system, variables and launcher."""

from __future__ import annotations

import os

from compat.machine.hardware import read_hardware
from compat.machine.interpreter import Target, default_target, read_installed, target_at
from compat.machine.metadata import OF_SOURCE, apply_detectors, with_files, with_module_folder
from compat.machine.system import read_system, relevant_variables
from compat.model import Distribution, Environment, Workload
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.rules.compiled import Matrix


@record(frozen=True)
class Machine:
    """A machine; ``label`` names its Python environment, ``driver_cuda`` is the highest CUDA version of the driver."""

    environment: Environment
    label: str
    driver_cuda: str | None
    running: bool
    interpreter: str | None
    notes: tuple[str, ...]


def read_machine(python: str | Target | None, matrix: Matrix, *, states_gpus: bool = False) -> Machine:
    """Read the machine and the packages of ``python`` (default: the active environment) without starting it.

    ``states_gpus``: ``--gpu`` was passed, so that notes on the hardware found here, which ask for it, are left out.
    """
    variables = os.environ
    target = python if isinstance(python, Target) else target_at(python) if python else default_target(variables)
    installed = read_installed(target)
    hardware = read_hardware(variables)
    system = read_system()
    distributions = _known(installed.distributions, installed.folders, matrix)
    environment = Environment(
        python=target.version, os=system.os, machine=system.machine, platform=system.platform, glibc=system.glibc,
        distributions=distributions, distributions_complete=True, accelerators=hardware.accelerators,
        driver=hardware.driver, driver_state=hardware.driver_state, cuda_toolkit=hardware.cuda_toolkit,
        variables=relevant_variables(variables, matrix.variables), workload=_workload(variables), folders=installed.folders,
    )  # fmt: skip
    notes = installed.notes if states_gpus else (*installed.notes, *hardware.notes)
    return Machine(
        environment=environment,
        label=target.label,
        driver_cuda=hardware.driver_cuda,
        running=target.running,
        interpreter=target.interpreter,
        notes=notes,
    )


def read_installation(python: str | None, matrix: Matrix) -> tuple[Environment, tuple[str, ...]]:
    """Read packages, Python and system, but no hardware; returns the environment and notes.

    Used to check an image while it is built: the GPUs and the driver are those of the declared target.
    """
    target = target_at(python) if python else default_target(os.environ)
    installed = read_installed(target)
    system = read_system()
    # variables set in an image also apply where it runs; visible devices are decided there
    set_here = {name: value for name, value in relevant_variables(os.environ, matrix.variables).items()
                if value is not None and not name.endswith("VISIBLE_DEVICES")}  # fmt: skip
    environment = Environment(
        python=target.version, os=system.os, machine=system.machine, glibc=system.glibc, variables=set_here or None,
        distributions=_known(installed.distributions, installed.folders, matrix),
        distributions_complete=True, folders=installed.folders,
    )  # fmt: skip
    return environment, installed.notes


def _known(copies: tuple[Distribution, ...], folders: Sequence[str], matrix: Matrix) -> tuple[Distribution, ...]:
    """The distributions with facts from their files: texts that rules look for, whose files are there, where a checkout is."""
    from compat.tables.overlaps import open_overlaps

    owners = {file: [copy.name for copy, _ in found] for file, found in open_overlaps().owners(copies).items()}
    found = tuple(apply_detectors(copy, folders, matrix.detectors) for copy in with_files(copies, folders, owners))
    if not any(copy.source is not None and copy.source.kind in OF_SOURCE for copy in found):
        return found
    from compat.interfaces.table import tracked

    tops = tracked()
    return tuple(with_module_folder(copy, folders, tops) for copy in found)


def _workload(variables: os._Environ[str]) -> Workload | None:
    """The workload shown by launcher variables; ``None`` without further work if no such variable is set."""
    if not any(name in variables for name in _LAUNCHER_VARIABLES):
        return None
    from compat.workload.launch import from_variables

    return from_variables(variables)


_LAUNCHER_VARIABLES = (
    "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "RAY_RAYLET_PID", "RAY_JOB_ID", "RAY_JOB_CONFIG_JSON_ENV_VAR",
    "ACCELERATE_MIXED_PRECISION", "ACCELERATE_DYNAMO_BACKEND", "ACCELERATE_USE_DEEPSPEED", "ACCELERATE_USE_FSDP",
    "ACCELERATE_USE_CPU", "ACCELERATE_USE_MEGATRON_LM", "ACCELERATE_CONFIG_DS_FIELDS",
)  # fmt: skip
