# requires: autotrain-advanced
import autotrain
from autotrain.trainers.clm.__main__ import train

print(autotrain, train)
