# requires: tensorboard transformers accelerate datasets
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

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
data = Dataset.from_dict({"input_ids": [[1, 2, 3]] * 4, "labels": [[1, 2, 3]] * 4})
arguments = TrainingArguments("out", max_steps=1, per_device_train_batch_size=2, report_to="tensorboard")
Trainer(model, arguments, train_dataset=data).train()
