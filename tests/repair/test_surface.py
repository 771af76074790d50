"""Published source as clauses."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks import interfaces as rows
from compat.model import Environment, Workload
from compat.repair.candidates import Release
from compat.repair.rules import forbidden_by_source

pytestmark = pytest.mark.skipif(rows.open_rows_once() is None, reason="the tables are not there: scripts/build_matrix.py")


def _known(**versions: tuple[str, ...]) -> dict[str, tuple[Release, ...]]:
    return {name: tuple(Release(name, version) for version in found) for name, found in versions.items()}


def test_imports_that_fail_are_forbidden_together() -> None:
    known = _known(peft=("0.14.0", "0.15.0"), accelerate=("0.26.0", "0.32.0"))
    (found,) = forbidden_by_source(Environment(), known)
    assert found.together == (("peft", frozenset({"0.15.0"})), ("accelerate", frozenset({"0.26.0"})))
    assert (found.level, found.statement.kind) == ("errors left", "finding")
    assert "clear_device_cache" in found.statement.text


def test_a_copy_of_its_own_is_not_judged_by_its_version() -> None:
    from compat.model import Source

    known = _known(accelerate=("0.26.0",))
    known["peft"] = (Release("peft", "0.15.0", source=Source("vcs")),)
    assert list(forbidden_by_source(Environment(), known)) == []


def test_releases_without_what_the_code_uses_are_forbidden(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "from trl import ORPOTrainer\nORPOTrainer(None, tokenizer=None)\nORPOTrainer(typo_nobody_takes=1)\n", encoding="utf-8"
    )
    environment = Environment(workload=Workload(code=(str(script),)))
    known = _known(trl=("0.11.4", "0.12.0", "0.14.0", "0.16.0"))
    found = [each for each in forbidden_by_source(environment, known) if "ORPOTrainer(tokenizer=)" in each.statement.text]
    assert [each.together for each in found] == [(("trl", frozenset({"0.12.0", "0.16.0"})),)]
    assert not any("typo" in each.statement.text for each in forbidden_by_source(environment, known))


def test_the_reason_names_the_release_of_the_plan() -> None:
    """One clause is about every release with the line; what is said of a plan is about the one in it, without the others."""
    known = _known(peft=("0.15.0", "0.15.1", "0.15.2"), accelerate=("0.26.0",))
    (found,) = forbidden_by_source(Environment(), known)
    assert "and 2 more imports" in found.statement.text
    said = found.statement.about({"peft": "0.15.1", "accelerate": "0.26.0"})
    assert said.startswith("peft 0.15.1 imports accelerate")
    assert ".py:" not in said


def test_a_release_that_was_not_read_lacks_what_the_last_one_that_was_lacks() -> None:
    """No plan moves there because nothing is known of it; before the first release that was read, nothing is taken for granted."""
    read = rows.open_rows_once()
    assert read is not None
    newest = read.versions("transformers")[-1]
    known = _known(**{"auto-gptq": ("0.7.1",), "transformers": ("0.1", "4.46.3", newest, "99.0")})
    (found,) = [each for each in forbidden_by_source(Environment(), known) if "no_init_weights" in each.statement.text]
    assert found.together == (("auto-gptq", frozenset({"0.7.1"})), ("transformers", frozenset({newest, "99.0"})))


def test_a_release_between_two_that_were_read_may_have_what_one_of_them_has() -> None:
    known = _known(peft=("0.15.0",), accelerate=("0.26.0", "0.31.0.post9", "0.32.0"))
    (found,) = forbidden_by_source(Environment(), known)
    assert found.together[1] == ("accelerate", frozenset({"0.26.0"}))
