# requires: adapters
from adapters import AutoAdapterModel, BnConfig, init
from transformers import BertConfig, BertModel

model = BertModel(BertConfig(vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2))
init(model)
model.add_adapter("a", config=BnConfig(mh_adapter=True, output_adapter=True, reduction_factor=2, non_linearity="relu"))
print(AutoAdapterModel)
