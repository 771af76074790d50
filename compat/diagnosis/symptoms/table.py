"""Every symptom, in the order in which messages are compared with them: what says more comes first."""

from __future__ import annotations

from compat.diagnosis.symptoms.binaries import BINARIES
from compat.diagnosis.symptoms.compilers import COMPILERS
from compat.diagnosis.symptoms.gpus import GPUS
from compat.diagnosis.symptoms.installers import INSTALLERS
from compat.diagnosis.symptoms.processes import PROCESSES
from compat.diagnosis.symptoms.python import PYTHON

SYMPTOMS = (*BINARIES, *GPUS, *PROCESSES, *PYTHON, *COMPILERS, *INSTALLERS)
