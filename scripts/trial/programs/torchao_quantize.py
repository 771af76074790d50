# requires: torchao transformers
import torch
from torchao.quantization import Int8WeightOnlyConfig, quantize_
from transformers import TorchAoConfig

model = torch.nn.Sequential(torch.nn.Linear(32, 32))
quantize_(model, Int8WeightOnlyConfig())
print(model(torch.zeros(1, 32)), TorchAoConfig)
