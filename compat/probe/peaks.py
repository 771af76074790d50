"""What cards can do by their makers' figures (``matrix/facts/gpu_peaks.csv``)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def peak_rates() -> list[dict[str, Any]]:
    """The rows of the table, as the child compares its measurements with them: the name, TFLOP/s, GB/s and their source."""
    from compat.matrix.peak_rates import open_peaks

    return [
        {"name": name, "pattern": pattern, "memory_gb": memory, "tflops": tflops, "gb_s": bandwidth, "source": source}
        for name, pattern, memory, tflops, bandwidth, source in open_peaks()
    ]
