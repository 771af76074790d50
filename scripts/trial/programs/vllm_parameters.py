# requires: vllm
from vllm import LLM, SamplingParams

print(SamplingParams(max_tokens=2), LLM)
