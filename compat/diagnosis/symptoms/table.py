"""All symptoms, in matching order: more specific ones come first."""

from __future__ import annotations

from compat.diagnosis.symptoms.binaries import BINARIES
from compat.diagnosis.symptoms.compilers import COMPILERS
from compat.diagnosis.symptoms.gpus import GPUS
from compat.diagnosis.symptoms.installers import INSTALLERS
from compat.diagnosis.symptoms.numerics import NUMERICS
from compat.diagnosis.symptoms.processes import PROCESSES
from compat.diagnosis.symptoms.python import PYTHON

SYMPTOMS = (*BINARIES, *GPUS, *PROCESSES, *PYTHON, *COMPILERS, *NUMERICS, *INSTALLERS)
