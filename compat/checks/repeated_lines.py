"""Several lines of a file about one distribution: whether they agree, and then the one that stands for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.formats.specifiers import disjoint
from compat.model import Distribution
from compat.records import replace
from compat.versions import ranges_of

if TYPE_CHECKING:
    from compat.formats.listing import Entry


def as_one(entries: list[Entry]) -> list[Entry]:
    """Merge the entries of one distribution that no installer tells apart: a line given twice, a range next to a pin.

    Rules cannot judge several copies of a distribution, so that a repeated line would hide its findings. Entries that
    contradict each other, or come from different places, stay.
    """
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.distribution.name, []).append(entry)
    if len(found) == len(entries):
        return entries
    return [entry for several in found.values() for entry in (several if len(several) == 1 else _merged_lines(several))]


def _merged_lines(several: list[Entry]) -> list[Entry]:
    """One entry for lines about one distribution that agree: the pin, else all ranges together."""
    first = several[0].distribution
    if any(each.distribution.source != first.source for each in several):
        # pip replaces what conda has installed, and takes an address only if what is there has the version of the pin
        pinned = [each for each in several if each.distribution.version and _is_indexed(each.distribution)]
        others = [each.distribution for each in several if each not in pinned]
        if pinned and others and not any(map(_is_indexed, others)):
            return _merged_lines(pinned)
        # pip installs into what conda has installed
        return several[-1:] if {each.distribution.version for each in several} == {first.version or ""} else several
    extras = sorted({extra for each in several for extra in each.distribution.extra.get("extras", ())})
    if extras and any(each.distribution.extra.get("extras") != extras for each in several):
        several = [replace(each, distribution=replace(each.distribution, extra={**each.distribution.extra, "extras": extras}))
                   for each in several]  # fmt: skip
    indexed = _is_indexed(first)
    lines = {each.distribution.version or each.distribution.specifier: each for each in reversed(several)}
    if len(lines) == 1 or not indexed:
        return several[:1] if len(lines) == 1 else several
    pinned = [each for each in lines.values() if each.distribution.version]
    # 2.6.0 also matches 2.6.0+cu124
    pin = next((each for each in pinned if "+" in (each.distribution.version or "")), pinned[-1]) if pinned else None
    if pin is not None:
        telling = (each.distribution for each in lines.values() if each.distribution.version or each.distribution.specifier)
        return several if any(disjoint(pin.distribution, each) for each in telling) else [pin]
    together = ",".join(sorted(filter(None, lines)))
    try:
        possible = not together or ranges_of(together)
    except ValueError:
        return several
    last = next(each for each in lines.values() if each.distribution.specifier or not together)
    return [replace(last, distribution=replace(last.distribution, specifier=together or None))] if possible else several


def _is_indexed(distribution: Distribution) -> bool:
    return distribution.source is None or distribution.source.kind == "index"
