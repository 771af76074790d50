"""What names of files, prompts and commands in a text say about the machine."""

from __future__ import annotations

import pytest

from compat.api.diagnosis import environment_in

MODULE = "ImportError: /envs/x/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2E\n"


@pytest.mark.parametrize(
    ("text", "python", "system", "machine"),
    [
        (MODULE, "3.10", "linux", "x86_64"),
        ("ImportError: dlopen(/v/_C.cpython-312-darwin.so, 0x0002): Library not loaded\n", "3.12", "darwin", None),
        ("ImportError: could not load C:/v/ops.cp311-win_amd64.pyd\n", "3.11", "windows", "x86_64"),
        ("(bilive) PS J:\\bilive-0.2.9> pip install triton==3.1.0\n", None, "windows", None),
        ("(venv) C:\\Users\\me\\app>python run.py\n", None, "windows", None),
        ("ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory\n", None, "linux", None),
        ("ImportError: /lib64/libc.so.6: version `GLIBC_2.32' not found (required by a)\n", None, "linux", None),
        ("the file was built on _C.cpython-312-darwin.so and _C.cpython-310-x86_64-linux-gnu.so\n", None, None, "x86_64"),
    ],
)
def test_names_of_files_and_prompts(text: str, python: str | None, system: str | None, machine: str | None) -> None:
    environment, _ = environment_in(text)
    assert (environment.python, environment.os, environment.machine) == (python, system, machine)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Wheels from jetson-ai-lab for the Jetson Orin NX (jp6) load torch, but not this.", "Jetson Orin NX"),
        ("The latest pytorch fails on a `linux-aarch64` platform, the Jetson Orin.", "Jetson Orin"),
        ("Unable to run vLLM on AMD Ryzen AI MAX+ 395", "AMD Ryzen AI MAX+ 395"),
        ("I start the server on my DGX Spark and it crashes.", "DGX Spark"),
    ],
)
def test_computers_that_are_called_like_their_gpu(text: str, name: str) -> None:
    environment, _ = environment_in(f"{text}\n\nRuntimeError: CUDA error: unknown error\n")
    (device,) = environment.accelerators or ()
    assert device.name == name


def test_two_computers_are_not_one() -> None:
    environment, _ = environment_in("It fails on the Jetson Orin and on the DGX Spark.\n\nRuntimeError: CUDA error: unknown\n")
    assert environment.accelerators is None


@pytest.mark.parametrize(
    ("command", "cuda"),
    [
        ("pip3 install torch torchvision --index-url https://index.example/whl/cu130", "13.0"),
        ("uv pip install torch --index-url https://index.example/whl/nightly/cu128", "12.8"),
        ("pip install torch --index-url https://index.example/whl/cpu", "cpu"),
        ("pip install torch", None),
    ],
)
def test_the_index_says_which_build_torch_is(command: str, cuda: str | None) -> None:
    environment, _ = environment_in(f"```\n{command}\n```\nthen I get an error\n\nImportError: x\n")
    torch = next((each for each in environment.distributions or () if each.name == "torch"), None)
    assert (torch.extra.get("cuda") if torch is not None else None) == cuda
