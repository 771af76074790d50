"""What people write themselves, several places that disagree, and the dress a pasted text wears."""

from __future__ import annotations

from compat.model import Environment
from compat.reports.pasted import read_pasted


def read(text: str) -> Environment:
    return read_pasted(text, "x")[0]


def versions(text: str) -> dict[str, str | None]:
    return {each.name: each.version or each.specifier for each in read(text).distributions or ()}


class TestByHand:
    def test_one_line(self):
        found = read("torch 2.6.0, transformers 4.51.3 and vllm 0.8.4 on 2x A100 80GB\n")
        assert {each.name: each.version for each in found.distributions or ()} == {
            "torch": "2.6.0", "transformers": "4.51.3", "vllm": "0.8.4",
        }  # fmt: skip
        assert len(found.accelerators or ()) == 2

    def test_forms(self):
        text = "- transformers: 4.51.3\n* torch = 2.6\n**PEFT**: `0.15.2`\n - deepspeed 0.16.2\n3. accelerate version 1.6.0\ntrl (version 0.17.0)\n"
        assert versions(text) == {
            "transformers": "4.51.3", "torch": "2.6", "peft": "0.15.2", "deepspeed": "0.16.2", "accelerate": "1.6.0",
            "trl": "0.17.0",
        }  # fmt: skip

    def test_a_name_and_its_version_below(self):
        assert versions("torch\n2.1.1\naccelerate\n0.24.1\n") == {"torch": "2.1.1", "accelerate": "0.24.1"}

    def test_ranges(self):
        assert versions("transformers: 4.51.x\ntrl: >=0.17, <0.18\n") == {"transformers": "==4.51.*", "trl": ">=0.17,<0.18"}

    def test_tables(self):
        text = "| Package | Version |\n|---|---|\n| torch | 2.6.0+cu124 |\n| vllm | 0.8.4 |\n| trl | 0.15.0 | 0.16.0 |\n| GPU | 2 x L40S |\n"
        assert versions(text) == {"torch": "2.6.0+cu124", "vllm": "0.8.4"}
        assert len(read(text).accelerators or ()) == 2

    def test_cuda_and_driver(self):
        found = read("CUDA 12.4\nnvidia driver 550.54.15\nPython 3.10\n")
        assert (found.cuda_toolkit, found.driver, found.python) == ("12.4", "550.54.15", "3.10")
        assert read("CUDA 12.4\n\nCuda compilation tools, release 12.1, V12.1.66\n").cuda_toolkit == "12.1"
        assert read("torch 2.6.0\nCUDA: 12\n").cuda_toolkit is None

    def test_a_sentence_that_lists_the_machine(self):
        found = read("I have ubuntu-22.04, cuda==12.1, nvidia driver == 530, gpu==V100\n")
        assert (found.cuda_toolkit, found.driver, found.os) == ("12.1", "530", "linux")
        assert [each.name for each in found.accelerators or ()] == ["V100"]

    def test_the_version_of_a_package_in_words(self):
        assert versions("my vllm version is the latest (0.10.0).\n") == {"vllm": "0.10.0"}
        assert versions("I am running  llama-cpp-python  Version: 0.3.16\n") == {"llama-cpp-python": "0.3.16"}
        assert versions("torch 2.6.0\n\nmy vllm version is not the latest (0.10.0).\n") == {"torch": "2.6.0"}

    def test_a_gpu_before_its_driver(self):
        found = read("I have an ARM CPU and a NVIDIA GH200 Driver Version: 550.90.07 CUDA Version: 12.4.\n\ntorch==2.5.1\n")
        assert [each.name for each in found.accelerators or ()] == ["NVIDIA GH200"]
        assert found.driver == "550.90.07"

    def test_the_release_before_the_name(self):
        assert versions("# Version 2.3.6 of flash-attn breaks axolotl\n\ntorch 2.0.1\n") == {
            "flash-attn": "2.3.6",
            "torch": "2.0.1",
        }
        assert versions("torch 2.0.1\n\nIt needs version 2.3.6 of flash-attn.\n") == {"torch": "2.0.1"}

    def test_wheels_that_were_downloaded(self):
        found = read("torch==2.4.1\nUsing cached torch-2.4.1-cp311-cp311-win_amd64.whl.metadata (27 kB)\n")
        assert (found.python, found.os) == ("3.11", "windows")
        refused = read(
            "torch==2.4.1\nERROR: triton-2.1.0-cp310-cp310-win_amd64.whl is not a supported wheel on this platform.\n"
        )
        assert (refused.python, refused.os) == (None, None)

    def test_a_list_behind_a_label(self):
        found = read("**Env**: Google Colab T4, unsloth 2025.2.9, trl latest\n")
        assert versions("Environment: unsloth 2025.7.3, vllm 0.9.2\n") == {"unsloth": "2025.7.3", "vllm": "0.9.2"}
        assert [(each.name, each.version) for each in found.distributions or ()] == [("unsloth", "2025.2.9")]
        assert [each.name for each in found.accelerators or ()] == ["T4"]
        glued = read("My configuration is NVIDIA 4090+Python 3.10+Pytorch2.2.0+cu121  CUDA Version: 12.2\n")
        assert (glued.python, glued.cuda_toolkit) == ("3.10", "12.2")
        assert versions("My configuration is NVIDIA 4090+Python 3.10+Pytorch2.2.0+cu121\n") == {"torch": "2.2.0+cu121"}

    def test_what_a_sentence_says_is_installed(self):
        found = read("After upgrading to vllm 0.8.3 my server crashes on my RTX 3060 with CUDA 12.1, driver 530.30\n")
        assert [(each.name, each.version) for each in found.distributions or ()] == [("vllm", "0.8.3")]
        assert [each.name for each in found.accelerators or ()] == ["RTX 3060"]
        assert (found.cuda_toolkit, found.driver) == ("12.1", "530.30")
        assert versions("I just upgraded to torchao 0.8 from 0.7\n") == {"torchao": "0.8"}
        assert versions("I upgraded transformers from 4.45 to 4.46.1 and it stopped working\n") == {"transformers": "4.46.1"}
        assert versions("I am using the latest version of trl (0.20.0) here\n") == {"trl": "0.20.0"}
        assert versions("It fails on the latest version of **trl (v0.20.0)**, always\n") == {"trl": "0.20.0"}
        assert versions("I run peft (0.15.2) with transformers (v4.52.4) here\n") == {
            "peft": "0.15.2",
            "transformers": "4.52.4",
        }
        assert read("When I try to run vllm 0.5.0 on my RX 7900 XTX it hangs\n").accelerators is not None
        assert versions("When I upgrade to DeepSpeed 0.14.3, training does not progress\n") == {"deepspeed": "0.14.3"}
        assert versions("This was spotted when trl moved from 0.14.x to 0.18.0 and transformers from 4.51.3 to 4.52.4.\n") == {
            "trl": "0.18.0",
            "transformers": "4.52.4",
        }
        assert versions("when using the latest version of HF dataset (4.0.0), scripts are gone\n") == {"datasets": "4.0.0"}
        glued = "the software environment is python3.10+cuda11.6+torch2.0.0+ transformers4.28.0, I run the fine tuning code:\n"
        assert versions(f"My GPU is a V100, {glued}") == {"torch": "2.0.0", "transformers": "4.28.0"}

    def test_what_worked_is_another_environment(self):
        broken = "Versions:\n\nsentence-transformers-3.2.1\ntransformers-4.46.0\n"
        wanted = {"sentence-transformers": "3.2.1", "transformers": "4.46.0"}
        working = "```\nVersions which worked:\n\nsentence-transformers-3.0.1\ntransformers-4.44\n```\n"
        assert versions(f"```\n{broken}```\nIt worked earlier\n\n{working}") == wanted
        assert versions(f"{working}\n{broken}") == wanted
        assert versions("The list that works:\ntorch 2.4.0\n\npeft 0.12.0\n") == {"peft": "0.12.0"}
        workaround = "**Workaround**\n` pip install trl==0.12.0 `\n\nworks.\n"
        assert versions(f"peft 0.12.0\n\n{workaround}\n**Device Info**\n - torch 2.5.1\n") == {
            "peft": "0.12.0",
            "torch": "2.5.1",
        }
        assert versions("### Expected behavior\n\ntorch 2.4.0\n\n### Environment\n\n- trl: 0.13.0\n") == {"trl": "0.13.0"}
        assert versions("A list that does not work:\ntorch 2.4.0\n") == {"torch": "2.4.0"}

    def test_what_a_sentence_compares_is_not_installed(self):
        for text in (
            "You need to upgrade to vllm 0.8.3 on this machine", "It works after upgrading to vllm 0.8.3 on the node",
            "Should I switch to vllm 0.8.3 for the node?", "The problem goes away if you upgrade to vllm 0.8.3",
            "It doesn't happen on the A100 with vllm 0.8.3", "vllm 0.8.3 requires driver 550 on every node",
            "Please release a wheel for vllm 0.8.3 soon", "Please upgrade vllm to 0.8.3 first", "Try upgrading to vllm 0.8.3",
            "I suggest upgrading vllm to 0.8.3", "The docs say upgrade to vllm 0.8.3", "The API changed from vllm 0.8.2 to 0.8.3 silently",
            "The call changed in vllm from 0.8.2 to 0.8.3",
        ):  # fmt: skip
            assert versions(f"torch 2.6.0\n\n{text}\n") == {"torch": "2.6.0"}, text
            assert read(f"torch 2.6.0\n\n{text}\n").accelerators is None, text
        found = read("torch 2.6.0\n\nIt crashes on the A100 here.\nThe same happens on a V100 there.\n")
        assert found.accelerators is None

    def test_the_release_that_fails_is_installed(self):
        assert versions("After the update of peft to 0.18.0, importing it fails.\n") == {"peft": "0.18.0"}
        assert versions("transformers 4.57.1 works, 5.0.0 does not.\n") == {"transformers": "5.0.0"}

    def test_names_of_distributions_in_other_words(self):
        assert versions("Setuptools 82.0.1, sklearn 1.5.2\n") == {"setuptools": "82.0.1", "scikit-learn": "1.5.2"}

    def test_sentences_and_settings_are_no_facts(self):
        text = "torch 2.6.0\n\nIt worked with transformers 4.40.0 before I changed the seed to 3.5 again.\nray: 2\nkernels: 3\n"
        assert versions(text) == {"torch": "2.6.0"}
        assert versions("torch 2.6.0\ntransformers: 4.49 -> 4.51\nvllm: 0.7 or 0.8\n") == {"torch": "2.6.0"}

    def test_a_form(self):
        text = "### Python Version\n\n3.11\n\n### GPU\n\n2x RTX 4090\n\n**GPU count and types** [e.g. two machines]\n"
        assert read(text).python == "3.11"
        assert len(read(text).accelerators or ()) == 2

    def test_logs_name_versions(self):
        assert versions("Successfully installed torch-2.1.0 trl-0.8.1\n>>> vllm.__version__\n'0.8.4'\n") == {
            "torch": "2.1.0", "trl": "0.8.1", "vllm": "0.8.4",
        }  # fmt: skip


