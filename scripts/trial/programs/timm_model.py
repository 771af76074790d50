# requires: timm
import timm
import torch

print(timm.create_model("resnet18", num_classes=2)(torch.zeros(1, 3, 64, 64)).shape)
