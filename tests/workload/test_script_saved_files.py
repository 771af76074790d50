"""What the models, tokenizers and datasets on disk that a script loads say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workload.test_script import read


@pytest.mark.parametrize(("merges", "verdict"), [('["a b"]', False), ('[["a", "b"]]', True), ("[]", None)])
def test_a_saved_tokenizer_shows_which_release_wrote_it(merges: str, verdict: bool | None, script: Path) -> None:
    (script.parent / "model").mkdir()
    (script.parent / "model" / "tokenizer.json").write_text(f'{{"model": {{"type": "BPE", "merges": {merges}}}}}')
    work = read(script, "from transformers import AutoModel\nAutoModel.from_pretrained('model')").workload
    feature = "tokenizer-json-0.20"
    assert (feature in (work.features or ()), feature in (work.features_absent or ())) == (verdict is True, verdict is False)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"model_type": "qwen3_vl"}', "qwen3_vl"),
        ('{"model_type": "qwen3_vl", "auto_map": {"AutoConfig": "configuration_x.XConfig"}}', None),  # brings its own code
        ('{"model_type": 3}', None),
        ("{}", None),
        ("broken", None),
    ],
)
def test_a_saved_model_shows_its_type(config: str, expected: str | None, script: Path) -> None:
    (script.parent / "run-12").mkdir()
    (script.parent / "run-12" / "config.json").write_text(config)
    work = read(script, "from transformers import AutoModel\nAutoModel.from_pretrained('run-12')").workload
    assert (work.model, work.model_type) == ("run-12", expected)


@pytest.mark.parametrize(
    ("config", "passed", "expected"),
    [
        ('{"quant_method": "fp8", "weight_block_size": [128, 128]}', "", "fp8"),
        ('{"quant_method": "gptq", "bits": 4}', "", "gptq"),
        ('{"quant_method": "bitsandbytes", "load_in_4bit": true, "load_in_8bit": false}', "", "4bit"),
        ('{"load_in_8bit": true}', "", "8bit"),  # before quant_method was written
        ('{"quant_method": "bitsandbytes"}', "", None),
        ('{"quant_method": "fp8"}', ", load_in_8bit=True", "8bit"),
        ('"fp8"', "", None),
    ],
)
def test_a_saved_model_shows_how_its_weights_are_quantized(
    config: str, passed: str, expected: str | None, script: Path
) -> None:
    (script.parent / "model").mkdir()
    (script.parent / "model" / "config.json").write_text(f'{{"quantization_config": {config}}}')
    text = f"from transformers import AutoModel\nAutoModel.from_pretrained('model'{passed})"
    assert read(script, text).workload.quantization == expected


@pytest.mark.parametrize(
    ("inputs", "passed", "expected"),
    [
        ('{"dynamic": true}', "", {"quantized-checkpoint": True, "quantized-activations": True}),
        ("null", "", {"quantized-checkpoint": True, "quantized-activations": False}),
        (None, "", {"quantized-checkpoint": True}),
        (None, "dequantize=True", {"quantized-checkpoint": True, "dequantized-checkpoint": True}),
        (None, "dequantize=False", {"quantized-checkpoint": True, "dequantized-checkpoint": False}),
    ],
)
def test_what_is_known_of_a_quantized_checkpoint(
    inputs: str | None, passed: str, expected: dict[str, bool], script: Path
) -> None:
    groups = "" if inputs is None else f', "config_groups": {{"group_0": {{"input_activations": {inputs}}}}}'
    (script.parent / "model").mkdir()
    (script.parent / "model" / "config.json").write_text(f'{{"quantization_config": {{"quant_method": "fp8"{groups}}}}}')
    given = f", quantization_config=FineGrainedFP8Config({passed})" if passed else ""
    text = f"from transformers import AutoModel, FineGrainedFP8Config\nAutoModel.from_pretrained('model'{given})"
    work = read(script, text).workload
    known = {**dict.fromkeys(work.features or (), True), **dict.fromkeys(work.features_absent or (), False)}
    assert {name: on for name, on in known.items() if "quantized" in name} == expected


@pytest.mark.parametrize("split", ["", "train"])
@pytest.mark.parametrize(("kind", "newer"), [("List", True), ("Sequence", False)])
def test_a_saved_dataset_shows_which_release_wrote_it(split: str, kind: str, newer: bool, script: Path) -> None:
    folder = script.parent / "data"
    (folder / split).mkdir(parents=True)
    if split:
        (folder / "dataset_dict.json").write_text('{"splits": ["train"]}')
    (folder / split / "dataset_info.json").write_text(f'{{"features": {{"a": {{"feature": {{}}, "_type": "{kind}"}}}}}}')
    work = read(script, "from datasets import load_from_disk\nload_from_disk('data')").workload
    feature = "data-from-datasets-4"
    assert (feature in (work.features or ()), feature in (work.features_absent or ())) == (newer, not newer)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"model": 3}', '{"model": {"merges": {}}}'])
def test_a_saved_tokenizer_that_cannot_be_read_says_nothing(content: str, script: Path) -> None:
    (script.parent / "model").mkdir()
    (script.parent / "model" / "tokenizer.json").write_text(content)
    assert read(script, "from transformers import AutoModel\nAutoModel.from_pretrained('model')").workload.features is None
