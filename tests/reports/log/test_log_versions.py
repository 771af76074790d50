"""Versions that a log names itself."""

from __future__ import annotations

from compat.reports.log.traceback import versions_in
from tests.reports.log.samples import VLLM


class TestVersions:
    def test_lists(self):
        assert versions_in(
            "Package    Version      Editable project location\n---------- ------------ ---\ntorch      2.5.1+cu124\nHF_Hub.x 0.26.0 /x\n\nother 1.0\n"
        ) == {
            "torch": "2.5.1+cu124",
            "hf-hub-x": "0.26.0",
        }
        assert versions_in(
            "accelerate==1.6.0\nflash_attn==2.7.4.post1\ntorch==2.6.0+cu124 ; python_version >= '3.9'\n-e file:///app\n"
        ) == {
            "accelerate": "1.6.0",
            "flash-attn": "2.7.4.post1",
            "torch": "2.6.0+cu124",
        }
        conda = (
            "# Name                    Version                   Build  Channel\n"
            "numpy                     1.26.4          py310h5f9d8c6_0  \n"
            "torch                     2.5.1                    pypi_0    pypi\n"
        )
        assert versions_in(conda) == {"torch": "2.5.1"}
        assert versions_in("[pip3] numpy==1.26.4\n[conda] torch 2.5.1 pypi_0 pypi\n") == {"numpy": "1.26.4", "torch": "2.5.1"}
        assert versions_in("Name: trl\nVersion: 0.15.2\nSummary: x\n") == {"trl": "0.15.2"}

    def test_reports(self):
        text = (
            "- `transformers` version: 4.46.2\n"
            "- Platform: Linux-5.15.0-x86_64-with-glibc2.35\n"
            "- Python version: 3.11.9\n"
            "- Huggingface_hub version: 0.26.2\n"
            "- PyTorch version (GPU?): 2.5.1+cu124 (True)\n"
            "- Liger-Kernel version: not installed\n"
            "* **TRL version**: 0.15.2\n"
            "PyTorch version: 2.5.1+cu124\n"
            "CUDA runtime version: 12.4.131\n"
            "GCC version: (Ubuntu 11.4.0) 11.4.0\n"
        )
        assert versions_in(text) == {
            "huggingface-hub": "0.26.2",
            "torch": "2.5.1+cu124",
            "transformers": "4.46.2",
            "trl": "0.15.2",
        }

    def test_lines_that_are_a_name_and_a_version(self):
        text = (
            "python: 3.11.13\npeft: 0.15.2.dev0\n- **trl**: `0.19.1`\naccelerate = 1.9.0\n"
            "torch                             2.9.0+cu129\nvllm\t0.12.0\nloss: 0.25\nlr: 1.5\n"
            "transformers: 4.53.2 or newer\ntokenizers 0.21\ndatasets: 12\n"
        )
        assert versions_in(text) == {
            "accelerate": "1.9.0",
            "peft": "0.15.2.dev0",
            "torch": "2.9.0+cu129",
            "trl": "0.19.1",
            "vllm": "0.12.0",
        }

    def test_banners(self):
        text = (
            "==((====))==  Unsloth 2025.2.15: Fast Mistral patching. Transformers: 4.49.0. vLLM: 0.7.3.\n"
            "   \\\\   /|    GPU: Tesla T4. Num GPUs = 1. Max memory: 14.741 GB. Platform: Linux.\n"
            "O^O/ \\_/ \\    Torch: 2.5.1+cu124. CUDA: 8.0. CUDA Toolkit: 12.4. Triton: 3.1.0\n"
            "\\        /    Bfloat16 = FALSE. FA [Xformers = 0.0.29.post1. FA2 = False]\n"
        )
        expected = {
            "torch": "2.5.1+cu124",
            "transformers": "4.49.0",
            "triton": "3.1.0",
            "unsloth": "2025.2.15",
            "vllm": "0.7.3",
        }
        assert versions_in(text) == {**expected, "xformers": "0.0.29.post1"}
        older = "==((====))==  Unsloth 2024.8: Fast Gemma2 patching. Transformers = 4.43.3.\nO^O/ \\_/ \\    Pytorch: 2.3.1+cu121. CUDA = 7.5.\n"
        assert versions_in(older) == {"torch": "2.3.1+cu121", "transformers": "4.43.3", "unsloth": "2024.8"}

    def test_programs_speak_of_themselves(self):
        assert versions_in("INFO 02-05 llm_engine.py:234] Initializing a V0 LLM engine (v0.7.1) with config: x\n") == {
            "vllm": "0.7.1"
        }
        assert versions_in("Initializing an LLM engine (v0.6.3.post1) with config: x") == {"vllm": "0.6.3.post1"}
        assert versions_in(VLLM) == {"vllm": "0.10.1"}
        assert versions_in(
            "[2025-02-13 10:00:00,1] [INFO] [logging.py:128:log_dist] [Rank -1] DeepSpeed info: version=0.16.3, git-hash=u"
        ) == {"deepspeed": "0.16.3"}
        assert versions_in(">>> torch.__version__\n'2.5.1+cu124'\n") == {"torch": "2.5.1+cu124"}
        assert versions_in("```python\nprint(trl.__version__)\n0.12.0\n```\n") == {"trl": "0.12.0"}
        assert versions_in("torch version .................... 2.5.1+cu124") == {"torch": "2.5.1+cu124"}
        assert versions_in("    PyTorch 2.1.2+cu121 with CUDA 1201 (you have 2.1.2+cpu)") == {"torch": "2.1.2+cpu"}

    def test_programs_judge_a_release(self):
        for text, versions in (
            (
                "Skipping import of cpp extensions due to incompatible torch version 2.7.1+cu128 for torchao version 0.15.0 Please",
                {"torch": "2.7.1+cu128", "torchao": "0.15.0"},
            ),
            ("using untested triton version (3.1.0), only 1.0.0 is known to be compatible", {"triton": "3.1.0"}),
            (
                "transformers version 5.0.0 is incompatible with nvidia-modelopt and may cause issues.",
                {"transformers": "5.0.0"},
            ),
            ("Detected accelerate version 1.9.0. Versions between 1.5.1 and 1.10.0 may", {"accelerate": "1.9.0"}),
            ("[+] bitsandbytes version 0.35.0 installed.", {"bitsandbytes": "0.35.0"}),
            ("      torch.__version__  = 2.1.2+cu121", {"torch": "2.1.2+cu121"}),
            ("Support for torch version 2.3 is dropped; install the wheel for torch version 2.5", {}),
            ("This requires torch version 2.5 for torchao version 0.9", {}),
        ):
            assert versions_in(text) == versions, text

    def test_installers(self):
        text = "Successfully installed torch-2.4.0 flash-attn-2.7.0.post2\nSuccessfully installed torch-2.5.1\n"
        assert versions_in(text) == {"torch": "2.5.1", "flash-attn": "2.7.0.post2"}
        assert versions_in(" - torch==2.4.0\n + torch==2.5.1\n ~ trl==0.15.2\n")["torch"] == "2.5.1"
        assert versions_in("Requirement already satisfied: torch>=2.0 in /x/site-packages (from trl) (2.5.1)") == {
            "torch": "2.5.1"
        }

    def test_what_is_not_certain_is_left_out(self):
        assert versions_in("trl requires torch==2.5.1, but you have torch 2.6.0 which is incompatible.") == {}
        assert versions_in("try pip install transformers==4.46.2 instead, it has transformers==4.46.2") == {}
        assert versions_in("torch==2.5.1\n\nand on the other machine\n\ntorch==2.6.0\n") == {}
        assert versions_in("torch==not.a.version\nPyTorch version: unknown\nx version: 1.2.3\n") == {}
        assert versions_in("") == {}

    def test_the_better_source_wins(self):
        assert versions_in("torch==2.6.0\nPyTorch version: 2.5.1\n") == {"torch": "2.5.1"}
        assert versions_in("PyTorch version: 2.5.1\ntorch==2.5.1+cu124\n") == {"torch": "2.5.1+cu124"}
