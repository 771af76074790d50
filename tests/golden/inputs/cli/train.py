from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

model = AutoModelForCausalLM.from_pretrained("some/model", torch_dtype="bfloat16")
tokenizer = AutoTokenizer.from_pretrained("some/model")
config = SFTConfig(output_dir="out", per_device_train_batch_size=4, bf16=True, gradient_checkpointing=True, max_seq_length=1024)
trainer = SFTTrainer(model=model, args=config, train_dataset=load_dataset("some/data", split="train"), tokenizer=tokenizer)
trainer.train()
