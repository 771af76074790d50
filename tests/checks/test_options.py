"""Options that the parser of an installed release does not take."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks import options
from compat.model import Distribution, Environment, Finding, Option, Workload
from compat.workload.command import from_command

_OLD = {"trl": "0.20.0", "transformers": "4.53.2", "accelerate": "1.9.0", "vllm": "0.10.2"}


def _found(given: list[Option], stack: dict[str, str], *code: str) -> list[Finding]:
    workload = Workload(options=tuple(given), code=code or None)
    listed = tuple(Distribution(name, version) for name, version in stack.items())
    return list(options.judge(Environment(distributions=listed, workload=workload)))


def _of(parser: str, *names: str, stack: dict[str, str] = _OLD) -> list[str]:
    return [each.title for each in _found([Option(parser, name, "the command") for name in names], stack)]


def test_a_field_that_was_renamed_is_reported_with_its_new_name() -> None:
    (found,) = _found([Option("trl sft", "--max_seq_length", "the command")], _OLD)
    assert found.title == "--max_seq_length is not an option of trl 0.20.0's SFTConfig"
    assert [fix.text for fix in found.fixes] == [
        "use max_length= instead of max_seq_length=",
        "the last release before that accepts --max_seq_length",
    ]
    assert found.fixes[1].spec == "==0.19.1"
    assert not _of("trl sft", "--max_seq_length", stack={**_OLD, "trl": "0.19.1"})


def test_a_field_of_a_base_in_another_package_is_that_releases_matter() -> None:
    assert _of("trl sft", "evaluation_strategy") == ["evaluation_strategy is not an option of trl 0.20.0's SFTConfig"]
    assert not _of("trl sft", "evaluation_strategy", stack={**_OLD, "transformers": "4.45.0"})
    without = {name: version for name, version in _OLD.items() if name != "transformers"}
    assert not _of("trl sft", "evaluation_strategy", stack=without)


@pytest.mark.parametrize(
    "name",
    [
        "--learning_rate",
        "--learning_r",  # argparse completes what is cut short
        "--no_bf16",
        "--num_processes",  # of accelerate launch, to which trl hands it on
        "--config",
        "--model_name_or_path",
        "--never_heard_of_it",  # by no release: more often something that was not read
    ],
)
def test_what_is_taken_or_known_of_no_release_is_not_reported(name: str) -> None:
    assert not _of("trl sft", name)


def test_options_of_servers_and_launchers() -> None:
    assert _of("vllm serve", "--num-scheduler-steps", "--tensor_parallel_size", "--hf-overrides.rope", "--no-enable-lora") == [
        "--num-scheduler-steps is not an option of vllm serve in vllm 0.10.2"
    ]
    assert _of("accelerate config", "parallelism_config", "num_processes", "dynamo_backend") == [
        "parallelism_config is not an option of accelerate 1.9.0's ClusterConfig"
    ]
    assert not _of("accelerate config", "parallelism_config", stack={"accelerate": "1.10.0"})
    assert not _of("vllm serve", "--num-scheduler-steps", stack={"vllm": "999.0"})


_SCRIPT = """
from dataclasses import dataclass
from transformers import HfArgumentParser, TrainingArguments

@dataclass
class Data:
    train_file: str = ""

parser = HfArgumentParser((Data, TrainingArguments))
data, training = parser.parse_args_into_dataclasses({})
"""


@pytest.mark.parametrize(
    ("how", "reported"), [("", True), ("return_remaining_strings=True", False), ("args_file_flag='--x'", True)]
)
def test_the_parser_of_a_script(tmp_path: Path, how: str, reported: bool) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT.replace("({})", f"({how})"))
    launch = from_command(
        ["accelerate", "launch", "--cpu", str(script), "--train_file", "a", "--evaluation_strategy", "no"], str(tmp_path), {}
    )
    assert [each.name for each in launch.workload.options or () if each.parser == "the script"] == [
        "--train_file",
        "--evaluation_strategy",
    ]
    found = _found(list(launch.workload.options or ()), _OLD, str(script))
    expected = ["--evaluation_strategy is not an option of transformers 4.53.2's TrainingArguments"] if reported else []
    assert [each.title for each in found] == expected


def test_keys_of_an_argument_file_have_their_line(tmp_path: Path) -> None:
    (tmp_path / "sft.yaml").write_text("model_name_or_path: m\nmax_seq_length: 512\n")
    launch = from_command(["trl", "sft", "--config", "sft.yaml"], str(tmp_path), {})
    (found,) = _found(list(launch.workload.options or ()), _OLD)
    assert found.location is not None
    assert (Path(found.location.file).name, found.location.line) == ("sft.yaml", 2)
