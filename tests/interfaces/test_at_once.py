from __future__ import annotations

import pytest

from compat.interfaces.at_once import AtOnce
from compat.interfaces.rows import open_rows, packed_at_once
from tests.examples import THOROUGH

_ROWS = open_rows()
pytestmark = pytest.mark.skipif(_ROWS is None, reason="the tables are not there: scripts/build_matrix.py")


@pytest.fixture(scope="module")
def first() -> AtOnce:
    assert _ROWS is not None
    return AtOnce(packed_at_once(_ROWS))


@pytest.mark.parametrize("accelerate", ["0.26.0", "0.26", "0.26.0+local"])
def test_releases_that_fail_beside_each_other(first: AtOnce, accelerate: str) -> None:
    assert first.failing({"peft": ["0.15.0"], "accelerate": [accelerate], "torch": ["2.6.0"]}) == {"peft"}


def test_others_do_not(first: AtOnce) -> None:
    assert first.failing({"peft": ["0.15.0"], "accelerate": ["1.6.0"], "nothing": ["1"]}) == frozenset()
    assert first.failing({"peft": ["0.15.0"], "accelerate": ["no version", "99.0"]}) == frozenset()


def test_one_of_several_is_enough(first: AtOnce) -> None:
    assert first.failing({"peft": ["0.14.0", "0.15.0"], "accelerate": ["1.6.0", "0.26.0"]}) == {"peft"}


def test_it_says_what_the_rows_say(first: AtOnce) -> None:
    assert _ROWS is not None
    for consumer in sorted(_ROWS.consumers):
        version = _ROWS.versions(consumer)[-1]
        for other in sorted(_ROWS.packages - {consumer}):
            for old in _ROWS.versions(other)[:: 15 if THOROUGH else 45]:
                here = {consumer: version, other: old}
                listed = {name: [each] for name, each in here.items()}
                for tiers in (("E1",), ("E1", "E2"), ("E1", "E2", "R1")):
                    told = {row.consumer for row in _ROWS.broken(here, tiers=tiers)}
                    found = first.failing(listed, tiers=tiers)
                    assert found == told
                    assert _ROWS.broken(here, tiers=tiers, consumers=found) == _ROWS.broken(here, tiers=tiers)
