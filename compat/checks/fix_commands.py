"""Fixes that change the version of one package, with a command for pip or for the tool that manages the project."""

from __future__ import annotations

from compat.model import Finding, Fix
from compat.records import replace
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def upgrade_to(name: str, version: str, text: str) -> Fix:
    """A fix that upgrades to ``version`` or later."""
    return Fix("upgrade", name, f">={version}", text, f'pip install "{name}>={version}"')


def downgrade_to(name: str, version: str, text: str, *, kind: str = "downgrade") -> Fix:
    """A fix that downgrades to ``version`` or earlier; the command installs exactly ``version``, the newest one that works."""
    return Fix(kind, name, f"<={version}", text, f'pip install "{name}=={version}"')


def in_project(finding: Finding, kind: str) -> Finding:
    """The finding with fix commands for the project tool that belongs to this kind of file (such as ``uv add``)."""
    from compat.formats.registry import format_named  # imported late: not needed for installed environments

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
    """Yield the nearest good release after and before the installed one; ``check`` may reject a release."""
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
