"""The changes of a plan, and how they rewrite requirements and index addresses."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Generic, TypeVar

from compat.errors import InputError, printable
from compat.formats.requirements.requirement import is_path, is_url
from compat.formats.specifiers import ADMIT, EXACT, RANGE, admits, changed, is_pinned, limited
from compat.model import Distribution, Source, normalized
from compat.records import record, replace
from compat.redact import excerpt, without_credentials
from compat.versions import is_version, key_of

_HASH = re.compile(r"[a-z0-9_]+:[0-9a-f]+")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"`$\\<>{}|^]+|git@[\w.-]+:[\w./-]+")
_REVISION = re.compile(r"[\w./+-]+")
_LONGEST = 200
"""Characters of a reason in a comment; one of several statements has at most :data:`_SEVERAL`."""
_SEVERAL = 120


@record(frozen=True)
class Change:
    """One distribution of a plan.

    ``name`` is normalised; ``before`` is the current version (``None``: not installed), ``after`` the planned one
    (``None``: removed). ``source`` is where to install from, ``before_source`` the current source; ``None`` is the default
    index. ``hashes`` are those of every file of the release. ``direct``: the user's own requirement. ``override``:
    requirements of other distributions are violated on purpose. ``implied``: it follows from the other changes, so a file
    written by hand need not name it. ``default_index``: the vendor's index that also has the default build of the release: a
    file that names that vendor's index for another build has to name this one. ``lines`` are those that one of several
    environments of the file is installed by (``None``: all), ``left_out`` the extras and groups whose requirements stay because
    they are for other GPUs, or exclude the requested ones; ``choices`` are the requested ones, to which a new requirement is
    added. ``held``: it stays, but the file has to say so, as an installer
    would take another one. ``limit`` is the bound (``<26``, ``>=2.14.7``) with which an installer takes it, for a file that
    states no pin.
    """

    name: str
    before: str | None
    after: str | None
    source: Source | None = None
    hashes: tuple[str, ...] = ()
    direct: bool = False
    why: str = ""
    override: bool = False
    implied: bool = False
    before_source: Source | None = None
    default_index: str | None = None
    lines: frozenset[int] | None = None
    left_out: frozenset[str] = frozenset()
    choices: frozenset[str] = frozenset()
    held: bool = False
    limit: str = ""

    def is_on(self, line: int | None) -> bool:
        """Whether a statement on a line is meant."""
        return self.lines is None or line in self.lines

    @property
    def is_direct_url(self) -> bool:
        """Whether it is installed from a repository or an archive instead of an index."""
        return self.source is not None and self.source.kind in ("vcs", "url")

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel that is installed by its address."""
        return self.is_direct_url and self.source is not None and str(self.source.details.get("url", "")).endswith(".whl")

    @property
    def is_image(self) -> bool:
        """Whether it is the tag of an image that the file starts from, not a release."""
        return self.source is not None and self.source.kind == "image"

    @property
    def is_built(self) -> bool:
        """Whether it is compiled on installation: from a repository, or from a release's source distribution."""
        if self.source is None or self.source.details.get("pure"):
            return False
        return self.source.kind == "vcs" or self.no_binary

    @property
    def no_binary(self) -> bool:
        """Whether a release on an index is built from source even if it has wheels."""
        return self.source is not None and bool(self.source.details.get("build"))

    @property
    def index_url(self) -> str | None:
        """Return the address of the vendor's index it comes from; ``None`` for the default one."""
        if self.source is None or self.source.kind not in ("index", "nightly"):
            return None
        return self.source.details.get("url")

    @property
    def reason(self) -> str:
        """Return ``why`` as one line that fits in a comment: as many of its statements as fit, at least the first."""
        text, *rest = printable(" ".join(self.why.split())).split("; ")
        for each in rest:
            if len(text) + len(each) + 2 > _SEVERAL:
                break
            text += f"; {each}"
        text = text.rstrip("\\ ")  # a trailing backslash would continue the line
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def inverse(change: Change) -> Change:
    """Return the change that undoes it; the hashes of the previous release are unknown."""
    return replace(
        change,
        before=change.after,
        after=change.before,
        source=change.before_source,
        before_source=change.source,
        hashes=(),
        default_index=None,
        limit="",
    )


