"""Containers that scripts start, and the images that they run a job in."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from compat.formats.containers import started_container
from compat.formats.listing import Listing
from compat.formats.scripts import Makefile, ShellScript
from compat.model import Accelerator, Workload
from tests.formats.listings import pins


def read(folder: Path, text: str) -> tuple[Listing, ...]:
    (folder / ".git").mkdir(exist_ok=True)
    return ShellScript().read(str(folder / "run.sh"), text)


def workload(listing: Listing) -> Workload:
    assert listing.context.workload is not None
    return listing.context.workload


SERVER = """\
IMAGE=vllm/vllm-openai:v0.8.5
sudo docker run --gpus 2 --rm -it --shm-size 32g -p 8000:8000 \\
  -e VLLM_USE_V1=0 --env HF_TOKEN=$HF_TOKEN -v ~/.cache:/root/.cache \\
  $IMAGE --model org/model --tensor-parallel-size 2
"""


def test_a_server_that_docker_starts(tmp_path: Path) -> None:
    (found,) = read(tmp_path, SERVER)
    assert pins(found) == {"vllm": "0.8.5", "torch": "2.6.0"}
    assert workload(found).task == "serve"
    assert found.label == "container on line 2"
    assert found.context.accelerators == (Accelerator(vendor="nvidia"),) * 2
    assert found.context.variables == {"VLLM_USE_V1": "0"}


@pytest.mark.parametrize(
    ("line", "image", "command"),
    [
        ("docker run -d -p 80:80 --name x img:1 serve --port 80", "img:1", ("serve", "--port", "80")),
        ("podman run --device nvidia.com/gpu=all img:1", "img:1", ()),
        ("docker --context far container run --gpus=all img:1 python a.py", "img:1", ("python", "a.py")),
        ("nerdctl run -it --rm -- img:1 bash", "img:1", ("bash",)),
        ("docker create --entrypoint 'python3 -m x' img:1 --y", "img:1", ("--y",)),
    ],
)
def test_options_of_docker_run(line: str, image: str, command: tuple[str, ...]) -> None:
    found = started_container(shlex.split(line))
    assert found is not None
    assert (found.image, found.command) == (image, command)


@pytest.mark.parametrize(
    "line",
    ["docker build -t x .", "docker exec c python a.py", "docker", "docker run", "echo docker run x", "python docker run x"],
)
def test_what_starts_no_container(line: str) -> None:
    assert started_container(shlex.split(line)) is None


def test_what_a_container_installs_before_it_trains(tmp_path: Path) -> None:
    (found,) = read(
        tmp_path,
        "docker run --gpus all pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel bash -c 'pip install trl==0.15.2 && accelerate launch t.py'\n",
    )
    assert pins(found) == {"torch": "2.5.1", "torchvision": "0.20.1", "trl": "0.15.2"}
    assert workload(found).launcher == "accelerate"
    assert found.context.accelerators is None  # "all" is no number


def test_a_container_beside_what_the_machine_installs(tmp_path: Path) -> None:
    own, container = read(tmp_path, f"pip install openai==1.0.0\n{SERVER}")
    assert pins(own) == {"openai": "1.0.0"}
    assert pins(container) == {"vllm": "0.8.5", "torch": "2.6.0"}


def test_containers_without_gpu_work_are_left_out(tmp_path: Path) -> None:
    (found,) = read(tmp_path, "docker run -d redis:7\ndocker run postgres:16\npip install openai==1.0.0\n")
    assert pins(found) == {"openai": "1.0.0"}


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/bash\n#SBATCH --container-image=nvcr.io#nvidia/pytorch:24.05-py3\nsrun python train.py\n",
        "srun --container-image nvcr.io#nvidia/pytorch:24.05-py3 --container-mounts $PWD:/w python train.py\n",
        "srun -N1 --container-image=docker://nvcr.io/nvidia/pytorch:24.05-py3 python train.py\n",
        "apptainer exec --nv --bind /data docker://nvcr.io/nvidia/pytorch:24.05-py3 python train.py\n",
        "srun singularity exec --nv docker://nvcr.io/nvidia/pytorch:24.05-py3 python train.py\n",
    ],
)
def test_a_job_in_the_image_of_slurm_or_apptainer(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text("import torch\n", encoding="utf-8")
    (found,) = read(tmp_path, text)
    assert pins(found) == {"torch": "2.4.0a0+07cecf4168.nv24.05"}
    assert workload(found).script
    assert found.context.cuda_toolkit == "12.4.1"


@pytest.mark.parametrize("image", ["/images/train.sqsh", "$IMAGE", "./train.sif"])
def test_an_image_that_is_a_file_or_unknown(tmp_path: Path, image: str) -> None:
    (tmp_path / "train.py").write_text("import torch\n", encoding="utf-8")
    (found,) = read(tmp_path, f"srun --container-image={image} python train.py\n")
    assert pins(found) == {}
    assert workload(found).script


def test_a_target_of_a_makefile(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    text = "IMAGE := vllm/vllm-openai:v0.8.5\nserve:\n\tdocker run --gpus all $(IMAGE) --model org/model\n"
    (found,) = Makefile().read(str(tmp_path / "Makefile"), text)
    assert pins(found) == {"vllm": "0.8.5", "torch": "2.6.0"}
    assert found.label == "target serve, container on line 3"


@pytest.mark.parametrize(
    ("options", "small"),
    [("", True), ("--ipc=host", False), ("--shm-size 16g", False), ("-v /dev/shm:/dev/shm", False), ("-v $PWD:/work", False)],
)
def test_the_shared_memory_of_docker_run(options: str, small: bool) -> None:
    container = started_container(f"docker run {options} --gpus all vllm/vllm-openai:v0.8.4 --model m".split())
    assert container is not None
    assert container.default_memory is small
