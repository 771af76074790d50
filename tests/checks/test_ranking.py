"""Which open questions are asked."""

from __future__ import annotations

import pytest

from compat.checks.questions import LEAST, MOST, about_listed_packages, fold_questions, likelihood
from compat.model import Distribution, Environment, Finding, Source, Workload
from compat.records import replace
from compat.rules.compiled import Matrix, in_memory
from compat.rules.evaluate import judge
from compat.rules.loader import rule_of


def question(rule: str, *unknown: str, verdict: str = "possible") -> Finding:
    return Finding(rule, "rule", "t", "w", verdict, unknown=unknown)


def test_every_further_unknown_fact_makes_it_less_likely() -> None:
    assert likelihood(question("a", "workload.launcher", "accelerators")) < likelihood(question("a", "accelerators"))


def test_hits_stay_and_unlikely_questions_are_counted() -> None:
    hit = question("hit", verdict="hit")
    unlikely = [question(f"q{number}", "glibc", "workload.features.resume") for number in range(5)]
    kept, notes = fold_questions([hit, *unlikely])
    assert kept == (hit,)
    assert "5 more unlikely questions" in notes[0]
    assert "--all" in notes[0]


def test_no_more_than_the_likeliest_are_asked_in_the_order_of_the_report() -> None:
    facts = ("workload.precision", "driver", "workload.launcher", "workload.task", "workload.batch_size")
    questions = [question(fact, fact) for fact in facts]
    kept, notes = fold_questions(questions)
    likeliest = sorted(questions, key=lambda finding: -likelihood(finding))[:MOST]
    assert kept == tuple(finding for finding in questions if finding in likeliest)
    assert "2 more unlikely questions" in notes[0]


def test_of_those_that_the_same_fact_settles_one_is_asked() -> None:
    questions = [question("a", "driver"), question("b", "driver"), question("c", "workload.launcher")]
    kept, notes = fold_questions(questions)
    assert kept == (questions[0], questions[2])
    assert "1 more unlikely question" in notes[0]


def test_a_question_that_needs_more_facts_than_one_that_is_asked_waits_for_its_answer() -> None:
    questions = [question("a", "driver"), question("b", "driver", "workload.launcher")]
    kept, notes = fold_questions(questions)
    assert kept == (questions[0],)
    assert "1 more unlikely question" in notes[0]


def test_a_remark_on_a_release_alone_is_counted_unless_it_is_wanted() -> None:
    def remark(rule: str, origin: str = "rule", severity: str = "info", **more: tuple[str, ...]) -> Finding:
        return Finding(rule, origin, "t", "w", "hit", severity, packages={"a": "1"}, **more)

    shown = (remark("variable", facts=("variables",)), remark("late", "release"), remark("warned", severity="warning"))
    kept, notes = fold_questions([remark("bare"), *shown, remark("built", "build", facts=("build",))])
    assert kept == shown
    assert notes == ("2 remarks on features not known to be in use (--all shows them)",)
    assert fold_questions([remark("bare"), *shown], remarks=True) == ((remark("bare"), *shown), ())
    assert fold_questions([question("a", "driver")])[0] != ()
    assert fold_questions([replace(question("a", "driver"), severity="info")])[0] == ()


def test_few_likely_questions_need_no_note() -> None:
    questions = (question("a", "driver"), question("b", "workload.launcher"))
    assert fold_questions(questions) == (questions, ())


# --- What a rule leaves open here.


def of_rule(conditions: str, environment: Environment) -> Finding:
    (found,) = judge(environment, matrix_of(conditions))
    return found


def matrix_of(conditions: str) -> Matrix:
    import tomllib

    head = """
    [[rule]]
    id = "a-rule"
    title = "It fails"
    severity = "error"
    effect = "crash"
    confidence = "confirmed"
    why = "Because."
    evidence = ["https://github.com/huggingface/trl/issues/1"]
    errors = []
    """
    table = tomllib.loads(head + conditions)["rule"][0]
    table["fix"] = [{"config": "do something else"}]
    table["example"] = [{"hit": {"packages": {"trl": "0.1"}}}, {"clear": {"packages": {"trl": "2"}}}]
    return in_memory([rule_of(table)])


def there(*distributions: Distribution, **facts: object) -> Environment:
    return Environment(distributions=distributions, **facts)  # type: ignore[arg-type]


TRL = Distribution("trl", "0.20.0")


