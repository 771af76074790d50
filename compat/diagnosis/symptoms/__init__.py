"""All symptoms, in matching order: more specific ones come first."""

from __future__ import annotations

from compat.diagnosis.symptoms.binaries import BINARIES
from compat.diagnosis.symptoms.communication import COMMUNICATION
from compat.diagnosis.symptoms.compilers import COMPILERS
from compat.diagnosis.symptoms.gpus import GPUS
from compat.diagnosis.symptoms.kernels import KERNELS, NUMERICS
from compat.diagnosis.symptoms.loading import LOADING
from compat.diagnosis.symptoms.processes import PROCESSES
from compat.diagnosis.symptoms.python import INSTALLERS, PYTHON
from compat.diagnosis.symptoms.runtimes import AMD, CUDA_ERRORS
from compat.diagnosis.symptoms.source_builds import SOURCE_BUILDS

SYMPTOMS = (
    *LOADING, *BINARIES, *AMD, *GPUS, *CUDA_ERRORS, *COMMUNICATION, *PROCESSES, *PYTHON, *SOURCE_BUILDS, *COMPILERS, *NUMERICS,
    *KERNELS, *INSTALLERS,
)  # fmt: skip
"""All symptoms, in matching order: more specific ones come first."""
