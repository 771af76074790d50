"""The runtime of the checking page: the wheel of this tree, the pure Python packages that it imports, and Pyodide.

All of it is put into the built site and none into the repository. Pyodide comes from its npm package, in the version and with
the digest that are stated here.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

PYODIDE = "314.0.7"
_INTEGRITY = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_IMPORTED = ("packaging", "pyyaml", "tomlkit")
"""What a check imports besides the standard library; the index client, the solver and NVML are not needed in a browser."""


class Unavailable(Exception):
    """A part of the runtime could not be built; the message says which, and why."""


def build(folder: Path, root: Path) -> None:
    """Everything into a folder: the wheel and its packages as archives, and Pyodide's files; :class:`Unavailable` if not."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", made], root)
        (wheel,) = Path(made).glob("*.whl")
        (folder / "compat.zip").write_bytes(wheel.read_bytes())
    _pack(folder / "packages.zip")
    _pyodide(folder)


def _pack(target: Path) -> None:
    """The Python files of the packages as they are installed here: without compiled parts, which a browser cannot load."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _IMPORTED:
            files = [file for file in distribution(name).files or () if file.suffix == ".py" and ".." not in file.parts]
            if not files:
                raise Unavailable(f"{name} has no Python files here: install the development dependencies")
            for file in files:
                archive.writestr(zipfile.ZipInfo(str(file)), Path(str(file.locate())).read_bytes(), zipfile.ZIP_DEFLATED)


def _pyodide(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as packed:
        _run(["npm", "pack", f"pyodide@{PYODIDE}", "--silent", "--ignore-scripts", "--pack-destination", packed], Path(packed))
        (package,) = Path(packed).glob("pyodide-*.tgz")
        digest = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
        if digest != _INTEGRITY:
            raise Unavailable(f"the npm package pyodide {PYODIDE} is not the one that was reviewed: its sha512 is {digest}")
        with tarfile.open(package) as archive:
            for name in _FILES:
                file = archive.extractfile(f"package/{name}")
                if file is None:
                    raise Unavailable(f"pyodide {PYODIDE} has no {name}")
                (folder / name).write_bytes(file.read())


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as problem:
        raise Unavailable(f"{command[0]}: {problem.strerror or problem}") from None
    if done.returncode:
        raise Unavailable(f"{' '.join(command[:4])}: {(done.stderr or done.stdout).strip()[-400:]}")
