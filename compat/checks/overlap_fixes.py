"""Which one of several distributions with the same files to keep, and how: in an environment, and in a file."""

from __future__ import annotations

from compat.checks.requirements import requires_among
from compat.checks.torch_build import major_version, stack_of
from compat.model import Distribution, Finding, Fix
from compat.records import replace
from compat.tables.overlaps import open_overlaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compat.formats.listing import Listing
    from compat.model import Environment
    from compat.rules.facts import Facts
    from compat.tables.overlaps import Group, Installs

    Asked = Mapping[str, Sequence[tuple[str, str]]]
    """Distribution → what requires it, with the specifier."""


def asked_for(group: Group, environment: Environment) -> Asked:
    """What requires the distributions of a group, as far as it is known, except each other."""
    names = {copy.name for copy in group.copies}
    found: dict[str, list[tuple[str, str]]] = {}
    for each in requires_among(environment, {copy.name for copy in environment.distributions or ()}, names):
        if each.asking not in names:
            found.setdefault(each.asked, []).append((each.asking, each.specifier))
    return found


def cuda_of_torch(facts: Facts) -> int | None:
    """The major release of CUDA that torch is built for; ``None`` if unknown or none."""
    from compat.tables.builds import open_code_tables

    numbered = stack_of(facts, open_code_tables()).flavour.numbered
    return None if numbered is None else int(major_version(numbered))


def fixes_of(group: Group, facts: Facts, asked: Asked) -> tuple[Fix, ...]:
    """Newer releases that no longer share files, if there are, and what to do with these in an environment."""
    kept, reason = _kept(group, facts, asked)
    others = [copy for copy in group.copies if copy is not kept]
    by_kept = {
        each.asked
        for each in requires_among(facts.environment, {copy.name for copy in group.copies})
        if each.asking == kept.name
    }
    required = [copy.name for copy in others if copy.name in asked or copy.name in by_kept]
    again = f'"{kept.name}=={kept.version}"'
    if required or any(each.part for each in group.installs):
        text = f"install {kept.name} last{reason}; {_why_both(required, asked, kept)}"
        way = Fix("config", kept.name, text=text, command=f"pip install --force-reinstall --no-deps {again}")
    else:
        names = " ".join((*(copy.name for copy in others), kept.name))
        text = f"keep {kept.name}{reason}: remove all of them, then install it again"
        way = Fix("uninstall", others[0].name, text=text, command=f"pip uninstall -y {names} && pip install --no-deps {again}")
    versions = {copy.name: copy.version for copy in facts.environment.distributions or ()}
    return (*_apart(group, asked, versions), way)


def _why_both(required: Sequence[str], asked: Asked, kept: Distribution) -> str:
    if not required:
        return "the rest of the other one stays"
    name = required[0]
    return f"{asked[name][0][0] if name in asked else kept.name} requires {name}"


def _apart(group: Group, asked: Asked, versions: Mapping[str, str | None]) -> Iterator[Fix]:
    """Releases in which at most one of them still has the file; of what requires them, if it is released along with them."""
    ended = [(copy, each.until) for copy, each in zip(group.copies, group.installs) if each.until]
    if len(ended) + 1 < len(group.copies) or not ended:
        return
    asking = [name for copy, _ in ended for name, _ in asked.get(copy.name, ())]
    specs = {
        next((name for name in asking if versions.get(name) == copy.version), copy.name): f">{until}" for copy, until in ended
    }
    command = "pip install " + " ".join(f'"{name}{spec}"' for name, spec in specs.items())
    name, spec = next(iter(specs.items()))
    yield Fix("upgrade", name, spec, "later releases do not share files", command)


def _kept(group: Group, facts: Facts, asked: Asked) -> tuple[Distribution, str]:
    """The distribution to keep, and why: it fits the hardware, something requires it, its files are there."""
    fits = {copy.name: _fit(each, facts) for copy, each in zip(group.copies, group.installs)}
    ranks = {copy.name: each.rank for copy, each in zip(group.copies, group.installs)}
    parts = {copy.name: each.part for copy, each in zip(group.copies, group.installs)}

    def order(copy: Distribution) -> tuple[bool, int, bool, bool, int]:
        name, is_there = copy.name, copy.extra.get("files") == "own"
        return parts[name], -fits[name], name not in asked, not is_there, ranks[name]

    best = min(group.copies, key=order)
    build = next(each.build for copy, each in zip(group.copies, group.installs) if copy is best)
    if fits[best.name] > max(fits[copy.name] for copy in group.copies if copy is not best) and build.startswith("cuda"):
        return best, f" (the build for {'CUDA ' + build[4:] if build[4:] else 'the GPU'})"
    if best.name in asked and any(copy.name not in asked for copy in group.copies):
        return best, f" ({asked[best.name][0][0]} requires it)"
    return best, ""


