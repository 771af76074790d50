"""NVIDIA's programs, GPUs in words, systems, variables."""

from __future__ import annotations

import pytest

from compat.model import Environment
from compat.reports.pasted import read_pasted
from compat.reports.words import devices_in


def read(text: str) -> Environment:
    return read_pasted(text, "x")[0]


SMI = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA GeForce RTX 309...      Off |   00000000:01:00.0 Off |                  N/A |
|  0%   41C    P8             21W /  350W |       1MiB /  24576MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
"""


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("GPU type: NVIDIA L4\n", ["NVIDIA L4+"]),
        ("GPU: RTX 3090\n", ["RTX 3090+"]),
        ("GPU: 2x RTX 3090\n", ["RTX 3090", "RTX 3090"]),
        (SMI, ["NVIDIA GeForce RTX 309..."]),
        (SMI + "GPU type: NVIDIA GeForce RTX 3090\n", ["NVIDIA GeForce RTX 309..."]),
    ],
)
def test_a_kind_without_a_number_is_at_least_one(text: str, seen: list[str]) -> None:
    found, notes = read_pasted(f"transformers 4.53.3\n{text}", "x")
    told = [f"{each.name}{'+' if each.extra.get('more') else ''}" for each in found.accelerators or ()]
    assert told == seen
    assert any("how many GPUs there are is not said: at least 1" in note for note in notes) == seen[0].endswith("+")


class TestNvidia:
    def test_table(self):
        found = read(f"> here\n```\n{SMI}```\n")
        assert found.driver == "550.54.15"
        assert found.cuda_toolkit is None
        assert [(each.name, each.memory_mib) for each in found.accelerators or ()] == [("NVIDIA GeForce RTX 309...", 24576)]

    def test_the_whole_name_from_another_place(self):
        found = read(SMI + "\nGPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-1)\n")
        assert [(each.name, each.memory_mib) for each in found.accelerators or ()] == [("NVIDIA GeForce RTX 3090", 24576)]

    def test_query(self):
        found = read(
            "name, driver_version, memory.total [MiB], compute_cap\nNVIDIA RTX A6000, 535.183.01, 49140 MiB, 8.6\n"
            "NVIDIA RTX A6000, 535.183.01, 49140 MiB, 8.6\n"
        )
        assert [(each.compute_capability, each.memory_mib) for each in found.accelerators or ()] == [("8.6", 49140)] * 2
        assert found.driver == "535.183.01"

    def test_the_long_form(self):
        found = read(
            "==============NVSMI LOG==============\nDriver Version                            : 510.06\n"
            "CUDA Version                              : 11.6\nAttached GPUs                             : 1\n"
            "    Product Name                          : NVIDIA GeForce GTX 1650 Ti\n"
        )
        assert (found.driver, found.cuda_toolkit) == ("510.06", None)
        assert [each.name for each in found.accelerators or ()] == ["NVIDIA GeForce GTX 1650 Ti"]

    def test_failures(self):
        assert read("$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n").driver_state == "mismatched"
        failed = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
        assert read(failed).driver_state == "not-loaded"

    def test_nvcc(self):
        text = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 11.7, V11.7.64\nCopyright NVIDIA Corporation\n"
        assert read(text).cuda_toolkit == "11.7"
        assert read(text).accelerators is None

    def test_a_program_sees_fewer_devices_than_there_are(self):
        listed = "GPU 0: NVIDIA L4\nGPU 1: NVIDIA L4\n"
        banner = "==((====))==  Unsloth 2025.3.1: Fast Llama patching.\n   \\\\   /|    NVIDIA L4. Num GPUs = 1. Max memory: 22.1 GB.\n"
        assert len(read(listed + banner).accelerators or ()) == 1
        chosen = read(listed + banner + "\nexport CUDA_VISIBLE_DEVICES=1\n")
        assert len(chosen.accelerators or ()) == 2  # the variable says which of them

    def test_two_machines(self):
        found, notes = read_pasted(
            "GPU 0: NVIDIA L4\n\nlater\n\nGPU 0: NVIDIA A100 80GB PCIe\nGPU 1: NVIDIA A100 80GB PCIe\nPython version: 3.11.4\n",
            "x",
        )
        assert found.accelerators is None
        assert any(note.startswith("two answers for the GPUs") for note in notes)


@pytest.mark.parametrize(
    ("words", "count", "name"),
    [
        ("2x RTX 4090", 2, "RTX 4090"),
        ("8xH100", 8, "H100"),
        ("one machine with 3 Nvidia A100 GPUs.", 3, "Nvidia A100"),
        ("two machines with x8 A100s each", 8, "A100"),
        ("A100 80GB x 8", 8, "A100 80GB"),
        ("RTX 3090 * 2", 2, "RTX 3090"),
        ("NVIDIA A100-SXM4-80GB (x8)", 8, "NVIDIA A100-SXM4-80GB"),
        ("4 x 80GB A100", 4, "A100"),
        ("dual 3090", 2, "3090"),
        ("NVIDIA GeForce RTX 4050 Laptop GPU", None, "NVIDIA GeForce RTX 4050 Laptop GPU"),
        ("80GB A100s", None, "A100"),
        ("RTX 4060 8 GB", None, "RTX 4060 8 GB"),
        ("Apple M2 Max", 1, "Apple M2 Max"),
        ("AMD Radeon Pro W7900", None, "AMD Radeon Pro W7900"),
    ],
)
def test_gpus_in_words(words: str, count: int | None, name: str):
    told = devices_in(words)
    assert told is not None
    devices, counted = told
    assert (len(devices) if counted else None, devices[0].name) == (count, name)


@pytest.mark.parametrize("words", ["nvidia corporation", "the NVIDIA driver", "cuda:0", "auto", "0x RTX 4090", "99999"])
def test_words_that_name_no_gpu(words: str):
    assert devices_in(words) is None


def test_several_kinds():
    told = devices_in("2 x NVIDIA GeForce RTX 3090, 1x RTX 4090")
    assert told is not None
    assert [each.name for each in told[0]] == ["NVIDIA GeForce RTX 3090"] * 2 + ["RTX 4090"]


class TestSystem:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("OS: Ubuntu 22.04", ("linux", None, None)),
            ("- OS: Windows 11", ("windows", None, None)),
            ("OS: Windows 11 (WSL2, Ubuntu 22.04)", ("linux", None, "wsl2")),
            ("Linux box 5.15.167.4-microsoft-standard-WSL2 #1 SMP Tue x86_64 GNU/Linux", ("linux", "x86_64", "wsl2")),
            ("Linux arm 6.8.0-aws #1 SMP Tue aarch64 aarch64 GNU/Linux", ("linux", "aarch64", None)),
            ("Darwin mac 23.5.0 Darwin Kernel Version 23.5.0 RELEASE_ARM64_T6000 arm64", ("darwin", "arm64", None)),
            ("- Platform: macOS-15.1-arm64-arm-64bit", ("darwin", "arm64", None)),
            ("### Operating System\n\nUbuntu 23.04\n\n### Other\n", ("linux", None, None)),
            ("- [x] Linux\n- [ ] Windows\n", ("linux", None, None)),
            ("- [ ] Linux\n- [X] Windows\n", ("windows", None, None)),
        ],
    )
    def test_words(self, text: str, expected: tuple[str, str | None, str | None]):
        found = read(text + "\ntorch 2.6.0\n")
        assert (found.os, found.machine, found.platform) == expected

    def test_prompts(self):
        windows = read("Python 3.11.9 (tags/v3.11.9:de54cf5, Apr  2 2024, 10:12:12) [MSC v.1938 64 bit (AMD64)] on win32\n")
        assert (windows.python, windows.os, windows.machine) == ("3.11.9", "windows", "x86_64")
        assert read("$ python --version\nPython 3.12.3\n").python == "3.12.3"

    def test_paths_are_a_last_resort(self):
        path = 'File "/home/me/lib/python3.10/site-packages/trl/x.py", line 3\n'
        found, notes = read_pasted(path, "x")
        assert (found.python, found.os) == ("3.10", "linux")
        assert any("paths" in note for note in notes)
        assert read(path + "Python 3.12.3\n").python == "3.12.3"
        assert read(path + path.replace("3.10", "3.11")).python is None


class TestVariables:
    def test_set_in_a_shell(self):
        found = read(
            "export CUDA_VISIBLE_DEVICES=0,1\nNCCL_P2P_DISABLE=1 VLLM_USE_V1=0 python train.py --x 1\n"
            'os.environ["TOKENIZERS_PARALLELISM"] = "false"\n'
        )
        assert dict(found.variables or {}) == {
            "CUDA_VISIBLE_DEVICES": "0,1", "NCCL_P2P_DISABLE": "1", "VLLM_USE_V1": "0", "TOKENIZERS_PARALLELISM": "false",
        }  # fmt: skip

    def test_two_values_are_none(self):
        found, notes = read_pasted(
            "export CUDA_VISIBLE_DEVICES=0\nexport CUDA_VISIBLE_DEVICES=1\nexport NCCL_DEBUG=INFO\n", "x"
        )
        assert dict(found.variables or {}) == {"NCCL_DEBUG": "INFO"}
        assert any("CUDA_VISIBLE_DEVICES" in note for note in notes)

    def test_no_secrets_and_no_shell_variables(self):
        text = "export VLLM_API_KEY=abc\nexport HF_TOKEN=abc\nexport CUDA_HOME=$HOME/cuda\nexport NCCL_DEBUG=INFO\n"
        assert dict(read(text).variables or {}) == {"NCCL_DEBUG": "INFO"}
