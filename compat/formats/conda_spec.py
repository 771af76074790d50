"""conda packages: names, file names and match specifications."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.requirements.requirement import is_archive, is_url, source_of_url
from compat.formats.specifiers import EXACT, changed, public, same_length
from compat.model import EMPTY, Distribution, Source, normalized
from compat.records import record, replace
from compat.redact import excerpt, without_credentials
from compat.versions import is_version

_NAMES = {"pytorch": "torch"}
_STATED = {"pytorch-gpu": "torch", "pytorch-cpu": "torch"}
"""Metapackages of torch with its versions: where a project states one, it states the release of torch.

What is installed or locked has the package itself as well.
"""
"""Only packages that rules refer to; all others keep their conda name."""


_WITH_PYTORCH = ("pytorch", "conda-forge", "defaults", "main", "anaconda")
"""Channels that have a package ``pytorch``."""


def channel_of(name: str, stated: str | None, channels: Iterable[str]) -> str | None:
    """Return the channel that conda takes a package from, if stated; of ``pytorch`` else the name of the first that has it.

    Its builds differ between channels; builds of other packages are not distinguished.
    """
    if stated is not None or name != "pytorch":
        return stated
    return next((each for each in (address.rpartition("/")[2] for address in channels) if each in _WITH_PYTORCH), None)


def distribution_name(conda_name: str) -> str:
    """Return the normalised distribution name of a conda package: ``pytorch`` → ``torch``; most names are the same."""
    name = normalized(conda_name)
    return _NAMES.get(name, name)


# --- conda file names (``pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.conda``) and package sources.


_ENDINGS = (".conda", ".tar.bz2")


class Artefact(NamedTuple):
    """What the file name of a conda package says."""

    name: str
    version: str
    build: str


def split_artefact(location: str) -> Artefact | None:
    """Return name, version and build from the address or path of a conda package, or ``None``."""
    file = location.partition("#")[0].partition("?")[0].replace("\\", "/").rpartition("/")[2]
    for ending in _ENDINGS:
        if file.endswith(ending):
            parts = file[: -len(ending)].rsplit("-", 2)
            return Artefact(*parts) if len(parts) == 3 and all(parts) else None
    return None


def cuda_of(build: str) -> str | None:
    """Return the CUDA release in a build string (``"12.1"``), ``"cpu"`` for a CPU build, ``None`` if unknown."""
    tokens = build.split("_")
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if token.startswith("cu"):
            release = token.removeprefix("cuda").removeprefix("cu") or following
            found = _release(release)
            if found is not None:
                return found
    return "cpu" if "cpu" in tokens[:-1] else None  # after a hash it means something else (pyarrow)


def _release(text: str) -> str | None:
    """Return ``12.1`` for ``12.1`` and ``121py312h…``; nothing else is certain."""
    major, dot, minor = text.partition(".")
    if dot:
        return text if text.isascii() and major.isdecimal() and minor.isdecimal() else None
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    return f"{digits[:2]}.{digits[2]}" if len(digits) == 3 and digits[0] == "1" else None


def stated_distribution(spec: MatchSpec, details: Mapping[str, str | None], specifier: str | None) -> Distribution:
    """Return the distribution that a specification in a project's file is about."""
    found = conda_distribution(spec.name, spec.version, spec.build, details, specifier)
    name = _STATED.get(found.name)
    if name is None:
        return found
    return replace(found, name=name, extra={"cuda": "cpu"} if found.name.endswith("-cpu") else found.extra)


def conda_distribution(
    name: str, version: str | None, build: str | None, details: Mapping[str, str | None], specifier: str | None = None
) -> Distribution:
    """Return the distribution in a conda package; ``details`` are added to its source next to name and build."""
    known = {"name": name, **{key: value for key, value in details.items() if value is not None}}
    if "url" in known:
        known["url"] = without_credentials(known["url"])
    if build:
        known["build"] = build
    cuda = cuda_of(build) if build else None
    extra = {"cuda": cuda} if cuda else EMPTY
    return Distribution(distribution_name(name), version, Source("conda", known), None, specifier, extra)


def pip_source(location: str, details: Mapping[str, str], *, direct: bool = False, editable: bool = False) -> Source:
    """Return the pip source of a locked distribution: an index's archive, unless it is a direct reference."""
    if "+" in location.partition(":")[0]:
        source = _repository(location)
    elif not is_url(location) and not is_archive(location):
        source = Source("directory", {"path": location})
    elif direct or not is_url(location):
        source = source_of_url(location)
    else:
        source = Source("index", {"file": without_credentials(location)})
    return Source(source.kind, {**source.details, **details, **({"editable": True} if editable else {})})


