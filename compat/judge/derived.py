"""Findings that follow from tables: wheels against hardware, declared requirements, withdrawn releases."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.environment import Environment
    from compat.matrix.declared import Declared
    from compat.report import Finding

_opened: list[Declared] = []


def judge(environment: Environment) -> tuple[Finding, ...]:
    """Every derived finding about an environment whose devices are those that the job sees."""
    from compat.judge import builds, metadata, releases, surface
    from compat.judge.facts import Facts

    facts = Facts(environment)
    declared = _declared()
    return (*builds.judge(facts), *metadata.judge(facts, declared), *releases.judge(facts, declared), *surface.judge(facts))


def asked_about() -> frozenset[str]:
    """The distributions that derived findings may be about."""
    from compat.judge import surface
    from compat.judge.builds import NAMES

    return NAMES | _declared().names | surface.asked_about()


def _declared() -> Declared:
    from compat.matrix.declared import Declared

    if not _opened:
        _opened.append(Declared())
    return _opened[0]
