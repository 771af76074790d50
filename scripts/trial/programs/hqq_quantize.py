# requires: hqq
import torch
from hqq.core.quantize import BaseQuantizeConfig, HQQLinear

layer = HQQLinear(
    torch.nn.Linear(64, 64), BaseQuantizeConfig(nbits=4, group_size=64), compute_dtype=torch.float32, device="cpu"
)
print(layer(torch.zeros(1, 64)))