def _repository(location: str) -> Source:
    """Parse ``git+https://…@revision``, or pixi's form with ``?rev=…&subdirectory=…#commit``."""
    address, mark, query = location.partition("#")[0].partition("?")
    if not mark and "#" not in location:
        return source_of_url(location)
    source = source_of_url(address)
    details = dict(source.details)
    commit = location.partition("#")[2]
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if key == "subdirectory" and value:
            details[key] = value
        elif key in ("rev", "tag", "branch") and value and not commit:
            details["requested_revision"] = value
    if commit and "=" not in commit:
        details["commit"] = commit
        details.pop("requested_revision", None)
    elif "subdirectory=" in commit:
        details["subdirectory"] = commit.partition("subdirectory=")[2].partition("&")[0]
    return Source(source.kind, details)


# --- conda match specifications (``pytorch::pytorch>=2.0``, ``numpy=1.26``, ``python=3.12.1=hab00c5b_1_cpython``).


_OPERATORS = ("==", ">=", "<=", "!=", "~=", "=", ">", "<")
_SIGNS = "=<>!~"
_JOINS = "=<>!~,|("
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_LIMIT = 4096
"""Characters; longer than any real specification."""


@record(frozen=True)
class MatchSpec:
    """A parsed specification: ``version`` if it is a single one, ``specifier`` (PEP 440) for a range, ``build`` as written.

    ``=1.2`` names a version and matches everything that starts with it: both are set then, and the range applies.

    ``unclear`` is a version constraint that PEP 440 cannot express (``2.1|2.2``).
    """

    name: str
    channel: str | None = None
    version: str | None = None
    specifier: str | None = None
    build: str | None = None
    unclear: str | None = None

    @property
    def exact(self) -> bool:
        """Whether it identifies one file, as in an exported environment."""
        return self.version is not None and self.build is not None and "*" not in self.build and "|" not in self.build


def parse_match_spec(text: str) -> MatchSpec:
    """Parse a match specification; ``ValueError`` with a short reason if it is invalid."""
    text = text.partition(" #")[0].strip()
    if len(text) > _LIMIT:
        raise ValueError("it is too long for a conda package")
    artefact = split_artefact(text)
    if artefact is not None:
        return MatchSpec(artefact.name, version=artefact.version, build=artefact.build)
    written = text
    keys: Mapping[str, str] = {}
    if text.endswith("]") and "[" in text:
        text, _, inside = text[:-1].partition("[")
        keys = _keys(inside)
    channel, _, text = text.rpartition("::")
    rest = text.lstrip(_NAME)
    name = keys.get("name") or text[: len(text) - len(rest)]
    is_name = not name.strip(_NAME) and any(letter.isalnum() for letter in name)
    if not is_name or rest[:1] not in ("", " ", "\t", *_SIGNS):
        raise ValueError(f"{excerpt(written, 60)!r} is not a conda package such as 'numpy>=1.26'")
    version, build = _version_and_build(rest)
    return _spec(name, keys.get("channel") or channel or None, keys.get("version", version), keys.get("build", build))


def _keys(inside: str) -> dict[str, str]:
    """Parse ``version='>=1,<2',build=py3*`` into values by key."""
    found: dict[str, str] = {}
    rest = inside.strip()
    while rest:
        key, sign, rest = rest.partition("=")
        rest = rest.lstrip()
        if not sign or not key.strip().isidentifier():
            raise ValueError(f"'[{excerpt(inside, 60)}]' is not understood: expected key='value'")
        if rest[:1] in ("'", '"'):
            value, _, rest = rest[1:].partition(rest[0])
            rest = rest.lstrip().removeprefix(",")
        else:
            value, _, rest = rest.partition(",")
        found[key.strip()] = value.strip()
        rest = rest.lstrip()
    return found


def _version_and_build(text: str) -> tuple[str, str | None]:
    """Split the text after the name: versions, and after a blank or a single ``=`` the build."""
    parts: list[str] = []
    for word in text.split():
        if parts and (parts[-1][-1] in _JOINS or word[0] in ",|" + _SIGNS):
            parts[-1] += word
        else:
            parts.append(word)
    if len(parts) > 2:
        raise ValueError(f"{excerpt(text.strip(), 60)!r} has more than a version and a build")
    if len(parts) == 2:
        return parts[0], parts[1]
    whole = parts[0] if parts else ""
    at = whole.rfind("=")
    if at > 0 and whole[at - 1] not in "=<>!~,|":
        return whole[:at], whole[at + 1 :] or None
    return whole, None


