"""Configurations of training tools as workload: what each key says, and what is only known later."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.registry import read_listings
from compat.model import Workload

AXOLOTL = """\
base_model: NousResearch/Meta-Llama-3.1-8B
load_in_4bit: true
adapter: qlora
rl: dpo
datasets: [{path: a}]
micro_batch_size: 2
gradient_accumulation_steps: 4
sample_packing: true
bf16: true
deepspeed: ds.json
"""
LLAMAFACTORY = """\
model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
finetuning_type: lora
quantization_bit: 4
per_device_train_batch_size: 1
fp16: true
flash_attn: fa2
"""
VERL = """\
data: {train_batch_size: 1024}
actor_rollout_ref:
  model: {path: Qwen/Qwen2.5-7B}
  actor: {strategy: fsdp2}
  rollout: {name: vllm, tensor_model_parallel_size: 2}
algorithm: {adv_estimator: grpo}
trainer: {nnodes: 2, n_gpus_per_node: 8}
"""
SWIFT = """\
model: Qwen/Qwen2.5-7B
model_name: swift-bot
dataset: [a]
train_type: lora
rlhf_type: dpo
torch_dtype: bfloat16
per_device_train_batch_size: 4
"""
TORCHTUNE = """\
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer}
model:
  _component_: torchtune.models.llama3_1.qlora_llama3_1_8b
  lora_rank: 8
checkpointer: {_component_: torchtune.training.FullModelHFCheckpointer}
batch_size: 2
gradient_accumulation_steps: 8
dtype: bf16
compile: false
enable_activation_checkpointing: true
"""
TRL = """\
model_name_or_path: Qwen/Qwen2.5-7B
dataset_name: a
bf16: true
use_vllm: true
"""


def read(tmp_path: Path, text: str) -> Workload:
    path = tmp_path / "config.yml"
    path.write_text(text, encoding="utf-8")
    (listing,) = read_listings(str(path))
    assert listing.entries == ()
    assert listing.context.workload is not None
    return listing.context.workload


def test_axolotl_with_its_deepspeed_file(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}}', encoding="utf-8")
    found = read(tmp_path, AXOLOTL)
    assert (found.task, found.model, found.batch_size) == ("dpo", "NousResearch/Meta-Llama-3.1-8B", 2)
    assert (found.precision, found.quantization) == ("bf16", "4bit")
    assert {"peft", "packing", "gradient-accumulation", "deepspeed", "zero-3"} <= set(found.features or ())
    assert found.origins["task"] == f"{tmp_path / 'config.yml'}:4"


def test_a_deepspeed_file_that_is_not_there_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "config.yml"
    path.write_text(AXOLOTL, encoding="utf-8")
    (listing,) = read_listings(str(path))
    assert any("the DeepSpeed configuration ds.json was not read" in note for note in listing.notes)
    assert any(f"-- axolotl train {path}" in note for note in listing.notes)


def test_llamafactory(tmp_path: Path) -> None:
    found = read(tmp_path, LLAMAFACTORY)
    assert (found.task, found.model, found.precision, found.quantization) == ("sft", "Qwen/Qwen2.5-7B", "fp16", "4bit")
    assert found.features == ("peft", "flash-attention")


def test_verl(tmp_path: Path) -> None:
    found = read(tmp_path, VERL)
    assert (found.task, found.launcher, found.processes, found.model) == ("grpo", "ray", 16, "Qwen/Qwen2.5-7B")
    assert set(found.features or ()) == {"vllm", "fsdp", "fsdp2"}


def test_swift(tmp_path: Path) -> None:
    found = read(tmp_path, SWIFT)
    assert (found.task, found.model, found.batch_size) == ("dpo", "Qwen/Qwen2.5-7B", 4)
    assert found.features == ("peft",)


def test_torchtune(tmp_path: Path) -> None:
    found = read(tmp_path, TORCHTUNE)
    assert (found.precision, found.quantization, found.batch_size) == ("bf16", "4bit", 2)
    assert set(found.features or ()) == {"peft", "gradient-accumulation", "gradient-checkpointing"}
    assert found.features_absent == ("torch-compile",)


def test_trl(tmp_path: Path) -> None:
    found = read(tmp_path, TRL)
    assert (found.model, found.precision, found.features) == ("Qwen/Qwen2.5-7B", "bf16", ("vllm",))
    assert found.task is None


@pytest.mark.parametrize("value", ["${oc.env:MODEL}", "$MODEL"])
def test_a_model_that_is_filled_in_later_is_not_known(tmp_path: Path, value: str) -> None:
    found = read(tmp_path, VERL.replace("Qwen/Qwen2.5-7B", f'"{value}"'))
    assert found.model is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base_model: a\ndatasets: [\n", "is not YAML"),
        ("base_model: a\ndatasets: !!python/object:os.system {}\n", "has a value of the unsupported type"),
    ],
)
def test_bad_configurations_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_listings(str(path))


def test_a_configuration_lists_no_packages(tmp_path: Path) -> None:
    path = tmp_path / "config.yml"
    path.write_text(AXOLOTL, encoding="utf-8")
    with pytest.raises(InputError, match="cannot be edited: it lists no packages"):
        edits_for(str(path), [Change("torch", "2.5.1", "2.6.0")])


@pytest.mark.parametrize(("loss", "task"), [("DPOLoss", "dpo"), ("PPOLoss", "ppo"), ("LinearCrossEntropyLoss", None)])
def test_torchtunes_loss_names_the_task(tmp_path: Path, loss: str, task: str | None) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(f"{TORCHTUNE}loss: {{_component_: torchtune.rlhf.loss.{loss}}}\n")
    (listing,) = read_listings(str(path))
    assert listing.context.workload is not None
    assert listing.context.workload.task == task


def test_verls_supervised_trainer(tmp_path: Path) -> None:
    path = tmp_path / "sft.yaml"
    path.write_text(
        "data: {micro_batch_size_per_gpu: 4}\noptim: {lr: 1e-5}\ntrainer: {nnodes: 1, n_gpus_per_node: 8}\n"
        "model: {partial_pretrain: google/gemma-2b, lora_rank: 32, strategy: fsdp2, enable_gradient_checkpointing: true}\n"
    )
    (listing,) = read_listings(str(path))
    workload = listing.context.workload
    assert workload is not None
    assert (workload.task, workload.launcher, workload.processes, workload.batch_size) == ("sft", "torchrun", 8, 4)
    assert workload.model == "google/gemma-2b"
    assert set(workload.features or ()) == {"peft", "fsdp", "fsdp2", "gradient-checkpointing"}


def test_a_configuration_of_llamafactory_that_only_chats(tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text("model_name_or_path: Qwen/Qwen3-4B\ntemplate: qwen3_nothink\ninfer_backend: huggingface\n")
    (listing,) = read_listings(str(path))
    assert listing.context.workload is not None
    assert listing.context.workload.model == "Qwen/Qwen3-4B"
    assert "llamafactory-cli chat" in listing.notes[0]
