"""Which open questions are asked."""

from __future__ import annotations

from compat.environment import Distribution, Environment, Workload
from compat.judge.ranking import MOST, folded, likelihood
from compat.report import Finding


def question(rule: str, *unknown: str, verdict: str = "possible") -> Finding:
    return Finding(rule, "rule", verdict, "error", "crash", "t", "w", "confirmed", unknown=unknown)


SERVING = Environment(distributions=(Distribution("transformers", "5.3.0"),), workload=Workload(task="serve"))


def test_what_a_task_needs_is_likelier_than_what_nobody_mentioned() -> None:
    needed, unmentioned = question("a", "distributions.vllm"), question("b", "distributions.deepspeed")
    assert likelihood(needed, SERVING) > likelihood(unmentioned, SERVING)
    assert likelihood(question("c", "distributions.transformers"), SERVING) > likelihood(needed, SERVING)


def test_every_further_unknown_fact_makes_it_less_likely() -> None:
    assert likelihood(question("a", "workload.launcher", "accelerators"), SERVING) < likelihood(
        question("a", "accelerators"), SERVING
    )


def test_hits_stay_and_unlikely_questions_are_counted() -> None:
    hit = question("hit", verdict="hit")
    unlikely = [question(f"q{number}", "distributions.apex", "workload.features.resume") for number in range(5)]
    kept, notes = folded([hit, *unlikely], SERVING)
    assert kept == (hit,)
    assert "5 more questions are open" in notes[0]
    assert "--all" in notes[0]


def test_no_more_than_the_likeliest_are_asked_in_the_order_of_the_report() -> None:
    questions = [question(f"q{number}", "accelerators") for number in range(MOST + 2)]
    kept, notes = folded(questions, SERVING)
    assert kept == tuple(questions[:MOST])
    assert "2 more questions are open" in notes[0]


def test_few_likely_questions_need_no_note() -> None:
    questions = (question("a", "accelerators"), question("b", "workload.launcher"))
    assert folded(questions, SERVING) == (questions, ())
