"""``compat fix`` of files whose errors are those of the image that they start from."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.fixing import BAD_TRL, REPORT, planned, release
from tests.index.server import IndexServer

pytest.importorskip("clingo")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
FOR_5090 = ("--gpu", "RTX 5090", "--torch-index", "http://127.0.0.1:9")
OLD, NEW = "vllm/vllm-openai:v0.8.5", "vllm/vllm-openai:v0.9.0"
COMPOSE = "services:\n  llm:\n    image: {}  # pinned\n    command: --model org/model\n"


def fixed(compat: Run, path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return compat("fix", str(path), *FOR_5090, "--index-url", "http://127.0.0.1:9", *words)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compose.yaml", COMPOSE),
        ("Dockerfile", "FROM {} AS serve\nRUN apt-get update\n"),
        ("run.sh", "docker run --gpus all {} --model org/model\n"),
        ("job.yaml", "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: llm\n    image: {}\n"),
    ],
)
def test_the_image_is_replaced_where_it_is_written(compat: Run, tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text.format(OLD), encoding="utf-8")
    done = fixed(compat, path, "--format", "json", "--write")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert not list(REPORT.iter_errors(report))
    assert planned(done) == {"vllm/vllm-openai": ("v0.8.5", "v0.9.0")}
    assert report["plan"]["cost"] == {"image": 1}
    assert report["plan"]["left"] == []
    assert path.read_text(encoding="utf-8") == text.format(NEW)
    again = compat("check", str(path), "--gpu", "RTX 5090")
    assert again.returncode == 0, again.stdout


def test_the_image_supports_the_model_that_the_service_serves(compat: Run, tmp_path: Path) -> None:
    path = tmp_path / "compose.yaml"
    text = COMPOSE.replace("org/model", "Qwen/Qwen3-Next-80B-A3B-Instruct")
    path.write_text(text.format(OLD), encoding="utf-8")
    done = fixed(compat, path, "--write")
    assert done.returncode == 0, done.stderr
    assert path.read_text(encoding="utf-8") == text.format("vllm/vllm-openai:v0.10.2")
    assert "does not support" not in compat("check", str(path), "--gpu", "RTX 5090").stdout


def test_of_the_patch_releases_of_a_server_the_one_without_a_warning_is_taken(compat: Run, tmp_path: Path) -> None:
    """vLLM before 0.9.2 has no FP8 kernels for this GPU."""
    path = tmp_path / "compose.yaml"
    text = COMPOSE.replace("--model org/model", "--model org/model --quantization fp8")
    path.write_text(text.format(OLD), encoding="utf-8")
    done = fixed(compat, path, "--write")
    assert done.returncode == 0, done.stderr
    assert path.read_text(encoding="utf-8") == text.format("vllm/vllm-openai:v0.9.2")


def test_the_tag_may_be_an_argument_of_the_dockerfile(compat: Run, tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text("ARG TAG=v0.8.5\nFROM vllm/vllm-openai:${TAG}\n", encoding="utf-8")
    done = fixed(compat, path, "--write")
    assert done.returncode == 0, done.stderr
    assert "1 image changed" in done.stdout
    assert path.read_text(encoding="utf-8") == "ARG TAG=v0.9.0\nFROM vllm/vllm-openai:${TAG}\n"


def test_what_the_file_installs_is_planned_for_on_the_new_image(compat: Run, tmp_path: Path) -> None:
    packages = {
        "trl": {"0.12.0": release("2024-11-04", "transformers"), "0.13.0": release("2024-12-16", "transformers")},
        "transformers": {"4.46.3": release("2024-11-18")},
    }
    path = tmp_path / "Dockerfile"
    text = "FROM pytorch/pytorch:{}-devel\nRUN pip install transformers==4.46.3 trl==0.12.0\n"
    path.write_text(text.format("2.5.1-cuda12.4-cudnn9"), encoding="utf-8")
    with IndexServer(packages) as server:
        done = compat("fix", str(path), *FOR_5090, "--index-url", server.url, "--format", "json", "--write")
    assert done.returncode == 0, done.stderr
    assert planned(done)["pytorch/pytorch"] == ("2.5.1-cuda12.4-cudnn9-devel", "2.7.0-cuda12.8-cudnn9-devel")
    assert path.read_text(encoding="utf-8") == text.format("2.7.0-cuda12.8-cudnn9")


def test_an_image_without_a_better_tag_is_left(compat: Run, tmp_path: Path) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text(COMPOSE.format("someone/server:2.5.1-cuda12.4"), encoding="utf-8")
    before = path.read_bytes()
    done = fixed(compat, path, "--write")
    assert "start from" not in done.stdout
    assert path.read_bytes() == before


def test_what_is_compiled_gets_the_image_with_a_compiler(compat: Run, tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    text = "FROM nvidia/cuda:12.4.1-{}-ubuntu22.04\nRUN pip install packaging==24.2\nRUN pip install flash-attn==2.7.4.post1 --no-build-isolation\n"
    path.write_text(text.format("runtime"), encoding="utf-8")
    packages = {"packaging": {"24.2": release("2024-11-08")}, "flash-attn": {"2.7.4.post1": release("2025-01-30")}}
    with IndexServer(packages) as server:
        done = compat("fix", str(path), *FOR_5090, "--index-url", server.url, "--write")
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_text(encoding="utf-8") == text.format("devel")


def test_python_and_toolkit_are_those_of_the_new_image(compat: Run, tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    text = "FROM nvcr.io/nvidia/pytorch:{}-py3\nRUN apt-get update\n"
    path.write_text(text.format("24.05"), encoding="utf-8")
    words = ("--gpu", "B200", "--level", "warning", "--index-url", "http://127.0.0.1:9", "--format", "json", "--write")
    done = compat("fix", str(path), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert planned(done) == {"nvidia/pytorch": ("24.05-py3", "25.01-py3")}
    assert json.loads(done.stdout)["plan"]["target"][0] == "Python 3.12"
    assert path.read_text(encoding="utf-8") == text.format("25.01")


OLD_PYTHON = (
    "FROM nvidia/cuda:11.8.0-devel-ubuntu20.04\nRUN apt-get update && apt-get install -y python3-pip\nRUN pip3 install {}\n"
)


def test_pins_for_a_newer_python_than_the_image_s_start_from_another_one(compat: Run, tmp_path: Path) -> None:
    """Their releases for the old Python would be downgrades of years."""
    newer = {"requires_python": ">=3.10"}
    packages = {
        "trl": {"0.11.0": release("2024-09-19") | {"requires_python": ">=3.8"}, "0.17.0": release("2025-04-25") | newer},
        "peft": {"0.13.0": release("2024-09-25") | {"requires_python": ">=3.8"}, "0.15.0": release("2025-03-20") | newer},
    }
    path = tmp_path / "Dockerfile"
    path.write_text(OLD_PYTHON.format("trl==0.17.0 peft==0.15.0"))
    with IndexServer(packages) as server:
        done = compat("fix", str(path), "--index-url", server.url, "--write")
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_text() == OLD_PYTHON.format("trl==0.17.0 peft==0.15.0").replace("ubuntu20.04", "ubuntu22.04")
    assert "Python 3.10; Linux x86_64; glibc 2.35" in " ".join(done.stdout.split())


def test_an_error_that_only_releases_for_a_newer_python_fix_moves_the_image(compat: Run, tmp_path: Path) -> None:
    cuda = {"wheel_tags": ("cp38-cp38-manylinux_2_28_x86_64",), "requires_python": ">=3.8"}
    packages = {
        "torch": {
            "2.4.1": release("2024-09-04") | cuda,
            "2.8.0": release("2025-08-06", wheel_tags=("cp310-cp310-manylinux_2_28_x86_64",)),
        },
    }
    path = tmp_path / "Dockerfile"
    path.write_text(OLD_PYTHON.format("torch==2.4.1"))
    with IndexServer(packages) as server:
        done = compat("fix", str(path), *FOR_5090, "--index-url", server.url, "--any-age", "--write")
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_text() == OLD_PYTHON.format("torch==2.8.0").replace("ubuntu20.04", "ubuntu22.04")


def test_the_image_with_a_newer_python_may_be_made_of_arguments(compat: Run, tmp_path: Path) -> None:
    cuda = {"wheel_tags": ("cp38-cp38-manylinux_2_28_x86_64",), "requires_python": ">=3.8"}
    packages = {
        "torch": {
            "2.4.1": release("2024-09-04") | cuda,
            "2.8.0": release("2025-08-06", wheel_tags=("cp310-cp310-manylinux_2_28_x86_64",)),
        },
    }
    text = "ARG CUDA=11.8.0\nARG BASE=nvidia/cuda:${{CUDA}}-devel-ubuntu{}\nFROM ${{BASE}} AS base\n"
    text += "RUN apt-get update && apt-get install -y python3-pip\nFROM base\nRUN pip3 install torch=={}\n"
    path = tmp_path / "Dockerfile"
    path.write_text(text.format("20.04", "2.4.1"))
    with IndexServer(packages) as server:
        done = compat("fix", str(path), *FOR_5090, "--index-url", server.url, "--any-age", "--write")
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_text() == text.format("22.04", "2.8.0")


def test_what_an_image_has_in_an_unknown_release_is_not_asked_of_the_index(compat: Run, tmp_path: Path) -> None:
    """The tag names transformer-engine 1.7, which is built for the image and on no index."""
    path = tmp_path / "Dockerfile"
    path.write_text("FROM registry.example/verl:th2.4.0-cu124-vllm0.6.3-te1.7\nRUN pip install trl==0.12.0\n", encoding="utf-8")
    packages = {
        "trl": {"0.12.0": release("2024-11-04", "transformers")},
        "transformers": {"4.46.3": release("2024-11-18")},
        "transformer-engine": {"1.13.0": release("2024-12-01")},
    }
    with IndexServer(packages) as server:
        done = compat("fix", str(path), "--gpu", "A100", "--python-version", "3.11", "--index-url", server.url)
    assert "transformer-engine" not in done.stdout
    assert "Nothing to fix" in done.stdout, done.stdout + done.stderr


def test_what_replaces_the_torch_of_the_image_moves_with_what_requires_it(compat: Run, tmp_path: Path) -> None:
    """The image's torch has PTX for the GPU, but is not what runs."""
    packages = {
        "vllm": {
            "0.6.5": release("2024-12-17", "torch==2.5.1"), "0.9.0": release("2025-05-15", "torch==2.7.0"),
            "0.10.2": release("2025-09-13", "torch==2.8.0"),
        },
        "torch": {"2.5.1": release("2024-10-29"), "2.7.0": release("2025-04-23"), "2.8.0": release("2025-08-06")},
    }  # fmt: skip
    path = tmp_path / "Dockerfile"
    text = "FROM nvcr.io/nvidia/pytorch:24.07-py3\nRUN pip uninstall -y flash_attn\nRUN pip install vllm=={}\n"
    path.write_text(text.format("0.6.5"), encoding="utf-8")
    words = ("--gpu", "B200", "--torch-index", "http://127.0.0.1:9")
    with IndexServer(packages) as server:
        done = compat("fix", str(path), *words, "--index-url", server.url, "--write")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "also      torch 2.8.0" in done.stdout
        assert "(image-before-gpu)" in done.stdout
        assert path.read_text(encoding="utf-8") == text.format("0.10.2")
        done = compat("fix", str(path), *words, "--index-url", server.url, "--write", "--level", "warning")
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_text(encoding="utf-8") == text.format("0.10.2").replace("24.07", "25.01")


