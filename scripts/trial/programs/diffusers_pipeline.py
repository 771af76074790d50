# requires: diffusers transformers accelerate
from diffusers import AutoencoderKL, DDIMScheduler, DDPMPipeline, DDPMScheduler, StableDiffusionPipeline, UNet2DModel

unet = UNet2DModel(
    sample_size=8,
    block_out_channels=(32, 32),
    down_block_types=("DownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "UpBlock2D"),
)
pipeline = DDPMPipeline(unet, DDPMScheduler(num_train_timesteps=10))
pipeline.save_pretrained("saved")
print(DDPMPipeline.from_pretrained("saved")(num_inference_steps=2, output_type="np").images.shape)
print(AutoencoderKL, DDIMScheduler, StableDiffusionPipeline)
