# requires: transformers pillow torchvision
import numpy as np
from PIL import Image
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

image = Image.fromarray(np.zeros((32, 32, 3), dtype=np.uint8))
processor = ViTImageProcessor(size={"height": 32, "width": 32})
config = ViTConfig(
    image_size=32, patch_size=16, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
)
print(ViTForImageClassification(config)(**processor(images=image, return_tensors="pt")).logits)
