"""GPU memory that a model needs: an estimate from published formulas, reported as a warning at most (docs/memory.md).

Weights, gradients and Adam's moments are counted exactly; activations follow Korthikanti et al. (2022) without the attention
scores, which fused attention does not store. Library buffers, fragmentation and longer sequences are not included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compat.model import Environment, Finding, Fix
from compat.records import record
from compat.workload.model_files import ModelSize

GIB = 2**30
_TOKENS = 4096
_RANK = 16
_CONTEXT = 1 * GIB
"""Bytes for the CUDA context, loaded kernels and the cuBLAS workspace."""
_NF4 = 0.5 + 0.127 / 8
"""Bytes per 4-bit weight with double quantization (Dettmers et al. 2023, section 3)."""
_LAYER = 34
"""Activation bytes per layer, token and unit of hidden size (Korthikanti et al. 2022, section 4.1)."""
_FITS = 0.92
"""The fraction of a device's memory that an estimate may use; allocators cannot use all of it."""
_WHOLE = ("zero-3", "fsdp", "fsdp2")
USES = {"inference": "inference", "lora": "LoRA", "qlora": "QLoRA", "full": "full training"}
_OF_TASK = {"inference": "inference", "serve": "inference", "lora": "lora", "qlora": "qlora"}


@record(frozen=True)
class Estimate:
    """Bytes on each of ``devices`` for one use; ``shared`` is the sharding method, "" for no sharding."""

    use: str
    devices: int
    shared: str
    weights: float
    gradients: float
    optimizer: float
    activations: float
    kv_cache: float

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimizer + self.activations + self.kv_cache + _CONTEXT

    def fits(self, memory: float | None) -> bool | None:
        """Whether it fits into this many bytes of device memory; ``None`` if the size is unknown."""
        return None if memory is None else self.total <= memory * _FITS

    def to_json(self, memory: float | None) -> dict[str, object]:
        """Plain JSON values; sizes in bytes."""
        parts = ("weights", "gradients", "optimizer", "activations", "kv_cache", "total")
        return {"use": self.use, "devices": self.devices, "shared": self.shared,
                **{name: round(getattr(self, name)) for name in parts}, "fits": self.fits(memory)}  # fmt: skip


@record(frozen=True)
class Memory:
    """The estimates for one model on the devices of an environment; ``device`` is the memory of the smallest one, in bytes."""

    model: ModelSize
    tokens: int
    batch: int
    device: int | None
    estimates: tuple[Estimate, ...]

    def to_json(self) -> dict[str, object]:
        return {"model": self.model.kind, "parameters": self.model.parameters, "read_from": self.model.files,
                "tokens": self.tokens, "batch": self.batch, "device": self.device,
                "estimates": [each.to_json(self.device) for each in self.estimates]}  # fmt: skip

    def rows(self) -> list[str]:
        """The model and its estimates as lines of text."""
        model = self.model
        size = f"{model.kind or 'a model'}, {model.parameters / 1e9:.2f} billion parameters ({model.files})"
        lines = [f"{size}, {self.batch} × {self.tokens} tokens"]
        for each in self.estimates:
            parts = [(each.weights, "weights"), (each.gradients, "gradients"), (each.optimizer, "optimizer"),
                     (each.activations, "activations"), (each.kv_cache, "KV cache")]  # fmt: skip
            said = " + ".join(f"{size / GIB:.1f} {name}" for size, name in parts if size >= 0.05 * GIB)
            verdict = {True: ", fits", False: ", does not fit", None: ""}[each.fits(self.device)]
            of = f" of {self.device / GIB:.0f}" if self.device else ""
            on = f" on each of {each.devices} ({each.shared})" if each.devices > 1 else ""
            lines.append(f"{USES[each.use]}{on}: {each.total / GIB:.1f}{of} GiB{verdict} ({said} + 1 CUDA)")
        return lines


