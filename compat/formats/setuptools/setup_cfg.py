"""``setup.cfg``: the requirements that setuptools reads from ``[options]`` and ``[options.extras_require]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.formats.edit.changes import requirement_for
from compat.formats.edit.files import line_end
from compat.formats.edit.spans import Span, edit_spans
from compat.formats.registry import Format
from compat.formats.setuptools.listing import Collected
from compat.syntax.ini import parse_ini

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.files import Edit, Replacement
    from compat.formats.listing import Listing
    from compat.syntax.ini import Ini, IniOption


class SetupCfg(Format):
    """A setup.cfg; no listing for a file of tool settings only. :class:`InputError` for text outside of a section."""

    kind = "setup.cfg"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        ini = parse_ini(text, path)
        if not any(name.split(".")[0] in ("options", "metadata") for name in ini):
            return ()
        found = _collected(path, ini)
        read_configuration(path, text, found)
        return (found.listing(self.kind),)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        text = self.decode(path, content)
        ini = parse_ini(text, path)
        found = _collected(path, ini)
        read_configuration(path, text, found)
        return edit_spans(self, path, content, changes, found.statements, lambda change: _addition(text, ini, change))


def _collected(path: str, ini: Ini) -> Collected:
    name = ini.get("metadata", {}).get("name")
    return Collected(path, name.value if name is not None and len(name.lines) == 1 else None)


def read_configuration(path: str, text: str, found: Collected) -> None:
    """Add what a setup.cfg requires; :class:`InputError` if it is not a configuration file."""
    ini = parse_ini(text, path)
    options = ini.get("options", {})
    python = options.get("python_requires")
    if python is not None:
        found.python(python.value.replace("\n", ","), python.line)
    for key, option in options.items():
        if key in ("install_requires", "requires"):
            _list(path, text, option, found, "", key)
    for section, extras in ini.items():
        if section.partition(".")[2].replace("-", "_") == "extras_require":
            for extra, option in extras.items():
                _list(path, text, option, found, extra.replace("_", "-"), f"extra {extra}")


def _list(path: str, text: str, option: IniOption, found: Collected, extra: str, key: str) -> None:
    """Add the requirements of an option: one on each line, or separated by semicolons on one line, or those of a file."""
    node = found.node(extra)
    own = path == found.path
    if option.value.startswith("file:"):
        for name in option.value.removeprefix("file:").replace("\n", ",").split(","):
            if name.strip():
                found.file(name.strip(), option.line, node, key)
        return
    dangling = len(option.lines) > 1 or (option.lines and option.lines[0].number > option.line)
    for line in option.lines:
        for part in [line.text] if dangling else line.text.split(";"):
            at = line.offset + line.text.find(part)
            written = part.partition(" #")[0].strip()
            start = at + part.find(written)
            span = Span(start, start + len(written), written, gone=_gone(text, line.offset) if dangling else None)
            found.requirement(part, line.number, node, key, file=None if own else path, span=span if own else None)


def _gone(text: str, offset: int) -> tuple[int, int]:
    """Return the whole line."""
    return text.rfind("\n", 0, offset) + 1, (text.find("\n", offset) + 1) or len(text)


def _addition(text: str, ini: Ini, change: Change) -> Replacement | None:
    """Return the insertion of a requirement behind the last one of ``install_requires``; ``None`` without such lines."""
    option = ini.get("options", {}).get("install_requires")
    if option is None or not option.lines or option.lines[-1].number == option.line or option.value.startswith("file:"):
        return None
    last = option.lines[-1]
    return last.end, last.end, f"{line_end(text)}{option.indent}{requirement_for(change)}"