class TestDisagreement:
    def test_the_local_label_belongs_to_the_same_release(self):
        assert [each.version for each in read("[pip3] torch==2.6.0\nPyTorch version: 2.6.0+cu124\n").distributions or ()] == [
            "2.6.0+cu124"
        ]

    def test_two_releases_are_alternatives(self):
        found, notes = read_pasted("PyTorch version: 2.6.0+cu124\n[pip3] torch==2.5.1\n", "x")
        assert [each.version for each in found.distributions or ()] == ["2.6.0+cu124", "2.5.1"]
        assert any("torch is given as 2.6.0+cu124 and 2.5.1" in note for note in notes)

    def test_two_builds_of_one_release_are_alternatives(self):
        found = read("PyTorch version: 2.6.0+cu124\n[pip3] torch==2.6.0+cpu\n")
        assert [each.version for each in found.distributions or ()] == ["2.6.0+cu124", "2.6.0+cpu"]

    def test_a_history_is_no_choice(self):
        text = "".join(f"[pip3] torch==2.{minor}.0\n" for minor in range(9))
        found, notes = read_pasted(text, "x")
        assert [each.version for each in found.distributions or ()] == [None]
        assert any("9 versions" in note for note in notes)

    def test_what_a_person_wrote_gives_way(self):
        found, notes = read_pasted(
            "- `trl` version: 0.17.0\n\ntrl: 0.16.0\ntransformers 4.5\n- `transformers` version: 4.5.1\n", "x"
        )
        assert [(each.name, each.version) for each in found.distributions or ()] == [
            ("trl", "0.17.0"),
            ("transformers", "4.5.1"),
        ]
        assert len(notes) == 1

    def test_other_facts_stay_unknown(self):
        found, notes = read_pasted("- Python version: 3.10.12\n- Python version: 3.11.4\ntorch 2.6.0\n", "x")
        assert found.python is None
        assert notes == ("two answers for the Python, neither is used: 3.10.12 and 3.11.4",)
        assert read("- Python version: 3.10\n- Python version: 3.10.12\n").python == "3.10.12"
        assert read("- Python version: 3.1\n- Python version: 3.10\ntorch 2.6.0\n").python is None


