"""The start of ``check`` and ``doctor``: what they must not import, because it costs as much as checking an environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SITE = "tests/golden/inputs/project/site"
SLOW = {"collections", "contextlib", "dataclasses", "enum", "functools", "inspect", "json", "re", "typing"}
RUN = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
before = set(sys.modules)
from compat.cli import main
code = main(sys.argv[1:])
print(code, *sorted(set(sys.modules) - before), file=sys.stderr)
"""
DESCRIBED = """{"python": "3.11.9", "os": "linux", "driver": "550", "distributions_complete": true,
"distributions": [{"name": "torch", "version": "2.6.0"}]}"""


@pytest.mark.parametrize("words", [("check", "--environment", "-"), ("doctor", "--python", SITE)], ids=lambda words: words[0])
def test_slow_modules_of_the_standard_library_are_not_imported(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-I", "-S", "-c", RUN, *words]
    done = subprocess.run(command, cwd=ROOT, input=DESCRIBED, capture_output=True, text=True, check=True)
    code, *imported = done.stderr.splitlines()[-1].split()
    assert code in ("0", "1"), done.stderr
    assert "compat.checks.requirements" in imported  # the environment was checked
    assert SLOW.isdisjoint(imported), sorted(SLOW.intersection(imported))
