"""Batches of GRPO and RLOO that have to be divided into groups of completions, by release of trl."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks import batches
from compat.model import Distribution, Environment, Finding
from compat.rules.facts import Facts
from compat.workload.command import from_command

HEAD = "from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer\n"
TAIL = "\nGRPOTrainer(model='m', args=args, reward_funcs=f).train()\n"


def found(script: str, folder: Path, release: str, processes: int = 2) -> list[Finding]:
    path = folder / "train.py"
    path.write_text(HEAD + script + TAIL)
    words = ["torchrun", "--nproc_per_node", str(processes), str(path)]
    return _judged(words, folder, release, (str(path),))


def _judged(words: list[str], folder: Path, release: str, code: tuple[str, ...]) -> list[Finding]:
    from compat.records import replace

    workload = replace(from_command(words, str(folder), {}).workload, code=code or None)
    environment = Environment(distributions=(Distribution("trl", release),), workload=workload)
    return list(batches.judge(Facts(environment)))


@pytest.mark.parametrize(
    ("numbers", "release", "size"),
    [
        ("per_device_train_batch_size=2, num_generations=8", "0.16.1", 4),
        ("per_device_train_batch_size=2, num_generations=8, gradient_accumulation_steps=2", "0.16.1", 4),
        ("per_device_train_batch_size=2, num_generations=8", "0.17.0", 4),
        ("per_device_train_batch_size=2", "0.20.0", 4),  # the default of 8 generations
        ("num_generations=6", "0.29.0", 16),  # the default of 8 in a batch
        ("per_device_train_batch_size=2, num_generations=8, steps_per_generation=3", "0.20.0", 12),
        ("generation_batch_size=12, num_generations=8, per_device_train_batch_size=2", "1.0.0", 12),
    ],
)
def test_a_batch_that_does_not_divide_is_an_error(numbers: str, release: str, size: int, tmp_path: Path) -> None:
    (finding,) = found(f"args = GRPOConfig('x', {numbers})", tmp_path, release)
    assert finding.severity == "error"
    assert finding.title.startswith(f"A batch of {size} completions cannot be divided into groups of ")
    assert finding.location is not None
    assert finding.location.line == 2


@pytest.mark.parametrize(
    ("numbers", "release"),
    [
        ("per_device_train_batch_size=4, num_generations=8", "0.16.1"),
        ("per_device_train_batch_size=2, num_generations=8, gradient_accumulation_steps=2", "0.17.0"),
        ("per_device_train_batch_size=2, num_generations=8, steps_per_generation=4", "0.20.0"),
        ("per_device_train_batch_size=2, num_generations=8", "0.14.0"),  # does not check it
        ("per_device_train_batch_size=int(n), num_generations=8", "0.20.0"),
        ("per_device_train_batch_size=2, num_generations=8, **more", "0.20.0"),
        ("generation_batch_size=n, num_generations=8", "0.20.0"),
    ],
)
def test_batches_that_divide_and_numbers_that_are_unknown_are_not(numbers: str, release: str, tmp_path: Path) -> None:
    assert not found(f"args = GRPOConfig('x', {numbers})", tmp_path, release)


def test_what_the_script_changes_afterwards_or_under_a_condition_is_unknown(tmp_path: Path) -> None:
    wrong = "args = GRPOConfig('x', per_device_train_batch_size=2, num_generations=8)\n"
    assert found(wrong, tmp_path, "0.20.0")
    assert not found(wrong + "args.num_generations = 4\n", tmp_path, "0.20.0")
    assert not found("if n:\n    " + wrong, tmp_path, "0.20.0")


def test_the_fixes_are_batches_and_groups_that_divide(tmp_path: Path) -> None:
    (finding,) = found("args = GRPOConfig('x', per_device_train_batch_size=2, num_generations=8)", tmp_path, "0.20.0")
    assert [fix.text for fix in finding.fixes] == [
        "per_device_train_batch_size=4", "gradient_accumulation_steps=2, which needs no more memory",
        "num_generations as one of 2, 4",
    ]  # fmt: skip


def test_numbers_of_a_configuration_file_count_below_those_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text("model_name_or_path: m\nper_device_train_batch_size: 2\nnum_generations: 6\n")
    words = ["trl", "grpo", "--config", "grpo.yaml", "--num_processes", "2"]
    assert _judged(words, tmp_path, "0.20.0", ())
    assert not _judged([*words, "--num_generations", "4"], tmp_path, "0.20.0", ())
