"""What independent readers found in the real files of the corpus, in the words ``compat facts`` prints it in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from packaging.specifiers import SpecifierSet

from tests.conftest import ROOT

CORPUS = ROOT / ".." / "shared" / "corpus"


class Package(NamedTuple):
    """One listed release. ``source`` has a key for everything the oracle tells about it, ``None`` where it tells there is none.

    ``where``: the section the oracle found it in, ``listed`` where it does not say; it is not compared. ``extras``: ``None``
    where the oracle does not look for them.
    """

    name: str
    version: str | None
    range: SpecifierSet | None
    marker: str | None
    source: dict[str, Any]
    where: str = "listed"
    extras: list[str] | None = None


class Difference(NamedTuple):
    """Where ``compat`` and the oracle tell different things about a package."""

    name: str
    field: str
    wanted: str
    found: str


def oracles() -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((CORPUS / "oracle").glob("*.json"))]


def packages_of(oracle: dict[str, Any]) -> list[Package]:
    """What the oracle of one file holds; ``KeyError`` for a kind of file that lists no packages."""
    if "requirements" in oracle:
        return [package for row in oracle["requirements"] for package in _project(row)]
    file: str = oracle["file"]
    (reader,) = [reader for pattern, reader in READERS.items() if fnmatchcase(file, pattern)]
    indexes = {each["name"]: each["url"] for each in oracle["meta"].get("sources") or () if isinstance(each, dict)}
    return [reader(row, indexes)._replace(extras=_extras(row)) for row in oracle["packages"]]


def _extras(row: dict[str, Any]) -> list[str] | None:
    return sorted(row["extras"] or []) if "extras" in row else None


def printed_packages(facts: dict[str, Any]) -> list[Package]:
    """What ``compat facts`` printed."""
    found = []
    for each in facts["distributions"]:
        source = each["source"] if isinstance(each["source"], dict) else {"kind": each["source"]}
        asked = SpecifierSet(each["specifier"]) if "specifier" in each else None
        found.append(Package(each["name"], each.get("version"), asked, each.get("marker"), source, "", each.get("extras", [])))
    return found


def differences(wanted: list[Package], found: list[Package]) -> list[Difference]:
    """All of them; packages are held against each other in the order of the file."""
    result, at = [], 0
    for package in wanted:
        if at == len(found) or not _same(package, found[at]):
            result.append(Difference(_text(package.name), "listed", package.where, ""))
            continue
        result += _told_apart(package, found[at])
        at += 1
    return result + [Difference(package.name, "listed", "", "listed") for package in found[at:]]


def _same(wanted: Package, found: Package) -> bool:
    """Whether it may be the same package: conda has names of its own."""
    return wanted.name == found.name or (found.source["kind"], found.source.get("name")) == ("conda", wanted.source.get("name"))


def _told_apart(wanted: Package, found: Package) -> list[Difference]:
    pairs = {field: (getattr(wanted, field), getattr(found, field)) for field in ("name", "version", "range", "marker")}
    pairs |= {f"source.{key}": (value, found.source.get(key)) for key, value in wanted.source.items()}
    if wanted.extras is not None:
        pairs["extras"] = (wanted.extras, found.extras)
    return [Difference(wanted.name, field, _text(one), _text(other)) for field, (one, other) in pairs.items() if one != other]


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _uv(row: dict[str, Any], _: dict[str, str]) -> Package:
    ((kind, place),) = row["source"].items()
    source: dict[str, Any] = {"kind": "directory", "path": place, "editable": True if kind == "editable" else None}
    if kind in ("registry", "url"):
        source = {"kind": "index" if kind == "registry" else "url", "url": place}
    elif kind == "git":
        source = _link(f"git+{place}")
    markers = row["resolution_markers"] or [None]
    marker = markers[0] if len(markers) == 1 else " or ".join(f"({each})" for each in markers)
    return Package(row["name"], row["version"], None, marker, source)


def _poetry(row: dict[str, Any], _: dict[str, str]) -> Package:
    given = row["source"]
    sources = {
        "pypi-default": {"kind": "index", "url": None},
        "legacy": {"kind": "index", "url": given.get("url")},
        "url": {"kind": "url", "url": given.get("url")},
        "git": {
            "kind": "vcs", "url": given.get("url"), "commit": given.get("resolved_reference"),
            "requested_revision": given.get("reference"),
        },
    }  # fmt: skip
    return Package(row["name"], row["version"], None, row["marker"], sources[given["type"]])


def _pdm(row: dict[str, Any], _: dict[str, str]) -> Package:
    given = row["source"]
    source = {"kind": "directory", **given} if "path" in given else {"kind": "index", "url": None}
    return Package(row["name"], row["version"], None, row["marker"], source)


def _pipfile(row: dict[str, Any], indexes: dict[str, str]) -> Package:
    given = row["source"]
    source: dict[str, Any] = {"kind": "index", "url": indexes.get(given.get("index", ""))}
    if "git" in given:
        source = {"kind": "vcs", "url": given["git"], "commit": given["ref"]}
    elif "file" in given:
        source = {"kind": "url", "url": given["file"]}
    return Package(row["name"], row["version"], None, row["marker"], source)


def _pylock(row: dict[str, Any], _: dict[str, str]) -> Package:
    given = row["source"]
    source: dict[str, Any] = {"kind": "index", "url": given.get("index")}
    if "directory" in given:
        source = {"kind": "directory", "path": given["directory"]["path"], "editable": given["directory"]["editable"] == "True"}
    elif "archive" in given:
        source = {"kind": "url", "url": given["archive"]["url"]}
    return Package(row["name"], row["version"], None, row["marker"], source)


def _requirement(row: dict[str, Any], _: dict[str, str]) -> Package:
    link, asked = row["source"]["link"], SpecifierSet(row["spec"] or "")
    source = {"kind": "index", "url": None} if link is None else _link(link)
    source["editable"] = row["source"]["editable"] or None
    return Package(row["name"], row["version"], asked if asked and not row["version"] else None, row["marker"], source)


def _link(link: str) -> dict[str, Any]:
    """A URL as pip writes it (``@revision``), or uv and pixi (``?rev=…#commit``)."""
    if not link.startswith("git+"):
        return {"kind": "url", "url": link}
    parts = urlsplit(link.removeprefix("git+"))
    asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
    path, _, revision = parts.path.partition("@")
    commit = next((each for each in (parts.fragment, revision) if re.fullmatch("[0-9a-f]{40}", each)), None)
    return {
        "kind": "vcs", "url": parts._replace(path=path, query="", fragment="").geturl(), "commit": commit,
        "subdirectory": asked.pop("subdirectory", None),
        "requested_revision": next(iter(asked.values()), None) or (revision if revision and revision != commit else None),
    }  # fmt: skip


def _conda(row: dict[str, Any], _: dict[str, str]) -> Package:
    given, link = row["source"], row["source"].get("url") or ""
    if given["manager"] == "conda":
        named = str(row.get("raw", "")).partition("::")
        told = {"url": link or None, "platform": given.get("platform"), "build": row.get("build")}
        source = {"kind": "conda", "name": row["raw_name"], **{key: value for key, value in told.items() if value}}
        if "raw" in row:
            source["channel"] = named[0] if named[1] else None
    elif link.startswith("git+"):
        source = _link(link)
    elif link == ".":
        source = {"kind": "directory", "path": "."}
    else:
        source = {"kind": "index", "file": link or None}
    if given["manager"] != "conda" and "editable" in given and link == ".":
        source["editable"] = given["editable"] or None
    exact = row["version"] is not None and not re.fullmatch(r"=[\d.]+", row.get("spec") or "")
    return Package(row["name"], row["version"], None if exact else _conda_range(row.get("spec")), row["marker"], source)


def _conda_range(text: str | None) -> SpecifierSet | None:
    """conda's ``=3.10`` is any 3.10.x."""
    return SpecifierSet(re.sub(r"^=([\d.]+)$", r"==\1.*", text)) if text else None


def _project(row: dict[str, Any]) -> list[Package]:
    name, text, where = row["name"], row["spec"], row["where"]
    if where.startswith("poetry"):
        given = json.loads(text) if text[:1] in "[{" else {"version": text}
        return [_poetry_dependency(name, each, where) for each in (given if isinstance(given, list) else [given])]
    if name is None:
        name, direct, link = text.partition(" @ ")  # what packaging refuses
        source = _link(link.partition(";")[0]) if direct else {}
        return [Package(name, None, None, None, source, where)]
    asked = SpecifierSet("" if text == "*" or text.startswith("@") else text)
    pins = [each.version for each in asked if each.operator == "==" and not each.version.endswith(".*")]
    version = pins[0] if len(asked) == 1 and pins else None
    source = _link(text.removeprefix("@").strip()) if text.startswith("@") else {"kind": "index"}
    return [Package(name, version, asked if asked and version is None else None, row["marker"], source, where)]


def _poetry_dependency(name: str, given: dict[str, Any], where: str) -> Package:
    source = {"kind": "url", "url": given["url"]} if "url" in given else {"kind": "index"}
    asked = SpecifierSet(re.sub(r"\^([\w.]+)", _caret, given.get("version", "")))
    return Package(name, None, asked if asked else None, None, source, where)


def _caret(found: re.Match[str]) -> str:
    """Poetry's ``^1.2``: up to the next change of the first number that is not zero."""
    numbers = [int(number) for number in re.findall(r"\d+", found[1])]
    at = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1)
    return f">={found[1]},<{'.'.join(map(str, [*numbers[:at], numbers[at] + 1]))}"


READERS: dict[str, Callable[[dict[str, Any], dict[str, str]], Package]] = {
    "uv.lock/*": _uv,
    "poetry.lock/*": _poetry,
    "pdm.lock/*": _pdm,
    "Pipfile.lock/*": _pipfile,
    "*pylock.toml": _pylock,
    "requirements/*": _requirement,
    "derived/*requirements.txt": _requirement,
    "conda/*": _conda,
}


def path_of(oracle: dict[str, Any]) -> Path:
    return CORPUS / "files" / str(oracle["file"])
