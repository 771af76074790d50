"""The tables that follow the index, and what brings each up to date: a new kind of table is a module and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from scripts.refresh import extension_builds, linked, numpy_abi, overlaps, programs, releases, torch_builds, triton_gpus, wheels
from scripts.refresh.updates import Kind

KINDS: Mapping[str, Kind] = {
    "releases": releases.update,
    "requirements": releases.update,
    "torch_builds": torch_builds.update,
    "extension_builds": extension_builds.update,
    "linked": linked.update,
    "numpy_abi": numpy_abi.update,
    "overlaps": overlaps.update,
    "programs": programs.update,
    "triton_gpus": triton_gpus.update,
    "wheels": wheels.update,
}
