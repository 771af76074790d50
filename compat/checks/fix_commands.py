"""Fixes that move one package, and the command that makes one in a project, where the tool that wrote the lock makes it."""

from __future__ import annotations

from compat.model import Finding, Fix
from compat.records import replace
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def upgrade_to(name: str, version: str, text: str) -> Fix:
    """An upgrade to a release or a later one."""
    return Fix("upgrade", name, f">={version}", text, f'pip install "{name}>={version}"')


def downgrade_to(name: str, version: str, text: str, *, kind: str = "downgrade") -> Fix:
    """A release or an earlier one; the command takes that very release, the newest that does."""
    return Fix(kind, name, f"<={version}", text, f'pip install "{name}=={version}"')


def in_project(finding: Finding, kind: str) -> Finding:
    """The finding with commands for the project whose file of this kind it was found in."""
    from compat.formats.registry import format_named  # what is installed is in no file

    tool = format_named(kind).add
    return finding if tool is None else replace(finding, fixes=tuple(_by(tool, fix) for fix in finding.fixes))


def _by(tool: str, fix: Fix) -> Fix:
    if fix.command is None or not fix.command.startswith("pip install ") or not fix.spec:
        return fix
    return replace(fix, command=f"{tool} {fix.command.removeprefix('pip install ')}")


_FINAL = key_of("1")


def nearest_fixes(
    name: str, here: str, good: Iterable[str], known: tuple[str, ...], text: str, *, check: Callable[[str], bool] | None = None
) -> Iterator[Fix]:
    """The first good release after and the last one before the one that is there; ``check`` may turn a release down."""
    key = key_of(here)
    candidates = list(good)
    finals = [version for version in candidates if is_version(version) and key_of(version)[2:] == _FINAL[2:]] or candidates
    after = (version for version in finals if key_of(version) > key and (check is None or check(version)))
    before = (version for version in reversed(finals) if key_of(version) < key and (check is None or check(version)))
    above = next(after, None)
    if above is not None:
        stays = known[-1] in finals and (check is None or check(known[-1]))
        spec = f">={above}" if stays else f"=={above}"
        yield Fix("upgrade", name, spec, f"the next release that {text}", f'pip install "{name}{spec}"')
    below = next(before, None)
    if below is not None:
        yield Fix("downgrade", name, f"=={below}", f"the last release before that {text}", f'pip install "{name}=={below}"')
