"""CUDA on this machine: the toolkit an extension would be built with, and the newest CUDA a driver supports.

Only files are read; neither nvcc nor the driver is called.
"""

from __future__ import annotations

import os

from compat.machine.system import first_text, on_path, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    Numbers: TypeAlias = tuple[int, ...]
    DriverTable: TypeAlias = tuple[tuple[Numbers, Numbers | None, Numbers | None], ...]


def read_toolkit(variables: Mapping[str, str], root: str = "/") -> tuple[str | None, str | None]:
    """Return the toolkit's version ("12.4"), and a message if a variable points to a folder without one.

    Searched in torch's order: ``CUDA_HOME``, ``CUDA_PATH``, the folder of nvcc, ``/usr/local/cuda``.
    """
    for name in ("CUDA_HOME", "CUDA_PATH"):
        home = variables.get(name)
        if home:
            version = toolkit_version(under(root, home))
            return version, None if version else f"{name} is {home}, which has no CUDA toolkit with a version file."
    nvcc = on_path("nvcc", variables, root)
    if nvcc:
        for program in (nvcc, os.path.realpath(nvcc)):
            version = toolkit_version(os.path.dirname(os.path.dirname(program)))
            if version:
                return version, None
    return toolkit_version(under(root, "/usr/local/cuda")), None


def toolkit_version(folder: str) -> str | None:
    """Return major.minor of the toolkit in a folder, from its version file, its runtime header or the folder name."""
    if not os.path.isdir(folder):
        return None
    written = (
        first_text(f"{folder}/version.json")
        .partition('"cuda"')[2]
        .partition('"version"')[2]
        .partition('"')[2]
        .partition('"')[0]
        or first_text(f"{folder}/version.txt", 256).partition("CUDA Version ")[2]
    )
    for text in (written, _header_version(folder), os.path.basename(os.path.realpath(folder)).partition("cuda-")[2]):
        major, _, rest = text.strip().partition(".")
        minor = rest.partition(".")[0]
        if all(part.isascii() and part.isdigit() and len(part) < 4 for part in (major, minor)):
            return f"{int(major)}.{int(minor)}"
    return None


def _header_version(folder: str) -> str:
    """Read ``CUDART_VERSION`` (13000 is 13.0) from ``cuda_runtime_api.h``; it is within the header's first 8 KiB."""
    for include in ("include", f"targets/{os.uname().machine if os.name == 'posix' else 'x86_64'}-linux/include"):
        number = first_text(f"{folder}/{include}/cuda_runtime_api.h", 16384).partition("#define CUDART_VERSION")[2][:16].split()
        if number and number[0].isascii() and number[0].isdigit():
            return f"{int(number[0]) // 1000}.{int(number[0]) % 1000 // 10}"
    return ""


def load_driver_table(text: str) -> DriverTable:
    """Read ``matrix/facts/cuda_driver.csv`` as plain tuples (CUDA, driver on Linux, driver on Windows), newest first.

    For the build step; versions are tuples of numbers, ``None`` if the vendor lists none.
    """
    import csv

    rows: dict[Numbers, tuple[Numbers, Numbers | None, Numbers | None]] = {}
    for row in csv.DictReader(text.splitlines()):
        cuda = _numbers(row["cuda_toolkit"].partition("u")[0])
        if cuda is None:
            continue
        entry = (cuda, _numbers(row["driver_linux"]), _numbers(row["driver_windows"]))
        # of a minor version's updates the first one counts: it requires the oldest driver
        if cuda not in rows or (entry[1] or ()) < (rows[cuda][1] or ()):
            rows[cuda] = entry
    return tuple(rows[cuda] for cuda in sorted(rows, reverse=True))


def driver_cuda(driver: str, table: DriverTable, *, windows: bool = False) -> str | None:
    """Return the newest CUDA whose toolkit driver is not newer than this one; ``None`` below the table or if invalid.

    A driver given by its branch alone ("550") means the newest of the branch. Set ``windows`` for WSL as
    well, which uses the Windows driver; since 13.0, for which the vendor lists no Windows driver, the branch decides.
    """
    given = _numbers(driver)
    if given is None:
        return None
    for cuda, on_linux, on_windows in table:
        needed = on_windows or (on_linux and on_linux[:1]) if windows else on_linux
        if needed and given >= (needed[:1] if len(given) == 1 else needed):
            return f"{cuda[0]}.{cuda[1]}"
    return None


def _numbers(text: str) -> tuple[int, ...] | None:
    parts = text.strip().split(".")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts) else None