def test_a_package_that_nobody_mentioned_is_no_question() -> None:
    found = of_rule('packages = { trl = "<1", deepspeed = "<0.15" }', there(TRL))
    assert found.verdict == "possible"
    assert about_listed_packages([found]) == ()


def test_a_package_whose_release_is_open_is_one() -> None:
    found = of_rule('packages = { trl = "<1", transformers = ">=5" }', there(TRL, Distribution("transformers")))
    assert about_listed_packages([found]) == (found,)
    assert likelihood(found) >= LEAST, "the newest release is what installers take"


@pytest.mark.parametrize(("feature", "asked"), [("peft", True), ("zero-3", True), ("resume", False), ("fsdp2", False)])
def test_what_few_jobs_use_is_no_question(feature: str, asked: bool) -> None:
    found = of_rule(f'packages = {{ trl = "<1" }}\nwhen = {{ features = ["{feature}"] }}', there(TRL))
    assert found.verdict == "possible"
    assert (likelihood(found) >= LEAST) is asked


def test_a_rule_about_one_release_is_no_question_where_the_file_leaves_the_release_open() -> None:
    open_release = Distribution("transformers", specifier=">=4.40")
    found = of_rule('packages = { trl = "<1", transformers = "==4.55.2" }', there(TRL, open_release))
    assert 0 < likelihood(found) < LEAST


def test_a_release_that_a_pinned_one_excludes_is_impossible() -> None:
    conditions = 'packages = { trl = "<1", transformers = "==4.52.1" }'
    assert likelihood(of_rule(conditions, there(TRL, Distribution("transformers")))) == 0, "trl 0.20.0 requires 4.53.2"
    assert likelihood(of_rule(conditions, there(Distribution("trl", "0.17.0"), Distribution("transformers")))) > 0


def test_the_newest_release_is_the_newest_that_goes_with_the_pinned_ones() -> None:
    conditions = 'packages = { trl = "<1", huggingface-hub = "<1" }'
    newest = there(TRL, Distribution("huggingface-hub"))
    with_transformers_4 = there(TRL, Distribution("transformers", "4.57.1"), Distribution("huggingface-hub"))
    assert likelihood(of_rule(conditions, newest)) < likelihood(of_rule(conditions, with_transformers_4))


def test_an_older_release_is_less_likely_where_an_installer_selects_it() -> None:
    conditions = 'packages = { peft = "<1", accelerate = "<1" }'
    peft = Distribution("peft", "0.17.0")  # requires accelerate 0.21
    installed = likelihood(of_rule(conditions, there(peft, Distribution("accelerate"))))
    required = likelihood(of_rule(conditions, there(peft, Distribution("accelerate", source=Source("index")))))
    assert required < LEAST <= installed


def test_a_variable_that_nobody_stated_and_a_package_that_nobody_mentioned_exempt_from_nothing() -> None:
    conditions = """packages = { trl = "<1" }
    [[rule.unless]]
    variables = { TRL_FIXED = ["1"] }
    [[rule.unless]]
    packages = { llamafactory = "*" }
    """
    assert of_rule(conditions, there(TRL)).verdict == "hit"
    assert judge(there(TRL, variables={"TRL_FIXED": "1"}), matrix_of(conditions)) == ()
    assert judge(there(TRL, Distribution("llamafactory", "0.9.0")), matrix_of(conditions)) == ()


def test_what_only_an_exemption_leaves_open_is_never_folded() -> None:
    conditions = """packages = { trl = "<1" }
    when = { task = ["grpo"] }
    [[rule.unless]]
    features = ["vllm"]
    """
    found = of_rule(conditions, there(TRL, workload=Workload(task="grpo")))
    assert found.verdict == "possible"
    assert likelihood(found) == 1.0


@pytest.mark.parametrize(
    ("more", "fewer"),
    [
        ('python = ">=3.10"', 'python = ">=3.14"'),
        ('task = ["sft"]', 'task = ["prm"]'),
        ('model = ["qwen3-vl", "bamba"]', 'model = ["bamba", "zamba2"]'),
    ],
)
def test_a_condition_that_most_meet_is_likelier_than_one_that_few_do(more: str, fewer: str) -> None:
    rules = [f'packages = {{ trl = "<1" }}\nwhen = {{ {condition} }}' for condition in (more, fewer)]
    likely, unlikely = (likelihood(of_rule(each, there(TRL))) for each in rules)
    assert likely >= LEAST > unlikely
