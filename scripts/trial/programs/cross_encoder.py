# requires: sentence-transformers
import sentence_transformers
from sentence_transformers import CrossEncoder, InputExample, util

print(sentence_transformers.__version__, CrossEncoder, InputExample(texts=["a", "b"], label=1.0))
print(util.cos_sim([[1.0, 0.0]], [[0.0, 1.0]]))
