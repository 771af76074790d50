"""What ``fix`` does where a file cannot be planned as it is: lines that contradict each other, a Python that is too old for the
releases that fix an error, and errors in an image that the file names.

Of contradicting lines one is kept, that with which uv resolves the file and the fewest errors remain. The newest Python that
the pins have wheels for may be so old that no release for it works on the target's GPU: an expert moves the pins that keep it
back instead. A release installed over those of an image breaks what the image built for them, so another tag of that image
comes first; what then remains is planned for as usual.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice, product

from compat.api.case import Case, contradictions_in, environments_in, part_of, read_again
from compat.api.conda import newer_pythons_of
from compat.api.planning import planner_of
from compat.api.resolution import complete_case, original_case
from compat.checks.image_tags import Trials, newer, on_another
from compat.checks.images import OTHER_COMPILER
from compat.checks.installation import NO_COMPILER
from compat.checks.torch_build import own_image_of, stack_of
from compat.checks.unresolvable import HELD_BY_IMAGE, Contradiction
from compat.errors import InputError
from compat.formats.docker.base_images import (
    known_stack,
    name_and_tag,
    on_newer_pythons,
    python_of,
    with_compiler,
    with_compiler_for,
)
from compat.formats.docker.image_names import image_names, with_image
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.edit.files import Edit, as_if_written, merged
from compat.formats.listing import Entry, Listing
from compat.formats.registry import format_of, read_content
from compat.formats.requirements.edit import edit_to_one
from compat.formats.specifiers import public
from compat.model import Environment, Finding, Source
from compat.records import record, replace
from compat.repair.planner import Planner
from compat.rules.facts import Facts
from compat.tables.builds import open_code_tables
from compat.tables.linked import series_of
from compat.versions import key_of

_MOST_CHOICES = 8
"""Maximum number of choices that are resolved."""


@record(frozen=True)
class _Choice:
    """A line to keep, and those that contradict it."""

    finding: Finding
    kept: Entry
    others: tuple[Entry, ...]


@record(frozen=True)
class Settled:
    """A file without the lines that contradict others: the findings about them, and the edits, which are not written.

    ``changes`` are the releases that give way to others, ``case`` is that of the edited file. ``refused`` is the reason why no
    line can be chosen.
    """

    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    edits: tuple[Edit, ...]
    case: Case
    planner: Planner
    refused: str = ""


@record(frozen=True)
class _Tried:
    """The case of the file in which some choices are made, and its planner."""

    choices: tuple[_Choice, ...]
    edits: tuple[Edit, ...]
    case: Case
    planner: Planner

    @property
    def resolves(self) -> bool:
        return self.case.resolves is True and not self.case.is_refused


def drop_contradicting_lines(case: Case, planner: Planner) -> Settled | None:
    """The requirements file of a case without the lines that contradict those to keep; ``None`` if none do.

    Contradictions in a project file are rejected: it is unclear which line is meant, and other tools read the file too.
    """
    found = contradictory_lines(case)
    if not found or case.listing is None:
        return None
    chosen = case.listing.kind == "requirements"
    ways = [tuple(_choices(each, case.listing)) if chosen else () for each in found]
    if not all(ways):
        texts = (fix.text for each, choices in zip(found, ways) if not choices for fix in each.finding.fixes)
        return Settled(tuple(each.finding for each in found), (), (), case, planner, "; ".join(texts))
    tried = [_tried(choices, case, planner) for choices in islice(product(*ways), _MOST_CHOICES)]
    best = min(tried, key=lambda each: (not each.resolves, len(each.planner.errors)))
    changes = tuple(_change(each, best, tried) for each in best.choices)
    return Settled(tuple(each.finding for each in best.choices), changes, best.edits, best.case, best.planner)


def contradictory_lines(case: Case) -> tuple[Contradiction, ...]:
    """The lines of a case's file that contradict each other, whatever is selected."""
    if case.file is None:
        return ()
    lines = (each for each in contradictions_in(case) if each.finding.rule != HELD_BY_IMAGE)
    return tuple(each for each in lines if each.finding.verdict == "hit" and not each.finding.selections)


def _choices(found: Contradiction, listing: Listing) -> Iterator[_Choice]:
    """The pins that may be kept, the newest first; none if a range is among the lines, as it may be either that is meant."""
    entries = listing.entries
    numbers = {number for pair in found.pairs for number in pair}
    if any(entries[number].distribution.version is None for number in numbers):
        return
    seen = set()
    for number in sorted(numbers, key=lambda at: key_of(entries[at].distribution.version or "0"), reverse=True):
        if entries[number].distribution.version not in seen:
            seen.add(entries[number].distribution.version)
            others = {other for pair in found.pairs for other in pair if number in pair} - {number}
            yield _Choice(found.finding, entries[number], tuple(entries[other] for other in sorted(others)))


