"""``numpy_abi.csv``: the last release of a package that was compiled against numpy 1, and the first after it that was not.

Code that was compiled against numpy 1 fails on import with numpy 2, and most such releases declare no upper bound on numpy.
An extension that uses numpy's C interface holds the text of its check of numpy's ABI; compiled against numpy 2 it also names
``numpy._core``. The search starts with the last release before numpy 2 could be compiled against.

    python -m scripts.refresh --table numpy_abi                 packages without a row, or without a first release
    python -m scripts.refresh.numpy_abi PACKAGE…                run the import of both releases with numpy 2 (needs uv)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pypi_simple import DistributionPackage

from scripts.pack_wheels import NUMPY_ABI
from scripts.refresh.index import Index, Release
from scripts.refresh.libraries import for_linux
from scripts.refresh.tables import Row, changed, load, text_of
from scripts.refresh.updates import THREADS, Request, Update
from scripts.refresh.wheel import UnreadableError

COLUMNS = ("package", "last", "first", "module", "known", "source", "date")
MODULES = {
    "bottleneck": "bottleneck", "catboost": "catboost", "faiss-cpu": "faiss", "faiss-gpu": "faiss",
    "fastparquet": "fastparquet", "h5py": "h5py", "matplotlib": "matplotlib.pyplot", "ml-dtypes": "ml_dtypes",
    "netcdf4": "netCDF4", "numexpr": "numexpr", "onnxruntime": "onnxruntime", "onnxruntime-gpu": "onnxruntime",
    "onnxruntime-training": "onnxruntime", "opencv-contrib-python": "cv2", "opencv-contrib-python-headless": "cv2",
    "opencv-python": "cv2", "opencv-python-headless": "cv2", "osqp": "osqp", "pandas": "pandas", "pmdarima": "pmdarima",
    "pot": "ot", "pyarrow": "pyarrow", "pycocotools": "pycocotools.mask", "pyogrio": "pyogrio", "pywavelets": "pywt",
    "rasterio": "rasterio", "scikit-image": "skimage.feature", "scikit-learn": "sklearn", "scipy": "scipy.optimize",
    "shapely": "shapely", "spacy": "spacy", "statsmodels": "statsmodels.api", "tables": "tables",
}  # fmt: skip
"""Packages whose import fails if their code is compiled against numpy 1, and what to import to load it.

Others only print the message and go on without that code (cvxpy, rdkit, shap), or check numpy's release themselves (numba).
"""
_BEFORE = "2024-03-10"
"""The day of the first numpy 2 that wheels could be compiled against."""
_PYTHONS = ("-cp311-", "-cp310-", "abi3", "-cp312-", "-cp39-", "-py3-")
_CHECKS = b"module compiled against ABI version"
_NUMPY_2 = b"numpy._core"
_LEAST = 6000
"""Bytes of a compiled module below which it uses nothing."""


def update(folder: Path, request: Request) -> Update:
    """Return the new text of the table; see :data:`scripts.refresh.updates.Kind`."""
    rows = load(folder / NUMPY_ABI, COLUMNS, ("package",))
    wanted = [name for name in MODULES if name in request.packages and not rows.get((name,), {}).get("first")]
    new: dict[tuple[str, ...], Row] = {}
    unread = []
    with ThreadPoolExecutor(THREADS) as pool:
        for name, found in zip(wanted, pool.map(lambda name: _of(name, request), wanted)):
            if isinstance(found, str):
                unread.append(f"{name}: {found}")
            elif found is not None:
                new[name,] = found
    known = {key: row for key, row in rows.items() if key in new and row["last"] == new[key]["last"] and row["first"]}
    text = text_of({**rows, **new}.values(), COLUMNS, lambda row: row["package"])
    return Update({NUMPY_ABI: text}, tuple(changed(known, new)), tuple(unread))


def _of(name: str, request: Request) -> Row | str | None:
    """The row of a package; ``None`` if it was not compiled against numpy 1 when numpy 2 came, else why it was not read."""
    try:
        index = Index()
        wheels = [(release, file) for release in index.releases(name) if (file := _wheel(release)) is not None]
        days = index.uploaded(name)
        dated = [(release.version, file) for release, file in wheels if days.get(file.filename)]
        before = sum(days[file.filename] < _BEFORE for _, file in dated)
        if not before:
            return None
        last, seen = dated[before - 1], _compiled_against_1(index, dated[before - 1][1], request.budget)
        if not seen:
            return None
        first = ""
        for version, file in dated[before:]:
            member = _compiled_against_1(index, file, request.budget)
            if not member:
                first = version
                break
            last, seen = (version, file), member
    except UnreadableError as problem:
        return str(problem)
    source = f"{last[1].filename}: {seen} checks numpy's ABI and does not name numpy._core"
    return {
        "package": name, "last": last[0], "first": first, "module": MODULES[name], "known": "read", "source": source,
        "date": request.today,
    }  # fmt: skip


def _wheel(release: Release) -> DistributionPackage | None:
    """The wheel for Linux on x86_64 and a Python that numpy 2 supports."""
    files = [each for each in release.wheels if for_linux(each.filename)]
    return next((each for tag in _PYTHONS for each in files if tag in each.filename), None)


def _compiled_against_1(index: Index, file: DistributionPackage, budget: int) -> str:
    """The first member of a wheel that was compiled against numpy 1, smallest first; "" if none."""

    def read() -> str:
        with index.wheel(file, budget) as wheel:
            sizes = {name: size for name, size in wheel.members().items() if name.endswith(".so") and ".libs/" not in name}
            for name in sorted(sizes, key=lambda name: sizes[name]):
                if sizes[name] < _LEAST or not wheel.affordable((name,)):
                    continue
                content = b"".join(wheel.pieces(name))
                if _CHECKS in content:
                    return "" if _NUMPY_2 in content else name
        return ""

    return index.tried(read, file.filename)


# --- The same by running it.


def main(packages: list[str]) -> int:
    """Import both releases of each package next to numpy 2; 1 if the last one works or the first one does not."""
    rows = load(Path(__file__).resolve().parents[2] / "matrix" / "facts" / NUMPY_ABI, COLUMNS, ("package",))
    failures = 0
    for (name,), row in rows.items():
        if packages and name not in packages:
            continue
        for version, expected in ((row["last"], False), (row["first"], True)):
            if version:
                works, said = _imported(name, version, row["module"])
                failures += works is not None and works != expected
                print(
                    f"{name} {version}: {'no answer' if works is None else 'works' if works else 'fails'}: {said}", flush=True
                )
    return int(failures > 0)


def _imported(name: str, version: str, module: str) -> tuple[bool | None, str]:
    """Whether a module can be imported next to numpy 2, and the last line of what it printed; ``None`` if not installable."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "v" / "bin" / "python"
        override = Path(folder) / "override.txt"
        override.write_text("numpy==2.2.6\n")
        for command in _commands(folder, python, override, f"{name}=={version}"):
            made = subprocess.run(command, capture_output=True, text=True)
            if made.returncode:
                return None, (made.stderr.strip().splitlines() or [""])[-1]
        ran = subprocess.run([str(python), "-c", f"import {module}"], capture_output=True, text=True, cwd=folder)
        return ran.returncode == 0, (ran.stderr.strip().splitlines() or [""])[-1]


def _commands(folder: str, python: Path, override: Path, package: str) -> Iterator[list[str]]:
    yield ["uv", "venv", "-q", "--python", "3.11", f"{folder}/v"]
    yield [
        "uv", "pip", "install", "-q", "--python", str(python), "--only-binary", ":all:", "--override", str(override), package,
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
