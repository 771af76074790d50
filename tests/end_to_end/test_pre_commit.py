"""The hooks, run by the real pre-commit: it clones this project and builds it with pip, as it does for its users."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from compat.formats.registry import FORMATS, format_of
from tests.conftest import ROOT
from tests.end_to_end.sample_project import (
    BAD,
    CONFLICT,
    GOOD,
    LINE,
    PYPROJECT,
    RULE,
    bare_environment,
    git,
    missing,
    this_project,
    transcript,
    uv_lock,
)

HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
RULE_FILE = """\
[[rule]]
id = "sample-rule"
title = "A rule of the project's own"
severity = "error"
effect = "crash"
confidence = "reported"
packages = { trl = "<0.1" }
errors = []
evidence = ["https://github.com/OWNER/compat/issues/1"]
why = "It is not real."
[[rule.fix]]
upgrade = { trl = ">=0.17" }
[[rule.example]]
hit = { packages = { trl = "0.0.3" } }
[[rule.example]]
clear = { packages = { trl = "0.17.0" } }
"""


class Repository:
    """A scratch repository whose commits go through the hooks."""

    def __init__(self, folder: Path, hooks: Path, revision: str) -> None:
        self.folder = folder
        self._home = str(folder.parent / "pre-commit")
        folder.mkdir()
        git(folder, "init", "--quiet")
        asked = [{"id": "compat-check", "verbose": True}, {"id": "compat-rules-lint"}]
        self.write(
            ".pre-commit-config.yaml", yaml.safe_dump({"repos": [{"repo": str(hooks), "rev": revision, "hooks": asked}]})
        )
        self.pre_commit("install", "--install-hooks")

    def pre_commit(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", *words, "--color=never"], cwd=self.folder, env=self._variables(), capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self, *, hooks: bool = True) -> tuple[bool, str]:
        """Commits everything as it lies there; whether there is a new commit, and what was printed."""
        before = git(self.folder, "rev-parse", "HEAD", check=False).stdout
        git(self.folder, "add", "--all")
        words = ["commit", "--message", "x", *([] if hooks else ["--no-verify"])]
        done = git(self.folder, *words, check=False, variables=self._variables())
        new = git(self.folder, "rev-parse", "HEAD", check=False).stdout != before
        assert new == (done.returncode == 0)
        return new, done.stdout + done.stderr

    def _variables(self) -> dict[str, str]:
        return {**bare_environment(), "PRE_COMMIT_HOME": self._home, "PRE_COMMIT_COLOR": "never"}


def said(output: str) -> list[str]:
    """What the check printed, without what pre-commit says of a verbose hook; one entry a line."""
    part = re.split(r"(?m)^compat check\.*\S+$", output)[1]
    part = re.split(r"(?m)^compat rules lint\.", part)[0]
    return [line for line in part.splitlines() if line.strip() and not line.startswith("- ")]


def test_commits_go_through_the_hooks(tmp_path: Path) -> None:
    pytest.importorskip("pre_commit", reason="pre-commit is not installed (pip install '.[dev]')")
    project = Repository(tmp_path / "project", *this_project(tmp_path / "compat.git"))
    # nothing that is read; then a good lock: nothing is said
    project.write("train.py", "import trl\n")
    committed, output = project.commit()
    assert committed
    assert "compat check" in output
    assert "(no files to check)Skipped" in output
    project.write("pyproject.toml", PYPROJECT)
    project.write("uv.lock", uv_lock(GOOD))
    committed, output = project.commit()
    assert committed
    assert re.search(r"compat check\.+Passed", output)
    assert said(output) == []
    # a bad one: file, line and rule, and no commit
    project.write("uv.lock", uv_lock(BAD))
    committed, output = project.commit()
    assert not committed
    assert "- exit code: 1" in output
    assert f"at        uv.lock:{LINE}" in output
    assert f"rule      {RULE} (" in output
    assert "target    train" in output
    assert missing(transcript("pre-commit.md", "compat check.."), output) == []
    # what lies there already is not checked again: only what a commit changes is
    assert project.commit(hooks=False)[0]
    project.write("requirements/train.txt", f"transformers=={GOOD}\n")
    committed, output = project.commit()
    assert committed
    assert said(output) == []
    # a lock that cannot be read is no clean lock
    project.write("uv.lock", CONFLICT)
    committed, output = project.commit()
    assert not committed
    assert "- exit code: 2" in output
    assert said(output) == ["compat: uv.lock:1: has an unresolved merge conflict"]
    assert missing(transcript("pre-commit.md", "- exit code: 2"), output) == []
    project.write("uv.lock", uv_lock(GOOD))
    assert project.commit()[0]
    rule_files(project)


def rule_files(project: Repository) -> None:
    """The other hook: rule files of the project's own."""
    project.write("compat-rules/own.toml", RULE_FILE)
    committed, output = project.commit()
    assert committed, output
    assert re.search(r"compat rules lint\.+Passed", output)
    project.write("compat-rules/own.toml", RULE_FILE.replace("0.0.3", "0.17.0"))
    committed, output = project.commit()
    assert not committed
    assert re.search(r"compat rules lint\.+Failed", output)
    assert missing(transcript("pre-commit.md", "compat rules lint.."), output) == []


