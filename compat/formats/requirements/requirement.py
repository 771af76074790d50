"""Parse one requirement as pip accepts it (PEP 508, an address or a path) into the distribution it requires.

The usual forms are parsed by hand; everything unusual goes through ``packaging``, which is slow to import.
``tests/property/test_requirements.py`` checks that both agree. Nothing is opened: the name of an address comes from
``#egg=``, from the file name of a wheel (PEP 427) or source archive, or from the name of the repository.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from compat.model import EMPTY, Distribution, Source, normalized
from compat.records import replace
from compat.redact import excerpt, without_credentials
from compat.versions import is_version, key_of

INDEX = Source("index")
_SCHEMES = ("http", "https", "ftp", "file", "git+", "hg+", "svn+", "bzr+")
_VCS = ("git+", "hg+", "svn+", "bzr+")
_SDISTS = (".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz", ".tar")
_CONDA_BUILDS = ("/croot/", "/feedstock_root/", "/conda-bld/")
"""Folders in which conda packages are built; ``pip freeze`` reports them as the addresses of conda's packages."""
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_IN_PATHS = _NAME + "/\\~+@%${}=,()"


class Unnamed(ValueError):
    """An address or a path whose package name is unknown; ``source`` is its source."""

    def __init__(self, reason: str, source: Source | None = None) -> None:
        super().__init__(reason)
        self.source = source


def is_url(text: str) -> bool:
    """Whether a text starts like an address that pip installs from."""
    scheme, colon, _ = text.partition(":")
    if not colon:
        return False
    scheme = scheme.lower()
    # git+git@host:owner/name has no scheme
    return scheme in _SCHEMES or (scheme.startswith(_VCS) and len(scheme) > 4 and " " not in scheme)


def is_archive(name: str) -> bool:
    """Whether a file of this name is a wheel or a source archive."""
    return name.lower().endswith((".whl", *_SDISTS))


def is_path(text: str) -> bool:
    """Whether a text is the path of a folder or an archive, perhaps with extras or a marker."""
    path = text.partition(";")[0].partition("[")[0].strip()
    if not path or path.strip(_IN_PATHS + " :"):
        return False
    if path in (".", "..") or path.startswith(("./", "../", "/", "~/", ".\\", "..\\")) or path[1:3] == ":\\":
        return True
    return " " not in path and ("/" in path or is_archive(path))


def direct_url(url: str, name: str, marker: str | None, extra: Mapping[str, object] = EMPTY) -> Distribution:
    """Parse ``name @ url``; the version comes from the file name of a wheel."""
    wheel = _named(url)
    version = wheel[1] if wheel is not None and wheel[0] == name else None
    return Distribution(name, version, source_of_url(url), marker, None, extra)


def read_url(url: str, marker: str | None = None, extra: Mapping[str, object] = EMPTY) -> Distribution:
    """Parse an address or a path without a name; raises :class:`Unnamed` if the distribution is unknown."""
    source = source_of_url(url)
    address, _, fragment = url.partition("#")
    if egg := _fragment(fragment, "egg"):
        name = _leading_name(egg).strip("._-")
        if not name:
            raise ValueError(f"'#egg={excerpt(egg, 60)}' does not name a package")
        names = egg.partition("[")[2].partition("]")[0].split(",")
        own = _extras({normalized(each.strip()) for each in names if each.strip()})
        return direct_url(url, normalized(name), marker, own or extra)
    last = _last_part(address)
    found = wheel_of(last) if last.lower().endswith(".whl") else _named(url)
    if found is not None:
        return Distribution(*found, source, marker, None, extra)
    repository = _repository(address, fragment)
    if repository is None:
        raise Unnamed(f"{excerpt(without_credentials(url), 200)} does not say which package it contains", source)
    return Distribution(repository, None, source, marker, None, extra)


