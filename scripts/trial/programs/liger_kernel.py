# requires: liger-kernel transformers
from liger_kernel.transformers import apply_liger_kernel_to_llama
from transformers import LlamaForCausalLM

apply_liger_kernel_to_llama()
print(LlamaForCausalLM)
