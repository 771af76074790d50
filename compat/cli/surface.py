"""``compat surface A==1.0 B==2.0``: what breaks between releases, with file and line on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.checks.interfaces import open_rows_once
from compat.errors import InputError, Undecided
from compat.interfaces.rows import Rows
from compat.model import normalized
from compat.output.stream import emit
from compat.versions import is_version, key_of

if TYPE_CHECKING:
    from compat.api.options import Options


def run(options: Options) -> int:
    """Prints what the releases need of one another and do not have; 0: nothing, 1: something, 3: one is in no table."""
    if len(options.operands) < 2:
        raise InputError("expected two releases or more: compat surface trl==0.11.4 transformers==4.46.0")
    asked = dict(_release(text) for text in options.operands)
    if len(asked) < len(options.operands):
        raise InputError("expected one release of each package")
    rows = open_rows_once()
    if rows is None:
        raise InputError("the tables of published source are not there: this build of compat was made without them")
    for name, version in asked.items():
        _must_be_known(name, version, rows)
    found = sorted(rows.broken(asked), key=lambda row: (row.tier, row.consumer, row.package, row.what, row.path))
    if options.one("format") == "json":
        from compat.output.json import dumped
        from compat.output.surface import surface_json

        emit(dumped(surface_json(asked, found)))
    else:
        from compat.output.surface import surface_text

        emit(surface_text(asked, found))
    return int(bool(found))


def _release(text: str) -> tuple[str, str]:
    name, equals, version = text.partition("==")
    if not equals or not name.strip() or not is_version(version.strip()):
        raise InputError(f"expected a release such as trl==0.11.4, not {text!r}")
    return normalized(name.strip()), version.strip()


def _must_be_known(name: str, version: str, rows: Rows) -> None:
    versions = rows.versions(name)
    if not versions:
        import difflib

        near = difflib.get_close_matches(name, sorted(rows.packages), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(f"the source of {name} is in no table{hint}")
    if not any(key_of(each) == key_of(version) for each in versions):
        key = key_of(version)
        near = [each for each in versions if key_of(each) <= key][-1:] or [versions[0]]
        raise Undecided(
            f"the source of {name} {version} was not read ({versions[0]} to {versions[-1]} were; nearest {near[0]})"
        )
