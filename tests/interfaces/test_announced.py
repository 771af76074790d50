"""What packages say of names that they removed, in the shipped tables."""

from __future__ import annotations

import pytest

from compat.checks.options import open_parsers
from compat.interfaces.announced import advised, curated


@pytest.mark.parametrize(
    ("package", "name", "owners", "new"),
    [
        ("transformers", "per_gpu_train_batch_size", ("TrainingArguments",), "--per_device_train_batch_size"),
        ("transformers", "evaluation_strategy", ("TrainingArguments",), "eval_strategy"),
        ("trl", "max_seq_length", ("SFTConfig",), "max_length"),
        ("trl", "use_num_logits_to_keep", ("DPOConfig",), "use_logits_to_keep"),
        ("peft", "prepare_model_for_int8_training", (), "prepare_model_for_kbit_training"),
        ("trl", "PPOv2Trainer", (), "PPOTrainer"),
        ("datasets", "fs", ("load_from_disk",), "storage_options"),
    ],
)
def test_the_name_to_use_instead(package: str, name: str, owners: tuple[str, ...], new: str) -> None:
    found = advised(package, name, owners)
    assert found is not None
    assert found.new == new


def test_advice_without_another_name_is_quoted() -> None:
    found = advised("trl", "max_prompt_length", ("GRPOConfig",))
    assert found is not None
    assert found.new is None
    assert found.quoted("trl").startswith('trl 0.27.2 says of it: "You should instead filter your dataset before training')


@pytest.mark.parametrize(
    ("package", "name", "owners"),
    [
        ("trl", "eval_strategy", ("SFTConfig",)),  # no warning names it
        ("transformers", "eval_strategy", ("TrainingArguments",)),  # it replaces another one
        ("transformers", "version", ()),  # a word in a sentence about something else
        ("trl", "max_seq_length", ("GRPOConfig",)),  # of another class
        ("no-such-package", "name", ()),
    ],
)
def test_nothing_is_said_of_other_names(package: str, name: str, owners: tuple[str, ...]) -> None:
    assert advised(package, name, owners) is None


@pytest.mark.parametrize(
    ("program", "option", "release", "instead"),
    [
        ("vllm serve", "enable-multimodal-encoder-data-parallel", "0.13.0", "--mm-encoder-tp-mode data"),
        ("vllm serve", "override-pooler-config", "0.13.0", "--pooler-config"),
        ("vllm serve", "eplb-window-size", "0.13.0", "--eplb-config.window_size"),
        ("vllm serve", "guided-decoding-backend", "0.13.0", "--structured-outputs-config.backend"),
        ("sglang serve", "enable-deepep-moe", "0.5.6", "--moe-a2a-backend deepep"),
        ("vllm serve", "max-context-len-to-capture", "0.13.0", None),  # its replacement is gone as well
        ("vllm serve", "swap-space", "0.20.0", None),
    ],
)
def test_the_option_to_pass_instead(program: str, option: str, release: str, instead: str | None) -> None:
    assert open_parsers()[program].instead(option, release) == instead


def test_the_table_has_what_no_warning_says_in_one_text() -> None:
    assert curated("torch", "torch._six.string_classes") == "(str, bytes)"
    assert curated("vllm", "--no-such-option") is None