def test_an_index_for_an_old_cuda_has_its_own_newest_torch(compat: Run, tmp_path: Path) -> None:
    """What is installed is not the default build: its driver is not too old, and its GPU is too new."""
    packages = {
        "torch": {
            each: release(day) for each, day in (("2.7.1", "2025-06-04"), ("2.8.0", "2025-08-06"), ("2.11.0", "2026-03-01"))
        }
    }
    path = tmp_path / "Dockerfile"
    text = (
        "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\nRUN apt-get update && apt-get install -y python3-pip\nRUN pip install {}\n"
    )
    path.write_text(text.format("torch --index-url https://download.pytorch.org/whl/cu118"), encoding="utf-8")
    words = ("--gpu", "B200", "--driver", "575.57", "--torch-index", "http://127.0.0.1:9")
    with IndexServer(packages) as server:
        done = compat("fix", str(path), *words, "--index-url", server.url, "--write")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "build-torch-driver" not in done.stdout
    assert path.read_text(encoding="utf-8") == text.format("torch==2.8.0 --index-url https://download.pytorch.org/whl/cu128")


def test_the_index_of_torchs_build_stays_with_torch(compat: Run, tmp_path: Path) -> None:
    """The default build of the torchaudio that goes with it is for CUDA 11.7, which has no code for an H100."""
    packages = {
        "torch": {"2.0.1": release("2023-05-08")},
        "torchaudio": {"2.0.2": release("2023-05-08", "torch==2.0.1"), "2.11.0": release("2026-03-23")},
    }
    path = tmp_path / "Dockerfile"
    text = "FROM python:3.11\nARG CUDA=cu118\nRUN pip install torch==2.0.1 {} --extra-index-url {}/${{CUDA}}\n"
    path.write_text(text.format("torchaudio", "https://download.pytorch.org/whl"), encoding="utf-8")
    words = ("--gpu", "H100", "--driver", "535.183.01", "--torch-index", "http://127.0.0.1:9")
    with IndexServer(packages) as server:
        done = compat("fix", str(path), *words, "--index-url", server.url, "--write")
    assert done.returncode == 0, done.stdout + done.stderr
    after = text.format('"torchaudio<2.11"', "https://download.pytorch.org/whl")
    assert path.read_text(encoding="utf-8") == after


