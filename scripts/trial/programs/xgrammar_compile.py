# requires: xgrammar
import xgrammar
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

vocabulary = {"[UNK]": 0, "[PAD]": 1, "[EOS]": 2, "a": 3, "b": 4}
words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]")
information = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=8)
print(xgrammar.GrammarCompiler(information).compile_json_schema('{"type": "object"}'))
