# requires: flash-linear-attention
import fla
from fla.models import GLAConfig

print(fla, GLAConfig())
