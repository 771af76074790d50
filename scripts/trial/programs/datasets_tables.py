# requires: datasets
from datasets import Dataset, Features, Value, load_dataset

data = Dataset.from_dict({"a": [1, 2, 3]}, features=Features({"a": Value("int64")}))
data = data.map(lambda row: {"b": row["a"] + 1}).filter(lambda row: row["b"] > 1).shuffle(seed=1)
print(data.with_format("numpy")[:], data.with_format("torch")[0])
data.to_parquet("data.parquet")
data.save_to_disk("saved")
print(load_dataset("parquet", data_files="data.parquet", split="train")[0])
