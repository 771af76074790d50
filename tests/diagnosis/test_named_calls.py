"""Rejected arguments whose function only the code in the text shows."""

from __future__ import annotations

import pytest

from compat.model import Finding
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
