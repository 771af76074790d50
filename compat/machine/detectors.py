"""Looking for a rule's text in an installed file: what tells a bad ``0.16.0.dev0`` from a good one. It reads only."""

from __future__ import annotations

from compat.model import Distribution, Source
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Detectors = Mapping[str, Sequence[tuple[str, str, str]]]


_LIMIT = 8 * 1024 * 1024


OF_SOURCE = ("vcs", "directory", "url", "nightly")
"""Kinds of source whose modules may be other than those of any release."""


def detected(copy: Distribution, folders: Sequence[str], detectors: Detectors) -> Distribution:
    """The distribution with the answer of every detector for it noted in its source.

    A release from an index needs none: its version says what it holds. A file that cannot be read leaves the question open.
    """
    wanted = detectors.get(copy.name)
    if not wanted or copy.source is None or copy.source.kind in ("index", "conda"):
        return copy
    roots = (*_source_roots(copy.source), *folders)
    answers = {detector: answer for detector, file, text in wanted if (answer := _holds(roots, file, text)) is not None}
    if not answers:
        return copy
    return replace(copy, source=Source(copy.source.kind, {**copy.source.details, "contains": answers}))


def located(copy: Distribution, folders: Sequence[str], tops: Mapping[str, str]) -> Distribution:
    """The distribution with the folder of its modules, where it was installed from source; ``tops``: package of each module."""
    if copy.source is None or copy.source.kind not in OF_SOURCE:
        return copy
    import os

    names = [top for top, package in tops.items() if package == copy.name]
    for root in (*_source_roots(copy.source), *folders):
        if any(os.path.isfile(f"{root}/{name}/__init__.py") for name in names):
            return replace(copy, source=Source(copy.source.kind, {**copy.source.details, "tree": root}))
    return copy


def _source_roots(source: Source) -> tuple[str, ...]:
    """Where an editable install keeps its modules."""
    url = source.details.get("url")
    if not source.details.get("editable") or not isinstance(url, str) or not url.startswith("file://"):
        return ()
    from urllib.parse import unquote

    folder = unquote(url[7:])
    return folder, f"{folder}/src"


def _holds(roots: Sequence[str], file: str, text: str) -> bool | None:
    for root in roots:
        try:
            with open(f"{root}/{file}", "rb") as opened:
                return text.encode() in opened.read(_LIMIT)
        except OSError:
            continue
    return None
