# requires: optimum-onnx onnx onnxruntime transformers
from optimum.exporters.onnx import main_export
from optimum.onnxruntime import ORTModelForSequenceClassification, ORTQuantizer
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

with open("vocab.txt", "w") as file:
    file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]))
BertTokenizerFast("vocab.txt").save_pretrained("bert")
config = BertConfig(vocab_size=7, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
BertForSequenceClassification(config).save_pretrained("bert")
ORTModelForSequenceClassification.from_pretrained("bert", export=True).save_pretrained("onnx")
