"""Objects of classes that no release of transformers has: a model's own code, written for another release."""

from __future__ import annotations

import pytest

from tests.diagnosis.test_named_releases import with_release
from tests.diagnosis.test_symptoms import said

ERROR = "AttributeError: '{}' object has no attribute '{}'"
FRAMES = """Traceback (most recent call last):
  File "/root/.cache/huggingface/modules/transformers_modules/some-model/tokenization_some.py", line 68, in __init__
    super().__init__(
  File "/opt/venv/lib/python3.10/site-packages/transformers/tokenization_utils.py", line 366, in __init__
    self._add_tokens(self.all_special_tokens_extended, special_tokens=True)
  File "/opt/venv/lib/python3.10/site-packages/transformers/tokenization_utils.py", line 462, in _add_tokens
    current_vocab = self.get_vocab().copy()
  File "/root/.cache/huggingface/modules/transformers_modules/some-model/tokenization_some.py", line 105, in get_vocab
    return dict(self.word_table)
"""


@pytest.mark.parametrize(("owner", "name"), [("SomeTokenizer", "sp_model"), ("OtherLMTokenizer", "vocab")])
def test_a_tokenizer_that_is_asked_before_it_is_set_up(owner: str, name: str) -> None:
    (finding,) = said(ERROR.format(owner, name), with_release("transformers", "4.38.1"))
    assert finding.rule == "symptom-own-code"
    assert (finding.fixes[0].kind, finding.fixes[0].package, finding.fixes[0].spec) == ("downgrade", "transformers", "<4.34")
    assert said(ERROR.format(owner, name), with_release("transformers", "4.33.3")) == []


def test_frames_show_who_asked_for_any_attribute() -> None:
    text = FRAMES + ERROR.format("SomeTokenizer", "word_table")
    (finding,) = said(text, with_release("transformers", "4.40.0"))
    assert (finding.rule, finding.verdict, finding.confidence) == ("symptom-own-code", "hit", "confirmed")
    assert said(ERROR.format("SomeTokenizer", "word_table")) == []  # without them it may be missing for any reason


def test_what_the_base_class_sets_since_the_installed_release() -> None:
    (finding,) = said(ERROR.format("SomeVisionLM", "all_tied_weights_keys"), with_release("transformers", "5.2.0"))
    assert (finding.fixes[0].package, finding.fixes[0].spec) == ("transformers", "<5.0.0")
    assert "uses PreTrainedModel.all_tied_weights_keys since 5.0.0" in finding.title


@pytest.mark.parametrize(
    ("owner", "name", "release", "older"),
    [
        ("SomeOwnConfig", "num_hidden_layers", "4.45.0", None),
        ("SomeOwnConfig", "rope_scaling", "4.46.1", "<4.45.0"),  # its base has it from 5.0 on, those of models before
        ("SomeOwnForCausalLM", "lm_heads", "4.50.0", None),
    ],
)
def test_a_class_without_what_others_of_its_kind_have(owner: str, name: str, release: str, older: str | None) -> None:
    (finding,) = said(ERROR.format(owner, name), with_release("transformers", release))
    assert (finding.rule, finding.verdict) == ("symptom-own-code", "possible")
    assert (finding.fixes[0].kind, finding.fixes[0].package, finding.fixes[0].spec) == ("downgrade", "transformers", older)


@pytest.mark.parametrize(
    ("owner", "name", "release"),
    [
        ("SomeOwnConfig", "rope_parameters", "4.50.0"),  # no configuration has it before 5.0: the code wants a newer one
        ("LlamaTokenizer", "sp_model", "4.50.0"),  # a class of transformers itself
        ("Reader", "vocab", "4.50.0"),
    ],
)
def test_other_classes_are_left_to_others(owner: str, name: str, release: str) -> None:
    found = said(ERROR.format(owner, name), with_release("transformers", release))
    assert [each for each in found if each.rule == "symptom-own-code"] == []


def test_nothing_is_said_of_transformers_where_nothing_speaks_of_it() -> None:
    assert said(ERROR.format("PipelineConfig", "steps")) == []


@pytest.mark.parametrize(
    "text",
    [
        "AttributeError: 'LLaDAModelLM' object has no attribute 'all_tied_weights_keys'\n",
        "Error: Model loading error: Model initialization failed: 'MiniCPMV' object has no attribute 'all_tied_weights_keys'\n",
    ],
)
def test_the_release_is_not_stated_for_what_only_transformers_asks_for(text: str) -> None:
    (finding,) = said(text)
    assert finding.title.startswith("transformers uses PreTrainedModel.all_tied_weights_keys since 5.0.0")
    assert (finding.fixes[0].kind, finding.fixes[0].spec) == ("downgrade", "<5.0.0")


def test_what_the_users_own_line_asks_for_is_left_to_others() -> None:
    error = "AttributeError: 'LLaDAModelLM' object has no attribute 'all_tied_weights_keys'"
    frame = '  File "/app/run.py", line 3, in main\n    print(model.all_tied_weights_keys)\n'
    (finding,) = said(f"Traceback (most recent call last):\n{frame}{error}\n")
    assert finding.rule == "symptom-interface"
