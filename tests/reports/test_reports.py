"""Reports that tools print: collect_env, the ``env`` commands, sglang's check, ds_report, unsloth's banner."""

from __future__ import annotations

from typing import Any

import pytest

from compat.errors import InputError
from compat.model import Environment
from compat.reports.pasted import read_pasted


def read(text: str) -> Environment:
    return read_pasted(text, "issue.md")[0]


def versions(environment: Environment) -> dict[str, Any]:
    return {each.name: each.version or each.specifier for each in environment.distributions or ()}


COLLECT_ENV = """\
Collecting environment information...
PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.5 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Clang version: Could not collect
CMake version: version 3.22.1
Libc version: glibc-2.35

Python version: 3.10.12 (main, Jan  1 2025, 00:00:00) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35
Is CUDA available: True
CUDA runtime version: 12.1.105
CUDA_MODULE_LOADING set to: LAZY
GPU models and configuration:
GPU 0: NVIDIA A100-SXM4-80GB
GPU 1: NVIDIA A100-SXM4-80GB

Nvidia driver version: 535.183.01
cuDNN version: Could not collect
HIP runtime version: N/A

CPU:
Architecture:        x86_64
Model name:          Some CPU @ 2.90GHz

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] torch==2.6.0
[pip3] triton==3.2.0
[conda] Could not collect
"""


