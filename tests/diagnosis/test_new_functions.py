"""Containers that a function of a package gets from code written before the package had that function."""

from __future__ import annotations

import pytest

from tests.diagnosis.test_named_releases import with_release
from tests.diagnosis.test_python_messages import said

TIED = "AttributeError: 'list' object has no attribute 'keys'"
ROPE = "TypeError: unsupported operand type(s) for |: 'list' and 'set'"


def frame(file: str, function: str) -> str:
    return f'Traceback (most recent call last):\n  File "{file}", line 3, in {function}\n    f()\n'


@pytest.mark.parametrize(
    ("error", "file", "function"),
    [
        (TIED, "/v/site-packages/transformers/modeling_utils.py", "PreTrainedModel.get_expanded_tied_weights_keys"),
        (TIED, "transformers/modeling_utils.py", "get_expanded_tied_weights_keys"),  # as summaries shorten it
        (ROPE, "/v/site-packages/transformers/modeling_rope_utils.py", "convert_rope_params_to_dict"),  # of many models
    ],
)
def test_the_last_release_without_the_function(error: str, file: str, function: str) -> None:
    (finding,) = said(frame(file, function) + error)
    assert (
        finding.title == f"{function.rpartition('.')[2]} of transformers, new in 5.0.0, receives a different type of container"
    )
    assert (finding.verdict, finding.fixes[0].spec, finding.fixes[1].kind) == ("possible", "<=4.57.6", "config")
    assert said(frame(file, function) + error, with_release("transformers", "4.57.1")) == ()


def test_a_summary_that_names_the_error_first() -> None:
    text = f'    {TIED}\n    File "transformers/modeling_utils.py", line 2489, in get_expanded_tied_weights_keys\n\nIt fails.\n'
    assert [finding.rule for finding in said(text)] == ["symptom-new-function"]


@pytest.mark.parametrize(
    ("error", "function"),
    [
        ("TypeError: 'NoneType' object is not iterable", "get_expanded_tied_weights_keys"),  # data may be missing
        (TIED, "save_pretrained"),  # every release has it
        (TIED, "forward"),  # in many classes
        (TIED, "no_such_function"),
    ],
)
def test_other_errors_and_functions(error: str, function: str) -> None:
    assert said(frame("/v/site-packages/transformers/modeling_utils.py", function) + error) == ()


def test_a_script_of_ones_own_that_is_called_like_a_package() -> None:
    assert said(frame("transformers/train.py", "get_expanded_tied_weights_keys") + TIED) == ()