class TestDress:
    TEXT = "- `trl` version: 0.17.0\n- Python version: 3.11.9\n- GPU type: NVIDIA L4\n"

    def expect(self, text: str) -> None:
        found = read(text)
        assert [(each.name, each.version) for each in found.distributions or ()] == [("trl", "0.17.0")]
        assert found.python == "3.11.9"
        assert [each.name for each in found.accelerators or ()] == ["NVIDIA L4"]

    def test_line_ends(self):
        self.expect(self.TEXT.replace("\n", "\r\n"))
        self.expect(self.TEXT.replace("\n", "\r"))

    def test_quotes_fences_details(self):
        self.expect("> " + self.TEXT.replace("\n", "\n> "))
        self.expect("> > " + self.TEXT.replace("\n", "\n> > "))
        self.expect(f"<details>\n<summary>env</summary>\n\n```text\n{self.TEXT}```\n</details>\n")
        self.expect("```" + self.TEXT[2:] + "```")

    def test_colours_blanks_entities(self):
        self.expect("".join(f"\x1b[32m{line}\x1b[0m\n" for line in self.TEXT.splitlines()))
        self.expect(self.TEXT.replace(" ", "\u00a0"))
        self.expect(self.TEXT.replace("`", "&#96;").replace(" version", "&nbsp;version"))
        self.expect("<pre>" + self.TEXT.replace("\n", "<br>") + "</pre>")
        self.expect(self.TEXT.replace(":", "：").replace("- ", "\ufeff- "))

    def test_tracebacks_and_logs_around(self):
        self.expect(
            'INFO 02-18 21:25:53 [__init__.py:190] Automatically detected platform cuda.\nTraceback (most recent call last):\n  File "x.py", line 14, in <module>\n'
            f"ValueError: 3.5\n\n{self.TEXT}\n100%|####| 3/3 [00:01<00:00, 1.2it/s]\n"
        )

    def test_a_prompt_is_no_quote(self):
        assert versions(">>> import torch\n>>> torch.__version__\n'2.6.0+cpu'\n") == {"torch": "2.6.0+cpu"}

    def test_only_the_beginning_of_a_huge_text(self):
        found, notes = read_pasted("torch 2.6.0\n" + "x\n" * 60_000 + "vllm 0.8.4\n", "x")
        assert [each.name for each in found.distributions or ()] == ["torch"]
        assert any(note.startswith("only the first") for note in notes)


def test_a_number_of_gpus_is_no_part_of_their_name() -> None:
    environment = read("GPU: 8x 3090 …\ntorch 2.4.0\n")
    assert [each.name for each in environment.accelerators or ()] == ["3090"] * 8
    assert read("GPU 0: 8x 3090 …\ntorch 2.4.0\n").accelerators is None
