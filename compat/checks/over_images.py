"""What a file installs over an image replaces of it: an installer does not keep a package that a release requires otherwise."""

from __future__ import annotations

from compat.checks.requirements import Requires, requires_among
from compat.checks.torch_build import REPLACES, image_of
from compat.formats.installs.words import IMAGE_CONSTRAINT
from compat.model import Distribution, Source
from compat.records import replace
from compat.rules.facts import comparable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.formats.listing import Entry, Listing


def with_replaced(listing: Listing) -> Listing:
    """The listing with what an installer puts in the place of an image's packages, and a note for each.

    It takes the one release that is required, if it is one.
    """
    of_image = {each.distribution.name: each for each in listing.entries if image_of(each.distribution)}
    over = {each.distribution.name for each in listing.entries if _brings_along(each)}
    held = {each.distribution.name for each in listing.entries if each.held}
    if not of_image or not over:
        return listing
    copies = tuple(comparable(each.distribution) for each in listing.entries)
    versions = {copy.name: copy.version for copy in copies}
    environment = replace(listing.context, distributions=copies)
    unmet: dict[str, Requires] = {}
    for each in requires_among(environment, over | of_image.keys(), of_image.keys()):
        version = versions[each.asked]
        if version and each.asking in over and each.asked not in over and not _keeps(version, each.specifier):
            unmet.setdefault(each.asked, each)
    if not unmet:
        return listing
    notes = (
        f"{each.asking} {versions[each.asking]} requires {name}{each.specifier}, so installers replace the {name} "
        f"{versions[name]} of the image"
        for name, each in unmet.items()
    )
    entries = tuple(
        replace(entry, distribution=_instead(entry.distribution, unmet[name], held=unmet[name].asking in held))
        if (name := entry.distribution.name) in unmet and image_of(entry.distribution)
        else entry
        for entry in listing.entries
    )
    return replace(listing, entries=entries, notes=(*listing.notes, *notes))


def _brings_along(entry: Entry) -> bool:
    """Whether it is installed from an index, with what it requires."""
    source = entry.distribution.source
    return not entry.alone and (source is None or source.kind == "index")


def _keeps(version: str, specifier: str) -> bool:
    """Whether an installer keeps an installed version: NVIDIA's ``2.6.0a0+….nv24.12`` is before 2.6.0 for it."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True


def _instead(copy: Distribution, asked: Requires, *, held: bool) -> Distribution:
    extra: dict[str, object] = {REPLACES: image_of(copy)}
    if held:
        extra["excluded_by"] = {"specifier": f"=={copy.version}", "place": f"{IMAGE_CONSTRAINT}:1"}
    exact = asked.specifier.startswith("==") and not {",", "*"} & set(asked.specifier)
    version, specifier = (asked.specifier[2:], None) if exact else (None, asked.specifier)
    return Distribution(copy.name, version, specifier=specifier, source=Source("index"), extra=extra)
