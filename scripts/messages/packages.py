"""The packages whose messages are mined: most of those with mined interfaces, and some more that only raise."""

from __future__ import annotations

from scripts.surface.packages import AROUND, BESIDE, RAISING, TRACKED

LEFT_OUT = frozenset(
    (
        "fastapi", "starlette", "openai", "timm", "typing-extensions", "importlib-metadata", "httpx", "requests",
        "urllib3", "anyio", "typer", "click", "pydantic-settings", "fsspec", "langchain-core",
        "openai-harmony", "scipy", "einops", "tensorboard", "tensorboardx", "nvidia-ml-py",
    )
)  # fmt: skip
"""What these raise is about requests and data, not about environments."""

FOLLOWED = tuple(package for package in (*TRACKED, *BESIDE, *AROUND) if package not in (*LEFT_OUT, *RAISING))
"""Of these, the lines and the assertions without a message are mined as well."""

PACKAGES = (*FOLLOWED, *RAISING)
