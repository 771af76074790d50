"""Modules that the user's code imports and no installed distribution provides."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.checks.code import wanted_of
from compat.interfaces.source.records import AVAILABLE, BRANCH, FUNCTION, GUARDED
from compat.interfaces.table import tracked
from compat.model import Environment, Finding, Fix, Location, normalized

if TYPE_CHECKING:
    from compat.interfaces.code.records import CodeFile


PROVIDERS = {
    "accelerate": ("accelerate",), "apex": ("apex",), "auto_gptq": ("auto-gptq",), "awq": ("autoawq",),
    "bitsandbytes": ("bitsandbytes",), "bs4": ("beautifulsoup4",),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "dateutil": ("python-dateutil",), "deepspeed": ("deepspeed",), "dotenv": ("python-dotenv",), "einops": ("einops",),
    "evaluate": ("evaluate",), "faiss": ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12"), "fire": ("fire",),
    "flash_attn": ("flash-attn",), "flashinfer": ("flashinfer-python",), "gptqmodel": ("gptqmodel",),
    "hydra": ("hydra-core",), "jinja2": ("jinja2",), "jsonlines": ("jsonlines",), "langchain": ("langchain",),
    "liger_kernel": ("liger-kernel", "liger-kernel-nightly"), "lightning": ("lightning",),
    "llguidance": ("llguidance",), "lmformatenforcer": ("lm-format-enforcer",), "matplotlib": ("matplotlib",),
    "mlflow": ("mlflow",), "mpi4py": ("mpi4py",), "nltk": ("nltk",), "numpy": ("numpy",), "omegaconf": ("omegaconf",),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"), "openai": ("openai",), "pandas": ("pandas",),
    "PIL": ("pillow", "pillow-simd"), "pkg_resources": ("setuptools",), "psutil": ("psutil",), "pyarrow": ("pyarrow",),
    "pydantic": ("pydantic",),
    "pynvml": ("nvidia-ml-py", "pynvml"), "pytorch_lightning": ("pytorch-lightning",), "ray": ("ray",), "regex": ("regex",),
    "requests": ("requests",), "rouge_score": ("rouge-score",), "sacrebleu": ("sacrebleu",), "scipy": ("scipy",),
    "seaborn": ("seaborn",), "sentencepiece": ("sentencepiece",), "sgl_kernel": ("sgl-kernel",), "sglang": ("sglang",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",), "tensorboard": ("tensorboard",), "tensorboardX": ("tensorboardx",),
    "tiktoken": ("tiktoken",), "tqdm": ("tqdm",), "tyro": ("tyro",), "wandb": ("wandb",), "yaml": ("pyyaml",),
    "zmq": ("pyzmq",),
}  # fmt: skip
"""Commonly imported modules and the distributions that provide them; the first one is suggested."""
_GUIDE = "https://packaging.python.org/en/latest/discussions/distribution-package-vs-import-package/"


def judge(environment: Environment) -> Iterator[Finding]:
    """Yield an error for each missing module that is imported unconditionally; nothing if the package list is incomplete."""
    code = environment.workload.code if environment.workload is not None else None
    if not code or not environment.distributions_complete:
        return
    wanted = wanted_of(code)
    own = wanted.code.tops | wanted.code.shadowed | sys.stdlib_module_names | {"__main__"}
    seen: set[str] = set()
    for file in wanted.code.files:
        for each in file.module.imports:
            top = each.module.partition(".")[0]
            optional = each.flags & (GUARDED | AVAILABLE | BRANCH | FUNCTION)
            if top and not optional and top not in own and top not in seen:
                seen.add(top)
                if _is_missing(top, environment):
                    yield _finding(top, file, each.line)


def _is_missing(top: str, environment: Environment) -> bool:
    """Whether nothing provides a module: no matching distribution, and no file on the import path."""
    known = providers(top)
    names = {copy.name for copy in environment.distributions or ()}
    if not names.isdisjoint((*known, normalized(top))):
        return False
    if environment.folders is not None:
        return not any(_lies_in(folder, top) for folder in environment.folders)
    return bool(known)


def providers(top: str) -> tuple[str, ...]:
    """The distributions that are known to provide a top-level module."""
    return PROVIDERS.get(top) or ((tracked()[top],) if top in tracked() else ())


def _lies_in(folder: str, top: str) -> bool:
    """Whether a folder on the import path contains a module; an editable install lists its modules in a separate file."""
    for name in _listed(folder):
        if name.partition(".")[0] == top:
            return True
        if name.startswith("__editable__") and name.endswith(".py"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    if f"'{top}'" in file.read(1 << 16):
                        return True
            except OSError:
                continue
    return False


_listings: dict[str, tuple[str, ...]] = {}


def _listed(folder: str) -> tuple[str, ...]:
    if folder not in _listings:
        try:
            _listings[folder] = tuple(os.listdir(folder))
        except OSError:
            _listings[folder] = ()
    return _listings[folder]


def _finding(top: str, file: CodeFile, line: int) -> Finding:
    known = providers(top)
    name = known[0] if known else normalized(top)
    command = f"pip install {name}" if known else None
    text = f"{name} provides {top}" if known else f"install the package that provides {top}"
    return Finding(
        rule=f"missing-{name}", origin="surface", verdict="hit", severity="error", effect="crash", confidence="confirmed",
        title=f"{os.path.basename(file.path)} imports {top}, which no installed package provides",
        why=f"The import is unconditional, so the script fails with ModuleNotFoundError: No module named '{top}'.",
        packages={name: None} if known else {}, facts=("workload",),
        fixes=(Fix("pin", name if known else None, None, text, command),), evidence=(_GUIDE,), here=file.place(line),
        location=Location(file.path, None if file.is_notebook else line),
    )  # fmt: skip
