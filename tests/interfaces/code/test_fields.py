from __future__ import annotations

import ast

import pytest

from compat.interfaces.code.fields import fields_of
from compat.interfaces.source.module import module_of

_PARSED = "from trl import TrlParser, ModelConfig, SFTConfig\np = TrlParser((SFTConfig, ModelConfig))\n"


def _fields(text: str) -> list[tuple[str, str]]:
    tree = ast.parse(text)
    return [(each.of, each.attribute) for each in fields_of(tree, module_of(tree, text.encode(), "__main__"))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, m = p.parse_args_and_config()\nm.dtype", [("trl.ModelConfig", "dtype")]),
        ("a, m, rest = p.parse_args_and_config()\nm.dtype\nrest.x", [("trl.ModelConfig", "dtype")]),
        ("a = SFTConfig()\na.packing", [("trl.SFTConfig", "packing")]),
        ("a, m = p.parse_args_and_config()\nm.dtype = 1\nm.dtype", []),
        ("a, m = p.parse_args_and_config()\nif hasattr(m, 'dtype'):\n    m.dtype", []),
        ("a, m = p.parse_args_and_config()\nm = other()\nm.dtype", []),
        ("a, m = p.parse_args_and_config()\nfor m in range(3):\n    m.dtype", []),
        ("a, m = p.parse_args_and_config()\ndef f(m):\n    m.dtype", []),
        ("def f(a, m):\n    m.dtype\na, m = p.parse_args_and_config()\nf(a, m)", [("trl.ModelConfig", "dtype")]),
        ("from trl import SFTConfig as C\ndef f(m: C):\n    m.dtype", []),
        ("a, m = other.parse_args_and_config()\nm.dtype", []),
    ],
)
def test_attributes_of_objects_whose_class_is_certain(text: str, expected: list[tuple[str, str]]) -> None:
    assert _fields(_PARSED + text) == expected


def test_configurations_that_take_any_attribute_are_left_alone() -> None:
    assert _fields("from transformers import LlamaConfig\nc = LlamaConfig(x=1)\nc.x") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t = AutoTokenizer.from_pretrained('x')\nt.encode_plus('a')", [("transformers.PreTrainedTokenizerBase", "encode_plus")]),
        ("t = AutoTokenizer.from_pretrained('x')\nprint(t.eos_token)", []),  # not called: properties became data
        ("t = AutoTokenizer.from_pretrained('x', trust_remote_code=True)\nt.encode_plus('a')", []),
        ("t = AutoTokenizer.from_pretrained('x', **more)\nt.encode_plus('a')", []),
        ("m = AutoModelForCausalLM.from_pretrained('x')\nm.prune_heads({})", [("transformers.PreTrainedModel", "prune_heads")]),
        ("m = AutoModelForCausalLM.from_pretrained('x')\nm.eval()", []),  # of torch's modules
        ("m = LlamaForCausalLM.from_pretrained('x')\nm = wrap(m)\nm.prune_heads({})", []),
        ("c = DynamicCache()\nc.key_cache", [("transformers.DynamicCache", "key_cache")]),
    ],
)  # fmt: skip
def test_what_is_called_on_the_objects_of_factories(text: str, expected: list[tuple[str, str]]) -> None:
    imports = "from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, LlamaForCausalLM\n"
    assert _fields(imports + text) == expected
