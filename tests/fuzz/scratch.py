"""A folder to read in: a small project, and beside it and in it what must not be opened."""

from __future__ import annotations

import os
from pathlib import Path

_FILES = {
    "base.txt": "torch==2.6.0\n-r sub/requirements.txt\n",
    "requirements.txt": "transformers==4.51.3\n-c constraints.txt\n-r includes.txt\n",
    "includes.txt": "-r link-passwd.txt\n-r pipe.txt\n-r ../outside/requirements.txt\n-r folder.txt\n-r sparse.txt\n",
    "constraints.txt": "numpy<2\ntorch==2.6.0\n",
    "sub/requirements.txt": "trl==0.17.0\n-r ../loop-a.txt\n",
    "loop-a.txt": "a==1\n-r loop-b.txt\n-r loop-a.txt\n",
    "loop-b.txt": "b==1\n-r loop-a.txt\n-c ./loop-b.txt\n",
    "wide.txt": "".join(f"-r chain-{number:02}.txt\n" for number in range(30)) * 20,
    "uv.lock": 'version = 1\nrequires-python = ">=3.10"\n\n[[package]]\nname = "torch"\nversion = "2.6.0"\n'
               'source = { registry = "https://index.example/simple" }\n',
    "environment.yml": "dependencies:\n  - pytorch=2.1\n  - pip:\n    - -r ../outside/requirements.txt\n    - -r loop-a.txt\n",
    "train.py": "from trl import GRPOConfig\nargs = GRPOConfig(bf16=True)\n",
    "entrypoint.sh": "pip install -r requirements.txt\nbash entrypoint.sh\naccelerate launch train.py\n",
    "ds_config.json": '{"zero_optimization": {"stage": 3}}\n',
    "fsdp.yaml": "distributed_type: FSDP\nnum_processes: 8\n",
    "sub/ds.yaml": "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2}\n",
    ".env": "A=1\nTORCH=2.6.0\n",
    "Dockerfile": "FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel AS serve\nRUN pip install -r requirements.txt\n",
    "pip.conf": "[global]\nindex-url = https://index.example/simple\n",
}  # fmt: skip


def make_scratch(folder: Path) -> Path:
    """Makes ``folder`` and gives back the project in it, the only folder whose files a reader may open."""
    outside, project = folder / "outside", folder / "project"
    for each in (outside, project / ".git", project / "sub", project / "folder.txt"):
        each.mkdir(parents=True)
    for name in ("requirements.txt", "Dockerfile", "compose.yml", ".env", "pyproject.toml", "train.py"):
        (outside / name).write_text("secret==1\n", encoding="utf-8")
    for name, text in _FILES.items():
        (project / name).write_text(text, encoding="utf-8")
    for number in range(30):
        (project / f"chain-{number:02}.txt").write_text(f"c{number}==1\n-r chain-{number + 1:02}.txt\n", encoding="utf-8")
    for name, target in (
        ("link-passwd.txt", "/etc/passwd"), ("link-outside.txt", "../outside/requirements.txt"), ("link-dir", "/etc"),
        ("link-up", ".."), ("link-self.txt", "link-self.txt"), ("link-zero.txt", "/dev/zero"),
    ):  # fmt: skip
        (project / name).symlink_to(target)
    os.mkfifo(project / "pipe.txt")
    with open(project / "sparse.txt", "wb") as file:
        file.truncate(8 * 1024**3)
    return project
