"""Map the frames of an error to packages, modules to distributions, and distributions to their installed version.

Many distributions share a top-level module (``google``, ``nvidia``): there the submodule decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from compat.checks.code import providers
from compat.interfaces.table import open_table, tracked
from compat.model import Finding, Fix, normalized
from compat.records import cached
from compat.versions import is_version, key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import Frame, RaisedError
    from compat.rules.facts import Facts


_PURE: dict[str, dict[str, str]] = {
    "google": {
        "protobuf": "protobuf", "oauth2": "google-auth", "api": "googleapis-common-protos", "rpc": "googleapis-common-protos",
        "type": "googleapis-common-protos", "longrunning": "googleapis-common-protos", "iam": "grpc-google-iam-v1",
        "colab": "google-colab", "resumable_media": "google-resumable-media", "api_core": "google-api-core",
    },
    "opentelemetry": {
        "semconv": "opentelemetry-semantic-conventions", "semconv_ai": "opentelemetry-semantic-conventions-ai",
        "exporter": "opentelemetry-exporter-otlp", "sdk": "opentelemetry-sdk", "trace": "opentelemetry-api",
        "context": "opentelemetry-api", "metrics": "opentelemetry-api", "propagate": "opentelemetry-api",
    },
    "cuda": dict.fromkeys(("cuda", "cudart", "nvrtc", "ccuda", "ccudart", "cnvrtc"), "cuda-python<13"),
    "azure": {}, "backports": {}, "jaraco": {}, "ruamel": {}, "zope": {},
}  # fmt: skip
"""Namespaces without a separate distribution. Submodules not listed here are in the distribution NAMESPACE-SUBMODULE."""
_ADDED: dict[str, dict[str, str]] = {
    "megatron": {"bridge": "megatron-bridge", "energon": "megatron-energon"},
    "optimum": {
        name: f"optimum-{name}" for name in ("quanto", "intel", "habana", "neuron", "amd", "nvidia", "tpu", "executorch")
    },
    "nemo": dict.fromkeys(("collections", "core", "lightning", "utils"), "nemo-toolkit"),
}
"""Packages to which other distributions add submodules."""
_DEEPER = ("google.cloud", "google.ai", "azure.ai", "azure.mgmt", "azure.storage")
"""Namespaces within a namespace."""


def distribution_of_submodule(module: str) -> tuple[str, str] | None:
    """Return the distribution of a submodule of a shared package, and the releases that have it ("" for all).

    >>> distribution_of_submodule("google.cloud.storage.blob"), shared("cuda.cudart"), shared("torch.nn"), shared("google")
    (('google-cloud-storage', ''), ('cuda-python', '<13'), None, None)
    """
    parts = module.split(".")
    if len(parts) < 2:
        return None
    listed = {**_PURE, **_ADDED}.get(parts[0], {}).get(parts[1])
    if listed is not None:
        name, sign, bound = listed.partition("<")
        return name, f"{sign}{bound}"
    if parts[0] not in _PURE:
        return None
    depth = 3 if ".".join(parts[:2]) in _DEEPER else 2
    return ("-".join(parts[:depth]).replace("_", "-"), "") if len(parts) >= depth else None


MODELS_OWN = "transformers_modules"
"""The package name under which transformers imports a model's own code (``trust_remote_code``)."""
_INSTALLED = ("site-packages", "dist-packages")
_SOURCES = ("src", "python")
_GENERATED = ("unsloth_compiled_cache", "unsloth")
"""The folder of the trainers that unsloth generates on import, and a word in the names of its generated functions."""
_GENERATED_MODULE = "Unsloth"
"""How the names of these trainers' modules begin: ``UnslothGRPOTrainer``."""


def distribution_of_module(module: str) -> str:
    """Return the distribution that most likely provides a module, by its top-level name or that of a shared package."""
    if (among := distribution_of_submodule(module)) is not None:
        return among[0]
    top = module.partition(".")[0]
    known = providers(top)
    if not known and top.startswith(_GENERATED_MODULE):
        return _GENERATED[1]
    return known[0] if known else normalized(top)


def package_of(frame: Frame) -> str | None:
    """Return the top-level package of a frame, by its folder name; ``None`` for user code and the standard library."""
    parts = frame.file.replace("\\", "/").split("/")
    folder, word = _GENERATED
    if folder in parts or (frame.file.startswith("<") and word in (frame.function or "")):
        return word
    if MODELS_OWN in parts:
        return MODELS_OWN
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] in _INSTALLED:
            return parts[at + 1].removesuffix(".py")
    if parts[0] in ("...", "…") and len(parts) > 2:
        return parts[1]
    if len(parts) > 1 and _is_module(parts):
        return parts[0]
    # a checkout that is run in place: src/axolotl/cli/train.py, vllm/vllm/engine/llm_engine.py
    for at in range(len(parts) - 2, 0, -1):
        if providers(parts[at]) and (parts[at - 1] in _SOURCES or parts[at - 1].lower() == parts[at] or _is_module(parts[at:])):
            return parts[at]
    return None