def source_of_url(url: str) -> Source:
    """Return the source of an address or a path: ``vcs``, ``url`` (an archive) or ``directory``."""
    address, _, fragment = url.partition("#")
    details: dict[str, object] = {}
    if address.lower().startswith(_VCS):
        details["url"], revision = _repository_and_revision(address.partition("+")[2])
        if is_commit(revision):
            details["commit"] = revision.lower()
        elif revision:
            details["requested_revision"] = revision
        kind = "vcs"
    elif is_url(address):
        kind = "url"
        if address.lower().startswith("file:") and not is_archive(address):
            kind = "conda" if any(part in address for part in _CONDA_BUILDS) else "directory"
        details["url"] = without_credentials(address)
    else:
        kind = "url" if is_archive(address) else "directory"
        details["url" if kind == "url" else "path"] = address
    if subdirectory := _fragment(fragment, "subdirectory"):
        details["subdirectory"] = subdirectory
    return Source(kind, details)


def _repository_and_revision(address: str) -> tuple[str, str]:
    """Split ``https://host/owner/name.git@v1`` into the address and the revision after the last ``@`` of its path."""
    address = without_credentials(address)  # a password may contain "@" or "/"
    start = address.find("://")
    start = address.find("/", start + 3) if start >= 0 else address.find(":")
    at = address.rfind("@", start) if start >= 0 else -1
    return (address, "") if at < 0 else (address[:at], address[at + 1 :])


def is_commit(revision: str) -> bool:
    """Whether a revision is a full commit hash."""
    return len(revision) == 40 and not revision.lower().strip("0123456789abcdef")


def _repository(address: str, fragment: str) -> str | None:
    """Return the name of a repository, which is nearly always the project's; a ``subdirectory`` is another project."""
    if _fragment(fragment, "subdirectory"):
        return None
    if address.lower().startswith(_VCS):
        last = _last_part(_repository_and_revision(address.partition("+")[2])[0])
        last = last.rpartition(":")[2].removesuffix(".git")
    else:
        before, archive, _ = address.partition("/archive/")
        last = _last_part(before) if archive and is_url(address) else ""
    return normalized(last) if _is_name(last) else None


def _last_part(address: str) -> str:
    """Return the decoded last segment of an address's path."""
    last = address.partition("?")[0].rstrip("/").replace("\\", "/").rpartition("/")[2]
    if "%" not in last:
        return last
    from urllib.parse import unquote

    return unquote(last)


def _named(url: str) -> tuple[str, str] | None:
    """Return normalised name and version from the file name of a wheel or source archive, if it has them."""
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
    """Return normalised name and version from a wheel's file name (PEP 427); :class:`Unnamed` if the name is invalid."""
    parts = file[:-4].split("-")
    name, version = (*parts, "", "")[:2]
    build_fits = len(parts) != 6 or parts[2][:1].isdecimal()
    if len(parts) not in (5, 6) or not build_fits or not _is_name(name) or not _is_version(version):
        raise Unnamed(f"{excerpt(file, 200)} is not the name of a wheel (PEP 427)", Source("url", {"url": file}))
    return normalized(name), version


def _is_name(text: str) -> bool:
    return bool(text) and not text.strip(_NAME) and text[0].isalnum() and text[-1].isalnum()


def _leading_name(text: str) -> str:
    return text[: len(text) - len(text.lstrip(_NAME))]


def _is_version(text: str) -> bool:
    return is_version(text) and not text.strip(_NAME + "+!")


def _fragment(fragment: str, key: str) -> str | None:
    pairs = (part.partition("=") for part in fragment.split("&"))
    return next((value or None for name, _, value in pairs if name == key), None)


# --- Parsing one requirement.


_BLANK = " \t\r\n\f\v"
_NIGHTLY = Source("nightly")
_LIMIT = 1 << 16
"""Characters; longer than any real requirement."""


def names_to_build(value: str) -> set[str]:
    """Return the normalised names of ``--no-binary a,B``; ``:all:`` means every package."""
    return {normalized(name.strip()) for name in value.split(",")}


def mark_source_build(found: Distribution, names: Collection[str]) -> Distribution:
    """Mark a release from an index as compiled from source if it is among the ``names`` an installer compiles."""
    told = found.version is not None and (found.name in names or ":all:" in names)
    if not told or found.source is None or found.source.kind != "index":
        return found
    return replace(found, source=Source("index", {**found.source.details, "build": True}))


