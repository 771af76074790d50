"""Verification of plans with uv, from its input (pins, overrides, packages that uv cannot resolve) to the results, together
with those of our own evaluator.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol

from compat.index import Settings
from compat.index.configuration import uv_binary, uv_default_index
from compat.index.index import FRESH
from compat.index.settings import Source as IndexSource
from compat.index.settings import host_of
from compat.model import EMPTY, normalized
from compat.records import record, replace
from compat.redact import excerpt
from compat.repair.candidates import Release
from compat.repair.problem import Problem
from compat.repair.relaxation import Needs
from compat.repair.stand_in import own_stand_in
from compat.repair.target import Need, Target, satisfies


@record(frozen=True)
class Question:
    """``pins`` are versions by name, ``loose`` the pins that override the requirements of other packages; ``ranged``: so do
    ``requires``, as far as they state a range.

    ``indexes`` are additional indexes that pins come from.
    ``without`` are packages that uv does not resolve: no index has a wheel, or they are missing or possibly missing already.
    ``requires`` are the requirements of releases that uv does not resolve, ``constraints`` what limits the releases of packages
    that are only installed if others require them. ``lowest``: the lowest releases that meet them are
    wanted; ``near`` are versions to prefer.
    """

    pins: Mapping[str, str] = EMPTY
    loose: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    requires: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    ranged: bool = False
    lowest: bool = False
    near: Mapping[str, str] = EMPTY

    def lines(self) -> list[str]:
        """The lines of the requirements file."""
        return [*(f"{name}=={version}" for name, version in sorted(self.pins.items())), *dict.fromkeys(self.requires)]

    def overrides(self) -> list[str]:
        """The lines of the overrides file; a marker that is never true excludes a package."""
        kept = [f"{name}=={self.pins[name]}" for name in sorted((self.loose & set(self.pins)) - self.without)]
        ranges = sorted(set(filter(_RANGE.search, self.requires))) if self.ranged else []
        return [*kept, *ranges, *(f"{name} ; python_version < '0'" for name in sorted(self.without))]


class Served(Protocol):
    """Knows whether indexes provide a wheel of a release; ``None`` if the package was not read."""

    def serves(self, release: Release) -> bool | None: ...


def question(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs], index: Served) -> Question:
    """The question for a plan: its releases are pinned, and requirements that remain unmet are excluded."""
    conda = problem.of_conda & chosen.keys()
    gone = {name for name, release in chosen.items() if _elsewhere(release, index)} | conda
    broken = list(unmet_requirements(problem, chosen, needs))
    missing = {name for name in broken if name not in chosen}
    asking = [(name, need) for name in gone for need in needs.get(chosen[name], EMPTY).get("", ())]
    wanted = [need for name, need in asking if name not in conda or need.name in chosen]
    return Question(
        {name: release.version for name, release in chosen.items() if name not in gone},
        frozenset(name for name in broken if name in chosen) - gone, frozenset(gone | missing),
        tuple(need.text for need in wanted if need.name not in broken),
        tuple(sorted({url for name, release in chosen.items() if name not in gone and (url := _index_of(release))})),
    )  # fmt: skip


def _elsewhere(release: Release, index: Served) -> bool:
    """Whether no index available to uv provides it: it is built locally, or its index was not read."""
    return release.built or index.serves(release) is False or (release.source is not None and index.serves(release) is not True)


def _index_of(release: Release) -> str:
    return "" if release.source is None else str(release.source.details.get("url", ""))


def brought_along(
    problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs], opened: Mapping[str, tuple[Release, ...]]
) -> frozenset[str]:
    """Changes an installer makes without being asked: unlisted packages, and packages added in their newest acceptable release.

    Of a file that lists a package without a pin, the installer adds that one, too.
    """
    wanted: dict[str, list[str]] = {name: [] for name in chosen if name not in problem.current}
    asked = {each.name for each in (*problem.keep, *(() if problem.current else problem.asked))}
    for need in problem.asked:
        if need.name in wanted:
            wanted[need.name].append(need.specifier)
    for name, extra in active(problem, chosen, needs):
        for need in needs.get(chosen[name], EMPTY).get(extra, ()):
            if need.name in wanted:
                wanted[need.name].append(need.specifier)
    found = set()
    for name, specifiers in wanted.items():
        plain = [each for each in opened.get(name, ()) if each.plain]
        fitting = [each for each in plain if all(satisfies(each.version, text) for text in specifiers)]
        taken = next((each.version for each in reversed(fitting) if _goes_with(needs.get(each, EMPTY), chosen)), None)
        if specifiers and name not in asked and (problem.unlisted or taken == chosen[name].version):
            found.add(name)
    return frozenset(found) | problem.unlisted


def _goes_with(needs: Needs, chosen: Mapping[str, Release]) -> bool:
    """Whether a release, as far as its requirements were read, goes with the chosen ones: installers skip it otherwise."""
    return all(need.name not in chosen or satisfies(chosen[need.name].version, need.specifier) for need in needs.get("", ()))


def replaced_libraries(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs]) -> frozenset[str]:
    """The CUDA libraries of the torch before that nothing in the plan requires: those of another CUDA release have other names,
    and install some of the same files."""
    before, after = problem.current.get("torch"), chosen.get("torch")
    if before is None or after is None or before == after:
        return frozenset()
    own: set[str] = set()
    waiting = [before]
    while waiting:
        for need in needs.get(waiting.pop(), EMPTY).get("", ()):
            found = chosen.get(need.name)
            same = found is not None and found == problem.current.get(need.name) and found.meets(need.specifier)
            if found is not None and same and need.name.startswith("nvidia-") and need.name not in own:
                own.add(need.name)
                waiting.append(found)
    asked = {need.name for need in (*problem.keep, *problem.asked)}
    others = [(name, extra) for name, extra in active(problem, chosen, needs) if name not in own]
    wanted = {need.name for name, extra in others for need in needs.get(chosen[name], EMPTY).get(extra, ())}
    return frozenset(own - wanted - asked)


def is_partial(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs]) -> bool:
    """Whether a listed package already requires an unlisted one, so that more is installed than listed."""
    listed = [needs.get(release, EMPTY).get("", ()) for release in problem.current.values()]
    return not problem.complete and any(need.name not in problem.current for found in listed for need in found)


def unmet_requirements(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs]) -> Iterator[str]:
    """Packages that do not satisfy a requirement of another package or of the user."""
    for name, extra in active(problem, chosen, needs):
        for need in needs.get(chosen[name], EMPTY).get(extra, ()):
            other = chosen.get(need.name)
            if other is None or not satisfies(other.version, need.specifier):
                yield need.name


def active(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs]) -> Iterable[tuple[str, str]]:
    """The (package, extra) pairs that are requested, with ``""`` for the package without extras."""
    found = dict.fromkeys((name, "") for name in chosen)
    waiting = list(found)
    asked: list[Need] = [*problem.asked, *problem.keep]
    while waiting or asked:
        if not asked:
            name, extra = waiting.pop()
            asked += needs.get(chosen[name], EMPTY).get(extra, ())
            continue
        need = asked.pop()
        new = [(need.name, extra) for extra in need.extras if need.name in chosen and (need.name, extra) not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return found


SECONDS = 60
_YEAR = 365 * 24 * 3600
_QUIET = ("--quiet", "--color", "never")
REFUSED = "No solution found"
NOT_FOUND = "was not found in the package registry"
"""What uv says of a package that no index has, before it looks at any other."""
_RETRIED = re.compile(r"Request failed after \d{1,4} retr(?:y|ies) in [\d.]{1,9}s cause: ")
"""How long uv tried, which differs from run to run."""
_RANGE = re.compile(r"[<>=!~]")
_KEPT = ("UV_CACHE_DIR", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_KEYRING_PROVIDER")
"""Environment variables for uv that do not affect the resolution."""


_default_index = cache(uv_default_index)


@record(frozen=True)
class Verified:
    """``rules``: our evaluator finds no errors other than those listed in the plan. ``uv``: uv accepts it; ``None`` if it was
    not checked, for the reason ``why``. ``unasked`` are changes that uv could not check: local builds, and releases whose index
    was not read; ``installs`` is the result of uv's dry run of the installation, if requested. ``locked``: uv has made the lock
    for the edited source, and that was checked."""

    rules: bool
    uv: bool | None
    why: str = ""
    unasked: tuple[str, ...] = ()

    installs: bool | None = None
    locked: bool = False

    @property
    def stands(self) -> bool:
        return self.rules and self.uv is not False and self.installs is not False

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {"rules": self.rules, "uv": self.uv}
        found |= {"unasked": list(self.unasked)} if self.unasked else {}
        found |= {} if self.installs is None else {"install": self.installs}
        found |= {"lock": True} if self.locked else {}
        return found | ({"why": self.why} if self.why else {})


@record(frozen=True)
class Checks:
    """The checks to run on a plan: ``uv``: whether it resolves; ``install``: whether a dry run installs it, into the
    environment of ``python`` if given."""

    uv: bool = True
    install: bool = False
    python: str | None = None


def accepted_by_uv(question: Question, target: Target, settings: Settings, *, offline: bool = False) -> tuple[bool | None, str]:
    """Whether ``uv pip compile`` resolves the releases, without building anything; if not, its message. ``None``: unknown.

    uv reads the bound of ``python_full_version <= '3.11.0a6'`` as 3.11.0, so packages that it adds for the first patch release
    have to be added for the next one, too.
    """
    code, out, why = compiled(question, target, settings, offline=offline)
    if code == 0 and not pins_of(out).keys() <= question.pins.keys() and (later := target.next_patch):
        code, out, why = compiled(question, target, settings, offline=offline, python=later)
    if code is None:
        return None, why
    if code:
        refused = REFUSED in why
        return (None, f"uv, with only its own cache: {why}") if offline and refused else (False if refused else None, why)
    other = sorted(name for name in pins_of(out) if name not in question.pins)
    return (True, "") if not other else (False, f"uv also requires {', '.join(other)}")


def compiled(
    question: Question, target: Target, settings: Settings, *, offline: bool, before: str | None = None, python: str = "",
    seconds: float = SECONDS, metadata: str | None = None,
) -> tuple[int | None, str, str]:  # fmt: skip
    """The exit status of ``uv pip compile`` (``None`` if it did not finish), what it wrote, and the error message.

    With ``metadata`` (a setting of uv, or "") it also takes releases without a wheel, and writes a ``pylock.toml``.
    """
    uv = uv_binary()
    if uv is None:
        return None, "", "uv was not found (it is installed with compat; check PATH)"
    settings = _with_indexes(settings, question.indexes)
    with tempfile.TemporaryDirectory(prefix="compat-fix-") as folder:
        command = [uv, "pip", "compile", "--no-header", "--no-annotate", *_QUIET, *_asked(question, folder)]
        if metadata is None:
            command += ["--no-build", "--python", sys.executable]  # else uv searches for the target's exact version
        else:
            command += ["--no-build-isolation", "--python", own_stand_in(), "--format", "pylock.toml"]
        command += [*_of(target, python), *_access(settings, folder, offline=offline, metadata=metadata or "")]
        command += [] if before is None else ["--exclude-newer", before]
        command += ["--resolution", "lowest-direct"] if question.lowest else []
        output = Path(folder, "requirements.txt")
        if question.near:  # uv prefers what the file that it is to write already says
            output.write_text("".join(f"{name}=={version}\n" for name, version in question.near.items()), encoding="utf-8")
            command += ["--output-file", str(output)]
        code, out, why = _ran(command, {**_variables(settings), **target.uv_variables}, seconds)
        return code, output.read_text(encoding="utf-8") if question.near else out, why


def pins_of(text: str) -> dict[str, str]:
    """The releases of a requirements file that uv wrote."""
    pins = (line.split(" ")[0].partition("==") for line in text.splitlines() if "==" in line)
    return {normalized(name): version for name, _, version in pins}


def installable_by_uv(
    question: Question, target: Target, settings: Settings, *, python: str | None = None, offline: bool = False
) -> tuple[bool | None, str]:
    """Whether ``uv pip install --dry-run`` succeeds in the environment of ``python`` or an empty folder; ``None``: unknown."""
    uv = uv_binary()
    if uv is None:
        return None, "uv was not found"
    settings = _with_indexes(settings, question.indexes)
    with tempfile.TemporaryDirectory(prefix="compat-fix-") as folder:
        command = [uv, "pip", "install", "--dry-run", *_QUIET, "--no-build", "-r", *_asked(question, folder)]
        if python is not None:
            command += ["--python", python]
        else:
            command += ["--python", sys.executable, "--target", str(Path(folder, "target")), *_of(target)]
        command += _access(settings, folder, offline=offline)
        code, _, why = _ran(command, {**_variables(settings), **target.uv_variables})
    refused = REFUSED in why and not offline
    return (True if code == 0 else False if refused else None), why


def _asked(question: Question, folder: str) -> list[str]:
    """Write the files of a question; returns them as uv's options."""
    wanted, overrides = Path(folder, "requirements.in"), Path(folder, "overrides.txt")
    wanted.write_text("".join(f"{line}\n" for line in question.lines()), encoding="utf-8")
    overrides.write_text("".join(f"{line}\n" for line in question.overrides()), encoding="utf-8")
    limits = Path(folder, "constraints.txt")
    limits.write_text("".join(f"{line}\n" for line in question.constraints), encoding="utf-8")
    files = (("--override", overrides, question.overrides()), ("--constraint", limits, question.constraints))
    return [str(wanted), *(word for option, file, lines in files if lines for word in (option, str(file)))]


