"""GPU architectures in the tables' notation: ``75 80 90a 100f``, sorted and without redundant entries."""

from __future__ import annotations

from collections.abc import Iterable


def in_order(codes: Iterable[str]) -> str:
    """Sort architectures: ``{"90a", "75"}`` → ``75 90a``."""
    return " ".join(sorted(set(codes), key=lambda code: (number(code), code)))


def necessary(codes: Iterable[str]) -> set[str]:
    """Drop code that adds no device: ``90a`` next to ``90``, or ``120a`` next to ``120f``, runs nowhere else."""
    found = set(codes)
    return {
        code
        for code in found
        if not (code.endswith(("a", "f")) and code[:-1] in found) and not (code.endswith("a") and f"{code[:-1]}f" in found)
    }


def number(code: str) -> int:
    return int(code.rstrip("af"))


def listed(text: str) -> tuple[str, str]:
    """Split a compiler's architecture list into code and PTX: ``7.5 8.0+PTX 9.0a`` → ``("75 80 90a", "80")``."""
    names = text.replace(";", " ").replace(".", "").split()
    ptx = [name.removesuffix("+PTX") for name in names if name.endswith("+PTX")]
    return in_order(name.removesuffix("+PTX") for name in names), in_order(ptx)