def _spec(name: str, channel: str | None, text: str, build: str | None) -> MatchSpec:
    if text in ("", "*", "=*", "==*"):
        return MatchSpec(name, channel, build=build)
    if "|" in text or "(" in text or "^" in text:
        return MatchSpec(name, channel, build=build, unclear=text)
    clauses = [_clause(each.strip()) for each in text.split(",")]
    if len(clauses) == 1 and (one := _one_version(*clauses[0], fixed=build is not None)) is not None:
        return MatchSpec(name, channel, one, None, build)
    written = [_written(operator, version) for operator, version in clauses if version not in ("", "*")]
    if None in written:
        return MatchSpec(name, channel, build=build, unclear=text)
    if len(clauses) == 1 and clauses[0][0] == "=" and is_version(clauses[0][1]):
        return MatchSpec(name, channel, clauses[0][1], written[0], build)
    return MatchSpec(name, channel, None, ",".join(filter(None, written)) or None, build)


def _clause(text: str) -> tuple[str, str]:
    """Return operator and version; ``=*`` for the family ``1.2.*``, ``==`` for a bare ``1.2``."""
    operator = next((each for each in _OPERATORS if text.startswith(each)), "")
    version = text[len(operator) :].strip()
    if version.endswith("*"):
        family = version[:-1].removesuffix(".")
        return ("=*" if operator in ("", "=", "==") else operator, family if operator != "!=" else f"{family}.*")
    return operator or "==", version


def _one_version(operator: str, version: str, *, fixed: bool) -> str | None:
    """Return the version of a clause if it is a single one; a family of three numbers rarely has another member."""
    if not version or any(sign in version for sign in _SIGNS + "*,"):
        return None
    if operator == "==" or (operator == "=" and (fixed or version.count(".") >= 2 or not is_version(version))):
        return version
    return None


def _written(operator: str, version: str) -> str | None:
    """Return a clause in PEP 440; ``None`` if it cannot be expressed."""
    if operator in ("=", "=*"):
        numbers = all(part.isascii() and part.isdecimal() for part in version.split("."))
        return f"=={version}.*" if numbers else f"=={version}" if is_version(version) else None
    if operator == "~=" and "." not in version:
        operator = ">="
    return f"{operator}{version}" if is_version(version.removesuffix(".*") if operator == "!=" else version) else None


# --- A match specification, rewritten for another release.


_SPEC = re.compile(
    r"(?P<head>(?:[^\s\[\]=<>!~]+::)?[A-Za-z0-9._-]+)(?P<gap>[ \t]*)(?P<version>[^\s\[\]]*(?:[ \t]*[,|<>=!~][^\s\[\]]*)*)"
    r"(?P<build>[ \t]+[^\s\[\]]+)?(?P<keys>\[.*\])?"
)


def rewritten_spec(text: str, change: Change, how: str) -> str:
    """Return the changed specification; the build is dropped, because it belongs to one release.

    :class:`InputError` (without a place) for a source that conda does not support, and a version in brackets.
    """
    if change.source is not None and change.source.kind not in ("index", "nightly", "conda"):
        raise InputError(f"{change.name} comes from conda, but its new release does not: change it by hand")
    found = _SPEC.fullmatch(text.strip())
    assert change.after is not None
    if found is None or "version" in (found["keys"] or "") or "|" in found["version"]:
        raise InputError(f"expected a conda package such as 'numpy=1.26', not {excerpt(text, 60)!r}")
    head, gap, version, keys = found["head"], found["gap"], found["version"], found["keys"] or ""
    after = public(change.after)  # local labels belong to wheels
    sign = re.match(r"={0,2}", version)
    mark = "" if sign is None else sign[0]
    if change.source is not None and change.source.kind == "conda":  # another channel, whose builds have other names
        name, variant = head.rpartition("::")[2], change.source.details.get("variant")
        return f"{change.source.details['channel']}::{name}={after}{f'={variant}' if variant else ''}"
    single = not re.search(r"[,<>!~*]", version)
    if how != EXACT:
        return f"{head}{gap}{changed(re.sub(r'^=(?!=)', '==', version), change.before, after, how)}{keys}"
    if re.fullmatch(r"={0,2}\d[\d.]*\.\*", version) and (series := same_length("==", version.lstrip("="), after)):
        return f"{head}{gap}{mark}{series[2:]}{keys}"
    if single and (mark or gap):
        return f"{head}{gap}{mark}{after}{keys}"
    return f"{head}=={after}{keys}"
