"""Requirements that cannot be resolved: no version satisfies all of them, the release that is pinned was never published, or
the only index does not have the distribution.

The first are lines of a file or command, or a line and a constraint. As for the second, ``pip install --index-url
https://download.pytorch.org/whl/cu118 torch transformers`` replaces the default index, where ``--extra-index-url`` adds one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from compat.checks.choices import Requested, is_union
from compat.checks.contexts import Contexts
from compat.checks.fix_commands import downgrade_to, upgrade_to
from compat.checks.selections import decisive_facts, names_other_index, shown_labels
from compat.checks.torch_build import INDEX
from compat.formats.installs.words import IMAGE_CONSTRAINT
from compat.formats.listing import Entry, Listing
from compat.formats.specifiers import disjoint
from compat.model import Distribution, Environment, Finding, Fix, Location
from compat.records import record, replace
from compat.tables.declared import open_declared
from compat.versions import is_final, is_version, key_of, ranges_of

_REFUSED = "pip fails with ResolutionImpossible, uv with unsatisfiable requirements; conda cannot solve the environment."
_EVIDENCE = "https://pip.pypa.io/en/stable/topics/dependency-resolution/"
_RESOLVED_TOGETHER = ("requirements", "pyproject", "setup.py", "setup.cfg", "script", "environment.yml")
"""Kinds of listings whose lines one installer resolves together; in others a later command replaces what an earlier one did."""
_MOST = 40
"""The maximum number of lines for one distribution that are compared with each other, and of reported ones."""


@record(frozen=True)
class Contradiction:
    """Requirements for one distribution that no version satisfies: the finding, and its lines, as entries of the listing.

    ``pairs`` are the lines that exclude each other where they apply together; empty if one of the two is not
    in the listing.
    """

    finding: Finding
    pairs: tuple[tuple[int, int], ...]


@record(frozen=True)
class _Stated:
    """What a file says about a distribution (``==4.51.0``), and where."""

    text: str
    file: str
    line: int | None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


def judge(listing: Listing, known: Environment, asked: Requested) -> tuple[Finding, ...]:
    """Return a finding for each distribution whose requirements cannot be resolved, or whose release does not exist."""
    return (*(each.finding for each in contradictions(listing, known, asked)), *unpublished(listing, known, asked))


def contradictions(listing: Listing, known: Environment, asked: Requested) -> tuple[Contradiction, ...]:
    """Return the distributions whose requirements cannot be resolved, in the order of the file."""
    lines: dict[str, list[int]] = {}
    for number, entry in enumerate(listing.entries):
        if entry.distribution.version or entry.distribution.specifier:
            lines.setdefault(entry.distribution.name, []).append(number)
    together = listing.kind in _RESOLVED_TOGETHER
    several = [numbers[:_MOST] for numbers in lines.values() if together and len(numbers) > 1]
    excluded = [number for number, entry in enumerate(listing.entries) if "excluded_by" in entry.distribution.extra]
    empty = [number for number, entry in enumerate(listing.entries) if _is_empty(entry.distribution.specifier)]
    if not several and not excluded and not empty:
        return ()
    contexts = Contexts(listing, known, asked)
    installed = contexts.installed()
    among = (found for numbers in several for found in _among(numbers, installed, contexts))
    by_other = (found for number in excluded for found in _by_other(number, installed[number], contexts))
    return (*among, *by_other, *(found for number in empty for found in _by_itself(number, installed[number], contexts)))


def _among(numbers: list[int], installed: list[int], contexts: Contexts) -> Iterator[Contradiction]:
    """Yield the conflicting lines of a distribution, with a finding about the pair that applies in the most contexts."""
    entries = contexts.listing.entries
    pairs = [
        (installed[first] & installed[second], first, second)
        for position, second in enumerate(numbers) for first in numbers[:position]
        if installed[first] & installed[second] and _exclude(entries[first], entries[second])
    ]  # fmt: skip
    if not pairs:
        return
    mask, first, second = max(pairs, key=lambda pair: (pair[0].bit_count(), -pair[2], -pair[1]))
    file = contexts.listing.file
    stated = [_Stated(_text(entries[each]), entries[each].file or file, entries[each].line) for each in (first, second)]
    which = f"lines, {stated[0].place} or {stated[1].place}" if stated[0].place != stated[1].place else "requirements"
    name = entries[first].distribution.name
    for finding in _finding(name, stated, f"keep only one of the two {which}", mask, contexts):
        yield Contradiction(finding, tuple((one, two) for _, one, two in pairs))


def _by_other(number: int, mask: int, contexts: Contexts) -> Iterator[Contradiction]:
    """Yield the contradiction of a line with a constraint or with another requirement of the same command."""
    entry = contexts.listing.entries[number]
    limit = entry.distribution.extra["excluded_by"]
    file, _, line = limit["place"].rpartition(":")
    stated = [
        _Stated(_text(entry), entry.file or contexts.listing.file, entry.line),
        _Stated(limit["specifier"], file, int(line)),
    ]
    if file == IMAGE_CONSTRAINT:
        yield from (Contradiction(each, ()) for each in _where_installed(_held(entry, stated), mask, contexts))
        return
    which = f"{stated[0].place} or {stated[1].place}" if stated[0].place != stated[1].place else stated[0].place
    fix = f"change {which} so that one version satisfies both"
    for finding in _finding(entry.distribution.name, stated, fix, mask, contexts):
        yield Contradiction(finding, ())


HELD_BY_IMAGE = "image-pip-constraint"


def _held(entry: Entry, stated: list[_Stated]) -> Finding:
    """The finding about what pip does not replace in an image, as a constraint of the image holds it."""
    name = entry.distribution.name
    return Finding(
        rule=HELD_BY_IMAGE, origin="metadata", effect="install",
        title=f"pip cannot install {name}{stated[0].text} here: a constraint of the image holds it at {stated[1].text[2:]}",
        why="NVIDIA's images from 25.03 to 25.09 set PIP_CONSTRAINT to a file with the releases that they contain. What "
        "requires another one fails with ResolutionImpossible, unless the variable is empty. uv does not read it.",
        packages={}, fixes=(Fix(kind="env-var", text="before the pip install", command='ENV PIP_CONSTRAINT=""'),),
        evidence=(_NVIDIA,), here=f"{name}{stated[0].text}, {IMAGE_CONSTRAINT}",
        location=Location(stated[0].file, stated[0].line),
    )  # fmt: skip


_NVIDIA = "https://docs.nvidia.com/deeplearning/frameworks/pytorch-release-notes/rel-25-12.html"


def _is_empty(specifier: str | None) -> bool:
    """Whether no version is in a specifier set; one that is not of PEP 440 (Poetry's, conda's) counts as satisfiable."""
    if not specifier:
        return False
    try:
        return not ranges_of(specifier)
    except ValueError:
        exact = specifier.removeprefix("===").strip()  # compared as text, and no release is called 2.5.*
        return specifier.startswith("===") and "," not in exact and not is_version(exact)


def _by_itself(number: int, mask: int, contexts: Contexts) -> Iterator[Contradiction]:
    """Yield the contradiction in one line."""
    entry, name = contexts.listing.entries[number], contexts.listing.entries[number].distribution.name
    stated = _Stated(_text(entry), entry.file or contexts.listing.file, entry.line)
    finding = Finding(
        rule="requirements-conflict", origin="metadata", effect="install",
        title=f"{name} is required as {stated.text}, which no version satisfies", why=_REFUSED,
        packages={name: stated.text}, fixes=(Fix(kind="pin", package=name, text=f"correct the range in {stated.place}"),),
        evidence=(_EVIDENCE,), here=f"{name}{stated.text} ({stated.place})", location=Location(stated.file, stated.line),
    )  # fmt: skip
    yield from (Contradiction(found, ()) for found in _where_installed(finding, mask, contexts))


def _exclude(first: Entry, second: Entry) -> bool:
    """Whether two lines exclude each other: what pip installs after conda replaces it."""
    left, right = (each.distribution.source for each in (first, second))
    of_conda = [each is not None and each.kind == "conda" for each in (left, right)]
    return of_conda[0] == of_conda[1] and disjoint(first.distribution, second.distribution)


def _text(entry: Entry) -> str:
    return entry.distribution.specifier or f"=={entry.distribution.version}"


def _finding(name: str, stated: list[_Stated], fix: str, mask: int, contexts: Contexts) -> Iterator[Finding]:
    """Yield the finding about two statements that hold in the contexts ``mask``."""
    texts = [each.text for each in stated]
    finding = Finding(
        rule="requirements-conflict", origin="metadata", effect="install",
        title=f"{name} is required as {texts[0]} and as {texts[1]}: the requirements cannot be resolved",
        why=f"No version satisfies both. {_REFUSED}",
        packages={name: " and ".join(texts)}, fixes=(Fix(kind="pin", package=name, text=fix),), evidence=(_EVIDENCE,),
        here=", ".join(f"{name}{each.text} ({each.place})" for each in stated),
        location=Location(stated[1].file, stated[1].line),
    )  # fmt: skip
    yield from _where_installed(finding, mask, contexts)


def _where_installed(finding: Finding, mask: int, contexts: Contexts) -> Iterator[Finding]:
    """Yield a finding that holds in the contexts ``mask``, with what selects them; nothing if no selection must have it."""
    reached = [(chosen.label, contexts.with_set(number)) for number, chosen in enumerate(contexts.sets)]
    holding = [label for label, reach in reached if reach and not reach & ~mask]
    labels = shown_labels(holding, contexts)
    touched = shown_labels([label for label, reach in reached if reach & mask], contexts)
    if not mask or any(some and all(map(is_union, some)) for some in (labels, touched)):
        return  # extras and groups need not be installed together
    decisive = () if holding else decisive_facts(contexts.platforms_of(mask), contexts.platforms_of(contexts.all))
    yield replace(finding, verdict="hit" if holding else "possible", missing=decisive, unknown=decisive, selections=labels)


_SETTLED = 365
"""Days after the last release of a series from which on no further one is expected in it."""
_RELEASES = "https://packaging.python.org/en/latest/specifications/simple-repository-api/"


def unpublished(listing: Listing, known: Environment, asked: Requested) -> Iterator[Finding]:
    """Yield an error about each pin, of at most 40, to a release of a recorded package that was never published.

    Nothing is said where the file names another index than PyTorch's, which may have releases of its own.
    """
    if listing.complete or names_other_index(listing):
        return
    found = ((number, _unpublished(entry)) for number, entry in enumerate(listing.entries))
    wrong = list(islice(((number, finding) for number, finding in found if finding is not None), _MOST))
    if not wrong:
        return
    contexts = Contexts(listing, known, asked)
    installed = contexts.installed()
    for number, finding in wrong:
        entry = listing.entries[number]
        located = replace(finding, location=Location(entry.file or listing.file, entry.line))
        yield from _where_installed(located, installed[number], contexts)


def _unpublished(entry: Entry) -> Finding | None:
    copy = entry.distribution
    return never_released(copy.name, copy.version or "") if _is_of_public_index(copy) else None


def _is_of_public_index(copy: Distribution) -> bool:
    """Whether a file takes it from the default index or from PyTorch's."""
    source = copy.source
    return source is not None and source.kind == "index" and str(source.details.get("url", INDEX)).startswith(INDEX)


