"""A general plugin of vLLM: checks what is installed before an engine starts, where ``COMPAT_GUARD`` asks for it.

vLLM loads the entry point ``vllm.general_plugins`` in every process it starts. Without ``COMPAT_GUARD=warn``, ``error`` or
``warning`` the plugin does nothing: to install compat must not change how an engine starts.
"""

from __future__ import annotations

import os

from compat.integrations.guard import SWITCH, check_workload
from compat.model import Workload


def register() -> None:
    """Called by vLLM; raises :class:`compat.KnownBad` where ``COMPAT_GUARD`` names the level of a finding."""
    if os.environ.get(SWITCH, "").strip():
        check_workload(Workload(), task="inference")
