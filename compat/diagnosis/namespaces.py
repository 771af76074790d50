"""Top-level modules that many distributions share, and which of them has a submodule."""

from __future__ import annotations

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