def estimate_memory(model: ModelSize, environment: Environment) -> Memory:
    """Estimate inference, LoRA, QLoRA and full training on one device, and on all devices together."""
    work = environment.workload
    batch = (work and work.batch_size) or 1
    tokens = min(model.positions or _TOKENS, _TOKENS)
    checkpointed = "gradient-checkpointing" not in ((work and work.features_absent) or ())
    sizes = [each.memory_mib for each in environment.accelerators or () if each.memory_mib]
    devices = max(len(environment.accelerators or ()), 1)
    stage = next((name for name in ("zero-1", "zero-2", *_WHOLE) if name in ((work and work.features) or ())), "zero-3")
    seen = tokens * batch
    found = []
    for use in USES:
        for count, shared in (
            (1, ""),
            *(((devices, "tensor-parallel" if use == "inference" else stage),) if devices > 1 else ()),
        ):
            found.append(_estimate(model, use, seen, count, shared, checkpointed=checkpointed))
    return Memory(model, tokens, batch, min(sizes) * 2**20 if sizes else None, tuple(found))


def _estimate(model: ModelSize, use: str, seen: int, devices: int, shared: str, *, checkpointed: bool) -> Estimate:
    tables = sum(each.rows * each.columns * each.count for each in model.matrices if each.embedding)
    adapters = sum(_RANK * (each.rows + each.columns) * each.count for each in model.matrices if not each.embedding)
    weights = model.parameters * 2.0
    if use == "inference" and model.stored is not None:  # float32 files are loaded in 16 bits, quantized ones unchanged
        weights = min(weights, model.stored)
    gradients = optimizer = kv_cache = 0.0
    if use == "inference":
        kv_cache = seen * model.cached * 2.0
        activations = seen * model.hidden * 2.0 * 4
    else:
        trained = model.parameters if use == "full" else adapters
        if use == "qlora":
            weights = (model.parameters - tables) * _NF4 + tables * 2.0
        # trained parameters are kept in float32, with a gradient and the two Adam moments
        weights = trained * 4.0 if use == "full" else weights + trained * 4.0
        gradients, optimizer = trained * 4.0, trained * 8.0
        kept = model.layers * 2 + _LAYER if checkpointed else model.layers * _LAYER
        # the loss is computed in float32 over the whole vocabulary, and its gradient is as large
        activations = seen * model.hidden * float(kept) + seen * model.vocabulary * 8.0
    if shared:
        optimizer /= devices
        gradients /= 1 if shared == "zero-1" else devices
        weights /= devices if shared in (*_WHOLE, "tensor-parallel") else 1
        kv_cache /= devices
    return Estimate(use, devices, shared, weights, gradients, optimizer, activations, kv_cache)


def judge_memory(memory: Memory, environment: Environment) -> Iterator[Finding]:
    """Yield a warning if no estimate for the given task fits or, if the task is unknown, none fits at all."""
    work = environment.workload
    task = (work and work.task) or ""
    features = (work and work.features) or ()
    absent = (work and (work.features_complete or "peft" in (work.features_absent or ()))) or False
    uses: tuple[str, ...] = ("full",) if absent else ("lora", "qlora", "full")  # any of these may be run unless ruled out
    if task in _OF_TASK:
        uses = (_OF_TASK[task],)
    elif "peft" in features:
        uses = ("qlora" if work and work.quantization == "4bit" else "lora",)
    chosen = [each for each in memory.estimates if each.use in uses] if task else list(memory.estimates)
    if any(each.fits(memory.device) is not False for each in chosen):
        return
    least = min(chosen, key=lambda each: each.total)
    fitting = next((each for each in _smallest_first(memory.estimates) if each.fits(memory.device)), None)
    where = f" on {least.devices} devices" if least.devices > 1 else ""
    text = f"{USES[fitting.use]} fits, by the same estimate" if fitting else "use more or larger GPUs, or a smaller model"
    yield Finding(
        rule="memory-estimate", origin="estimate", severity="warning", effect="memory",
        title=f"{USES[least.use][0].upper()}{USES[least.use][1:]} of this model is estimated not to fit",
        why="Weights, gradients, optimizer states, activations and the KV cache together are larger than a device's memory. "
        "This is an estimate; what libraries allocate in addition is not included.",
        confidence="reported", facts=("accelerators", "workload"),
        fixes=(Fix("config", text=text), Fix("config", text="shorter sequences, a smaller batch, or offloading to the CPU")),
        evidence=("https://arxiv.org/abs/2205.05198", "https://arxiv.org/abs/1910.02054"),
        here=f"{least.total / GIB:.0f} GiB of {(memory.device or 0) / GIB:.0f} GiB{where}",
    )  # fmt: skip


def _smallest_first(estimates: Sequence[Estimate]) -> list[Estimate]:
    return sorted((each for each in estimates if each.use != "inference"), key=lambda each: -each.total)
