"""The table of published models, from small copies of the files that name them."""

from __future__ import annotations

from pathlib import Path

from scripts.models import rows

DOCUMENTATION = """
| Architecture | Models | Example HF Models |
|--------------|--------|-------------------|
| `NewForCausalLM` | New 1 | `maker/New-1-7B-Instruct`, `maker/New-1-70B`, etc. | x |
"""
REGISTRY = """
_TEXT = {
    "NewForCausalLM": _HfExamplesInfo("maker/New-1-7B", tokenizer="other/tokenizer"),
    "OwnForCausalLM": _HfExamplesInfo("maker/Own-7B", extras={"fp8": "maker/Own-7B-FP8"}, trust_remote_code=True),
}
_SPECULATIVE_DECODING_EXAMPLE_MODELS = {"DraftModel": _HfExamplesInfo("maker/New-1-7B", speculative_model="a/b")}
"""
AUTO = """
MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict([("new", "NewForCausalLM"), ("reuses_new", "NewForCausalLM")])
"""


def test_what_the_sources_say(tmp_path: Path) -> None:
    for name, text in {
        "vllm/docs/models/supported_models.md": DOCUMENTATION,
        "vllm/tests/models/registry.py": REGISTRY,
        "transformers/models/auto/modeling_auto.py": AUTO,
        "transformers/models/new/modeling_new.py": "class NewForCausalLM(Base):\n    pass\n",
        "transformers/models/new/configuration_new.py": '@auto_docstring(checkpoint="maker/New-7B")\nclass NewConfig: ...\n',
        "transformers/models/else/configuration_else.py": '@auto_docstring(checkpoint="maker/Copied-7B")\nclass X: ...\n',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = {
        (row["organisation"], row["stem"]): (row["architectures"], row["types"], row["own_code"])
        for row in rows(tmp_path / "vllm", tmp_path / "transformers", "2026-11-28")
    }
    assert found == {
        ("maker", "new-1"): ("NewForCausalLM", "new", "no"),
        ("maker", "new"): ("", "new", "no"),
        ("maker", "own"): ("OwnForCausalLM", "", "yes"),
    }