def checked(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes that have an effect, validated for writing; credentials are removed from addresses.

    Names, versions and hashes come from an index: :class:`InputError` for an invalid one, and for two changes of one name.
    """
    found: dict[str, Change] = {}
    for change in changes:
        if change.before == change.after and change.source == change.before_source and not change.held:
            continue
        if change.name in found:
            raise InputError(f"expected one change of {change.name}, not two")
        if change.name != normalized(change.name) or not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", change.name):
            raise InputError(f"{excerpt(change.name, 60)!r} is not the normalised name of a distribution")
        for version in (change.before, change.after):
            if version is not None and not is_version(version):
                raise InputError(f"{change.name}: {excerpt(version, 60)!r} is not a version (PEP 440)")
        for each in change.hashes:
            if not _HASH.fullmatch(each):
                raise InputError(f"{change.name}: {excerpt(each, 60)!r} is not a hash such as 'sha256:…'")
        found[change.name] = (
            change if change.source is None else replace(change, source=_checked_source(change.name, change.source))
        )
    return tuple(found.values())


def _checked_source(name: str, source: Source) -> Source:
    if source.kind not in ("index", "nightly", "vcs", "url", "conda"):
        raise InputError(
            f"{name}: expected to install it from an index, a repository or an address, not {excerpt(source.kind, 30)!r}"
        )
    url = source.details.get("url")
    if url is None:
        if source.kind in ("vcs", "url"):
            raise InputError(f"{name}: expected the address it is to be installed from")
        return source
    url = without_credentials(str(url))
    if not _ADDRESS.fullmatch(url) or not _REVISION.fullmatch(revision_of(source) or "HEAD"):
        raise InputError(f"{name}: {excerpt(url, 100)!r} is not an address to install from")
    return Source(source.kind, {**source.details, "url": url})


# --- The statements of a file about distributions, and which of them change for a plan.


REMOVE = "remove"
Place = TypeVar("Place")


@record(frozen=True)
class Statement(Generic[Place]):
    """A requirement or constraint: what it requires, its file and line; ``place`` is what its format needs to edit it.

    ``choice`` is the extra or group that it belongs to (``extra vllm``), "" for what is always installed.
    """

    found: Distribution
    file: str
    line: int | None
    place: Place
    constraint: bool = False
    choice: str = ""


def decided(statements: Sequence[Statement[Place]], change: Change, *, exact: bool) -> list[tuple[Statement[Place], str]]:
    """Return the statements that have to change, each with how: ``exact``, ``range``, ``admit`` or ``remove``.

    A pin (or an address) of the current version is changed, and other ranges are widened to admit the new release. Without
    a pin, the ranges that admitted the old version are pinned (``exact``) or moved. :class:`InputError` if several pins
    name versions other than the current one, because it is ambiguous which one to change.
    """
    own = [each for each in statements if each.found.name == change.name and each.choice not in change.left_out]
    if not any(_may_state(each, change) for each in own):  # extras and groups that are not selected pin other releases
        own = [each for each in own if not (each.choice and _is_pin(each.found))]
    pins = [each for each in own if _is_pin(each.found)]
    ranges = [each for each in own if not _is_pin(each.found)]
    if change.after is None:
        wanted = [each for each in own if not each.constraint]
        gone = _matching([each for each in wanted if _is_pin(each.found)], change)
        return [(each, REMOVE) for each in wanted if each in gone or not _is_pin(each.found)]
    if pins:
        here = [(each, EXACT) for each in _matching(pins, change)]
        return [*here, *((each, ADMIT) for each in _admitting(ranges, change))]
    required = [each for each in ranges if not each.constraint]
    required_ranges = _admitting(required, change) or required
    limits = [each for each in ranges if each.constraint]
    how = EXACT if exact else RANGE
    if required_ranges:
        return [*((each, how) for each in required_ranges), *((each, ADMIT) for each in _admitting(limits, change))]
    return [(each, how) for each in limits]


def _may_state(statement: Statement[Place], change: Change) -> bool:
    """Whether a statement may be one of the current version: a pin of it, an address, or one that always applies."""
    version, before = statement.found.version, change.before
    return not statement.choice or version is None or before is None or key_of(version) == key_of(before)


def _is_pin(found: Distribution) -> bool:
    direct = found.source is not None and found.source.kind in ("vcs", "url", "directory")
    return direct or found.version is not None


def _matching(pins: list[Statement[Place]], change: Change) -> list[Statement[Place]]:
    """Return the pins of the current version: of exactly that build if there are any, else of that release."""
    before = change.before
    if before is not None:
        same_build = [each for each in pins if each.found.version == before]
        same_release = [each for each in pins if each.found.version and key_of(each.found.version) == key_of(before)]
        prefixes = [each for each in pins if each.found.specifier and admits(each.found.specifier, before)]  # conda's ``=2.5``
        if found := same_build or same_release or prefixes or [each for each in pins if each.found.version is None]:
            return found
        if pins and not all(each.found.version == change.after for each in pins):
            lines = ", ".join(f"{each.found.version} on line {each.line}" for each in pins)
            raise InputError(f"{change.name} is pinned to {lines}, not to {before}", pins[0].file, pins[0].line)
    different = {(each.found.version, str(each.found.source)) for each in pins}
    if len(different) > 1:
        lines = ", ".join(str(each.line) for each in pins)
        raise InputError(
            f"{change.name} is named on lines {lines}; cannot tell which one to change", pins[0].file, pins[0].line
        )
    return pins


def _admitting(ranges: list[Statement[Place]], change: Change) -> list[Statement[Place]]:
    """Return the ranges that admit the current version: the others are for another marker or extra."""
    before = change.before
    return [each for each in ranges if before is None or each.found.specifier is None or admits(each.found.specifier, before)]


# --- One requirement as text (PEP 508, or an address as pip accepts it), rewritten for another release.


_NAMED = re.compile(r"\s*[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_EXTRAS = re.compile(r"\s*\[[^\]]*\]")
_PYTHON = re.compile(r"-cp\d+-cp\d+-")
"""The Python in the name of a wheel."""
_WITH_REVISION = re.compile(r"([^#]*?://[^/#]*/[^#]*?)(@[^#@/]*(?:/[^#@]*)?)?(#.*)?")


@record(frozen=True)
class _Parts:
    """``head`` is the name with its extras, ``clauses`` the version clauses, ``address`` what follows ``@``; ``tail`` is the
    marker with the blank before it; ``bare``: nothing but an address, whose name is known."""

    head: str
    clauses: str = ""
    address: str | None = None
    tail: str = ""
    bare: bool = False


def rewritten(text: str, change: Change, how: str) -> str:
    """Return the requirement with the change applied; name, extras, marker and blanks are kept.

    :class:`InputError` (without a place) if it names a local directory.
    """
    parts = _parts(text, change.name)
    if change.is_wheel and how == ADMIT and parts.address is None:
        return text  # pip install {address} || pip install flash-attn
    if change.is_direct_url:
        new = address(change.source)
        if parts.address is not None and change.source is not None and change.source.kind == "vcs":
            new = moved_revision(parts.address, change.source) or new
        if change.is_wheel and "python" in parts.tail and (own := _PYTHON.search(parts.address or "")):
            new = _PYTHON.sub(own[0], new)  # one line for each Python
        tail = f" {parts.tail.lstrip()}" if parts.tail.strip() else parts.tail
        return f"{new}{tail}" if parts.bare and change.is_wheel else f"{parts.head.rstrip()} @ {new}{tail}"
    assert change.after is not None
    if parts.address is None:
        if change.limit and how == EXACT and not is_pinned(parts.clauses):
            return parts.head + limited(parts.clauses, change.limit) + parts.tail
        clauses = changed(parts.clauses, change.before, change.after, how)
        return parts.head + clauses + parts.tail
    if not is_url(parts.address):
        raise InputError(f"{change.name} is installed from {excerpt(parts.address.strip(), 60)}, which is not replaced")
    return f"{parts.head.rstrip()}=={change.after}{parts.tail}"


def moved_editable(operand: str, change: Change) -> str:
    """Return the operand of ``-e`` at another commit; its name is kept."""
    new = rewritten(operand, change, EXACT)
    new = new.partition(" @ ")[2] or new
    egg = re.search(r"[#&](egg=[^&;\s]+)", operand)
    if egg is None or "egg=" in new:
        return new
    url, blank, marker = new.partition(" ")
    return f"{url}{'&' if '#' in url else '#'}{egg[1]}{blank}{marker}"


def without_version(text: str, name: str) -> str:
    """Return the requirement without version clauses or address, keeping its extras and marker."""
    parts = _parts(text, name)
    return parts.head.rstrip() + parts.tail


def requirement_for(change: Change) -> str:
    """Return a new requirement for the planned release."""
    if change.is_direct_url:
        return f"{change.name} @ {address(change.source)}"
    return f"{change.name}{change.limit or f'=={change.after}'}"


def address(source: Source | None) -> str:
    """Return the address of a direct requirement, with its revision and folder."""
    assert source is not None
    details = source.details
    url = str(details["url"])
    if source.kind == "vcs":
        url = url if url.startswith("git+") else f"git+{url}"
        revision = revision_of(source)
        url = f"{url}@{revision}" if revision else url
    folder = details.get("subdirectory")
    return f"{url}#subdirectory={folder}" if folder else url


def revision_of(source: Source) -> str | None:
    """Return the commit of a repository, or the branch or tag if none is known."""
    revision = source.details.get("commit") or source.details.get("requested_revision")
    return str(revision) if revision else None


def _parts(text: str, name: str) -> _Parts:
    found = _NAMED.match(text)
    extras = None if found is None else _EXTRAS.match(text, found.end())
    end = extras.end() if extras is not None else found.end() if found is not None else 0
    head, rest = text[:end], text[end:]
    # "torch@https://…" also looks like a path
    if rest.lstrip()[:1] != "@" and (is_url(text.strip()) or is_path(text)):
        url, tail = _cut_marker(text.strip())
        lead = text[: len(text) - len(text.lstrip())]
        egg = re.search(r"[#&]egg=([A-Za-z0-9._-]+)(\[[^\]]*\])?", url)
        written = egg[1] if egg is not None and normalized(egg[1]) == name else name
        own = egg[2] if egg is not None and egg[2] else ""
        return _Parts(f"{lead}{written}{own}", address=url, tail=tail, bare=egg is None)
    if found is None or normalized(found[0].strip()) != name:
        raise InputError(f"expected a requirement of {name}, not {excerpt(text, 60)!r}")
    if rest.lstrip()[:1] == "@":
        url, tail = _cut_marker(rest.lstrip()[1:].lstrip())
        return _Parts(head, address=url, tail=tail)
    clauses, semicolon, marker = rest.partition(";")
    kept = clauses.rstrip()
    return _Parts(head, kept, tail=clauses[len(kept) :] + semicolon + marker)


def _cut_marker(text: str) -> tuple[str, str]:
    """Split an address and the marker after it, including the blank before the marker."""
    found = re.search(r"(?<!\s)\s+(?:;|$)|;\s", text)
    return (text, "") if found is None else (text[: found.start()], text[found.start() :])


def moved_revision(url: str, source: Source) -> str | None:
    """Return the address with another revision; ``None`` if it names another repository."""
    found = _WITH_REVISION.fullmatch(url)
    revision = revision_of(source)
    if found is None or revision is None or repository(found[1]) != repository(str(source.details["url"])):
        return None
    return f"{found[1]}@{revision}{found[3] or ''}"


def repository(url: str) -> str:
    """Return the normalised address of a repository, for comparison."""
    return without_credentials(url.removeprefix("git+")).rstrip("/").removesuffix(".git").lower()


# --- The address of the vendor's index for a release, compared with those that the file already names.


_FLAVOUR = re.compile(r"cu\d{2,4}|cpu|rocm[\d.]+|xpu")

Span = tuple[int, int]


def index_replacement(
    url: str, named: Sequence[tuple[str, Span]], kept_labels: Collection[str]
) -> tuple[Span | None, str] | None:
    """Return where to write an index address; ``None`` if it is already named.

    It replaces the same index for another build (``…/cu121`` → ``…/cu128``) if no remaining release has that build's
    label; otherwise ``(None, address)``: it is added.
    """
    if any(_same(each) == _same(url) for each, _ in named):
        return None
    spans = (span for each, span in named if siblings(each, url) and flavour(each) not in kept_labels)
    return next(spans, None), url


def siblings(one: str, other: str) -> bool:
    """Whether two addresses are the same vendor's index for two builds."""
    first, second = flavour(one), flavour(other)
    if not first or not second or first == second:
        return False
    return _same(one)[: -len(first)] == _same(other)[: -len(second)]


def flavour(url: str) -> str:
    """Return the last segment of an address if it names a build such as ``cu128``; else ""."""
    last = _same(url).rpartition("/")[2]
    return last if _FLAVOUR.fullmatch(last) else ""


def _same(url: str) -> str:
    return without_credentials(url).rstrip("/")
