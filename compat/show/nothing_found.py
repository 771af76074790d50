"""What is said where a report has no finding: not more than was found out."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.report import Report


def nothing_found(report: Report, baseline: str | None = None) -> str:
    """The sentence under a report without findings: some may be left out, or something not have been read."""
    if report.known:
        more = f", {report.ignored} more {_are(report.ignored)} ignored" if report.ignored else ""
        return f"Nothing new since {baseline}: {_counted(report.known)} known{more}."
    if report.ignored:
        return f"Nothing else known to be bad: {_counted(report.ignored)} ignored."
    return "Nothing known to be bad in what was read." if report.exit == 3 else "Nothing known to be bad."


def _counted(number: int) -> str:
    return f"{number} finding{'' if number == 1 else 's'} {_are(number)}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
