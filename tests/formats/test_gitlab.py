"""Pipelines of GitLab CI."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.ci import GitLab
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from tests.formats.listings import lines, pins

TEXT = """\
image: python:3.10
variables:
  TORCH: "2.1.2"
before_script:
  - pip install -U pip
.setup:
  image: pytorch/pytorch:2.2.0-cuda12.1-cudnn8-runtime
  script:
    - pip install transformers==4.40.1
lint:
  script: ruff check .
train:
  extends: .setup
  before_script: []
  script:
    - !reference [.setup, script]
    - |
      cd src
      pip install trl==0.8.6 "torch==$TORCH"
    - [pip install peft==0.7.1]
"""


def test_jobs_with_templates_references_and_variables() -> None:
    (lint, train) = GitLab().read(".gitlab-ci.yml", TEXT)
    assert (lint.label, pins(lint).keys()) == ("job lint", {"pip"})
    assert train.label == "job train"
    assert {name: pins(train)[name] for name in ("transformers", "trl", "torch", "peft")} == {
        "transformers": "4.40.1", "trl": "0.8.6", "torch": "2.1.2", "peft": "0.7.1",
    }  # fmt: skip
    assert {name: lines(train)[name] for name in ("transformers", "trl", "peft")} == {"transformers": 9, "trl": 19, "peft": 20}


def test_only_versions_change(tmp_path: Path) -> None:
    (tmp_path / ".gitlab-ci.yml").write_text(TEXT)
    changes = (Change("transformers", "4.40.1", "4.46.3"), Change("trl", "0.8.6", "0.12.2"))
    (edit,) = edits_for(str(tmp_path / ".gitlab-ci.yml"), changes)
    assert edit.after.decode() == TEXT.replace("4.40.1", "4.46.3").replace("0.8.6", "0.12.2")


def test_a_pipeline_that_installs_nothing_says_so() -> None:
    (listing,) = GitLab().read(".gitlab-ci.yml", "build:\n  script:\n    - make\n")
    assert (listing.entries, len(listing.notes)) == ((), 1)


def test_what_is_included_is_named() -> None:
    (listing,) = GitLab().read(".gitlab-ci.yml", "include:\n- local: other.yml\na:\n  script: [pip install torch==2.6.0]\n")
    assert listing.entries
    assert listing.elsewhere == (".gitlab-ci.yml:2: include was not read: it may add jobs and templates",)


def test_jobs_do_not_multiply_the_text() -> None:
    text = "before_script:\n" + "- a\n" * 200 + "".join(f"j{number}:\n  script: [b]\n" for number in range(200))
    with pytest.raises(InputError, match="its jobs run more than 20000 lines"):
        GitLab().read(".gitlab-ci.yml", text)
