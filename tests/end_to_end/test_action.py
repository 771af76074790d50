"""The GitHub action: its metadata, and its steps, executed with bash as a runner executes them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

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

pytestmark = pytest.mark.xdist_group("action")  # what its fixtures install or build is made once, by one worker
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
_EXPRESSION = re.compile(r"\$\{\{ (?:inputs\.([\w-]+)|steps\.([\w-]+)\.outputs\.([\w-]+)) \}\}")


class Done(NamedTuple):
    """How a run of the action ended: the exit code of the step that ended it, the log, and the action's outputs."""

    code: int
    log: str
    outputs: dict[str, str]

    def errors(self) -> list[str]:
        """The annotations that are more than an open question."""
        return [line for line in self.log.splitlines() if line.startswith(("::error", "::warning"))]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a runner sets: the action's source checked out, and a folder that all steps of a job share."""
    folder = tmp_path_factory.mktemp("runner")
    repository, _ = this_project(folder / "compat.git")
    git(folder, "clone", "--quiet", str(repository), str(folder / "action"))
    (folder / "temp").mkdir()
    return {"RUNNER_TEMP": str(folder / "temp"), "GITHUB_ACTION_PATH": str(folder / "action"), "GITHUB_ACTIONS": "true"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A checked-out repository with a good lock, and files that must not be checked or executed."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (folder / "uv.lock").write_text(uv_lock(GOOD), encoding="utf-8")
    (folder / "notes.txt").write_text(f"transformers=={BAD}\n", encoding="utf-8")
    for module in ("pip", "venv", "compat", "yaml", "re"):
        (folder / f"{module}.py").write_text("open('executed', 'w')\nraise SystemExit(0)\n", encoding="utf-8")
    git(folder, "add", "--all")
    (folder / "requirements.txt").write_text(f"transformers=={BAD}\n", encoding="utf-8")  # not tracked
    return folder


@pytest.fixture
def act(runner: dict[str, str], workspace: Path) -> Callable[..., Done]:
    """Runs the steps, one after the other up to the first that fails."""

    def run(**inputs: str) -> Done:
        given = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
        given |= {"python": sys.executable, **{name.replace("_", "-"): value for name, value in inputs.items()}}
        outputs: dict[str, dict[str, str]] = {}
        log, code = "", 0
        for step in STEPS:
            code, text, outputs[step["id"]] = _step(step, given, outputs, runner, workspace)
            log += text
            if code:
                break
        result = {name: _filled(each["value"], given, outputs) for name, each in ACTION["outputs"].items()}
        return Done(code, log, result)

    return run


def _step(
    step: dict[str, Any], inputs: dict[str, str], outputs: dict[str, dict[str, str]], runner: dict[str, str], workspace: Path
) -> tuple[int, str, dict[str, str]]:
    script, output = workspace.parent / "step.sh", workspace.parent / "output"
    script.write_text(step["run"], encoding="utf-8")
    output.write_text("", encoding="utf-8")
    variables = {name: _filled(value, inputs, outputs) for name, value in step.get("env", {}).items()}
    variables |= {
        "PYTHONPATH": ".",
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_OUTPUT": str(output),
    }  # "." as a job may set it
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)], cwd=workspace, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**bare_environment(), **runner, **variables}, text=True, check=False,
    )  # fmt: skip
    lines = output.read_text(encoding="utf-8").splitlines()
    return done.returncode, done.stdout, dict(line.split("=", 1) for line in lines)


def _filled(text: str, inputs: dict[str, str], outputs: dict[str, dict[str, str]]) -> str:
    def value(match: re.Match[str]) -> str:
        name, step, output = match.groups()
        return inputs[name] if name else outputs.get(step, {}).get(output, "")

    filled = _EXPRESSION.sub(value, text)
    assert "${{" not in _EXPRESSION.sub("", text), f"an expression this test does not know: {text}"
    return filled


def test_the_metadata_is_what_a_runner_expects() -> None:
    assert ACTION["name"]
    assert ACTION["description"]
    assert ACTION["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" and step["run"] and step["id"] for step in STEPS)
    for name, each in (*ACTION["inputs"].items(), *ACTION["outputs"].items()):
        assert each["description"], name
    used = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])


def test_the_metadata_matches_the_published_schema() -> None:
    """check-jsonschema carries the schema of action files that editors use."""
    schemas = pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed (pip install '.[dev]')")
    import jsonschema

    folder = Path(schemas.__file__).parent / "builtin_schemas" / "vendor"
    schema = json.loads((folder / "github-actions.json").read_text(encoding="utf-8"))
    jsonschema.validate(ACTION, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**ACTION, "runs": {"using": "composite", "steps": [{"run": "true"}]}}, schema)


def test_no_input_is_part_of_a_shell_text() -> None:
    assert not [step["id"] for step in STEPS if "${{" in step["run"]]


def test_good_and_bad_locks(act: Callable[..., Done], workspace: Path) -> None:
    done = act()
    assert (done.code, done.outputs) == (0, {"exit-code": "0", "sarif": ""}), done.log
    assert "compat: 2 files to check\n" in done.log
    assert done.errors() == []
    (workspace / "uv.lock").write_text(uv_lock(BAD), encoding="utf-8")
    done = act()
    assert (done.code, done.outputs["exit-code"]) == (1, "1")
    assert done.errors()
    assert all(line.startswith(f"::error file=uv.lock,line={LINE},") for line in done.errors())
    assert any(f"rule: {RULE} " in line for line in done.errors())
    assert missing(transcript("ci.md", "compat: 2 files"), done.log) == []
    assert act(fail_on="never").code == 0
    (workspace / "uv.lock").write_text(CONFLICT, encoding="utf-8")
    done = act()
    assert (done.code, done.outputs["exit-code"]) == (2, "2")
    assert missing(transcript("ci.md", "::error file=uv.lock,line=1,"), done.log) == []
    assert not (workspace / "executed").exists()


