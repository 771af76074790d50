"""``[tool.uv]``: where a distribution comes from (sources and indexes)."""

from __future__ import annotations

import re
from typing import Any

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.project.toml_edit import TomlFile, as_written, inline_texts, with_keys
from compat.formats.requirements.text import repository
from compat.model import Source, normalized

_DIRECT = ("git", "url")
_LOCAL = ("path", "workspace")


def set_source(file: TomlFile, change: Change) -> None:
    """Make the sources say what a change says; an index that the user chose stays where the change names none.

    :class:`InputError` where the source is a folder, or several of which any may be meant.
    """
    sources = file.table("tool", "uv", "sources")
    key = next((each for each in sources or () if normalized(each) == change.name), None)
    current = None if key is None else sources[key]
    if current is not None and not isinstance(current, dict):
        _among_several(file, change, current)
        return
    if current is not None and any(each in current for each in _LOCAL):
        raise _wrong(file, change, "it is installed from a directory, which is not replaced")
    direct = current is not None and any(each in current for each in _DIRECT)
    if change.source is not None and change.is_direct_url:
        _set(file, sources, key, change, _direct(change.source, current))
    elif change.index_url is not None:
        name = str(file.source("tool.uv.index", change.index_url, explicit=True)["name"])
        if current is not None and not direct and "index" in current:
            if str(current["index"]) != name:
                current["index"] = as_written(name, current["index"])
        else:
            _set(file, sources, key, change, {"index": name})
    elif direct:
        del sources[key]


def remove_source(file: TomlFile, name: str) -> None:
    """Forget where a distribution came from that is not asked for any more."""
    sources = file.table("tool", "uv", "sources")
    key = next((each for each in sources or () if normalized(each) == name), None)
    if key is not None:
        del sources[key]


def _wrong(file: TomlFile, change: Change, problem: str) -> InputError:
    return InputError(f"tool.uv.sources.{change.name}: {problem}", file.path, file.places.key("tool.uv.sources", change.name))


def _among_several(file: TomlFile, change: Change, current: Any) -> None:
    """A list of sources by marker, extra or group stays, where it serves the change as it is."""
    if change.source is None and all("index" in each for each in current):
        return
    indexes = {str(each.get("name")): str(each.get("url", "")) for each in file.table("tool", "uv", "index") or ()}
    urls = {indexes.get(str(each.get("index")), "").rstrip("/") for each in current}
    if change.index_url is not None and change.index_url.rstrip("/") in urls:
        return
    raise _wrong(file, change, "there are several sources; cannot tell which one to change")


def _direct(source: Source, current: Any) -> dict[str, str]:
    details = source.details
    url = str(details["url"]).removeprefix("git+")
    if source.kind == "url":
        return {"url": url}
    if current is not None and "git" in current and repository(str(current["git"])) == repository(url):
        url = str(current["git"])
    found = {"git": url}
    revision = details.get("commit") or details.get("requested_revision")
    if revision:
        found["rev"] = str(revision)
    if details.get("subdirectory"):
        found["subdirectory"] = str(details["subdirectory"])
    return found


def _set(file: TomlFile, sources: Any, key: str | None, change: Change, value: dict[str, str]) -> None:
    if sources is None or (key is None and _has_header(file)):
        file.add_line("tool.uv.sources", f"{change.name} = {inline_texts(value).as_string()}")
    elif key is None:
        sources[change.name] = inline_texts(value)
    else:
        with_keys(sources, key, value, [each for each in sources[key] if each not in ("marker", "extra", "group")])


def _has_header(file: TomlFile) -> bool:
    return bool(re.search(r"^\[tool\.uv\.sources\]", file.text, re.MULTILINE))
