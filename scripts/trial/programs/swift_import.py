# requires: ms-swift
import swift
from swift.llm import InferRequest, get_model_tokenizer

print(swift, InferRequest, get_model_tokenizer)
