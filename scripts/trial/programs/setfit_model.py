# requires: setfit
from setfit import SetFitModel, Trainer, TrainingArguments, sample_dataset

print(TrainingArguments(), SetFitModel, Trainer, sample_dataset)
