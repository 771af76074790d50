"""GPU architectures as the tables write them: ``75 80 90a 100f``, in order and without what goes without saying."""

from __future__ import annotations

from collections.abc import Iterable


def in_order(codes: Iterable[str]) -> str:
    """``{"90a", "75"}`` → ``75 90a``."""
    return " ".join(sorted(set(codes), key=lambda code: (number(code), code)))


def necessary(codes: Iterable[str]) -> set[str]:
    """Without code that adds no device: ``90a`` beside ``90`` and ``120a`` beside ``120f`` run nowhere else."""
    found = set(codes)
    return {
        code
        for code in found
        if not (code.endswith(("a", "f")) and code[:-1] in found) and not (code.endswith("a") and f"{code[:-1]}f" in found)
    }


def number(code: str) -> int:
    return int(code.rstrip("af"))


def listed(text: str) -> tuple[str, str]:
    """Code and PTX of a list as compilers are given it: ``7.5 8.0+PTX 9.0a`` → ``("75 80 90a", "80")``."""
    names = text.replace(";", " ").replace(".", "").split()
    ptx = [name.removesuffix("+PTX") for name in names if name.endswith("+PTX")]
    return in_order(name.removesuffix("+PTX") for name in names), in_order(ptx)
