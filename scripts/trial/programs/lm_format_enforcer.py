# requires: lm-format-enforcer transformers
from lmformatenforcer import JsonSchemaParser, RegexParser
from lmformatenforcer.integrations.transformers import build_transformers_prefix_allowed_tokens_fn

print(JsonSchemaParser({"type": "object"}), RegexParser("[0-9]+"), build_transformers_prefix_allowed_tokens_fn)
