"""Faults of processes: ranks and trainers that go their own way, and ends in the middle of a probe or of an import."""

from __future__ import annotations

import os
import sys
import time

from compat_test_faults import fault


def _rank():
    return int(os.environ.get("RANK", "0"))


@fault("rank-other-data", "torch")
def rank_other_data(torch):
    """The second rank adds one to a number of what it sends."""
    real = torch.distributed.all_reduce

    def all_reduce(numbers, *more, **named):
        if _rank() == 1 and numbers.dtype == torch.int64 and len(numbers) > 100:
            numbers[100] += 1
        return real(numbers, *more, **named)

    torch.distributed.all_reduce = all_reduce


@fault("rank-order", "torch")
def rank_order(torch):
    real = torch.distributed.all_gather

    def all_gather(parts, numbers, *more, **named):
        result = real(parts, numbers, *more, **named)
        parts.reverse()
        return result

    torch.distributed.all_gather = all_gather


@fault("rank-hangs", "torch")
def rank_hangs(torch):
    real = torch.distributed.broadcast

    def broadcast(*more, **named):
        if _rank() == 1:
            time.sleep(3600)
        return real(*more, **named)

    torch.distributed.broadcast = broadcast


@fault("rank-dies", "torch")
def rank_dies(torch):
    def broadcast(*more, **named):
        if _rank() == 1:
            os.abort()
        time.sleep(3600)

    torch.distributed.broadcast = broadcast


@fault("replica-dropped", "torch.nn.parallel.data_parallel")
def replica_dropped(parallel):
    """One argument has a single part, so that a single replica is started."""
    real = parallel.scatter_kwargs

    def scatter_kwargs(*more, **named):
        inputs, kwargs = real(*more, **named)
        return inputs[:1], kwargs[:1]

    parallel.scatter_kwargs = scatter_kwargs


@fault("num-items", "transformers.trainer")
def num_items(trainer):
    """What transformers 4.51.0 to 4.56.2 did: num_items_in_batch reaches DataParallel as a tensor of one element."""
    torch = sys.modules["torch"]
    real = trainer.Trainer.compute_loss

    def compute_loss(self, model, inputs, *more, **named):
        count = torch.tensor([7])
        return real(self, model, {**inputs, "num_items_in_batch": count}, **{**named, "num_items_in_batch": None})

    trainer.Trainer.compute_loss = compute_loss


@fault("trainer-other-data", "transformers.trainer")
def trainer_other_data(trainer):
    """The second rank shuffles with a seed of its own."""
    real = trainer.Trainer.__init__

    def init(self, *more, **named):
        if _rank() == 1:
            named["args"].seed = named["args"].data_seed = 99
        real(self, *more, **named)

    trainer.Trainer.__init__ = init


@fault("trainer-unsynced", "torch.nn.parallel.distributed")
def trainer_unsynced(distributed):
    """Gradients stay on the rank that computed them."""
    parallel = distributed.DistributedDataParallel
    real = parallel.forward

    def forward(self, *more, **named):
        with self.no_sync():
            return real(self, *more, **named)

    parallel.forward = forward


@fault("trainer-nan", "transformers.models.llama.modeling_llama")
def trainer_nan(llama):
    real = llama.LlamaRMSNorm.forward
    llama.LlamaRMSNorm.forward = lambda self, x: real(self, x) * float("nan")


# ends


def _at_attention(torch, ending):
    """Something that happens at the first call of attention, in the middle of a group."""
    torch.nn.functional.scaled_dot_product_attention = lambda *more, **named: ending()


@fault("hang", "torch")
def hang(torch):
    _at_attention(torch, lambda: time.sleep(3600))


@fault("exit", "torch")
def exits(torch):
    _at_attention(torch, lambda: os._exit(3))


@fault("exit-0", "torch")
def exits_zero(torch):
    _at_attention(torch, lambda: os._exit(0))


@fault("segfault", "torch")
def segfault(torch):
    import ctypes

    _at_attention(torch, lambda: ctypes.string_at(0))


@fault("killed", "torch")
def killed(torch):
    _at_attention(torch, lambda: os.kill(os.getpid(), 9))


@fault("memory", "torch")
def memory(torch):
    """More than there is: what is left of the address space is cut off first."""
    import resource

    def ending():
        resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
        return torch.ones(2**31, dtype=torch.float64)

    _at_attention(torch, ending)


@fault("import-hangs", "torch")
def import_hangs(torch):
    time.sleep(3600)


@fault("import-fails", "torch")
def import_fails(torch):
    raise ImportError("libcudart.so.12: cannot open shared object file: No such file or directory")


@fault("import-crashes", "torch")
def import_crashes(torch):
    os.abort()
