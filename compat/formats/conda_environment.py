"""conda's ``environment.yml`` and ``conda list``: packages, the ``pip:`` section, the Python requirement, and their edits.

An exported environment has version and build of every package. Others have ranges: ``=1.2`` is interpreted by
``compat.formats.conda_spec``. Line selectors (``# [linux]``) are comments that conda-lock interprets. Text files are those of
``conda list --export`` (``name=version=build``) and ``--explicit``, or specifications alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from compat.errors import InputError
from compat.files import decode_utf8
from compat.formats.conda_lock import lock_commands, platform_marker, selector_marker
from compat.formats.conda_spec import MatchSpec, channel_of, parse_match_spec, rewritten_spec, stated_distribution
from compat.formats.edit.changes import REMOVE, Change, Statement, decided, index_replacement, requirement_for
from compat.formats.edit.dispatch import edits_for, of_included, verified
from compat.formats.edit.files import Edit, Replacement, encoding_of, line_around, line_end, replaced
from compat.formats.edit.installer import Installer
from compat.formats.jobs import check_size
from compat.formats.listing import ROOT, Edge, Entry, Listing, check_entries
from compat.formats.registry import Commands, Format
from compat.formats.requirements.file import read_requirements
from compat.formats.requirements.lines import Requirement, statements_of
from compat.formats.requirements.requirement import INDEX
from compat.formats.specifiers import EXACT
from compat.model import Distribution, Environment, normalized
from compat.records import record, replace
from compat.redact import without_secrets
from compat.syntax.yaml import Document, Value
from compat.versions import is_version, ranges_of

_LONGEST = 1000
"""Characters; longer lines are not searched for a selector."""


class CondaEnvironment(Format):
    """environment.yml; :class:`InputError` for invalid YAML, a wrong type, or an invalid conda or pip package.

    ``complete`` is set for an export, where every package has its build and every pip line is a pin.
    """

    kind = "environment.yml"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return (_listing(_Environment(path, text)),)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        file = _Environment(path, decode_utf8(path, content))
        included = of_included((_listing(file),), changes)
        own = verified((_Editor(file, included).edit(content, changes),), self, changes)
        return (*own, *(each for place, named in included.items() if named for each in edits_for(place, named, depth + 1)))

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        update = f"conda env update --file {pip.quoted(path)}"
        if not any(change.is_built and not _is_of_conda(change) for change in changes):
            return Commands(lock_commands(path, changes, pip), (update,))
        # conda passes all lines to one pip, which builds them in isolation, where there is no torch
        torch = [each for each in changes if each.name == "torch" and each.after is not None and not _is_of_conda(each)]
        name = _NAME.search(content)
        inside = f"conda run --name {pip.quoted(name[1].decode())} " if name is not None else "conda run "
        first = tuple(f"{inside}python -m pip install {pip.requirement(each)}{_index_of(each)}" for each in torch)
        return Commands(lock_commands(path, changes, pip), (*first, f"PIP_NO_BUILD_ISOLATION=0 {update}"))


def _is_left_to_pip(change: Change) -> bool:
    """Whether a wheel takes the place of a package of conda."""
    before, after = change.before_source, change.source
    return before is not None and before.kind == "conda" and after is not None and after.kind == "index"


_NAME = re.compile(rb"^name:[ \t]*[\"']?([\w.-]+)", re.MULTILINE)


def _is_of_conda(change: Change) -> bool:
    source = change.source or change.before_source
    return source is not None and source.kind == "conda"


def _index_of(change: Change) -> str:
    return f" --extra-index-url {change.index_url}" if change.index_url is not None else ""


@record(frozen=True)
class _Package:
    """A conda package, and the item of the list that names it."""

    item: Value
    spec: MatchSpec


class _Environment:
    """The file: its conda packages, and the lines that it passes to pip."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.document = document = Document(text, path)
        self.root = document.table(document.root, "the file")
        if "dependencies" not in self.root:
            raise InputError("expected the 'dependencies' of a conda environment", path, 1)
        self.packages: list[_Package] = []
        self.pip: list[Value] = []
        for item in document.items(self.root["dependencies"], "dependencies"):
            if item.is_table:
                keys = document.table(item, "dependencies")
                if keys.keys() != {"pip"}:
                    raise document.wrong("expected a conda package or 'pip:' and its list", item)
                self.pip += document.items(keys["pip"], "dependencies.pip")
                continue
            if document.needed_text(item, "a conda package", item).startswith("-"):
                raise document.wrong(
                    "expected a conda package, not a pip option (pip options go in the list under 'pip:')", item
                )
            try:
                self.packages.append(_Package(item, parse_match_spec(document.needed_text(item, "a conda package", item))))
            except ValueError as problem:
                raise document.wrong(f"dependencies: {problem}", item) from None
        # conda passes the section to pip as a requirements file next to the environment file
        lines: list[str] = []
        self.pip_numbers: list[int] = []
        self._starts: list[int] = []
        for item in self.pip:
            self._starts.append(sum(map(len, lines)) + len(lines))
            lines += document.needed_text(item, "a pip requirement", item).splitlines()
            self.pip_numbers += [item.line] * (len(lines) - len(self.pip_numbers))
        self.pip_text = "\n".join(lines)

    def pip_item(self, offset: int) -> tuple[Value, int]:
        """Return the item at an offset of ``pip_text``, and the offset at which it starts."""
        at = bisect_right(self._starts, offset) - 1
        return self.pip[at], self._starts[at]


