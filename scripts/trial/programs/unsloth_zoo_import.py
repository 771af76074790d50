# requires: unsloth-zoo
import unsloth_zoo.tokenizer_utils

print(unsloth_zoo)
