# requires: peft
import torch
from peft import LoraConfig, TaskType, get_peft_model, prepare_model_for_kbit_training
from transformers import LlamaConfig, LlamaForCausalLM

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
model = prepare_model_for_kbit_training(model)
model = get_peft_model(model, LoraConfig(r=2, target_modules="all-linear", use_dora=True, task_type=TaskType.CAUSAL_LM))
tokens = torch.ones(1, 3, dtype=torch.long)
model(input_ids=tokens, labels=tokens).loss.backward()
