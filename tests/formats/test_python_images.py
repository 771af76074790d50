"""Images of Modal and Ray's runtime environments in Python code, read and edited as syntax."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.listing import Listing
from compat.formats.registry import read_listings
from tests.formats.listings import placed_pins

MODAL = '''\
"""An app."""
import modal

CUDA = "12.4.1"
VERSION = compute()
image = (
    modal.Image.from_registry(f"nvidia/cuda:{CUDA}-devel-ubuntu22.04", add_python="3.11")
    .apt_install("git")
    .pip_install(
        "torch==2.5.1",
        "vllm==0.6.4.post1",
        f"peft=={VERSION}",
    )
    .pip_install("flash-attn==2.7.0.post2", extra_options="--no-build-isolation")
    .env({"HF_HUB_ENABLE_HF_TRANSFER": "1"})
)
image = image.uv_pip_install(["trl==0.12.1", "transformers>=4.46"], index_url="https://index.example/simple")
small = modal.Image.debian_slim(python_version="3.12").pip_install("numpy==2.1.0").run_commands("pip install pandas==2.2.3")
app = modal.App("x")


@app.function(image=image, gpu="A100-80GB:2")
def train():
    from trl import SFTTrainer

    SFTTrainer(model="a").train()
'''
RAY = """\
import ray

runtime_env = {"pip": ["torch==2.5.1", "trl==0.12.1"], "env_vars": {"VLLM_USE_V1": "0"}}
ray.init(runtime_env=runtime_env)


@ray.remote(runtime_env={"pip": {"packages": ["peft==0.13.2"], "pip_check": False}})
def f():
    pass
