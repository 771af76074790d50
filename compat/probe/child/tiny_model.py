"""A tiny language model and tokenizer that train in a second on any machine, without downloads."""

from __future__ import annotations

from typing import Any

WORDS = 200
SPECIAL = {"<pad>": 0, "<eos>": 1, "<unk>": 2}
_TEMPLATE = "{% for message in messages %}{{ message['content'] }} <eos> {% endfor %}"


def model() -> Any:
    """Return a one-layer Llama with random weights and no dropout."""
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=256, pad_token_id=SPECIAL["<pad>"], eos_token_id=SPECIAL["<eos>"],
        bos_token_id=SPECIAL["<eos>"], attention_dropout=0.0, use_cache=False,
    )  # fmt: skip
    transformers.set_seed(17)
    return transformers.LlamaForCausalLM(config)


def tokenizer() -> Any:
    """Return a tokenizer with one token per word: w0 to w199."""
    import tokenizers
    import transformers

    vocabulary = {**SPECIAL, **{f"w{number}": number + len(SPECIAL) for number in range(WORDS)}}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", bos_token="<eos>", unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"], model_max_length=256,
    )  # fmt: skip
    made.chat_template = _TEMPLATE
    return made


def text(row: int) -> str:
    """Return the text of a row: a unique first word, then words derived from it."""
    return " ".join([f"w{row}", *(f"w{100 + (7 * row + column * column) % 100}" for column in range(11))])


def rows_in(input_ids: Any) -> list[int]:
    """Identify the rows in a batch of token ids by the first row-marking word of each (generated words come later)."""
    first, last = len(SPECIAL), len(SPECIAL) + 100
    found = (next((token - first for token in line if first <= token < last), None) for line in input_ids.tolist())
    return sorted({row for row in found if row is not None})
