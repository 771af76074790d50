# requires: compressed-tensors transformers
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
from transformers import AutoModelForCausalLM
from transformers.utils.quantization_config import CompressedTensorsConfig

print(QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(num_bits=8)), QuantizationConfig)
print(CompressedTensorsConfig(), AutoModelForCausalLM)
