# requires: peft
import torch
from peft import PrefixTuningConfig, PromptTuningConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

for settings in (PromptTuningConfig, PrefixTuningConfig):
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
    model = get_peft_model(model, settings(num_virtual_tokens=2, task_type="CAUSAL_LM"))
    tokens = torch.ones(1, 3, dtype=torch.long)
    model(input_ids=tokens, attention_mask=tokens, labels=tokens).loss.backward()
    model.generate(input_ids=tokens, attention_mask=tokens, max_new_tokens=2)
