"""The GPUs of cloud instance types, from the names that AWS, Google Cloud and Azure document.

Only types whose name decides model and number of GPUs, for training and serving; types with a fraction of a GPU are left out.
The lists: accelerated computing instances (AWS), accelerator-optimized machines (Google Cloud), NC and ND series (Azure).
"""

from __future__ import annotations

_ONE_TO_EIGHT = {
    **dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1), "12xlarge": 4, "24xlarge": 4, "48xlarge": 8,
}  # fmt: skip
_A100, _A100_80, _V100, _V100_32 = "A100-40GB", "A100-80GB", "V100-16GB", "V100-32GB"

_AWS = {
    "p3": (_V100, {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8}), "p3dn": (_V100_32, {"24xlarge": 8}),
    "p4d": (_A100, {"24xlarge": 8}), "p4de": (_A100_80, {"24xlarge": 8}), "p5": ("H100", {"4xlarge": 1, "48xlarge": 8}),
    "p5e": ("H200", {"48xlarge": 8}), "p5en": ("H200", {"48xlarge": 8}), "p6-b200": ("B200", {"48xlarge": 8}),
    "g4dn": ("T4", {**dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1), "12xlarge": 4, "metal": 8}),
    "g5": ("A10G", _ONE_TO_EIGHT), "g6": ("L4", _ONE_TO_EIGHT), "g6e": ("L40S", _ONE_TO_EIGHT),
}  # fmt: skip
"""Family → GPU, and the number of GPUs by size."""

_GOOGLE = {
    "a2-highgpu": _A100, "a2-megagpu": _A100, "a2-ultragpu": _A100_80, "a3-highgpu": "H100", "a3-megagpu": "H100",
    "a3-ultragpu": "H200", "a4-highgpu": "B200",
}  # fmt: skip
"""Family → GPU; the last part of the name is their number (``a2-highgpu-8g``)."""

_WHOLE = {
    **{f"g2-standard-{size}": ("L4", 1) for size in (4, 8, 12, 16, 32)},
    "g2-standard-24": ("L4", 2), "g2-standard-48": ("L4", 4), "g2-standard-96": ("L4", 8),
    "standard_nc6s_v3": (_V100, 1), "standard_nc12s_v3": (_V100, 2), "standard_nc24s_v3": (_V100, 4),
    "standard_nc24rs_v3": (_V100, 4), "standard_nd40rs_v2": (_V100_32, 8), "standard_nc4as_t4_v3": ("T4", 1),
    "standard_nc8as_t4_v3": ("T4", 1), "standard_nc16as_t4_v3": ("T4", 1), "standard_nc64as_t4_v3": ("T4", 4),
    "standard_nc24ads_a100_v4": (_A100_80, 1), "standard_nc48ads_a100_v4": (_A100_80, 2),
    "standard_nc96ads_a100_v4": (_A100_80, 4), "standard_nc40ads_h100_v5": ("H100 NVL", 1),
    "standard_nc80adis_h100_v5": ("H100 NVL", 2), "standard_nd96asr_v4": (_A100, 8),
    "standard_nd96amsr_a100_v4": (_A100_80, 8), "standard_nd96isr_h100_v5": ("H100", 8),
    "standard_nd96isr_h200_v5": ("H200", 8), "standard_nd96isr_mi300x_v5": ("MI300X", 8),
}  # fmt: skip


def gpus_of_instance(name: str | None) -> tuple[str, int] | None:
    """Return the GPU and the number of GPUs of an instance type (``p4d.24xlarge``); ``None`` if it is not known."""
    name = (name or "").lower().removeprefix("ml.")
    if name in _WHOLE:
        return _WHOLE[name]
    family, dot, size = name.partition(".")
    if dot:
        gpu, counts = _AWS.get(family, ("", {}))
        return (gpu, counts[size]) if size in counts else None
    family, _, number = name.rpartition("-")
    digits = number.removesuffix("g")
    known = family in _GOOGLE and digits in ("1", "2", "4", "8", "16") and number != digits
    return (_GOOGLE[family], int(digits)) if known else None
