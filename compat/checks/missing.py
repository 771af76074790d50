"""Missing requirements of installed packages as one finding: packages installed without their requirements miss dozens."""

from __future__ import annotations

from compat.model import Finding, Fix
from compat.records import replace
from compat.versions import key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_MOST_ASKING = 4
"""So many packages with missing requirements are named."""


def fold_missing(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, with a single one in place of those about missing requirements, whose command installs all of them.

    A requirement that contradicts another one of the same package stays a finding of its own.
    """
    missing = [each for each in findings if is_missing(each)]
    wanted: dict[str, list[str]] = {}
    folded: list[Finding] = []
    for each in missing:
        name, specifier = each.fixes[0].package or "", each.fixes[0].spec
        together = list(dict.fromkeys((*wanted.get(name, ()), *(specifier.split(",") if specifier else ()))))
        if not together or ranges_of(",".join(together)):
            wanted[name] = together
            folded.append(each)
    if len(folded) < 2:
        return tuple(findings)
    requirements = [f'"{name}{",".join(tightest(specifiers))}"' for name, specifiers in sorted(wanted.items())]
    asking = dict.fromkeys(f"{name} {each.packages[name]}" for each in folded for name in list(each.packages)[:1])
    several = len(asking) - _MOST_ASKING
    named = ", ".join(list(asking)[:_MOST_ASKING]) + (f" and {several} more" if several > 0 else "")
    first = folded[0]
    command = (first.fixes[0].command or "").partition(' "')[0]
    one = replace(
        first, title=f"{len(wanted)} required {'package is' if len(wanted) == 1 else 'packages are'} missing",
        why=f"Installed packages declare them in their metadata: {', '.join(sorted(wanted))}. Code that needs one of them "
        "fails with ModuleNotFoundError. They were left out (--no-deps) or removed.",
        packages={name: version for each in folded for name, version in each.packages.items() if version}
        | dict.fromkeys(sorted(wanted)),
        fixes=(Fix("pin", None, None, "all of them (--all lists who requires what)", f"{command} {' '.join(requirements)}"),),
        here=named,
    )  # fmt: skip
    return tuple(one if each is first else each for each in findings if each is first or each not in folded)


def is_missing(finding: Finding) -> bool:
    """Whether a finding is about a requirement of an installed package that is not installed."""
    return (
        finding.origin == "metadata" and finding.verdict == "hit" and len(finding.fixes) == 1
        and finding.fixes[0].kind == "pin" and finding.packages.get(finding.fixes[0].package or "", "") is None
    )  # fmt: skip


def tightest(parts: list[str]) -> list[str]:
    """The parts of a specifier set, of several lower bounds only the highest, and of several upper ones the lowest."""
    exact = [each for each in parts if each.startswith("==") and "*" not in each]
    if exact:
        return [max(exact, key=lambda each: "+" in each)]  # 2.10.0+cu129 also meets ==2.10.0
    lower = [each for each in parts if each.startswith(">=")]
    upper = [each for each in parts if each.startswith("<") and not each.startswith("<=")]
    dropped = {*lower, *upper}
    if lower:
        dropped.discard(max(lower, key=lambda each: key_of(each[2:])))
    if upper:
        dropped.discard(min(upper, key=lambda each: key_of(each[1:])))
    return [each for each in parts if each not in dropped]
