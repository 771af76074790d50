"""Files of models and data sets: the size and quantization of a model, and which release wrote a tokenizer or a data set.

The size comes from the headers of the safetensors files, or from ``config.json`` alone. Nothing is loaded.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping

from compat.errors import InputError
from compat.files import regular_path
from compat.records import record
from compat.syntax.json import parse_json, read_text

_LARGEST_HEADER = 100_000_000
"""safetensors' own limit, in bytes."""
_TYPES = {"F64": 8.0, "F32": 4.0, "F16": 2.0, "BF16": 2.0, "I64": 8.0, "I32": 4.0, "I16": 2.0, "U16": 2.0, "U32": 4.0,
          "U64": 8.0, "F4": 0.5}  # fmt: skip
"""Bytes per element; every other safetensors type has one."""
_LANGUAGE = ("text_config", "llm_config")
"""Keys under which multimodal models keep the configuration of their language model."""
_TIED = ("gpt2", "gemma", "gemma2", "gemma3", "gemma3_text", "opt", "bloom", "falcon")
"""Architectures with tied embeddings unless the file states otherwise."""
_PLAIN_MLP = ("gpt2", "gpt_neo", "gpt_neox", "gptj", "gpt_bigcode", "opt", "bloom", "falcon", "phi", "mpt", "starcoder2",
              "nemotron", "codegen")  # fmt: skip
"""Architectures whose feed-forward has two matrices; all others also have a gate."""


@record(frozen=True)
class Matrix:
    """``count`` two-dimensional weights of one shape. ``embedding`` marks an embedding table or the output head."""

    rows: int
    columns: int
    count: int
    embedding: bool = False


@record(frozen=True)
class ModelSize:
    """The quantities that determine memory use. ``stored`` is the size of the weight files in bytes, ``None`` without files.

    ``cached`` is the number of values per token in the KV cache; ``positions`` the maximum number of tokens. ``own_code``: the
    files of the model bring their own classes.
    """

    kind: str
    parameters: int
    matrices: tuple[Matrix, ...]
    layers: int
    hidden: int
    vocabulary: int
    cached: int
    positions: int | None
    stored: float | None
    files: str
    architectures: tuple[str, ...] = ()
    own_code: bool = False


def read_model(path: str) -> ModelSize:
    """Read a folder with ``config.json``, or that file; :class:`InputError` if it does not describe a language model."""
    place = os.path.join(path, "config.json") if os.path.isdir(path) else path
    document = parse_json(read_text(regular_path(place)), place)
    if not isinstance(document, dict):
        raise InputError("expected an object, as the config.json of a model is", place)
    nested: dict[str, object] = next((document[key] for key in _LANGUAGE if isinstance(document.get(key), dict)), {})
    config = _Config({**document, **nested}, place)
    kind = str(document.get("model_type") or "")
    tensors = dict(_tensors(os.path.dirname(place) or "."))
    matrices = tuple(_matrices(config, kind))
    parameters = sum(each.rows * each.columns * each.count for each in matrices) + config.layers * 2 * config.hidden
    files = "config.json alone" + (", its language model" if nested else "")
    stored = None
    if tensors:
        files = "safetensors"
        stored = sum(_TYPES.get(name, 1.0) * math.prod(shape) for name, shape in tensors.values())
    if tensors and not document.get("quantization_config"):  # quantized weights are packed: their shapes are not the real ones
        parameters = sum(math.prod(shape) for _, shape in tensors.values())
        matrices = tuple(
            Matrix(shape[0], shape[1], 1, embedding=any(word in name for word in ("embed", "lm_head", "wte", "wpe")))
            for name, (_, shape) in tensors.items() if len(shape) == 2
        )  # fmt: skip
    return ModelSize(
        kind=kind, parameters=parameters, matrices=matrices, layers=config.layers, hidden=config.hidden,
        vocabulary=config.number("vocab_size"), cached=config.cached,
        positions=config.maybe("max_position_embeddings", "n_positions"), stored=stored, files=files,
        architectures=_texts(document.get("architectures")), own_code=bool(document.get("auto_map")),
    )  # fmt: skip


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


