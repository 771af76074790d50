"""The words of ``pip install`` and similar commands: options, and requirements as written in a shell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from compat.formats.requirements.requirement import INDEX, Unnamed, is_archive, is_path, is_url, parse_requirement
from compat.model import EMPTY, Distribution, Source, normalized
from compat.records import record, replace
from compat.redact import without_credentials

_PYTORCH_INDEX = "download.pytorch.org/whl"
_ON_PYTORCH_INDEX = frozenset((
    "torch", "torchvision", "torchaudio", "torchtext", "torchdata", "torchao", "torchrec", "fbgemm-gpu", "xformers",
    "torchtune", "torch-tensorrt", "pytorch-triton",
))  # fmt: skip
"""Distributions of which that index has builds for one CUDA release each."""

COMPILED_AT_INSTALL = ("flash-attn", "mamba-ssm", "causal-conv1d")
"""Distributions without wheels on the index, whose setup.py imports torch and fails without a CUDA compiler: all releases
of 2026 and before."""


@record(frozen=True)
class LockInstall:
    """A lock file or an environment file that a command installs, and the selected part of it.

    ``default_groups``: the default groups are installed too.
    ``left_out`` are locked distributions that are not installed.
    """

    file: str
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    all_extras: bool = False
    all_groups: bool = False
    default_groups: bool = True
    environment: str | None = None
    left_out: tuple[str, ...] = ()


@record(frozen=True)
class Operand:
    """A word of a command that is no option, or the value of an option; ``at`` is the index of the word that contains it.

    ``option`` is the name of the option without dashes, "" for an operand.
    """

    text: str
    at: int
    option: str = ""

    @property
    def is_editable(self) -> bool:
        return self.option in EDITABLE


IMAGE_CONSTRAINT = "/etc/pip/constraint.txt"
"""The constraints of pip in NVIDIA's images: the releases that they contain."""
AT_RUN_TIME = "only known at run time"
EDITABLE = ("e", "editable", "with-editable")


@record(frozen=True)
class Install:
    """What one command installs and removes.

    ``operands`` state the ``requirements``, in the same order; ``None`` for one of which only the name was read. ``files``,
    ``constraints`` and ``overrides`` are the paths of requirements files, ``directories`` the projects installed from source
    ("." or ".[extra]"), ``locks`` the lock files. ``python`` is the requested version; ``upgrade``: installed distributions are
    replaced. ``scripts`` are those whose inline metadata is installed; ``runs``: the command then runs a program. ``unknown``
    says which words stand for distributions that are only known at run time; ``notes`` are remarks. ``index_url`` replaces the
    default index, ``indexes`` are all places that are named.
    """

    requirements: tuple[Distribution, ...] = ()
    operands: tuple[Operand | None, ...] = ()
    files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    index_url: str | None = None
    indexes: tuple[str, ...] = ()
    no_deps: bool = False
    manager: str = "pip"
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    locks: tuple[LockInstall, ...] = ()
    python: str | None = None
    upgrade: bool = False
    scripts: tuple[str, ...] = ()
    runs: bool = False


def split_options(words: Sequence[str], valued: Collection[str], first: int = 0) -> tuple[list[Operand], list[Operand]]:
    """Split words into options (those in ``valued`` take a value, the others have "") and operands, in any order.

    ``first`` is the index of the first word in its command.
    """
    options: list[Operand] = []
    operands: list[Operand] = []
    at, end = 0, len(words)
    while at < end:
        word = words[at]
        at += 1
        if word == "--":
            operands += [Operand(text, first + number) for number, text in enumerate(words[at:], at)]
            break
        if not word.startswith("-") or word == "-":
            operands.append(Operand(word, first + at - 1))
            continue
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
        else:
            *flags, (name, equals, value) = _letters(word[1:], valued)
            options += [Operand("", first + at - 1, flag) for flag, _, _ in flags]
        if name in valued and not equals and at < end:
            value = words[at]
            at += 1
        options.append(Operand(value, first + at - 1, name))
    return options, operands


