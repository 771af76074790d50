# requires: lightning
import lightning
import torch


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, number):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


rows = torch.utils.data.DataLoader(torch.randn(4, 2), batch_size=2)
lightning.Trainer(max_steps=2, accelerator="cpu", logger=False, enable_checkpointing=False).fit(Model(), rows)
