"""More processes than GPUs, and two precisions at once: only where everything is stated."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks import launching
from compat.model import Accelerator, Distribution, Environment
from compat.rules.facts import Facts
from compat.workload.command import from_command
from compat.workload.wrappers import split_words

TWO = (Accelerator(vendor="nvidia", name="A100", compute_capability="8.0"),) * 2
SCRIPT = "from trl import SFTConfig, SFTTrainer\nSFTTrainer('m', args=SFTConfig('o', {})).train()\n"


def titles(
    line: str, job: Path, devices: tuple[Accelerator, ...] | None = TWO, arguments: str = "bf16=True", ray: bool = False
) -> list[str]:
    (job / "t.py").write_text(SCRIPT.format(arguments))
    workload = from_command(split_words(line), str(job), {"HOME": str(job)}).workload
    copies = tuple(Distribution(name, "1.0") for name in (("ray",) if ray else ()))
    known = Environment(accelerators=devices, workload=workload, distributions=copies, distributions_complete=True)
    return [each.title for each in launching.judge(Facts(known))]


EIGHT = "8 processes are started, but there are 2 GPUs"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torchrun --nproc_per_node 8 t.py", [EIGHT]),
        ("torchrun --nnodes 2 --nproc_per_node 8 t.py", ["8 processes are started on each of 2 nodes, but there are 2 GPUs"]),
        ("torchrun --nnodes 4 --nproc_per_node 2 t.py", []),
        ("torchrun --nnodes 1:4 --nproc_per_node 8 t.py", []),
        ("torchrun --nproc_per_node 2 t.py", []),
        ("torchrun --nproc_per_node 8 other.sh --no_python", []),
        ("accelerate launch --num_processes 8 t.py", [EIGHT]),
        ("accelerate launch --num_processes 8 --num_machines 4 t.py", []),
        ("accelerate launch --config_file two.yaml t.py", ["4 processes are started on each of 2 nodes, but there are 2 GPUs"]),
        ("accelerate launch --config_file $CONFIG --num_processes 8 t.py", []),
        ("deepspeed --num_gpus 8 t.py", [EIGHT]),
        ("deepspeed --hostfile hosts --num_gpus 8 t.py", []),
        ("vllm serve m --tensor-parallel-size 4", ["4 workers are started, but there are 2 GPUs"]),
        ("vllm serve m -tp 2 -pp 2 --distributed-executor-backend mp", ["4 workers are started, but there are 2 GPUs"]),
        ("vllm serve m -tp 4 --distributed-executor-backend ray", []),
        ("vllm serve m -tp 2", []),
        ("vllm serve m -tp 2 -dp 4 --data-parallel-address 10.0.0.1", []),
        ("python t.py", []),
    ],
)
def test_more_processes_than_gpus(line: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text("distributed_type: MULTI_GPU\nnum_processes: 8\nnum_machines: 2\n")
    (tmp_path / "other.sh").write_text("true\n")
    (tmp_path / "hosts").write_text("a slots=8\n")
    assert titles(line, tmp_path) == expected


def test_without_a_known_number_of_gpus_nothing_is_said(tmp_path: Path) -> None:
    line = "torchrun --nproc_per_node 8 t.py"
    assert titles(line, tmp_path, None) == []
    assert titles(line, tmp_path, ()) == []
    assert titles(line, tmp_path, (Accelerator(vendor="nvidia", name="A100", extra={"more": True}),)) == []


def test_ray_may_have_more_nodes(tmp_path: Path) -> None:
    line = "vllm serve m --tensor-parallel-size 4"
    assert titles(line, tmp_path, ray=True) == []
    assert titles(f"{line} --distributed-executor-backend mp", tmp_path, ray=True) == [
        "4 workers are started, but there are 2 GPUs"
    ]


@pytest.mark.parametrize(
    ("arguments", "both"), [("bf16=True, fp16=True", True), ("bf16=True, fp16=False", False), ("bf16=x, fp16=True", False)]
)
def test_both_precisions_in_one_call(arguments: str, both: bool, tmp_path: Path) -> None:
    found = titles("python t.py", tmp_path, arguments=arguments)
    assert found == (["fp16 and bf16 are both on, and the training arguments accept only one of them"] if both else [])
