"""Yanked releases, and releases that do not support this Python or have no wheel for this glibc."""

from __future__ import annotations

from compat.checks.fix_commands import downgrade_to, upgrade_to
from compat.model import Distribution, Environment, Finding, Fix
from compat.versions import contains, is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.rules.facts import Facts
    from compat.tables.declared import Declared, Package, Published


_YANKING = "https://peps.python.org/pep-0592/"
_ELSEWHERE = ("vcs", "directory", "image", "conda", "url")


def judge(facts: Facts, declared: Declared) -> Iterator[Finding]:
    """Yield findings about individual releases: yanked, unsupported Python, unsupported glibc."""
    for copy in facts.environment.distributions or ():
        if copy.name not in declared or copy.version is None or not is_version(copy.version):
            continue
        package = declared.package(copy.name)
        release = None if package is None else package.published(copy.version)
        if package is None or release is None or (copy.source is not None and copy.source.kind in _ELSEWHERE):
            continue
        if release.yanked is not None:
            yield _yanked(copy, release, package)
        yield from _python(copy, release, package, facts.environment)
        yield from _glibc(copy, release, package, facts.environment)


def _yanked(copy: Distribution, release: Published, package: Package) -> Finding:
    good = [each for each in package.releases if each.yanked is None]
    here = key_of(release.version)
    above = next((each for each in good if key_of(each.version) > here), None)
    below = next((each for each in reversed(good) if key_of(each.version) < here), None)
    fixes = []
    if above is not None:
        fixes.append(upgrade_to(copy.name, above.version, "the next release"))
    if below is not None:
        fixes.append(
            Fix(
                "downgrade",
                copy.name,
                f"=={below.version}",
                "the release before",
                f'pip install "{copy.name}=={below.version}"',
            )
        )
    reason = f": {release.yanked}" if release.yanked else ""
    return Finding(
        rule=f"yanked-{copy.name}",
        origin="release",
        verdict="hit",
        severity="warning",
        effect="install",
        title=f"{copy.name} {release.version} was yanked",
        why=f"Its authors yanked it from the index{reason}. Installers only use it where it is pinned.",
        confidence="confirmed",
        packages={copy.name: copy.version},
        fixes=tuple(fixes),
        evidence=(_YANKING,),
        here=f"{copy.name} {copy.version}",
    )


def _python(copy: Distribution, release: Published, package: Package, environment: Environment) -> Iterator[Finding]:
    python = environment.python
    wanted = release.pythons
    if not python or wanted is None or not is_version(python):
        return
    exact = python.count(".") > 1
    if contains(wanted, key_of(python)) or (not exact and contains(wanted, key_of(f"{python}.99"))):
        return
    fitting = [each for each in package.releases if each.yanked is None and _takes(each, python)]
    newest = fitting[-1].version if fitting else None
    text = f"the newest release for Python {python}"
    fixes = () if newest is None else (downgrade_to(copy.name, newest, text, kind="pin"),)
    yield Finding(
        rule=f"python-{copy.name}",
        origin="metadata",
        verdict="hit",
        severity="warning",
        effect="install",
        title=f"{copy.name} {release.version} does not support Python {python}",
        confidence="confirmed",
        why=f"It declares Requires-Python {release.requires_python}; installers reject it.",
        packages={copy.name: copy.version},
        facts=("python",),
        fixes=fixes,
        evidence=("https://packaging.python.org/en/latest/specifications/core-metadata/#requires-python",),
        here=f"{copy.name} {copy.version}, Python {python}",
    )


def _takes(release: Published, python: str) -> bool:
    return release.pythons is None or contains(release.pythons, key_of(python))


def _glibc(copy: Distribution, release: Published, package: Package, environment: Environment) -> Iterator[Finding]:
    glibc = environment.glibc
    if not glibc or not release.glibc or environment.os not in (None, "linux") or environment.machine not in (None, "x86_64"):
        return
    if key_of(release.glibc) <= key_of(glibc):
        return
    fitting = [each for each in package.releases if each.yanked is None and each.glibc and key_of(each.glibc) <= key_of(glibc)]
    near = [each.version for each in fitting if key_of(each.version) > key_of(release.version)][:1]
    older = [each.version for each in fitting if key_of(each.version) < key_of(release.version)][-1:]
    fixes = [upgrade_to(copy.name, each, "the next release with a wheel for it") for each in near]
    fixes += [downgrade_to(copy.name, each, "the last release before it") for each in older]
    yield Finding(
        rule=f"glibc-{copy.name}",
        origin="build",
        verdict="hit",
        severity="warning",
        effect="install",
        title=f"{copy.name} {release.version} has no wheel for glibc {glibc}: it needs {release.glibc}",
        why="Installers skip the wheels and build the source distribution, which takes long and often fails.",
        confidence="confirmed",
        packages={copy.name: copy.version},
        facts=("glibc",),
        fixes=tuple(fixes),
        evidence=("https://peps.python.org/pep-0600/",),
        here=f"{copy.name} {copy.version}, glibc {glibc}",
    )
