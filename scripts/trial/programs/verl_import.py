# requires: verl
from verl import DataProto
from verl.utils import hf_tokenizer

print(DataProto, hf_tokenizer)
