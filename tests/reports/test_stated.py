"""What messages of packages, installers and resolvers say in their own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.model import Accelerator
from compat.reports.stated import stated_in, wanted_in
from tests.growth import assert_linear


@pytest.mark.parametrize(
    ("text", "name", "specifier", "found", "by"),
    [
        ("vllm 0.5.1 requires torch==2.3.0, but you have torch 2.4.0 which is incompatible.", "torch", "==2.3.0", "2.4.0", "vllm 0.5.1"),
        ("flagembedding 1.3.2 has requirement transformers==4.44.2, but you have transformers 4.46.3.", "transformers", "==4.44.2", "4.46.3", "flagembedding 1.3.2"),
        ("trl 0.4.1 has requirement torch>=1.4.0, but you'll have torch 1.1 which is incompatible.", "torch", ">=1.4.0", "1.1", "trl 0.4.1"),
        ("Supported flash-attn versions are >= 2.1.1, <= 2.8.3. Found flash-attn 2.8.4+rocm.", "flash-attn", ">=2.1.1,<=2.8.3", "2.8.4+rocm", None),
        ("Supported versions of torch are: >=2.1,<2.3", "torch", ">=2.1,<2.3", None, None),
        ("trl 0.12.0 requires transformers, which is not installed.", "transformers", "", None, "trl 0.12.0"),
        ("vllm 0.5.1 requires lm-format-enforcer==0.10.1, which is not installed.", "lm-format-enforcer", "==0.10.1", None, "vllm 0.5.1"),
        ("Because vllm==0.5.1 depends on torch==2.3.0 and you require torch==2.4.0, we can conclude", "torch", "==2.3.0", None, "vllm 0.5.1"),
        ("Because xformers (0.0.27) depends on torch (2.3.1)", "torch", "==2.3.1", None, "xformers 0.0.27"),
        ("Because xformers (0.0.27) depends on torch (>=2.3,<2.4)", "torch", ">=2.3,<2.4", None, "xformers 0.0.27"),
        ("    torchvision 0.18.1 depends on torch==2.3.1", "torch", "==2.3.1", None, "torchvision 0.18.1"),
        ("ERROR: Package 'vllm' requires a different Python: 3.8.10 not in '>=3.9'", "python", ">=3.9", "3.8.10", "vllm"),
        ("Because the current Python version (3.8.10) does not satisfy Python>=3.9 and", "python", ">=3.9", "3.8.10", None),
        ("tokenizers>=0.21,<0.22 is required for a normal functioning of this module, but found tokenizers==0.15.2.", "tokenizers", ">=0.21,<0.22", "0.15.2", None),
        ("pyarrow requires NumPy 2.0 or newer, found 1.26.4", "numpy", ">=2.0", "1.26.4", "pyarrow"),
        ("apply_chat_template requires jinja2>=3.1.0 to be installed. Your version is 3.0.3.", "jinja2", ">=3.1.0", "3.0.3", None),
        ("Pandas requires version '2.8.7' or newer of 'numexpr' (version '2.8.4' currently installed).", "numexpr", ">=2.8.7", "2.8.4", "pandas"),
        ("Numba needs NumPy 2.2 or less. Got NumPy 2.3.", "numpy", "<2.3", "2.3", "numba"),
        ("Numba needs NumPy 2.0 or less", "numpy", "<2.1", None, "numba"),
        ("a-package requires transformers >= 4.52.0, got 4.48.2.", "transformers", ">=4.52.0", "4.48.2", "a-package"),
        ("RuntimeError: xformers is not new enough version, cannot patch", "xformers", "", None, None),
        ("xformers 0.0.20 is not new enough", "xformers", ">0.0.20", "0.0.20", None),
        ("and vllm-flash-attn>=2.6.1 depends on torch==2.4.0, we can", "torch", "==2.4.0", None, "vllm-flash-attn"),
        ("Found an incompatible version of torchao. Found version 0.10.0, but only versions above 0.16.0 are supported", "torchao", ">=0.16.0", "0.10.0", None),
        ("Please upgrade to torch >= 2.4 (found 2.1.0)", "torch", ">=2.4", "2.1.0", None),
        ("Please upgrade PyTorch to version 2.1.", "torch", ">=2.1", None, None),
        ("FlexAttention: torch>=2.6.0 is required, but found 2.4.0", "torch", ">=2.6.0", "2.4.0", None),
        ("Unsloth needs at least transformers 4.43", "transformers", ">=4.43", None, None),
        ("FSDP requires PyTorch >= 2.1.0.", "torch", ">=2.1.0", None, None),
        ("FP8 training requires torch version >= 2.5.0, current 2.4.1", "torch", ">=2.5.0", "2.4.1", None),
        ("Gathering objects requires PyTorch 1.7 or later", "torch", ">=1.7", None, None),
        ("the fused kernels need to have triton version >= 3.2 here", "triton", ">=3.2", None, None),
        ("linear_loop is not available (requires transformers 5.0+).", "transformers", ">=5.0", None, None),
        ("peft 0.12 or newer is needed for this", "peft", ">=0.12", None, None),
        ("DeepSpeed version must be >= 0.16.4 for tensor parallel training", "deepspeed", ">=0.16.4", None, None),
        ("accelerate must be at least 1.0.0, found 0.34.2", "accelerate", ">=1.0.0", "0.34.2", None),
        ("ValueError: vllm version 0.8.5 not supported. Currently supported versions are 0.3.1, 0.6.3 and 0.4.2.", "vllm",
            "==0.6.3", "0.8.5", None),
        ("ValueError: vllm version 0.8.5 not supported", "vllm", "!=0.8.5", "0.8.5", None),
        ("FSDP2 is not supported on torch version < 2.6.0", "torch", ">=2.6.0", None, None),
        ("Dynamo export is only supported for torch>=2.1", "torch", ">=2.1", None, None),
        ("`FSDPStrategy` is supported from PyTorch v1.12.0 onwards.", "torch", ">=1.12.0", None, None),
        ("Please ensure that `torchao >= 0.6.1` is installed", "torchao", ">=0.6.1", None, None),
        ("pkg_resources.VersionConflict: (transformers 4.57.1 (/v/site-packages), Requirement.parse('transformers<4.50'))",
            "transformers", "<4.50", "4.57.1", None),
        ("pkg_resources.ContextualVersionConflict: (numpy 2.1.0 (/v), Requirement.parse('numpy<2.0,>=1.17'), {'peft'})",
            "numpy", "<2.0,>=1.17", "2.1.0", "peft"),
        ("Unsloth: If you want to finetune Gemma 2, upgrade flash-attn to version 2.6.3 or higher!", "flash-attn", ">=2.6.3", None, None),
        ("Unsloth: Please update your Unsloth and Unsloth-Zoo via pip", "unsloth", "", None, None),
        ("A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.0.0 as it may crash.", "numpy", "<2", "2.0.0", None),
    ],
)  # fmt: skip
def test_each_wording(text: str, name: str, specifier: str, found: str | None, by: str | None) -> None:
    (wanted,) = wanted_in(f"first line\n{text}\n")
    said_by = " ".join(filter(None, (wanted.by, wanted.by_version))) or None
    assert (wanted.name, wanted.specifier, wanted.found, said_by, wanted.line) == (name, specifier, found, by, 2)


@pytest.mark.parametrize(
    "text",
    [
        "Please update your driver to 550.54",
        "Please update your code and restart",
        "torch>=2.4 is required, but found 2.5.1",  # it meets what is asked for
        "this works with torch 2.4.0 and I depend on it",
        "requires a lot of memory, at least 24 GB",
        "FP8 requires CUDA >= 12.4 and a driver 550 or newer",
        "the model requires MyThing >= 2.0",
        "only supported on GPUs with capability >= 8.0",
        "Please do not upgrade numpy to 2.0 or higher",
        "You don't need to upgrade torch to at least 2.6",
        "I had to upgrade torch to 2.6.0 or higher last year",
        "the trainer no longer requires `transformers>=4.50`",
    ],
)
def test_what_says_nothing_of_a_release(text: str) -> None:
    assert wanted_in(text) == ()


def test_facts_on_the_way() -> None:
    told = stated_in(
        "ERROR: Package 'x' requires a different Python: 3.8.10 not in '>=3.9'\n"
        "vllm 0.5.1 requires torch==2.3.0, but you have torch 2.4.0 which is incompatible.\n"
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. "
        "Your Tesla V100-SXM2-32GB GPU has compute capability 7.0.\n"
        "The detected CUDA version (12.1) mismatches the version that was used to compile\nPyTorch (11.8)"
    )
    assert (told.python, told.cuda_toolkit) == ("3.8.10", "12.1")
    assert {copy.name: copy.version for copy in told.distributions or ()} == {"torch": "2.4.0", "vllm": "0.5.1"}
    assert told.accelerators == (Accelerator("nvidia", "Tesla V100-SXM2-32GB", "7.0", extra={"more": True}),)


@given(st.text(st.sampled_from("torch>=2.4 requires, but you have is required (found)\n'`"), max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert all(wanted.name and wanted.line >= 1 for wanted in wanted_in(text))


def test_a_long_text_is_read_in_linear_time() -> None:
    line = "vllm 0.5.1 requires torch==2.3.0, but you have torch 2.4.0 which is incompatible.\n"
    assert_linear(wanted_in, lambda length: line * (length // len(line)), 400_000)
