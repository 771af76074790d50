"""What is wrong with a need, release by release."""

from __future__ import annotations

from compat.interfaces.needs import Verdict
from scripts.surface.judged import Judged, _note


def _noted(*verdicts: Verdict) -> Judged:
    entry = Judged()
    for at, verdict in enumerate(verdicts):
        _note(entry, at, verdict)
    return entry


def _lacks(kind: str, missing: str) -> Verdict:
    return Verdict(met=False, kind=kind, missing=missing)


def test_each_keyword_has_the_releases_that_do_not_take_it() -> None:
    entry = _noted(Verdict(met=True), _lacks("keyword", "model"), _lacks("keyword", "config"), _lacks("keyword", "config"))
    assert entry.problems == {("keyword", "model"): 0b0010, ("keyword", "config"): 0b1100}
    assert (entry.met, entry.unmet) == (0b0001, 0b1110)


def test_a_name_is_one_problem_whichever_part_of_it_is_missing() -> None:
    entry = _noted(_lacks("name", "a.b.c"), Verdict(met=True), _lacks("name", "a.b"))
    assert entry.problems == {("name", "a.b"): 0b101}


def test_a_name_and_a_keyword_are_two() -> None:
    entry = _noted(_lacks("name", "a.b"), _lacks("keyword", "x"), _lacks("name", "a"))
    assert entry.problems == {("name", "a"): 0b101, ("keyword", "x"): 0b010}
