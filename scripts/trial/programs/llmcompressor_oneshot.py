# requires: llmcompressor
from llmcompressor import oneshot
from llmcompressor.modifiers.quantization import GPTQModifier, QuantizationModifier

print(oneshot, GPTQModifier(targets="Linear", scheme="W4A16", ignore=["lm_head"]), QuantizationModifier(scheme="FP8_DYNAMIC"))
