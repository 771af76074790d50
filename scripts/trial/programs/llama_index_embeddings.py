# requires: llama-index-embeddings-huggingface
from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.embeddings.huggingface import HuggingFaceEmbedding

print(Document(text="a"), Settings, VectorStoreIndex, HuggingFaceEmbedding)
