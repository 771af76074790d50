"""Editable installs: the version of the source tree now, which may be another one than that of its last install."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from compat.errors import InputError
from compat.files import content_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from compat.model import Distribution, Environment


_LARGEST = 2_000_000
_ASSIGNED = re.compile(rb"""^(?:__version__|VERSION|version)\s*=\s*["']([0-9][\w.+!-]{0,60})["']""", re.MULTILINE)
_ALONE = re.compile(rb"\A\s*([0-9][\w.+!-]{0,60})\s*\Z")


def checkout_notes(environment: Environment, concerned: Collection[str]) -> Iterator[str]:
    """Yield a note for each concerned distribution that is imported from a source tree."""
    for copy in environment.distributions or ():
        folder = _folder_of(copy) if copy.name in concerned else None
        if folder is None:
            continue
        note = f"{copy.name} {copy.version} is an editable install of {folder}"
        now = _version_in(folder, copy.name)
        if now is not None and now != copy.version:
            yield f"{note}, which is {now} by now: findings are for {copy.version}; run 'pip install -e {folder}' again"
        else:
            yield f"{note}: what its code changes since a release is not known"


def _folder_of(copy: Distribution) -> str | None:
    source = copy.source
    if source is None or source.details.get("editable") is not True:
        return None
    url = source.details.get("url")
    return unquote(url.removeprefix("file://")) if isinstance(url, str) and url.startswith("file://") else None


def _version_in(folder: str, name: str) -> str | None:
    """The version that a source tree states as text; ``None`` if it is computed, or cannot be read."""
    module = name.replace("-", "_")
    package = os.path.join(folder, "src", module)
    package = package if os.path.isdir(package) else os.path.join(folder, module)
    places = (
        (os.path.join(folder, "pyproject.toml"), _ASSIGNED), (os.path.join(package, "__init__.py"), _ASSIGNED),
        (os.path.join(package, "VERSION"), _ALONE), (os.path.join(folder, "VERSION"), _ALONE),
    )  # fmt: skip
    for path, pattern in places:
        try:
            found = pattern.search(content_of(path, _LARGEST)) if os.path.isfile(path) else None
        except (OSError, InputError):
            continue
        if found is not None:
            return found[1].decode("ascii", "replace")
    return None
