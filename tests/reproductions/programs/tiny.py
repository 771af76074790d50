"""A language model and a tokenizer that are small enough to train on a CPU in no time; nothing is downloaded."""

from __future__ import annotations

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

WORDS = [f"w{number}" for number in range(50)]
SPECIAL = {"<pad>": 0, "<eos>": 1, "<unk>": 2}
LENGTH = 12  # tokens in every text


def qwen2(**settings: object) -> Qwen2ForCausalLM:
    """One layer, random weights. Its forward takes loss keywords, as that of every mainstream causal model does."""
    config = Qwen2Config(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=256,
        pad_token_id=SPECIAL["<pad>"],
        eos_token_id=SPECIAL["<eos>"],
        bos_token_id=SPECIAL["<eos>"],
        **settings,
    )
    return Qwen2ForCausalLM(config)


def tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {**SPECIAL, **{word: index for index, word in enumerate(WORDS, start=len(SPECIAL))}}
    words = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=256,
    )


def texts(count: int) -> list[str]:
    return [" ".join(WORDS[(7 * row + column) % len(WORDS)] for column in range(LENGTH)) for row in range(count)]
