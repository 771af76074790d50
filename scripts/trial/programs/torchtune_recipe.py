# requires: torchtune torchao
from torchtune import config, training
from torchtune.models.llama3 import llama3
from torchtune.modules.peft import get_adapter_params

print(llama3(vocab_size=8, num_layers=1, num_heads=2, num_kv_heads=2, embed_dim=16, max_seq_len=8))
print(config, training, get_adapter_params)