def _tried(choices: tuple[_Choice, ...], case: Case, planner: Planner) -> _Tried:
    assert case.file is not None
    edits: dict[str, Edit] = {}
    for each in choices:
        with as_if_written(edits.values()):
            edits = merged(edits, edit_to_one(case.file, read_content(case.file), each.kept, each.others))
    with as_if_written(edits.values()):
        content = read_content(case.file)
        (listing,) = format_of(case.file, content).listings(case.file, content)
        after = complete_case(read_again(original_case(case), listing, planner.means), planner.means)
        problem = planner.problem
        return _Tried(
            choices, tuple(edits.values()), after,
            planner_of(after, problem.policy, planner.means, [need.text for need in problem.keep]),
        )  # fmt: skip


def _change(choice: _Choice, best: _Tried, tried: list[_Tried]) -> Change:
    """The lines that give way, as a change, and why it is these."""
    name, kept = choice.kept.distribution.name, choice.kept.distribution.version
    before = choice.others[0].distribution.version
    others = [each for each in tried if choice not in each.choices]
    resolved = [each for each in others if each.resolves]
    why = f"{name} is required as {choice.finding.packages[name]}"
    if best.resolves and others and not resolved:
        why += f"; uv resolves the file only with {kept}"
    elif best.resolves and others:
        fewer = all(len(each.planner.errors) > len(best.planner.errors) for each in resolved)
        why += f"; {kept} has fewer errors" if fewer else "; uv resolves the file with either, so the newer one is kept"
    return Change(name, before, kept, direct=True, why=why)


_MOST_PYTHONS = 3
"""Maximum number of newer Pythons that are tried."""


def for_newer_pythons(
    case: Case, planner: Planner, left: Collection[Finding], keep: Sequence[str]
) -> Iterator[tuple[Case, Planner]]:  # fmt: skip
    """The case and its planner for the next newer Pythons; ``planner`` is the one that left the errors ``left``.

    None unless the Python was inferred from the pins of a file that an installer completes, and newer releases of the packages
    of the errors are for other Pythons.
    """
    if case.listing is None or case.whole or not left or not planner.for_other_pythons(left):
        return
    why = "; ".join(dict.fromkeys(each.title for each in left))
    for python in case.newer[:_MOST_PYTHONS]:
        bare = original_case(case)
        environment = replace(bare.environment, python=python)
        bare = replace(bare, environment=environment, told=(f"Python {python}", *bare.told[1:]), pythons=(), newer=())
        after = complete_case(read_again(bare, case.listing, planner.means), planner.means)
        note = f"no plan for Python {case.environment.python} fixes everything ({why}); this one is for Python {python}"
        yield replace(after, notes=(note, *after.notes)), planner_of(after, planner.problem.policy, planner.means, keep)


def on_another_image(case: Case, planner: Planner) -> Settled | None:
    """The file of a case with the nearest tag of its image that has fewer errors; ``None`` if none is known to have."""
    copies = case.environment.distributions or ()
    images = {copy.name: image for copy in copies if (image := own_image_of(copy))}
    trials = {image: Trials(image, case.environment, planner.means.matrix) for image in images.values()}
    running = {copy.name: str(copy.extra["no_compiler"]) for copy in copies if "no_compiler" in copy.extra}
    for error in planner.errors:
        if error.rule == NO_COMPILER:
            image = next(running[name] for name in error.packages)
            better, difference = with_compiler(image), "has the CUDA compiler"
        elif error.rule == OTHER_COMPILER:
            image = next(
                str(copy.extra["compiler"]) for copy in copies if copy.name in error.packages and "compiler" in copy.extra
            )
            cuda = stack_of(Facts(case.environment), open_code_tables()).flavour.numbered or ""
            better, difference = with_compiler_for(image, cuda), f"has a compiler for CUDA {cuda.partition('.')[0]}"
        else:
            image = next((images[name] for name in error.packages if name in images), "")
            better = trials[image].without(error) if image else None
            difference = "" if better is None else trials[image].difference(better)
        found = None if better is None else _on_tag(case, planner, image, better, difference)
        if found is not None:
            return found
    if any("python" in each.facts for each in case.unserved):  # what the file pins is for newer Pythons than the image's
        return next(on_newer_pythons_of(case, planner, ()), None)
    return None


def on_image_with_torch(case: Case, planner: Planner, torch: str) -> Settled | None:
    """The file of a case on the next tag of its image with the torch that a plan installs over the one of the image.

    Its compiler is that for which this torch was built, and what is compiled in the image fits both.
    """
    copies = case.environment.distributions or ()
    image = next((own_image_of(copy) for copy in copies if copy.name == "torch"), "")
    cudas = {each.cuda for each in open_code_tables().torch_builds(public(torch)) if each.default}
    for tag in newer(image) if image and "+" not in torch and not planner.means.is_late() else ():
        there = known_stack(tag)
        own = next((copy for copy in there.distributions or () if copy.name == "torch"), None)
        same = own is not None and public(own.version or "") == torch and own.extra.get("cuda") in cudas
        if same and series_of(there.python or "") == series_of(case.environment.python or ""):
            return _on_tag(case, planner, image, tag, f"has torch {torch}", planner.errors)
    return None


