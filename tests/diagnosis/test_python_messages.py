"""What Python's own messages say is missing, and what that means for the two sides."""

from __future__ import annotations

import importlib.util
import sys
import warnings

import pytest

from compat.diagnosis.diagnose import diagnose
from compat.diagnosis.frame_packages import innermost_packages
from compat.diagnosis.python_messages import CALL, GLOBAL, KEYWORD, MEMBER, MODULE, NAME, Lack, lack_in
from compat.diagnosis.python_releases import ADDED, REMOVED, by_name
from compat.model import Distribution, Environment, Finding
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.compiled import in_memory
from compat.versions import key_of
from tests.diagnosis.test_symptoms import trace


def said(text: str, environment: Environment | None = None) -> tuple[Finding, ...]:
    """What is said of a text without any rule."""
    errors = parse_log(text)
    return diagnose(text, errors, decisive(errors), environment or Environment(), in_memory(()))


@pytest.mark.parametrize(
    ("message", "lack"),
    [
        ("cannot import name 'Cache' from 'transformers' (/v/transformers/__init__.py)", Lack(NAME, "transformers", "Cache")),
        ("No module named 'triton.ops'", Lack(MODULE, "triton.ops", "")),
        ("type object 'Plugin' has no attribute 'f'", Lack(MEMBER, "Plugin", "f")),
        ("Qwen2Tokenizer has no attribute all_special_tokens_extended", Lack(MEMBER, "Qwen2Tokenizer",
            "all_special_tokens_extended")),
        ("Qwen2Tokenizer has no attribute 'encode_plus'", Lack(MEMBER, "Qwen2Tokenizer", "encode_plus")),
        ("BertTokenizer has no attribute encode_plus. Did you mean: '_encode_plus'?", Lack(MEMBER, "BertTokenizer",
            "encode_plus")),
        ("Could not find Qwen3VLVideoProcessor neither in <module 'transformers.models.qwen3_vl' from '/v/x.py'> nor in",
            Lack(NAME, "transformers", "Qwen3VLVideoProcessor")),
        ("T.__init__() got an unexpected keyword argument 'x'", Lack(KEYWORD, "T.__init__", "x")),
        ("f() takes from 1 to 2 positional arguments but 3 were given", Lack(CALL, "f", "", 3)),
        ("A.b.<locals>.c() takes 0 positional arguments but 1 was given", Lack(CALL, "A.b", "", 1)),
        ("f() missing 2 required keyword-only arguments: 'x' and 'y'", Lack(CALL, "f", "x", required=("x", "y"))),
        ("f() got multiple values for argument 'x'", Lack(CALL, "f", "x")),
        ("M.f() got some positional-only arguments passed as keyword arguments: 'x'", Lack(CALL, "M.f", "x")),
        ("name 'pyarrow' is not defined", Lack(GLOBAL, "", "pyarrow")),
        ("cannot import name 'x' from 'y' (unknown location)", None),
        ("cannot import name 'x' from partially initialized module 'y' (most likely due to a circular import)", None),
        ("the learning rate has no attribute of a schedule", None),
    ],
)  # fmt: skip
def test_what_is_missing(message: str, lack: Lack | None) -> None:
    assert lack_in(message) == lack


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("AttributeError: module 'torch' has no attribute 'float8_e4m3fn'", "torch.float8_e4m3fn is in torch from 2.1.0 on"),
        ("AttributeError: module 'torch' has no attribute '_scaled_mm'", "torch._scaled_mm is in torch from 2.1.0 on"),
        ("AttributeError: module 'torch' has no attribute 'uint16'", "torch.uint16 is in torch from 2.3.0 on"),
        ("AttributeError: module 'torch' has no attribute 'OutOfMemoryError'",
            "torch.OutOfMemoryError is in torch at least from 2.4.0 on"),
        ("ImportError: cannot import name '_host_emptyCache' from 'torch._C' (unknown.so)",
            "torch._C._host_emptyCache is in torch from 2.5.0 on"),
    ],
)  # fmt: skip
def test_names_bound_in_compiled_code(message: str, title: str) -> None:
    assert [each.title for each in said(message)] == [title]


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("/v/lib/python3.11/site-packages/trl/trainer.py", "trl"),
        ("C:\\v\\Lib\\site-packages\\triton\\x.py", "triton"),
        ("/w/axolotl/src/axolotl/cli/train.py", "axolotl"),
        ("/code/vllm/vllm/engine.py", "vllm"),
        ("/content/AutoAWQ/awq/modules/fused/model.py", "awq"),
        ("/content/AutoAWQ/awq/no_such_module.py", None),
        ("/home/me/datasets/train.py", None),
        ("/home/me/vllm/train.py", None),
        ("/root/.cache/huggingface/modules/transformers_modules/chat/tokenization.py", "transformers_modules"),
    ],
)
def test_whose_frame_it_is(file: str, package: str | None) -> None:
    (error,) = parse_log(f'Traceback (most recent call last):\n  File "{file}", line 3, in f\n    g()\nValueError: x\n')
    assert innermost_packages(error) == (() if package is None else (package,))


def test_the_line_that_deletes_an_attribute_is_not_torchs() -> None:
    (error,) = parse_log(
        "Traceback (most recent call last):\n"
        '  File "/v/site-packages/unsloth/models/llama.py", line 3, in for_training\n    del model._flag\n'
        '  File "/v/site-packages/torch/nn/modules/module.py", line 2077, in Module.__delattr__\n    super().__delattr__(name)\n'
        "AttributeError: 'PeftModel' object has no attribute '_flag'\n"
    )
    assert innermost_packages(error) == ("unsloth",)


