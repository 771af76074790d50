"""Addresses and paths that requirements name instead of a release → name, version and source of what is behind them.

Nothing is opened: a name comes from ``#egg=``, from the name of a wheel (PEP 427) or of a source archive, or from the
name of the repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat.formats.metadata import INDEX
from compat.model import EMPTY, Distribution, Source, normalized
from compat.redact import without_credentials
from compat.versions import key_of

__all__ = ["INDEX", "Unnamed", "direct_url", "is_archive", "is_path", "is_url", "read_url", "source_of_url", "wheel_of"]

_SCHEMES = ("http", "https", "ftp", "file", "git+", "hg+", "svn+", "bzr+")
_VCS = ("git+", "hg+", "svn+", "bzr+")
_SDISTS = (".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz", ".tar")
_CONDA_BUILDS = ("/croot/", "/feedstock_root/", "/conda-bld/")
"""Folders in which conda packages are built; ``pip freeze`` shows them as addresses of what conda installed."""
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_IN_PATHS = _NAME + "/\\~+@%${}=,()"


class Unnamed(ValueError):
    """An address or a path that does not say which distribution it contains; ``source`` is what it is."""

    def __init__(self, reason: str, source: Source | None = None) -> None:
        super().__init__(reason)
        self.source = source


def is_url(text: str) -> bool:
    """Whether a text starts as an address does that pip installs from."""
    scheme, colon, _ = text.partition(":")
    if not colon:
        return False
    scheme = scheme.lower()
    # git+git@host:owner/name has no scheme of its own
    return scheme in _SCHEMES or (scheme.startswith(_VCS) and len(scheme) > 4 and " " not in scheme)


def is_archive(name: str) -> bool:
    """Whether a file of this name is a wheel or a source archive."""
    return name.lower().endswith((".whl", *_SDISTS))


def is_path(text: str) -> bool:
    """Whether a text (with extras or a marker behind) is the path of a folder or of an archive."""
    path = text.partition(";")[0].partition("[")[0].strip()
    if not path or path.strip(_IN_PATHS + " :"):
        return False
    if path in (".", "..") or path.startswith(("./", "../", "/", "~/", ".\\", "..\\")) or path[1:3] == ":\\":
        return True
    return " " not in path and ("/" in path or is_archive(path))


def direct_url(url: str, name: str, marker: str | None, extra: Mapping[str, Any] = EMPTY) -> Distribution:
    """``name @ url``: the version comes from the file name of a wheel."""
    wheel = _named(url)
    version = wheel[1] if wheel is not None and wheel[0] == name else None
    return Distribution(name, version, source_of_url(url), marker, None, extra)


def read_url(url: str, marker: str | None = None, extra: Mapping[str, Any] = EMPTY) -> Distribution:
    """An address or a path that stands alone; :class:`Unnamed` if the distribution is unknown."""
    source = source_of_url(url)
    address, _, fragment = url.partition("#")
    egg = _fragment(fragment, "egg")
    if egg:
        return _from_egg(egg, url, source, marker, extra)
    last = _last_part(address)
    if last.lower().endswith(".whl"):
        name, version = wheel_of(last)
        return Distribution(name, version, source, marker, None, extra)
    found = _named(url)
    if found is not None:
        return Distribution(*found, source, marker, None, extra)
    repository = _repository(address, fragment)
    if repository is None:
        raise Unnamed(f"{without_credentials(url)[:200]} does not say which distribution it contains", source)
    return Distribution(repository, None, source, marker, None, extra)


def _from_egg(egg: str, url: str, source: Source, marker: str | None, extra: Mapping[str, Any]) -> Distribution:
    name = egg[: len(egg) - len(egg.lstrip(_NAME))].strip("._-")
    if not name:
        raise ValueError(f"'#egg={egg[:60]}' names no distribution")
    _, opened, inside = egg.partition("[")
    extras = sorted({normalized(each.strip()) for each in inside.partition("]")[0].split(",") if each.strip()})
    return direct_url(url, normalized(name), marker, {"extras": extras} if opened and extras else extra)


def source_of_url(url: str) -> Source:
    """The source behind an address or a path: ``vcs``, ``url`` (an archive) or ``directory``."""
    address, _, fragment = url.partition("#")
    subdirectory = _fragment(fragment, "subdirectory")
    details: dict[str, Any] = {}
    if address.lower().startswith(_VCS):
        details["url"], revision = _repository_and_revision(address.partition("+")[2])
        if revision:
            is_commit = _is_commit(revision)
            details["commit" if is_commit else "requested_revision"] = revision.lower() if is_commit else revision
        kind = "vcs"
    elif is_url(address):
        kind = "url"
        if address.lower().startswith("file:") and not is_archive(address):
            kind = "conda" if any(part in address for part in _CONDA_BUILDS) else "directory"
        details["url"] = without_credentials(address)
    else:
        kind = "url" if is_archive(address) else "directory"
        details["url" if kind == "url" else "path"] = address
    if subdirectory:
        details["subdirectory"] = subdirectory
    return Source(kind, details)


def _repository_and_revision(address: str) -> tuple[str, str]:
    """``https://host/owner/name.git@v1`` → the address without what stands behind the last ``@`` of its path."""
    address = without_credentials(address)  # a password may hold an "@" or a slash
    start = address.find("://")
    start = address.find("/", start + 3) if start >= 0 else address.find(":")
    at = address.rfind("@", start) if start >= 0 else -1
    repository, revision = (address, "") if at < 0 else (address[:at], address[at + 1 :])
    return repository, revision


