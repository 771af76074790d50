"""``compat fix`` of conda environments: what it moves, from which channel, and what it leaves to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.fixing import CLEAN, RULE, Run, own, release
from tests.index.server import IndexServer

pytest.importorskip("clingo")


def test_torch_of_a_channel_that_ended_comes_from_another(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """conda's channel pytorch has no build for this GPU: torch is from conda-forge, and brings what it needs itself."""
    index.add("torch", {"2.4.0": release("2024-07-24"), "2.8.0": release("2025-08-06", "nvidia-cublas-cu12==12.8.4.1")})
    index.add("torchvision", {"0.19.0": release("2024-07-24", "torch==2.4.0"), "0.23.0": release("2025-08-06", "torch==2.8.0")})
    index.add("nvidia-cublas-cu12", {"12.8.4.1": release("2025-03-01")})
    lines = ["channels: [pytorch, nvidia]", "dependencies:", "  - python=3.11", "  - pytorch=2.4.0", "  - torchvision=0.19.0"]
    file = tmp_path / "environment.yml"
    file.write_text("\n".join([*lines, "  - pytorch-cuda=12.4", "  - pip:", "    - accelerate==1.6.0", ""]))
    done = fix("--write", url=index.url, subject=["environment.yml"], job=("--gpu", "B200"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nvidia-cublas" not in done.stdout
    assert "from conda-forge, not checked" in " ".join(done.stdout.split())
    new = ["  - conda-forge::pytorch=2.8.0=cuda*", "  - conda-forge::torchvision=0.23.0"]
    assert file.read_text() == "\n".join([*lines[:3], *new, "  - pip:", "    - accelerate==1.6.0", ""])


def test_a_range_for_a_channel_that_ended_gives_way_to_another_channel(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """What conda takes from there is its last release, and nothing else in the file is pinned for that."""
    index.add("torch", {"2.5.1": release("2024-10-29"), "2.8.0": release("2025-08-06")})
    index.add("tool", {"1.0": release("2025-01-01")})
    lines = ["channels: [conda-forge, nvidia]", "dependencies:", "  - python=3.11", "  - pytorch::pytorch>=2.0"]
    rest = ["  - transformers", "  - pip:", "    - tool", ""]
    file = tmp_path / "environment.yml"
    file.write_text("\n".join([*lines, "  - pytorch::pytorch-cuda=11.8  # [linux]", *rest]))
    done = fix("--write", url=index.url, subject=["environment.yml"], job=("--gpu", "B200"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert file.read_text() == "\n".join([*lines[:3], "  - conda-forge::pytorch=2.8.0=cuda*", *rest])


def test_what_pip_installs_is_not_pinned_without_a_fix(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """No release is good: that the file leaves the rest open is no reason for a plan."""
    index.add("torch", {"2.5.1": release("2024-10-29")})
    index.add("tool", {"1.0": release("2025-01-01")})
    lines = [
        "channels: [nvidia]",
        "dependencies:",
        "  - python=3.11",
        "  - pytorch::pytorch>=2.0",
        "  - pytorch::pytorch-cuda=11.8",
    ]
    (tmp_path / "environment.yml").write_text("\n".join([*lines, "  - transformers", "  - pip:", "    - tool", ""]))
    done = fix(url=index.url, subject=["environment.yml"], job=("--gpu", "B200"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "No plan is proposed: no set of releases reduces the number of errors" in done.stdout
    assert "tool" not in done.stdout


@pytest.mark.parametrize("channels", ["[pytorch]", "[conda-forge, pytorch]"])
def test_every_build_pinned_leaves_nothing_to_edit(fix: Run, index: IndexServer, tmp_path: Path, channels: str) -> None:
    """By its name, the build is that of the channel pytorch, whichever comes first; nor do older releases of others help."""
    index.add("torch", {"2.4.0": release("2024-07-24", "sympy"), "2.8.0": release("2025-08-06", "sympy")})
    index.add("sympy", {"1.12": release("2023-05-10"), "1.13": release("2024-07-19")})
    lines = [
        f"channels: {channels}",
        "dependencies:",
        "  - python=3.11.9=h955ad1f_0",
        "  - pytorch=2.4.0=py3.11_cuda12.4_cudnn9.1.0_0",
        "  - sympy=1.13=pyh04b8f61_3",
    ]
    (tmp_path / "environment.yml").write_text("\n".join([*lines, ""]))
    done = fix("--write", url=index.url, subject=["environment.yml"], job=("--gpu", "B200"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "this file pins every build: take pytorch from conda-forge" in " ".join(done.stdout.split())


def test_every_build_pinned_takes_the_wheels(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """They bring their own CUDA: what is pinned for the old one may stay, and only the channel's own packages go."""
    index.add("torch", {"2.4.0": release("2024-07-24"), "2.8.0": release("2025-08-06")})
    index.add("torchvision", {"0.19.0": release("2024-07-24", "torch==2.4.0"), "0.23.0": release("2025-08-06", "torch==2.8.0")})
    lines = [
        "channels: [pytorch, nvidia, defaults]",
        "dependencies:",
        "  - cuda-cudart=12.4.127=0",
        "  - pip=24.0=py311h06a4308_0",
        "  - python=3.11.9=h955ad1f_0",
        "  - pytorch=2.4.0=py3.11_cuda12.4_cudnn9.1.0_0",
        "  - pytorch-cuda=12.4=hc786d27_6",
        "  - pytorch-mutex=1.0=cuda",
        "  - torchvision=0.19.0=py311_cu124",
        "  - pip:",
        "    - accelerate==1.6.0",
    ]
    file = tmp_path / "environment.yml"
    file.write_text("\n".join([*lines, ""]))
    done = fix("--write", url=index.url, subject=["environment.yml"], job=("--gpu", "B200"))
    assert done.returncode == 0, done.stdout + done.stderr
    written = [line.partition("  #")[0] for line in file.read_text().splitlines()]
    assert written == [*lines[:5], *lines[-2:], "    - torch==2.8.0", "    - torchvision==0.23.0"]
    assert "PIP_NO_BUILD_ISOLATION" not in done.stdout


def test_beside_a_wheel_of_torch_torchaudio_is_a_wheel(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """conda's would bring conda's torch along."""
    index.add("torch", {"2.6.0": release("2025-01-29")})
    index.add("torchaudio", {each: release("2025-01-29", f"torch=={each}") for each in ("2.4.0", "2.6.0")})
    lines = ["dependencies:", "  - python=3.11", "  - torchaudio=2.4.0", "  - pip:", "    - torch==2.6.0"]
    file = tmp_path / "environment.yml"
    file.write_text("\n".join([*lines, ""]))
    done = fix("--write", url=index.url, subject=["environment.yml"], job=("--gpu", "A100"))
    assert done.returncode == 0, done.stdout + done.stderr
    written = [line.partition("  #")[0] for line in file.read_text().splitlines()]
    assert written == [*lines[:2], *lines[3:], "    - torchaudio==2.6.0"]


@pytest.mark.parametrize("python", ["=3.8.18=h955ad1f_0", "=3.8"])
def test_python_moves_if_only_releases_for_a_newer_one_have_code(
    fix: Run, index: IndexServer, tmp_path: Path, python: str
) -> None:
    """As the tag of an image does; what conda built for the old Python keeps its version and loses its build."""
    for_38, for_39 = (
        release("2025-01-01", requires_python=f">=3.{each}", wheel_tags=(f"cp3{each}-cp3{each}-manylinux_2_17_x86_64",))
        for each in "89"
    )
    index.add("torch", {"2.4.0": for_38, "2.8.0": for_39})
    lines = ["dependencies:", "  - pip=23.3.1=py38h06a4308_0", f"  - python{python}", "  - zlib=1.2.13=h5eee18b_0", "  - pip:"]
    file = tmp_path / "environment.yml"
    file.write_text("\n".join([*lines, "    - torch==2.4.0", ""]))
    done = fix("--write", url=index.url, subject=["environment.yml"], job=("--gpu", "B200"))
    assert done.returncode == 0, done.stdout + done.stderr
    text = " ".join(done.stdout.split())
    assert "target Python 3.9;" in text
    assert "torch 2.6.0 and later have no wheel for Python 3.8" in text
    assert "uv cannot resolve" not in text
    assert file.read_text() == "\n".join([lines[0], "  - pip=23.3.1", "  - python=3.9", *lines[3:], "    - torch==2.8.0", ""])


def test_a_package_of_conda_moves_if_another_needs_it(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """The error is about transformers alone; the release that fixes it requires newer tokenizers, which are conda's as well."""
    head = "name: job\nchannels:\n  - conda-forge\ndependencies:\n  - python=3.11\n"
    (tmp_path / "environment.yml").write_text(f"{head}  - transformers=4.51.3\n  - tokenizers=0.21.1\n")
    bad = RULE.format(
        name="bad-transformers", severity="error", packages='transformers = "<4.57"', hit='transformers = "4.51.3"',
        clear='transformers = "4.57.1"', fix='[[rule.fix]]\nupgrade = { transformers = ">=4.57" }',
    )  # fmt: skip
    done = fix("--write", *own(tmp_path, bad), url=index.url, subject=["environment.yml"], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "environment.yml").read_text() == f"{head}  - transformers=4.57.1\n  - tokenizers=0.22.1\n"


def test_a_prefix_of_conda_gives_way_to_another_channel(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """``=2.5`` is the last of its patch releases in the channel."""
    index.add("torch", {"1.12.1": release("2022-08-05"), "2.8.0": release("2025-08-06")})
    head = "channels: [pytorch]\ndependencies:\n  - python=3.11\n"
    (tmp_path / "environment.yml").write_text(head + "  - pytorch=2.5\n  - pytorch-cuda=12.4\n")
    done = fix("--write", url=index.url, subject=["environment.yml"], job=("--gpu", "B200"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "environment.yml").read_text() == head + "  - conda-forge::pytorch=2.8.0=cuda*\n"


def test_a_range_of_another_channel_stays(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Neither its releases nor its builds are known."""
    index.add("torch", {"1.12.1": release("2022-08-05"), "2.8.0": release("2025-08-06")})
    text = "channels: [mirror]\ndependencies:\n  - python=3.11\n  - pytorch=2.5\n  - pytorch-cuda=12.4\n"
    (tmp_path / "environment.yml").write_text(text)
    done = fix("--write", url=index.url, subject=["environment.yml"], job=("--gpu", "B200"))
    assert "Nothing to fix" in done.stdout
    assert (tmp_path / "environment.yml").read_text() == text


def test_what_is_compiled_against_torch_finds_it_in_the_environment(fix: Run, tmp_path: Path) -> None:
    """conda passes all lines of pip to one command, which would build in isolation, and before torch is there."""
    old = RULE.format(
        name="old-torch", severity="error", packages='torch = "<2.7"', hit='torch = "2.6.0"', clear='torch = "2.7.0"',
        fix='[[rule.fix]]\nupgrade = { torch = ">=2.7" }',
    )  # fmt: skip
    compiled = {each: release("2025-01-29", "torch", wheel=False) for each in ("2.6.3", "2.8.1")}
    packages = {"torch": {"2.6.0": release("2025-01-29"), "2.7.0": release("2025-04-23")}, "flash-attn": compiled}
    lines = "name: job\ndependencies:\n  - python=3.11\n  - pip:\n    - torch==2.6.0\n    - flash-attn==2.6.3\n"
    (tmp_path / "environment.yml").write_text(lines)
    with IndexServer(packages) as server:
        done = fix(*own(tmp_path, old), url=server.url, subject=["environment.yml"], job=CLEAN)
    assert '  apply     TORCH_CUDA_ARCH_LIST="8.0" conda run --name job python -m pip install "torch==2.7.0"\n' in done.stdout
    assert 'TORCH_CUDA_ARCH_LIST="8.0" PIP_NO_BUILD_ISOLATION=0 conda env update --file environment.yml\n' in done.stdout
    assert '  undo      conda run --name job python -m pip install "torch==2.6.0"\n' in done.stdout
    assert "uv pip install" not in done.stdout


def test_the_toolkit_is_of_the_cuda_that_the_new_torch_is_for(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """conda-forge's builds require a cuda-version of their own."""
    index.add("torch", {"2.4.0": release("2024-07-24"), "2.8.0": release("2025-08-06")})
    head = "channels: [pytorch, nvidia]\ndependencies:\n  - python=3.11\n"
    toolkit = "  - cuda-nvcc={0}.*\n  - cuda-version={0}\n"
    text = head + "  - pytorch=2.4.0\n  - pytorch-cuda=12.4.*\n" + toolkit.format("12.4") + "  - cuda-cudart=11.8.89\n"
    (tmp_path / "environment.yml").write_text(text)
    done = fix("--write", url=index.url, subject=["environment.yml"], job=("--gpu", "B200"))
    assert done.returncode == 0, done.stdout + done.stderr
    expected = head + "  - conda-forge::pytorch=2.8.0=cuda*\n" + toolkit.format("12.9") + "  - cuda-cudart=11.8.89\n"
    assert (tmp_path / "environment.yml").read_text() == expected
