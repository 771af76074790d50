"""torch's nn.DataParallel with several "GPUs" that are all the CPU.

Real: DataParallel.forward, scatter_kwargs, the Scatter function and comm.scatter, and gather's walk over the outputs.
Emulated, because a CPU build has no CUDA devices:
  torch._C._scatter   splits with Tensor.chunk, which is what the C++ function of that name does before it copies;
  Gather              concatenates, as torch._C._gather does; scalars become vectors first, as there;
  replicate           every replica is the module itself;
  parallel_apply      one replica after the other.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.parallel.scatter_gather

forwards: list[dict[str, Any]] = []
"""One entry a forward pass: rows of the batch, rows that each replica received, the kind of num_items_in_batch, and
whether the replicas share one forward: a forward that was set on the module itself stays bound to it in every copy, so
that with real GPUs the copies would reach for the weights on the first."""


def install(gpus: int) -> None:
    """From now on torch.nn.DataParallel spreads its input over `gpus` replicas."""

    class DataParallelOnCpu(torch.nn.DataParallel):  # type: ignore[misc, unused-ignore]
        def __init__(self, module: torch.nn.Module, *_args: object, **_kwargs: object) -> None:
            super().__init__(module)
            self.device_ids, self.output_device, self.dim = list(range(gpus)), 0, 0
            self.src_device_obj = torch.device("cpu")

        def scatter(self, inputs: Any, kwargs: dict[str, Any], device_ids: list[int]) -> Any:
            seen = {
                "num_items_in_batch": kind(kwargs.get("num_items_in_batch")),
                "rows": len(kwargs["input_ids"]),
                "replicas": [],
                "shared_forward": "forward" in vars(self.module),
            }
            forwards.append(seen)
            scattered, scattered_kwargs = super().scatter(inputs, kwargs, device_ids)
            seen["replicas"] = [len(part["input_ids"]) for part in scattered_kwargs]
            return scattered, scattered_kwargs

        def replicate(self, module: Any, device_ids: list[int]) -> list[Any]:
            return [module] * len(device_ids)

        def parallel_apply(self, replicas: list[Any], inputs: Any, kwargs: Any) -> list[Any]:
            return [replica(*args, **kws) for replica, args, kws in zip(replicas, inputs, kwargs, strict=True)]

    torch._C._scatter = _scatter
    torch.nn.parallel.scatter_gather.Gather = Gather
    torch.nn.DataParallel = DataParallelOnCpu


def kind(number: object) -> str:
    """How num_items_in_batch arrived: "absent", "number", or "tensor" and its shape."""
    if number is None:
        return "absent"
    return f"tensor{list(number.shape)}" if isinstance(number, torch.Tensor) else "number"


def lost_rows() -> int:
    """How many rows of all batches reached no replica."""
    return sum(seen["rows"] - sum(seen["replicas"]) for seen in forwards)


def _scatter(tensor: torch.Tensor, devices: list[int], chunk_sizes: list[int] | None, dim: int, _streams: object) -> list[Any]:
    return list(tensor.split(chunk_sizes, dim) if chunk_sizes else tensor.chunk(len(devices), dim))


class Gather:
    @staticmethod
    def apply(_device: int, dim: int, *outputs: torch.Tensor) -> torch.Tensor:
        return torch.cat([output.view(1) if output.dim() == 0 else output for output in outputs], dim)