def never_released(name: str, version: str) -> Finding | None:
    """Return the error about a final release that is not among those of its package; ``None`` if it may still come.

    A local label (``2.6.1+cu124``) does not matter.
    """
    package, release = open_declared().package(name), version.partition("+")[0]
    if package is None or not is_version(release) or not is_final(key_of(release)) or package.place(release) is not None:
        return None
    earlier = [each for each in package.versions if key_of(each) < key_of(release)]
    if not earlier or len(earlier) == len(package.versions):
        return None
    before, after = earlier[-1], package.versions[len(earlier)]
    if _series(after) != _series(release) and package.day(package.versions[-1]) - package.day(before) < _SETTLED:
        return None
    return Finding(
        rule=f"wheels-{name}", origin="release", effect="install",
        title=f"{name} {version} was never released",
        why=f"{before} is followed by {after}: installers find no matching distribution.",
        packages={name: version},
        fixes=(downgrade_to(name, before, "the release before it"), upgrade_to(name, after, "the release after it")),
        evidence=(_RELEASES,), here=f"{name} {version}",
    )  # fmt: skip


def _series(version: str) -> tuple[int, ...]:
    release: tuple[int, ...] = key_of(version)[1]
    return (*release, 0)[:2]


_NOT_THERE = (
    "transformers", "trl", "peft", "datasets", "deepspeed", "bitsandbytes", "unsloth", "sentence-transformers", "evaluate",
    "diffusers", "gradio", "liger-kernel", "axolotl", "llamafactory", "ms-swift", "wandb", "openai", "langchain",
)  # fmt: skip
"""Only what torch's index has never had: it also has what torch and its own libraries require."""
_MORE = ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
_ONE_INDEX = "https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-i"
_SHOWN = 4


