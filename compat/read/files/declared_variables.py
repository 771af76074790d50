"""Environment variables that a file sets, without those that hold secrets: a report is made to be shown."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "PWD", "CREDENTIAL", "CREDENTIALS", "AUTH", "COOKIE")


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that may be shown: neither name nor value looks like a secret."""
    return {name: value for name, value in variables.items() if not (_is_secret(name) or _has_credentials(value))}


def _is_secret(name: str) -> bool:
    return name not in ("PWD", "OLDPWD") and any(part.endswith(_SECRET) for part in name.upper().split("_"))


def _has_credentials(value: str) -> bool:
    """Whether a value is an address with a password in it."""
    _, mark, rest = value.partition("://")
    return bool(mark) and "@" in rest
