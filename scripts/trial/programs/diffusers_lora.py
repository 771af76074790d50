# requires: diffusers peft transformers accelerate
import torch
from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, UNet2DConditionModel
from diffusers.training_utils import EMAModel
from peft import LoraConfig

unet = UNet2DConditionModel(
    sample_size=8,
    block_out_channels=(32, 32),
    down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    cross_attention_dim=16,
    attention_head_dim=8,
    norm_num_groups=8,
)
unet.add_adapter(LoraConfig(r=2, target_modules=["to_q", "to_v"]))
print(unet(torch.zeros(1, 4, 8, 8), 1, torch.zeros(1, 2, 16)).sample.shape)
