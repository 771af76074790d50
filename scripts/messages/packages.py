"""The packages whose messages are mined: all with mined interfaces, and some more that only raise."""

from __future__ import annotations

from scripts.surface.packages import AROUND, BESIDE, TRACKED

LEFT_OUT = frozenset(
    (
        "pydantic", "fastapi", "starlette", "openai", "timm", "typing-extensions", "importlib-metadata", "httpx", "requests",
        "urllib3", "anyio", "typer", "click", "pydantic-settings", "fsspec", "gradio-client", "langchain-core",
        "openai-harmony", "scipy", "einops", "tensorboard", "tensorboardx", "nvidia-ml-py",
    )
)  # fmt: skip
"""What these raise is about requests and data, not about environments."""

PACKAGES = tuple(package for package in (*TRACKED, *BESIDE, *AROUND) if package not in LEFT_OUT)
