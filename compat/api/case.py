"""The case that ``fix``, ``why`` and ``suggest`` plan for: what is installed or listed, and for which target."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from compat.api.commands import Options
from compat.api.report import apply_target, chosen_targets, config_of, in_force, requested_of
from compat.checks import named_devices
from compat.checks.choices import Requested, is_union, one_by_one
from compat.checks.notebook_python import with_possible_python
from compat.checks.over_images import with_replaced
from compat.checks.selections import is_refused
from compat.checks.torch_build import replaced_image_of
from compat.checks.unresolvable import Contradiction, contradictions
from compat.errors import InputError
from compat.formats.listing import Listing
from compat.formats.project.config import ProjectConfig, Target
from compat.formats.registry import read_listings
from compat.index import Index
from compat.model import Environment, Finding
from compat.records import record, replace
from compat.repair.candidates import Release
from compat.repair.planner import Means
from compat.repair.relaxation import Needs
from compat.repair.subject import infer_platform, installed_by
from compat.repair.target import Need
from compat.rules.compiled import Matrix

ONLY_LISTED = "uv cannot resolve this file, so only the packages it lists are checked"
REFUSED = "installers reject these requirements because they conflict"


@record(frozen=True)
class Case:
    """The input to be fixed. ``file`` is its path, ``None`` for an environment; ``folders`` contain installed metadata.

    ``one_by_one``: uv cannot resolve all extras and groups of the file together, so each is checked on its own. ``told``
    describes the target of the plan; ``ignored`` are the rules that the project ignores. ``listing`` is the parsed file,
    number ``part`` of its environments if it has several, ``asked_choices`` are the requested extras and groups,
    ``selection`` those of this case in words, ``left_out`` those that are not for the target, or exclude requested ones, and
    ``excluding`` the latter. ``resolves``: whether uv can resolve a file that lists only some of its packages (``None``:
    unknown; ``unresolved`` is the reason), ``overrides`` if that requires its pins to override the requirements of other
    packages. ``needs`` are the requirements of its releases that were read, ``pythons`` older Pythons that the pins support as
    well, and ``newer`` those that the file admits, if its Python is inferred. ``unserved`` are the errors of pins that no
    installer can take on the target; of ``unfit`` ones the requirements are out of reach, so that the rest was resolved without
    them. ``anchors`` are requirements that keep uv from going far back in ranges of the file. ``warnings`` count too.
    """

    environment: Environment
    file: str | None = None
    folders: tuple[str, ...] = ()
    interpreter: str | None = None
    direct: frozenset[str] | None = None
    asked: tuple[Need, ...] = ()
    notes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    whole: bool = True
    ignored: frozenset[str] = frozenset()
    resolves: bool | None = None
    unresolved: str = ""
    overrides: bool | None = None
    needs: Mapping[Release, Needs] | None = None
    pythons: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    unserved: tuple[Finding, ...] = ()
    anchors: tuple[str, ...] = ()
    unfit: frozenset[str] = frozenset()
    listing: Listing | None = None
    asked_choices: Requested | None = None
    selection: str = ""
    left_out: frozenset[str] = frozenset()
    excluding: frozenset[str] = frozenset()
    one_by_one: bool = False
    part: int | None = None
    warnings: bool = False

    def without_note(self) -> Case:
        """Without the note that uv cannot resolve the file, where that is the answer."""
        return replace(self, notes=tuple(note for note in self.notes if not note.startswith((ONLY_LISTED, REFUSED))))

    @property
    def is_refused(self) -> bool:
        """Whether installers refuse the file as it is, because its pins contradict each other."""
        listing = self.listing
        if self.overrides is not True or listing is None or listing.overridden:
            return False
        copies = (entry.distribution for entry in listing.entries)
        pins = {(copy.name, copy.version) for copy in copies if copy.version is not None}
        # over others, one command after another may override
        return not listing.is_run or any(map(pins.issubset, listing.together))

    def is_met(self, finding: Finding) -> bool:
        """Whether what a finding is about is installed together: not an unfit pin and what was resolved without it."""
        apart = self.unfit.isdisjoint(finding.packages) or all(self.listed.get(name) for name in finding.packages)
        return apart or len(finding.packages) == 1

    def refuses(self, finding: Finding) -> bool:
        """Whether installers refuse the pins of the file of which one violates a requirement of the other."""
        pinned = len(finding.packages) > 1 and all(self.listed.get(name) for name in finding.packages)
        return pinned and self.listing is not None and is_refused(finding, self.listing)

    @property
    def known(self) -> frozenset[str] | None:
        """The only packages about which anything is known, if the file installs over others: an image's, or a machine's."""
        over_others = self.listing is not None and not self.listing.starts_empty
        return frozenset(self.listed) if over_others else None

    @property
    def listed(self) -> dict[str, bool]:
        """The packages that the file names, in any of its selections or in a constraint, and whether it pins them."""
        found: dict[str, bool] = {}
        for each in self.listing.entries if self.listing else ():
            copy = each.distribution
            pinned = copy.version is not None or (copy.source is not None and copy.source.kind != "index")
            pinned = pinned and not replaced_image_of(copy)  # its release follows from what requires it
            found[copy.name] = found.get(copy.name, False) or pinned
        for limit in self.listing.constraints if self.listing else ():
            found[limit.name] = found.get(limit.name, False) or limit.version is not None
        return found


def case_of(options: Options, matrix: Matrix, index: Callable[[], Index], part: int | None = None) -> Case:
    """The case named by the options: a file, a described environment, or the installed packages.

    ``index`` is only called if the file leaves something open. ``part`` is the number of an environment of a file that
    describes several. :class:`InputError` if several inputs are named, or a file has several environments and none is chosen.
    """
    if len(options.operands) + options.flag("environment") + options.flag("python") > 1:
        raise InputError("pass only one of FILE, --python and --environment")
    config = config_of(options.operands[0] if options.operands else ".", options)
    if options.operands:
        return _of_file(options, config, matrix, index, part)
    if options.flag("environment"):
        from compat.formats.described import read_described

        return described_case(*read_described(options.one("environment") or ""), options)
    if options.flag("target"):
        raise InputError("--target needs a file or --environment; installed packages are always planned for this machine")
    from compat.api.machine import read_machine
    from compat.machine.interpreter import default_target, target_at

    python = options.one("python")
    place = target_at(python) if python else default_target(os.environ)
    machine = read_machine(python, matrix, states_gpus=options.flag("gpu"))
    environment, more = _told_of(machine.environment, None, options)
    environment, told = infer_platform(environment)
    return Case(
        environment, folders=place.folders, interpreter=machine.interpreter, notes=(*machine.notes, *more),
        told=(f"Python {environment.python}", *told), ignored=_ignored(config, None),
    )  # fmt: skip


def described_case(environment: Environment, notes: tuple[str, ...], options: Options) -> Case:
    """The case of a described environment, for the target declared by the project or named by the options."""
    config = config_of(".", options)
    target = _one_target(options, config)
    environment, more = _told_of(environment, target, options)
    environment, told = infer_platform(environment)
    told = (f"Python {environment.python}", *told)
    return Case(environment, notes=(*notes, *more), told=told, ignored=_ignored(config, target))


def _one_target(options: Options, config: ProjectConfig) -> Target | None:
    """The target to plan for; :class:`InputError` if several are declared and none is selected."""
    targets = chosen_targets(options, config)
    if len(targets) > 1:
        names = ", ".join(each.name for each in targets if each is not None)
        raise InputError(f"several targets are declared ({names}): choose one with --target", config.file)
    return next(iter(targets), None)


def _ignored(config: ProjectConfig, target: Target | None) -> frozenset[str]:
    """The rules that the project currently ignores."""
    named = (None, None if target is None else target.name)
    return frozenset(each.rule for each in config.ignores if each.target in named and in_force(each))


def _told_of(environment: Environment, target: Target | None, options: Options) -> tuple[Environment, tuple[str, ...]]:
    """The environment with the facts of its target and of the command line, and notes about them."""
    environment, notes = apply_target(environment, target, options)
    environment, more = named_devices(environment)
    return environment, (*notes, *more)


def environments_in(path: str) -> list[Listing]:
    """Return the environments of a file that list packages: one for each service, job or container of some formats."""
    return [each for each in read_listings(path) if each.entries]


def with_note_on_choices(case: Case) -> Case:
    """The case with a note on the extras and groups beside its selection that leave something open: they are not resolved."""
    listing, asked = case.listing, case.asked_choices
    stated = asked is not None and (asked.extras is not None or asked.groups is not None)
    if listing is None or stated or is_union(case.selection):
        return case
    edges = listing.edges or ()
    of_node = {edge.child: edge.choice for edge in edges if edge.choice is not None}
    loose = {at for at, entry in enumerate(listing.entries) if entry.distribution.version is None}
    numbers = {of_node.get(edge.parent, edge.choice) for edge in edges if edge.child in loose}
    beside = [
        each.label for number, each in enumerate(listing.choices)
        if number in numbers and not each.default and not each.apart and each.kind in ("extra", "group")
        and each.label != case.selection
    ]  # fmt: skip
    note = f"not resolved, and only checked as listed, unless named (--extras, --groups): {', '.join(beside)}"
    return replace(case, notes=(*case.notes, note)) if beside else case


def contradictions_in(case: Case) -> tuple[Contradiction, ...]:
    """What no installer accepts of the requirements in the file of a case, each with its lines; none without a file."""
    if case.listing is None:
        return ()
    known = replace(case.environment, distributions=None, distributions_complete=False)
    return contradictions(case.listing, known, case.asked_choices or Requested())


def part_of(case: Case, listings: Sequence[Listing]) -> Listing | None:
    """The environment of a case among those of its edited file; ``None`` if it is no longer there."""
    if case.part is None:
        return listings[0] if len(listings) == 1 else None
    return listings[case.part] if case.part < len(listings) else None


def _of_file(
    options: Options, config: ProjectConfig, matrix: Matrix, index: Callable[[], Index], part: int | None
) -> Case:  # fmt: skip

    path = options.operands[0]
    listings = environments_in(path)
    if not listings:
        why = next((note for each in read_listings(path) for note in (*each.unread, *each.notes)), "")
        raise InputError(f"lists no packages{why and f' ({why})'}", path)
    if len(listings) > 1 and part is None:
        names = ", ".join(each.label or each.file for each in listings)
        raise InputError(f"contains several environments ({names}): expected one", path)
    listing = with_replaced(with_possible_python(listings[part or 0]))
    target = _one_target(options, config)
    known, told = _told_of(listing.context, target, options)
    notes = tuple(dict.fromkeys((*listing.notes, *listing.unread, *told)))
    asked = requested_of(target, options)
    warnings = options.one("level") == "warning"
    found = installed_by(listing, known, matrix, index, asked, warnings=warnings)
    return Case(
        found.environment, file=path, direct=found.direct, asked=found.asked, notes=notes, told=found.told,
        whole=found.whole, ignored=_ignored(config, target), listing=listing, asked_choices=asked, pythons=found.pythons,
        newer=found.newer, selection=found.selection, left_out=found.left_out, excluding=found.excluding, part=part,
        warnings=warnings,
    )  # fmt: skip


def read_again(case: Case, listing: Listing, means: Means) -> Case:
    """The case of an edited file, for the same target: the selection with the most errors, else the same one."""
    listing = with_replaced(one_by_one(listing) if case.one_by_one else listing)
    known = replace(case.environment, distributions=None, distributions_complete=False)
    index = means.matrix, lambda: means.index
    found = installed_by(listing, known, *index, case.asked_choices, case.selection, warnings=case.warnings)
    there = {(copy.name, copy.version) for copy in found.environment.distributions or ()}
    told = [f"with {found.selection}" if each == f"with {case.selection}" else each for each in case.told]
    unserved = tuple(each for each in case.unserved if there.issuperset(each.packages.items()))
    return replace(
        case, environment=found.environment, direct=found.direct, asked=found.asked, whole=found.whole, listing=listing,
        selection=found.selection, told=tuple(each for each in told if each != "with "), unserved=unserved, unfit=frozenset(),
    )  # fmt: skip
