"""Packages as conda names their files (``pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.conda``) and where they come from."""

from __future__ import annotations

from compat.environment import EMPTY, Distribution, Source
from compat.read.files.conda.conda_names import distribution_name
from compat.read.files.requirements.direct_url import is_archive, is_url, source_of_url
from compat.read.machine.metadata import without_credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ENDINGS = (".conda", ".tar.bz2")


def split_artefact(location: str) -> tuple[str, str, str] | None:
    """Name, version and build in the address or path of a conda package; ``None`` where it is none."""
    file = location.partition("#")[0].partition("?")[0].replace("\\", "/").rpartition("/")[2]
    for ending in _ENDINGS:
        if file.endswith(ending):
            parts = file[: -len(ending)].rsplit("-", 2)
            return (parts[0], parts[1], parts[2]) if len(parts) == 3 and all(parts) else None
    return None


def cuda_of(build: str) -> str | None:
    """The CUDA release in a build string (``"12.1"``), ``"cpu"`` for a build without, ``None`` where it does not tell."""
    tokens = build.split("_")
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if token.startswith("cu"):
            release = token.removeprefix("cuda").removeprefix("cu") or following
            found = _release(release)
            if found is not None:
                return found
    return "cpu" if "cpu" in tokens[:-1] else None  # behind a hash it tells something else (pyarrow)


def _release(text: str) -> str | None:
    """``12.1`` and ``121py312h…`` → ``12.1``; nothing else is sure."""
    major, dot, minor = text.partition(".")
    if dot:
        return text if text.isascii() and major.isdigit() and minor.isdigit() else None
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    return f"{digits[:2]}.{digits[2]}" if len(digits) == 3 and digits[0] == "1" else None


def conda_distribution(
    name: str, version: str | None, build: str | None, details: dict[str, Any], specifier: str | None = None
) -> Distribution:
    """The distribution in a conda package; ``details`` are what is known of its source besides name and build."""
    known: dict[str, Any] = {"name": name, **{key: value for key, value in details.items() if value is not None}}
    if isinstance(known.get("url"), str):
        known["url"] = without_credentials(known["url"])
    if build:
        known["build"] = build
    cuda = cuda_of(build) if build else None
    extra = {"cuda": cuda} if cuda else EMPTY
    return Distribution(distribution_name(name), version, Source("conda", known), None, specifier, extra)


def pip_source(location: str, details: dict[str, Any], *, direct: bool = False, editable: bool = False) -> Source:
    """Where pip gets a locked distribution from: an archive of an index, unless it is asked for by its address."""
    if "+" in location.partition(":")[0]:
        source = _repository(location)
    elif not is_url(location) and not is_archive(location):
        source = Source("directory", {"path": location})
    elif direct or not is_url(location):
        source = source_of_url(location)
    else:
        source = Source("index", {"file": without_credentials(location)})
    more = {**details, **({"editable": True} if editable else {})}
    return Source(source.kind, {**source.details, **more})


def _repository(location: str) -> Source:
    """``git+https://…@revision``, or with ``?rev=…&subdirectory=…#commit``, which pixi writes."""
    address, mark, query = location.partition("#")[0].partition("?")
    if not mark and "#" not in location:
        return source_of_url(location)
    source = source_of_url(address)
    details = dict(source.details)
    commit = location.partition("#")[2]
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if key == "subdirectory" and value:
            details[key] = value
        elif key in ("rev", "tag", "branch") and value and not commit:
            details["requested_revision"] = value
    if commit and "=" not in commit:
        details["commit"] = commit
        details.pop("requested_revision", None)
    elif "subdirectory=" in commit:
        details["subdirectory"] = commit.partition("subdirectory=")[2].partition("&")[0]
    return Source(source.kind, details)