@pytest.mark.parametrize(
    ("tag", "lines", "held"),
    [
        ("25.04-py3", "RUN pip install vllm==0.8.5", True),
        ("25.04-py3", "RUN pip install torch==2.7.1", True),
        ("25.04-py3", "RUN pip install 'transformers>=4'", False),
        ("25.04-py3", "RUN uv pip install --system vllm==0.8.5", False),
        ("25.04-py3", 'ENV PIP_CONSTRAINT=""\nRUN pip install vllm==0.8.5', False),
        ("25.04-py3", "RUN PIP_CONSTRAINT= pip install vllm==0.8.5", False),
        ("25.04-py3", "RUN sed -i /torch/d /etc/pip/constraint.txt\nRUN pip install vllm==0.8.5", False),
        ("25.02-py3", "RUN pip install vllm==0.8.5", False),
    ],
)
def test_what_a_constraint_of_the_image_keeps_pip_from_installing(
    compat: Run, tmp_path: Path, tag: str, lines: str, *, held: bool
) -> None:
    """vLLM 0.8.5 requires torch 2.6.0, and the image holds its own."""
    path = tmp_path / "Dockerfile"
    path.write_text(f"FROM nvcr.io/nvidia/pytorch:{tag}\n{lines}\n", encoding="utf-8")
    done = compat("check", str(path), "--gpu", "H100")
    assert ("image-pip-constraint" in done.stdout) is held, done.stdout
    assert ('fix       ENV PIP_CONSTRAINT=""' in done.stdout) is held


