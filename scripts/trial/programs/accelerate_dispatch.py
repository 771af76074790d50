# requires: accelerate transformers
import torch
from accelerate import dispatch_model, infer_auto_device_map, load_checkpoint_and_dispatch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

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
model.save_pretrained("saved")
loaded = AutoModelForCausalLM.from_pretrained("saved", device_map="auto", low_cpu_mem_usage=True, torch_dtype=torch.bfloat16)
print(loaded(torch.ones(1, 3, dtype=torch.long)).logits.shape)