def not_in_only_index(listing: Listing) -> Iterator[Finding]:
    """Yield an error about the requirements that torch's index is asked for alone, one for each file or command."""
    variables = listing.context.variables or {}
    if any(variables.get(name) for name in _MORE):
        return
    found: dict[str, list[int]] = {}
    for number, entry in enumerate(listing.entries):
        source = entry.distribution.source
        url = source.details.get("url") if source is not None and source.kind == "index" else None
        of_torch = isinstance(url, str) and url.startswith(f"{INDEX}/") and source is not None and "more" not in source.details
        if of_torch and entry.distribution.name in _NOT_THERE:
            found.setdefault(str(url), []).append(number)
    for url, numbers in found.items():
        entries = [listing.entries[number] for number in numbers]
        names = list(dict.fromkeys(entry.distribution.name for entry in entries))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield Finding(
            rule="requirements-not-in-index", origin="metadata", effect="install",
            title=f"{url.rstrip('/')} is the only index, and does not have {', '.join(names[:_SHOWN])}{more}",
            why="--index-url replaces the default index: pip finds no version of what torch's index does not have, "
            "unless it is installed already.",
            packages={entry.distribution.name: entry.distribution.version for entry in entries},
            fixes=(
                Fix("config", text=f"write --extra-index-url {url} instead of --index-url"),
                Fix("config", text="install torch, torchvision and torchaudio first, by their own command with this index"),
            ),
            evidence=(_ONE_INDEX,), here=", ".join(names),
            location=Location(entries[0].file or listing.file, entries[0].line),
        )  # fmt: skip
