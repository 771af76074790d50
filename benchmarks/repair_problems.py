"""The problems of ``make bench-repair``: pins as uv resolves them as of a day, with invented rules."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PYTHON = "3.11"
BEFORE = "2025-12-31"
RULE = """
[[rule]]
id = "bench-{name}"
title = "{title}"
severity = "error"
effect = "crash"
confidence = "reported"
why = "Made up for the benchmark."
packages = {packages}
evidence = ["https://github.com/vllm-project/vllm/issues/1"]
[[rule.fix]]
upgrade = {fix}
[[rule.example]]
hit = {{ packages = {bad} }}
[[rule.example]]
clear = {{ packages = {good} }}
"""


@dataclass(frozen=True)
class Known:
    """An invented rule: the bad releases and the good ones."""

    name: str
    packages: str
    fix: str
    bad: str
    good: str


@dataclass(frozen=True)
class Problem:
    """Pins as of a day, rules, packages to keep, and the time limit as a multiple of plain uv's CPU time.

    ``forward``: direct requirements are never downgraded. ``cost``: that of the cheapest plan, as ``compat fix`` prints it;
    if it leaves errors, the packages to keep make a complete fix impossible.
    """

    name: str
    asked: tuple[str, ...]
    day: str
    rules: tuple[Known, ...]
    cost: Mapping[str, int]
    keep: tuple[str, ...] = ()
    forward: bool = False
    most: float = 4.0

    @property
    def fails(self) -> bool:
        return "errors" in self.cost

    @property
    def label(self) -> str:
        return self.name.partition(" ")[0]


PAIR = Known(
    "pair", '{ vllm = "<0.7.2", trl = ">=0.14,<0.16" }', '{ trl = ">=0.16" }', '{ vllm = "0.7.1", trl = "0.14.0" }',
    '{ vllm = "0.7.1", trl = "0.16.0" }',
)  # fmt: skip
TORCH = Known("torch", '{ torch = "<2.7" }', '{ torch = ">=2.7" }', '{ torch = "2.5.1" }', '{ torch = "2.7.0" }')
BITS = Known(
    "bitsandbytes", '{ bitsandbytes = "<0.45.5" }', '{ bitsandbytes = ">=0.45.5" }', '{ bitsandbytes = "0.45.1" }',
    '{ bitsandbytes = "0.45.5" }',
)  # fmt: skip
DATASETS = Known(
    "datasets", '{ trl = "<0.20", datasets = ">=4" }', '{ trl = ">=0.20" }', '{ trl = "0.19.1", datasets = "4.0.0" }',
    '{ trl = "0.20.0", datasets = "4.0.0" }',
)  # fmt: skip
GRADIO = Known("gradio", '{ gradio = "<5.38" }', '{ gradio = ">=5.38" }', '{ gradio = "5.37.0" }', '{ gradio = "5.38.0" }')
MLFLOW = Known("mlflow", '{ mlflow = "<3.2" }', '{ mlflow = ">=3.2" }', '{ mlflow = "3.1.1" }', '{ mlflow = "3.2.0" }')
SMALL = ("vllm==0.7.1", "trl==0.14.0", "transformers==4.48.2", "peft", "datasets")
LARGE = ("vllm==0.7.1", "trl==0.14.0", "torch==2.5.1", "xformers==0.0.28.post3", "bitsandbytes==0.45.1", "peft", "datasets")
MANY = """
    torch torchvision torchaudio transformers datasets>=3.6 trl>=0.19 peft accelerate bitsandbytes vllm>=0.9 diffusers
    sentence-transformers evaluate timm wandb mlflow tensorboard optuna hydra-core pytorch-lightning ray[default,serve,tune]
    gradio>=5 streamlit jupyterlab notebook langchain>=0.3 langchain-openai langchain-community llama-index qdrant-client
    faiss-cpu openai anthropic scikit-learn xgboost lightgbm spacy nltk polars dask[complete] matplotlib seaborn plotly bokeh
    boto3 s3fs gcsfs adlfs google-cloud-storage azure-storage-blob opencv-python-headless scikit-image albumentations
    sqlalchemy alembic celery[redis] flask fastapi[standard] beautifulsoup4 sphinx pytest black ruff mypy pre-commit
"""
EARLY, LATE = "2025-02-10", "2025-07-15"
TORCH_MOVES = {"changed": 16, "added": 32, "steps": 62}
PROBLEMS = (
    Problem("P1a one rule", SMALL, EARLY, (PAIR,), {"changed": 1, "steps": 4}),
    Problem("P1b one rule, trl kept", SMALL, EARLY, (PAIR,), {"changed": 2, "steps": 2}, keep=("trl",)),
    Problem("P2 torch from 2.7", LARGE, EARLY, (TORCH, BITS), TORCH_MOVES),
    Problem("P2c the same, nothing asked for goes back", LARGE, EARLY, (TORCH, BITS), TORCH_MOVES, forward=True),
    Problem(
        "P3 torch from 2.7, vllm kept", LARGE, EARLY, (TORCH, BITS), {"errors": 1, "changed": 1, "steps": 4}, keep=("vllm",),
    ),
    Problem("P4 three rules", tuple(MANY.split()), LATE, (DATASETS, GRADIO, MLFLOW), {"changed": 5, "added": 1, "steps": 9}),
)  # fmt: skip


def written(problem: Problem, folder: Path, uv: str) -> list[str]:
    """Create the pins (once) and the rules of a problem; returns the arguments for ``compat fix``."""
    pins, rules = folder / "requirements.txt", folder / "rules.toml"
    if not pins.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "requirements.in").write_text("\n".join(problem.asked) + "\n", encoding="utf-8")
        command = [uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--exclude-newer", problem.day]
        command += ["--only-binary", ":all:", "--python-version", PYTHON, "--python-platform", "x86_64-manylinux_2_28"]
        subprocess.run([*command, str(folder / "requirements.in"), "-o", str(pins)], check=True, capture_output=True)
    rules.write_text(
        "".join(RULE.format(title=f"Bad: {each.name}", **vars(each)) for each in problem.rules), encoding="utf-8"
    )  # fmt: skip
    told = [str(pins), "--rules", str(rules), "--python-version", PYTHON, "--before", BEFORE]
    keep = [*problem.keep, *(_forward(problem, pins) if problem.forward else ())]
    return [*told, "--keep", *keep] if keep else told


def _forward(problem: Problem, pins: Path) -> list[str]:
    """Return the requirements that rule out downgrades of the directly requested packages."""
    lines = (line.partition("==") for line in pins.read_text(encoding="utf-8").splitlines())
    locked = {name: version for name, _, version in lines}
    names = [each.partition("==")[0] for each in problem.asked]
    return [f"{name}>={locked[name]}" for name in names]


def said(cost: Mapping[str, int]) -> str:
    """Describe a cost."""
    return ", ".join(f"{name} {amount}" for name, amount in cost.items() if amount)
