"""conda's match specifications (``pytorch::pytorch>=2.0``, ``numpy=1.26``, ``python=3.12.1=hab00c5b_1_cpython``)."""

from __future__ import annotations

from compat.read.files.conda.conda_artefacts import split_artefact
from compat.records import record
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_OPERATORS = ("==", ">=", "<=", "!=", "~=", "=", ">", "<")
_SIGNS = "=<>!~"
_JOINS = "=<>!~,|("
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_LIMIT = 4096
"""Characters; no specification that anybody wrote is longer."""


@record(frozen=True)
class MatchSpec:
    """What is asked for. ``version`` where it is one, ``specifier`` (PEP 440) where it is a range, ``build`` as written.

    ``=1.2`` names a version and means everything that begins with it: both are set then, and the range counts.

    ``unclear`` is what is said about the version and cannot be said in PEP 440 (``2.1|2.2``).
    """

    name: str
    channel: str | None = None
    version: str | None = None
    specifier: str | None = None
    build: str | None = None
    unclear: str | None = None

    @property
    def exact(self) -> bool:
        """Whether it names one file, as an exported environment does."""
        return self.version is not None and self.build is not None and "*" not in self.build and "|" not in self.build


def parse_match_spec(text: str) -> MatchSpec:
    """The parts of a match specification; ``ValueError`` with a short reason for what is none."""
    text = text.partition(" #")[0].strip()
    if len(text) > _LIMIT:
        raise ValueError("it is too long for a package of conda")
    artefact = split_artefact(text)
    if artefact is not None:
        return MatchSpec(artefact[0], None, artefact[1], None, artefact[2])
    written = text
    keys: Mapping[str, str] = {}
    if text.endswith("]") and "[" in text:
        text, _, inside = text[:-1].partition("[")
        keys = _keys(inside)
    channel, _, text = text.rpartition("::")
    rest = text.lstrip(_NAME)
    name = keys.get("name") or text[: len(text) - len(rest)]
    if not _is_name(name) or rest[:1] not in ("", " ", "\t", *_SIGNS):
        raise ValueError(f"{written[:60]!r} is not a package of conda such as 'numpy>=1.26'")
    version, build = _version_and_build(rest)
    return _spec(name, keys.get("channel") or channel or None, keys.get("version", version), keys.get("build", build))


def _is_name(text: str) -> bool:
    return not text.strip(_NAME) and any(letter.isalnum() for letter in text)


def _keys(inside: str) -> dict[str, str]:
    """``version='>=1,<2',build=py3*`` → the values by key."""
    found: dict[str, str] = {}
    rest = inside.strip()
    while rest:
        key, sign, rest = rest.partition("=")
        rest = rest.lstrip()
        if not sign or not key.strip().isidentifier():
            raise ValueError(f"'[{inside[:60]}]' is not understood: expected key='value'")
        if rest[:1] in ("'", '"'):
            value, _, rest = rest[1:].partition(rest[0])
            rest = rest.lstrip().removeprefix(",")
        else:
            value, _, rest = rest.partition(",")
        found[key.strip()] = value.strip()
        rest = rest.lstrip()
    return found


def _version_and_build(text: str) -> tuple[str, str | None]:
    """What stands behind the name: versions, and behind a blank or a single ``=`` the build."""
    parts: list[str] = []
    for word in text.split():
        if parts and (parts[-1][-1] in _JOINS or word[0] in ",|" + _SIGNS):
            parts[-1] += word
        else:
            parts.append(word)
    if len(parts) > 2:
        raise ValueError(f"{text.strip()[:60]!r} has more than a version and a build")
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
    if len(clauses) == 1 and clauses[0][0] == "=" and _is_version(clauses[0][1]):
        return MatchSpec(name, channel, clauses[0][1], written[0], build)
    return MatchSpec(name, channel, None, ",".join(filter(None, written)) or None, build)


def _clause(text: str) -> tuple[str, str]:
    """Operator and version; ``=*`` for the family ``1.2.*``, ``==`` for a bare ``1.2``."""
    operator = next((each for each in _OPERATORS if text.startswith(each)), "")
    version = text[len(operator) :].strip()
    if version.endswith("*"):
        family = version[:-1].removesuffix(".")
        return ("=*" if operator in ("", "=", "==") else operator, family if operator != "!=" else f"{family}.*")
    return operator or "==", version


def _one_version(operator: str, version: str, *, fixed: bool) -> str | None:
    """The version a clause names if that is one; a family of three numbers has hardly ever another member."""
    if not version or any(sign in version for sign in _SIGNS + "*,"):
        return None
    if operator == "==" or (operator == "=" and (fixed or version.count(".") >= 2 or not _is_version(version))):
        return version
    return None


def _written(operator: str, version: str) -> str | None:
    """A clause in PEP 440; ``None`` where it cannot be said there."""
    if operator in ("=", "=*"):
        numbers = all(part.isascii() and part.isdigit() for part in version.split("."))
        return f"=={version}.*" if numbers else f"=={version}" if _is_version(version) else None
    if operator == "~=" and "." not in version:
        operator = ">="
    return f"{operator}{version}" if _is_version(version.removesuffix(".*") if operator == "!=" else version) else None


def _is_version(text: str) -> bool:
    try:
        key_of(text)
    except ValueError:
        return False
    return True
