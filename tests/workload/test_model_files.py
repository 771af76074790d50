"""The size of a model out of its files. The figures are those of accelerate 1.15.0 with transformers 5.23.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat.errors import InputError
from compat.workload.model_files import read_model

_WIDE = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
         "num_key_value_heads": 8, "tie_word_embeddings": False}  # fmt: skip
# what accelerate's calculate_maximum_sizes counts in the model that transformers builds from the same numbers
MODELS: dict[str, tuple[dict[str, Any], int]] = {
    "llama": ({**_WIDE, "vocab_size": 128256}, 8030261376),
    "mistral": ({**_WIDE, "vocab_size": 32768}, 7248023680),
    "qwen2": ({**_WIDE, "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
               "num_attention_heads": 28, "num_key_value_heads": 4}, 7615616640),
    "qwen3": ({"vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
               "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": True}, 596050048),
    "gemma2": ({"vocab_size": 256000, "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
                "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256}, 9241706241),
    "phi3": ({**_WIDE, "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_key_value_heads": 32},
             3821079648),
    "gpt2": ({"vocab_size": 50257, "n_embd": 1280, "n_layer": 36, "n_head": 20, "n_positions": 1024}, 774030080),
    "falcon": ({"vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "num_kv_heads": 71,
                "multi_query": True, "new_decoder_architecture": False, "parallel_attn": True, "bias": False}, 6921720704),
    "mixtral": ({**_WIDE, "vocab_size": 32000, "num_local_experts": 8}, 46702792832),
    "qwen3_moe": ({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
                   "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
                   "num_experts": 128, "tie_word_embeddings": False}, 30532122752),
    "deepseek_v3": ({"vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
                     "num_hidden_layers": 27, "num_attention_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2,
                     "first_k_dense_replace": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
                     "qk_rope_head_dim": 64, "v_head_dim": 128, "tie_word_embeddings": False}, 15748994752),
}  # fmt: skip


def written(folder: Path, values: dict[str, Any], tensors: dict[str, tuple[str, list[int]]] | None = None) -> Path:
    (folder / "config.json").write_text(json.dumps(values), encoding="utf-8")
    if tensors is not None:
        header = json.dumps({"__metadata__": {}, **{n: {"dtype": d, "shape": s} for n, (d, s) in tensors.items()}}).encode()
        (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    return folder


@pytest.mark.parametrize("kind", MODELS)
def test_the_parameters_that_a_configuration_means(tmp_path: Path, kind: str) -> None:
    values, expected = MODELS[kind]
    model = read_model(str(written(tmp_path, {"model_type": kind, **values})))
    assert model.parameters == pytest.approx(expected, rel=0.001)
    assert model.files == "config.json alone"


@pytest.mark.parametrize(("kind", "cached"), [("llama", 2 * 32 * 8 * 128), ("deepseek_v3", 27 * (512 + 64))])
def test_what_a_token_leaves_in_the_cache(tmp_path: Path, kind: str, cached: int) -> None:
    assert read_model(str(written(tmp_path, {"model_type": kind, **MODELS[kind][0]}))).cached == cached


SMALL = {"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 16}


def test_headers_of_safetensors_are_counted_exactly(tmp_path: Path) -> None:
    tensors = {"model.embed_tokens.weight": ("BF16", [16, 8]), "model.q.weight": ("BF16", [8, 8]), "norm": ("F32", [8])}
    model = read_model(str(written(tmp_path, SMALL, tensors)))
    assert (model.parameters, model.stored, model.files) == (16 * 8 + 64 + 8, 2.0 * (128 + 64) + 32, "safetensors")
    assert [each.embedding for each in model.matrices] == [True, False]


def test_packed_weights_count_as_what_they_stand_for(tmp_path: Path) -> None:
    packed = written(tmp_path, {**SMALL, "quantization_config": {"bits": 4}}, {"model.q.qweight": ("I32", [1, 8])})
    plain = tmp_path / "plain"
    plain.mkdir()
    assert read_model(str(packed)).parameters == read_model(str(written(plain, SMALL))).parameters
    assert read_model(str(packed)).stored == 32


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "config.json"),
        ("[]", "expected an object"),
        ("{}", "hidden_size: is missing"),
        (json.dumps({**SMALL, "hidden_size": "8"}), "hidden_size: expected a whole number, not '8'"),
        (json.dumps({**SMALL, "num_hidden_layers": 10**12}), "num_hidden_layers: expected a whole number"),
    ],
)
def test_a_configuration_that_is_none(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_model(str(tmp_path))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8, (10).to_bytes(8, "little") + b"{}", (2).to_bytes(8, "little") + b"[]",
                (9).to_bytes(8, "little") + b'{"a": {}}']
)  # fmt: skip
def test_a_file_of_weights_that_is_none(tmp_path: Path, content: bytes) -> None:
    written(tmp_path, SMALL)
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.safetensors"):
        read_model(str(tmp_path))


def test_an_index_that_names_a_file_that_is_not_there(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-1.safetensors"}}', encoding="utf-8")
    with pytest.raises(InputError, match="was the download complete"):
        read_model(str(tmp_path))
