"""Build hook: compiles the matrix before building a wheel (also an editable one), and includes the compiled files."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileMatrix(BuildHookInterface):  # type: ignore[type-arg]
    """Runs ``scripts/build_matrix.py`` in a separate process, so that the build sees no stale imports."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        subprocess.run([sys.executable, os.path.join(self.root, "scripts", "build_matrix.py")], check=True)
        folders = ("", "surface/", "messages/")
        build_data["artifacts"] += [f"compat/data/{folder}*.bin" for folder in folders]
