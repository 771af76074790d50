# requires: langchain-community sentence-transformers
from langchain_community.embeddings import HuggingFaceEmbeddings
from langchain_community.vectorstores import FAISS

print(HuggingFaceEmbeddings, FAISS)
