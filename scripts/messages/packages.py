"""The packages whose messages are mined: all whose interfaces are, and some more that only raise."""

from __future__ import annotations

from scripts.surface.packages import BESIDE, TRACKED

MORE = ("flash-attn", "flashinfer-python", "gptqmodel", "ray", "torchaudio", "kernels", "setfit", "mistral-common")
LEFT_OUT = frozenset(("pydantic", "fastapi", "starlette", "openai", "timm"))
"""What these raise is about requests and data, not about environments."""

PACKAGES = tuple(package for package in (*TRACKED, *BESIDE, *MORE) if package not in LEFT_OUT)
