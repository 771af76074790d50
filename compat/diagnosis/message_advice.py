"""Advice in error messages: the releases they require, and the variables and options they recommend."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from compat.model import Fix, normalized
from compat.reports.words import distribution_of
from compat.versions import contains, is_version, key_of, ranges_of

_NAME = r"[`'\"]?(?P<name>[A-Za-z][A-Za-z0-9_-]{1,40})"
_OTHER = _NAME.replace("name", "other")
_NUMBER = r"v?(?P<number>\d+(?:\.\w+){0,4})(?![\w*])"
_LEAST = r"(?:version )?(?:of )?(?:at least |minimum (?:required )?version )?"
_REQUIRED = (
    re.compile(rf"{_NAME}(?:\[[\w,-]*\])? ?(?P<operator>>=|==|~=|<=|<|>) ?{_NUMBER}"),
    re.compile(rf"(?:at least|minimum (?:required )?version(?: of)?) {_NAME}[`'\"]?(?: version)? ?{_NUMBER}"),
    re.compile(
        rf"{_NAME}[`'\"]?(?: package)? (?:with )?(?:a )?{_LEAST}{_NUMBER} ?(?:or|and|\+)"
        r"(?: ?(?:newer|higher|later|above|greater|up)|$)"
    ),
    re.compile(
        r"(?:[Uu]pgrade|[Uu]pdate|requires?|needs?|[Ii]nstall) (?:to )?"
        rf"{_NAME}[`'\"]? (?:to )?(?:version )?(?:at least )?{_NUMBER}"
    ),
    re.compile(rf"{_NAME} (?:with minimum required )?version {_NUMBER} is (?:not installed|required)"),
)
_NEWER = re.compile(
    rf"(?:[Uu]pgrade|[Uu]pdate) (?:to the latest (?:version of )?)?(?:your )?(?:the )?{_NAME}"
    rf"|pip install (?:-U|--upgrade) {_OTHER}"
)
_INSTALL = re.compile(
    r"pip install (?:-U |--upgrade )?[`'\"]?(?P<name>[A-Za-z][\w-]{1,40})(?P<extra>\[[\w,-]{1,40}\])?(?![\w@:/.-])"
)
_CALLED = {
    "pytorch": "torch", "flashattention": "flash-attn", "flash-attention": "flash-attn", "flashinfer": "flashinfer-python",
}  # fmt: skip


def requirements_in(text: str, distributions: Collection[str]) -> dict[str, str]:
    """Return the distributions that a message requires → a specifier; "" for any newer release."""
    found: dict[str, str] = {}
    for pattern in _REQUIRED:
        for match in pattern.finditer(text):
            name, number = _distribution(match["name"], distributions), match["number"].rstrip(".")
            if name and is_version(number):
                found.setdefault(name, f"{match.groupdict().get('operator') or '>='}{number}")
    for match in _NEWER.finditer(text):
        name = _distribution(match["name"] or match["other"], distributions)
        if name:
            found.setdefault(name, "")
    return found


def _distribution(name: str, distributions: Collection[str]) -> str | None:
    name = _CALLED.get(name.lower(), normalized(name))
    return name if name in distributions else None


def met(version: str, specifier: str) -> bool:
    """Whether a version satisfies a specifier; false for an empty or invalid one. The local label is ignored."""
    try:
        return bool(specifier) and contains(ranges_of(specifier), key_of(version.partition("+")[0]))
    except ValueError:
        return False


def release_asked_for(name: str, specifier: str) -> Fix:
    if not specifier:
        return Fix("upgrade", name, None, "the message asks for a newer release", f"pip install -U {name}")
    kind = "upgrade" if specifier[0] in ">~" else "downgrade" if specifier[0] == "<" else "pin"
    return Fix(kind, name, specifier, "what the message asks for", f'pip install "{name}{specifier}"')


def installs_in(text: str) -> Iterator[Fix]:
    """Yield a fix for each known distribution that a message says to install, in any release."""
    for match in _INSTALL.finditer(text):
        name = normalized(match["name"])
        if distribution_of(name) is not None:
            yield Fix("pin", name, None, "what the message says to install", f"pip install {name}{match['extra'] or ''}")


_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z`'\"])")
_VARIABLE = re.compile(
    r"\b(?:[Ss]et(?:ting)?|[Ee]xport|[Uu]s(?:e|ing)|[Dd]efine|via|with)\b[^.;]{0,60}?\b(?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b"
    r"(?:[`'\"]? ?(?:=|to) ?[`'\"]?(?P<value>[\w./+-]*\w))?"
)
_OPTION = re.compile(
    r"\b(?:[Uu]s(?:e|ing)|[Ss]et(?:ting)?|[Pp]ass(?:ing)?|[Aa]dd|[Ss]pecify|[Tt]ry|[Dd]isabl(?:e|ing)|[Ee]nabl(?:e|ing))\b"
    r"[^;]{0,80}?(?:--\w[\w-]+|`[\w.]+ ?= ?[^`]{1,40}`|\b\w+=(?:True|False|None|['\"\d]))"
)


def sentences(text: str) -> list[str]:
    return _SENTENCE.split(text)


def settings_in(text: str) -> Iterator[Fix]:
    """Yield a fix for each sentence of a message that recommends a variable or an option, quoting the sentence."""
    for sentence in sentences(text):
        found = _VARIABLE.search(sentence)
        if found is not None:
            command = f"export {found['name']}={found['value']}" if found["value"] else None
            yield Fix("env-var", None, None, f"the message says: {sentence}", command)
        elif _OPTION.search(sentence):
            yield Fix("config", None, None, f"the message says: {sentence}")