class TestCollectEnv:
    def test_everything_it_says(self):
        found = read(COLLECT_ENV)
        assert (found.python, found.os, found.machine, found.platform) == ("3.10.12", "linux", "x86_64", "wsl2")
        assert (found.glibc, found.driver) == ("2.35", "535.183.01")
        assert versions(found) == {"numpy": "1.26.4", "torch": "2.6.0+cu124", "triton": "3.2.0"}
        assert [device.name for device in found.accelerators or ()] == ["NVIDIA A100-SXM4-80GB"] * 2
        assert not found.distributions_complete
        assert found.variables is None

    def test_the_toolkit_is_not_what_torch_was_built_with(self):
        assert read(COLLECT_ENV).cuda_toolkit == "12.1"
        without = COLLECT_ENV.replace("12.1.105", "Could not collect").replace("2.6.0+cu124", "2.6.0")
        found = read(without)
        assert found.cuda_toolkit is None
        torch = next(each for each in found.distributions or () if each.name == "torch")
        assert (torch.version, dict(torch.extra)) == ("2.6.0", {"cuda": "12.4"})

    def test_built_for_the_cpu(self):
        found = read("PyTorch version: 2.2.2\nCUDA used to build PyTorch: None\nROCM used to build PyTorch: N/A\n")
        assert found.distributions is not None
        assert dict(found.distributions[0].extra) == {"cuda": "cpu"}

    def test_one_device_behind_the_words(self):
        found = read(
            "GPU models and configuration: GPU 0: NVIDIA GeForce RTX 4090\nNvidia driver version: 550.54\nPython version: 3.7\n"
        )
        assert [device.name for device in found.accelerators or ()] == ["NVIDIA GeForce RTX 4090"]
        assert (found.python, found.driver) == ("3.7", "550.54")

    def test_nothing_was_found(self):
        found = read(
            "PyTorch version: N/A\nOS: macOS 14.5 (arm64)\nLibc version: N/A\nPython platform: macOS-14.5-arm64-arm-64bit\n"
            "CUDA runtime version: No CUDA\nGPU models and configuration: No CUDA\nNvidia driver version: Could not collect\n"
        )
        assert (found.os, found.machine) == ("darwin", "arm64")
        assert found.distributions is None
        assert found.accelerators is None
        assert (found.driver, found.cuda_toolkit, found.glibc) == (None, None, None)

    def test_windows(self):
        found = read(
            "OS: Microsoft Windows 11 Pro\nPython version: 3.9.16 (main, May 1 2023) [MSC v.1916 64 bit (AMD64)]\n"
            "Python platform: Windows-10-10.0.22621-SP0\nCPU:\nArchitecture=9\n"
        )
        assert (found.os, found.machine, found.python) == ("windows", "x86_64", "3.9.16")

    def test_the_form_with_sections_vllm_and_variables(self):
        text = (
            "==============================\n        System Info\n==============================\n"
            "OS                           : Ubuntu 22.04.5 LTS (x86_64)\nLibc version                 : glibc-2.35\n"
            "PyTorch version              : 2.7.0+cu126\nCUDA runtime version         : 12.6.85\n"
            "GPU models and configuration : \nGPU 0: NVIDIA H20\nGPU 1: NVIDIA H20\n\n"
            "Nvidia driver version        : 570.86.15\n"
            "vLLM Version                 : 0.9.1\nvLLM Build Flags:\n  CUDA Archs: Not Set; ROCm: Disabled\n"
            "NCCL_CUMEM_ENABLE=0\nLD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/lib\nVLLM_API_KEY=hidden\nHF_TOKEN=hidden\n"
        )
        found = read(text)
        assert versions(found) == {"torch": "2.7.0+cu126", "vllm": "0.9.1"}
        assert (found.cuda_toolkit, found.driver) == ("12.6", "570.86.15")
        assert len(found.accelerators or ()) == 2
        assert dict(found.variables or {}) == {"NCCL_CUMEM_ENABLE": "0", "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/lib"}

    def test_a_build_without_a_tag_has_a_commit_and_no_version(self):
        found = read("vLLM Version                 : 0.1.dev1+gb4b9813 (git sha: b4b9813)\n")
        assert found.distributions is not None
        vllm = found.distributions[0]
        assert (vllm.name, vllm.version) == ("vllm", None)
        assert vllm.source is not None
        assert vllm.source.to_json() == {"kind": "vcs", "commit": "b4b9813"}

    def test_amd_and_the_count_from_the_topology(self):
        text = (
            "PyTorch version: 2.7.0a0+git295f2ed\nCUDA used to build PyTorch: N/A\nROCM used to build PyTorch: 6.3.42133\n"
            "GPU models and configuration: AMD Instinct MI250X/MI250 (gfx90a:sramecc+:xnack-)\n"
        )
        found, notes = read_pasted(text, "x")
        assert found.accelerators is not None
        device = found.accelerators[0]
        assert (device.vendor, device.gfx, device.name) == ("amd", "gfx90a", "AMD Instinct MI250X/MI250")
        assert any("how many GPUs" in note for note in notes)
        several = text + "GPU Topology:\n       GPU0         GPU1\nGPU0    X      NV12\nGPU1    NV12     X\n"
        assert len(read(several).accelerators or ()) == 2

    def test_the_topology_alone_tells_how_many(self):
        found = read("vLLM Version: 0.8.5\n  \tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\nGPU0\t X \tNV18\tNV18\n")
        assert [device.to_json() for device in found.accelerators or ()] == [{}, {}, {}]

    def test_conda_rows(self):
        found = read(
            "[conda] numpy                     1.26.4                   pypi_0    pypi\n"
            "[conda] pytorch                   2.1.0           py3.10_cuda11.8_cudnn8.7.0_0    pytorch\n"
        )
        numpy, torch = found.distributions or ()
        assert (numpy.name, numpy.version, numpy.source) == ("numpy", "1.26.4", None)
        assert (torch.name, torch.version, dict(torch.extra)) == ("torch", "2.1.0", {"cuda": "11.8"})
        assert torch.source is not None
        assert torch.source.to_json() == {
            "kind": "conda", "name": "pytorch", "build": "py3.10_cuda11.8_cudnn8.7.0_0", "channel": "pytorch",
        }  # fmt: skip


