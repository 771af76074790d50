"""torch from conda's channel ``pytorch``: its builds for CUDA 12 have no PTX, those for CUDA 11 an old one; conda-forge's do."""

from __future__ import annotations

import pytest

from compat.checks.selections import judged_listing
from compat.formats.conda_environment import CondaEnvironment
from compat.formats.edit.changes import Change
from compat.formats.scripts import ShellScript
from compat.model import Accelerator, Environment, Source
from compat.rules.compiled import in_memory

B200 = Accelerator("nvidia", "B200", compute_capability="10.0")
H100 = Accelerator("nvidia", "H100", compute_capability="9.0")
MI300X = Accelerator("amd", "MI300X", gfx="gfx942")


def environment(*lines: str, channels: str = "[pytorch, nvidia, conda-forge]") -> str:
    return f"channels: {channels}\ndependencies:\n" + "".join(f"  - {each}\n" for each in lines)


def about_torch(text: str, gpu: Accelerator) -> list[str]:
    (listing,) = CondaEnvironment().read("environment.yml", text)
    known = Environment(python="3.10", os="linux", machine="x86_64", accelerators=(gpu,))
    found, _ = judged_listing(listing, known, in_memory([]))
    return [each.rule for each in found if each.rule.startswith("build-torch-") and each.verdict == "hit"]


@pytest.mark.parametrize(
    "lines",
    [
        ("pytorch=2.4.0", "pytorch-cuda=12.1"),
        ("pytorch=2.4.0", "pytorch-cuda=12.4.*"),
        ("pytorch::pytorch=2.5", "pytorch::pytorch-cuda=12.4"),
        ("pytorch=2.1.0=py3.10_cuda12.1_cudnn8.9.2_0",),
    ],
)
def test_builds_for_cuda_12_have_no_code_for_what_came_later(lines: tuple[str, ...]) -> None:
    assert about_torch(environment(*lines), B200) == ["build-torch-gpu"]
    assert about_torch(environment(*lines), H100) == []
    assert about_torch(environment(*lines), MI300X) == ["build-torch-vendor"]


@pytest.mark.parametrize(
    ("lines", "channels"),
    [
        (("pytorch=1.13.1", "pytorch-cuda=11.7"), "[pytorch, nvidia]"),  # PTX of 3.7, and no attention that it would lack
        (("pytorch=2.4.0", "pytorch-cuda=12.1"), "[conda-forge, pytorch]"),  # conda-forge's, with PTX of 9.0
        (("pytorch=2.4.0=cuda120_py310h2c91c31_301",), "[pytorch, conda-forge]"),
        (("pytorch=2.4.0",), "[pytorch]"),  # for which CUDA?
        (("pytorch>=2.4", "pytorch-cuda=12.4"), "[pytorch]"),
    ],
)
def test_other_builds_run_or_are_unknown(lines: tuple[str, ...], channels: str) -> None:
    found = about_torch(environment(*lines, channels=channels), B200)
    assert found == (["build-torch-gpu"] if lines[0] == "pytorch>=2.4" else [])


@pytest.mark.parametrize(
    ("lines", "gpus", "severity"),
    [
        (("pytorch=2.4.0", "pytorch-cuda=11.8"), 1, "warning"),
        (("pytorch=2.4.0", "pytorch-cuda=11.8"), 2, "error"),  # NCCL
        (("pytorch=2.1.0=py3.10_cuda11.8_cudnn8.7.0_0", "transformers=4.36.0"), 1, "error"),  # whose attention is torch's
        (("pytorch=2.1.0=py3.10_cuda11.8_cudnn8.7.0_0", "transformers=4.35.2"), 1, "warning"),
        (("pytorch=2.1.0=py3.10_cuda11.8_cudnn8.7.0_0", "transformers"), 1, "error"),
        (("pytorch=2.1.0", "pytorch-cuda=11.8", "deepspeed=0.12.6"), 1, "error"),
    ],
)
def test_ptx_of_an_old_architecture_lacks_attention_and_nccl(lines: tuple[str, ...], gpus: int, severity: str) -> None:
    (listing,) = CondaEnvironment().read("environment.yml", environment(*lines, channels="[pytorch, nvidia]"))
    known = Environment(python="3.10", os="linux", machine="x86_64", accelerators=(B200,) * gpus)
    found, _ = judged_listing(listing, known, in_memory([]))
    (about,) = [each for each in found if each.rule == "build-torch-gpu"]
    assert (about.severity, about.verdict) == (severity, "hit")
    assert about.title == "This torch has only PTX of sm_37 for B200 (compute capability 10.0)"
    assert about_torch(environment(*lines), H100) == []


def test_the_channel_of_an_install_command_counts() -> None:
    text = "conda install -y pytorch=2.4.0 pytorch-cuda=12.1 -c {} -c nvidia\n"
    for channel, rules in (("pytorch", ["build-torch-gpu"]), ("conda-forge", [])):
        (listing,) = ShellScript().read("install.sh", text.format(channel))
        found, _ = judged_listing(listing, Environment(os="linux", accelerators=(B200,)), in_memory([]))
        assert [each.rule for each in found if each.rule == "build-torch-gpu"] == rules, channel


def test_a_package_of_another_channel_is_written_with_it() -> None:
    text = environment("pytorch=2.4.0  # ours", "torchvision==0.19.0", "pytorch-cuda=12.4.*", "numpy")
    changes = (
        Change("torch", "2.4.0", "2.8.0", source=Source("conda", {"channel": "conda-forge", "variant": "cuda*"})),
        Change("torchvision", "0.19.0", "0.23.0", source=Source("conda", {"channel": "conda-forge"})),
        Change("pytorch-cuda", "12.4", None),
    )
    (edit,) = CondaEnvironment().edit("environment.yml", text.encode(), changes)
    after = environment("conda-forge::pytorch=2.8.0=cuda*  # ours", "conda-forge::torchvision=0.23.0", "numpy")
    assert edit.after.decode() == after
    assert about_torch(after, B200) == []
