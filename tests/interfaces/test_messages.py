"""Messages of releases found in texts: by their template, in linear time, and only where they are not ambiguous."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.interfaces.messages import HOLE, Messages, Template, matched, open_messages, plain
from tests.examples import examples
from tests.growth import assert_linear

Run = Callable[..., "subprocess.CompletedProcess[str]"]
FILLED = st.text(st.sampled_from("abcXYZ019_ ./:'`-()[]<>="), min_size=1, max_size=30).map(str.strip).filter(bool)


@pytest.fixture(scope="module")
def messages() -> Messages:
    found = open_messages()
    assert found is not None
    return found


def template(text: str) -> Template:
    return Template("a", "raise", "ValueError", text, (), (), ())


@settings(max_examples=examples(150))
@given(st.data())
def test_a_message_made_from_a_shipped_template_is_found_again(data: st.DataObject) -> None:
    messages = open_messages()
    assert messages is not None
    package = data.draw(st.sampled_from(messages.packages))
    table = messages.table(package)
    wanted = table.template(data.draw(st.integers(0, len(table) - 1)))
    parts = wanted.text.split(HOLE)
    made = parts[0] + "".join(data.draw(FILLED) + part for part in parts[1:])
    before, after = data.draw(st.sampled_from(["", "worker 3: "])), data.draw(st.sampled_from(["", " (see the log)"]))
    found = messages.find(f"{before}{made}{after}", [package])
    assert wanted.text in {match.template.text for match in found}


@pytest.mark.parametrize(
    ("text", "seen", "letters"),
    [
        ("cannot use 3 heads", True, 14),
        ("ValueError: cannot use 3 heads", True, 14),
        ("cannot  use\n 3 heads of 4", True, 14),
        ("cannot use 3 head", False, 0),
        ("use 3 heads", False, 0),
        ("", False, 0),
    ],
)
def test_constant_parts_stand_in_order(text: str, seen: bool, letters: int) -> None:
    found = matched(template(f"cannot use {HOLE} heads"), plain(text))
    assert (found is not None) is seen
    assert found is None or found.letters == letters


@pytest.mark.parametrize(
    ("end", "given"), [(".", "size (6"), (").", "size (6)"), (").", "size (6)."), ("!.", "size (6!"), (" …", "size (6")]
)
def test_the_full_stop_of_a_message_may_be_missing(end: str, given: str) -> None:
    wanted = template(f"the heads ({HOLE}) must be divisible by the size ({HOLE}{end}")
    assert matched(wanted, f"ValueError: the heads (40) must be divisible by the {given}") is not None
    assert matched(wanted, "the heads (40) must be divisible by another size") is None


def test_the_end_of_a_long_message_may_be_cut_off() -> None:
    long = template(
        f"The tokenizer of {HOLE} has no chat template, which the trainer needs. Set one before the training starts."
    )
    assert matched(long, "The tokenizer of gpt2 has no chat template, which the trainer needs. Set one…") is not None
    assert matched(long, "The tokenizer of gpt2 has…") is None


def test_the_beginning_of_a_long_message_may_be_cut_off() -> None:
    long = template(
        f"Found an incompatible version of {HOLE}. Found version {HOLE}, but only versions above {HOLE} are supported"
    )
    assert matched(long, "Found version 0.15.0, but only versions above 0.16.0 are supported") is not None
    assert matched(long, "version 0.15.0, but only versions above 0.16.0 are supported") is not None
    assert matched(long, "ound version 0.15.0, but only versions above 0.16.0 are supported") is None
    assert matched(long, "but only above 0.16.0 are supported") is None


@pytest.mark.parametrize("text", ["version of torchao. Found version 0.15.0, but only versions above 0.16.0 are supported"])
def test_a_message_without_its_anchor_is_found_by_another(messages: Messages, text: str) -> None:
    assert "peft" in {match.template.package for match in messages.find(text)}


def test_most_long_messages_are_found_by_a_part_of_them(messages: Messages) -> None:
    table = messages.table("transformers")
    long = [each for each in table.templates() if each.kind == "raise" and len(each.text) > 120][::40]
    texts = [(each, each.text.replace(HOLE, "x_1")) for each in long]
    for parts in (
        [text[: len(text) * 2 // 3] for _, text in texts],
        [text[len(text) // 3 :].partition(" ")[2] for _, text in texts],
    ):
        found = sum(any(match.template == each for match in messages.find(part)) for (each, _), part in zip(texts, parts))
        assert found > len(texts) * 0.6


@pytest.mark.parametrize("piece", ["x", "no such file ", "a_b ", "'"])
def test_a_long_line_takes_linear_time(messages: Messages, piece: str) -> None:
    assert_linear(messages.find, lambda length: piece * (length // len(piece)), 400_000)


def test_random_words_take_linear_time(messages: Messages) -> None:
    words = [word for number in range(200) for word in messages.table("trl").texts[number].split()]
    random.Random(7).shuffle(words)
    assert_linear(messages.find, lambda times: " ".join(words * times), 80)


def test_every_package_has_messages_with_places_and_releases(messages: Messages) -> None:
    assert {"trl", "transformers", "vllm", "peft", "accelerate"} <= set(messages.packages)
    for package in messages.packages:
        first = next(messages.table(package).templates())
        assert first.places
        assert all(set(place.versions) <= set(first.known) for place in first.places)


# compat diagnose


def diagnosed(run: Run, text: str, *words: str) -> list[dict[str, Any]]:
    done = run("diagnose", "-", *words, "--format", "json", stdin=text)
    assert done.returncode in (0, 1), done.stderr
    return [each for each in json.loads(done.stdout)["findings"] if each["origin"] == "message"]


DELIMITED = (
    "ValueError: You passed `packing=False` to the SFTTrainer/SFTConfig, but you didn't pass a `dataset_text_field` or"
    " `formatting_func` argument.\n"
)


def test_diagnose_says_who_raises_a_message_since_when_and_on_which_condition(
    compat: Run, described: Callable[..., str]
) -> None:
    found = diagnosed(compat, DELIMITED, "--environment", described({"trl": "0.9.6"}))
    assert [(each["verdict"], each["packages"], each["confidence"]) for each in found] == [
        ("hit", {"trl": "0.9.6"}, "confirmed")
    ]
    why = found[0]["why"]
    assert why.startswith("trl raises ValueError in trl.trainer.sft_trainer, SFTTrainer.__init__")
    assert "since 0.9.2, until 0.10.1, when" in why
    assert "(and `not args.packing`)" in why


def test_a_release_that_does_not_have_the_message_is_not_blamed(compat: Run, described: Callable[..., str]) -> None:
    assert diagnosed(compat, DELIMITED, "--environment", described({"trl": "0.24.0"})) == []


def test_without_a_release_it_is_a_question(compat: Run) -> None:
    assert [each["verdict"] for each in diagnosed(compat, DELIMITED)] == ["possible"]


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: unsupported\n",
        "KeyError: 'not found'\n",
        "RuntimeError: Invalid value\n",
        "ValueError: not supported yet\n",
    ],
)
def test_a_generic_text_is_no_answer(compat: Run, text: str) -> None:
    assert diagnosed(compat, text) == []


def test_a_message_of_another_class_is_another_message(compat: Run) -> None:
    assert diagnosed(compat, DELIMITED.replace("ValueError", "KeyError")) == []
