"""Requirements that an error states itself."""

from __future__ import annotations

import pytest

from compat.diagnosis.diagnose import diagnose
from compat.model import Distribution, Environment
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.compiled import open_matrix
from tests.diagnosis.test_symptoms import said

NORMAL = "is required for a normal functioning of this module, but found"


@pytest.mark.parametrize(
    ("error", "package", "version", "command"),
    [
        (f"ImportError: transformers>=4.41.2,<=4.45.0 {NORMAL} transformers==4.45.2.\nTo fix: pip install transformers>=4.41.2",
         "transformers", "4.45.2", 'pip install "transformers>=4.41.2,<=4.45.0"'),
        (f"ImportError: tokenizers>=0.11.1,!=0.11.3,<0.14 {NORMAL} tokenizers==0.19.1.",
         "tokenizers", "0.19.1", 'pip install "tokenizers>=0.11.1,!=0.11.3,<0.14"'),
        ("ValueError: The version of PEFT you are using is not compatible, please use a version that is greater than 0.5.0",
         "peft", None, 'pip install "peft>=0.5.0"'),
        ("ValueError: The version of PEFT you are using is not compatible, please use a version >= 0.18.0",
         "peft", None, 'pip install "peft>=0.18.0"'),
        ("ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=0.26.0`: Please run `pip install transformers[torch]`",
         "accelerate", None, 'pip install "accelerate>=0.26.0"'),
        ("ImportError: Using `bitsandbytes` 4-bit quantization requires Accelerate: `pip install 'accelerate>=0.26.0'`",
         "accelerate", None, 'pip install "accelerate>=0.26.0"'),
        ("ImportError: Loading GGUF Parameters requires `gguf` installed in your environment: `pip install 'gguf>=0.10.0'`",
         "gguf", None, 'pip install "gguf>=0.10.0"'),
        ("Exception: flashinfer_python with minimum required version 0.2.5 is not installed. Please uninstall the old version",
         "flashinfer-python", None, 'pip install "flashinfer-python>=0.2.5"'),
        ("Exception: flashinfer_python is installed with version 0.6.3, which is less than the minimum required version 0.6.4. Please",
         "flashinfer-python", "0.6.3", 'pip install "flashinfer-python>=0.6.4"'),
        ("ValueError: FSDP requires PyTorch >= 2.1.0", "torch", None, 'pip install "torch>=2.1.0"'),
        ("AssertionError: Paged attention required Flash Attention 2.5.7 or later",
         "flash-attn", None, 'pip install "flash-attn>=2.5.7"'),
        ("RuntimeError: This strategy requires PyTorch Lightning 2.1 or newer",
         "pytorch-lightning", None, 'pip install "pytorch-lightning>=2.1"'),
        ("ImportError: Using `bitsandbytes` 8-bit quantization requires the latest version of bitsandbytes: `pip install -U bitsandbytes`",
         "bitsandbytes", None, "pip install -U bitsandbytes"),
    ],
)  # fmt: skip
def test_what_is_asked_for(error: str, package: str, version: str | None, command: str) -> None:
    (finding,) = said(error + "\n")
    assert finding.rule == "symptom-stated-requirement"
    assert finding.packages == {package: version}
    assert finding.fixes[0].command == command
    assert finding.verdict == ("possible" if version is None else "hit")


def test_the_release_that_is_there() -> None:
    error = "ImportError: Using `low_cpu_mem_usage=True` requires Accelerate: `pip install 'accelerate>=0.26.0'`\n"
    old, new = (Environment(distributions=(Distribution("accelerate", version),)) for version in ("0.25.0", "1.0.1"))
    (finding,) = said(error, old)
    assert (finding.verdict, finding.title) == ("hit", "accelerate>=0.26.0 is required, but 0.25.0 is installed")
    (finding,) = said(error, new)  # another environment ran
    assert (finding.rule, finding.packages) == ("symptom-requirement-met", {"accelerate": "1.0.1"})


def test_a_release_that_a_message_calls_too_old() -> None:
    (finding,) = said("ImportError: torchao version 0.14.0+git8669213bf is too old, please install torchao nightly build")
    assert (finding.verdict, finding.title) == ("possible", "A package calls torchao 0.14.0+git8669213bf too old")
    assert [(fix.package, fix.spec) for fix in finding.fixes] == [("torchao", ">0.14.0"), (None, None)]
    assert said("RuntimeError: the driver 470.57 is too old") == []


def test_a_distribution_that_has_another_name_now() -> None:
    error = "Exception: flashinfer with minimum required version 0.1.6 is not installed. Please uninstall the old version\n"
    found = said(error, Environment(distributions=(Distribution("flashinfer-python", "0.2.0"),)))[0]
    assert (found.rule, found.packages) == ("symptom-renamed-distribution", {"flashinfer-python": "0.2.0", "flashinfer": None})


def test_a_requirement_without_a_name_is_of_the_one_package_with_the_release_found() -> None:
    error = "ImportError: Found version 0.15.0, but only versions above 0.16.0 are supported\n"
    one = Environment(distributions=(Distribution("torchao", "0.15.0+cu128"), Distribution("peft", "0.19.0")))
    two = Environment(distributions=(Distribution("torchao", "0.15.0"), Distribution("peft", "0.15.0")))
    (finding,) = said(error, one)
    assert (finding.verdict, finding.title) == ("hit", "torchao>=0.16.0 is required, but 0.15.0 is installed")
    assert said(error, two) == [], "either of them"
    assert said(error) == []


@pytest.mark.parametrize(
    "error",
    [
        "ValueError: FP8 requires Thing >= 2.0",
        "ValueError: this requires `a`",
        "ImportError: requires a version of mercury",
        f"E: x {NORMAL} y",
        "RuntimeError: You do not need to install flash-attn for this model",
        "ImportError: this module does not require the deepspeed library",
        "ImportError: install failed, do not pip install trl here",
        "ValueError: broken; please don't upgrade transformers",
    ],
)
def test_what_states_none(error: str) -> None:
    assert said(error + "\n") == []


def test_a_requirement_in_words_gives_way_to_what_the_message_is_about() -> None:
    error = "ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with cuda>=11.0\n"
    assert "symptom-stated-requirement" not in [each.rule for each in said(error)]


@pytest.mark.parametrize("more", ["", " You need to assign use_cpu if you want to train the model on CPU."])
def test_the_default_of_trl_without_a_gpu(more: str) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/venv/lib/python3.11/site-packages/trl/trainer/sft_config.py", line 262, '
        'in __post_init__\n    super().__post_init__()\n  File "/venv/lib/python3.11/site-packages/transformers/'
        'training_args.py", line 1747, in __post_init__\n    raise ValueError(error_message)\n'
        f"ValueError: Your setup doesn't support bf16/gpu.{more}\n"
    )
    errors = parse_log(text)
    named = diagnose(text, errors, decisive(errors), Environment(), open_matrix())
    assert [each.rule for each in named] == ["trl-bf16-by-default-without-gpu"]


def test_a_requirement_that_is_met_means_that_the_process_has_not_seen_the_release() -> None:
    text = (
        "ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=0.20.1`: Please run `pip install accelerate -U`"
    )
    (finding,) = said(text, Environment(distributions=(Distribution("accelerate", "0.31.0"),)))
    assert (finding.rule, finding.verdict) == ("symptom-requirement-met", "possible")
    assert (
        said(text, Environment(distributions=(Distribution("accelerate", "0.20.0"),)))[0].rule == "symptom-stated-requirement"
    )
