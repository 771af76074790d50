"""``python -m benchmarks.probe``: the figures of ``docs/probes.md``, each as a ratio of two measurements in one run.

On an accelerator: our rotary kernel's forward against a copy of the same bytes and against every other rotary kernel that is
installed, its time over tokens, the matmul rate the probe reports against a loop written out by hand. Everywhere:
``compat probe --quick`` against ``import torch``, whole processes, alternating.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

TOKENS = (4096, 8192, 16_384, 32_768, 65_536)
Q_HEADS, K_HEADS, DIM = 32, 8, 128


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, help="runs of each whole process")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has torch")
    parser.add_argument("--on-device", metavar="NAME", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.on_device:
        on_device(given.on_device)
        return 0
    quick(given.python, given.repeats)
    counting = [given.python, "-c", "import torch; print(torch.cuda.device_count())"]
    devices = subprocess.run(counting, capture_output=True, text=True, check=True)
    if int(devices.stdout):
        return subprocess.run([given.python, "-m", "benchmarks.probe", "--on-device", "cuda:0"], check=False).returncode
    print("rotary and matmul rates: not measured, no accelerator")
    return 0


def quick(python: str, repeats: int) -> None:
    """Time ``compat probe --quick`` and ``import torch`` alternately: once with an empty Triton cache, then warm."""
    probe = [sys.executable, "-m", "compat", "probe", "--quick", "--python", python]
    cache = tempfile.mkdtemp(prefix="compat-triton-")
    variables = {**os.environ, "TRITON_CACHE_DIR": cache}
    try:
        cold = _seconds(probe, variables)
        pairs = [(_seconds(probe, variables), _seconds([python, "-c", "import torch"], variables)) for _ in range(repeats)]
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    whole, imported = (statistics.median(column) for column in zip(*pairs))
    print(f"import torch                          {imported:.2f} s (median of {repeats})")
    more = statistics.median(ours - theirs for ours, theirs in pairs)  # of adjacent pairs: load on the machine slows both
    ratio = f"{whole / imported:.2f} times import torch, {more:+.2f} s"
    print(f"compat probe --quick, warm            {whole:.2f} s, {ratio}")
    print(f"compat probe --quick, first run       {cold:.2f} s, {cold - imported:+.2f} s")


def _seconds(command: list[str], variables: dict[str, str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return time.perf_counter() - began


def on_device(device: str) -> None:
    """Measure rates on an accelerator, in a process with torch."""
    import torch

    from compat.probe.child import health

    copy = health.measured_gb_s(device, 2**30)
    print(f"device                                {torch.cuda.get_device_name(device)}")
    print(f"copy within the device                {copy:.0f} GB/s, read and written")
    rotary(device, copy)
    size = 8192
    ours, by_hand = health.measured_tflops(device, size), _matmul_by_hand(device, size)
    share = f"{ours / by_hand:.3f} of a loop with CUDA events ({by_hand:.0f})"
    print(f"matmul rate of the probe              {ours:.0f} TFLOP/s, {share}")


def rotary(device: str, copy: float) -> None:
    """Measure each rotary kernel's bandwidth as a fraction of a copy's, and our kernel's time over tokens."""
    from compat.probe.child.rotary_kernels import INSTALLED, TRITON

    for kernel in (TRITON, *INSTALLED):
        try:
            apply = kernel.load()
        except Exception as reason:
            print(f"rotary {kernel.name:<30} not measured: {reason}")
            continue
        lengths = TOKENS if kernel is TRITON else TOKENS[-1:]
        seconds = [_rotary_seconds(device, apply, kernel.own_type, tokens) for tokens in lengths]
        share = _rotary_bytes(TOKENS[-1]) / seconds[-1] / 1e9 / copy
        print(f"rotary {kernel.name:<30} {share:.3f} of the copy's bandwidth at {TOKENS[-1]} tokens")
        if kernel is TRITON:
            each = [second / tokens * 1e9 for second, tokens in zip(seconds, TOKENS)]
            print("  ns a token at " + ", ".join(f"{tokens}: {one:.1f}" for tokens, one in zip(TOKENS, each)))


def _rotary_bytes(tokens: int) -> int:
    """Return the bytes of reading and writing queries and keys once, in bfloat16."""
    return 2 * 2 * tokens * (Q_HEADS + K_HEADS) * DIM


def _rotary_seconds(device: str, apply: Any, own_type: bool, tokens: int) -> float:
    import torch

    from compat.probe.child.health import median_seconds
    from compat.probe.child.rotary_kernels import tables

    cos, sin = tables(torch.arange(tokens, device=device), DIM)
    if own_type:
        cos, sin = cos.bfloat16(), sin.bfloat16()
    # rotate through several sets, so that each has left the cache before it is reused
    sets = [[_heads(device, tokens, heads) for heads in (Q_HEADS, K_HEADS)] for _ in range(4)]
    turn = iter(range(10**9))
    with torch.no_grad():
        return median_seconds(device, lambda: apply(*sets[next(turn) % 4], cos, sin, False), times=40)  # noqa: FBT003


def _heads(device: str, tokens: int, heads: int) -> Any:
    """Return heads in the layout of a projection: the heads of a token are adjacent."""
    import torch

    return torch.randn(1, tokens, heads, DIM, device=device, dtype=torch.bfloat16).transpose(1, 2)


def _matmul_by_hand(device: str, size: int) -> float:
    """Measure the same product with a hand-written loop between two events."""
    import torch

    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(5):
        torch.matmul(a, b)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(20):
        torch.matmul(a, b)
    end.record()
    torch.cuda.synchronize()
    return float(2 * size**3 * 20 / (begin.elapsed_time(end) / 1e3) / 1e12)


if __name__ == "__main__":
    sys.exit(main())
