"""What people paste into issues → :class:`Environment`: reports of tools, lists of packages, logs and their own words."""

from __future__ import annotations

from compat.errors import InputError
from compat.read.log.log_versions import versions_in
from compat.read.pasted.accelerate_config import read_accelerate
from compat.read.pasted.by_hand import read_by_hand
from compat.read.pasted.fields import read_fields
from compat.read.pasted.findings import WRITTEN, Findings
from compat.read.pasted.json_lists import read_json_lists
from compat.read.pasted.merged import merged
from compat.read.pasted.nvidia_tools import read_nvidia
from compat.read.pasted.package_lists import read_lists
from compat.read.pasted.plain_lines import plain_lines
from compat.read.pasted.unsloth_banner import read_banner
from compat.read.pasted.variables import read_variables
from compat.read.pasted.words import is_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.environment import Environment

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
            "nothing can be told from this text; expected the output of collect_env, trl env, transformers env, pip list, "
            "nvidia-smi or the like",
            name,
        )
    return environment, notes
