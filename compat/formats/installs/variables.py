"""The variables that hold the versions of install commands (``ARG TORCH=2.6.0``, ``torch==$TORCH``), for the editor."""

from __future__ import annotations

import re

from compat.formats.edit.changes import Change
from compat.formats.edit.files import Replacement
from compat.records import record
from compat.syntax.parameters import expanded

_REFERENCE = re.compile(r"\$(?:\{(?P<braced>[A-Za-z_]\w*)(?P<default>:?-[^{}$]*)?\}|(?P<bare>[A-Za-z_]\w*))")


@record(frozen=True)
class _Definition:
    value: str
    span: tuple[int, int] | None


class Variables:
    """The variable definitions read so far; the last one of a name counts."""

    def __init__(self) -> None:
        self._known: dict[str, list[_Definition]] = {}
        self._values: dict[str, str] = {}
        """The last value of each variable; ``${NAME}`` for one that is computed."""

    def define(self, name: str, value: str, span: tuple[int, int] | None) -> None:
        """Define a variable; ``span`` is the position of its value, ``None`` if unknown."""
        value = self.filled(value)
        self._known.setdefault(name, []).append(_Definition(value, span))
        self._values[name] = f"${{{name}}}" if references(value) else value

    def filled(self, text: str) -> str:
        """Substitute every variable whose value is known and not computed."""
        return expanded(text, self._values)

    def moved(self, text: str, change: Change) -> list[Replacement] | None:
        """Return the change to the variable that holds the version of a requirement (``torch==${TORCH}``).

        ``None`` if the version is not one variable (with fixed text around it), or the variable is set in several ways.
        """
        found = re.search(r"==\s*([^\s;,]+)", text)
        if found is None or change.is_direct_url or change.after is None:
            return None
        parts = list(_REFERENCE.finditer(found[1]))
        if len(parts) != 1:
            return None
        before, behind = found[1][: parts[0].start()], found[1][parts[0].end() :]
        after = change.after
        if "$" in before + behind or not after.startswith(before) or not after.endswith(behind):
            return None
        value = after[len(before) : len(after) - len(behind)]
        known = self._known.get(parts[0]["braced"] or parts[0]["bare"], [])
        computed = any(references(each.value) or each.span is None for each in known)
        if not value or not known or computed or len({each.value for each in known}) > 1:
            return None
        return [(*each.span, value) for each in known if each.span is not None]

    def with_default(self, text: str, after: str) -> str | None:
        """Return ``torch==${TORCH:-2.5.1}`` with another default; ``None`` for any other version, or if the variable is set."""
        found = re.fullmatch(r"(.*==\s*)(\$\{[^}]*\})(.*)", text, re.DOTALL)
        part = None if found is None else _REFERENCE.fullmatch(found[2])
        if found is None or part is None or not part["default"] or part["braced"] in self._known or found[3][:1] in ("+", "."):
            return None
        sign = part["default"][: part["default"].index("-") + 1]
        return f"{found[1]}${{{part['braced']}{sign}{after}}}{found[3]}"


def references(text: str) -> bool:
    """Whether a text contains a variable or a substitution."""
    return "$" in text or "`" in text
