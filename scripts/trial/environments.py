"""Throw-away environments, made by uv from the indexes of its configuration; torch is installed once for each Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.utils import canonicalize_name
from uv import find_uv_bin

TORCH = "torch==2.13.0"
BESIDE = ("jinja2", "networkx", "setuptools", "sympy", "filelock", "mpmath")
"""What torch needs besides: its own copy is linked, so that nothing else asks for them."""
_OF_TORCH = re.compile(r"(torch|triton|cuda-.*|nvidia-(?!ml-py).*)$")
_WHEELS_ONLY = ("numpy", "pyarrow", "tokenizers", "safetensors", "spacy", "thinc", "blis", "pandas", "scipy", "scikit-learn",
                "vllm", "gptqmodel", "flash-attn", "grpcio", "sentencepiece", "llvmlite")  # fmt: skip
"""Packages that are not compiled here: it would take longer than everything else."""
_LIMIT = 400


class NotMade(Exception):
    """An environment that cannot be resolved or installed; its ``end`` is the result of the trial."""

    def __init__(self, end: str, why: str) -> None:
        super().__init__(why)
        self.end = end


def base(folder: Path, python: str) -> Path:
    """Return the environment that holds torch for a Python, which is made the first time."""
    made = folder / f"base-{python}"
    if not (made / "ready").exists():
        shutil.rmtree(made, ignore_errors=True)
        _uv("install failed", "venv", "--python", python, str(made))
        _uv("install failed", "pip", "install", "--python", str(made / "bin/python"), TORCH)
        (made / "ready").touch()
    return made


def make(folder: Path, torch: Path, requirements: list[str]) -> Path:
    """Install ``requirements`` under ``folder``, with torch linked from its base; raises :class:`NotMade`."""
    linked: dict[str, Distribution] = {canonicalize_name(each.metadata["Name"]): each for each in _of_torch(torch)}
    python = str(torch / "bin/python")
    (folder / "in.txt").write_text("\n".join((*requirements, *BESIDE)) + "\n", encoding="utf-8")
    (folder / "torch.txt").write_text(f"torch=={linked['torch'].version}\n", encoding="utf-8")
    locked = _locked(folder, python)
    lines = [line for line in locked.splitlines() if canonicalize_name(line.partition("==")[0]) not in linked]
    (folder / "lock.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = folder / "env"
    _uv("install failed", "venv", "--clear", "--python", python, str(made))
    _uv("install failed", "pip", "install", "--no-deps", *_only_wheels(), "--python", str(made / "bin/python"),
        "--requirement", str(folder / "lock.txt"))  # fmt: skip
    here, there = _packages(made), _packages(torch)
    for each in linked.values():
        for top in {file.parts[0] for file in each.files or () if file.parts[0] != ".."}:
            if not (here / top).exists():
                (here / top).symlink_to(there / top)
    return made


def _locked(folder: Path, python: str) -> str:
    """The newest releases that accept this torch, or any torch if there are none."""

    def resolved(how: str) -> str:
        wanted = (
            *_only_wheels(),
            "--no-header",
            "--no-annotate",
            "--python",
            python,
            how,
            str(folder / "torch.txt"),
            str(folder / "in.txt"),
        )
        return _uv("unresolvable", "pip", "compile", *wanted)

    try:
        return resolved("--constraint")
    except NotMade:
        return resolved("--override")


def _only_wheels() -> list[str]:
    return [f"--only-binary={name}" for name in _WHEELS_ONLY]


def _of_torch(environment: Path) -> list[Distribution]:
    found = distributions(path=[str(_packages(environment))])
    return [each for each in found if _OF_TORCH.match(canonicalize_name(each.metadata["Name"]))]


def _packages(environment: Path) -> Path:
    return next((environment / "lib").glob("python3*/site-packages"))


def _uv(end: str, *words: str) -> str:
    try:
        ran = subprocess.run([find_uv_bin(), *words, "--quiet"], capture_output=True, text=True, timeout=_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise NotMade(end, f"uv {words[0]} took longer than {_LIMIT} s") from None
    if ran.returncode:
        raise NotMade(end, ran.stderr[-1500:])
    return ran.stdout