def _is_commit(revision: str) -> bool:
    return len(revision) == 40 and not revision.lower().strip("0123456789abcdef")


def _repository(address: str, fragment: str) -> str | None:
    """The name of a repository, which is nearly always the project's; a part of it (``subdirectory``) is another one."""
    if _fragment(fragment, "subdirectory"):
        return None
    if address.lower().startswith(_VCS):
        last = _last_part(_repository_and_revision(address.partition("+")[2])[0])
        last = last.rpartition(":")[2].removesuffix(".git")
    else:
        before, archive, _ = address.partition("/archive/")
        last = _last_part(before) if archive and is_url(address) else ""
    if not last or last.strip(_NAME) or not (last[0].isalnum() and last[-1].isalnum()):
        return None
    return normalized(last)


def _last_part(address: str) -> str:
    """The decoded last part of an address's path."""
    last = address.partition("?")[0].rstrip("/").replace("\\", "/").rpartition("/")[2]
    if "%" not in last:
        return last
    from urllib.parse import unquote

    return unquote(last)


def _named(url: str) -> tuple[str, str] | None:
    """Normalised name and version from the file name of a wheel or source archive, if it has them."""
    last = _last_part(url.partition("#")[0])
    if last.lower().endswith(".whl"):
        try:
            return wheel_of(last)
        except Unnamed:
            return None
    for ending in _SDISTS:
        if last.lower().endswith(ending):
            name, dash, version = last[: -len(ending)].rpartition("-")
            return (normalized(name), version) if dash and _is_name(name) and _is_version(version) else None
    return None


def wheel_of(file: str) -> tuple[str, str]:
    """Normalised name and version of a wheel by its file name (PEP 427); :class:`Unnamed` where it has no such name."""
    parts = file[:-4].split("-")
    name, version = (*parts, "", "")[:2]
    build_fits = len(parts) != 6 or parts[2][:1].isdecimal()
    if len(parts) not in (5, 6) or not build_fits or not _is_name(name) or not _is_version(version):
        raise Unnamed(f"{file[:200]} is not the name of a wheel (PEP 427)", Source("url", {"url": file}))
    return normalized(name), version


def _is_name(text: str) -> bool:
    return bool(text) and not text.strip(_NAME) and text[0].isalnum() and text[-1].isalnum()


def _is_version(text: str) -> bool:
    try:
        key_of(text)
    except ValueError:
        return False
    return not text.strip(_NAME + "+!")


def _fragment(fragment: str, key: str) -> str | None:
    for part in fragment.split("&"):
        name, _, value = part.partition("=")
        if name == key:
            return value or None
    return None
