"""A finding as lines of plain text, for formats that lay text out themselves."""

from __future__ import annotations

from compat.errors import printable
from compat.show.settle import flags_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.report import Finding, Fix


def one_line(text: str) -> str:
    """The text on one line that no reader takes for a command: runs of white space are one space, the rest is escaped."""
    return printable(" ".join(text.split()))


def lines_of(finding: Finding, every_fix: bool = False) -> list[str]:
    """What there is to say about a finding besides its title; of its fixes only the best, unless ``every_fix``."""
    lines = [finding.why]
    if finding.here:
        lines.append(f"here: {finding.here}")
    if finding.target is not None or finding.selections:
        lines.append(f"in: {', '.join([*([] if finding.target is None else [finding.target]), *finding.selections])}")
    if finding.verdict != "hit":
        lines.append(f"settle: {flags_for(finding.unknown) or 'cannot be settled'}")
    for position, fix in enumerate(finding.fixes if every_fix else finding.fixes[:1]):
        lines.append(f"{'or' if position else 'mend'}: {fix_of(fix)}")
    lines += [f"see: {address}" for address in finding.evidence[:1]]
    lines.append(f"rule: {finding.rule} ({finding.confidence})")
    return [line for line in map(one_line, lines) if line]


def fix_of(fix: Fix) -> str:
    """A fix in words: its command, and what it does."""
    if fix.command is None:
        return fix.text
    return f"{fix.command} ({fix.text})" if fix.text else fix.command
