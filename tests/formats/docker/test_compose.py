"""Compose files: which services run on GPUs, on how many, with what, and what they start."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.docker.compose import Compose, interpolated
from compat.formats.listing import Listing
from compat.model import Accelerator

TEXT = """\
x-gpu: &gpu
  deploy:
    resources:
      reservations:
        devices:
          - driver: nvidia
            count: ${GPUS:-2}
            capabilities: [gpu]
services:
  vllm:
    <<: *gpu
    image: vllm/vllm-openai:${TAG:-v0.7.1}
    environment:
      - HF_TOKEN=abc
      - CUDA_VISIBLE_DEVICES=0,1
      - FROM_THE_HOST
    command: --model mistralai/Mistral-7B-Instruct-v0.2 --tensor-parallel-size 2 --dtype bfloat16
  cache:
    image: redis:7
    command: redis-server
"""


def read(text: str) -> dict[str | None, Listing]:
    return {listing.label: listing for listing in Compose().read("compose.yaml", text)}


def service(body: str) -> Listing:
    (listing,) = Compose().read("compose.yaml", f"services:\n  train:\n    image: x/y:1\n{body}")
    return listing


def test_a_service_has_the_stack_of_its_image_and_what_it_starts() -> None:
    found = read(TEXT)
    assert list(found) == ["vllm"]
    listing = found["vllm"]
    assert [(e.distribution.name, e.distribution.version, e.line) for e in listing.entries] == [
        ("vllm", "0.7.1", 12), ("torch", "2.5.1", 12),
    ]  # fmt: skip
    source = listing.entries[0].distribution.source
    assert source is not None
    assert source.to_json() == {"kind": "image", "image": "vllm/vllm-openai:v0.7.1"}
    context = listing.context
    assert (context.os, context.accelerators) == ("linux", (Accelerator(vendor="nvidia"),) * 2)
    assert context.variables == {"CUDA_VISIBLE_DEVICES": "0,1"}
    workload = context.workload
    assert workload is not None
    assert (workload.task, workload.model, workload.processes, workload.precision) == (
        "serve", "mistralai/Mistral-7B-Instruct-v0.2", 2, "bf16",
    )  # fmt: skip
    assert context.distributions is None
    assert (listing.complete, listing.notes, listing.unread) == (False, (), ())


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("    gpus: all\n", None),
        ("    gpus: [{count: 3}, {device_ids: ['7']}]\n", 4),
        ("    gpus: [{count: 3}, {driver: cdi, count: 2}]\n", 3),
        ("    gpus: [{count: '${N}'}]\n", None),
        ("    gpus: [{count: -1}]\n", None),
        ("    runtime: nvidia\n", None),
        ("    runtime: nvidia\n    environment: {NVIDIA_VISIBLE_DEVICES: '0,2'}\n", 2),
        ("    runtime: nvidia\n    environment: [NVIDIA_VISIBLE_DEVICES=all]\n", None),
        ("    runtime: nvidia\n    environment: [NVIDIA_VISIBLE_DEVICES=void]\n", 0),
        ("    deploy: {resources: {reservations: {devices: [{capabilities: [[gpu]], device_ids: ['0', '3']}]}}}\n", 2),
        ("    deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}\n", None),
    ],
)
def test_how_many_gpus_a_service_asks_for(body: str, count: int | None) -> None:
    found = service(body)
    assert found.label == "train"
    assert found.context.accelerators == (None if count is None else (Accelerator(vendor="nvidia"),) * count)
    assert found.notes == ("compose.yaml:3: service train: the contents of the image x/y:1 are unknown",)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "    command: python manage.py runserver\n",
        "    environment: [NVIDIA_VISIBLE_DEVICES=none]\n",
        "    deploy: {resources: {reservations: {devices: [{capabilities: [tpu]}]}}}\n",
        "    deploy: {replicas: 2}\n    devices: [/dev/snd]\n",
    ],
)
def test_other_services_are_not_judged(body: str) -> None:
    found = service(body)
    assert (found.label, found.entries, found.context.accelerators) == (None, (), None)
    assert found.notes[0].startswith("no service requests a GPU")


def test_a_job_is_judged_without_gpus_and_opens_no_file(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("from trl import SFTTrainer\nSFTTrainer()\n", encoding="utf-8")
    found = service(f"    entrypoint: [bash, -c]\n    command: ['accelerate launch --num_processes 4 {script} --bf16 true']\n")
    workload = found.context.workload
    assert workload is not None
    assert (workload.launcher, workload.processes, workload.precision) == ("accelerate", 4, "bf16")
    assert (workload.task, workload.trainer, workload.script) == (None, None, None)


def test_variables_a_command_sets_count_and_dollars_are_unescaped() -> None:
    found = service(
        "    gpus: all\n    environment: {A: '${B}', C: 'x$$y'}\n    command: env CUDA_VISIBLE_DEVICES=1 torchrun t.py\n"
    )
    assert found.context.variables == {"CUDA_VISIBLE_DEVICES": "1"}


def test_the_platform_of_a_service() -> None:
    found = service("    gpus: all\n    platform: linux/arm64/v8\n")
    assert (found.context.os, found.context.machine) == ("linux", "aarch64")


def test_a_service_that_extends_another_has_what_both_say() -> None:
    text = """\
