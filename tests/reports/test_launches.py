"""The job that a pasted text shows: commands, and what serving engines log of their settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.model import Workload
from compat.reports.pasted import read_pasted

SERVER = "INFO 05-10 12:00:05 [api_server.py:1044] args: Namespace(subparser='serve', model_tag='Qwen/Qwen3-8B', host=None, "
ENGINE = "INFO 05-10 [core.py:58] Initializing a V1 LLM engine (v0.8.5) with config: "


def job(text: str) -> Workload | None:
    return read_pasted(f"vllm==0.8.5\n{text}\n", "the text")[0].workload


def shown(text: str) -> dict[str, object]:
    found = job(text)
    return {} if found is None else found.to_json()


@pytest.mark.parametrize(
    ("text", "model", "processes", "quantization"),
    [
        (f"{SERVER}model='Qwen/Qwen3-8B', tensor_parallel_size=2, quantization=None, dtype='auto')", "Qwen/Qwen3-8B", 2, None),
        ("(APIServer pid=1) INFO non-default args: {'model': 'google/gemma-3-27b-it', 'quantization': 'fp8'}",
         "google/gemma-3-27b-it", 1, "fp8"),
        ("$ vllm serve Qwen/Qwen3-8B --tensor-parallel-size 4 \\\n    --quantization awq", "Qwen/Qwen3-8B", 4, "awq"),
        ("(base) me@host:~$ python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B", "Qwen/Qwen3-8B", 1, None),
        ("[2025-05-10] server_args=ServerArgs(model_path='deepseek-ai/DeepSeek-V3', tokenizer_path='x/y', tp_size=8)",
         "deepseek-ai/DeepSeek-V3", 8, None),
    ],
)  # fmt: skip
def test_servers(text: str, model: str, processes: int, quantization: str | None) -> None:
    found = job(text)
    assert found is not None
    assert (found.task, found.model, found.processes, found.quantization) == ("serve", model, processes, quantization)
    assert (found.options, found.script) == (None, None)


def test_an_engine_alone_may_be_part_of_a_training() -> None:
    text = f"{ENGINE}model='Qwen/Qwen2.5-7B', tensor_parallel_size=2, quantization=awq_marlin, dtype=torch.float16, seed=0"
    assert shown(text) == {
        "model": "Qwen/Qwen2.5-7B", "precision": "fp16", "quantization": "awq_marlin",
        "features": ["tensor-parallel", "vllm"],
    }  # fmt: skip


def test_the_engine_of_a_server_is_the_same_job() -> None:
    server = f"{SERVER}model='Qwen/Qwen3-8B', tensor_parallel_size=2)"
    assert shown(f"{server}\n{ENGINE}model='Qwen/Qwen3-8B', tensor_parallel_size=2") == shown(server)


def test_a_training_command() -> None:
    text = "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 \\\n  train.py --bf16 --gradient_checkpointing"
    assert shown(text) == {
        "launcher": "torchrun", "processes": 2, "nodes": 1, "precision": "bf16", "features": ["gradient-checkpointing"]
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve a/one\nvllm serve a/two",  # which of them failed is not known
        "I run vllm serve a/one here",
        "bash -c 'vllm serve",
        "torchrun",
        "args: Namespace()",
    ],
)
def test_no_job_is_shown(text: str) -> None:
    assert job(text) is None


def test_files_of_the_other_machine_are_not_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("from trl import GRPOTrainer\nGRPOTrainer()\n", encoding="utf-8")
    (tmp_path / "serve.yaml").write_text("model: some/model\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", str(tmp_path / "train.py")):
        assert shown(f"torchrun --nproc_per_node 2 {name}") == {"launcher": "torchrun", "processes": 2, "nodes": 1}
    for name in ("serve.yaml", str(tmp_path / "serve.yaml")):
        found = job(f"vllm serve --config {name}")
        assert found is not None
        assert found.model is None
