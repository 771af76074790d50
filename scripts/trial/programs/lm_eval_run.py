# requires: lm-eval transformers accelerate peft
import lm_eval
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

vocabulary = {"[UNK]": 0, "[PAD]": 1, "[EOS]": 2, "a": 3, "b": 4}
words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]")
config = LlamaConfig(
    vocab_size=8,
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    pad_token_id=1,
    eos_token_id=2,
)
model = LlamaForCausalLM(config)
wrapped = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=1)
print(wrapped.generate_until, lm_eval.simple_evaluate, len(TaskManager().all_tasks))
