"""Evidence for a bound from the source of two releases: the name, use or message in a rule's error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from compat.rules.rule import Rule
from scripts.audit.bounds import Bound
from scripts.audit.sources import Sources
from scripts.surface.audit import causes_in, spelled
from scripts.surface.packages import TOPS
from scripts.surface.store import Release

_LEAST = 14
"""Letters of a message that are looked for; shorter pieces are in half of all releases."""


class Reader:
    """Queries on the source of releases; each file is searched once per query."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._answers: dict[tuple[int, str], bool] = {}

    def seen(self, rule: Rule, bound: Bound) -> str:
        """Describe a difference between the inside and the outside of a bound; ``""`` if there is none."""
        inside = self._sources.release(bound.package, bound.inside)
        outside = self._sources.release(bound.package, bound.outside) if bound.outside else None
        if inside is None or outside is None:
            return ""
        for module, name in _causes(rule):
            if said := self._of_cause(bound, inside, outside, module, name):
                return said
        for name in _attributes(rule):
            if said := self._of_attribute(bound, inside, outside, name):
                return said
        for piece in _pieces(rule):
            if self._contains(inside, re.escape(piece)) and not self._contains(outside, re.escape(piece)):
                return f"{piece!r} is in {bound.inside} and not in {bound.outside}"
        return ""

    def _of_cause(self, bound: Bound, inside: Release, outside: Release, module: str, name: str) -> str:
        what = f"{module}:{name}" if name else module
        if not module:
            written = [self._contains(release, rf"\b{name}\s*[:=]") for release in (inside, outside)]
            there, missing = (bound.inside, bound.outside) if written[0] else (bound.outside, bound.inside)
            return f"the keyword {name} is in {there} and not in {missing}" if written[0] != written[1] else ""
        if _belongs(module, bound.package):
            gone = self.has(inside, module, name) is False and self.has(outside, module, name)
            return f"{what} is not in {bound.inside} and is in {bound.outside}" if gone else ""
        used = self.uses(inside, module, name) and not self.uses(outside, module, name)
        return f"{what} is imported by {bound.inside} and not by {bound.outside}" if used else ""

    def _of_attribute(self, bound: Bound, inside: Release, outside: Release, name: str) -> str:
        used, made = rf"\.{name}\b", rf"def {name}\b|\b{name}\s*[:=][^=]"
        if self._contains(inside, made):
            return ""
        if self._contains(outside, made):
            return f"{name} is not defined in {bound.inside} and is in {bound.outside}"
        gone = self._contains(inside, used) and not self._contains(outside, used)
        return f".{name} is used by {bound.inside} and not by {bound.outside}" if gone else ""

    def has(self, release: Release, module: str, name: str) -> bool | None:
        """Return whether a release has a module, or a name in it; ``None`` if its source does not show that."""
        path = module.replace(".", "/")
        file = next((each for each in (f"{path}.py", f"{path}/__init__.py") if each in release.members), None)
        if file is None:
            return None if any(module == each or module.startswith(f"{each}.") for each in release.opaque) else False
        if not name or f"{path}/{name}.py" in release.members or f"{path}/{name}/__init__.py" in release.members:
            return True
        text = self._sources.text(release, file)
        if re.search(
            rf"^\s*(async def|def|class) {name}\b|^\s*{name}\s*[:=]|import\b[^\n]*\b{name}\b|^\s+{name},|[\"']{name}[\"']",
            text,
            re.M,
        ):
            return True
        return None if re.search(r"import \*|def __getattr__", text) else False

    def uses(self, release: Release, module: str, name: str) -> bool:
        """Return whether any file of a release imports a module, or a name from it."""
        at = re.escape(module)
        if not name:
            return self._contains(release, rf"^\s*(from {at}(\.\w+)* import|import {at}\b)")
        return self._contains(release, rf"^\s*from {at}(\.\w+)* import (\([^)]*|[^\n(]*)\b{name}\b|\b{at}\.{name}\b")

    def _contains(self, release: Release, pattern: str) -> bool:
        expression = _compiled(pattern)
        for path, source in release.members.items():
            if "/tests/" in path:
                continue
            known = self._answers.get((source, pattern))
            if known is None:
                known = self._answers[source, pattern] = expression.search(self._sources.text(release, path)) is not None
            if known:
                return True
        return False


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.M)


def _causes(rule: Rule) -> list[tuple[str, str]]:
    """Return the names that the rule's errors report missing, as (module, name), (module, "") or ("", keyword)."""
    texts = (text for error in rule.errors for text in spelled(error.message))
    return list(dict.fromkeys(cause for text in texts for cause in causes_in(text)))


def _attributes(rule: Rule) -> list[str]:
    """Return the object attributes that the rule's errors report missing."""
    texts = (text for error in rule.errors for text in spelled(error.message))
    return list(dict.fromkeys(name for text in texts for name in re.findall(r"object has no attribute '(\w{6,})'", text)))


def _belongs(module: str, package: str) -> bool:
    return module.partition(".")[0] in TOPS.get(package, (package.replace("-", "_"),))


def _pieces(rule: Rule) -> Iterator[str]:
    """Return the longest literal text of each message of the rule, as the raising source may contain it."""
    for error in rule.errors:
        plain = re.split(r"\\[dwsSWDAZb]|[.\]][*+?]|[\[\](){}|^$*+?]|\(\?", error.message.replace("\\.", "\0"))
        pieces = [each.replace("\0", ".").replace("\\", "").strip(" '\"`,:") for each in plain]
        for piece in _longest(pieces):
            # quoted text and paths are usually interpolated into the message
            if "'" not in piece and "/" not in piece:
                yield piece


def _longest(pieces: Sequence[str]) -> list[str]:
    return [each for each in sorted(pieces, key=len, reverse=True)[:2] if len(each) >= _LEAST and " " in each]
