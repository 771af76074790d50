"""Answers about a release that were given before, in the user's cache: a script that is checked again opens no tables.

What is kept is true of one table and of the code that reads it: a stamp of both stands in the file.
"""

from __future__ import annotations

import marshal
import os
from typing import Any

from compat.files import keep, kept, place_in_cache, stamp_of
from compat.interfaces import table

_MOST = 5000
"""Answers about a release; with more of them the file is begun anew."""


class KeptAnswers:
    """What is known of one release: a question (a plain tuple) → its answer, as plain values."""

    def __init__(self, package: str, version: str) -> None:
        here = os.path.dirname(__file__)
        self._stamp = stamp_of(table.path_of(package), os.path.join(here, "releases.py"), os.path.dirname(table.__file__))
        self._place = place_in_cache("answers", f"{package}-{version}")
        self.answers: dict[tuple[Any, ...], Any] = _read(kept(self._place), self._stamp)
        self._before = len(self.answers)

    def save(self) -> None:
        """Keeps what was added."""
        if len(self.answers) > self._before and self._stamp is not None:
            new = dict(list(self.answers.items())[self._before :]) if len(self.answers) > _MOST else self.answers
            keep(self._place, marshal.dumps((self._stamp, new), 4))
            self._before = len(self.answers)


def _read(content: bytes | None, stamp: str | None) -> dict[tuple[Any, ...], Any]:
    try:
        said, found = marshal.loads(content or b"")
    except (ValueError, EOFError, TypeError):
        return {}
    return found if isinstance(found, dict) and said == stamp else {}
