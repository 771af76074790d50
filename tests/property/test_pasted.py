"""No text makes the reader of pasted text fail in another way than it says, and what it reads can be read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.errors import InputError
from compat.formats.described import parse_described
from compat.reports.pasted import read_pasted
from tests.examples import examples
from tests.growth import assert_linear

PIECES = (
    "PyTorch version: 2.6.0+cu124", "[pip3] torch==2.5.1", "[conda] numpy 1.26.4 py310_0 conda-forge", "- GPU type: NVIDIA L4",
    "GPU 0: NVIDIA A100-SXM4-80GB", "GPU 0,1: NVIDIA H20", "GPU 0,1 Compute Capability: 9.0", "- GPU number: 8", "```", "> ",
    "Package Version", "------- -------", "# Name Version Build Channel", "torch 2.6.0", "torch==2.6.0 ; x", "-e .", "a @ b",
    "-e git+https://github.com/o/r@main#egg=x", "CUDA 12.4", "driver: 550.54", "OS: Windows 11 WSL2", "Python 3.10.12",
    "- Platform: Linux-5.15.0-x86_64-with-glibc2.35", "- Python version: 3.10.12", "distributed_type: DEEPSPEED", "num_processes: 4",
    "deepspeed_config: {'zero_stage': 2}", "fsdp_config:", "  fsdp_version: 2", "export CUDA_VISIBLE_DEVICES=0,1", "| NVIDIA-SMI 550 Driver Version: 550.54.15 |",
    "|   0  NVIDIA L4   Off | 00000000:00:03.0 Off |  0 |", "| N/A 30C P8 10W / 72W | 0MiB / 23034MiB | 0% Default |", "2x RTX 4090",
    "==((====))==  Unsloth 2025.3.1: Fast Llama patching.", "O^O/ Torch: 2.6.0. CUDA: 8.0. CUDA Toolkit: 12.4.", "### GPU", "- [x] Linux",
    '[{"name": "torch", "version": "2.6.0"},', "torch version .................... 2.1.2", "  MIG 1g.5gb Device 0: (UUID: MIG-1)",
)  # fmt: skip

mixed = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=30)), max_size=25).map("\n".join)
glued = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5), st.integers().map(str)), max_size=12).map("".join)


def check(text: str) -> None:
    try:
        environment, notes = read_pasted(text, "pasted")
    except InputError as problem:
        assert str(problem).startswith("pasted: no environment found")
        return
    document = environment.to_json()
    again, _ = parse_described(document, "pasted")
    assert again.to_json() == document
    assert all(note and "\n" not in note for note in notes)
    assert read_pasted(text, "pasted") == (environment, notes)


@given(st.one_of(mixed, glued, st.text(), st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))))
@settings(max_examples=examples(400), deadline=None)
def test_any_text(text: str):
    check(text)


@pytest.mark.parametrize(
    "piece",
    [
        "1", "1\n", "> ", "`", "```\n", "<br ", "&amp;", "\x1b[", "| ", "[", '[{"name":', "a==1\n", "torch==2.6.0\n", "A=1 ", "2 x RTX 4090\n",
        "GPU 0: NVIDIA L4\n", "GPU 0, 1, 2,", "==((====))== Unsloth 1.0\n", "torch 2.6.0, ", "a: 1.0\n", "Package Version\na 1.0\n\n", "numpy 1.0 py_0\n",
        "distributed_type: NO\n", "CUDA_X=1 python a\n", "-e git+https://x/y@z#egg=a\n", "\r", "\0", "\ud800 1\n", "(", "<details ",
    ],
)  # fmt: skip
def test_no_quadratic_time(piece: str):
    assert_linear(check, lambda length: piece * (length // len(piece)), 50_000)