def _letters(letters: str, valued: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the options of ``-qUr file``, each with "=" and its value if that follows without a blank."""
    for at, letter in enumerate(letters):
        value = letters[at + 1 :]
        if letter in valued or not value:
            yield letter, value and "=", value.removeprefix("=")
            return
        if not letter.isalpha():
            break
        yield letter, "", ""
    yield letters, "", ""


def named(options: Sequence[Operand], *names: str) -> list[Operand]:
    """Return the occurrences of an option that have a value, by any of its names, in order."""
    return [each for each in options if each.option in names and each.text]


def values(options: Sequence[Operand], *names: str) -> list[str]:
    """Return the values of an option, by any of its names, in order."""
    return [each.text for each in named(options, *names)]


def has(options: Sequence[Operand], *names: str) -> bool:
    return any(each.option in names for each in options)


def is_unresolved(text: str) -> bool:
    """Whether part of the text is only known at run time: a variable, a substitution, a template."""
    return "$" in text or "`" in text or "{" in text


_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_.][\w.]*)(?::?[-=?+][^{}$`]*)?\}|([A-Za-z_]\w*))")
_PRINTS_FILE = re.compile(r"(?:\$\(|<\(|`)\s*(?:cat\s|<)\s*([\w./+-]*\w)\s*[)`]")


def is_given(text: str, computed: Collection[str] = ()) -> bool:
    """Whether what is unknown of a text is variables that whoever runs the commands sets, as nothing in the file does.

    So are wheels that a pattern names (``dist/*.whl``): they are built or copied before. ``computed`` are the variables that
    the file itself sets to something unknown.
    """
    names = {found[1] or found[2] for found in _VARIABLE.finditer(text)}
    rest = _VARIABLE.sub("", text)
    path = rest.partition(": ")[0].partition("[")[0]
    is_pattern = "*" in path and path.endswith((".whl", ".gz", "*"))
    return (bool(names) or is_pattern) and names.isdisjoint(computed) and not is_unresolved(rest)


def printed_file(text: str) -> str | None:
    """Return the file whose text ``$(cat FILE)``, ``$(<FILE)`` or ``<(cat FILE)`` is; ``None`` for any other text."""
    found = _PRINTS_FILE.fullmatch(text)
    return found[1] if found else None


def is_release(text: str, *counts: int) -> bool:
    """Whether a text is numbers with dots between them (``3.11``); ``counts`` are the possible counts of numbers."""
    parts = text.split(".")
    return len(parts) in counts and all(part.isascii() and part.isdecimal() for part in parts)


def leading_name(text: str) -> str | None:
    """Return the name at the start of a requirement if what follows shows that it ends there; not normalised."""
    end = 0
    while end < len(text) and text[end].isascii() and (text[end].isalnum() or text[end] in "-_."):
        end += 1
    name, behind = text[:end].rstrip("-."), text[end:].lstrip()
    if not name or not name[0].isalnum() or (behind and behind[0] not in "[=<>~!@;"):
        return None
    return name


def requirement(text: str, notes: list[str]) -> Distribution | None:
    """Parse an operand of ``pip install`` that is not a directory; ``None``, with a note, if its name is unknown."""
    try:
        return _whole(text.strip(), notes, notes)
    except ValueError:
        return _only_name(text.strip(), notes, notes)


def _whole(text: str, notes: list[str], unknown: list[str]) -> Distribution | None:
    try:
        return _unresolved(text, notes, unknown) if is_unresolved(text) else parse_requirement(text)
    except Unnamed as problem:
        notes.append(f"{problem}; skipped")
        return None


def _only_name(text: str, notes: list[str], unknown: list[str]) -> Distribution | None:
    name = leading_name(text)
    if name is None or is_url(text):
        unknown.append(f"{text}: {AT_RUN_TIME if '*' in text else 'not read, expected a requirement'}")
        return None
    notes.append(f"{text}: expected a requirement with a version, only the name was read")
    return Distribution(normalized(name), source=INDEX)


def operands_of(operands: Iterable[Operand]) -> Install:
    """Sort operands into requirements and directories."""
    requirements: list[Distribution] = []
    stated: list[Operand | None] = []
    directories: list[str] = []
    files: list[str] = []
    notes: list[str] = []
    unknown: list[str] = []
    for each in operands:
        text = each.text.strip()
        path = text.partition("[")[0]
        if not text:
            continue
        if (file := printed_file(text)) is not None:
            files.append(file)
            continue
        name, at_sign, address = path.partition("@")
        is_named = bool(at_sign) and "://" in address and not is_path(name)  # diffusers@git+https://…
        if not is_url(text) and not is_archive(path) and not is_named and (each.is_editable or is_path(path)):
            directories.append(text)
            continue
        operand: Operand | None = each
        try:
            found = _whole(text, notes, unknown)
        except ValueError:
            found, operand = _only_name(text, notes, unknown), None
        if found is not None:
            requirements.append(found)
            stated.append(operand)
    return Install(
        tuple(requirements), tuple(stated), tuple(files), directories=tuple(directories),
        notes=tuple(dict.fromkeys(notes)), unknown=tuple(dict.fromkeys(unknown)),
    )  # fmt: skip


def names_of(operands: Iterable[str]) -> tuple[str, ...]:
    """Return the names of uninstalled distributions."""
    return tuple(normalized(name) for word in operands if not is_unresolved(word) and (name := leading_name(word)))


def _unresolved(text: str, notes: list[str], unknown: list[str]) -> Distribution | None:
    """Return what is known of a requirement that contains variables."""
    head, at_sign, address = text.partition("@")
    if "://" not in text:
        name = leading_name(head if at_sign else text)
        if not name:
            unknown.append(f"{text}: {AT_RUN_TIME}")
            return None
        notes.append(f"{text}: its version is {AT_RUN_TIME}")
        return Distribution(normalized(name), source=INDEX)
    if at_sign and "://" in address and not is_unresolved(head):
        found = leading_name(head.strip())
        address = address.strip()
    else:
        found, address = None, text
    notes.append(f"{text}: its release is {AT_RUN_TIME}")
    file = address.partition("#")[0].rpartition("/")[2]
    if found is None and file.endswith(".whl"):
        found = file.partition("-")[0]
    if address.startswith("git+"):
        # git+https://…/trl.git@$COMMIT: the repository is known, the commit is not
        start = address.index("://") + 3
        path, _, fragment = address.partition("#")
        cut = path.find("@", path.rfind("/"))
        path = path[:cut] if cut > start else path
        if is_unresolved(path):
            return None
        kept = f"{path}#{fragment}" if fragment and not is_unresolved(fragment) else path
        return parse_requirement(f"{found} @ {kept}" if found else kept)
    if found is None or is_unresolved(found):
        return None
    return Distribution(normalized(found), source=Source("url", {"url": without_credentials(address)}))


def from_index(distribution: Distribution, url: str) -> Distribution:
    """Return a distribution from a named index: with its source, and the CUDA release of PyTorch's builds."""
    if distribution.source is not None and distribution.source.kind not in ("index", "nightly"):
        return distribution
    nightly = _PYTORCH_INDEX + "/nightly" in url
    build = build_of(url) if distribution.name in _ON_PYTORCH_INDEX else {}
    return replace(
        distribution,
        source=Source("nightly" if nightly else "index", {"url": url}),
        extra={**distribution.extra, **build},
    )


def build_of(url: str) -> dict[str, str]:
    """Return the build implied by an address on PyTorch's index: ``…/whl/cu124`` → ``{"cuda": "12.4"}``."""
    _, found, behind = url.partition(_PYTORCH_INDEX + "/")
    return backend_of(behind.removeprefix("nightly/").removeprefix("test/").partition("/")[0]) if found else {}


def backend_of(word: str) -> dict[str, str]:
    """``cu124`` → ``{"cuda": "12.4"}``, ``rocm6.2`` → ``{"rocm": "6.2"}``, ``cpu`` → ``{"cuda": "cpu"}``."""
    digits = word[2:] if word.startswith("cu") else ""
    if digits.isascii() and digits.isdecimal() and len(digits) in (2, 3):
        return {"cuda": f"{digits[:-1]}.{digits[-1]}"}
    release = word[4:] if word.startswith("rocm") else ""
    if release.replace(".", "").isdecimal() and release.isascii():
        return {"rocm": release}
    return {"cuda": "cpu"} if word == "cpu" else {}


@record(frozen=True)
class Command:
    """An install command: file and line for notes (``where``), its ``lines``, and its working directory.

    ``written`` are the files that earlier commands of the script wrote: their text, and the line that wrote it; ``appended``
    those of which that is only the end, ``made`` those of which the text is unknown. ``computed`` are the variables that the
    script sets to something unknown.
    """

    install: Install
    where: str
    lines: tuple[Line, ...] = ()
    directory: str | None = None
    written: Mapping[str, tuple[str, int]] = EMPTY
    made: Collection[str] = ()
    appended: Collection[str] = ()
    computed: Collection[str] = ()


Line: TypeAlias = tuple[int, str]
"""The number of a line in the file, and its text."""
