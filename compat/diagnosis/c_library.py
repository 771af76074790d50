"""A C or C++ library of the system, or of conda, that is older than what a wheel was built on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compat.diagnosis.frame_packages import inferred, version_of
from compat.diagnosis.loader import LOADER, importing, installed_extensions, packages_in
from compat.model import Finding, Fix
from compat.rules.facts import Facts
from compat.tables.linked import open_linked
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError


_MANYLINUX = "https://peps.python.org/pep-0600/"
_GLIBC = re.compile(
    r"version [`'](?P<what>GLIBC|GLIBCXX|CXXABI)_(?P<least>[\d.]{1,12})' not found(?: \(required by (?P<by>[^()\n]{1,400})\))?"
)


def of_c_library(message: str, where: str, error: RaisedError | None, facts: Facts) -> Finding | None:
    match = _GLIBC.search(message)
    if match is None:
        return None
    by = match["by"] or ""
    names = packages_in(by) or packages_in(message[: match.start()][-400:]) or importing(error)
    names = names or _only_listed(match["what"], match["least"], facts)
    shown = f"{names[0]} needs" if names else "A wheel needs"
    older = tuple(_older_wheel(names, match["what"], match["least"], facts))
    if match["what"] == "GLIBC":
        return inferred(
            rule="symptom-glibc",
            origin="build",
            title=f"{shown} glibc {match['least']}, but this system has an older one",
            why="Its binaries were built on a newer Linux distribution; pip cannot upgrade glibc.",
            packages={name: version_of(name, facts) for name in names[:1]},
            facts=("glibc",),
            fixes=(
                *older,
                Fix(
                    "source-install",
                    names[0] if names else None,
                    "",
                    "build the package on this system, or use a release whose wheel supports older systems",
                ),
                Fix(
                    "config",
                    text=f"use a system with glibc {match['least']} or newer ({_SYSTEMS.get(match['least'], 'a newer image')})",
                ),
            ),
            evidence=(_MANYLINUX,),
            here=where,
        )
    compiler = _COMPILERS.get(f"{match['what']}_{match['least']}")
    return inferred(
        rule="symptom-glibcxx",
        origin="build",
        title=f"{shown} {match['what']}_{match['least']}, but an older libstdc++ is found first",
        why="The loader finds conda's or the system's libstdc++ before a newer one."
        + (f" That version comes with {compiler}." if compiler else ""),
        packages={name: version_of(name, facts) for name in names[:1]},
        facts=("variables", "glibc"),
        fixes=(
            *older,
            Fix("env-var", text="put the newer libstdc++ first", command="export LD_PRELOAD=$CONDA_PREFIX/lib/libstdc++.so.6"),
            Fix("config", text="install a newer one", command="conda install -c conda-forge libstdcxx-ng"),
        ),
        evidence=(LOADER,),
        here=where,
    )


def _only_listed(what: str, least: str, facts: Facts) -> list[str]:
    """Return the installed extension whose wheel asks for this version of a C library, if only one does."""
    table = open_linked()
    asking = [
        name
        for name in installed_extensions(facts)
        if any(row.version == version_of(name, facts) and row.least(what) == least for row in table.of(name))
    ]
    return asking if len(asking) == 1 else []


def _older_wheel(names: Sequence[str], what: str, least: str, facts: Facts) -> Iterator[Fix]:
    """Yield the nearest release whose wheel asks for less, if that of the installed one is known to ask for this version."""
    rows = open_linked().of(names[0]) if names else ()
    here = [each.variant for each in rows if each.version == version_of(names[0], facts) and each.least(what) == least]
    fitting = [each.version for each in rows if each.variant in here and key_of(each.least(what) or "0") < key_of(least)]
    if fitting:
        command = f'pip install "{names[0]}=={fitting[-1]}"'
        yield Fix(
            "pin", names[0], f"=={fitting[-1]}", f"the newest release whose wheel needs less than {what}_{least}", command
        )


_COMPILERS = {
    "GLIBCXX_3.4.26": "GCC 9", "GLIBCXX_3.4.27": "GCC 9", "GLIBCXX_3.4.28": "GCC 9 and 10 (Ubuntu 20.04)",
    "GLIBCXX_3.4.29": "GCC 11 (RHEL 9)", "GLIBCXX_3.4.30": "GCC 12 (Ubuntu 22.04, Debian 12)", "GLIBCXX_3.4.31": "GCC 13.1",
    "GLIBCXX_3.4.32": "GCC 13.2 (Ubuntu 24.04)", "GLIBCXX_3.4.33": "GCC 14 (Ubuntu 24.04, Debian 13)",
    "CXXABI_1.3.12": "GCC 10", "CXXABI_1.3.13": "GCC 11 (RHEL 9)", "CXXABI_1.3.14": "GCC 13 (Ubuntu 24.04)",
    "CXXABI_1.3.15": "GCC 14 (Ubuntu 24.04, Debian 13)",
}  # fmt: skip
"""Version of the C++ library → the compiler that first ships it, and systems that have it."""

_SYSTEMS = {
    "2.27": "Ubuntu 18.04", "2.28": "Debian 10, RHEL 8", "2.29": "Ubuntu 20.04", "2.31": "Ubuntu 20.04, Debian 11",
    "2.32": "Ubuntu 22.04, Debian 12",
    "2.33": "Ubuntu 22.04, Debian 12", "2.34": "Ubuntu 22.04, RHEL 9", "2.35": "Ubuntu 22.04, Debian 12",
    "2.36": "Ubuntu 24.04, Debian 12",
    "2.38": "Ubuntu 24.04, Debian 13", "2.39": "Ubuntu 24.04, Debian 13",
}  # fmt: skip
"""glibc version → systems that ship it or a newer one."""
