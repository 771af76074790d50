# requires: trl datasets peft
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

try:
    from trl import KTOConfig, KTOTrainer
except ImportError:
    from trl.experimental.kto import KTOConfig, KTOTrainer

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
data = Dataset.from_dict({"prompt": ["a b"] * 4, "completion": ["a", "b"] * 2, "label": [True, False] * 2})
arguments = KTOConfig(output_dir="out", max_steps=1, per_device_train_batch_size=2, report_to="none", bf16=False)
KTOTrainer(model=model, args=arguments, train_dataset=data, processing_class=tokenizer).train()
