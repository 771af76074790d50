"""The command that makes a fix in a project: a lock file is mended by the tool that wrote it."""

from __future__ import annotations

from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.report import Finding, Fix

_TOOLS = {
    "uv.lock": "uv add", "poetry.lock": "poetry add", "pdm.lock": "pdm add", "Pipfile.lock": "pipenv install",
    "pixi.lock": "pixi add --pypi",
}  # fmt: skip
"""Kinds of lock files, and what changes a requirement of the project and locks it anew."""


def in_project(finding: Finding, kind: str) -> Finding:
    """The finding with commands for the project whose file of this kind it was found in."""
    tool = _TOOLS.get(kind)
    return finding if tool is None else replace(finding, fixes=tuple(_by(tool, fix) for fix in finding.fixes))


def _by(tool: str, fix: Fix) -> Fix:
    if fix.command is None or not fix.command.startswith("pip install ") or not fix.spec:
        return fix
    return replace(fix, command=f"{tool} {fix.command.removeprefix('pip install ')}")
