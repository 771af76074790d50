"""Text files of conda packages: ``conda list --export`` (``name=version=build``), ``--explicit``, or specifications alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.formats.conda_spec import channel_of, conda_distribution, parse_match_spec
from compat.formats.jobs import check_size
from compat.formats.listing import Entry, Listing, check_entries
from compat.formats.registry import Format
from compat.formats.requirements.requirement import INDEX
from compat.model import Distribution, Environment, normalized
from compat.records import replace

if TYPE_CHECKING:
    from collections.abc import Iterator


_PLATFORM = re.compile(r"# platform: (linux|osx|win)-(\S+)")
_SYSTEMS = {"linux": "linux", "osx": "darwin", "win": "windows"}
_MACHINES = {"64": "x86_64", "arm64": "arm64", "aarch64": "aarch64", "ppc64le": "ppc64le", "32": "x86"}


class CondaList(Format):
    """A list of conda packages, as ``conda create --file`` takes it; :class:`InputError` for an invalid line.

    ``complete`` is set for an export, where every package has its build.
    """

    kind = "conda list"
    by_hand = "install the releases with conda, and export the environment again"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        check_size(path, text, "a list of conda packages")
        entries: list[Entry] = []
        python = None
        exact = True
        for number, line in _lines(text):
            check_entries(len(entries) + 1, path, number)
            found, is_exact = _package(path, number, line)
            exact = exact and is_exact
            entries.append(Entry(found, number))
            if found.name == "python":
                python = found.version
        platform = _PLATFORM.search(text)
        context = Environment(
            python=python if python is not None and python.count(".") == 2 else None,
            os=None if platform is None else _SYSTEMS[platform[1]],
            machine=None if platform is None else _MACHINES.get(platform[2]),
        )
        short = python is not None and context.python is None
        return (
            Listing(
                path, self.kind, tuple(entries), complete=exact and bool(entries), context=context,
                requires_python=f"=={python}.*" if short else None,
            ),
        )  # fmt: skip


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, whole in enumerate(text.splitlines(), 1):
        line = whole.removeprefix("\ufeff").strip()
        if line and not line.startswith(("#", "@")):
            yield number, line


def _package(path: str, number: int, line: str) -> tuple[Distribution, bool]:
    """Return the package of a line, and whether the line names one build of it."""
    name, _, rest = line.partition("=")
    version, _, build = rest.partition("=")
    if build.startswith("pypi"):  # exported from pip: ``accelerate=0.20.3=pypi_0``
        return Distribution(normalized(name), version, INDEX), True
    try:
        spec = parse_match_spec(line.partition("#")[0])
    except ValueError as problem:
        raise InputError(f"expected a conda package: {problem}", path, number) from None
    details = {"channel": channel_of(spec.name, spec.channel, ()), "spec": spec.unclear}
    found = conda_distribution(spec.name, spec.version, spec.build, details, spec.specifier)
    if found.version is None and version and build and version[:1].isdecimal():
        found = replace(found, version=version, specifier=None)
    return found, spec.exact
