# requires: optimum-quanto
import torch
from optimum.quanto import freeze, qint8, quantize

model = torch.nn.Sequential(torch.nn.Linear(16, 16))
quantize(model, weights=qint8)
freeze(model)
print(model(torch.zeros(1, 16)))
