# requires: llamafactory
from llamafactory.hparams import get_train_args
from llamafactory.train.tuner import run_exp

print(get_train_args, run_exp)