class _Config:
    """The dimensions in a ``config.json``, under the names that each architecture uses."""

    def __init__(self, values: Mapping[str, object], file: str) -> None:
        self.values, self.file = values, file
        self.hidden = self.number("hidden_size", "n_embd", "d_model")
        self.layers = self.number("num_hidden_layers", "n_layer", "n_layers", "num_layers")
        self.heads = self.number("num_attention_heads", "n_head", "n_heads")
        # falcon's first architecture does not use the num_kv_heads that its configurations name
        shared = values.get("multi_query") is True and not values.get("new_decoder_architecture")
        self.groups = 1 if shared else self.maybe("num_key_value_heads", "num_kv_heads") or self.heads
        self.width = self.maybe("head_dim") or self.hidden // self.heads

    def maybe(self, *names: str) -> int | None:
        for name in names:
            value = self.values.get(name)
            if value is not None:
                if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**9:
                    raise InputError(f"{name}: expected a whole number, not {value!r}", self.file)
                return value
        return None

    def number(self, *names: str) -> int:
        found = self.maybe(*names)
        if not found:
            raise InputError(f"{names[0]}: is missing; expected the config.json of a language model", self.file)
        return found

    @property
    def cached(self) -> int:
        """Values per token over all layers; multi-head latent attention caches one compressed row and one rotary key."""
        latent = self.maybe("kv_lora_rank")
        row = latent + (self.maybe("qk_rope_head_dim") or 0) if latent else 2 * self.groups * self.width
        return self.layers * row


def _matrices(config: _Config, kind: str) -> Iterator[Matrix]:
    """Yield the matrices of a decoder with these dimensions."""
    hidden, layers, vocabulary = config.hidden, config.layers, config.number("vocab_size")
    tied = config.values.get("tie_word_embeddings", kind in _TIED)
    yield Matrix(vocabulary, hidden, 1 if tied else 2, embedding=True)
    if kind in ("gpt2", "opt", "gpt_bigcode"):  # positions are learned
        yield Matrix(config.maybe("n_positions", "max_position_embeddings") or 0, hidden, 1, embedding=True)
    latent = config.maybe("kv_lora_rank")
    if latent:
        keys = config.number("qk_nope_head_dim")
        rotary, values = config.maybe("qk_rope_head_dim") or 0, config.number("v_head_dim")
        queries = config.maybe("q_lora_rank")
        if queries:
            yield Matrix(hidden, queries, layers)
        yield Matrix(queries or hidden, config.heads * (keys + rotary), layers)
        yield Matrix(hidden, latent + rotary, layers)
        yield Matrix(latent, config.heads * (keys + values), layers)
        yield Matrix(config.heads * values, hidden, layers)
    else:
        yield Matrix(hidden, config.width * config.heads, 2 * layers)  # query and output projections
        yield Matrix(hidden, config.width * config.groups, 2 * layers)
    inner = config.maybe("intermediate_size", "n_inner", "ffn_dim", "d_ff") or 4 * hidden
    parts = 2 if kind in _PLAIN_MLP else 3
    experts = config.maybe("num_local_experts", "num_experts", "n_routed_experts")
    if not experts:
        yield Matrix(hidden, inner, parts * layers)
        return
    dense = config.maybe("first_k_dense_replace") or 0
    only = config.values.get("mlp_only_layers")
    dense += len(only) if isinstance(only, list) else 0
    of_expert = config.maybe("moe_intermediate_size") or inner
    shared = config.maybe("shared_expert_intermediate_size") or of_expert * (config.maybe("n_shared_experts") or 0)
    yield Matrix(hidden, inner, parts * dense)
    yield Matrix(hidden, of_expert, parts * experts * (layers - dense))
    yield Matrix(hidden, shared, parts * (layers - dense))
    yield Matrix(hidden, experts, layers - dense)


