# requires: transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, BertTokenizerFast, PreTrainedTokenizerFast

vocabulary = {"[UNK]": 0, "[PAD]": 1, "[EOS]": 2, "a": 3, "b": 4}
words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]")
tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
tokenizer.save_pretrained("saved")
again = AutoTokenizer.from_pretrained("saved")
print(again(["a b", "a"], padding=True, return_tensors="pt"))
print(again.apply_chat_template([{"role": "user", "content": "a b"}], tokenize=True))
with open("vocab.txt", "w") as file:
    file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]))
print(BertTokenizerFast("vocab.txt")("a b"))
