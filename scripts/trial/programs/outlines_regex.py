# requires: outlines transformers
import outlines
from outlines.types import Regex

print(outlines, Regex(r"[0-9]+"))
