"""Workflows of GitHub Actions: what their jobs install, against the steps that PyYAML finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.listing import Listing
from compat.formats.registry import read_listings

WORKFLOW = """\
name: ci
on:
  push:
  workflow_dispatch:
env:
  HF_HUB_OFFLINE: "1"
jobs:
  test:
    runs-on: ubuntu-22.04
    strategy:
      matrix:
        torch: ["2.5.1", "2.6.0"]
    env: {VLLM_USE_V1: "0"}
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.11"}
      - name: install
        run: |
          python -m pip install torch==${{ matrix.torch }}
          pip install "transformers==4.46.3" \\
            trl==0.12.1
      - if: github.event_name == 'push'
        run: pip install vllm==0.6.4
      - shell: python
        run: import subprocess; subprocess.run(["pip", "install", "nothing==1.0"])
      - run: pytest -q
        working-directory: tests
  gpu:
    runs-on: [self-hosted, gpu]
    container: nvcr.io/nvidia/pytorch:24.10-py3
    steps:
      - run: pip install peft==0.13.2
      - run: torchrun --nproc_per_node 4 train.py --bf16 True
  lint:
    runs-on: ubuntu-latest
    steps: [{run: ruff check .}]
"""


def read(tmp_path: Path, text: str = WORKFLOW) -> dict[str | None, Listing]:
    path = tmp_path / "ci.yml"
    path.write_text(text, encoding="utf-8")
    return {listing.label: listing for listing in read_listings(str(path))}


def line(text: str) -> int:
    return next(number for number, each in enumerate(WORKFLOW.split("\n"), 1) if text in each)


def test_the_jobs_that_install_are_listed_with_their_lines(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert list(found) == ["job test", "job gpu"]
    test = found["job test"]
    assert [(e.distribution.name, e.distribution.version, e.line) for e in test.entries] == [
        ("torch", None, line("install torch")),
        ("transformers", "4.46.3", line("transformers")),
        ("trl", "0.12.1", line("trl==")),
        ("vllm", None, line("vllm==")),
    ]
    assert (test.context.os, test.requires_python) == ("linux", "==3.11.*")
    assert test.context.variables == {"HF_HUB_OFFLINE": "1", "VLLM_USE_V1": "0"}
    assert test.context.accelerators is None
    assert any("job test: what ${{ … }} expands to is unknown" in note for note in test.notes)
    assert any("vllm: what is installed depends on a condition" in note for note in test.notes)
    assert any("torch=={{ … }}: its version is only known at run time" in each for each in test.elsewhere)
    assert not any("...." in each for each in (*test.notes, *test.elsewhere, *test.unread))


def test_a_job_in_a_container_starts_with_its_image(tmp_path: Path) -> None:
    listing = read(tmp_path)["job gpu"]
    assert {e.distribution.name for e in listing.entries} == {"torch", "peft"}
    assert listing.context.os == "linux"
    assert listing.context.workload is not None
    assert (listing.context.workload.launcher, listing.context.workload.processes) == ("torchrun", 4)


def test_the_pins_are_those_in_the_steps_that_pyyaml_finds(tmp_path: Path) -> None:
    jobs = yaml.safe_load(WORKFLOW)["jobs"]
    for name, job in jobs.items():
        texts = [step["run"] for step in job["steps"] if "run" in step and step.get("shell") != "python" and "if" not in step]
        expected = set(re.findall(r"([a-z]+)==([\d.]+)", "\n".join(texts)))
        listing = read(tmp_path).get(f"job {name}")
        own = [] if listing is None else [e.distribution for e in listing.entries]
        found = {(each.name, each.version) for each in own if each.version and each.source and each.source.kind == "index"}
        assert found == expected


def test_a_requirements_file_of_the_project_is_opened(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("trl==0.12.1\n", encoding="utf-8")
    (folder / "ci.yml").write_text("on: push\njobs: {a: {steps: [{run: pip install -r requirements.txt}]}}\n", encoding="utf-8")
    (listing,) = read_listings(str(folder / "ci.yml"))
    assert [(e.distribution.name, e.distribution.version) for e in listing.entries] == [("trl", "0.12.1")]
    assert listing.unread == ()


def test_a_workflow_that_installs_nothing_is_a_note(tmp_path: Path) -> None:
    found = read(tmp_path, "on: push\njobs: {lint: {runs-on: ubuntu-latest, steps: [{run: ruff check .}]}}\n")
    assert found[None].entries == ()
    assert "no job installs a package" in found[None].notes[0]


def test_an_edit_changes_one_pin(tmp_path: Path) -> None:
    path = tmp_path / "ci.yml"
    path.write_text(WORKFLOW, encoding="utf-8")
    (edit,) = edits_for(str(path), [Change("trl", "0.12.1", "0.15.2"), Change("transformers", "4.46.3", "4.48.0")])
    assert edit.after.decode() == WORKFLOW.replace("0.12.1", "0.15.2").replace("4.46.3", "4.48.0")


def test_a_version_of_the_matrix_is_not_edited(tmp_path: Path) -> None:
    path = tmp_path / "ci.yml"
    path.write_text(WORKFLOW, encoding="utf-8")
    with pytest.raises(InputError, match="the version of torch is only known when the script runs"):
        edits_for(str(path), [Change("torch", "2.5.1", "2.6.0")])


MATRIX = """\
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python-version: ["3.9", 3.11]
        include:
          - python-version: "3.14"
            torch: nightly
    steps:
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python-version }}"}
      - run: pip install torch==2.5.1
"""


def test_a_job_is_read_for_each_python_of_its_matrix(tmp_path: Path) -> None:
    assert {label: listing.requires_python for label, listing in read(tmp_path, MATRIX).items()} == {
        "job test, Python 3.9": "==3.9.*", "job test, Python 3.11": "==3.11.*", "job test, Python 3.14": "==3.14.*",
    }  # fmt: skip


@pytest.mark.parametrize("key", ["matrix.python", "inputs.python-version", "matrix.python-version || '3.9'"])
def test_a_python_that_the_matrix_does_not_state_is_unknown(key: str, tmp_path: Path) -> None:
    ((label, listing),) = read(tmp_path, MATRIX.replace("matrix.python-version }}", f"{key} }}}}")).items()
    assert (label, listing.requires_python) == ("job test", None)


def test_lines_that_only_yaml_ends(tmp_path: Path) -> None:
    step = 'uses: actions/setup-python@v5\r        with:\r          python-version: "3.11"\r      - run: pip install torch==2.5.1\r'
    text = "on: push\rjobs:\r  test:\r    runs-on: ubuntu-latest\r    steps:\r      - " + step
    ((_, listing),) = read(tmp_path, text).items()
    assert listing.requires_python == "==3.11.*"
