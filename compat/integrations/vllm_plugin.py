"""A general vLLM plugin: checks the environment before an engine starts, if ``COMPAT_GUARD`` enables it.

vLLM loads the entry point ``vllm.general_plugins`` in every process it starts. Without ``COMPAT_GUARD=warn``, ``error`` or
``warning`` the plugin does nothing: installing compat must not change how an engine starts.
"""

from __future__ import annotations

import os

from compat.integrations.guard import SWITCH, check_workload
from compat.model import Workload


def register() -> None:
    """Called by vLLM; raises :class:`compat.KnownBad` for findings at or above the level in ``COMPAT_GUARD``."""
    if os.environ.get(SWITCH, "").strip():
        check_workload(Workload(), task="inference")
