"""An issue as it was written: environment and error in one text."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat.reports.log.traceback import decisive, parse_log

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
    assert (
        "the text names datasets 4.0.0, but the environment has 3.6.0: the error may come from another environment"
        in found["notes"]
    )
    (finding,) = found["findings"]
    assert (finding["verdict"], "datasets 3.6.0 is outside" in finding["why"]) == ("possible", True)


def test_a_traceback_cut_off_before_its_error_is_not_decisive(compat: Run) -> None:
    text = 'Traceback (most recent call last):\n  File "/home/u/train.py", line 4, in <module>\n    main()\n'
    notes = report(compat("diagnose", "-", "--format", "json", stdin=text))["notes"]
    assert any("it ends before the error message" in note for note in notes)
    assert not any("decisive" in note for note in notes)


def test_the_frames_show_the_task(compat: Run) -> None:
    frame = '  File "/v/lib/python3.11/site-packages/trl/trainer/dpo_trainer.py", line 4, in train\n    main()\n'
    text = f"Traceback (most recent call last):\n{frame}ValueError: strange\n"
    assert report(compat("diagnose", "-", "--format", "json", stdin=text))["environment"]["workload"] == {"task": "dpo"}


@pytest.mark.parametrize(
    "title",
    [
        "# ImportError: cannot import name 'LlamaFlashAttention2' from 'transformers.models.llama.modeling_llama'",
        "# Cannot start: cannot import name 'LlamaFlashAttention2' from 'transformers.models.llama.modeling_llama'",
    ],
)
def test_a_title_says_what_a_cut_off_traceback_ends_with(title: str) -> None:
    frame = '  File "/v/lib/python3.11/site-packages/axolotl/cli/train.py", line 58, in <module>\n    fire.Fire(do_cli)\n'
    (error,) = parse_log(f"{title}\n\nTraceback (most recent call last):\n{frame}")
    assert (error.exception, error.line) == ("ImportError", 1)
    assert error.message.startswith("cannot import name 'LlamaFlashAttention2'")
    assert [frame.function for frame in error.frames] == ["<module>"]


def test_what_is_there_stands_beside_what_a_package_was_built_for(compat: Run) -> None:
    text = (
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
        "    PyTorch 2.2.0+cu121 with CUDA 1201 (you have 2.2.0+cpu)\n"
        "    Python  3.11.7 (you have 3.11.0)\n"
    )
    found = report(compat("diagnose", "--format", "json", "-", stdin=text))
    assert found["environment"]["python"] == "3.11.0"
    assert [each["version"] for each in found["environment"]["distributions"] if each["name"] == "torch"] == ["2.2.0+cpu"]
    assert "the installed torch 2.2.0+cpu is a CPU build" in found["findings"][0]["title"]


def test_a_failed_import_stands_before_the_package_that_is_called_missing() -> None:
    text = (
        "Encountered exception while importing peft: cannot import name 'shard_checkpoint' from 'transformers.modeling_utils' (/v)\n"
        'Traceback (most recent call last):\n  File "/v/bin/lmdeploy", line 8, in <module>\n    sys.exit(run())\n'
        "ImportError: This modeling file requires the following packages that were not found in your environment: peft.\n"
    )
    errors = parse_log(text)
    first = errors[decisive(errors)[0]]
    assert (first.exception, first.line) == ("ImportError", 1)
    assert "shard_checkpoint" in first.message


def test_a_warning_that_names_a_cause_is_found_by_check(compat: Run, tmp_path: Path) -> None:
    pasted = tmp_path / "issue.md"
    pasted.write_text("CUDA SETUP: Required library version not found: libbitsandbytes_cuda121.so.\n", encoding="utf-8")
    found = report(compat("check", "--pasted", str(pasted), "--format", "json"))
    assert "libbitsandbytes_cuda121.so" in found["findings"][0]["title"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (  # the job is described, the error is not shown
            "It is impossible to connect to the vLLM server and run GRPO in server mode.\n\nvllm==0.9.1\ntrl==0.19.0\n",
            "trl-vllm-server-dtype-not-serializable",
        ),
        (  # a failure without a message: what it does is said in words
            "DPO with gradient accumulation: the loss is several times higher than before.\n\ntransformers==4.48.1\ntrl==0.13.0\n",
            "trl-accumulated-loss-not-scaled",
        ),
        (  # the options are named
            "SFT with packing=True and completion_only_loss=True: the loss is wrong, as if prompts counted.\n\ntrl==0.19.1\n",
            "trl-packing-drops-completion-mask",
        ),
    ],
)
def test_a_failure_without_an_error_is_explained_by_what_is_known_of_the_environment(compat: Run, text: str, rule: str) -> None:
    found = report(compat("diagnose", "--format", "json", "-", stdin=text))
    assert rule in [finding["rule"] for finding in found["findings"]]


@pytest.mark.parametrize(
    "text",
    [
        "How do I choose the number of generations for GRPO with vLLM?\n\nvllm==0.9.1\ntrl==0.19.0\n",  # nothing fails
        "Training is slow.\n\nvllm==0.9.1\ntrl==0.19.0\n",  # another effect
        # a rule about a crash has its own message
        "AttributeError: 'Linear' object has no attribute 'of_nobody', with GRPO and use_vllm=True\n\nvllm==0.9.1\ntrl==0.19.0\n",
        "Training with SFT fails.\n\nvllm==0.9.1\ntrl==0.19.1\n",  # another job and release
    ],
)
def test_an_environment_is_no_explanation_of_another_effect(compat: Run, text: str) -> None:
    found = report(compat("diagnose", "--format", "json", "-", stdin=text))
    assert found["findings"] == []


def test_both_commands_read_curly_quotes(compat: Run, tmp_path: Path) -> None:
    text = "torch 2.6.0\n\nTypeError: __init__() got an unexpected keyword argument \u2018dispatch_batches\u2019\n"
    (tmp_path / "issue.md").write_text(text, encoding="utf-8")
    for words in (("diagnose", str(tmp_path / "issue.md")), ("check", "--pasted", str(tmp_path / "issue.md"))):
        found = report(compat(*words, "--format", "json"))["findings"]
        assert "accelerate-dispatch-batches-removed" in {each["rule"] for each in found}, words
