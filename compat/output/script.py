"""The releases that some code needs, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat.errors import printable
from compat.output.terminal import wrapped

if TYPE_CHECKING:
    from compat.cli.script import Answered
    from compat.interfaces.code.explained import Explained, Nowhere, Reason


SCHEMA = "compat/script/1"
_MOST_REASONS = 3
_MOST_HOLES = 6


def script_text(answered: Answered) -> str:
    """Eighty columns; the releases first, then what decides each bound."""
    files = [each.path for each in answered.code.files]
    shown = files[0] if len(files) == 1 else f"{len(files)} files"
    lines = []
    if answered.packages:
        width = max(len(each.package) for each in answered.packages)
        lines.append(f"  {shown} can do with")
        for each in answered.packages:
            lines += _package(each, width)
    else:
        lines.append(f"  {shown} uses none of the packages whose source is known")
    for gone in answered.nowhere:
        lines += ["", *wrapped(f"{gone.place}: {_nowhere(gone)}", "  ! ", "    ")]
    for note in answered.notes:
        lines += ["", *wrapped(note, "  note  ", "        ")]
    return "\n".join(map(printable, lines))


def _nowhere(gone: Nowhere) -> str:
    text = f"{gone.what} is in no known release of {gone.package}"
    return f"{text}; did you mean {gone.nearest}?" if gone.nearest else text


def _package(each: Explained, width: int) -> list[str]:
    lines = ["", f"  {each.package:<{width}}  {_span(each)}"]
    margin = " " * 6
    if each.first is None:
        for reason in each.conflict[:8]:
            lines += _reason("", reason, margin)
        return lines
    if each.below is not None:
        lines += _reasons(f"from {each.first}", each.below[1], margin)
    if each.above is not None:
        lines += _reasons(f"up to {each.last}", each.above[1], margin)
    holes = list(each.holes.items())
    if holes:
        named = ", ".join(version for version, _ in holes[:_MOST_HOLES])
        more = f" and {len(holes) - _MOST_HOLES} more" if len(holes) > _MOST_HOLES else ""
        lines += _reasons(f"not {named}{more}", holes[0][1], margin)
    for text in each.with_others:
        lines += wrapped(text, margin, margin + "  ")
    return lines


def _span(each: Explained) -> str:
    versions = each.range.versions
    if each.first is None:
        return "no release has everything"
    count = f"({len(each.range.allowed)} of {len(versions)} releases)"
    if each.first == versions[0] and each.last == versions[-1]:
        return f"any release from {versions[0]} on {count}" if not each.holes else f"{each.first} and later {count}"
    if each.last == versions[-1]:
        return f"{each.first} and later {count}"
    if each.first == each.last:
        return f"{each.first} {count}"
    return f"{each.first} – {each.last} {count}"


def _reasons(label: str, reasons: tuple[Reason, ...], margin: str) -> list[str]:
    lines = wrapped(f"{label}:", margin, margin)
    for reason in reasons[:_MOST_REASONS]:
        lines += _reason("", reason, margin + "  ")
    if len(reasons) > _MOST_REASONS:
        lines.append(f"{margin}  and {len(reasons) - _MOST_REASONS} more")
    return lines


def _reason(label: str, reason: Reason, margin: str) -> list[str]:
    return wrapped(f"{label}{reason.place}  {reason.what}: {reason.text}", margin, margin + "  ")


def script_json(answered: Answered) -> dict[str, Any]:
    """The same for programs (``compat/script/1``)."""
    return {
        "schema": SCHEMA,
        "files": [each.path for each in answered.code.files],
        "packages": [_package_json(each) for each in answered.packages],
        "nowhere": [
            {"package": each.package, "place": each.place, "uses": each.what, "nearest": each.nearest}
            for each in answered.nowhere
        ],
        "notes": list(answered.notes),
        "problems": [str(problem) for problem in answered.code.problems],
        "exit": answered.exit,
    }


def _package_json(each: Explained) -> dict[str, Any]:
    def side(found: tuple[str, tuple[Reason, ...]] | None) -> dict[str, Any] | None:
        return None if found is None else {"release": found[0], "reasons": [reason.to_json() for reason in found[1]]}

    versions = each.range.versions
    return {
        "name": each.package, "specifier": None if each.first is None else each.specifier,
        "first": each.first, "last": each.last, "releases": [version for version in versions if version in each.range.allowed],
        "known": len(versions), "below": side(each.below), "above": side(each.above),
        "holes": {version: [reason.to_json() for reason in reasons] for version, reasons in each.holes.items()},
        "conflict": [reason.to_json() for reason in each.conflict], "with": list(each.with_others),
    }  # fmt: skip