"""


def read(tmp_path: Path, text: str) -> dict[str | None, Listing]:
    path = tmp_path / "app.py"
    path.write_text(text, encoding="utf-8")
    return {listing.label: listing for listing in read_listings(str(path))}


def test_an_image_goes_on_under_its_name(tmp_path: Path) -> None:
    found = read(tmp_path, MODAL)
    assert list(found) == ["image", "small"]
    image = found["image"]
    assert placed_pins(image) == {
        "torch": ("2.5.1", 10),
        "vllm": ("0.6.4.post1", 11),
        "peft": (None, 12),
        "flash-attn": ("2.7.0.post2", 14),
        "trl": ("0.12.1", 17),
        "transformers": (None, 17),
    }
    assert (image.requires_python, image.context.cuda_toolkit) == ("==3.11.*", "12.4.1")
    assert [each.name for each in image.context.accelerators or ()] == ["A100-80GB"] * 2
    assert image.context.variables == {"HF_HUB_ENABLE_HF_TRANSFER": "1"}
    assert image.context.workload is not None
    assert image.context.workload.trainer == "SFTTrainer"
    assert any("its version is only known at run time" in note for note in image.notes)


def test_another_image_has_its_own_packages(tmp_path: Path) -> None:
    small = read(tmp_path, MODAL)["small"]
    assert placed_pins(small) == {"numpy": ("2.1.0", 18), "pandas": ("2.2.3", 18)}
    assert (small.requires_python, small.context.accelerators) == ("==3.12.*", None)


def test_each_runtime_environment_of_ray_is_a_listing(tmp_path: Path) -> None:
    found = read(tmp_path, RAY)
    assert list(found) == ["runtime_env on line 3", "runtime_env on line 7"]
    assert placed_pins(found["runtime_env on line 3"]) == {"torch": ("2.5.1", 3), "trl": ("0.12.1", 3)}
    assert found["runtime_env on line 3"].context.variables == {"VLLM_USE_V1": "0"}
    assert placed_pins(found["runtime_env on line 7"]) == {"peft": ("0.13.2", 7)}


@pytest.mark.parametrize("text", [MODAL, RAY])
def test_every_constant_that_is_a_pin_is_listed(tmp_path: Path, text: str) -> None:
    constants = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    expected = {pin for each in constants for pin in re.findall(r"([a-z-]+)==(\d[\w.]*)", str(each))}
    entries = [entry.distribution for listing in read(tmp_path, text).values() for entry in listing.entries]
    assert {(each.name, each.version) for each in entries if each.version} == expected


def test_the_class_of_ray_is_read(tmp_path: Path) -> None:
    (listing,) = read(tmp_path, 'from ray.runtime_env import RuntimeEnv\nenv = RuntimeEnv(pip=["trl==0.12.1"])\n').values()
    assert placed_pins(listing) == {"trl": ("0.12.1", 2)}


def test_a_requirements_file_of_the_project_is_opened(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text("trl==0.12.1\n", encoding="utf-8")
    text = 'import modal\nimage = modal.Image.debian_slim().pip_install_from_requirements("requirements.txt")\n'
    (listing,) = read(tmp_path, text).values()
    assert [(e.distribution.name, e.distribution.version) for e in listing.entries] == [("trl", "0.12.1")]


def test_a_list_of_gpus_is_a_choice(tmp_path: Path) -> None:
    text = 'import modal\nimage = modal.Image.debian_slim().pip_install("trl")\n@app.function(gpu=["H100", "A100"])\ndef f(): pass\n'
    (listing,) = read(tmp_path, text).values()
    assert listing.context.accelerators is None


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        ('f"{KIND}:{N}"', ["H100"] * 2),
        ('f"L4:{N}"', ["L4"] * 2),
        ("KIND", ["H100"]),
        ('KIND + ":4"', ["H100"] * 4),
        ('modal.gpu.A100(size="80GB", count=N)', ["A100-80GB"] * 2),
        ("modal.gpu.T4()", ["T4"]),
        ('os.environ["GPU"]', None),
        ('f"{os.environ[1]}:2"', None),
        ("None", None),
    ],
)
def test_gpus_built_from_names(tmp_path: Path, gpu: str, expected: list[str] | None) -> None:
    text = f'import modal, os\nKIND, N = "H100", 2\nimage = modal.Image.debian_slim().pip_install("trl")\n@app.function(gpu={gpu})\ndef f(): pass\n'
    (listing,) = read(tmp_path, text).values()
    found = listing.context.accelerators
    assert (None if found is None else [each.name for each in found]) == expected


@pytest.mark.parametrize(
    ("text", "change", "old", "new"),
    [
        (MODAL, Change("torch", "2.5.1", "2.6.0"), '"torch==2.5.1"', '"torch==2.6.0"'),
        (MODAL, Change("trl", "0.12.1", "0.15.2"), '"trl==0.12.1"', '"trl==0.15.2"'),
        (RAY, Change("peft", "0.13.2", "0.14.0"), '"peft==0.13.2"', '"peft==0.14.0"'),
    ],
)
def test_an_edit_changes_one_constant(tmp_path: Path, text: str, change: Change, old: str, new: str) -> None:
    path = tmp_path / "app.py"
    path.write_text(text, encoding="utf-8")
    (edit,) = edits_for(str(path), [change])
    assert edit.after.decode() == text.replace(old, new)


def test_an_edit_adds_behind_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "app.py"
    path.write_text(RAY, encoding="utf-8")
    (edit,) = edits_for(str(path), [Change("accelerate", None, "1.2.0", direct=True)])
    assert edit.after.decode() == RAY.replace('"peft==0.13.2"', '"peft==0.13.2", "accelerate==1.2.0"')


def test_a_version_that_is_put_together_is_not_edited(tmp_path: Path) -> None:
    path = tmp_path / "app.py"
    path.write_text(MODAL, encoding="utf-8")
    with pytest.raises(InputError, match="peft is installed here in a way that cannot be changed safely"):
        edits_for(str(path), [Change("peft", "0.13.2", "0.14.0")])


def test_what_is_no_python_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError) as problem:
        read(tmp_path, "import modal\nimage = modal.Image.debian_slim().pip_install(\n")
    assert problem.value.line in (2, 3)
