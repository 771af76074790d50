# requires: transformers accelerate
import torch
from transformers import DynamicCache, GenerationConfig, LlamaConfig, LlamaForCausalLM

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
tokens = torch.ones(1, 3, dtype=torch.long)
print(model.generate(tokens, max_new_tokens=3, do_sample=False, past_key_values=DynamicCache()))
print(model.generate(tokens, max_new_tokens=3, num_beams=2))
print(model.generate(tokens, generation_config=GenerationConfig(max_new_tokens=3, cache_implementation="static")))