# --- Reading.


def _listing(file: _Environment) -> Listing:
    entries: list[Entry] = []
    selectors: dict[int, str] = {}
    """Entry → its platforms."""
    python = requires_python = None
    lines = file.text.splitlines()
    channels = [str(item.content) for item in file.document.items(file.root.get("channels"), "channels") if not item.is_table]
    for number, package in enumerate(file.packages):
        spec, line = package.spec, package.item.line
        marker = _selector(lines[line - 1] if line <= len(lines) else "")
        if marker is not None:
            selectors[number] = marker
        elif spec.name == "python":
            python, requires_python = _interpreter(spec)
        details = {"channel": channel_of(spec.name, spec.channel, channels), "spec": spec.unclear}
        entries.append(Entry(stated_distribution(spec, details, spec.specifier), line))
    pip = read_requirements(file.path, file.pip_text, file.pip_numbers)[0]
    pinned = all(package.spec.exact for package in file.packages) and not pip.unread
    for entry in pip.entries:
        found = entry.distribution
        pinned = pinned and (found.version is not None or (found.source is not None and found.source.kind == "directory"))
    entries += pip.entries
    edges = (Edge(ROOT, number, selectors.get(number, each.distribution.marker)) for number, each in enumerate(entries))
    return Listing(
        file.path, "environment.yml", tuple(entries), edges=tuple(edges) if selectors else None,
        requires_python=requires_python, environments=_platforms(file.document, file.root.get("platforms")),
        complete=pinned and bool(entries), notes=pip.notes, unread=pip.unread,
        context=Environment(python=python, variables=_variables(file.document, file.root.get("variables"))),
    )  # fmt: skip


def _selector(line: str) -> str | None:
    """Return the marker of a line's selector comment."""
    _, found, comment = line.partition(" #") if len(line) <= _LONGEST else ("", "", "")  # many packages on one line
    return selector_marker(comment) if found and "[" in comment else None


def _interpreter(spec: MatchSpec) -> tuple[str | None, str | None]:
    """Return the version of Python if it is exact, and the specifier set of the accepted ones."""
    version, specifier = spec.version, spec.specifier
    exact = None
    if version is not None and is_version(version) and version.replace(".", "").isdecimal():
        if version.count(".") >= 2:
            exact = version
        else:
            specifier = f"=={version}.*"
    if specifier is not None:
        try:
            ranges_of(specifier)
        except ValueError:
            specifier = None
    return exact, specifier


def _platforms(document: Document, value: Value | None) -> tuple[str, ...]:
    """Return the ``platforms`` that conda-lock reads, as markers."""
    found = []
    for item in document.items(value, "platforms"):
        try:
            marker = platform_marker(document.needed_text(item, "a platform", item))
        except ValueError as problem:
            raise document.wrong(f"platforms: {problem}", item) from None
        if marker is not None:
            found.append(marker)
    return tuple(found)