class TestEnvCommands:
    def test_trl(self):
        found = read(
            "- Platform: Linux-5.15.0-1048-aws-x86_64-with-glibc2.31\n- Python version: 3.12.2\n- TRL version: 0.16.0.dev0+5975879\n"
            "- PyTorch version: 2.5.1\n- CUDA device(s): NVIDIA H100 80GB HBM3, NVIDIA H100 80GB HBM3\n"
            "- Accelerate config: not found\n- HF Hub version: 0.28.1\n- DeepSpeed version: not installed\n"
            "- Liger-Kernel version: 0.5.2\n- vLLM version: not installed\n"
        )
        assert versions(found) == {
            "trl": "0.16.0.dev0+5975879", "torch": "2.5.1", "huggingface-hub": "0.28.1", "liger-kernel": "0.5.2",
        }  # fmt: skip
        assert (found.python, found.os, found.glibc) == ("3.12.2", "linux", "2.31")
        assert len(found.accelerators or ()) == 2
        assert found.workload is None

    def test_transformers_with_placeholders(self):
        found, notes = read_pasted(
            "- `transformers` version: 4.51.3\n- Huggingface_hub version: 0.31.1\n- Safetensors version: not installed\n"
            "- PyTorch version (GPU?): 2.6.0+cu124 (True)\n- Tensorflow version (GPU?): not installed (NA)\n"
            "- Flax version (CPU?/GPU?/TPU?): 0.8.2 (CPU)\n- Using GPU in script?: <fill in>\n"
            "- Using distributed or parallel set-up in script?: <fill in>\n- GPU type: NVIDIA L4\n",
            "x",
        )
        assert versions(found) == {
            "transformers": "4.51.3", "huggingface-hub": "0.31.1", "torch": "2.6.0+cu124", "flax": "0.8.2",
        }  # fmt: skip
        assert [device.name for device in found.accelerators or ()] == ["NVIDIA L4"]
        assert [note for note in notes if "distributed" in note] == []
        assert [device.extra for device in found.accelerators or ()] == [{"more": True}]
        assert any("at least 1 × NVIDIA L4" in note for note in notes)

    def test_distributed_is_only_a_hint(self):
        found, notes = read_pasted("- `trl` version: 0.17.0\n- Using distributed or parallel set-up in script?: yes\n", "x")
        assert found.workload is None
        assert any("distributed" in note for note in notes)

    def test_glibc_of_an_old_python_is_not_believed(self):
        text = "- Platform: Linux-5.4.0-x86_64-with-glibc2.10\n- Python version: 3.8.18\n"
        assert read(text).glibc is None
        assert read(text.replace("3.8.18", "3.9.1")).glibc == "2.10"

    def test_llamafactory_counts(self):
        found = read(
            "- `llamafactory` version: 0.9.3.dev0\n- PyTorch version: 2.3.0+cu121 (GPU)\n- GPU type: NVIDIA A100-SXM4-80GB\n"
            "- GPU number: 8\n- GPU memory: 79.25GB\n"
        )
        assert [(device.name, device.memory_mib) for device in found.accelerators or ()] == [
            ("NVIDIA A100-SXM4-80GB", 81152)
        ] * 8
        assert versions(found) == {"llamafactory": "0.9.3.dev0", "torch": "2.3.0+cu121"}

    def test_diffusers_lists_its_accelerators_in_lines(self):
        found = read(
            "- 🤗 Diffusers version: 0.33.1\n- Running on Google Colab?: No\n- Bitsandbytes version: NA\n"
            "- Accelerator: NVIDIA GeForce RTX 4090, 24564 MiB\nNVIDIA GeForce RTX 3090, 24576 MiB\n- Using GPU in script?: yes\n"
        )
        assert versions(found) == {"diffusers": "0.33.1"}
        assert [(device.name, device.memory_mib) for device in found.accelerators or ()] == [
            ("NVIDIA GeForce RTX 4090", 24564), ("NVIDIA GeForce RTX 3090", 24576),
        ]  # fmt: skip

    def test_a_report_in_which_cuda_is_torchs(self):
        found = read("- Is PyTorch built with CUDA support?: True\n- Cuda version: 12.6\n- PyTorch version: 2.7.1\n")
        assert found.cuda_toolkit is None
        assert found.distributions is not None
        assert dict(found.distributions[0].extra) == {"cuda": "12.6"}


