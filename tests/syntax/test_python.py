"""Source text becomes a tree without any file being opened."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compat.syntax.python import syntax_tree

PACKAGE = Path(__file__).parents[2] / "compat"
_PROGRAM = """
import sys
opened = []
sys.addaudithook(lambda event, values: opened.append(values[0]) if event == "open" else None)
from compat.interfaces.source.module import read_module
from compat.syntax.python import syntax_tree
del opened[:]
try:
    syntax_tree("x = = 3")
except SyntaxError as problem:
    assert problem.lineno == 1
assert "line 1" in read_module(b"print 'Python 2'", "old").problem
print([name for name in opened if name])
"""


def test_broken_source_opens_no_file(tmp_path: Path) -> None:
    for name in ("<unknown>", "<string>"):  # reading one of these pipes would never end
        os.mkfifo(tmp_path / name)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


@pytest.mark.parametrize("source", ["x = 1\0", "x = '\ud800'", "(" * 5000, b"\xff", "x ="])
def test_source_that_is_not_python_raises(source: str | bytes) -> None:
    with pytest.raises((SyntaxError, ValueError, RecursionError, MemoryError)):
        syntax_tree(source)


def test_invalid_escapes_do_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    assert isinstance(syntax_tree(r"x = '\d'").body[0], ast.Assign)
    assert not list(recwarn)


def test_modules_are_parsed_in_one_place() -> None:
    pattern = re.compile(r"\bast\.parse\((?!.*mode=\"eval\")|PyCF_ONLY_AST")
    found = [str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if pattern.search(path.read_text("utf-8"))]
    assert found == ["syntax/python.py"]
