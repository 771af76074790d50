# requires: gguf sentencepiece transformers
import gguf
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

print(gguf.GGUFWriter, load_gguf_checkpoint)
