"""``compat script``: find the releases of each tracked package that provide everything some code uses."""

from __future__ import annotations

import sys

from compat.api.commands import Options
from compat.checks.code import releases
from compat.checks.interfaces import open_rows_once
from compat.errors import InputError, printable
from compat.interfaces.code.explained import (
    Explained,
    Nowhere,
    Reason,
    absent_everywhere,
    drop_incompatible_releases,
    explain_ranges,
)
from compat.interfaces.code.files import read_code
from compat.interfaces.code.needs import Code, CodeNeeds
from compat.interfaces.code.releases import Reverse
from compat.interfaces.table import tracked
from compat.output.stream import emit, emit_json
from compat.output.terminal import wrap_text
from compat.records import record
from compat.tables.declared import Declared

_MOST_REASONS = 3
_MOST_HOLES = 6
_MARGIN = " " * 6


@record(frozen=True)
class Answered:
    """The releases that some code needs, the names missing from every release, and notes."""

    code: Code
    packages: tuple[Explained, ...]
    nowhere: tuple[Nowhere, ...]
    notes: tuple[str, ...]

    @property
    def exit(self) -> int:
        """2 for an unreadable file, 1 if a name is missing from every release or no release has everything, else 0."""
        if self.code.problems:
            return 2
        return int(bool(self.nowhere) or any(each.first is None for each in self.packages))


def run(options: Options) -> int:
    """Print the working releases of every tracked package that the code uses, and the reason for each bound."""
    if not options.operands:
        raise InputError("expected a script, a notebook or a folder: compat script train.py")
    answered = answer(options.operands)
    for problem in answered.code.problems:
        print(f"compat: {problem}", file=sys.stderr)
    if options.one("format") == "json":
        emit_json(_json(answered))
    elif answered.code.files:
        emit(_text(answered))
    return answered.exit


def answer(paths: tuple[str, ...]) -> Answered:
    """Find the releases that the code in some files needs."""
    code = read_code(paths)
    known = tracked()
    if not known:
        raise InputError("this build of compat does not include the tables of published source")
    wanted = CodeNeeds(code, known)
    answers = releases()
    bounds = tuple(bound for each in code.files for bound in each.bounds)
    reverse = Reverse(wanted, answers, bounds)
    ranges = reverse.ranges()
    rows = open_rows_once()
    if rows is not None:  # for packages that the code certainly uses, only compatible releases
        certain = {package for each in wanted.all if each.sure for package in wanted.packages_of(each)}
        ranges = drop_incompatible_releases(ranges, frozenset(certain), rows, Declared())
    used = {each.module.partition(".")[0] for file in code.files for each in file.module.imports}
    notes = (
        *code.notes,
        *(
            f"{name} replaces parts of other packages when it is imported: only imports from those were checked"
            for name in wanted.patched_by
        ),
        *(
            f"{name} is a module next to the code: it is assumed to be the one that is imported"
            for name in sorted(code.shadowed & set(wanted.tracked) & used)
        ),
    )
    return Answered(code, explain_ranges(ranges, reverse, answers), absent_everywhere(reverse, answers, wanted), notes)


def _text(answered: Answered) -> str:
    """Render the releases of each package, then the reason for each bound."""
    files = [each.path for each in answered.code.files]
    shown = files[0] if len(files) == 1 else f"{len(files)} files"
    lines = []
    if answered.packages:
        width = max(len(each.package) for each in answered.packages)
        lines.append(f"  {shown} works with")
        for each in answered.packages:
            lines += _package(each, width)
    else:
        lines.append(f"  {shown} uses none of the packages with known source")
    for gone in answered.nowhere:
        meant = f"; did you mean {gone.nearest}?" if gone.nearest else ""
        lines += ["", *wrap_text(f"{gone.place}: {gone.what} is in no known release of {gone.package}{meant}", "  ! ", "    ")]
    for note in answered.notes:
        lines += ["", *wrap_text(note, "  note  ", "        ")]
    return "\n".join(map(printable, lines))


def _package(each: Explained, width: int) -> list[str]:
    lines = ["", f"  {each.package:<{width}}  {_span(each)}"]
    if each.first is None:
        for reason in each.conflict[:8]:
            lines += _reason(reason, _MARGIN)
        return lines
    if each.below is not None:
        lines += _reasons(f"from {each.first}", each.below[1])
    if each.above is not None:
        lines += _reasons(f"up to {each.last}", each.above[1])
    holes = list(each.holes.items())
    if holes:
        named = ", ".join(version for version, _ in holes[:_MOST_HOLES])
        more = f" and {len(holes) - _MOST_HOLES} more" if len(holes) > _MOST_HOLES else ""
        lines += _reasons(f"not {named}{more}", holes[0][1])
    for text in each.with_others:
        lines += wrap_text(text, _MARGIN, _MARGIN + "  ")
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


def _reasons(label: str, reasons: tuple[Reason, ...]) -> list[str]:
    lines = wrap_text(f"{label}:", _MARGIN, _MARGIN)
    for reason in reasons[:_MOST_REASONS]:
        lines += _reason(reason, _MARGIN + "  ")
    if len(reasons) > _MOST_REASONS:
        lines.append(f"{_MARGIN}  and {len(reasons) - _MOST_REASONS} more")
    return lines


def _reason(reason: Reason, margin: str) -> list[str]:
    return wrap_text(f"{reason.place}  {reason.what}: {reason.text}", margin, margin + "  ")


def _json(answered: Answered) -> dict[str, object]:
    """Return plain JSON values (schema ``compat/script/1``)."""
    return {
        "schema": "compat/script/1",
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


def _package_json(each: Explained) -> dict[str, object]:
    def side(found: tuple[str, tuple[Reason, ...]] | None) -> dict[str, object] | None:
        return None if found is None else {"release": found[0], "reasons": [reason.to_json() for reason in found[1]]}

    versions = each.range.versions
    return {
        "name": each.package, "specifier": None if each.first is None else each.specifier,
        "first": each.first, "last": each.last, "releases": [version for version in versions if version in each.range.allowed],
        "known": len(versions), "below": side(each.below), "above": side(each.above),
        "holes": {version: [reason.to_json() for reason in reasons] for version, reasons in each.holes.items()},
        "conflict": [reason.to_json() for reason in each.conflict], "with": list(each.with_others),
    }  # fmt: skip
