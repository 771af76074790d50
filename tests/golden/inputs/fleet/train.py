from transformers import Trainer, TrainingArguments

Trainer(args=TrainingArguments("out")).train()
