"""The trainers' callback, with the real transformers and trl on a CPU; they are imported by the tests that run, as this takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.integrations import guard
from compat.model import Report
from tests.probe.conftest import needs

needs("torch", "transformers", "trl")


def tiny() -> object:
    import transformers

    config = transformers.LlamaConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=32
    )
    return transformers.AutoModelForCausalLM.from_config(config)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "COMPAT_GUARD", guard.GUARDED):
        monkeypatch.delenv(name, raising=False)


def test_arguments_become_facts(tmp_path: Path) -> None:
    import trl

    from compat.integrations.trainer import workload_of

    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path), use_cpu=True, bf16=False, use_vllm=True, per_device_train_batch_size=4,
        gradient_accumulation_steps=4, num_generations=4,
    )  # fmt: skip
    said = workload_of(arguments)
    assert (said.task, said.trainer, said.launcher, said.processes, said.batch_size) == ("grpo", "GRPOTrainer", "python", 1, 4)
    assert {"vllm", "gradient-accumulation"} <= set(said.features or ())
    assert {"torch-compile", "liger"} <= set(said.features_absent or ())


def test_a_model_says_its_architecture_and_whether_it_is_adapted(tmp_path: Path) -> None:
    import transformers

    from compat.integrations.trainer import workload_of

    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    said = workload_of(arguments, tiny())
    assert (said.model, said.task) == ("llama", None)
    assert "peft" in (said.features_absent or ())


def test_a_launcher_s_variables_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import trl

    from compat.integrations.trainer import workload_of

    arguments = trl.SFTConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False)
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "x"}.items():
        monkeypatch.setenv(name, value)
    assert workload_of(arguments).launcher == "torchrun"


def test_the_real_trainer_calls_it_when_it_is_built(tmp_path: Path) -> None:
    import transformers
    import trl

    from compat.integrations.trainer import CompatCallback

    callback = CompatCallback()
    arguments = trl.SFTConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to=[])
    transformers.Trainer(model=tiny(), args=arguments, callbacks=[callback])
    assert isinstance(callback.report, Report)
    workload = callback.report.environment.workload
    assert workload is not None
    assert (workload.task, workload.model) == ("sft", "llama")
    assert any(each.name == "transformers" for each in callback.report.environment.distributions or ())
