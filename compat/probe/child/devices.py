"""Several devices together: copies between them, collectives over all of them, and the share of each replica."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType

import torch
import torch.nn.parallel.scatter_gather

from . import training_job
from .job import Job, NotHere, Probe, Verdict, failed, is_installed, passed
from .training_job import RankFailed, run_ranks, write_job

_Arguments = tuple[torch.Tensor, ...]
_Keywords = dict[str, torch.Tensor]


def probes(job: Job) -> Iterator[Probe]:
    yield "copies", partial(copies, job)
    yield "collectives", partial(collectives, job)
    if job.on_cuda:
        yield "collectives-without-p2p", partial(collectives, job, p2p=False)
    yield "dataparallel", partial(shares, job)
    yield "trainer-dataparallel", partial(trainer_shares, job)


def _count(job: Job) -> int:
    count: int = job.values.get("devices") or 0
    return min(count, torch.cuda.device_count()) if job.on_cuda else count


def copies(job: Job) -> Verdict:
    """Test that copies between every ordered pair of devices, directly and through the host, are bit-exact."""
    count = _count(job)
    if count < 2:
        job.needs_accelerator()
        raise NotHere("there is only one accelerator")
    generator = torch.Generator().manual_seed(job.seed)
    numbers = torch.randint(-(2**62), 2**62, (job.values.get("copy_elements", 2**22),), generator=generator)
    speeds: dict[str, float] = {}
    peers = 0
    for source in range(count):
        there = numbers.to(f"cuda:{source}")
        for target in range(count):
            if source == target:
                continue
            peers += torch.cuda.can_device_access_peer(source, target)
            for way, copy in (("directly", torch.Tensor.to), ("through the host", _through_host)):
                torch.cuda.synchronize(source)
                began = time.perf_counter()
                arrived = copy(there, f"cuda:{target}")
                torch.cuda.synchronize(target)
                seconds = time.perf_counter() - began
                wrong = (arrived.cpu() != numbers).nonzero()
                if len(wrong):
                    at = int(wrong[0])
                    why = (f"of {len(numbers)} numbers copied {way} from cuda:{source} to cuda:{target}, {len(wrong)} arrived "
                           f"changed: number {at} is {int(arrived[at])}, not {int(numbers[at])}")  # fmt: skip
                    fix = "disable IOMMU translation, or set NCCL_P2P_DISABLE=1" if way == "directly" else None
                    return failed(why, {"wrong": len(wrong)}, {"wrong": 0}, fix=fix)
                speeds[f"{source}-{target} {way}"] = round(numbers.numel() * 8 / seconds / 1e9, 1)
    return passed({"pairs": count * (count - 1), "peer_to_peer": peers, "wrong": 0, "gb_s": speeds}, {"wrong": 0})


def _through_host(there: torch.Tensor, target: str) -> torch.Tensor:
    return there.to("cpu").pin_memory().to(target)


def collectives(job: Job, *, p2p: bool = True) -> Verdict:
    """Test all-reduce, all-gather and broadcast in separate processes: NCCL over all devices, gloo on the CPU."""
    distributed = torch.distributed
    if not distributed.is_available():
        raise NotHere("this torch was built without torch.distributed")
    backend = "nccl" if job.on_cuda else "gloo"
    world = _count(job) if job.on_cuda else 2
    if job.on_cuda and world < 2:
        raise NotHere("there is only one accelerator")
    if job.on_cuda and not distributed.is_nccl_available():
        raise NotHere("this torch was built without NCCL")
    limit = job.values["limit"] * 0.4
    path = write_job(job, "collectives", {"backend": backend, "limit": limit, "megabytes": 64 if job.on_cuda else 8})
    try:
        events = run_ranks(path, world, limit, {} if p2p else {"NCCL_P2P_DISABLE": "1"})
    except RankFailed as problem:
        return failed(f"{backend}, {world} processes: {problem}")
    reported = [event for event in events if event["event"] == "rank"]
    ranks = sorted(event["rank"] for event in reported)
    wrong = [text for event in reported for text in event["wrong"]]
    if ranks != list(range(world)):
        why = f"{backend}, {world} processes: only ranks {ranks} finished"
        return failed(why, {"ranks": len(ranks)}, {"ranks": world})
    if wrong:
        return failed(f"{backend}, {world} processes: {wrong[0]}", {"wrong": len(wrong)}, {"wrong": 0})
    speed = round(min(event["gb_s"] for event in reported), 2)
    return passed({"processes": world, "backend": backend, "wrong": 0, "all_reduce_gb_s": speed}, {"wrong": 0})


# --- Whether ``nn.DataParallel`` gives every replica its share of a batch: the silent data loss under plain ``python``.
#
# A one-element tensor passed as keyword argument cannot be split over several devices: torch then starts only as many
# replicas as the shortest argument has parts, and silently drops the rest of the batch. transformers' Trainer passed
# such a ``num_items_in_batch`` from 4.51.0 to 4.56.2.
#
# With fewer than two GPUs, torch's own code runs with the CPU as every device: DataParallel.forward, scatter_kwargs and
# the Scatter function are real; ``torch._C._scatter`` splits with ``Tensor.chunk``, as the C++ function does before it copies,
# and replicas run sequentially.


GPUS, ROWS = 2, 3


def shares(job: Job) -> Verdict:
    """Test torch alone: the replicas together must receive the whole batch, in order."""
    count = (job.values.get("devices") or 0) if job.on_cuda else 0
    real = count >= 2
    seen: list[tuple[int, list[int]]] = []
    module, gpus = _Seen(), count if real else GPUS
    parallel = _noting(gpus, seen, emulated=not real)(module.to("cuda:0") if real else module)
    batch = torch.arange(gpus * ROWS * 4.0).view(-1, 4)
    with torch.no_grad():
        result = parallel(input_ids=batch.to("cuda:0") if real else batch)
    if tuple(result.shape) != tuple(batch.shape) or not torch.equal(result.cpu(), batch.cpu() + 1):
        why = f"{len(batch)} rows went into nn.DataParallel; its {gpus} replicas got {seen[0][1]}, and different rows came back"
        return failed(why, {"rows": len(result)}, {"rows": len(batch)})
    return passed({"rows_of_replicas": seen[0][1], "emulated": not real}, {"rows": len(batch)})


class _Seen(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return input_ids + self.weight


def _noting(gpus: int, seen: list[tuple[int, list[int]]], *, emulated: bool) -> type[torch.nn.DataParallel]:
    """Return a ``nn.DataParallel`` that records the rows of each batch and replica; ``emulated``: all on the CPU."""

    class Noting(torch.nn.DataParallel):  # type: ignore[misc, unused-ignore]
        def scatter(
            self, inputs: _Arguments, kwargs: _Keywords, device_ids: list[int]
        ) -> tuple[list[_Arguments], list[_Keywords]]:
            parts, named = super().scatter(inputs, kwargs, device_ids)
            seen.append((len(kwargs["input_ids"]), [len(part["input_ids"]) for part in named]))
            return parts, named

    class OnCpu(Noting):
        def __init__(self, module: torch.nn.Module, *_args: object, **_named: object) -> None:
            super().__init__(module)
            self.device_ids, self.output_device, self.dim = list(range(gpus)), 0, 0
            self.src_device_obj = torch.device("cpu")

        def scatter(
            self, inputs: _Arguments, kwargs: _Keywords, device_ids: list[int]
        ) -> tuple[list[_Arguments], list[_Keywords]]:
            with _replaced(torch._C, "_scatter", _chunks):
                return super().scatter(inputs, kwargs, device_ids)

        def replicate(self, module: torch.nn.Module, device_ids: list[int]) -> list[torch.nn.Module]:
            return [module] * len(device_ids)

        def parallel_apply(
            self, replicas: list[torch.nn.Module], inputs: list[_Arguments], kwargs: list[_Keywords]
        ) -> list[torch.Tensor]:
            return [replica(*args, **named) for replica, args, named in zip(replicas, inputs, kwargs)]

        def gather(self, outputs: list[torch.Tensor], output_device: int) -> torch.Tensor:
            with _replaced(torch.nn.parallel.scatter_gather, "Gather", _Concatenated):
                return super().gather(outputs, output_device)

    return OnCpu if emulated else Noting


@contextmanager
def _replaced(module: ModuleType, name: str, value: object) -> Iterator[None]:
    """Temporarily replace a module attribute, which CPU-only builds may lack."""
    before = getattr(module, name, None)
    setattr(module, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(module, name)
        else:
            setattr(module, name, before)


def _chunks(
    tensor: torch.Tensor, devices: list[int], sizes: list[int] | None, dim: int, _streams: object
) -> list[torch.Tensor]:
    return list(tensor.split(sizes, dim) if sizes else tensor.chunk(len(devices), dim))


class _Concatenated:
    @staticmethod
    def apply(_device: object, dim: int, *outputs: torch.Tensor) -> torch.Tensor:
        return torch.cat([output.view(1) if output.dim() == 0 else output for output in outputs], dim)


def trainer_shares(job: Job) -> Verdict:
    """Test one step of transformers' Trainer, as plain ``python train.py`` runs it on a machine with several GPUs."""
    if not is_installed("transformers") or not is_installed("accelerate"):
        raise NotHere("transformers and accelerate are not both installed")
    count = (job.values.get("devices") or 0) if job.on_cuda else 0
    gpus = GPUS if count < 2 else count
    rows, replicas = _one_step(gpus, ROWS, emulated=count < 2, folder=job.results + ".out")
    lost = rows - sum(replicas)
    measured = {"rows": rows, "rows_of_replicas": replicas, "emulated": count < 2}
    if lost:
        import transformers

        why = (f"of a batch of {rows} rows, nn.DataParallel gave its {gpus} replicas {replicas}: {lost} rows reached none of "
               f"them (transformers {transformers.__version__} under plain python)")  # fmt: skip
        fix = 'pip install "transformers>=4.57.1", or start it with accelerate launch'
        return failed(why, measured, {"rows_of_replicas": rows}, fix=fix)
    return passed(measured, {"rows_of_replicas": rows})


def _one_step(gpus: int, rows_each: int, *, emulated: bool, folder: str) -> tuple[int, list[int]]:
    """Return the rows of the batch, and the rows that each replica received."""
    import transformers

    model, tokens = training_job.model(), training_job.tokenizer()
    encoded = [tokens(training_job.text(row))["input_ids"] for row in range(gpus * rows_each)]
    arguments = transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=rows_each, max_steps=1, report_to=[], save_strategy="no",
        disable_tqdm=True, **({"use_cpu": True} if emulated else {}),
    )  # fmt: skip
    arguments._n_gpu = gpus  # what it counts on a machine with that many
    seen: list[tuple[int, list[int]]] = []
    before = torch.nn.DataParallel
    torch.nn.DataParallel = _noting(gpus, seen, emulated=emulated)
    try:
        trainer = transformers.Trainer(
            model=model, args=arguments, train_dataset=[{"input_ids": row, "labels": row} for row in encoded],
            data_collator=transformers.default_data_collator,
        )  # fmt: skip
        trainer.train()
    finally:
        torch.nn.DataParallel = before
    return seen[0]
