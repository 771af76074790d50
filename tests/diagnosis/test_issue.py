"""An issue as it was written: environment and error in one text."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., "subprocess.CompletedProcess[str]"]

ISSUE = """# [Bug]: ValueError: loading fails on a V100

### System info

- `datasets` version: 4.0.0
- torch 2.6.0, 2x V100, Ubuntu 22.04

I use `transformers==4.51.3` on this machine. It worked with `datasets==3.6.0`.

```
Traceback (most recent call last):
  File "/home/u/train.py", line 4, in <module>
    ds = load_dataset("superb")
  File "/home/u/.venv/lib/python3.11/site-packages/datasets/load.py", line 1392, in load_dataset
    builder_instance = load_dataset_builder(
RuntimeError: Dataset scripts are no longer supported, but found superb.py
```
"""


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stderr == ""
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_everything_in_an_issue_is_environment_and_error(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "issue.md").write_text(ISSUE)
    done = compat("diagnose", str(tmp_path / "issue.md"), "--format", "json")
    found = report(done)
    assert done.returncode == 1
    environment = found["environment"]
    assert {each["name"]: each["version"] for each in environment["distributions"]} == {
        "datasets": "4.0.0", "torch": "2.6.0", "transformers": "4.51.3",
    }  # fmt: skip
    assert (environment["python"], environment["os"], len(environment["accelerators"])) == ("3.11", "linux", 2)
    assert [(each["rule"], each["verdict"]) for each in found["findings"]] == [("datasets4-no-scripts", "hit")]


def test_check_finds_the_error_of_a_pasted_text(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "issue.md").write_text(ISSUE)
    done = compat("check", "--pasted", str(tmp_path / "issue.md"), "--format", "json")
    hits = {each["rule"] for each in report(done)["findings"] if each["verdict"] == "hit" and each["severity"] == "error"}
    assert (done.returncode, "datasets4-no-scripts" in hits) == (1, True)


def test_a_healthy_report_shows_no_error(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "env.txt").write_text("- `transformers` version: 4.57.6\n- CUDA_HOME: not found\n- NCCL_P2P_DISABLE=1\n")
    done = compat("check", "--pasted", str(tmp_path / "env.txt"), "--format", "json")
    assert done.returncode == 0
    assert not [each for each in report(done)["findings"] if each["rule"].startswith(("symptom-", "message-"))]


def test_a_given_environment_is_not_replaced_by_prose(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "issue.md").write_text(ISSUE)
    (tmp_path / "env.json").write_text(
        '{"schema": "compat/environment/1", "distributions": [{"name": "datasets", "version": "3.6.0"}]}'
    )
    done = compat("diagnose", str(tmp_path / "issue.md"), "--environment", str(tmp_path / "env.json"), "--format", "json")
    found = report(done)
    assert "the text names datasets 4.0.0, the environment has 3.6.0: another environment may have run" in found["notes"]
    (finding,) = found["findings"]
    assert (finding["verdict"], "datasets 3.6.0 is outside" in finding["why"]) == ("possible", True)


def test_a_traceback_cut_off_before_its_error_is_not_decisive(compat: Run) -> None:
    text = 'Traceback (most recent call last):\n  File "/home/u/train.py", line 4, in <module>\n    main()\n'
    notes = report(compat("diagnose", "-", "--format", "json", stdin=text))["notes"]
    assert any("the text ends before the error itself" in note for note in notes)
    assert not any("decisive" in note for note in notes)


def test_the_frames_show_the_task(compat: Run) -> None:
    frame = '  File "/v/lib/python3.11/site-packages/trl/trainer/dpo_trainer.py", line 4, in train\n    main()\n'
    text = f"Traceback (most recent call last):\n{frame}ValueError: strange\n"
    assert report(compat("diagnose", "-", "--format", "json", stdin=text))["environment"]["workload"] == {"task": "dpo"}
