"""An interpreter that only answers what uv asks about it: uv resolves for it as installers do, and whatever it starts to build
something ends at once."""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from functools import cache
from pathlib import Path

_SCRIPT = """\
import json, subprocess, sys
program, python, *asked = sys.argv[1:]
if "get_interpreter_info" not in " ".join(asked):
    sys.exit("compat starts no build")
found = json.loads(subprocess.run([sys.executable, *asked], stdout=subprocess.PIPE, check=True).stdout)
found.update(sys_executable=program, sys_base_executable=program)
found["markers"].update(python_full_version=python, implementation_version=python, python_version=python.rpartition(".")[0])
print(json.dumps(found))
"""

OWN = ".".join(map(str, sys.version_info[:3]))
"""The Python of compat."""
_BUILT = re.compile(r"Failed to (?:download and )?(?:build|inspect|create)[^`]{0,99}`([^`@]{1,99})")


def stand_in(folder: str | Path, version: str) -> str:
    """Write an interpreter into a folder that gives ``version`` as its own, and otherwise answers for compat's; its path."""
    program, script = Path(folder, "python3"), Path(folder, "stand_in.py")
    script.write_text(_SCRIPT, encoding="utf-8")
    words = shlex.join([sys.executable, "-I", str(script), str(program), version])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return str(program)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="compat-python-")


@cache
def own_stand_in() -> str:
    """The path of one that gives compat's version, the same for every run of uv in this process: uv asks each only once."""
    return stand_in(_folder().name, OWN)


def built(said: str) -> str | None:
    """What uv says it could not build: ``rouge-score==0.1.2``, or the name of a project; ``None`` if nothing."""
    found = _BUILT.search(said)
    return None if found is None else found[1].strip()
