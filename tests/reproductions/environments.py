"""Throw-away environments with exactly the releases that a reproduction names, and the running of programs in them.

An environment is a search path. One virtual environment, the base, holds torch and whatever else does not decide the
outcome; it is built once. Every further release is unpacked once, without its dependencies, into a folder of its own, a
layer, and the layers of an environment stand before the base on PYTHONPATH. So the fifth release of transformers costs
its own wheel and no second torch.

Everything lives under .reproductions/ at the root of the repository, or under $COMPAT_REPRODUCTIONS; delete it at will.
Packages come from wherever pip is configured to look.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"

# torch's pin is exact, so that an index with CPU builds can serve one. accelerate is what was current when the bugs were
# met; the rest is the newest that every release under test accepts.
BASE = (
    "torch==2.13.0",
    "numpy==2.2.6",
    "accelerate==1.4.0",
    "datasets==4.8.5",
    "huggingface-hub==0.36.0",
    "safetensors==0.8.0",
    "jinja2",
    "psutil",
    "regex",
    "requests",
    "rich",
)

# What transformers is particular about. Of each, the first release that its own metadata accepts is taken.
COMPANIONS: Mapping[str, Sequence[str]] = {
    "tokenizers": ("0.20.3", "0.21.4", "0.22.2", "0.23.1"),
    "huggingface-hub": ("0.36.0", "1.33.0"),
}


@dataclass(frozen=True)
class Result:
    """How a program ended. `outcome` is "ok", "error" or "data-lost"; `detail` is what that program measured."""

    outcome: str
    exception: str | None
    message: str | None
    detail: Mapping[str, Any]

    @property
    def frames(self) -> list[str]:
        """The frames of the exception, outermost first, as "package/module.py::function"."""
        return list(self.detail["frames"])

    @property
    def traceback(self) -> str:
        """The traceback as Python writes it; empty where nothing was raised."""
        return str(self.detail["traceback"])


class NoResultError(Exception):
    """A program ended without its line, or pip could not install; the text is the end of what it wrote."""


def reproduce(
    program: str, pins: Mapping[str, str], *arguments: str, processes: int | None = None, seconds: float = 300
) -> Result:
    """Run programs/`program` with the releases `pins` (distribution name to version).

    `processes` starts it under torchrun with that many, None starts it plainly. The same call is run only once in
    the life of this process. Raises NoResultError.
    """
    return _reproduce(program, tuple(pins.items()), arguments, processes, seconds)


@functools.cache
def _reproduce(
    program: str, pins: tuple[tuple[str, str], ...], arguments: tuple[str, ...], processes: int | None, seconds: float
) -> Result:
    python, layers = environment(dict(pins))
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] if processes else []
    command = [str(python), *launcher, str(PROGRAMS / program), *arguments]
    with tempfile.TemporaryDirectory(prefix="reproduction-") as folder:
        output = _run_in_group(command, folder, variables(layers, folder), seconds)
    result = _parse(output, command)
    for name, version in pins:
        found = str(result.detail["releases"].get(name)).partition("+")[0]
        if found != version:
            raise NoResultError(f"{name} {version} was asked for, but {found} was seen")
    return result


def environment(pins: Mapping[str, str]) -> tuple[Path, list[Path]]:
    """The interpreter, and the folders to put on PYTHONPATH, for these releases; built where they are not there yet."""
    python = base()
    layers = [layer(python, name, version) for name, version in pins.items()]
    if "transformers" in pins:
        index = list(pins).index("transformers")
        companions = _companions(layers[index], set(pins))
        layers += [layer(python, name, version) for name, version in companions.items()]
    return python, layers


def base() -> Path:
    """The interpreter of the base environment."""
    folder = _root() / f"base-{_digest(BASE)}"
    python = folder / "bin" / "python"
    with _building(folder) as missing:
        if missing:
            _checked([sys.executable, "-m", "venv", str(folder)])
            _checked([str(python), "-m", "pip", "install", "--quiet", *BASE])
    return python


def layer(python: Path, name: str, version: str) -> Path:
    """The folder with this release alone."""
    pin = f"{name}=={version}"
    folder = _root() / "layers" / f"{name}-{version}-{_digest([pin])}"
    with _building(folder) as missing:
        if missing:
            install = ["install", "--quiet", "--no-deps", "--no-compile", "--target", str(folder)]
            _checked([str(python), "-m", "pip", *install, pin])
    return folder


def _companions(transformers: Path, already: set[str]) -> dict[str, str]:
    (metadata,) = transformers.glob("transformers-*.dist-info")
    chosen: dict[str, str] = {}
    for text in PathDistribution(metadata).requires or []:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if requirement.marker is None and name in COMPANIONS and name not in already:
            chosen[name] = next(version for version in COMPANIONS[name] if requirement.specifier.contains(version))
    return chosen


def variables(layers: Sequence[Path], folder: str) -> dict[str, str]:
    """The environment variables of a program: these layers, offline, no GPU."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ACCELERATE_", "CUDA_"))}
    return inherited | {
        "PYTHONPATH": os.pathsep.join(map(str, layers)),
        "PYTHONNOUSERSITE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_VERBOSITY": "error",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": folder,
        "TORCHINDUCTOR_CACHE_DIR": str(_root() / "inductor"),
    }


def _run_in_group(command: Sequence[str], folder: str, variables: Mapping[str, str], seconds: float) -> str:
    """What the command wrote, both streams. Its whole process group is ended when it runs past `seconds`."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        if '{"outcome"' not in output:
            raise NoResultError(f"{' '.join(command)} did not end in {seconds} s\n{output[-4000:]}") from None
    return output


def _parse(output: str, command: Sequence[str]) -> Result:
    lines = [line for line in output.splitlines() if line.startswith('{"outcome"')]
    if not lines:
        raise NoResultError(f"{' '.join(command)} printed no outcome\n{output[-4000:]}")
    return Result(**json.loads(lines[-1]))


def _checked(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoResultError(f"{' '.join(command)} failed\n{done.stderr[-4000:]}")


def _root() -> Path:
    return Path(os.environ.get("COMPAT_REPRODUCTIONS") or REPOSITORY / ".reproductions").absolute()


def _digest(pins: Sequence[str]) -> str:
    """Of all that the contents of a folder depend on."""
    return hashlib.sha256("\n".join([sys.version, *pins]).encode()).hexdigest()[:12]


@contextlib.contextmanager
def _building(folder: Path) -> Iterator[bool]:
    """Yields whether the folder is still to be built; what an interrupted run left is removed first.

    One process at a time is let in. The folder counts as built only when the block ends without an error.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = folder.with_name(f"{folder.name}.done")
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = not done.exists()
        if missing and folder.exists():
            shutil.rmtree(folder)
        yield missing
        if missing:
            done.touch()
