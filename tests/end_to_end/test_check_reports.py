"""What ``compat check`` says about files with several parts, findings that are left out, and outputs of every encoding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., str]
HIT = "transformers-dataparallel-drops-data"
TWO = [{"name": "A100-SXM4-80GB"}] * 2
DOCKERFILE = (
    "FROM python:3.11 AS base\nRUN pip install torch==2.6.0 transformers==4.57.1\n"
    "FROM base AS train\nRUN pip install transformers==4.53.3 trl==0.19.0\n"
    "FROM python:3.12 AS serve\nRUN pip install transformers==4.57.1\n"
)
TARGET = ("--gpu", "A100:2", "--launcher", "python", "--task", "sft")


def affected(described: Write, name: str = "environment.json", **changes: Any) -> str:
    keys = {"accelerators": TWO, "workload": {"launcher": "python", "task": "sft"}, **changes}
    return described({"transformers": "4.53.3"}, name, **keys)


def of(rule: str, findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [finding for finding in findings if finding["rule"] == rule]


def test_a_finding_says_which_stage_and_the_environment_is_the_worst_one(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE, encoding="utf-8")
    report = json.loads(compat("check", "Dockerfile", *TARGET, "--format", "json").stdout)
    assert [finding["selections"] for finding in of(HIT, report["findings"])] == [["stage train"]]
    names = [part["name"] for part in report["parts"]]
    assert "stage train" in names
    assert "stage serve" in names
    by_name = {part["name"]: part["environment"] for part in report["parts"]}
    assert report["environment"] == by_name["stage train"] != by_name["stage serve"]
    text = compat("check", "Dockerfile", *TARGET).stdout
    assert "\n  stage train\n" in text
    assert "\n  stage serve\n" in text
    assert "    in        stage train\n" in text


def test_every_service_is_judged(compat: Run, tmp_path: Path) -> None:
    image = "pytorch/pytorch:{}-cuda12.4-cudnn9-runtime"
    services = "".join(f"  {name}:\n    image: {image.format(release)}\n" for name, release in (("a", "2.6.0"), ("b", "2.4.0")))
    (tmp_path / "compose.yaml").write_text(f"services:\n{services}", encoding="utf-8")
    report = json.loads(compat("check", "compose.yaml", "--format", "json").stdout)
    versions = {part["name"]: part["environment"]["distributions"][0]["version"] for part in report["parts"]}
    assert versions == {"service a": "2.6.0", "service b": "2.4.0"}


def test_a_target_without_findings_does_not_hide_the_environment_of_another(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("transformers==4.53.3\n", encoding="utf-8")
    targets = ("one", "A100:1"), ("two", "A100:2"), ("three", "T4:1")
    (tmp_path / "pyproject.toml").write_text(
        "".join(f'[[tool.compat.target]]\nname = "{name}"\ngpus = "{gpus}"\nlauncher = "python"\n' for name, gpus in targets),
        encoding="utf-8",
    )
    report = json.loads(compat("check", "requirements.txt", "--format", "json").stdout)
    assert [finding["target"] for finding in of(HIT, report["findings"])] == ["two"]
    assert len(report["environment"]["accelerators"]) == 2
    assert "parts" not in report


def test_known_and_ignored_findings_are_not_called_nothing(compat: Run, tmp_path: Path, described: Write) -> None:
    path = affected(described)
    number = len(json.loads(compat("check", "--all", "--environment", path, "--format", "json").stdout)["findings"])
    before = compat("check", "--all", "--environment", path, "--format", "json").stdout
    (tmp_path / "base.json").write_text(before, encoding="utf-8")
    done = compat("check", "--all", "--environment", path, "--baseline", "base.json")
    assert done.returncode == 0
    counted = f"{number} finding is" if number == 1 else f"{number} findings are"
    assert f"  Nothing new since base.json: {counted} known.\n" in done.stdout
    rules = {each["rule"] for each in json.loads((tmp_path / "base.json").read_text(encoding="utf-8"))["findings"]}
    (tmp_path / "pyproject.toml").write_text(
        "".join(f'[[tool.compat.ignore]]\nrule = "{rule}"\nreason = "known"\n' for rule in sorted(rules)), encoding="utf-8"
    )
    done = compat("check", "--environment", path)
    assert done.returncode == 0
    assert f"No other known problems found: {counted} ignored." in done.stdout


def test_something_that_was_not_read_is_not_called_nothing(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("-r missing.txt\n", encoding="utf-8")
    done = compat("check", "requirements.txt")
    assert done.returncode == 3
    assert "No known problems found in what could be read." in done.stdout


def test_doctor_honours_ignores_until_they_expire(compat: Run, tmp_path: Path, described: Write) -> None:
    path = affected(described)
    ignore = f'[[tool.compat.ignore]]\nrule = "{HIT}"\nreason = "one GPU in practice"\nuntil = '
    (tmp_path / "pyproject.toml").write_text(f"{ignore}2999-01-01\n", encoding="utf-8")
    report = json.loads(compat("doctor", "--environment", path, "--format", "json").stdout)
    assert of(HIT, report["findings"]) == []
    assert any("is ignored until 2999-01-01: one GPU in practice" in note for note in report["notes"])
    (tmp_path / "pyproject.toml").write_text(f"{ignore}2020-01-01\n", encoding="utf-8")
    done = compat("doctor", "--environment", path, "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert len(of(HIT, report["findings"])) == 1
    assert any("expired on 2020-01-01" in note for note in report["notes"])


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif", "junit"])
@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "cp1252"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "utf-8"},
    ],
    ids=["ascii", "cp1252", "C", "utf-8"],
)
def test_no_character_ends_the_report(tmp_path: Path, described: Write, form: str, variables: dict[str, str]) -> None:
    """A file name with a letter of Latin-1, a sign that only Unicode has and a byte that is no UTF-8."""
    name = os.fsdecode("é✗".encode() + b"\xff.json")
    path = affected(described, os.path.basename(name))
    done = subprocess.run(
        [sys.executable, "-m", "compat", "check", "--environment", path, "--format", form],
        capture_output=True, cwd=tmp_path, timeout=300, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **variables},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, b"")
    assert HIT.encode() in done.stdout
    if form in ("json", "sarif", "github"):
        done.stdout.decode("utf-8")
    if form == "json":
        finding = json.loads(done.stdout)["findings"][0]
        assert "✗" in finding["location"]["file"] or variables.get("LC_ALL") == "C"
    if "utf-8" not in variables.values() and form != "github" and variables.get("PYTHONIOENCODING") != "cp1252":
        done.stdout.decode("ascii")


@pytest.mark.parametrize("option", ["--environment", "--pasted"])
def test_code_scanning_gets_a_file_and_a_line(compat: Run, tmp_path: Path, described: Write, option: str) -> None:
    path = affected(described)
    if option == "--pasted":
        path = str(tmp_path / "issue.txt")
        Path(path).write_text("transformers 4.53.3\nGPU: 2x RTX 3090\n", encoding="utf-8")
    done = compat("check", option, path, "--format", "sarif", "--launcher", "python", "--task", "sft")
    results = of_sarif(done.stdout)
    assert results
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == os.path.basename(path)
    assert place["region"] == {"startLine": 1}


def of_sarif(text: str) -> list[dict[str, Any]]:
    return [result for result in json.loads(text)["runs"][0]["results"] if result["ruleId"] == HIT]


def test_an_installation_is_shown_at_the_project(compat: Run, tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    for name, version in (("transformers", "4.53.3"), ("torch", "2.6.0"), ("accelerate", "1.6.0")):
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    call = ("check", "--installed", "--python", str(packages), *TARGET, "--format", "sarif")
    assert "logicalLocations" in of_sarif(compat(*call).stdout)[0]["locations"][0]
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "job"\n', encoding="utf-8")
    place = of_sarif(compat(*call).stdout)[0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "pyproject.toml", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 1}}
    (tmp_path / "other.toml").write_text("[tool.compat]\n", encoding="utf-8")
    place = of_sarif(compat(*call, "--config", "other.toml").stdout)[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "other.toml"


def test_json_that_is_no_environment_is_one_line(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"name": "x"}', encoding="utf-8")
    for words in (("x.json",), ("--environment", "x.json")):
        done = compat("check", *words)
        assert done.returncode == 2
        assert done.stderr.startswith("compat: x.json: expected a described environment, as 'compat facts' prints")
        assert done.stderr.count("\n") == 1


def test_requirements_that_contradict_each_other_fail(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("rich==13.0\nrich==14.0\n", encoding="utf-8")
    done = compat("check", "requirements.txt")
    assert done.returncode == 1
    assert "requirements.txt:2" in done.stdout
    assert "requirements-conflict" in done.stdout


def test_a_gpu_without_a_number_is_a_question(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "issue.txt").write_text("transformers 4.53.3\nGPU: RTX 3090\n", encoding="utf-8")
    call = ("check", "--pasted", "issue.txt", "--launcher", "python", "--task", "sft", "--format", "json")
    done = compat(*call)
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert [(each["verdict"], each["unknown"]) for each in of(HIT, report["findings"])] == [("possible", ["accelerators"])]
    assert report["environment"]["accelerators"][0]["more"] is True
    assert [each["verdict"] for each in of(HIT, json.loads(compat(*call, "--gpu", "RTX 3090:2").stdout)["findings"])] == ["hit"]
    assert of(HIT, json.loads(compat(*call, "--gpu", "RTX 3090:1").stdout)["findings"]) == []
