"""Whatever command, configuration file or script is given: facts, or one clear line; nothing else escapes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from compat.errors import InputError
from compat.model import LAUNCHERS, Workload
from compat.syntax.shell_commands import commands_of
from compat.syntax.yaml import parse_yaml
from compat.workload.command import from_command
from compat.workload.launch import from_variables, merge_workloads
from compat.workload.launch_config import read_accelerate, read_deepspeed
from compat.workload.reading import axolotl, llamafactory, read_recipe
from compat.workload.script import read_script
from tests.examples import examples

quick = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

FEATURES = ("vllm", "zero-1", "zero-2", "zero-3", "fsdp", "fsdp2", "deepspeed", "peft", "liger", "packing", "resume", "unsloth")
WORDS = (
    "python", "python3", "-m", "-u", "-c", "torchrun", "accelerate", "launch", "deepspeed", "srun", "mpirun", "ray", "job", "submit", "--", "env", "nohup",
    "uv", "run", "bash", "-lc", "sbatch", "trl", "sft", "grpo", "vllm", "serve", "llamafactory-cli", "train", "axolotl", "swift", "rlhf", "timeout", "10m",
    "train.py", "pkg", "nb.ipynb", "config.yaml", "ds.json", "run.sh", ".", "..", "A=B", "CUDA_VISIBLE_DEVICES=0", "--nproc_per_node", "--num_processes",
    "--config_file", "--config", "--use_vllm", "true", "False", "--deepspeed", "--zero_stage", "3", "-n", "4", "0", "--fsdp", "full_shard", "--bf16", "--use_fsdp",
    "--fsdp_version", "2", "--include", "localhost:0,1", "--gpu_ids", "torch.distributed.run", "axolotl.cli.train", "$X", "${Y:-1}", "{N}", "=", "-", "--=",
    "--no_python", "--module", "--accelerate_config", "zero2", "python train.py && torchrun train.py", "'", '"', "-tp", "--model", "a/b", "rl=dpo",
)  # fmt: skip
SCRIPT = """\
import os
from unsloth import FastLanguageModel
from trl import GRPOConfig, GRPOTrainer as Trainer
from transformers import BitsAndBytesConfig
import torch

MODEL, STEPS = "mistralai/Mistral-7B", 4
OPTIONS = {"use_vllm": True, "packing": False}
os.environ["CUDA_VISIBLE_DEVICES"] = "0"

class Mine(Trainer):
    limit: int = 3

def main(args):
    config = GRPOConfig(per_device_train_batch_size=2, bf16=True, deepspeed={"zero_optimization": {"stage": 3}}, **OPTIONS)
    quant = BitsAndBytesConfig(load_in_4bit=not False, bnb_4bit_compute_dtype=torch.bfloat16)
    if args.checkpointing:
        model.gradient_checkpointing_enable()
    else:
        model.config.use_cache = False
    for step in range(STEPS):
        Mine(model=f"{MODEL}-v{step}", args=config).train(resume_from_checkpoint=None)

if __name__ == "__main__":
    main(lambda: (yield))
"""
PIECES = ("(", ")", "[", "]", "{", "}", ":", "=", ",", ".", "*", "**", '"', "'", "\n", "    ", "if ", "else", "def f", "class ", "import ", "from ", "\\", "#", "f'{",
          "True", "False", "None", "0", "lambda", "await ", "yield", "match x", "case ", "@", "->", ":=", "\t", "\x00", "é", "\ud800", "!ls", "%%bash")  # fmt: skip


def settled(read: Callable[[], object]) -> object:
    """What a reader returns; an :class:`InputError` has to be one line that says something."""
    try:
        return read()
    except InputError as problem:
        assert "\n" not in str(problem)
        assert len(problem.message) > 5
        return None


def sound(workload: Workload) -> None:
    """What must hold of every workload that is read."""
    on, off = set(workload.features or ()), set(workload.features_absent or ())
    assert not on & off
    assert workload.launcher is None or workload.launcher in LAUNCHERS
    assert workload.processes is None or workload.processes >= 1
    assert workload.batch_size is None or workload.batch_size >= 1
    assert workload.precision in (None, "bf16", "fp16", "fp32", "fp8")
    json.dumps(workload.to_json())
    values = workload.to_json()
    named = {key for key in values if not key.startswith("features")} | {f"features.{name}" for name in on | off}
    assert set(workload.origins) == named


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__main__.py").write_text(SCRIPT)
    (tmp_path / "nb.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": SCRIPT}]}))
    (tmp_path / "config.yaml").write_text(
        "distributed_type: FSDP\nnum_processes: 2\nrl: grpo\ndeepspeed: ds.json\nconfig: config.yaml\n"
    )
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "use_vllm": true}')
    (tmp_path / "run.sh").write_text("#SBATCH -n 2\nX=1\nsrun python train.py --gradient_accumulation_steps $X $@\n")
    return tmp_path


@quick
@given(words=st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=12))
@example(words=["bash", "run.sh", "--use_vllm"])
@example(words=["sbatch", "run.sh"])
@example(words=["accelerate", "launch", "--config_file", "config.yaml", "train.py"])
def test_any_command_line(job: Path, words: list[str]) -> None:
    found = settled(lambda: from_command(words, str(job), {"HOME": str(job)}))
    if found is not None:
        sound(found.workload)  # type: ignore[attr-defined]


@quick
@given(text=st.text(max_size=60) | st.lists(st.sampled_from(WORDS + PIECES), max_size=20).map(" ".join))
def test_any_shell_text(job: Path, text: str) -> None:
    commands_of(text, ["x"], {"HOME": "/h"})
    settled(lambda: from_command(["bash", "-c", text], str(job), {}))


NAMES = ("LOCAL_RANK", "RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "ACCELERATE_MIXED_PRECISION", "ACCELERATE_USE_DEEPSPEED", "ACCELERATE_DYNAMO_BACKEND",
         "ACCELERATE_DEEPSPEED_ZERO_STAGE", "ACCELERATE_USE_FSDP", "FSDP_VERSION", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "CROSS_RANK",
         "RAY_JOB_ID", "OMPI_COMM_WORLD_SIZE", "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE")  # fmt: skip


@quick
@given(
    variables=st.dictionaries(
        st.sampled_from(NAMES),
        st.sampled_from(["", "0", "1", "2", "8", "true", "bf16", "no", "x", "-1", "½"]) | st.text(max_size=5),
    )
)
def test_any_variables(variables: dict[str, str]) -> None:
    sound(from_variables(variables))


workloads = st.builds(
    Workload,
    task=st.none() | st.sampled_from(["sft", "grpo"]), trainer=st.none() | st.just("SFTTrainer"), launcher=st.none() | st.sampled_from(LAUNCHERS),
    processes=st.none() | st.integers(1, 9), precision=st.none() | st.just("bf16"), features=st.none() | st.lists(st.sampled_from(FEATURES), unique=True).map(tuple),
)  # fmt: skip


@quick
@given(a=workloads, b=workloads, absent=st.lists(st.sampled_from(FEATURES), unique=True))
def test_merging(a: Workload, b: Workload, absent: list[str]) -> None:
    off = tuple(name for name in absent if name not in (b.features or ()))
    b = Workload(task=b.task, features=b.features, features_absent=off or None, launcher=b.launcher)
    both = merge_workloads(a, b)
    assert merge_workloads(both, b) == both
    assert not set(both.features or ()) & set(both.features_absent or ())
    assert set(a.features or ()) <= set(both.features or ())
    assert set(both.features or ()) <= set(a.features or ()) | set(b.features or ())
    assert both.launcher == (a.launcher or b.launcher)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The script above with pieces cut out, doubled and put in."""
    text = SCRIPT
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 40)))
        how = draw(st.integers(0, 2))
        piece = draw(st.sampled_from(PIECES)) if how == 0 else text[at:end]
        text = text[:at] + piece + text[at if how else end :] if how < 2 else text[:at] + text[end:]
    return text


