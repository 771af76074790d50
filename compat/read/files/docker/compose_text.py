"""Values in a compose file: ``${VARIABLE:-default}``, command lines, ``environment``, and services that extend others."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.read.yaml_nodes import Document, Value

    Service = dict[str, Value]

_NESTED = 10
"""Defaults inside of defaults, and services behind services, that are followed."""
_LONGEST = 1 << 14
"""Characters of a command; nobody wrote a longer one."""
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_UNITED = ("environment", "deploy", "resources", "reservations", "limits", "labels", "build")
"""Tables of which a service that extends another one has the keys of both."""


def interpolated(text: str, depth: int = 0) -> str:
    """A text with the defaults of its variables; a variable without one stays as it is, ``$$`` is a ``$``."""
    if "$" not in text or depth > _NESTED:
        return text
    parts: list[str] = []
    at = 0
    while (sign := text.find("$", at)) >= 0:
        parts.append(text[at:sign])
        if text.startswith("$$", sign):
            parts.append("$")
            at = sign + 2
        elif text.startswith("${", sign):
            end = _closing(text, sign + 2)
            if end < 0:
                at = sign
                break
            parts.append(_default(text[sign + 2 : end], text[sign : end + 1], depth))
            at = end + 1
        else:
            parts.append("$")
            at = sign + 1
    return "".join(parts) + text[at:]


def _closing(text: str, at: int) -> int:
    """Where the brace is closed that was opened before ``at``; -1 where it is not."""
    level = 1
    while True:
        close = text.find("}", at)
        if close < 0:
            return -1
        level += text.count("${", at, close) - 1
        if level <= 0:
            return close
        at = close + 1


def _default(inside: str, whole: str, depth: int) -> str:
    """What ``VARIABLE:-default`` is worth where the variable is not known."""
    rest = inside.lstrip(_NAME)
    if rest[:1] == "-" or rest[:2] == ":-":
        return interpolated(rest.partition("-")[2], depth + 1)
    return whole


def words_of(document: Document, value: Value | None, name: str) -> tuple[str, ...] | None:
    """The words of ``command`` or ``entrypoint``; ``None`` where it is not given or cannot be split."""
    if value is None or value.is_null:
        return None
    if value.is_list:
        words = [document.text(each, f"a word of {name}") or "" for each in document.items(value, name)]
        return tuple(map(interpolated, words)) if sum(map(len, words)) < _LONGEST else None
    text = document.text(value, name) or ""
    if len(text) >= _LONGEST:
        return None
    from compat.read.workload.shell_words import shell_words

    try:
        return tuple(shell_words(interpolated(text)))
    except ValueError:
        return None


def variables_of(document: Document, value: Value | None, name: str) -> dict[str, str]:
    """``environment``, as a table or as a list of ``NAME=value``; a value that only the host knows is left out."""
    found: dict[str, str] = {}
    if value is not None and value.is_list:
        for each in document.items(value, name):
            key, sign, text = (document.text(each, f"a variable of {name}") or "").partition("=")
            if sign:
                found[key.strip()] = interpolated(text)
    else:
        for key, each in document.table(value, name).items():
            written = document.text(each, f"{name}.{key}")
            if written is not None:
                found[key] = interpolated(written)
    return {key: text for key, text in found.items() if "$" not in text}


def extended(document: Document, services: Service, name: str, unread: list[str]) -> Service:
    """A service with what it inherits through ``extends``; another file is not opened, and named in ``unread``."""
    chain: list[Service] = []
    seen: set[str] = set()
    while True:
        service = document.table(services[name], f"services.{name}")
        chain.append(service)
        if len(chain) > _NESTED:
            raise document.wrong(f"services.{name}: extends another service over more than {_NESTED} others", services[name])
        seen.add(name)
        given = service.get("extends")
        if given is None or given.is_null:
            break
        of = {"service": given} if given.is_text else document.table(given, f"services.{name}.extends")
        file, base = document.text(of.get("file"), "extends.file"), document.text(of.get("service"), "extends.service")
        if file:
            unread.append(f"{document.file}:{given.line}: extends {file} was not read")
            break
        if base is None or base not in services or base in seen:
            raise document.wrong(f"services.{name}: expected extends to name another service of this file", given)
        name = base
    result: Service = {}
    for service in reversed(chain):
        result = _united(document, result, service)
    return {key: value for key, value in result.items() if value.tag != "!reset"}


def _united(document: Document, base: Service, own: Service) -> Service:
    united = {**base, **own}
    for key in _UNITED:
        mine, other = own.get(key), base.get(key)
        if mine is not None and other is not None and mine.is_table and other.is_table:
            inner = _united(document, document.table(other, key), document.table(mine, key))
            united[key] = mine.as_table(inner)
        elif key == "environment" and mine is not None and other is not None:
            united[key] = mine.as_table({**_by_name(document, other), **_by_name(document, mine)})
    return united


def _by_name(document: Document, value: Value) -> Service:
    """``environment`` in either form, by name."""
    if not value.is_list:
        return document.table(value, "environment")
    found: Service = {}
    for each in document.items(value, "environment"):
        key, sign, text = (document.text(each, "a variable") or "").partition("=")
        found[key.strip()] = each.as_text(text if sign else None)
    return found
