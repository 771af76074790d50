# requires: guidance
import guidance
from guidance import gen, models, select

print(guidance, gen("answer", max_tokens=2), select(["a", "b"]), models)
