"""A lock file in uv's format for the packages of a real environment, for timing.

Names, versions and requirements are those installed; file URLs and hashes are generated, as many as a real
lock has for one package.
"""

from __future__ import annotations

from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_INDEX = "https://index.example/simple"
_FILES_EACH = 6
"""Wheels of one package, the average of 12 real locks with 3,590 packages."""


def write_environment(folder: Path, count: int) -> None:
    """Add generated distributions (metadata only) to a site-packages folder until it holds ``count``."""
    there = len(list(folder.glob("*.dist-info")))
    for number in range(count - there):
        info = folder / f"made_up_{number:04}-1.{number}.0.dist-info"
        info.mkdir()
        requires = "".join(f"Requires-Dist: made-up-{at:04}>=1.0\n" for at in range(number % 7) if at < number)
        text = f"Metadata-Version: 2.1\nName: made-up-{number:04}\nVersion: 1.{number}.0\n{requires}\n"
        (info / "METADATA").write_text(text, encoding="utf-8")
        (info / "RECORD").write_text("", encoding="utf-8")
        (info / "INSTALLER").write_text("uv\n", encoding="utf-8")


def write_lock(site_packages: Path, path: Path, times: int = 1) -> int:
    """Write the lock of an environment, repeated ``times`` times under other names; returns its number of packages."""
    found: dict[str, Distribution] = {canonicalize_name(each.name): each for each in distributions(path=[str(site_packages)])}
    names = {name: [name, *(f"{name}-copy{at}" for at in range(1, times))] for name in found}
    blocks = [_block(installed, found, at, names) for installed in found.values() for at in range(times)]
    everything = "".join(f'    {{ name = "{each}" }},\n' for copies in names.values() for each in copies)
    head = 'version = 1\nrevision = 3\nrequires-python = ">=3.10"\nresolution-markers = [\n    "sys_platform == \'linux\'",\n'
    head += "    \"sys_platform != 'linux'\",\n]\n"
    root = f'\n[[package]]\nname = "job"\nversion = "0.1.0"\nsource = {{ virtual = "." }}\ndependencies = [\n{everything}]\n'
    path.write_text(head + root + "".join(blocks), encoding="utf-8")
    return len(blocks) + 1


def _block(installed: Distribution, found: dict[str, Distribution], at: int, names: dict[str, list[str]]) -> str:
    name = names[canonicalize_name(installed.name)][at]
    needed = []
    for text in installed.requires or ():
        asked = Requirement(text)
        wanted = canonicalize_name(asked.name)
        if wanted in found and "extra" not in str(asked.marker or ""):
            marker = f', marker = "{str(asked.marker).replace(chr(34), chr(39))}"' if asked.marker else ""
            needed.append(f'    {{ name = "{names[wanted][at]}"{marker} }},\n')
    dependencies = f"dependencies = [\n{''.join(sorted(set(needed)))}]\n" if needed else ""
    files = "".join(
        f'    {{ url = "https://files.example/packages/{number:02}/{"0a" * 28}/{name}-{installed.version}-cp3{number}'
        f'-cp3{number}-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", hash = "sha256:{"0123456789abcdef" * 4}", '
        f'size = {number}00000, upload-time = "2025-01-01T00:00:00Z" }},\n'
        for number in range(_FILES_EACH)
    )
    return (
        f'\n[[package]]\nname = "{name}"\nversion = "{installed.version}"\nsource = {{ registry = "{_INDEX}" }}\n'
        f"{dependencies}wheels = [\n{files}]\n"
    )
