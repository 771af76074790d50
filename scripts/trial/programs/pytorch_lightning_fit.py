# requires: pytorch-lightning torchmetrics tensorboard
import pytorch_lightning
import torch
import torchmetrics
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.loggers import TensorBoardLogger

trainer = pytorch_lightning.Trainer(
    max_steps=1, accelerator="cpu", logger=TensorBoardLogger("logs"), callbacks=[ModelCheckpoint("out")]
)
print(trainer, torchmetrics.Accuracy(task="binary")(torch.ones(2), torch.ones(2)))
