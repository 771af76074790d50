# requires: ray[tune,train]
import ray
from ray import train, tune
from ray.train.torch import TorchTrainer

print(ray.__version__, train, tune, TorchTrainer)
