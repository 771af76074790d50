# requires: sentence-transformers datasets accelerate
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments, losses
from sentence_transformers.models import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast

with open("vocab.txt", "w") as file:
    file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]))
BertTokenizerFast("vocab.txt").save_pretrained("bert")
config = BertConfig(vocab_size=7, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
BertModel(config).save_pretrained("bert")
part = Transformer("bert", max_seq_length=8)
model = SentenceTransformer(modules=[part, Pooling(16)], device="cpu")
print(model.encode(["a b"]).shape)
data = Dataset.from_dict({"anchor": ["a", "b"] * 2, "positive": ["a", "b"] * 2})
arguments = SentenceTransformerTrainingArguments(output_dir="out", max_steps=1, report_to="none")
SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=losses.MultipleNegativesRankingLoss(model)).train()
