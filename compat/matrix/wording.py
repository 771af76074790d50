"""Conditions of rules in words."""

from __future__ import annotations

from compat.versions import written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.matrix.conditions import Atom


def condition(atom: Atom) -> str:
    """One condition in words."""
    form = atom[0]
    if form == "package":
        return f"{atom[1]} {written(atom[3])}" if atom[2] == "in" else f"{atom[1]} {atom[2]}"
    if form == "word":
        return f"{_fact(atom[1])} is {' or '.join(atom[2])}"
    if form == "range":
        return f"{_fact(atom[1])} {written(atom[2])}"
    if form == "feature":
        return str(atom[1])
    if form == "variable":
        return f"{atom[1]} {atom[2]} {', '.join(atom[3])}".rstrip()
    if form == "source":
        return f"{atom[1]} installed from {' or '.join(atom[2])}"
    if form == "code":
        return f"{atom[1]} at one of {len(atom[3])} commits of {atom[4]}, or its files say so ({atom[2]})"
    if form == "any":
        return " or ".join(condition(each) for each in atom[1])
    return _devices(atom)


def _devices(atom: Atom) -> str:
    _, count, (vendors, capability, names, gfx, memory) = atom
    of = [
        vendors and " or ".join(vendors), names and f"named {' or '.join(names)}", gfx and " or ".join(gfx),
        capability and f"of compute capability {written(capability)}", memory and f"with {written(memory)} MiB",
    ]  # fmt: skip
    return " ".join(["accelerators", written(count), *(part for part in of if part)])


def _fact(path: str) -> str:
    return path.removeprefix("workload.").replace("_", " ")
