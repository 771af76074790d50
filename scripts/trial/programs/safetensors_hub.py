# requires: huggingface-hub safetensors
import torch
from huggingface_hub import HfApi, PyTorchModelHubMixin, snapshot_download
from safetensors.torch import load_file, save_file

save_file({"a": torch.zeros(2)}, "a.safetensors")
print(load_file("a.safetensors"), HfApi, snapshot_download)


class Model(torch.nn.Module, PyTorchModelHubMixin):
    def __init__(self, size: int = 2):
        super().__init__()
        self.layer = torch.nn.Linear(size, size)


Model().save_pretrained("saved")
print(Model.from_pretrained("saved"))
