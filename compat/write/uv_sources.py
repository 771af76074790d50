"""``[tool.uv]``: where a distribution comes from (sources and indexes)."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from compat.environment import Source, normalized
from compat.errors import InputError
from compat.write.changes import Change
from compat.write.requirement_text import repository
from compat.write.toml_file import TomlFile, as_written, inline_texts, with_keys

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
        raise _wrong(file, change, "it is installed from a folder, which is not replaced")
    direct = current is not None and any(each in current for each in _DIRECT)
    if change.source is not None and change.is_direct_url:
        _set(file, sources, key, change, _direct(change.source, current))
    elif change.index_url is not None:
        name = _index(file, change.index_url)
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
    names = {str(each.get("index")) for each in current}
    if change.index_url is not None and _named(file, change.index_url) in names:
        return
    raise _wrong(file, change, "there are several sources; which is to be changed cannot be told")


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


def _named(file: TomlFile, url: str) -> str | None:
    """The name of the index with this address."""
    for each in file.table("tool", "uv", "index") or ():
        if str(each.get("url", "")).rstrip("/") == url.rstrip("/") and "name" in each:
            return str(each["name"])
    return None


def _index(file: TomlFile, url: str) -> str:
    """The name of the index with this address, which is added where it is not there."""
    found = _named(file, url)
    if found is not None:
        return found
    taken = {str(each.get("name")) for each in file.table("tool", "uv", "index") or ()}
    name = index_name(url, taken)
    table = f"[[tool.uv.index]]\nname = {as_written(name, None).as_string()}\nurl = {as_written(url, None).as_string()}\n"
    file.add_table(f"{table}explicit = true\n")
    return name


def index_name(url: str, taken: set[str]) -> str:
    """``https://download.pytorch.org/whl/cu128`` → ``pytorch-cu128``; with a number where that is taken."""
    parts = urlsplit(url)
    labels = (parts.hostname or "index").split(".")
    site = labels[-2] if len(labels) > 1 else labels[0]
    last = parts.path.rstrip("/").rpartition("/")[2]
    base = re.sub(r"[^a-z0-9]+", "-", f"{site}-{last}".lower()).strip("-")
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name