def _there(name: str) -> bool:
    module, _, last = name.rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(name)
        except ImportError:
            try:
                return bool(module) and hasattr(importlib.import_module(module), last)
            except ImportError:
                return False
    return True


def test_the_tables_of_the_standard_library_are_true_of_this_python() -> None:
    python = key_of(f"{sys.version_info[0]}.{sys.version_info[1]}")
    elsewhere = {"msilib", "nis", "ossaudiodev", "spwd", "crypt"}  # not on every system
    if importlib.util.find_spec("_distutils_hack") is not None:
        elsewhere.add("distutils")  # setuptools brings it back
    removed = {name: python < key_of(at) for name, at in by_name(REMOVED).items()}
    added = {name: python >= key_of(at) for name, at in by_name(ADDED).items()}
    wrong = [name for name, there in {**removed, **added}.items() if name not in elsewhere and _there(name) != there]
    assert wrong == []


def test_a_name_of_another_python() -> None:
    error = "AttributeError: module 'pkgutil' has no attribute 'ImpImporter'"
    (finding,) = said(trace(error, "peft/__init__.py"))
    assert (finding.rule, finding.verdict, finding.facts) == ("symptom-python-release", "possible", ("python",))
    assert "Python 3.12 removed" in finding.title
    (finding,) = said(trace(error, "peft/__init__.py"), Environment(python="3.12.1"))
    assert finding.verdict == "hit"
    assert [f.rule for f in said(trace(error, "peft/__init__.py"), Environment(python="3.11.4"))] == []


def test_a_name_that_numpy_removed() -> None:
    error = trace("AttributeError: module 'numpy' has no attribute 'float'", "datasets/features.py")
    (finding,) = said(error, Environment(distributions=(Distribution("numpy", "1.26.4"),)))
    assert (finding.rule, finding.verdict) == ("symptom-numpy-name", "hit")
    assert [(fix.package, fix.spec) for fix in finding.fixes if fix.spec] == [("numpy", "<1.24")]
    assert said(error, Environment(distributions=(Distribution("numpy", "1.23.5"),))) == ()


@pytest.mark.parametrize(
    ("error", "place", "packages"),
    [
        ("TypeError: LLMatcher.validate() got some positional-only arguments passed as keyword arguments: 'tokenizer'",
            ("vllm/backend.py", "llguidance.LLMatcher.validate(x, tokenizer=t)"), {"vllm", "llguidance"}),
        ("ImportError: cannot import name 'url_quote' from 'werkzeug.urls' (/v/werkzeug/urls.py)",
            ("axolotl/__init__.py", "from werkzeug.urls import url_quote"), {"axolotl", "werkzeug"}),
        ("AttributeError: 'LlamaConfig' object has no attribute '_private'",
            ("vllm/config.py", "config._private"), {"vllm", "transformers"}),
    ],
)  # fmt: skip
def test_two_sides_that_no_table_knows(error: str, place: tuple[str, str], packages: set[str]) -> None:
    file, code = place
    text = f'Traceback (most recent call last):\n  File "/v/site-packages/{file}", line 3, in f\n    {code}\n{error}\n'
    (finding,) = said(text)
    assert (finding.rule, finding.verdict, finding.confidence) == ("symptom-interface", "possible", "reported")
    assert set(finding.packages) == packages


def test_the_models_own_code() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/v/site-packages/transformers/base.py", line 3, in f\n    g()\n'
        '  File "/root/.cache/huggingface/modules/transformers_modules/chat/tokenization_chat.py", line 3, in g\n'
        "    super().__init__(padding_side=x)\nTypeError: PreTrainedTokenizer._pad() got an unexpected keyword argument 'zz'\n"
    )
    (finding,) = said(text)
    assert finding.title.startswith("The model's own code calls PreTrainedTokenizer._pad(zz=) of transformers")
    assert set(finding.packages) == {"transformers"}


def test_a_package_that_is_not_installed() -> None:
    (finding,) = said("ModuleNotFoundError: No module named 'sgl_kernel'\n")
    assert (finding.rule, [fix.command for fix in finding.fixes]) == ("symptom-not-installed", ["pip install sgl-kernel"])
    assert said("ModuleNotFoundError: No module named 'helpers'\n") == ()  # the user's own
    (finding,) = said("ModuleNotFoundError: No module named 'triton'\n", Environment(os="windows"))
    assert [fix.command for fix in finding.fixes] == ["pip install triton-windows"]


def test_a_package_without_wheels_for_the_system_is_not_offered() -> None:
    here = Environment(os="darwin", distributions=(Distribution("gptqmodel", "5.6.6"), Distribution("torch", "2.9.1")))
    (finding,) = said("ModuleNotFoundError: No module named 'triton'\n", here)
    assert all(fix.command is None for fix in finding.fixes)
    assert "triton has no wheels for macOS" in finding.why


def test_the_frame_of_a_rejected_call_is_the_callers() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/v/site-packages/torch/_contextlib.py", line 3, in f\n    func(*args)\n'
        '  File "/v/site-packages/sglang/srt/runner.py", line 3, in g\n    return fused_gate(a, b, c)\n'
        "TypeError: fused_gate() takes 2 positional arguments but 3 were given\n"
    )
    assert said(text) == ()  # torch has not called a function of sglang's


def test_a_private_class_does_not_hide_a_public_one() -> None:
    (finding,) = said("TypeError: register_forward_pre_hook() got an unexpected keyword argument 'with_kwargs'")
    assert finding.title == "register_forward_pre_hook(with_kwargs=) is in torch from 2.0.0 on"
