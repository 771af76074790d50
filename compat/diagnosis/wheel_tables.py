"""What the tables of wheels say about a message: symbols of torch and the ABI of their strings, code compiled for numpy 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.checks import loading
from compat.diagnosis.frame_packages import distribution_of_module, package_of, version_of
from compat.records import replace
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.model import Finding
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


def exporting(symbol: str) -> list[str]:
    """Return the series of torch that export a symbol, oldest first; empty if all do, or none is known to."""
    from compat.tables.linked import open_symbols

    return list(open_symbols().exported.get(symbol, ())) if symbol else []


def spans(series: Sequence[str]) -> str:
    """Return ``2.4 to 2.6``, or ``2.4 only``."""
    return f"{series[0]} only" if len(series) == 1 else f"{series[0]} to {series[-1]}"


_NEW_STRINGS = re.compile(r"NSt7__cxx11|B5cxx11")
_OLD_STRINGS = re.compile(r"(?<![a-z])Ss(?![a-z])")
"""``std::string`` in the mangled name of a function that was compiled with the C++11 ABI, and without."""
_FIRST_NEW = (2, 7)
"""The first torch whose wheels on the index are compiled with the C++11 ABI."""
_NEW_BEFORE = ("2.6.0+cu126",)
"""Wheels of torch's own index that were compiled with it before."""


def note_on_strings(symbol: str, torch: str | None) -> str | None:
    """Explain a symbol whose strings have the other C++ ABI than the wheels of the installed torch."""
    label = (torch or "").partition("+")[2]
    if torch is None or (label and not label.startswith(("cu", "cpu"))):
        return None
    numbers = _FIRST_NEW if torch in _NEW_BEFORE else tuple(int(part) for part in torch.split(".")[:2] if part.isdecimal())
    if _NEW_STRINGS.search(symbol) and numbers < _FIRST_NEW:
        return (
            f"It takes strings of the C++11 ABI; the wheels of torch before 2.7 are compiled without it, as is torch {torch}: "
            "a wheel named cxx11abiTRUE does not load, one named cxx11abiFALSE does."
        )
    if _OLD_STRINGS.search(symbol) and numbers >= _FIRST_NEW:
        return (
            f"It takes strings of the C++ ABI before C++11; torch {torch}, as all wheels of torch since 2.7, is compiled with "
            "the C++11 ABI: a wheel named cxx11abiFALSE, or made for an older torch, does not load."
        )
    return None


_OF_NUMPY_1 = re.compile(
    r"numpy\.dtype size changed, may indicate binary incompatibility\. Expected 96 |_ARRAY_API not found"
    r"|numpy\.core\.(?:multiarray|umath) failed to import"
)


def of_numpy_1(said: str, where: str, error: RaisedError | None, facts: Facts) -> Finding | None:
    """The innermost package among the frames of which releases were compiled against numpy 1, if this error says so."""
    if error is None or not _OF_NUMPY_1.search(said):
        return None
    from compat.tables.linked import open_numpy_abi

    table = open_numpy_abi()
    names = (distribution_of_module(found) for frame in reversed(error.frames) if (found := package_of(frame)))
    name = next((name for name in names if name in table), None)
    if name is None:
        return None
    row, here, numpy = table[name], version_of(name, facts), version_of("numpy", facts)
    if (here and key_of(here) > key_of(row.last)) or (numpy and key_of(numpy) < loading.NUMPY_2):
        return None
    return replace(loading.of_numpy_1(name, here, numpy, row), here=where)