def test_a_target_is_chosen_and_a_baseline_forgives(act: Callable[..., Done], workspace: Path) -> None:
    one_gpu = PYPROJECT.partition("[[")[2].replace("train", "laptop").replace("A100:4", "RTX 4090")
    (workspace / "pyproject.toml").write_text(f"{PYPROJECT}\n[[{one_gpu}", encoding="utf-8")
    (workspace / "uv.lock").write_text(uv_lock(BAD), encoding="utf-8")
    assert act(target="laptop").code == 0
    assert act(target="train").code == act(target="laptop,train").code == 1
    words = [sys.executable, "-m", "compat", "check", "--format", "json", "uv.lock"]
    known = subprocess.run(words, cwd=workspace, env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": str(ROOT)},
                           capture_output=True, text=True, check=False)  # fmt: skip
    (workspace.parent / "known report.json").write_text(known.stdout, encoding="utf-8")
    done = act(baseline="../known report.json", files="uv.lock")
    assert done.code == 0, done.log


def test_sarif_is_written_to_a_file_and_the_log_stays_readable(act: Callable[..., Done], workspace: Path) -> None:
    (workspace / "uv.lock").write_text(uv_lock(BAD), encoding="utf-8")
    done = act(format="sarif")
    assert (done.code, done.outputs["exit-code"]) == (1, "1")
    report = json.loads(Path(done.outputs["sarif"]).read_text(encoding="utf-8"))
    assert report["version"] == "2.1.0"
    assert RULE in [result["ruleId"] for result in report["runs"][0]["results"]]
    assert f"rule      {RULE} (" in done.log
    (workspace / "uv.lock").write_text(uv_lock(GOOD), encoding="utf-8")
    done = act(format="sarif")
    assert done.code == 0
    assert "compat: 2 files to check\n" in done.log
    report = json.loads(Path(done.outputs["sarif"]).read_text(encoding="utf-8"))
    assert not [result for result in report["runs"][0]["results"] if result["level"] in ("error", "warning")]


HOSTILE = (
    "; touch executed",
    "$(touch executed)",
    "`touch executed`",
    "' \"; touch executed #",
    "${IFS}",
    "--rules=x",
    "a b",
    "*",
    "%0Aexit 0",
)


@pytest.mark.parametrize("name", [name for name in ACTION["inputs"] if name not in ("files", "python")])
def test_inputs_are_never_executed(act: Callable[..., Done], workspace: Path, name: str) -> None:
    """A value that nothing is called by makes the call unusable, whatever it says; no value passes for an option."""
    other = {"mode": "triage"} if name in ("token", "dry-run", "label", "author") else {}
    for value in HOSTILE:
        done = act(**{**other, name: value})
        assert done.code == 2, (value, done.log)
        assert "Traceback" not in done.log
    assert not list(workspace.rglob("executed"))


def test_a_hostile_interpreter_name_is_not_executed(act: Callable[..., Done], runner: dict[str, str], workspace: Path) -> None:
    runner = {**runner, "RUNNER_TEMP": str(workspace.parent)}  # no environment there yet
    for value in HOSTILE:
        code, _, _ = _step(STEPS[0], {"python": value}, {}, runner, workspace)
        assert code != 0, value
    assert not list(workspace.rglob("executed"))


def test_files_may_be_called_anything(act: Callable[..., Done], workspace: Path) -> None:
    """Names are taken whole, a line each: none is split, expanded, executed or taken for an option."""
    folders = ("; touch executed", "$(touch executed)", "`touch executed`", "'", '"', "a b", "--fail-on=never", "-q", "*", "ü")
    for folder in folders:
        (workspace / folder).mkdir()
        (workspace / folder / "uv.lock").write_text(uv_lock(BAD), encoding="utf-8")
    names = [f"{folder}/uv.lock" for folder in folders]
    done = act(files="\n".join(names) + "\n\n")
    assert done.code == 1
    assert f"compat: {len(names)} files to check" in done.log
    assert sum(f"rule: {RULE} " in line for line in done.errors()) == len(names)
    # the same, as the files that git tracks
    git(workspace, "add", "--all", "--", *(f":(literal){name}" for name in names))
    done = act()
    assert done.code == 1
    assert sum(f"rule: {RULE} " in line for line in done.errors()) == len(names)
    assert not list(workspace.rglob("executed"))


def test_nothing_to_check_is_no_success(act: Callable[..., Done], workspace: Path) -> None:
    git(workspace, "rm", "--quiet", "--cached", "-r", ".")
    done = act()
    assert (done.code, done.outputs["exit-code"]) == (2, "2")
    assert "::error::compat: git tracks no file to check here" in done.log
    assert act(files="missing.lock").code == 2


def test_a_folder_that_is_no_repository_is_no_success(act: Callable[..., Done], workspace: Path) -> None:
    (workspace / ".git").rename(workspace / "git")
    done = act()
    assert done.code == 2
    assert "::error::compat: git tracks no file to check here" in done.log
    assert "Traceback" not in done.log
    assert act(files="uv.lock").code == 0


def test_links_are_not_followed_out_of_the_repository(act: Callable[..., Done], workspace: Path) -> None:
    (workspace / "constraints.txt").symlink_to("/etc/passwd")
    git(workspace, "add", "constraints.txt")
    done = act()
    assert done.code == 0
    assert "compat: 2 files to check\n" in done.log
