"""What constraints leave of requirements."""

from __future__ import annotations

import pytest

from compat.formats.listing import Entry
from compat.formats.requirements.lines import apply_constraints
from compat.formats.requirements.requirement import parse_requirement


def narrowed(requirement: str, *constraints: str) -> tuple[str | None, str | None, list[str]]:
    notes: list[str] = []
    limits = [Entry(parse_requirement(text), line, "c.txt") for line, text in enumerate(constraints, 1)]
    (entry,) = apply_constraints([Entry(parse_requirement(requirement), 3)], limits, notes)
    assert entry.line == 3
    return entry.distribution.version, entry.distribution.specifier, notes


@pytest.mark.parametrize(
    ("requirement", "constraints", "version", "specifier"),
    [
        ("torch", ["torch==2.6.0"], "2.6.0", None),
        ("torch>=2.4", ["torch==2.6.0"], "2.6.0", None),
        ("torch>=2.4", ["torch<2.7"], None, ">=2.4,<2.7"),
        ("torch", ["torch>=2.4", "torch<2.7", "torch>=2.4"], None, ">=2.4,<2.7"),
        ("torch", ["trl==1.0"], None, None),
        ("torch", ["torch"], None, None),
        ("torch==2.6.0", ["torch==2.6.0"], "2.6.0", None),
        ("torch ; os_name == 'nt'", ['torch==2.6.0 ; os_name=="nt"'], "2.6.0", None),
        ("torch", ["torch @ https://h.example/torch-2.6.0-cp311-cp311-linux_x86_64.whl"], "2.6.0", None),
        ("torch @ git+https://github.com/o/torch", ["torch==2.6.0"], None, None),
    ],
)
def test_a_constraint_narrows(requirement: str, constraints: list[str], version: str | None, specifier: str | None) -> None:
    assert narrowed(requirement, *constraints) == (version, specifier, [])


def test_a_constraint_for_other_places_is_not_applied() -> None:
    version, _, notes = narrowed("torch", "torch==2.6.0 ; os_name == 'nt'")
    assert version is None
    assert notes == ['c.txt:1: the constraint on torch only applies if os_name == "nt"; it was ignored']


@pytest.mark.parametrize(
    ("requirement", "constraint", "limit"),
    [
        ("torch==2.7.0", "torch==2.6.0", "==2.6.0"),
        ("torch==2.7.0", "torch<2.7", "<2.7"),
        ("torch>=2.7", "torch==2.6.0", "==2.6.0"),
        ("torch>=2.7", "torch<2.7", "<2.7"),
    ],
)
def test_a_constraint_that_excludes_the_requirement_is_kept_beside_it(requirement: str, constraint: str, limit: str) -> None:
    (entry,) = apply_constraints(
        [Entry(parse_requirement(requirement), 3)], [Entry(parse_requirement(constraint), 1, "c.txt")], []
    )
    assert entry.distribution.extra == {"excluded_by": {"specifier": limit, "place": "c.txt:1"}}
    asked = entry.distribution.specifier or f"=={entry.distribution.version}"
    assert requirement == f"torch{asked}"