def parse_requirement(text: str) -> Distribution:
    """Parse a requirement: ``version`` is set if it is pinned, else ``specifier``, or neither.

    Raises ``ValueError`` with a short reason for what pip would reject, and its subclass :class:`Unnamed` if the package
    name of an address or a path is unknown (``.``, ``./project``, a wheel whose name violates PEP 427).
    """
    text = text.strip(_BLANK)
    if len(text) > _LIMIT:
        raise ValueError("it is too long for a requirement")
    found = _usual_form(text)
    if found is not None:
        return found
    if is_url(text) or is_path(text):
        return _unnamed_form(text)
    return _by_packaging(text)


def parse_editable(text: str) -> Distribution:
    """Parse the operand of ``-e``, a repository or a folder; errors as in :func:`parse_requirement`."""
    found: Distribution | None = None
    source: Source | None = Source("directory", {"path": text.strip(_BLANK)})
    try:
        asked = parse_requirement(text)
        if asked.source is not INDEX or asked.version or asked.specifier:  # a bare word is a folder name here
            found, source = asked, asked.source
    except Unnamed as problem:
        source = problem.source
    except ValueError:
        if is_url(text) or len(text) > _LIMIT:
            raise
    if source is None or source.kind not in ("vcs", "directory"):
        raise ValueError(f"'{_clipped(text)}' is neither a directory nor a repository")
    source = Source(source.kind, {**source.details, "editable": True})
    if found is None:
        raise Unnamed(f"{_clipped(text)} does not say which package it contains", source)
    return replace(found, source=source)


def name_at_start(text: str) -> str | None:
    """Return the normalised name at the start of a text such as ``torch==${TORCH}``, or ``None``."""
    name = _leading_name(text)
    return normalized(name) if _is_name(name) else None


def _usual_form(text: str) -> Distribution | None:
    """Parse a requirement in one of the usual forms; ``None`` for any other text."""
    name = _leading_name(text)
    if not _is_name(name) or is_archive(name):
        return None
    rest = text[len(name) :].lstrip(_BLANK)
    extra = EMPTY
    if rest[:1] == "[":
        inside, closed, rest = rest[1:].partition("]")
        listed, rest = _listed_extras(inside), rest.lstrip(_BLANK)
        if not closed or listed is None:
            return None
        extra = listed
    if rest[:1] == "@":
        url, marker = _url_and_marker(rest[1:].strip(_BLANK))
        return direct_url(url, normalized(name), marker, extra)
    clauses, given, condition = rest.partition(";")
    asked = _clauses(clauses.strip(_BLANK))
    if asked is None:
        return None
    marker = canonical_marker(condition) if given else None
    version, specifier = asked
    return _distribution(name, version, specifier, marker, extra)


def _distribution(
    name: str, version: str | None, specifier: str | None, marker: str | None, extra: Mapping[str, object]
) -> Distribution:
    # a development version without a known source is taken for a nightly build
    source = _NIGHTLY if version is not None and ".dev" in version else INDEX
    return Distribution(normalized(name), version, source, marker, specifier, extra)


def _listed_extras(inside: str) -> Mapping[str, object] | None:
    """``"all, Dev"`` → ``{"extras": ["all", "dev"]}``; ``None`` if one is not a valid name."""
    names = [each.strip(_BLANK) for each in inside.split(",")] if inside.strip(_BLANK) else []
    return _extras(set(map(normalized, names))) if all(map(_is_name, names)) else None


def _extras(names: set[str]) -> Mapping[str, object]:
    return {"extras": sorted(names)} if names else EMPTY


def _clauses(text: str) -> tuple[str | None, str | None] | None:
    """Return version and specifier of clauses without parentheses; ``None`` if ``packaging`` has to parse them."""
    if not text:
        return None, None
    found = []
    for each in text.split(","):
        clause = each.strip(_BLANK)
        operator = clause[:2] if clause[1:2] == "=" else clause[:1]
        version = clause[len(operator) :].lstrip(_BLANK)
        if not _is_usual_clause(operator, version):
            return None
        found.append(operator + version)
    if len(found) == 1 and found[0].startswith("==") and not found[0].endswith("*"):
        return found[0][2:], None
    return None, ",".join(found)