def _variables(document: Document, value: Value | None) -> dict[str, str] | None:
    if value is None or value.is_null:
        return None
    table = document.table(value, "variables")
    return without_secrets({name: document.text(each, f"variables.{name}") or "" for name, each in table.items()})


# --- Editing: conda packages, and the requirements in the ``pip:`` section.


@record(frozen=True)
class _Place:
    """An item of a list; for an item of the ``pip:`` section, ``requirement`` is at ``offset`` of its text."""

    item: Value
    text: str
    requirement: Requirement | None = None
    offset: int = 0


class _Editor:
    """The statements of a file, and the changes collected for it."""

    def __init__(self, file: _Environment, included: Mapping[str, Sequence[Change]]) -> None:
        """``included`` are the changes to files that the ``pip:`` section includes."""
        self.file = file
        self._elsewhere = [change for changes in included.values() for change in changes]
        self.replacements: list[Replacement] = []
        self.added: list[str] = []
        """Lines to add to the ``pip:`` section."""
        self.statements: list[Statement[_Place]] = []
        self._indexes: list[tuple[str, tuple[int, int]]] = []
        for package in file.packages:
            item, spec = package.item, package.spec
            found = stated_distribution(spec, {}, spec.specifier)
            place = _Place(item, str(item.content))
            self.statements.append(Statement(found, file.path, item.line, place=place))
        for each in statements_of(file.path, file.pip_text, file.pip_numbers):
            item, start = file.pip_item(each.line.start)
            if isinstance(each, Requirement):
                if each.found is not None:
                    place = _Place(item, str(item.content), each, start)
                    self.statements.append(Statement(each.found, file.path, item.line, place=place))
            elif each.index is not None and (span := file.document.span(item)) is not None:
                first, last = each.line.span(*each.index)
                self._indexes.append((each.value, (first - start + span[0], last - start + span[0])))

    def edit(self, content: bytes, changes: Sequence[Change]) -> Edit:
        """Return the edit of the file.

        :class:`InputError` for what conda cannot install (a commit, a vendor's index), and for items that share a line.
        """
        for change in changes:
            wanted = decided(self.statements, change, exact=True)
            if _is_left_to_pip(change):
                for statement, _ in wanted:
                    self._change(statement.place, change, REMOVE if statement.place.requirement is None else EXACT)
                wanted = [each for each in wanted if each[0].place.requirement is not None]
            else:
                for statement, how in wanted:
                    self._change(statement.place, change, how)
            named = wanted or change in self._elsewhere
            if not named and change.after is not None and (change.direct or not change.implied):
                self.added.append(requirement_for(change) + (f"  # {change.reason}" if change.reason else ""))
            url = change.index_url or change.default_index
            if url is not None and (not wanted or any(s.place.requirement for s, _ in wanted)):
                self._use_index(url, add=change.index_url is not None)
        if self.added:
            self.replacements.append(self._addition())
        file = self.file
        after = encoding_of(file.path, content, file.text).encode(replaced(file.text, self.replacements))
        return Edit(file.path, content, after)

    def _change(self, place: _Place, change: Change, how: str) -> None:
        """Record the change of an item; :class:`InputError` for one that is written with escapes or variables."""
        file, requirement = self.file, place.requirement
        line = place.item.line
        span = file.document.span(place.item)
        if span is None or "$" in place.text:
            raise InputError(f"cannot edit {change.name} as it is written; change it by hand", file.path, line)
        start, end = span
        if how == REMOVE:
            first, last = line_around(file.text, start)
            alone = file.text[first:start].strip(" \t'\"") == "-"
            if not alone or (requirement is not None and len(file.pip) == 1):
                raise InputError(f"remove {change.name} from its list by hand", file.path, line)
            self.replacements.append((first, last, ""))
            return
        try:
            if requirement is None:
                new = rewritten_spec(place.text, change, how)
            else:
                from compat.formats.requirements.edit import changed_requirement

                first, last, text = changed_requirement(requirement, change, how)
                first, last = requirement.line.span(first, last)
                new = place.text[: first - place.offset] + text + place.text[last - place.offset :]
        except InputError as problem:
            raise InputError(problem.message, file.path, line) from None
        if new == place.text:
            return
        # quote what YAML would otherwise misread
        flow = file.text[line_around(file.text, start)[0] : start].lstrip()[:1] != "-"
        special = new[:1] in "&*!|>%@`{[" or ": " in new or " #" in new or (flow and any(sign in new for sign in ",[]{}"))
        in_quotes = file.text[start - 1] in "'\""
        self.replacements.append((start, end, f'"{new}"' if special and not in_quotes else new))

    def _use_index(self, url: str, *, add: bool) -> None:
        """Set an index in the pip section: replace the one named there, or add it."""
        found = index_replacement(url, self._indexes, ())
        if found is None or any(url in text for _, _, text in self.replacements) or f"--extra-index-url {url}" in self.added:
            return
        if found[0] is not None:
            self.replacements.append((*found[0], url))
        elif add:
            self.added.insert(0, f"--extra-index-url {url}")

    def _addition(self) -> Replacement:
        """Return the insertion of the added lines at the end of the pip section, which is added if it is missing."""
        file = self.file
        items = file.pip or [package.item for package in file.packages]
        spans = [file.document.span(item) for item in items]
        last = spans[-1] if spans else None
        problem = "expected one dependency per line, so that others can be added"
        if last is None or (file.pip and None in spans):
            raise InputError(problem, file.path)
        start, end = line_around(file.text, last[0])
        indent = file.text[start : last[0]].rstrip(" \t'\"")
        if indent.strip() != "-":
            raise InputError(problem, file.path, items[-1].line)
        newline = line_end(file.text)
        blank = indent[: indent.index("-")]
        if file.pip:
            text = newline.join(f"{blank}- {each}" for each in self.added)
        else:
            text = newline.join((f"{blank}- pip:", *(f"{blank}  - {each}" for each in self.added)))
        closed = file.text[start:end].endswith(("\n", "\r"))
        return (end, end, text + newline) if closed else (end, end, newline + text)


