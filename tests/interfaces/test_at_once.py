from __future__ import annotations

import pytest

from compat.interfaces.at_once import AtOnce, open_at_once
from compat.interfaces.imports import eager_rows
from compat.interfaces.rows import open_rows
from tests.examples import THOROUGH

_ROWS = open_rows()
pytestmark = pytest.mark.skipif(_ROWS is None, reason="the tables are not there: scripts/build_matrix.py")


@pytest.fixture(scope="module")
def first() -> AtOnce:
    assert _ROWS is not None
    return open_at_once()


@pytest.mark.parametrize("accelerate", ["0.26.0", "0.26", "0.26.0+local"])
def test_releases_that_fail_beside_each_other(first: AtOnce, accelerate: str) -> None:
    assert first.failing({"peft": ["0.15.0"], "accelerate": [accelerate], "torch": ["2.6.0"]}) == {"peft"}


def test_others_do_not(first: AtOnce) -> None:
    assert first.failing({"peft": ["0.15.0"], "accelerate": ["1.6.0"], "nothing": ["1"]}) == frozenset()
    assert first.failing({"peft": ["0.15.0"], "accelerate": ["no version", "99.0", "0.", ".1", "²"]}) == frozenset()


def test_a_release_before_the_oldest_known_one_fails_like_it(first: AtOnce) -> None:
    assert first.failing({"peft": ["0.15.0"], "accelerate": ["0.12.0"]}) == {"peft"}
    assert first.failing({"peft": ["0.15.0"], "accelerate": ["0.1.dev1"]}) == frozenset()


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


def test_pairs_are_those_of_which_one_fails_to_import(first: AtOnce) -> None:
    assert _ROWS is not None
    for consumer in sorted(_ROWS.consumers):
        version = _ROWS.versions(consumer)[-1]
        for other in sorted(_ROWS.packages - {consumer}):
            for old in _ROWS.versions(other)[:: 15 if THOROUGH else 45]:
                here = {consumer: version, other: old}
                told = {(row.tier, frozenset((row.consumer, row.package))) for row, _ in eager_rows(_ROWS, here, job=True)}
                found = first.pairs(here, frozenset((other,)))
                assert found <= {pair for _, pair in told}
                assert found >= {pair for tier, pair in told if tier == "E1"}
                assert first.pairs(here, frozenset(("nothing",))) == set()


def test_a_pair_counts_if_any_use_of_an_application_runs_the_module(first: AtOnce) -> None:
    """unsloth 2025.6.2 imports a module of its own, which imports what transformers 4.49 does not have."""
    here = {"unsloth": "2025.6.2", "transformers": "4.49.0"}
    assert first.pairs(here, frozenset(("unsloth",))) == {frozenset(here)}
    assert first.pairs({**here, "transformers": "4.52.4"}, frozenset(("unsloth",))) == set()


def test_a_pair_counts_if_almost_every_job_runs_the_module(first: AtOnce) -> None:
    """transformers.modeling_utils of 4.57.0 asks torchao.quantization for a name that torchao 0.9.0 added."""
    assert _ROWS is not None
    here = {"transformers": "4.57.0", "torchao": "0.7.0"}
    assert first.pairs(here, frozenset(("torchao",))) == {frozenset(here)}
    assert first.pairs({**here, "torchao": "0.9.0"}, frozenset(("torchao",))) == set()
    assert eager_rows(_ROWS, here) == []
    assert {row.consumer for row, _ in eager_rows(_ROWS, here, job=True)} == {"transformers"}
