"""What people paste into issues → :class:`Environment`: reports of tools, lists of packages, logs and their own words."""

from __future__ import annotations

from compat.errors import InputError
from compat.model import Environment
from compat.reports.accelerate_config import read_accelerate
from compat.reports.fields import read_fields
from compat.reports.findings import WRITTEN, Findings
from compat.reports.log.versions import versions_in
from compat.reports.merged import merged
from compat.reports.nvidia_tools import read_nvidia
from compat.reports.packages import read_json_lists, read_lists
from compat.reports.prose import read_banner, read_by_hand, read_variables
from compat.reports.words import is_tool, plain_lines

__all__ = ["read_pasted"]

_READERS = (read_nvidia, read_banner, read_lists, read_json_lists, read_accelerate, read_variables, read_fields, read_by_hand)
"""In this order: a line that an earlier one has read is not read again."""


def read_pasted(text: str, name: str) -> tuple[Environment, tuple[str, ...]]:
    """The environment a pasted text tells of, and notes on what was taken for what and what stays unknown.

    ``name`` is what the text is called in an error. Places that give different versions of one distribution are kept as
    alternatives, two entries of its name; other facts on which they differ stay unknown. Raises :class:`InputError`
    where nothing at all could be told.
    """
    lines, remark = plain_lines(text)
    found = Findings()
    if remark is not None:
        found.note(remark)
    for reader in _READERS:
        reader(lines, found)
    known = set(found.packages)
    for distribution, version in versions_in("\n".join(line.text for line in lines)).items():
        if distribution not in known and not is_tool(distribution):
            found.package(distribution, version, WRITTEN)
    environment, notes = merged(found)
    if len(environment.to_json()) == 1:
        raise InputError(
            "no environment found in the text; expected the output of collect_env, trl env, transformers env, pip list, "
            "nvidia-smi or similar",
            name,
        )
    return environment, notes
