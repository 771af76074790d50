"""Conditions in published source as typed values: tests of facts, and their combinations.

Separate from :mod:`compat.interfaces.guards`, which parses them from source text, so that a check does not import a parser.
"""

from __future__ import annotations

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias


@record(frozen=True)
class FactTest:
    """A fact compared with a value.

    ``fact``: package, installed, capability, devices, python, os, variable, feature or precision; empty if the condition
    was not understood. ``name`` is the distribution, the variable or the feature.
    """

    fact: str = ""
    name: str = ""
    operator: str = ""
    value: str = ""


@record(frozen=True)
class Both:
    parts: tuple[Condition, ...]


@record(frozen=True)
class Either:
    parts: tuple[Condition, ...]


@record(frozen=True)
class Opposite:
    part: Condition


Condition: TypeAlias = "FactTest | Both | Either | Opposite"


def polarized(condition: Condition, *, wanted: bool = True) -> Iterator[tuple[FactTest, bool]]:
    """Yield the tests of a condition, each with the result that makes the condition hold."""
    if isinstance(condition, FactTest):
        if condition.fact:
            yield condition, wanted
    elif isinstance(condition, Opposite):
        yield from polarized(condition.part, wanted=not wanted)
    else:
        for part in condition.parts:
            yield from polarized(part, wanted=wanted)


def fact_tests(condition: Condition) -> Iterator[FactTest]:
    """Yield the tests of facts in a condition."""
    return (test for test, _ in polarized(condition))