def _is_usual_clause(operator: str, version: str) -> bool:
    """Whether a clause is certainly valid under PEP 440."""
    if operator not in ("==", "!=", ">=", "<=", "~=", "<", ">"):
        return False
    exact = operator in ("==", "!=")
    if exact and version.endswith(".*"):
        return all(part.isascii() and part.isdecimal() for part in version[:-2].split("."))
    if operator == "~=" and not version.rpartition(".")[0].replace(".", "").isdecimal():
        return False
    if not version.isascii() or not version.replace(".", "").replace("+", "" if exact else "+").isalnum():
        return False
    return is_version(version) and (operator != "~=" or version.rpartition(".")[2].isdecimal())


def _url_and_marker(text: str) -> tuple[str, str | None]:
    """Split an address and the marker after it; pip accepts ``url; marker`` although PEP 508 requires a blank before ``;``."""
    mark = next((each for each in (" ;", "\t;", "; ") if each in text), "")
    url, _, condition = text.partition(mark) if mark else (text, "", "")
    url = url.strip(_BLANK)
    if not url or len(url.split(None, 1)) > 1:
        raise ValueError("expected a URL, followed only by a marker (after ' ; ')")
    return url, canonical_marker(condition) if mark else None


def _unnamed_form(text: str) -> Distribution:
    """Parse an address or a path without a name; extras may follow a path."""
    if is_url(text):
        url, marker = _url_and_marker(text)
        return read_url(url, marker)
    path, given, condition = text.partition(";")
    path, marker = path.strip(_BLANK), canonical_marker(condition) if given else None
    extra = EMPTY
    if path.endswith("]") and "[" in path:
        path, _, inside = path[:-1].rpartition("[")
        listed = _listed_extras(inside)
        if listed is None:
            raise ValueError(f"'{_clipped(inside)}' is not a list of extras")
        extra = listed
    return read_url(path, marker, extra)


_MARKERS: dict[str, str] = {}


def canonical_marker(text: str) -> str:
    """Return a marker (PEP 508) as ``packaging`` writes it; ``ValueError`` if it is invalid."""
    found = _MARKERS.get(text)
    if found is None:
        if len(text) > _LIMIT:
            raise ValueError("it is too long for a marker")
        from packaging.markers import InvalidMarker, Marker

        try:
            found = str(Marker(text))
        except (InvalidMarker, RecursionError, ValueError):
            raise ValueError(f"'{_clipped(text.strip(_BLANK))}' is not a marker (PEP 508)") from None
        if len(_MARKERS) < 4096 and len(text) < 1024:
            _MARKERS[text] = found
    return found


def _by_packaging(text: str) -> Distribution:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        found = Requirement(text)
        marker = None if found.marker is None else str(found.marker)
    except (InvalidRequirement, RecursionError, ValueError):
        is_table = text.split()[:2] == ["Package", "Version"]  # its head, as pip and uv print it
        hint = "; to check the output of 'pip list', pass the file with --pasted" if is_table else ""
        raise ValueError(f"'{_clipped(text)}' is not a requirement (PEP 508){hint}") from None
    extra = _extras(set(map(normalized, found.extras)))
    if found.url is not None:
        return direct_url(found.url, normalized(found.name), marker, extra)
    clauses = list(found.specifier)
    if len(clauses) == 1 and clauses[0].operator in ("==", "===") and not clauses[0].version.endswith(".*"):
        version = clauses[0].version
        key_of(version)  # "===" accepts what is no version
        return _distribution(found.name, version, None, marker, extra)
    return _distribution(found.name, None, str(found.specifier) or None, marker, extra)


def _clipped(text: str) -> str:
    return text if len(text) <= 60 else f"{excerpt(text, 57)}…"
