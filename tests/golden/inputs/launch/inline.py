# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.6.0", "vllm==0.7.1", "trl==0.14.0"]
# ///
from trl import GRPOConfig, GRPOTrainer

trainer = GRPOTrainer("some/model", args=GRPOConfig("out", use_vllm=True, per_device_train_batch_size=2), reward_funcs=len)
trainer.train()
