# requires: datasets
from datasets import load_dataset

with open("data.jsonl", "w") as file:
    file.writelines(f'{{"text": "a b {number}"}}\n' for number in range(10))
rows = load_dataset("json", data_files="data.jsonl", split="train", streaming=True)
print(list(rows.map(lambda row: {"length": len(row["text"])}).shuffle(seed=1, buffer_size=4).take(3)))
print(load_dataset("json", data_files="data.jsonl", split="train", num_proc=2).train_test_split(0.5))
