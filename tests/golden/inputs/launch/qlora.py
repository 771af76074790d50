import torch
from peft import LoraConfig, prepare_model_for_kbit_training
from transformers import AdamW, AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments

quantization = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained("some/model", quantization_config=quantization, device_map="auto")
model = prepare_model_for_kbit_training(model)
arguments = TrainingArguments("out", per_device_train_batch_size=1, fp16=True, evaluation_strategy="steps", no_cuda=False)
trainer = Trainer(model=model, args=arguments, optimizers=(AdamW(model.parameters()), None))
trainer.train(resume_from_checkpoint=True)
