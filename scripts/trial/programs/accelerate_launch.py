# requires: accelerate datasets
# command: accelerate launch --cpu --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no prog.py
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, set_seed

set_seed(1)
accelerator = Accelerator()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.utils.data.DataLoader(torch.randn(8, 2), batch_size=2)
model, optimizer, rows = accelerator.prepare(model, optimizer, rows)
for batch in rows:
    loss = model(batch).mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
print(accelerator.gather(loss.detach().reshape(1)), gather_object([accelerator.process_index]))
accelerator.save_state("out")
