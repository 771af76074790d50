"""Tiny wheels and source distributions, made from a description of a release.

A release is a mapping as the resolver scenarios have it; every key may be missing: ``requires``, ``extras`` (name → list),
``requires_python``, ``wheel`` and ``sdist`` (``False``: there is none), ``wheel_tags``, ``yanked`` (``True`` or a reason),
``uploaded``, ``dynamic`` (the sdist leaves its requirements to its build), ``padding`` (bytes before the metadata).
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from random import Random
from typing import Any

Release = Mapping[str, Any]
WHEN = (2024, 1, 1, 0, 0, 0)


def metadata_text(name: str, version: str, release: Release, *, sdist: bool = False) -> str:
    lines = ["Metadata-Version: 2.2", f"Name: {name}", f"Version: {version}"]
    if sdist and release.get("dynamic"):
        lines.append("Dynamic: Requires-Dist")
    if release.get("requires_python"):
        lines.append(f"Requires-Python: {release['requires_python']}")
    lines += [f"Requires-Dist: {requirement}" for requirement in release.get("requires", ())]
    for extra, requirements in release.get("extras", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {_with_extra(requirement, extra)}" for requirement in requirements]
    return "\n".join(lines) + f"\n\nThis is {name}.\n"


def _with_extra(requirement: str, extra: str) -> str:
    wanted, semicolon, marker = requirement.partition(";")
    also = f"({marker.strip()}) and " if semicolon else ""
    return f"{wanted.strip()} ; {also}extra == '{extra}'"


def wheel_names(name: str, version: str, release: Release) -> list[str]:
    if release.get("wheel") is False:
        return []
    stem = f"{name.replace('-', '_')}-{version}"
    return [f"{stem}-{tag}.whl" for tag in release.get("wheel_tags", ["py3-none-any"])]


def sdist_name(name: str, version: str, release: Release) -> str | None:
    return None if release.get("sdist") is False else f"{name.replace('-', '_')}-{version}.tar.gz"


def wheel(name: str, version: str, release: Release) -> bytes:
    """The same bytes each time. Padding cannot be compressed, so it puts the metadata out of reach of the first range."""
    made = io.BytesIO()
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        padding = Random(0).randbytes(release.get("padding", 0))
        archive.writestr(zipfile.ZipInfo(f"{name}/__init__.py", WHEN), b"raise SystemExit('nothing that is fetched is run')\n")
        archive.writestr(zipfile.ZipInfo(f"{folder}/METADATA", WHEN), metadata_text(name, version, release))
        archive.writestr(
            zipfile.ZipInfo(f"{folder}/WHEEL", WHEN), "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(zipfile.ZipInfo(f"{name}/padding", WHEN), padding)
        archive.writestr(zipfile.ZipInfo(f"{folder}/RECORD", WHEN), "")
    return made.getvalue()


def sdist(name: str, version: str, release: Release) -> bytes:
    made = io.BytesIO()
    folder = f"{name.replace('-', '_')}-{version}"
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for member, body in (
            (f"{folder}/setup.py", b"raise SystemExit('nothing that is fetched is run')\n"),
            (f"{folder}/PKG-INFO", metadata_text(name, version, release, sdist=True).encode()),
        ):
            info = tarfile.TarInfo(member)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return made.getvalue()
