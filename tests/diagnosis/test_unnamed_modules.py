"""Messages that lack a part: the module of a name, the quotation marks, the importing package."""

from __future__ import annotations

import pytest

from compat.interfaces.rows import open_rows
from compat.model import Distribution, Environment
from tests.diagnosis.test_python_messages import said


def of(system: str, *distributions: str) -> Environment:
    return Environment(os=system, distributions=tuple(Distribution(*each.split("==")) for each in distributions))


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("ImportError: PixtralRotaryEmbedding", "transformers"),
        ("ImportError: cannot import name GRPOConfig", "trl"),
        ("cannot import name HybridCache", "transformers"),
    ],
)
def test_a_name_without_its_module_is_looked_up_where_packages_import_it_from(text: str, package: str) -> None:
    finding = said(text)[0]
    assert (list(finding.packages), finding.confidence) == ([package], "reported")
    assert "does not say from where" in finding.why


def test_the_installed_package_decides_where_a_name_is_imported_from() -> None:
    finding = said("ImportError: PixtralRotaryEmbedding", of("linux", "vllm==0.33.0", "transformers==5.17.0"))[0]
    assert finding.packages == {"transformers": "5.17.0"}
    assert "vllm imports it" in finding.why
    assert "sglang" not in finding.why


@pytest.mark.parametrize("text", ["ImportError: something_of_mine", "ImportError: numpy", "ImportError: No module named that"])
def test_a_word_is_no_name_of_a_package(text: str) -> None:
    assert said(text) == ()


def test_rows_are_found_by_the_name_that_is_imported() -> None:
    rows = open_rows()
    assert rows is not None
    assert ("diffusers", "huggingface-hub", "huggingface_hub") in set(rows.importing("cached_download"))


@pytest.mark.parametrize(
    "text", ["No module named transformers.onnx", "/usr/bin/python3: No module named transformers.onnx",
             "ModuleNotFoundError: No module named ‘transformers.onnx’"]
)  # fmt: skip
def test_a_module_is_read_without_quotation_marks_and_with_others(text: str) -> None:
    assert said(text)[0].title == "transformers.onnx is in transformers up to 4.57.6"


def test_the_installed_package_that_imports_a_missing_one_without_requiring_it_is_named() -> None:
    (finding,) = said(
        "ModuleNotFoundError: No module named 'psutil'", of("linux", "compressed-tensors==0.15.0", "tqdm==4.67.0")
    )
    assert finding.title == "psutil cannot be imported, and compressed-tensors imports it"
    assert "does not require it" in finding.why


def test_a_package_that_is_required_on_another_platform_only_is_said_to_be() -> None:
    (finding,) = said("ModuleNotFoundError: No module named 'triton'", of("windows", "torch==2.6.0"))
    assert list(finding.packages) == ["triton-windows"]
    assert 'torch 2.6.0 requires it only if platform_system == "Linux"' in finding.why
    (finding,) = said("ModuleNotFoundError: No module named 'triton'", of("linux", "torch==2.6.0"))
    assert "only if" not in finding.why


def test_a_function_outside_the_usual_packages_is_found_by_its_name() -> None:
    (finding,) = said("TypeError: memory_efficient_attention() got an unexpected keyword argument 'attn_bias'")
    assert list(finding.packages) == ["xformers"]


def test_an_attribute_that_every_release_sets_on_the_object_points_to_the_error_before() -> None:
    (finding,) = said("AttributeError: 'LLM' object has no attribute 'llm_engine'")
    assert (finding.rule, list(finding.packages)) == ("symptom-unfinished-object", ["vllm"])
    assert said("AttributeError: 'LLM' object has no attribute 'nothing_like_it'")[0:1] != (finding,)


def test_a_generated_module_belongs_to_the_package_that_generates_it() -> None:
    (finding,) = said("AttributeError: module 'UnslothPPOTrainer' has no attribute 'UnslothPPOTrainer'")
    assert list(finding.packages) == ["unsloth"]


def test_python_s_own_message_about_tuples_is_not_that_of_a_package() -> None:
    assert said('TypeError: can only concatenate tuple (not "str") to tuple') == ()