def test_a_constraint_of_the_image_stays_an_error_beside_those_that_are_fixed(compat: Run, tmp_path: Path) -> None:
    packages = {
        "vllm": {"0.8.5": release("2025-04-28", "torch==2.6.0"), "0.10.2": release("2025-09-13", "torch==2.8.0")},
        "torch": {"2.6.0": release("2025-01-29"), "2.8.0": release("2025-08-06")},
    }
    path = tmp_path / "Dockerfile"
    text = "FROM nvcr.io/nvidia/pytorch:25.04-py3\nRUN pip install vllm=={}\n"
    path.write_text(text.format("0.8.5"), encoding="utf-8")
    with IndexServer(packages) as server:
        done = compat("fix", str(path), *FOR_5090, "--index-url", server.url, "--write")
    assert done.returncode == 1, done.stdout + done.stderr
    assert path.read_text(encoding="utf-8") == text.format("0.10.2")
    assert 'ENV PIP_CONSTRAINT=""' in done.stdout


BUILT = "services:\n  llm:\n    image: {}\n    command: --model org/model\n  train:\n    build: ./train\n"


def test_services_are_fixed_in_the_dockerfiles_that_they_are_built_from(compat: Run, tmp_path: Path) -> None:
    """The image of one service is in the compose file, that of the other in its Dockerfile, and a pin in what that copies."""
    packages = {"trl": {"0.17.0": release("2025-04-25"), "0.18.0": release("2025-05-27")}}
    (tmp_path / "own.toml").write_text(BAD_TRL)
    folder = tmp_path / "job"  # as the home directory is no project
    (folder / "train").mkdir(parents=True)
    docker = "FROM pytorch/pytorch:{}-devel\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n"
    (folder / "train" / "Dockerfile").write_text(docker.format("2.5.1-cuda12.4-cudnn9"))
    (folder / "train" / "requirements.txt").write_text("trl==0.17.0\n")
    path = folder / "compose.yaml"
    path.write_text(BUILT.format(OLD))
    with IndexServer(packages) as server:
        words = (*FOR_5090, "--rules", str(tmp_path / "own.toml"), "--index-url", server.url, "--write")
        done = compat("fix", str(path), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_text() == BUILT.format(NEW)
    assert (folder / "train" / "Dockerfile").read_text() == docker.format("2.7.0-cuda12.8-cudnn9")
    assert (folder / "train" / "requirements.txt").read_text() == "trl==0.18.0\n"
    assert "docker compose --file" in done.stdout


def test_the_image_with_the_torch_of_the_plan_takes_its_place(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """It would be installed over the old one, whose nvcc is for another CUDA."""
    index.add("torch", {"2.5.1": release("2024-10-29"), "2.8.0": release("2025-08-06")})
    vllm = (("0.7.2", "2025-02-06", "2.5.1"), ("0.10.2", "2025-09-13", "2.8.0"))
    index.add("vllm", {each: release(day, f"torch=={torch}") for each, day, torch in vllm})
    vision = {"0.20.1": release("2024-10-29", "torch==2.5.1"), "0.23.0": release("2025-08-06", "torch==2.8.0")}
    index.add("torchvision", vision)
    text = "FROM pytorch/pytorch:{}-cudnn9-devel\nRUN pip install vllm=={}\n"
    (tmp_path / "Dockerfile").write_text(text.format("2.5.1-cuda12.4", "0.7.2"))
    done = fix("--write", url=index.url, subject=["Dockerfile"], job=("--gpu", "B200"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "Dockerfile").read_text() == text.format("2.8.0-cuda12.8", "0.10.2")


def test_a_driver_that_may_do_in_a_container_is_a_question(compat: Run, tmp_path: Path) -> None:
    """The image may bring a compatible one: on data center GPUs that is possible."""
    (tmp_path / "Dockerfile").write_text("FROM vllm/vllm-openai:v0.23.0\n")
    words = (
        "--gpu",
        "H100",
        "--driver",
        "535.183.01",
        "--index-url",
        "http://127.0.0.1:9",
        "--torch-index",
        "http://127.0.0.1:9",
    )
    done = compat("fix", str(tmp_path / "Dockerfile"), *words)
    assert done.returncode == 0, done.stderr
    assert "  possible  The driver is too old for this torch" in done.stdout


def test_a_file_without_packages_is_refused_with_the_reason(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("ARG BASE\nFROM $BASE\n")
    done = compat("fix", str(tmp_path / "Dockerfile"))
    assert done.returncode == 2
    assert "lists no packages (" in done.stderr
    assert "only known at build time)" in done.stderr
