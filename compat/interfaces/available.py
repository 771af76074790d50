"""The least release of an optional package that a release uses: it takes an older one for not installed."""

from __future__ import annotations

from compat.versions import key_of

AVAILABLE_FROM: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("transformers", "accelerate"): (("4.36.0", "0.21.0"), ("4.45.0", "0.26.0"), ("5.0.0rc0", "1.1.0")),
    ("transformers", "bitsandbytes"): (("5.0.0rc0", "0.46.1"),),
    ("transformers", "hqq"): (("4.46.0", "0.2.1"),),
    ("transformers", "torchao"): (("4.50.0", "0.4.0"), ("5.4.0", "0.15.0")),
    ("transformers", "compressed-tensors"): (("5.11.0", "0.15.0"),),
    ("transformers", "kernels"): (("5.0.0rc0", "0.9.0"), ("5.2.0", "0.10.2"), ("5.13.0", "0.15.2"), ("5.15.0", "0.16.0")),
    ("transformers", "mistral-common"): (("5.14.0", "1.11.5"),),
}
"""The least release of a package for which ``is_…_available()`` of the consumer holds, since releases of it: below, its guarded
imports are passed over. From the defaults of ``min_version`` in ``transformers/utils/import_utils.py``, 4.26 to 5.16."""


def least_available(consumer: str, version: str, package: str) -> str | None:
    """The least release of a package that this release of the consumer uses; ``None`` if it uses every one."""
    steps = AVAILABLE_FROM.get((consumer, package), ())
    return next((least for since, least in reversed(steps) if key_of(since) <= key_of(version)), None)
