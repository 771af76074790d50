# requires: torchmetrics transformers scikit-learn pandas
import pandas
import torchmetrics
from sklearn.linear_model import LogisticRegression
from transformers import AutoConfig, AutoModel

LogisticRegression().fit([[0.0], [1.0]], [0, 1])
print(pandas.DataFrame({"a": [1]}), torchmetrics, AutoModel.from_config(AutoConfig.for_model("bert", num_hidden_layers=1)))
