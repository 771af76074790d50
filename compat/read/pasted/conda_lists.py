"""Rows of ``conda list`` (and mamba's): name, version, build and channel."""

from __future__ import annotations

import re

from compat.environment import Source
from compat.read.files.conda.conda_names import distribution_name
from compat.read.pasted.findings import LISTED, Findings
from compat.read.pasted.words import is_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,80}")
_BUILT_FOR = re.compile(r"cuda(\d{1,2}\.?\d{1,2})")


def is_conda_header(words: Sequence[str]) -> bool:
    """Whether a line is the head of such a list."""
    names = [word for word in words if word != "#"]
    return names[:3] == ["Name", "Version", "Build"] and len(names) < 6


def conda_row(words: Sequence[str], found: Findings) -> bool:
    """Note what one row says; whether it is one. What conda installed itself gets conda as its source."""
    if not 2 <= len(words) <= 6 or not _NAME.fullmatch(words[0].lower()) or not is_version(words[1]):
        return bool(len(words) in (3, 4) and _NAME.fullmatch(words[0]) and words[1][:1].isalnum() and "_" in words[2])
    name, version = words[0].lower(), words[1]
    if name.startswith("_"):
        return True  # conda's own switches
    build = words[2] if len(words) > 2 else ""
    channel = words[3] if len(words) > 3 else None
    if name == "python":
        found.say("python", version, LISTED)
        return True
    if name == "pytorch-cuda":
        found.package("torch", None, LISTED, None, {"cuda": version})
        return True
    if channel == "pypi" or build.startswith("pypi"):
        found.package(name, version, LISTED)
        return True
    details = {"name": words[0]}
    if build:
        details["build"] = build
    if channel:
        details["channel"] = channel
    found.package(distribution_name(name), version, LISTED, Source("conda", details), _built_for(name, build))
    return True


def _built_for(name: str, build: str) -> dict[str, str]:
    """torch's CUDA by the build: ``py3.10_cuda11.8_cudnn8.7.0_0``, ``cuda124py310h…``, ``py310_cpu_0``."""
    if name not in ("pytorch", "torch"):
        return {}
    match = _BUILT_FOR.search(build)
    if match is None:
        return {"cuda": "cpu"} if "cpu" in build else {}
    digits = match[1]
    return {"cuda": digits if "." in digits else f"{digits[:-1]}.{digits[-1]}"}