def on_newer_pythons_of(case: Case, planner: Planner, left: Sequence[Finding]) -> Iterator[Settled]:
    """The file of a case on images or in conda environments with newer Pythons, the nearest first: with fewer errors, unless a
    plan ``left`` some."""
    if case.file is None or case.environment.python is None or planner.means.is_late():
        return
    here = series_of(case.environment.python)
    lacking = "; ".join(planner.for_other_pythons(left))
    for changes in islice(newer_pythons_of(case.listing, here) if case.listing else (), _MOST_PYTHONS):
        try:
            edits = edits_for(case.file, changes)
        except InputError:  # written in a way that is not edited
            return
        found = _settled(case, planner, edits, replace(changes[0], why=lacking), left)
        if found is not None:
            yield found
    names = image_names(case.file, read_content(case.file), dockerfile=_is_dockerfile(case))
    for image in dict.fromkeys(each.text for each in names):
        if series_of(python_of(image) or "") != here:
            continue
        for better, python in islice(_with_newer_python(image, here), _MOST_PYTHONS):
            found = _on_tag(case, planner, image, better, f"has Python {python}", left)
            if found is not None:
                yield found


def _is_dockerfile(case: Case) -> bool:
    return case.listing is not None and case.listing.kind == "dockerfile"


def _with_newer_python(image: str, python: str) -> Iterator[tuple[str, str]]:
    yield from on_newer_pythons(image)
    for tag in newer(image):
        there = known_stack(tag).python
        if there is not None and key_of(there) > key_of(python):
            yield tag, there


def _on_tag(
    case: Case, planner: Planner, image: str, better: str, difference: str, unfixed: Sequence[Finding] = ()
) -> Settled | None:  # fmt: skip
    """The file with every mention of an image replaced; ``None`` if its tag is not in it, or not fewer errors remain.

    If no plan fixes the errors ``unfixed`` on the old image, as many may remain: a plan may fix them on the new one.
    """
    if case.file is None:
        return None
    edits = tuple(_with_image(case, image, better))
    if not edits:
        return None
    name, tag = name_and_tag(image)
    change = Change(
        name, tag, name_and_tag(better)[1], source=Source("image", {"image": better}), direct=True,
        why=f"{name_and_tag(better)[1]} {difference}", before_source=Source("image", {"image": image}),
    )  # fmt: skip
    return _settled(case, planner, edits, change, unfixed)


def _settled(
    case: Case, planner: Planner, edits: tuple[Edit, ...], change: Change, unfixed: Sequence[Finding]
) -> Settled | None:  # fmt: skip
    """The file with the edits that make a change of an image or of Python, as :func:`_on_tag`."""
    assert case.file is not None
    with as_if_written(edits):
        listing = part_of(case, environments_in(case.file))
        if listing is None:
            return None
        bare = _on(listing.context, original_case(case))
        if not change.is_image:
            told = (f"Python {change.after}", *bare.told[1:])
            bare = replace(bare, environment=replace(bare.environment, python=change.after), told=told)
        again = read_again(bare, listing, planner.means)
        again = again if again.whole else complete_case(again, planner.means)
        problem = planner.problem
        rest = planner_of(again, problem.policy, planner.means, [need.text for need in problem.keep])
    left = {(each.rule, *sorted(each.packages)) for each in rest.errors}
    gone = tuple(each for each in planner.errors if (each.rule, *sorted(each.packages)) not in left)
    if not unfixed and (not gone or len(rest.errors) >= len(planner.errors)):
        return None
    cause = (*unfixed, *gone)[0]
    why = "; ".join(filter(None, (f"{cause.title} ({cause.rule})", change.why)))
    return Settled(gone, (replace(change, why=why),), edits, again, rest)


def _with_image(case: Case, image: str, better: str) -> Iterator[Edit]:
    """The edits that replace an image: in the case's file, and in a Dockerfile that a service of it is built from."""
    assert case.file is not None
    entries = case.listing.entries if case.listing is not None else ()
    built = (each.file for each in entries if each.file is not None and own_image_of(each.distribution) == image)
    for path in dict.fromkeys((case.file, *built)):
        content = read_content(path)
        after = with_image(path, content, image, better, dockerfile=path != case.file or _is_dockerfile(case))
        if after is not None:
            yield Edit(path, content, after)


def _on(context: Environment, case: Case) -> Case:
    """The case with what the new image says about Python, glibc and the CUDA toolkit, where the old one did."""
    here, before = case.environment, case.listing.context if case.listing is not None else Environment()
    there = on_another(here, before, context)
    told = case.told if there.python == here.python else (f"Python {there.python}", *case.told[1:])
    if there.glibc != here.glibc:
        told = tuple(f"glibc {there.glibc}" if each.startswith("glibc ") else each for each in told)
    return replace(case, environment=there, told=told)
