# requires: transformers accelerate datasets evaluate scikit-learn
import numpy as np
from datasets import Dataset
from sklearn.metrics import accuracy_score
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
data = Dataset.from_dict({"input_ids": [[1, 2, 3]] * 4, "labels": [0, 1, 0, 1]})


def metrics(prediction):
    return {"accuracy": accuracy_score(prediction.label_ids, np.argmax(prediction.predictions, axis=-1))}


arguments = TrainingArguments("out", max_steps=2, eval_strategy="steps", eval_steps=1, report_to="none")
trainer = Trainer(
    BertForSequenceClassification(config), arguments, train_dataset=data, eval_dataset=data, compute_metrics=metrics
)
trainer.train()
print(trainer.evaluate())