READ = (
    "services/train/uv.lock", "train.py.lock", "pylock.cuda.toml", "gpu.conda-lock.yaml", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "requirements-dev.in", "requirements_cuda.txt",
    "dev-requirements.txt", "requirements/base.txt", "constraints.txt", "Dockerfile", "docker/Dockerfile.cuda", "Dockerfile-12.4",
    "train.Dockerfile", "Containerfile", "compose.yaml", "docker-compose.yml", "docker-compose.gpu.yml", "compose.override.yaml",
)  # fmt: skip
NOT_READ = (
    "README.md", "notes.txt", "Cargo.lock", "package-lock.json", "composer.lock", "uv.lock.orig", "train.py", "train.ipynb",
    "Dockerfile.dockerignore", ".dockerignore", "Dockerfile.md", "Dockerfile.j2", "dockerfile_parser.py", "dockerfiles/entry.sh",
    "compose.py", ".github/dependabot.yml", "workflows/ci.yml", "mkdocs.yml", "values.yaml", "src/requirements.py", "Pipfile",
)  # fmt: skip


@pytest.mark.parametrize("name", [*(row.kind for row in FORMATS if row.is_lock), *READ])
def test_the_hook_asks_for_what_is_read(name: str) -> None:
    assert re.search(HOOKS["compat-check"]["files"], name)
    assert format_of(name, b"").kind


@pytest.mark.parametrize("name", ["environment.yml", "environment-cuda.yaml", "envs/environment.yml"])
def test_the_hook_asks_for_conda_environments(name: str) -> None:
    assert re.search(HOOKS["compat-check"]["files"], name)
    assert format_of(name, b"dependencies:\n  - python=3.11\n").kind == "environment.yml"


@pytest.mark.parametrize("name", [".github/workflows/ci.yml", ".github/workflows/gpu-tests.yaml"])
def test_the_hook_asks_for_workflows(name: str) -> None:
    assert re.search(HOOKS["compat-check"]["files"], name)
    assert format_of(name, b"on: push\njobs:\n  t: {}\n").kind == "workflow"


@pytest.mark.parametrize("name", [".gitlab-ci.yml", "ci/gpu.gitlab-ci.yaml"])
def test_the_hook_asks_for_pipelines_of_gitlab(name: str) -> None:
    assert re.search(HOOKS["compat-check"]["files"], name)
    assert format_of(name, b"t:\n  script: []\n").kind == "gitlab"


@pytest.mark.parametrize("name", NOT_READ)
def test_the_hook_leaves_other_files_alone(name: str) -> None:
    assert not re.search(HOOKS["compat-check"]["files"], name)


def test_rule_files_are_told_by_name() -> None:
    wanted = re.compile(HOOKS["compat-rules-lint"]["files"])
    assert all(map(wanted.search, ("compat-rules.toml", "compat_rules.toml", "ops/compat-rules/vllm.toml")))
    assert not any(
        map(
            wanted.search,
            ("pyproject.toml", "rules.toml", "compat-rules/README.md", "compat.syntax.toml", "incompat-rules.toml"),
        )
    )


def test_a_hostile_name_costs_no_time() -> None:
    """The pattern is matched against every file of a repository."""
    name = os.sep.join(["requirements" * 50] * 20) + "Dockerfile" + "-" * 2000 + ".md"
    assert not re.search(HOOKS["compat-check"]["files"], name)
