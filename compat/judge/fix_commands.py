"""Fixes that move one package, and the command that makes one in a project: a lock file is mended by the tool that wrote it."""

from __future__ import annotations

from compat.records import replace
from compat.report import Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.report import Finding

_TOOLS = {
    "uv.lock": "uv add", "poetry.lock": "poetry add", "pdm.lock": "pdm add", "Pipfile.lock": "pipenv install",
    "pixi.lock": "pixi add --pypi",
}  # fmt: skip
"""Kinds of lock files, and what changes a requirement of the project and locks it anew."""


def upgrade_to(name: str, version: str, text: str) -> Fix:
    """An upgrade to a release or a later one."""
    return Fix("upgrade", name, f">={version}", text, f'pip install "{name}>={version}"')


def downgrade_to(name: str, version: str, text: str, *, kind: str = "downgrade") -> Fix:
    """A release or an earlier one; the command takes that very release, the newest that does."""
    return Fix(kind, name, f"<={version}", text, f'pip install "{name}=={version}"')


def in_project(finding: Finding, kind: str) -> Finding:
    """The finding with commands for the project whose file of this kind it was found in."""
    tool = _TOOLS.get(kind)
    return finding if tool is None else replace(finding, fixes=tuple(_by(tool, fix) for fix in finding.fixes))


def _by(tool: str, fix: Fix) -> Fix:
    if fix.command is None or not fix.command.startswith("pip install ") or not fix.spec:
        return fix
    return replace(fix, command=f"{tool} {fix.command.removeprefix('pip install ')}")
