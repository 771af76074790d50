# requires: trl datasets peft
import inspect

from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

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
data = Dataset.from_dict({"text": ["a b a b"] * 4})
known = inspect.signature(SFTTrainer.__init__).parameters
name = "processing_class" if "processing_class" in known else "tokenizer"
arguments = SFTConfig(output_dir="out", max_steps=1, per_device_train_batch_size=2, report_to="none", dataset_text_field="text")
trainer = SFTTrainer(
    model=model,
    args=arguments,
    train_dataset=data,
    peft_config=LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM"),
    **{name: tokenizer},
)
trainer.train()
