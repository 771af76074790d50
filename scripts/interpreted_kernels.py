"""``python -m scripts.interpreted_kernels NAME=FOLDER``: a package's rotary kernel through the probes, without a GPU.

NAME is ``flash-attn``, ``liger-kernel``, ``unsloth`` or ``xformers``, FOLDER an unpacked release of it. Its Triton kernel
runs in Triton's interpreter, called by the probes' own code as on a device; what else the package imports (compiled modules,
the driver, other packages) is left out or stood in for. It shows whether a probe's call, layouts and bounds fit a release.

The interpreter has no arithmetic in bfloat16, so only float32 and float16 are compared. Needs torch and triton.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

_UNSLOTH = {
    "__init__.py": "",
    "device_type.py": 'DEVICE_COUNT, DEVICE_TYPE, DEVICE_TYPE_TORCH = 1, "cpu", "cpu"\n',
    "kernels/__init__.py": "",
    "kernels/utils.py": (
        "import contextlib, types, triton\n"
        "next_power_of_2 = triton.next_power_of_2\n"
        "MAX_FUSED_SIZE = 65536\n"
        "def torch_gpu_device(device): return contextlib.nullcontext()\n"
        "torch_cuda_device = torch_gpu_device\n"
        "def torch_device_stream(*_): return types.SimpleNamespace(synchronize=lambda: None)\n"
        "def long_indexing(*_, **__): return False\n"
        "def calculate_settings(n): return triton.next_power_of_2(n), 4\n"
    ),
    "kernels/rms_layernorm.py": (
        "_BF16_TRACEABLE = _TRACEABLE = False\n"
        "_eager_kernel = _traced_kernel = lambda kernel: kernel\n"
        "def _tag_compile_cache(file): pass\n"
    ),
}
"""What ``unsloth/kernels/rope_embedding.py`` imports of the rest, which wants a GPU."""
_XFORMERS = (
    ("theta = theta.to(tl.float32)", "theta = tl.full((), theta, tl.float32)"),  # numbers are not tensors there
    ("pow(theta, powers / (-dim))", "tl.exp2(tl.log2(theta) * (powers / (-dim)))"),  # libdevice is for GPUs
    ("if seqpos is not None:", "if False:"),  # None is not accepted
    ("if first_seqpos is not None:", "if False:"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", metavar="NAME=FOLDER")
    name, _, folder = parser.parse_args().release.partition("=")
    if name not in _PREPARED or not Path(folder).is_dir():
        parser.error(f"expected NAME=FOLDER, NAME one of {', '.join(_PREPARED)}")
    os.environ.update(TRITON_INTERPRET="1", XFORMERS_ENABLE_TRITON="1", TRITON_DEFAULT_FP_FUSION="1")
    wrong = 0
    with tempfile.TemporaryDirectory() as site:
        sys.path.insert(0, site)
        _PREPARED[name](Path(folder), Path(site))
        for what, verdict in _verdicts(name):
            wrong += verdict["status"] != "passed"
            print(f"{what}: {verdict['status']} {verdict['why'] or verdict['measured']}")
    return 1 if wrong else 0


def _flash_attn(folder: Path, site: Path) -> None:
    shutil.copytree(folder / "flash_attn", site / "flash_attn")
    (site / "flash_attn" / "__init__.py").write_text("")  # it imports the compiled module


def _liger(folder: Path, site: Path) -> None:
    shutil.copytree(next(folder.glob("**/liger_kernel")), site / "liger_kernel")


def _unsloth(folder: Path, site: Path) -> None:
    for path, text in _UNSLOTH.items():
        (site / "unsloth" / path).parent.mkdir(parents=True, exist_ok=True)
        (site / "unsloth" / path).write_text(text)
    shutil.copy(folder / "unsloth" / "kernels" / "rope_embedding.py", site / "unsloth" / "kernels")


def _xformers(folder: Path, site: Path) -> None:
    shutil.copytree(folder / "xformers", site / "xformers")
    kernel = site / "xformers" / "ops" / "_triton" / "rope_padded_kernels.py"
    text = kernel.read_text(encoding="utf-8")
    for before, after in _XFORMERS:
        text = text.replace(before, after)
    kernel.write_text(text, encoding="utf-8")


_PREPARED = {"flash-attn": _flash_attn, "liger-kernel": _liger, "unsloth": _unsloth, "xformers": _xformers}


def _verdicts(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the probes' verdicts on the kernel; lengths are skipped for kernels that do not check them."""
    import torch

    from compat.probe.child import rotary, rotary_kernels
    from compat.probe.child.job import Job, needed

    torch.cuda.device = lambda _: contextlib.nullcontext()
    vars(rotary)["torch"] = _WithoutBfloat16(torch)
    job = Job({"device": "cpu", "results": ""})
    for kernel in (each for each in rotary_kernels.INSTALLED if each.name == name):
        for style in kernel.styles:
            yield f"{kernel.name}, {style}", Job.verdict(partial(rotary.turning, job, kernel, style == "interleaved"))
        if kernel.lengths:
            yield f"{kernel.name}, lengths", Job.verdict(partial(rotary.lengths, job, kernel))
    if name == "xformers":
        turn = needed("xformers.ops", "xformers").rope_padded
        yield "xformers", Job.verdict(partial(rotary.rope_padded, job, turn))


class _WithoutBfloat16:
    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, "float16" if name == "bfloat16" else name)


if __name__ == "__main__":
    sys.exit(main())
