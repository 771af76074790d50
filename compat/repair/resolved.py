"""What uv resolves a list of requirements to, although nothing is built.

Installers take a release without a wheel like any other. uv is therefore not told to leave these out: what it would build to
learn the requirements of a release is answered from what is known without a build.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping

from compat.index import Settings
from compat.model import EMPTY, normalized
from compat.records import record, replace
from compat.repair.relaxation import Needs
from compat.repair.stand_in import built
from compat.repair.target import Target
from compat.repair.verify import REFUSED, SECONDS, Question, compiled, pins_of

_TRIES = 30
"""Maximum number of runs of uv, each without or with what the previous one could not build."""
_NO_WHEEL = re.compile(
    r"(?<![\w.<>=!~,-])([A-Za-z0-9][\w.-]{0,127})(?:\[[^\]\s]{0,200}\])?(?:\{[^{}]{0,200}\})?(?:[<>=!~]\S{0,200})?"
    r" ha(?:s|ve) no usable wheels"
)
_STARTS = "[[packages]]\n"
_NAMED = re.compile(r'^(name|version) = "([^"\n]{1,200})"$', re.MULTILINE)
_WHEEL = re.compile(r'/([^/"\s]{1,300})\.whl"')
"""The file name of a wheel without its ending."""


@record(frozen=True)
class Resolved:
    """The releases that uv resolves, by name (``None`` on failure, with ``why``).

    ``unbuilt`` are the packages without a wheel for the target: installers build those of ``releases``, the others had to be
    left out. The requirements of those in ``assumed`` are unknown, and taken for none.
    ``overridden``: it only resolves if pins override the requirements of other packages, because of ``why``.
    """

    releases: Mapping[str, str] | None
    unbuilt: frozenset[str] = frozenset()
    why: str = ""
    overridden: bool = False
    assumed: frozenset[str] = frozenset()

    @property
    def refused(self) -> bool:
        """Whether uv found that there is no solution."""
        return self.releases is None and REFUSED in self.why


def resolved_by_uv(
    question: Question, target: Target, settings: Settings, *, offline: bool = False, override: bool = True,
    before: str | None = None, seconds: float = SECONDS, needs: Callable[[str, str], Needs | None] | None = None,
) -> Resolved:  # fmt: skip
    """Resolve requirements with ``uv pip compile``, without building anything.

    ``needs`` returns the requirements of a release as far as they are known without a build; without it, or where uv cannot be
    kept from building, releases without a wheel are left out.
    ``override``: if pins contradict the requirements of other packages, the pins win, as projects override on purpose; if
    ranges do, these win, so that it is known which releases they stand for.
    ``before`` excludes newer releases, unless the pins themselves are newer. Each run of uv takes at most ``seconds``.
    """
    given, contradiction = question.without, ""
    building = needs is not None and os.name == "posix"
    known: dict[tuple[str, str], Needs | None] = {}
    for _ in range(_TRIES):
        metadata = _metadata(known) if building else None
        code, out, why = compiled(
            question, target, settings, offline=offline, before=before, seconds=seconds, metadata=metadata
        )  # fmt: skip
        if code == 0:
            releases, unbuilt = _locked(out, target) if building else (pins_of(out), question.without - given)
            assumed = frozenset(
                name for (name, version), found in known.items() if found is None and releases.get(name) == version
            )
            overridden = bool(question.loose or question.ranged)
            return Resolved(releases, unbuilt, contradiction, overridden=overridden, assumed=assumed)
        name, _, version = (built(why) or "").partition("==") if building else ("", "", "")
        release = normalized(name), version
        if version and needs is not None and release not in known:
            known[release] = needs(*release)
            continue
        if before is not None:
            before = None
            continue
        if building and code is not None and REFUSED not in why:  # a source that cannot be read: as far as there are wheels
            building = False
            continue
        unbuilt = frozenset(map(normalized, _NO_WHEEL.findall(why))) - question.without
        if unbuilt and not building:
            question = replace(question, without=question.without | unbuilt)
        elif override and REFUSED in why and question.pins and not question.loose:  # a project's overrides are among its pins
            question, contradiction = replace(question, loose=frozenset(question.pins)), why
        elif override and REFUSED in why and question.requires and not question.ranged:
            question, contradiction = replace(question, ranged=True), contradiction or why
        else:
            break
    return Resolved(None, why=why)


def _locked(text: str, target: Target) -> tuple[dict[str, str], frozenset[str]]:
    """The releases of a ``pylock.toml`` of uv, and the names of those without a wheel for the target."""
    releases, unbuilt = {}, set()
    for part in text.split(_STARTS)[1:]:
        found = dict(_NAMED.findall(part))
        if "version" not in found:
            continue
        name = normalized(found["name"])
        releases[name] = found["version"]
        wheels = (each.rsplit("-", 3) for each in _WHEEL.findall(part))
        if not any(target.takes((python, abi, platform)) for _, python, abi, platform in wheels):
            unbuilt.add(name)
    return releases, frozenset(unbuilt)


def _metadata(known: Mapping[tuple[str, str], Needs | None]) -> str:
    """What is known of releases as a setting of uv, which takes it for their metadata."""
    tables = [
        f"{{ name = {json.dumps(name)}, version = {json.dumps(version)}, "
        f"requires-dist = {json.dumps(list(_lines(found or EMPTY)))}, "
        f"provides-extra = {json.dumps([extra for extra in found or EMPTY if extra])} }}"
        for (name, version), found in known.items()
    ]
    return f"dependency-metadata = [{', '.join(tables)}]\n" if tables else ""


def _lines(needs: Needs) -> Iterator[str]:
    for extra, found in needs.items():
        yield from (f"{need.text} ; extra == '{extra}'" if extra else need.text for need in found)