services:
  base:
    image: pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel
    environment: [NCCL_DEBUG=INFO, NCCL_P2P_DISABLE=1]
    deploy: {resources: {reservations: {devices: [{capabilities: [gpu], count: 1}]}}}
    command: torchrun a.py
  train:
    extends: {service: base}
    environment: {NCCL_DEBUG: WARN}
    deploy: {resources: {limits: {cpus: 4}}}
    command: !reset null
"""
    train = read(text)["train"]
    assert [e.distribution.name for e in train.entries] == ["torch", "torchvision"]
    assert train.context.variables == {"NCCL_DEBUG": "WARN", "NCCL_P2P_DISABLE": "1"}
    assert train.context.accelerators == (Accelerator(vendor="nvidia"),)
    assert (train.context.workload, train.context.cuda_toolkit) == (None, "12.4")


def test_other_files_are_named_as_unread() -> None:
    found = service("    gpus: all\n    extends: {file: common.yml, service: gpu}\ninclude: [more.yml]\n")
    assert found.unread == (
        "compose.yaml:5: extends common.yml was not read",
        "compose.yaml:6: include was not read",
    )
    assert service("include: more.yml\n").unread == ("compose.yaml:4: include was not read",)


def test_what_is_built_here_has_no_stack_of_its_name() -> None:
    found = read("services: {a: {build: ., image: 'vllm/vllm-openai:v0.7.1', gpus: all, env_file: x.env}}\n")["a"]
    assert found.entries == ()
    where = "compose.yaml:1: service a"
    assert found.notes == (
        "compose.yaml:1: the Dockerfile of service a was not read: it is not in the project",
        f"{where}: its env_file was not read",
    )
    assert found.elsewhere == found.notes[:1]


def test_an_image_that_depends_on_a_variable_is_not_guessed() -> None:
    found = read("services: {a: {image: 'vllm/vllm-openai:${TAG}', gpus: all}}\n")["a"]
    assert found.entries == ()
    assert found.notes == ("compose.yaml:1: service a: the image vllm/vllm-openai:${TAG} is only known at run time",)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", "a"),
        ("${A}", "${A}"),
        ("$A", "$A"),
        ("${A:-b}-${C-d}", "b-d"),
        ("${A:-${B:-c}}", "c"),
        ("${A:-}", ""),
        ("${A:?needed}", "${A:?needed}"),
        ("$$A ${A:-$$}", "$A $"),
        ("${A", "${A"),
        ("${A:-x", "${A:-x"),
    ],
)
def test_defaults_of_variables(text: str, value: str) -> None:
    assert interpolated(text) == value


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("version: '3'\n", 1, "expected the 'services'"),
        ("services: [a]\n", 1, "services to be a table"),
        ("services:\n  a: 1\n", 2, "services.a to be a table"),
        ("services:\n  a:\n    image: [x]\n", 3, "services.a.image to be a string"),
        ("services:\n  a:\n    gpus: many\n", 3, "services.a: expected a number of GPUs or 'all', not 'many'"),
        ("services:\n  a:\n    gpus: 1\n    environment: x\n", 4, "services.a.environment to be a table"),
        ("services:\n  a:\n    command: {a: b}\n", 3, "services.a.command to be a string"),
        ("services:\n  a:\n    extends: b\n", 3, "another service of this file"),
        ("services:\n  a:\n    extends: a\n", 3, "another service of this file"),
        ("services:\n  a:\n    deploy: {resources: [x]}\n", 3, "services.a.deploy to be a table"),
    ],
)
def test_errors_name_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    assert caught.value.line == line


@pytest.mark.parametrize(
    "command",
    [
        'bash -c "pip install trl==0.12.1 && torchrun --nproc-per-node 2 train.py"',
        "[bash, -c, 'pip install trl==0.12.1 && torchrun --nproc-per-node 2 train.py']",
        "\n      - sh\n      - -c\n      - |\n        pip install trl==$${V:-0.12.1}\n        torchrun --nproc-per-node 2 train.py\n",
    ],
)
def test_a_script_that_the_command_hands_to_a_shell_installs(command: str) -> None:
    found = read(f"services:\n  a:\n    image: vllm/vllm-openai:v0.7.1\n    entrypoint: {command}\n")["a"]
    pins = {entry.distribution.name: entry.distribution.version for entry in found.entries}
    assert (pins["vllm"], pins["trl"]) == ("0.7.1", "0.12.1")
    line = next(entry.line for entry in found.entries if entry.distribution.name == "trl")
    assert line == (8 if "\n" in command else 4)
    assert found.context.workload is not None
    assert found.context.workload.launcher == "torchrun"
    assert found.context.workload.origins["launcher"] == "compose.yaml:3"


@pytest.mark.parametrize(
    ("body", "small"),
    [
        ("", True),
        ("    shm_size: 16gb\n", False),
        ("    ipc: host\n", False),
        ("    volumes: ['/dev/shm:/dev/shm']\n", False),
        ("    volumes:\n      - {type: tmpfs, target: /dev/shm}\n", False),
        ("    tmpfs: /dev/shm:size=8g\n", False),
        ("    volumes: ['./models:/models']\n", True),
    ],
)
def test_the_shared_memory_of_a_container_is_small_unless_it_is_set(body: str, small: bool) -> None:
    command = "    command: vllm serve m --tensor-parallel-size 4\n"
    workload = service(f"{command}{body}").context.workload
    assert workload is not None
    assert ("default-shm" in (workload.features or ())) is small