def _of(target: Target, python: str = "") -> list[str]:
    return ["--python-version", python or target.python, "--python-platform", target.uv_platform]


def _with_indexes(settings: Settings, urls: tuple[str, ...]) -> Settings:
    """The settings with additional indexes, with all indexes considered for each pin."""
    if not urls:
        return settings
    return replace(settings, sources=(*map(IndexSource, urls), *settings.sources), strategy="unsafe-best-match")


def _ran(command: list[str], variables: Mapping[str, str], seconds: float = SECONDS) -> tuple[int | None, str, str]:
    """Run uv; returns the exit status (``None`` if it did not finish), its output, and the error message."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=dict(variables))
    except subprocess.TimeoutExpired:
        return None, "", f"uv did not answer within {seconds:.0f} s"
    except OSError as problem:
        return None, "", f"uv cannot be run: {problem.strerror}"
    said = _RETRIED.sub("", " ".join(done.stderr.split())) if done.returncode else ""
    return done.returncode, done.stdout, excerpt(said, 600)


def _access(settings: Settings, folder: str, *, offline: bool, metadata: str = "") -> list[str]:
    """Return the options with which uv reaches the indexes; ``metadata`` is configuration that states requirements of releases.

    Its pages stay fresh for as long as those of compat: an index without cache headers would otherwise be asked about each
    package whenever uv is run.
    """
    own = Path(folder, "uv.toml")
    plain = _plain(settings)
    urls = [] if offline else [source.url or _default_index() for _, source in plain]
    if not urls or None in urls:
        own.write_text(metadata, encoding="utf-8")
        configured = ["--config-file", str(own)] if metadata else ["--no-config"]
        return [*(["--offline"] if offline else []), *configured, *_indexes(settings)]
    tables = [
        f'[[index]]\nname = "compat{number}"\nurl = {json.dumps(url)}\ndefault = {"true" if url is urls[-1] else "false"}\n'
        f'cache-control = {{ api = "max-age={FRESH:.0f}", files = "max-age={_YEAR}, immutable" }}\n'
        for (number, _), url in zip(plain, urls)
    ]
    own.write_text("\n".join((metadata, *tables)), encoding="utf-8")
    return ["--config-file", str(own), *_indexes(settings, named=False)]


def _plain(settings: Settings) -> list[tuple[int, IndexSource]]:
    return [(number, source) for number, source in enumerate(settings.sources) if not source.flat]


def _indexes(settings: Settings, *, named: bool = True) -> list[str]:
    """The indexes as uv's options, each with a name for its credentials; only flat ones unless ``named``."""
    words: list[str] = []
    plain = _plain(settings)
    for source in settings.sources:
        if source.flat and source.url is not None:
            words += ["--find-links", source.url]
    if not plain:
        return [*words, "--no-index"]
    for place, (number, source) in enumerate(plain if named else ()):
        option = "--default-index" if place == len(plain) - 1 else "--index"
        words += [option, f"compat{number}={source.url}"] if source.url is not None else []  # None is uv's default
    if settings.strategy != "first-index" or any(source.explicit for _, source in plain):
        words += ["--index-strategy", "unsafe-best-match"]  # the versions are pinned
    for host in settings.trusted:
        words += ["--allow-insecure-host", host]
    return words


def _variables(settings: Settings) -> dict[str, str]:
    """The environment for uv: its options select the releases, variables only configure access, with the same settings."""
    found = {name: text for name, text in os.environ.items() if not name.startswith("UV_") or name in _KEPT}
    for number, source in enumerate(settings.sources):
        known = settings.credentials.get(host_of(source.url)) if source.url is not None else None
        if known is not None:
            found[f"UV_INDEX_COMPAT{number}_USERNAME"], found[f"UV_INDEX_COMPAT{number}_PASSWORD"] = known.user, known.password
    found.update(UV_HTTP_TIMEOUT=str(int(settings.timeout) or 1), UV_HTTP_RETRIES=str(settings.retries))
    if settings.certificates is not None:
        found["SSL_CERT_FILE"] = settings.certificates
    if settings.proxy is not None:
        found["HTTP_PROXY"] = found["HTTPS_PROXY"] = settings.proxy
    return found
