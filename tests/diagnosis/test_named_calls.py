"""Rejected arguments whose function only the code in the text shows."""

from __future__ import annotations

import pytest

from compat.model import Distribution, Environment, Finding, Workload
from tests.diagnosis.test_python_messages import said

CODE = """
trainer = ORPOTrainer(
    model = model,
    tokenizer = tokenizer,
    args = GRPOConfig(
        top_p = 0.9,
        report_to = "none",  # (none)
    ),
)
"""


def named(text: str) -> list[Finding]:
    return [each for each in said(text) if each.rule == "symptom-interface"]


@pytest.mark.parametrize(
    "title", ["# `unexpected keyword argument tokenizer` [FIXED]", "TypeError: __init__() got an unexpected keyword argument 'tokenizer'"]
)  # fmt: skip
def test_the_class_that_the_code_calls_with_it(title: str) -> None:
    (finding,) = named(f"{title}\n{CODE}")
    assert finding.title.startswith("trl.ORPOTrainer(tokenizer=) is in trl ")


def test_the_argument_of_an_inner_call_and_of_several_classes() -> None:
    (finding,) = named(f"got an unexpected keyword argument 'top_p'\n{CODE}")
    assert finding.title == "trl.GRPOConfig(top_p=) is in trl from 0.16.0 on"
    assert named(f"# unexpected keyword argument tokenizer\n{CODE}\nother = DPOTrainer(tokenizer=x)\n") == []


def test_a_message_that_names_its_function() -> None:
    assert not any(
        "ORPO" in each.title for each in named(f"TypeError: Foo.bar() got an unexpected keyword argument 'tokenizer'\n{CODE}")
    )


@pytest.mark.parametrize(
    ("argument", "task", "version", "titles"),
    [
        ("tokenizer", "orpo", "0.15.0", ["trl.ORPOTrainer(tokenizer=) is in trl from 0.8.2 to 0.14.0"]),
        ("max_seq_length", "sft", "0.24.0", ["trl.SFTConfig(max_seq_length=) is in trl from 0.9.2 to 0.19.1"]),
        ("tokenizer", "grpo", "0.24.0", []),  # neither the trainer nor its configuration had it
        ("nonsense", "sft", "0.24.0", []),
    ],
)
def test_the_trainer_of_the_task_where_nothing_says_which_call_it_was(
    argument: str, task: str, version: str, titles: list[str]
) -> None:
    text = f"TypeError: __init__() got an unexpected keyword argument '{argument}'\n"
    environment = Environment(distributions=(Distribution("trl", version),), workload=Workload(task=task))
    assert [each.title for each in said(text, environment)] == titles