class TestOthers:
    def test_sglang(self):
        found = read(
            "Python: 3.11.5 (main, Sep 1 2023, 13:54:46) [GCC 11.2.0]\nCUDA available: True\nGPU 0,1: NVIDIA A40\n"
            "GPU 0,1 Compute Capability: 8.6\nCUDA_HOME: /usr/local/cuda\n"
            "NVCC: Cuda compilation tools, release 12.1, V12.1.66\nCUDA Driver Version: 535.104.12\nPyTorch: 2.4.0+cu121\n"
            "sglang: 0.4.0.post2\nsgl_kernel: 0.0.5\nflashinfer: Module Not Found\nzmq: 26.2.0\n"
        )
        assert versions(found) == {"torch": "2.4.0+cu121", "sglang": "0.4.0.post2", "sgl-kernel": "0.0.5", "pyzmq": "26.2.0"}
        assert (found.python, found.cuda_toolkit, found.driver) == ("3.11.5", "12.1", "535.104.12")
        assert [(each.name, each.compute_capability) for each in found.accelerators or ()] == [("NVIDIA A40", "8.6")] * 2

    def test_ds_report(self):
        found = read(
            "DeepSpeed general environment info:\n"
            "torch install path ............... ['/opt/lib/python3.10/site-packages/torch']\n"
            "torch version .................... 2.1.2\ndeepspeed info ................... 0.12.6, unknown, unknown\n"
            "torch cuda version ............... 12.1\ntorch hip version ................ None\n"
            "nvcc version ..................... 12.2\ndeepspeed wheel compiled w. ...... torch 2.1, cuda 12.1\n"
        )
        assert versions(found) == {"torch": "2.1.2", "deepspeed": "0.12.6"}
        assert found.cuda_toolkit == "12.2"
        torch = next(each for each in found.distributions or () if each.name == "torch")
        assert dict(torch.extra) == {"cuda": "12.1"}

    def test_the_banners_cuda_is_the_capability(self):
        found = read(
            "==((====))==  Unsloth 2025.3.14: Fast Llama patching. Transformers: 4.49.0. vLLM: 0.7.3.\n"
            "   \\\\   /|    NVIDIA GeForce RTX 4090. Num GPUs = 2. Max memory: 23.621 GB. Platform: Linux.\n"
            "O^O/ \\_/ \\    Torch: 2.5.1+cu124. CUDA: 8.9. CUDA Toolkit: 12.4. Triton: 3.1.0\n"
            "\\        /    Bfloat16 = TRUE. FA [Xformers = 0.0.28.post3. FA2 = False]\n"
        )
        assert versions(found) == {
            "unsloth": "2025.3.14", "transformers": "4.49.0", "vllm": "0.7.3", "torch": "2.5.1+cu124", "triton": "3.1.0",
            "xformers": "0.0.28.post3",
        }  # fmt: skip
        assert found.cuda_toolkit is None
        assert found.os == "linux"
        assert [(each.compute_capability, each.memory_mib) for each in found.accelerators or ()] == [("8.9", 24188)] * 2

    def test_the_banner_of_2024(self):
        found = read(
            "==((====))==  Unsloth: Fast Llama patching release 2024.4\n"
            "   \\\\   /|    GPU: Tesla T4. Max memory: 14.748 GB. Platform = Linux.\n"
            "O^O/ \\_/ \\    Pytorch: 2.2.1+cu121. CUDA = 7.5. CUDA Toolkit = 12.1.\n"
        )
        assert versions(found) == {"unsloth": "2024.4", "torch": "2.2.1+cu121"}
        assert [(each.name, each.compute_capability) for each in found.accelerators or ()] == [("Tesla T4", "7.5")]

    def test_the_banner_without_its_drawing(self):
        found = read(
            "Unsloth 2024.11.7: Fast Llama patching. Transformers = 4.46.2.\n"
            "GPU: NVIDIA A100 80GB PCIe. Max memory: 79.151 GB. Platform = Linux. Pytorch: 2.5.1+cu124. CUDA = 8.0.\n"
        )
        assert versions(found) == {"unsloth": "2024.11.7", "transformers": "4.46.2", "torch": "2.5.1+cu124"}
        assert [(each.name, each.compute_capability) for each in found.accelerators or ()] == [("NVIDIA A100 80GB PCIe", "8.0")]

    def test_a_gpu_that_torch_has_no_code_for(self):
        found = read("NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current installation.\n")
        assert [(each.name, each.compute_capability) for each in found.accelerators or ()] == [
            ("NVIDIA GeForce RTX 5090", "12.0")
        ]


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "Please support the RTX 4090, training with batch 4 fails.", "- OS: [e.g. Ubuntu]\n- Python version: N/A\n"],
)
def test_nothing_can_be_told(text: str):
    with pytest.raises(InputError) as problem:
        read_pasted(text, "issue.md")
    assert str(problem.value).startswith("issue.md: no environment found")
    assert "collect_env" in str(problem.value)
