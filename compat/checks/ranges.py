"""Errors about wheels that hold for every release a requirement admits: ``torch<2.6`` on a GPU that none has code for.

A requirement without a bound is one, too, if its index is torch's own for a CUDA release that newer ones are not built for.
"""

from __future__ import annotations

from compat.checks import builds
from compat.checks.torch_build import cuda_of, index_label
from compat.model import Distribution, Environment, Finding, of_no_index
from compat.records import replace
from compat.rules.facts import Facts
from compat.tables.builds import open_code_tables
from compat.tables.declared import open_declared
from compat.versions import EVERY, contains, is_final, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.tables.builds import CodeTables


def judge(environment: Environment) -> Iterator[Finding]:
    """Yield the errors about wheels and the machine that a bounded requirement cannot avoid, whichever release is selected.

    They are questions where they are for a pin. A requirement that admits the newest release is left out: later ones may be
    better.
    """
    listed = environment.distributions or ()
    for copy in listed:
        bounded = copy.specifier or on_index_of(copy)
        if copy.version is not None or not bounded or copy.name not in builds.NAMES or of_no_index(copy):
            continue
        if sum(each.name == copy.name for each in listed) > 1:
            continue  # their requirements together may admit less
        common: dict[str, Finding] | None = None
        for version in reversed(_admitted(copy, environment)):
            found = _errors(copy, version, environment)
            common = (
                found
                if common is None
                else {rule: _weaker(each, found[rule]) for rule, each in common.items() if rule in found}
            )
            if not common:
                break
        where = f" on the index for {on_index_of(copy)}" if on_index_of(copy) else ""
        stated = f"every release that {copy.name}{copy.specifier} admits" if copy.specifier else f"every release of {copy.name}"
        stated += where
        for each in (common or {}).values():
            yield replace(each, packages={**each.packages, copy.name: None}, here=f"{stated}; the newest: {each.here}")


def _admitted(copy: Distribution, environment: Environment) -> list[str]:
    """The final releases that a requirement and the Python accept, oldest first; none if the newest of all is among them."""
    package = open_declared().package(copy.name)
    published = (each.version for each in (package.releases if package else ()) if each.is_offered(environment.python))
    offered = [version for version in published if is_final(key_of(version))]
    try:
        ranges = ranges_of(copy.specifier) if copy.specifier else EVERY
    except ValueError:  # "===2.5.*", "==2.5.1+cu124,<3"
        return []
    label, tables = on_index_of(copy), open_code_tables()
    admitted = [
        version for version in offered
        if contains(ranges, key_of(version)) and (not label or _has_build(tables, version, label, environment))
    ]  # fmt: skip
    return [] if not admitted or admitted[-1] == offered[-1] else admitted


def on_index_of(copy: Distribution) -> str:
    """The label of torch's own index that torch is taken from (``cu118``); "" for another index, or another package."""
    source = copy.source
    own = copy.name == "torch" and source is not None and source.kind == "index" and not is_nightly(copy)
    label = index_label(copy) if own else ""
    return label if (cuda_of(label) or "")[:1].isdecimal() else ""


def is_nightly(copy: Distribution) -> bool:
    """Whether it is taken from an index of nightly builds."""
    source = copy.source
    return source is not None and (source.kind == "nightly" or "/nightly" in str(source.details.get("url", "")))


def newest_on_its_index(copy: Distribution, environment: Environment) -> str | None:
    """The newest release of torch on its index for one CUDA release, if that is known and newer ones are not built for it."""
    admitted = _admitted(copy, environment) if on_index_of(copy) else ()
    return f"{admitted[-1]}+{on_index_of(copy)}" if admitted else None


def _has_build(tables: CodeTables, version: str, label: str, environment: Environment) -> bool:
    machine = "aarch64" if environment.machine in ("aarch64", "arm64") else "x86_64"
    return any(build.machine == machine and build.cuda == cuda_of(label) for build in tables.torch_builds(version))


def _errors(copy: Distribution, version: str, environment: Environment) -> dict[str, Finding]:
    """The errors about the wheels of one release of a distribution, by rule."""
    others = (each for each in environment.distributions or () if each is not copy)
    one = replace(environment, distributions=(*others, replace(copy, version=version, specifier=None)))
    return {each.rule: each for each in builds.judge(Facts(one)) if each.severity == "error" and copy.name in each.packages}


def _weaker(newer: Finding, older: Finding) -> Finding:
    """The finding for the newer release, as a question if it is one for the other."""
    if older.verdict == "hit" or newer.verdict != "hit":
        return newer
    return replace(newer, verdict="possible", missing=older.missing, unknown=older.unknown, likelihood=older.likelihood)
