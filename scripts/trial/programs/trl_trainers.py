# requires: trl peft
from trl import (
    DPOConfig,
    DPOTrainer,
    GRPOConfig,
    GRPOTrainer,
    ModelConfig,
    RewardConfig,
    RewardTrainer,
    ScriptArguments,
    SFTConfig,
    SFTTrainer,
    TrlParser,
    get_peft_config,
    get_quantization_config,
)

print(DPOTrainer, GRPOTrainer, RewardTrainer, SFTTrainer)
print(get_peft_config(ModelConfig(use_peft=True)))
parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))