def _is_module(parts: list[str]) -> bool:
    """Whether a relative path is that of a module in the tables, as summaries shorten it: ``peft/import_utils.py``."""
    return ".".join(parts).removesuffix(".py").removesuffix(".__init__") in _modules(parts[0])


@cached
def _modules(top: str) -> frozenset[str]:
    """The modules of any release of the package in the tables that provides a top-level module."""
    table = open_table(tracked()[top]) if top in tracked() else None
    return frozenset() if table is None else frozenset(table.modules())


_OF_TORCH = ("torch", "nvidia", "triton")


def distribution_in(path: str) -> list[str]:
    """Return the distribution whose compiled module a path names by its folder among the installed packages, if any."""
    parts = path.replace("\\", "/").split("/")
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] in _INSTALLED:
            module = parts[at + 1].partition(".")[0]
            return [distribution_of_module(module)] if module and module not in _OF_TORCH else []
    return []


def innermost_packages(error: RaisedError) -> tuple[str, ...]:
    """Return the innermost two packages among the frames; the one that failed comes last."""
    found: list[str] = []
    frames = list(error.frames)
    while error.exception == "AttributeError" and len(frames) > 1 and (frames[-1].function or "").endswith(_GETTERS):
        frames.pop()  # torch's Module raises the error for the line that asks or deletes
    for frame in reversed(frames):
        name = package_of(frame)
        if name is not None and name not in found:
            found.append(name)
        if len(found) == 2:
            break
    return tuple(reversed(found))


_GETTERS = ("__getattr__", "__getattribute__", "__delattr__")
_FORWARDS = re.compile(r"\(\s*(?:\w+, ?)?\*\w+, ?\*\*\w+\s*\)")


def calling_package(error: RaisedError) -> tuple[str | None, str | None]:
    """Return the package that makes the failed call, and the package of decorators that only forward its arguments."""
    frames = list(error.frames)
    forwarding = None
    while frames and frames[-1].code is not None and _FORWARDS.search(frames[-1].code):
        forwarding = package_of(frames.pop()) or forwarding
    return (package_of(frames[-1]) if frames else None), forwarding


def version_of(name: str, facts: Facts) -> str | None:
    """Return the installed version of a distribution, or ``None``."""
    found = facts.package(name)
    return found[0].version if isinstance(found, list) and found else None


def is_before(version: str | None, release: str) -> bool:
    """Whether an installed version is known, and older than a release."""
    return version is not None and is_version(version) and key_of(version) < key_of(release)


def modules_of(error: RaisedError) -> list[str]:
    """Return the modules of the innermost two packages, the one that failed first."""
    return [name.replace("-", "_") for name in reversed(innermost_packages(error))]


def module_of_frame(error: RaisedError) -> list[str]:
    """Return the module of the innermost frame, if it is in an installed package that the tables have."""
    frames = [frame for frame in error.frames if not (frame.function or "").endswith(_GETTERS)]
    parts = frames[-1].file.replace("\\", "/").removesuffix(".py").split("/") if frames else []
    at = max((at for at, part in enumerate(parts) if part in _INSTALLED), default=-1) + 1
    return [".".join(parts[at:])] if at and parts[at] in tracked() and all(map(str.isidentifier, parts[at:])) else []


def location_text(error: RaisedError) -> str:
    return f"the error on line {error.line} of the text"


def inferred(
    rule: str,
    title: str,
    why: str,
    packages: Mapping[str, str | None],
    fixes: tuple[Fix, ...],
    here: str,
    *,
    origin: str = "surface",
    facts: tuple[str, ...] = (),
    evidence: tuple[str, ...] = (),
) -> Finding:
    """Build the finding for an error that was raised: the crash is certain, its cause is inferred from the message."""
    return Finding(
        rule=rule, origin=origin, verdict="possible", title=title, why=why,
        confidence="reported", packages=packages, facts=facts, fixes=fixes, evidence=evidence, here=here,
    )  # fmt: skip


def called_function(function: str, error: RaisedError) -> str | None:
    """Return the function that refused an argument; Python before 3.10 does not name the class, but the failing line may."""
    if function != "__init__":
        return function
    found = re.search(r"\b([A-Z]\w{2,60})\(", error.code)
    return None if found is None else f"{found[1]}.__init__"


def written_before(owner: str, error: RaisedError) -> list[str]:
    """Return the module that the failing line writes before a class: ``gguf`` in ``gguf.MODEL_ARCH.ARCEE``."""
    return re.findall(rf"(?<![\w.])([a-z_]\w{{0,40}}(?:\.[a-z_]\w{{0,40}}){{0,6}})\.{owner}\b", error.code)[:1]
