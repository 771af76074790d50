"""Findings that follow from tables: wheels against hardware, declared requirements, withdrawn releases."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.environment import Environment
    from compat.matrix.declared import Declared
    from compat.report import Finding

_opened: list[Declared] = []


def judge(environment: Environment, suspects: frozenset[str] | None = None) -> tuple[Finding, ...]:
    """Every derived finding about an environment whose devices are those that the job sees.

    ``suspects``: the only packages whose source has anything to say here (default: nobody has looked).
    """
    from compat.judge import builds, metadata, releases, surface
    from compat.judge.facts import Facts

    facts = Facts(environment)
    declared = _declared()
    of_source = () if suspects is not None and not suspects else surface.judge(facts, suspects)
    return (*builds.judge(facts), *metadata.judge(facts, declared), *releases.judge(facts, declared), *of_source)


def asked_about() -> frozenset[str]:
    """The distributions that derived findings may be about."""
    from compat.judge.builds import NAMES

    return NAMES | _declared().names


def _declared() -> Declared:
    from compat.matrix.declared import Declared

    if not _opened:
        _opened.append(Declared())
    return _opened[0]
