# requires: bitsandbytes transformers peft accelerate
import bitsandbytes as bnb
import torch
from peft import LoraConfig, prepare_model_for_kbit_training
from transformers import BitsAndBytesConfig

print(bnb.nn.Linear4bit, bnb.optim.AdamW8bit, LoraConfig(), prepare_model_for_kbit_training)
print(BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16))
