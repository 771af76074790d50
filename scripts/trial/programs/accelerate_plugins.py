# requires: accelerate transformers
from accelerate import Accelerator, FullyShardedDataParallelPlugin, init_empty_weights
from accelerate.utils import DeepSpeedPlugin, ProjectConfiguration
from transformers import AutoModelForCausalLM, LlamaConfig

print(FullyShardedDataParallelPlugin(sharding_strategy="FULL_SHARD"))
accelerator = Accelerator(cpu=True, project_config=ProjectConfiguration("out"), gradient_accumulation_steps=2)
with init_empty_weights():
    model = AutoModelForCausalLM.from_config(LlamaConfig(num_hidden_layers=1))
print(accelerator.state, DeepSpeedPlugin)
