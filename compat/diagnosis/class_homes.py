"""Where the classes and functions are that errors name without their module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compat.checks.code import releases
from compat.interfaces.needs import Need
from compat.interfaces.table import tracked

LIKELY = (
    "trl", "transformers", "peft", "accelerate", "datasets", "vllm", "sentence_transformers", "diffusers", "unsloth",
    "huggingface_hub", "deepspeed", "tokenizers", "pytorch_lightning",
)  # fmt: skip
"""Modules whose classes and functions appear in errors without the module's name."""
OF_TORCH = (
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.utils", "torch.nn.parallel", "torch.optim", "torch.utils.data",
    "torch.utils.checkpoint", "torch.amp", "torch.distributed", "torch.distributed.fsdp", "torch.distributed.device_mesh",
)  # fmt: skip
"""Modules of torch whose classes and functions appear in errors without the module's name; asked after all others."""
_SHORT_NAMES = {"FSDP": "FullyShardedDataParallel", "DDP": "DistributedDataParallel"}
"""The names under which nearly all code imports these classes."""


def home(name: str, modules: Sequence[str]) -> str | None:
    """Return the module that has a name: the first one of :func:`homes`."""
    return next(homes(name, modules), None)


def homes(name: str, modules: Sequence[str], last: Sequence[str] = ()) -> Iterator[str]:
    """Yield the modules that have a name: of ``modules``, :data:`LIKELY`, the model that the name begins with, and ``last``."""
    known, packages = releases(), tracked()
    for module in dict.fromkeys((*modules, *LIKELY, *model_modules(name), *last)):
        top = module.partition(".")[0]
        table = known.table(packages[top]) if top in packages else None
        need = Need("import", module, name)
        # earlier releases are sampled: every twelfth is tried
        if table is not None and any(known.answer(table.package, version, need).met for version in table.versions[::-12]):
            yield module


def model_modules(name: str) -> Iterator[str]:
    """Yield the modules of the model in transformers whose name a class begins with: ``LlamaRotaryEmbedding``."""
    table = releases().table("transformers") if name[:1].isupper() else None
    prefix, word = "transformers.models.", name.lower()
    kinds = {module[len(prefix) :] for module in (table.modules() if table else ()) if module.startswith(prefix)}
    fitting = [kind for kind in kinds if "." not in kind and len(kind) > 2 and word.startswith(kind.replace("_", ""))]
    if fitting:
        kind = max(fitting, key=len)
        yield from (f"{prefix}{kind}.{part}_{kind}" for part in ("modeling", "configuration", "tokenization", "processing"))


def in_full(function: str) -> str:
    """Return a class or method with the class's full name, where nearly all code imports it under a short one."""
    top, dot, method = function.partition(".")
    return f"{_SHORT_NAMES.get(top, top)}{dot}{method}"


def with_module(function: str, modules: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Split the module off a function that is named with it (``torch.load``); it is then the first of ``modules``."""
    *parts, last = function.split(".")
    if not parts or parts[0] not in tracked():
        return function, modules
    at = next((number for number, part in enumerate(parts) if not part.islower()), len(parts))
    return ".".join((*parts[at:], last)), (".".join(parts[:at]), *modules)
