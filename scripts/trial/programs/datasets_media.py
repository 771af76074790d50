# requires: datasets pillow soundfile
import numpy as np
from datasets import Dataset, Features, Image, Sequence, Value

image = np.zeros((4, 4, 3), dtype=np.uint8)
data = Dataset.from_dict(
    {"image": [image] * 2, "tags": [["a"], ["b"]]}, features=Features({"image": Image(), "tags": Sequence(Value("string"))})
)
print(data[0]["image"].size)
data.to_pandas()
