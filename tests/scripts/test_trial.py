"""The trial of random environments: what a seed stands for, what a table counts, and every program's header."""

from __future__ import annotations

import ast
from pathlib import Path

from scripts.trial.__main__ import table
from scripts.trial.choice import chosen, programs
from scripts.trial.outcome import Result, Seen

RELEASES = [f"1.{minor}" for minor in range(20)]


def test_a_program_says_what_it_requires_and_compiles() -> None:
    assert len(programs()) > 50
    for program in programs():
        assert program.requires
        ast.parse(program.text, program.name)


def test_a_seed_stands_for_one_choice_and_never_pins_the_newest() -> None:
    again = [chosen(seed, lambda name: RELEASES) for seed in range(200)]
    assert again == [chosen(seed, lambda name: RELEASES) for seed in range(200)]
    pinned = {version for each in again for version in each.pins.values()}
    assert "1.19" not in pinned
    assert "1.0" not in pinned
    assert {len(each.pins) for each in again} == {1, 2, 3}


def test_what_is_pinned_is_required_once() -> None:
    for seed in range(50):
        choice = chosen(seed, lambda name: RELEASES)
        names = [each.partition("==")[0] for each in choice.requirements]
        assert len(names) == len(set(names))
        assert set(choice.program.requires) <= set(names)


def test_a_package_without_releases_is_not_pinned() -> None:
    assert not any(chosen(seed, lambda name: []).pins for seed in range(50))


def test_the_table_counts_what_was_predicted_named_and_wrong(tmp_path: Path) -> None:
    seen = [Seen("rule", "title")]
    results = [
        Result(1, "a", "3.11", ["a==1"], "crash", "ImportError: x", errors=seen, named=seen),
        Result(2, "a", "3.11", ["a==1"], "crash", "ImportError: y"),
        Result(3, "a", "3.11", ["a==1"], "ok", errors=seen),
        Result(4, "a", "3.11", ["a==1"], "ok"),
        Result(5, "a", "3.11", ["a==1"], "unresolvable"),
    ]
    assert [each.wrong for each in results] == [False, True, True, False, False]
    lines = table(results).splitlines()
    assert lines[1] == "crashes: 2, predicted by doctor 1, named by diagnose 1"
    assert lines[2] == "programs that run: 2, with an error from doctor 1"
    assert any("ImportError: y" in line for line in lines)
    results[0].write(tmp_path / "1.json")
    assert Result.read(tmp_path / "1.json") == results[0]