def _tensors(folder: str) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    """(name, (type, shape)) of every tensor: of the files that the index names, else of all of them."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    except OSError:
        return
    index = os.path.join(folder, "model.safetensors.index.json")
    if os.path.isfile(index):
        document = parse_json(read_text(index), index)
        listed = document.get("weight_map") if isinstance(document, dict) else None
        if not isinstance(listed, dict) or not all(isinstance(each, str) for each in listed.values()):
            raise InputError("weight_map: expected the file of each tensor", index)
        named = {os.path.basename(each) for each in listed.values()}
        absent = sorted(named.difference(names))
        if absent:
            raise InputError(f"names {absent[0]}, which is not there: was the download complete?", index)
        names = sorted(named)
    elif "model.safetensors" in names:
        names = ["model.safetensors"]
    for name in names:
        yield from _header(os.path.join(folder, name))


def _header(path: str) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    """Read the header of a file: eight bytes with its length, then JSON (the format's README)."""
    with open(regular_path(path), "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if length <= _LARGEST_HEADER else b""
    if not text or len(text) < length:
        raise InputError("is cut short, or not a safetensors file: the header is not all there", path)
    try:
        document = parse_json(text.decode("utf-8"), path)
        for name, entry in document.items():
            if name != "__metadata__":
                yield name, (str(entry["dtype"]), tuple(int(each) for each in entry["shape"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError("is not a safetensors file: expected dtype and shape of each tensor", path) from None


# --- How weights are quantized, and which library version wrote a saved tokenizer or dataset.


LIMIT = 64 * 1024 * 1024
"""Maximum size in bytes; the largest tokenizer.json in use has 40 MiB."""


def merges_are_pairs(model: str) -> bool | None:
    """Whether a model's folder has a BPE tokenizer in the format of tokenizers 0.20 and later; ``None`` if it has none."""
    saved = _table(os.path.join(model, "tokenizer.json"))
    kind = saved.get("model") if saved else None
    merges = kind.get("merges") if isinstance(kind, dict) else None
    return isinstance(merges[0], list) if isinstance(merges, list) and merges else None


def type_of(model: str) -> str | None:
    """The type that transformers looks up for a model's folder; ``None`` if it states none, or brings its own classes."""
    config = _table(os.path.join(model, "config.json")) or {}
    kind = config.get("model_type")
    return kind if isinstance(kind, str) and kind and not config.get("auto_map") else None


def quantization_of(model: str) -> str | None:
    """The method with which the weights in a model's folder are quantized; ``None`` if nothing says so.

    bitsandbytes counts as the number of its bits, 4bit or 8bit.
    """
    stated = _quantization_config(model) or {}
    for bits in ("4bit", "8bit"):
        if stated.get(f"load_in_{bits}") is True:
            return bits
    method = stated.get("quant_method")
    return method if isinstance(method, str) and method != "bitsandbytes" else None


def quantizes_activations(model: str) -> bool | None:
    """Whether compressed-tensors also quantizes the inputs of a folder's layers; ``None`` if it did not quantize the model."""
    groups = (_quantization_config(model) or {}).get("config_groups")
    if not isinstance(groups, dict):
        return None
    return any(isinstance(group, dict) and bool(group.get("input_activations")) for group in groups.values())


def _quantization_config(model: str) -> dict[str, object] | None:
    config = _table(os.path.join(model, "config.json"))
    stated = config.get("quantization_config") if config else None
    return stated if isinstance(stated, dict) else None


def has_list_features(folder: str) -> bool | None:
    """Whether a saved dataset uses the feature type introduced in datasets 4; ``None`` if the folder has no dataset."""
    splits = _table(os.path.join(folder, "dataset_dict.json"))
    names = splits.get("splits") if splits else [""]
    for name in names if isinstance(names, list) else []:
        saved = _table(os.path.join(folder, str(name), "dataset_info.json"))
        if saved is not None:
            return "List" in _types(saved.get("features"))
    return None


def _types(value: object) -> Iterator[object]:
    for each in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from _types(each)
    if isinstance(value, dict):
        yield value.get("_type")


def _table(path: str) -> dict[str, object] | None:
    try:
        with open(regular_path(path), "rb") as file:
            content = file.read(LIMIT + 1)
        found = json.loads(content) if len(content) <= LIMIT else None
    except (InputError, OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
