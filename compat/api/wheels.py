"""Wheels outside the index that a file names by their address: that of the one for the torch of a plan takes its place.

A file that names one mostly does so because it cannot compile the extension: an image without nvcc.
"""

from __future__ import annotations

import re

from compat.checks.torch_build import cuda_of, has_cxx11_abi, wheel_has_cxx11_abi
from compat.formats.edit.changes import Change
from compat.model import Environment, Source
from compat.records import replace
from compat.repair.plan import Plan
from compat.tables.builds import open_code_tables
from compat.tables.linked import series_of

_ADDRESS = re.compile(
    r"(?P<folder>https://github\.com/Dao-AILab/flash-attention/releases/download/v)[\w.]+/(?P<name>flash_attn)-[\w.]+"
    r"(?:\+|%2[Bb])cu\d+torch[\d.]+cxx11abi(?:TRUE|FALSE)-cp\d+-cp\d+-(?P<platform>linux_x86_64)\.whl"
)
"""The addresses of ``matrix/facts/published_wheels.csv`` for releases with ``cudas``: ``cu`` and one of these."""


def with_wheels(plan: Plan, environment: Environment) -> Plan:
    """The plan with the addresses of wheels for its torch, in place of releases that would be compiled or downloaded."""
    found = {each.name: moved for each in plan.changes if (moved := _moved(each, plan, environment)) is not None}
    if not found:
        return plan
    kept = plan.compiled - found.keys()
    return replace(
        plan, changes=tuple(found.get(each.name, each) for each in plan.changes), compiled=kept,
        downloaded=plan.downloaded & kept,
    )  # fmt: skip


def _moved(change: Change, plan: Plan, environment: Environment) -> Change | None:
    """The change to a wheel by its address; ``None`` if it was none, or none is known for the torch of the plan."""
    torch, before, tables = plan.chosen.get("torch"), change.before_source, open_code_tables()
    if torch is None or before is None or change.source is not None or change.after is None or environment.python is None:
        return None
    address = _ADDRESS.fullmatch(str(before.details.get("url", "")))
    cudas, pythons = tables.published_for.get(change.name, {}).get(change.after, ((), ()))
    series, python = series_of(torch.public), series_of(environment.python)
    default = next((each.cuda for each in tables.torch_builds(torch.public) if each.default and each.cuda), "")
    major = (cuda_of(torch.key.local) or "" if torch.key.local else default).partition(".")[0]
    published = series in tables.published.get(change.name, {}).get(change.after, ())
    abi = has_cxx11_abi(torch.installed)
    if address is None or not published or major not in cudas or python not in pythons or abi is None:
        return None
    if wheel_has_cxx11_abi(change.name, change.after, series, forced=abi) != abi:
        return None
    tag = f"cp{python.replace('.', '')}"
    version = f"{change.after}+cu{major}torch{series}cxx11abi{str(abi).upper()}"
    url = f"{address['folder']}{change.after}/{address['name']}-{version}-{tag}-{tag}-{address['platform']}.whl"
    return replace(change, after=version, source=Source("url", {"url": url}))
