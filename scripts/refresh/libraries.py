"""Which CUDA releases bitsandbytes ships libraries for: their names in the wheel's directory tell, nothing is unpacked."""

from __future__ import annotations

import re

from scripts.refresh.index import Index, Release
from scripts.refresh.tables import Row

EXTENSIONS = ("package", "version", "cuda", "torch", "sm", "ptx", "known", "source", "date")
KEY = ("package", "version", "cuda")
PACKAGE = "bitsandbytes"
_LIBRARY = re.compile(r"libbitsandbytes_cuda(\d{2,3})(\d)(?:_nocublaslt\w*)?\.(?:so|dll)$")


def libraries(index: Index, release: Release, date: str) -> list[Row]:
    """A row for each CUDA that the first Linux wheel of a release holds a library for."""
    wheel = next((each for each in release.wheels if "win" not in each.filename and "macos" not in each.filename), None)
    if wheel is None:
        return []
    with index.open(wheel) as archive:
        names = archive.namelist()
    found = sorted({(int(match[1]), int(match[2])) for name in names if (match := _LIBRARY.search(name))})
    source = f"{wheel.filename}: names of its libraries"
    return [
        {
            "package": PACKAGE,
            "version": release.version,
            "cuda": f"{major}.{minor}",
            "torch": "",
            "sm": "",
            "ptx": "",
            "known": "read",
            "source": source,
            "date": date,
        }
        for major, minor in found
    ]