def _fit(installs: Installs, facts: Facts) -> int:
    """How well a build suits the hardware: one for this CUDA, one for the GPU, one for anything, one for something else."""
    build, devices = installs.build, facts.accelerators() or ()
    if build.startswith("cuda"):
        cuda = cuda_of_torch(facts)
        if cuda is None and not any(device.vendor in (None, "nvidia") for device in devices):
            return 0
        return 2 if not build[4:] or cuda is None else 3 if build == f"cuda{cuda}" else -1
    if build == "rocm":
        return 3 if any(device.vendor == "amd" for device in devices) else -1
    if build == "windows":
        return 2 if facts.environment.os == "windows" else -1
    return -1 if build in ("tpu", "npu") else 0


# --- In a file.


def in_file(finding: Finding, listing: Listing, known: Environment) -> Finding:
    """The finding with what to change in the file, rather than what repairs an environment that was made from it."""
    from compat.rules.facts import Facts

    copies = tuple(Distribution(name, version) for name, version in finding.packages.items())
    group = next((each for each in open_overlaps().groups(copies) if len(each.copies) == len(copies)), None)
    if group is None or group.is_library:
        return replace(finding, fixes=tuple(replace(fix, command=None) for fix in finding.fixes))
    parents = {copy.name: _parents(copy.name, listing) for copy in copies}
    asked = {name: [(parent, "") for parent in found if parent] for name, found in parents.items() if any(found)}
    torch = tuple(entry.distribution for entry in listing.entries if entry.distribution.name == "torch")
    kept, reason = _kept(group, Facts(replace(known, distributions=torch)), asked)
    others = [copy.name for copy in group.copies if copy is not kept]
    both = any(each.part for each in group.installs) or any(kept.name in parents[name] for name in others)
    both = both or any(name in parents[kept.name] for name in others)
    ways = [] if both else [way for name in others for way in _without(name, parents[name], kept, reason, listing)]
    # other locks do not say what the project states itself, and have no way to leave out what a package requires
    stays = both or (listing.kind != "uv.lock" and ("lock" in listing.kind or any(name in asked for name in others)))
    last = (
        _last(kept, reason, next((f"{asked[name][0][0]} requires {name}" for name in others if name in asked), ""), listing),
    )
    versions = {entry.distribution.name: entry.distribution.version for entry in listing.entries}
    return replace(finding, fixes=(*_apart(group, asked, versions), *ways, *(last if stays else ())))


def _parents(name: str, listing: Listing) -> tuple[str, ...]:
    """The packages by which a file installs one, "" for the file itself or its project; through extras, too."""
    entries, edges = listing.entries, listing.edges
    places = {place for place, entry in enumerate(entries) if entry.distribution.name == name}
    if edges is None:
        return ("",) if places else ()
    found: dict[str, None] = {}
    waiting, seen = list(places), set(places)
    while waiting:
        node = waiting.pop()
        for edge in edges:
            if edge.child != node or edge.parent in seen:
                continue
            if edge.parent >= len(entries):  # an extra of a distribution
                seen.add(edge.parent)
                waiting.append(edge.parent)
                continue
            copy = entries[edge.parent].distribution if edge.parent >= 0 else None
            of_project = copy is None or (copy.source is not None and copy.source.kind == "directory")
            if copy is None or copy.name != name:
                found["" if copy is None or of_project else copy.name] = None
    return tuple(sorted(found))


def _without(name: str, parents: Sequence[str], kept: Distribution, reason: str, listing: Listing) -> Iterator[Fix]:
    """How to leave a distribution out of a file."""
    from compat.formats.registry import format_named

    if "" in parents and (listing.kind == "uv.lock" or not any(parents)):
        line = next((entry.line for entry in listing.entries if entry.distribution.name == name), None)
        where = f"line {line}, " if line and listing.kind == "requirements" else ""
        remove = format_named(listing.kind).remove
        text = f"leave {name} out ({where}{kept.name} has the same module){reason and ', and keep ' + kept.name + reason}"
        yield Fix("uninstall", name, text=text, command=f"{remove} {name}" if remove else None)
    required = next((parent for parent in parents if parent), None)
    if required is not None and listing.kind == "uv.lock":
        override = f"override-dependencies = [\"{name}; sys_platform == 'never'\"]"
        text = f"{required} requires {name}: leave it out by {override} under [tool.uv], and keep {kept.name}{reason}"
        yield Fix("uninstall", name, text=text, command="uv lock")


def _last(kept: Distribution, reason: str, why: str, listing: Listing) -> Fix:
    text = f"install {kept.name} last{reason}{why and '; ' + why}"
    command = f'pip install --force-reinstall --no-deps "{kept.name}=={kept.version}"'
    return Fix(
        "config",
        kept.name,
        text=text,
        command=f"uv sync --reinstall-package {kept.name}" if listing.kind == "uv.lock" else command,
    )
