"""Which open questions are asked."""

from __future__ import annotations

from compat.environment import Distribution, Environment, Workload
from compat.judge.ranking import MOST, folded, likelihood
from compat.report import Finding


def question(rule: str, *unknown: str, verdict: str = "possible", about: bool = True) -> Finding:
    names = [path.split(".")[1] for path in unknown if about and path.startswith("distributions.")]
    packages = dict.fromkeys(names)
    return Finding(rule, "rule", verdict, "error", "crash", "t", "w", "confirmed", unknown=unknown, packages=packages)


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
    facts = ("accelerators", "python", "workload.launcher", "workload.task", "workload.batch_size")
    questions = [question(fact, fact) for fact in facts]
    kept, notes = folded(questions, SERVING)
    likeliest = sorted(questions, key=lambda finding: -likelihood(finding, SERVING))[:MOST]
    assert kept == tuple(finding for finding in questions if finding in likeliest)
    assert "2 more questions are open" in notes[0]


def test_of_those_that_the_same_fact_settles_one_is_asked() -> None:
    questions = [question("a", "accelerators"), question("b", "accelerators"), question("c", "workload.launcher")]
    kept, notes = folded(questions, SERVING)
    assert kept == (questions[0], questions[2])
    assert "1 more question is open" in notes[0]


def test_a_package_whose_presence_would_mend_it_is_seldom_there() -> None:
    mending = question("a", "distributions.llamafactory", about=False)
    assert likelihood(mending, SERVING) > likelihood(question("b", "distributions.llamafactory"), SERVING)
    assert likelihood(mending, SERVING) > likelihood(question("c", "accelerators"), SERVING)


def test_how_something_was_built_is_likelier_than_that_something_else_is_there() -> None:
    built, other = question("a", "distributions.transformers.source"), question("b", "distributions.apex")
    assert likelihood(built, SERVING) > likelihood(other, SERVING)


def test_few_likely_questions_need_no_note() -> None:
    questions = (question("a", "accelerators"), question("b", "workload.launcher"))
    assert folded(questions, SERVING) == (questions, ())