@quick
@given(text=mutated() | st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_script(tmp_path: Path, text: str) -> None:
    content = text.encode("utf-8", "surrogatepass")
    (tmp_path / "any.py").write_bytes(content)
    (tmp_path / "any.ipynb").write_text(
        json.dumps({"cells": [{"cell_type": "code", "source": text}, {"cell_type": "code", "source": ["x = 1"]}]})
    )
    for name in ("any.py", "any.ipynb"):
        found = settled(lambda name=name: read_script(str(tmp_path / name)))  # type: ignore[misc]
        if found is not None:
            sound(found.workload)  # type: ignore[attr-defined]


@quick
@given(lines=st.permutations(SCRIPT.splitlines()), seed=st.integers(0, 9999))
def test_the_lines_of_a_script_in_any_order_and_depth(tmp_path: Path, lines: list[str], seed: int) -> None:
    chance = random.Random(seed)
    text = "\n".join("    " * chance.choice((0, 0, 0, 1)) + line.lstrip() for line in lines)
    (tmp_path / "any.py").write_text(text)
    settled(lambda: read_script(str(tmp_path / "any.py")))


KEYS = ("distributed_type", "num_processes", "mixed_precision", "deepspeed_config", "fsdp_config", "zero_stage", "fsdp_version", "gpu_ids", "zero_optimization",
        "stage", "bf16", "fp16", "enabled", "offload_optimizer", "device", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "rl", "trl", "use_vllm",
        "plugins", "adapter", "env", "deepspeed", "fsdp", "model_init_kwargs", "dynamo_config", "dynamo_backend", "deepspeed_config_file", "<<", "fp8")  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["auto", "cpu", "none", "FSDP", "DEEPSPEED", "NO", "grpo", "full_shard", "ds.json", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6), max_leaves=12,
)  # fmt: skip


@quick
@given(value=values)
def test_any_configuration(tmp_path: Path, value: object) -> None:
    for name in ("any.json", "any.yaml"):  # JSON is YAML, too
        path = str(tmp_path / name)
        Path(path).write_text(json.dumps(value))
        config = settled(lambda path=path: read_accelerate(path))  # type: ignore[misc]
        if config is not None:
            sound(config.draft.workload())  # type: ignore[attr-defined]
        recipe = settled(lambda path=path: read_recipe(path))  # type: ignore[misc]
        if recipe is not None:
            for dialect in (axolotl, llamafactory):
                dialect(recipe)  # type: ignore[arg-type]
            sound(recipe.draft.workload())  # type: ignore[attr-defined]
            assert all(isinstance(each, str) for each in recipe.variables.values())  # type: ignore[attr-defined]
    found = settled(lambda: read_deepspeed(str(tmp_path / "any.json")))
    if found is not None:
        sound(found)  # type: ignore[arg-type]


@quick
@given(text=st.text(st.sampled_from("ab:-[]{},&*!|>%@`\"'#?<~ \n\t\\x1"), max_size=60))
def test_any_yaml(text: str) -> None:
    settled(lambda: parse_yaml(text, "any.yaml"))
