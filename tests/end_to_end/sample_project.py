"""A small project that is checked where it is served: a target in pyproject.toml, and a lock that is good or bad for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.conftest import ROOT

RULE = "transformers-dataparallel-drops-data"
GOOD, BAD = "4.57.6", "4.51.3"
"""Releases of transformers without and with the fault."""
PYPROJECT = """\
[project]
name = "finetune"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["accelerate", "transformers>=4.50", "trl>=0.17"]

[[tool.compat.target]]
name = "train"
gpus = "A100:4"
task = "sft"
launcher = "python"
"""
CONFLICT = "<<<<<<< HEAD\nversion = 1\nrevision = 2\n=======\nversion = 1\nrevision = 3\n>>>>>>> main\n"


def uv_lock(transformers: str) -> str:
    """A uv.lock with that release of transformers; its entry is the first package."""
    return f"""\
version = 1
revision = 2
requires-python = ">=3.11"

{_package("transformers", transformers)}
{_package("accelerate", "1.6.0")}
{_package("trl", "0.17.0", "accelerate", "transformers")}
[[package]]
name = "finetune"
version = "0.1.0"
source = {{ virtual = "." }}
dependencies = [
    {{ name = "accelerate" }},
    {{ name = "transformers" }},
    {{ name = "trl" }},
]

[package.metadata]
requires-dist = [
    {{ name = "accelerate" }},
    {{ name = "transformers", specifier = ">=4.50" }},
    {{ name = "trl", specifier = ">=0.17" }},
]
"""


LINE = 6
"""The line of :func:`uv_lock` that names the release of transformers."""


def _package(name: str, version: str, *dependencies: str) -> str:
    needs = "".join(f'    {{ name = "{each}" }},\n' for each in dependencies)
    wheel = f"https://index.example/files/{name}-{version}-py3-none-any.whl"
    return f"""\
[[package]]
name = "{name}"
version = "{version}"
source = {{ registry = "https://index.example/simple" }}
{f"dependencies = [{chr(10)}{needs}]{chr(10)}" if needs else ""}wheels = [
    {{ url = "{wheel}", hash = "sha256:{"0f" * 32}", size = 1048576 }},
]
"""


def git(
    folder: Path, *words: str, check: bool = True, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs git in a folder as somebody, with nobody's configuration."""
    return subprocess.run(
        ["git", *words], cwd=folder, env={**bare_environment(), **(variables or {})}, capture_output=True, text=True, check=check,
    )  # fmt: skip


def bare_environment() -> dict[str, str]:
    """The variables of this process without git's, Python's and those that this project reads; pip's stay."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON", "VIRTUAL_ENV", "INPUT_"))
    }
    people = {f"GIT_{who}_{what}": "somebody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**kept, **people, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}


def this_project(into: Path) -> tuple[Path, str]:
    """A repository with one commit, this working tree as it is (what git ignores left out), and the id of the commit."""
    into.mkdir()
    git(into, "init", "--quiet", "--bare")
    here = {"GIT_DIR": str(into), "GIT_WORK_TREE": str(ROOT)}
    git(ROOT, "add", "--all", variables=here)
    git(ROOT, "commit", "--quiet", "--message", "The working tree", variables=here)
    return into, git(into, "rev-parse", "HEAD").stdout.strip()


def transcript(page: str, beginning: str) -> list[str]:
    """The lines of a block of code in docs/ that begins so, without those that say that something is left out."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    block = text.split(f"```\n{beginning}")[1].split("\n```")[0]
    return [line for line in f"{beginning}{block}".splitlines() if line.strip() not in ("", "…")]


def missing(shown: list[str], output: str) -> list[str]:
    """What a transcript shows and the output does not have, in this order; a line may end with ``…``."""
    left = iter(output.splitlines())
    return [line for line in shown if not any(_same(line, each) for each in left)]


def _same(shown: str, line: str) -> bool:
    return line.startswith(shown[:-1]) if shown.endswith("…") else line == shown
