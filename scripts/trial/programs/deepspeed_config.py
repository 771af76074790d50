# requires: deepspeed transformers accelerate
import deepspeed
from transformers.integrations import HfDeepSpeedConfig

print(deepspeed.__version__, HfDeepSpeedConfig({"zero_optimization": {"stage": 2}}))