_PLATFORM = re.compile(r"# platform: (linux|osx|win)-(\S+)")
_SYSTEMS = {"linux": "linux", "osx": "darwin", "win": "windows"}
_MACHINES = {"64": "x86_64", "arm64": "arm64", "aarch64": "aarch64", "ppc64le": "ppc64le", "32": "x86"}


class CondaList(Format):
    """A list of conda packages, as ``conda create --file`` takes it; :class:`InputError` for an invalid line.

    ``complete`` is set for an export, where every package has its build.
    """

    kind = "conda list"
    by_hand = "install the releases with conda, and export the environment again"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        check_size(path, text, "a list of conda packages")
        entries: list[Entry] = []
        python = None
        exact = True
        for number, whole in enumerate(text.splitlines(), 1):
            line = whole.removeprefix("\ufeff").strip()
            if not line or line.startswith(("#", "@")):
                continue
            check_entries(len(entries) + 1, path, number)
            found, is_exact = _package(path, number, line)
            exact = exact and is_exact
            entries.append(Entry(found, number))
            if found.name == "python":
                python = found.version
        platform = _PLATFORM.search(text)
        context = Environment(
            python=python if python is not None and python.count(".") == 2 and is_version(python) else None,
            os=None if platform is None else _SYSTEMS[platform[1]],
            machine=None if platform is None else _MACHINES.get(platform[2]),
        )
        short = python is not None and context.python is None
        return (
            Listing(
                path, self.kind, tuple(entries), complete=exact and bool(entries), context=context,
                requires_python=f"=={python}.*" if short else None,
            ),
        )  # fmt: skip


def _package(path: str, number: int, line: str) -> tuple[Distribution, bool]:
    """Return the package of a line, and whether the line names one build of it."""
    name, _, rest = line.partition("=")
    version, _, build = rest.partition("=")
    if build.startswith("pypi"):  # exported from pip: ``accelerate=0.20.3=pypi_0``
        return Distribution(normalized(name), version, INDEX), True
    try:
        spec = parse_match_spec(line.partition("#")[0])
    except ValueError as problem:
        raise InputError(f"expected a conda package: {problem}", path, number) from None
    details = {"channel": channel_of(spec.name, spec.channel, ()), "spec": spec.unclear}
    found = stated_distribution(spec, details, spec.specifier)
    if found.version is None and version and build and version[:1].isdecimal():
        found = replace(found, version=version, specifier=None)
    return found, spec.exact
