"""A language model and a tokenizer small enough to train anywhere in a second; nothing is downloaded."""

from __future__ import annotations

from typing import Any

WORDS = 200
SPECIAL = {"<pad>": 0, "<eos>": 1, "<unk>": 2}
_TEMPLATE = "{% for message in messages %}{{ message['content'] }} <eos> {% endfor %}"


def model() -> Any:
    """A Llama of one layer with random weights and no dropout."""
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=256, pad_token_id=SPECIAL["<pad>"], eos_token_id=SPECIAL["<eos>"],
        bos_token_id=SPECIAL["<eos>"], attention_dropout=0.0, use_cache=False,
    )  # fmt: skip
    transformers.set_seed(17)
    return transformers.LlamaForCausalLM(config)


def tokenizer() -> Any:
    """One token a word: w0 to w199."""
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
    """A row: a first word that no other row has, then words that follow from it."""
    return " ".join([f"w{row}", *(f"w{100 + (7 * row + column * column) % 100}" for column in range(11))])


def rows_in(input_ids: Any) -> list[int]:
    """The rows in a batch of token ids, by the first word of each that marks a row (generated words come later)."""
    first, last = len(SPECIAL), len(SPECIAL) + 100
    found = (next((token - first for token in line if first <= token < last), None) for line in input_ids.tolist())
    return sorted({row for row in found if row is not None})
