# requires: transformers accelerate bitsandbytes
import torch
from transformers import BitsAndBytesConfig, GPTQConfig, QuantoConfig, TorchAoConfig

print(BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16))
print(GPTQConfig(bits=4), QuantoConfig(weights="int8"), TorchAoConfig)
