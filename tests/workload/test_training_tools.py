"""Tools that bring their own script: trl, vLLM, SGLang, LLaMA-Factory, axolotl, ms-swift, torchtune."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat.errors import InputError
from compat.workload.command import from_command
from compat.workload.launch import Launch
from compat.workload.wrappers import split_words

RECIPE = """\
# a comment
model_name_or_path: mistralai/Mistral-7B-v0.1
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
bf16: true
"""


def read(line: str, folder: Path, **variables: str) -> Launch:
    return from_command(split_words(line), str(folder), {"HOME": str(folder / "home"), **variables})


def known(found: Launch, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(found.workload, name) for name in names)


@pytest.mark.parametrize(("task", "trainer"), [
    ("sft", "SFTTrainer"), ("grpo", "GRPOTrainer"), ("dpo", "DPOTrainer"), ("kto", "KTOTrainer"), ("reward", "RewardTrainer"), ("rloo", "RLOOTrainer"),
])  # fmt: skip
def test_trl_trains_through_accelerate(task: str, trainer: str, tmp_path: Path) -> None:
    found = read(f"trl {task} --model_name_or_path Qwen/Qwen3-4B --use_peft --num_processes 2", tmp_path)
    assert known(found, "task", "trainer", "launcher", "processes", "model", "features") == (
        task, trainer, "accelerate", 2, "Qwen/Qwen3-4B", ("trl-command", "trl-script", "peft"),
    )  # fmt: skip


@pytest.mark.parametrize(("name", "on", "processes"), [
    ("zero1", {"deepspeed", "zero-1"}, 8), ("zero2", {"deepspeed", "zero-2"}, 8), ("zero3", {"deepspeed", "zero-3"}, 8), ("fsdp1", {"fsdp", "ram-efficient-loading"}, 8),
    ("fsdp2", {"fsdp", "fsdp2", "ram-efficient-loading"}, 8), ("multi_gpu", set(), 8), ("single_gpu", set(), 1),
])  # fmt: skip
def test_trl_ships_configurations(name: str, on: set[str], processes: int, tmp_path: Path) -> None:
    found = read(f"trl grpo --accelerate_config {name} --config {_recipe(tmp_path, 'use_vllm: false')}", tmp_path)
    assert set(found.workload.features or ()) == {"trl-command", "trl-script", *on}
    assert known(found, "processes", "precision") == (processes, "bf16")
    assert "vllm" in (found.workload.features_absent or ())


def _recipe(folder: Path, text: str, name: str = "recipe.yaml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_trl_recipe_may_name_the_launch_and_the_environment(tmp_path: Path) -> None:
    _recipe(tmp_path, f"{RECIPE}num_processes: 4\nmixed_precision: bf16\nenv:\n  NCCL_DEBUG: INFO\n")
    found = read("trl sft --config recipe.yaml --per_device_train_batch_size 1", tmp_path)
    assert known(found, "processes", "batch_size", "precision", "features") == (
        4,
        1,
        "bf16",
        ("trl-command", "trl-script", "gradient-accumulation"),
    )
    assert found.workload.origins["features.gradient-accumulation"].endswith("recipe.yaml:4")
    assert found.variables == {"NCCL_DEBUG": "INFO"}


def test_trl_scripts_as_modules(tmp_path: Path) -> None:
    found = read("torchrun --nproc_per_node 2 -m trl.scripts.dpo --packing", tmp_path)
    assert known(found, "task", "launcher", "processes", "features") == ("dpo", "torchrun", 2, ("trl-script", "packing"))


@pytest.mark.parametrize(("line", "expected"), [
    ("vllm serve mistralai/Mistral-7B --tensor-parallel-size 4 --dtype half", ("mistralai/Mistral-7B", "python", 4, "fp16", None)),
    ("vllm serve Qwen/Q -tp 2 -pp=2 --dtype auto --quantization awq", ("Qwen/Q", "python", 4, None, "awq")),
    ("vllm serve Qwen/Q --tensor-parallel-size '$TP'", ("Qwen/Q", "python", None, None, None)),
    ("python -m vllm.entrypoints.openai.api_server --model Qwen/Q", ("Qwen/Q", "python", 1, None, None)),
    ("vllm serve --model Qwen/Q --distributed-executor-backend ray -tp 8", ("Qwen/Q", "ray", 8, None, None)),
    ("trl vllm-serve --model Qwen/Q --tensor_parallel_size 2 --data_parallel_size 2", ("Qwen/Q", "python", 4, None, None)),
])  # fmt: skip
def test_vllm_servers(line: str, expected: tuple[Any, ...], tmp_path: Path) -> None:
    found = read(line, tmp_path)
    assert known(found, "model", "launcher", "processes", "precision", "quantization") == expected
    assert known(found, "task") == ("serve",)
    assert "vllm" in (found.workload.features or ())


@pytest.mark.parametrize(("options", "on", "off"), [
    ("", (), ("vllm-speculative",)),
    ("""--speculative-config '{"method": "mtp", "num_speculative_tokens": 2}'""", ("vllm-speculative",), ()),
    ("""-sc '{"method": "ngram"}'""", (), ("vllm-speculative",)),
    ("-sc.method mtp --no-async-scheduling", ("vllm-speculative",), ("vllm-async-scheduling",)),
    ("--enable-prefix-caching --speculative-config '$DRAFT'", ("vllm-prefix-caching",), ()),
    ("--no-enable-prefix-caching --async-scheduling", ("vllm-async-scheduling",), ("vllm-prefix-caching", "vllm-speculative")),
])  # fmt: skip
def test_what_vllm_does_beyond_plain_decoding(options: str, on: tuple[str, ...], off: tuple[str, ...], tmp_path: Path) -> None:
    found = read(f"vllm serve Qwen/Q {options}", tmp_path).workload
    ours = {"vllm-speculative", "vllm-prefix-caching", "vllm-async-scheduling"}
    assert ours.intersection(found.features or ()) == set(on)
    assert ours.intersection(found.features_absent or ()) == set(off)


@pytest.mark.parametrize(("options", "on", "unknown"), [
    ("""--kv-transfer-config '{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}'""", {"lmcache"}, set()),
    ("--kv-transfer-config.kv_connector LMCacheMPConnector --kv-cache-dtype fp8_e4m3", {"lmcache", "fp8-kv-cache"}, set()),
    ("""--kv-transfer-config '{"kv_connector": "NixlConnector"}' --kv-cache-dtype auto""", set(), set()),
    ("-dp 4 -dpl 2 --data-parallel-backend ray --tool-server localhost:8001", {"vllm-ray-data-parallel", "vllm-tool-server"}, set()),
    ("--data-parallel-size 4 --data-parallel-size-local 0 --data-parallel-backend ray", {"vllm-ray-data-parallel"}, set()),
    ("--data-parallel-size 4 --data-parallel-size-local 4 --data-parallel-backend ray", set(), set()),
    ("--data-parallel-size 4 --data-parallel-backend ray", set(), set()),
    ("--attention-backend ROCM_AITER_TRITON_MLA", {"vllm-aiter-triton-mla"}, set()),
    ("--attention-backend XFORMERS", {"vllm-xformers"}, set()),
    ("--data-parallel-backend mp --tool-server demo", set(), set()),
    ("--kv-transfer-config $CONNECTOR --enable-sleep-mode", {"vllm-sleep"}, {"lmcache"}),
])  # fmt: skip
def test_features_that_one_option_of_vllm_chooses(options: str, on: set[str], unknown: set[str], tmp_path: Path) -> None:
    found = read(f"vllm serve Qwen/Q {options}", tmp_path).workload
    every = {
        "lmcache",
        "fp8-kv-cache",
        "vllm-ray-data-parallel",
        "vllm-sleep",
        "vllm-tool-server",
        "vllm-aiter-triton-mla",
        "vllm-xformers",
    }
    assert every.intersection(found.features or ()) == on
    assert every.intersection(found.features_absent or ()) == every - on - unknown


def test_which_attention_sglang_is_asked_for(tmp_path: Path) -> None:
    line = "python -m sglang.launch_server --model-path Q"
    assert "sglang-flashinfer" in (read(f"{line} --attention-backend flashinfer", tmp_path).workload.features or ())
    assert "sglang-flashinfer" in (read(line, tmp_path).workload.features_absent or ())


@pytest.mark.parametrize("line", ["python -m sglang.launch_server --model-path Q", "vllm serve Q"])
def test_whether_a_server_uses_its_own_all_reduce(line: str, tmp_path: Path) -> None:
    assert "no-custom-all-reduce" in (read(f"{line} --disable-custom-all-reduce", tmp_path).workload.features or ())
    assert "no-custom-all-reduce" in (read(line, tmp_path).workload.features_absent or ())


def test_whether_vllm_compiles_and_divides_its_layers(tmp_path: Path) -> None:
    found = read("vllm serve Q -pp 2 --enforce-eager", tmp_path).workload
    assert {"enforce-eager", "pipeline-parallel"} <= set(found.features or ())
    found = read("vllm serve Q", tmp_path).workload
    assert {"enforce-eager", "pipeline-parallel"} <= set(found.features_absent or ())
    found = read("vllm serve Q --pipeline-parallel-size $SIZE", tmp_path).workload
    assert "pipeline-parallel" not in {*(found.features or ()), *(found.features_absent or ())}


def test_whether_sglang_tests_peer_to_peer_access(tmp_path: Path) -> None:
    line = "python -m sglang.launch_server --model-path Q --tp 2"
    assert "sglang-p2p-check" in (read(f"{line} --enable-p2p-check", tmp_path).workload.features or ())
    assert "sglang-p2p-check" in (read(line, tmp_path).workload.features_absent or ())


@pytest.mark.parametrize(
    "line",
    ["python -m sglang.launch_server --model-path Q", "lmdeploy serve api_server Q", "python -m llama_cpp.server --model Q"],
)
def test_the_server_of_another_engine_does_not_use_vllm(line: str, tmp_path: Path) -> None:
    assert "vllm" in (read(line, tmp_path).workload.features_absent or ())


def test_how_sglang_moves_its_cache(tmp_path: Path) -> None:
    line = "python -m sglang.launch_server --model-path Q --disaggregation-mode decode"
    assert "sglang-nixl" in (read(f"{line} --disaggregation-transfer-backend nixl", tmp_path).workload.features or ())
    assert "sglang-nixl" in (
        read(f"{line} --disaggregation-transfer-backend mooncake", tmp_path).workload.features_absent or ()
    )


def test_only_vllms_own_server_serves_the_openai_interface(tmp_path: Path) -> None:
    assert "openai-server" in (read("vllm serve Qwen/Q", tmp_path).workload.features or ())
    assert "openai-server" in (read("trl vllm-serve --model Qwen/Q", tmp_path).workload.features_absent or ())


@pytest.mark.parametrize(("mode", "colocated"), [("colocate", True), ("server", False), (None, None)])
def test_where_trl_runs_vllm(mode: str | None, colocated: bool | None, tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, "use_vllm: true" + (f"\nvllm_mode: {mode}" if mode else ""))
    found = read(f"trl grpo --config {recipe}", tmp_path).workload
    assert ("vllm-colocate" in (found.features or ())) is (colocated is True)
    assert ("vllm-colocate" in (found.features_absent or ())) is (colocated is False)


@pytest.mark.parametrize(("size", "parallel"), [(2, True), (1, False)])
def test_whether_colocated_vllm_spans_gpus(size: int, parallel: bool, tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, f"use_vllm: true\nvllm_tensor_parallel_size: {size}")
    found = read(f"trl grpo --config {recipe}", tmp_path).workload
    assert ("vllm-tensor-parallel" in (found.features or ())) is parallel


def test_vllm_argument_file(tmp_path: Path) -> None:
    _recipe(tmp_path, "tensor-parallel-size: 2\ndtype: bfloat16\n")
    assert known(read("vllm serve Qwen/Q --config recipe.yaml", tmp_path), "processes", "precision") == (2, "bf16")


def test_sglang(tmp_path: Path) -> None:
    found = read("python -m sglang.launch_server --model-path Qwen/Q --tp 2", tmp_path)
    assert known(found, "task", "model", "processes", "features") == ("serve", "Qwen/Q", 2, ("tensor-parallel",))


def test_lmdeploy(tmp_path: Path) -> None:
    found = read("lmdeploy serve api_server Qwen/Q --tp 2 --server-port 23333", tmp_path)
    assert known(found, "task", "model", "processes", "features") == ("serve", "Qwen/Q", 2, ("tensor-parallel",))
    assert read("lmdeploy lite auto_awq Qwen/Q", tmp_path).workload.task is None


def test_the_server_of_llama_cpp_python(tmp_path: Path) -> None:
    line = "python -m llama_cpp.server --hf_model_repo_id Qwen/Q-GGUF --model '*q8_0.gguf'"
    assert known(read(line, tmp_path), "task", "model") == ("serve", "Qwen/Q-GGUF")


@pytest.mark.parametrize(
    ("command", "parallel"),
    [
        ("lmdeploy serve api_server Qwen/Q", False),
        ("python -m sglang.launch_server --model-path Qwen/Q --dp 2", False),
        ("python -m sglang.launch_server --model-path Qwen/Q --tp $N", None),
        ("vllm serve Qwen/Q", False),
        ("vllm serve Qwen/Q -tp 4", True),
    ],
)
def test_whether_a_server_splits_layers_over_gpus(command: str, parallel: bool | None, tmp_path: Path) -> None:
    workload = read(command, tmp_path).workload
    assert ("tensor-parallel" in (workload.features or ())) is (parallel is True)
    assert ("tensor-parallel" in (workload.features_absent or ())) is (parallel is False)


def test_llamafactory(tmp_path: Path) -> None:
    _recipe(tmp_path, f"{RECIPE}stage: dpo\nfinetuning_type: lora\nenable_liger_kernel: true\ndeepspeed: ds.json\n")
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}}')
    found = read("FORCE_TORCHRUN=1 NPROC_PER_NODE=2 NNODES=2 llamafactory-cli train recipe.yaml bf16=false fp16=true", tmp_path)
    assert known(found, "task", "launcher", "processes", "batch_size", "precision") == ("dpo", "torchrun", 4, 2, "fp16")
    assert {"peft", "liger", "zero-3", "gradient-accumulation"} <= set(found.workload.features or ())
    assert found.notes == ()


def test_llamafactory_decides_by_the_devices_it_sees(tmp_path: Path) -> None:
    _recipe(tmp_path, RECIPE)
    found = read("llamafactory-cli train recipe.yaml", tmp_path)
    assert known(found, "launcher", "processes") == ("torchrun", None)
    assert any("several devices" in note for note in found.notes)
    assert known(read("USE_RAY=1 llamafactory-cli train recipe.yaml", tmp_path), "launcher") == ("ray",)
    assert known(read("llamafactory-cli api recipe.yaml", tmp_path), "task", "launcher") == ("serve", "python")


def test_axolotl(tmp_path: Path) -> None:
    _recipe(
        tmp_path,
        "base_model: NousResearch/Meta-Llama-3-8B\nadapter: qlora\nload_in_4bit: true\nmicro_batch_size: 1\nsample_packing: true\n"
        "gradient_checkpointing: true\nbf16: auto\nplugins:\n  - axolotl.integrations.liger.LigerPlugin\nfsdp_version: 2\n"
        "context_parallel_size: 2\n",
    )
    found = read("axolotl train recipe.yaml --num-processes 4", tmp_path)
    assert known(found, "task", "launcher", "processes", "batch_size", "quantization", "precision", "model") == (
        "sft", "accelerate", 4, 1, "4bit", None, "NousResearch/Meta-Llama-3-8B",
    )  # fmt: skip
    assert set(found.workload.features or ()) == {
        "peft",
        "packing",
        "gradient-checkpointing",
        "liger",
        "fsdp",
        "fsdp2",
        "ring-attention",
    }


@pytest.mark.parametrize(("line", "launcher", "processes"), [
    ("axolotl train recipe.yaml --launcher torchrun -- --nproc_per_node=2", "torchrun", 2), ("axolotl train recipe.yaml --launcher python", "python", 1),
    ("axolotl train recipe.yaml --no-accelerate", "python", 1), ("accelerate launch --num_processes 2 -m axolotl.cli.train recipe.yaml", "accelerate", 2),
    ("python -m axolotl.cli.train recipe.yaml", "python", 1),
])  # fmt: skip
def test_axolotl_launchers(line: str, launcher: str, processes: int, tmp_path: Path) -> None:
    _recipe(tmp_path, "rl: grpo\ntrl:\n  use_vllm: true\n")
    assert known(read(line, tmp_path), "task", "launcher", "processes", "features") == ("grpo", launcher, processes, ("vllm",))


@pytest.mark.parametrize(("line", "expected"), [
    ("swift sft --model Qwen/Q --train_type lora --deepspeed zero2", ("sft", "python", 1, "Qwen/Q")),
    ("NPROC_PER_NODE=4 swift rlhf --rlhf_type grpo --model Qwen/Q --use_vllm true", ("grpo", "torchrun", 4, "Qwen/Q")),
    ("swift sft --model Qwen/Q --model_name swift-bot", ("sft", "python", 1, "Qwen/Q")),
    ("swift deploy --model Qwen/Q", ("serve", "python", 1, "Qwen/Q")), ("swift pt --model Qwen/Q", ("pretrain", "python", 1, "Qwen/Q")),
])  # fmt: skip
def test_swift(line: str, expected: tuple[Any, ...], tmp_path: Path) -> None:
    assert known(read(line, tmp_path), "task", "launcher", "processes", "model") == expected


@pytest.mark.parametrize(("line", "text", "message"), [
    ("trl sft --config recipe.yaml", "a: [1\nb: 2", "recipe.yaml:2: is not YAML: did not find expected ',' or ']'"),
    ("axolotl train recipe.yaml", "- a\n- b\n", "recipe.yaml:1: expected a table of arguments with lines such as 'model_name_or_path: NAME'"),
    ("llamafactory-cli train none.yaml", "", "none.yaml: cannot be read: No such file or directory"),
])  # fmt: skip
def test_bad_recipes(line: str, text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _recipe(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as problem:
        read(line, tmp_path)
    assert str(problem.value) == message


@pytest.mark.parametrize(("line", "expected"), [
    ("tune run lora_finetune_single_device --config llama3/8B_lora batch_size=4 dtype=bf16", ("sft", "python", 1, 4, "bf16")),
    ("srun tune run --nnodes 2 --nproc_per_node 8 dev/grpo_full_finetune_distributed --config x", ("grpo", "torchrun", 16, None, None)),
    ("tune run --nproc_per_node $N lora_dpo_distributed --config x", ("dpo", "torchrun", None, None, None)),
    ("tune run full_finetune_single_device --config own.yaml", ("sft", "python", 1, 2, "fp32")),
    ("tune download meta-llama/Llama-3.1-8B", (None, None, None, None, None)),
])  # fmt: skip
def test_torchtune(line: str, expected: tuple[Any, ...], tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("batch_size: 2\ndtype: fp32\nmodel: {_component_: torchtune.models.llama3.llama3_8b}\n")
    workload = read(line, tmp_path).workload
    assert (workload.task, workload.launcher, workload.processes, workload.batch_size, workload.precision) == expected
    assert ("peft" in (workload.features or {})) == ("lora" in line)
