"""Every rule is given its own error, in the forms in which people paste one, and names itself."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

import pytest

from compat.api.commands import Options
from compat.api.diagnosis import report_on
from compat.diagnosis.diagnose import diagnose
from compat.diagnosis.symptoms import Symptom, symptoms
from compat.formats.described import environment_of
from compat.model import Environment
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.compiled import in_memory, open_matrix
from compat.rules.rule import RELATIONS, Rule, Signature

if sys.version_info >= (3, 11):
    from re import _parser as sre
else:
    import sre_parse as sre

SITE = "/opt/venv/lib/python3.11/site-packages"
TYPICAL: dict[str, Any] = {
    "os": "linux",
    "python": "3.11.9",
    "accelerators": [{"name": "NVIDIA A100-SXM4-80GB", "vendor": "nvidia", "compute_capability": "8.0"}],
}
COLAB = ("<ipython-input-5-a1b2c3> in <cell line: 1>()", "----> 1 trainer.train()", "", "8 frames")
"""The first frame of a notebook there, and what stands for those between it and the last one."""
PYTHONS_OWN = ("No module named ", "cannot import name ")
"""Messages that tell their class, however short they are."""
MATRIX = open_matrix(())
RULES = tuple(rule for rule in MATRIX.rules() if rule.errors)


class Writer:
    """Writes a text that a regular expression matches: first alternatives, repetitions as short as they may be."""

    def __init__(self) -> None:
        self.groups: dict[int, str] = {}

    def sequence(self, parsed: Iterable[Any]) -> str:
        return "".join(self.item(str(kind), value) for kind, value in parsed)

    def item(self, kind: str, value: Any) -> str:
        if kind == "LITERAL":
            return chr(value)
        if kind == "NOT_LITERAL":
            return "y" if value == ord("x") else "x"
        if kind == "ANY":
            return "x"
        if kind == "IN":
            return _member(value)
        if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, repeated = value
            return self.sequence(repeated) * max(least, int(most > 0 and str(repeated[0][0]) in ("ANY", "IN")))
        if kind == "SUBPATTERN":
            self.groups[value[0]] = self.sequence(value[-1])
            return self.groups[value[0]]
        if kind == "GROUPREF":
            return self.groups[value]
        if kind == "ATOMIC_GROUP":
            return self.sequence(value)
        return self.sequence(value[1][0]) if kind == "BRANCH" else ""


def _member(members: list[Any]) -> str:
    kind, value = str(members[0][0]), members[0][1]
    if kind == "NEGATE":
        excluded = {chr(each) for kind, each in members[1:] if str(kind) == "LITERAL"}
        return next(letter for letter in "xyz/1" if letter not in excluded)
    if kind == "CATEGORY":
        return {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " "}.get(str(value), "x")
    return chr(value[0] if kind == "RANGE" else value)


def text_of(pattern: str) -> str:
    return Writer().sequence(sre.parse(pattern))


def message_of(signature: Signature) -> str:
    """A message of a signature; its numbers are changed until those that it compares agree."""
    message = text_of(signature.message)
    digits = [match.start() for match in re.finditer(r"\d", message)]
    tries = [message, *(f"{message[:at]}{other}{message[at + 1 :]}" for at in digits for other in "234")]
    return next(each for each in tries if _matches(signature, each))


def _matches(signature: Signature, message: str) -> bool:
    found = re.search(signature.message, message)
    if found is None or not signature.relation:
        return found is not None
    return RELATIONS[signature.relation](int(found["a"]), int(found["b"]))


def frames_of(signature: Signature) -> list[str]:
    lines = []
    for number, frame in enumerate(signature.frames):
        file, _, function = text_of(frame).partition("::")
        file = file.strip("/") if file.endswith(".py") else f"{file.strip('/')}/module.py"
        lines += [f'  File "{SITE}/{file}", line {10 + number}, in {function or "call"}', "    value = call(value)"]
    return lines


def forms(signature: Signature) -> dict[str, str]:
    """The error as a whole traceback, its last line, that without its class, and the end of a cut-off traceback."""
    message = message_of(signature)
    last = f"{signature.exception}: {message}" if signature.exception else message
    frames = frames_of(signature)
    begin = ["Traceback (most recent call last):", '  File "/app/train.py", line 3, in <module>', "    main()"]
    found = {"traceback": "\n".join([*begin, *frames, last])}
    if not re.search(signature.message, "?"):  # a message that may be anything says nothing without its frames
        found["cut off"] = "\n".join([*frames[-2:], last])
        head = f"{signature.exception or 'Error'}                 Traceback (most recent call last)"
        found["colab"] = "\n".join([head, *COLAB, *frames[-2:], "", last])
        found["last line"] = last
        if signature.message.rstrip("$").endswith(r"\."):
            found["no full stop"] = last.removesuffix(".")
        if sum(map(str.isalpha, message)) >= 20 or message.startswith(PYTHONS_OWN):
            found["no class"] = message
    return found


def example_of(rule: Rule) -> dict[str, Any]:
    return next(each.environment for wanted in ("hit", "possible") for each in rule.examples if each.verdict == wanted)


def environments(rule: Rule) -> dict[str, Environment]:
    """Nothing known, the rule's own versions alone, and these on a common machine as far as the rule is not about another."""
    example = example_of(rule)
    versions = {"schema": "compat/environment/1", "distributions": example.get("distributions", [])}
    typical = {**versions, **{fact: example.get(fact, value) for fact, value in TYPICAL.items()}}
    return {
        "nothing": Environment(),
        "versions": environment_of(versions)[0],
        "typical": environment_of(typical)[0],
    }


def silent(rule: Rule, signature: Signature) -> list[tuple[str, str]]:

    missed = []
    for form, text in forms(signature).items():
        errors = parse_log(text)
        for where, environment in environments(rule).items():
            found = diagnose(text, errors, decisive(errors), environment, MATRIX)
            if rule.id not in {each.rule for each in found}:
                missed.append((form, where))
    return missed


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_names_itself(rule: Rule) -> None:
    assert {signature.message: missed for signature in rule.errors if (missed := silent(rule, signature))} == {}


def rewritten(signature: Signature) -> dict[str, str]:
    """The error as terminals, mail programs and forums show it."""
    plain = forms(signature)
    lines = plain["traceback"].split("\n")
    found = {
        "cut at a column": "\n".join(line[at : at + 80] for line in lines for at in range(0, len(line), 80)),
        "wrapped between words": "\n".join(
            part for line in lines for part in textwrap.wrap(line, 80, break_long_words=False, break_on_hyphens=False)
        ),
        "entities": plain["traceback"].replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;"),
    }
    if "last line" in plain:
        found["curly quotes"] = plain["last line"].replace("'", "’")
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_about_the_message_is_named_in_what_others_make_of_the_text(rule: Rule) -> None:
    for signature in rule.errors:
        message = message_of(signature)
        named = {each.id for each in RULES if any(re.search(other.message, message) for other in each.errors)}
        for form, text in rewritten(signature).items():
            found = report_on(text, environments(rule)["typical"], Options("diagnose", {}, (), None), MATRIX)
            assert not named.isdisjoint(each.rule for each in found.findings), form


@pytest.mark.parametrize("symptom", symptoms(), ids=lambda symptom: symptom.name)
def test_a_symptom_names_itself(symptom: Symptom) -> None:
    """Without any rule, which may know its message better."""
    message = text_of(symptom.pattern)
    assert symptom.search(message)
    frame = f'  File "{SITE}/vllm/engine.py", line 3, in call\n    value = call(value)\n'
    head = 'Traceback (most recent call last):\n  File "/app/train.py", line 3, in <module>\n    main()\n'
    last, missed = f"RuntimeError: {message}", []
    for text in (head + frame + last, frame + last, last, message):
        errors = parse_log(text)
        for environment in (Environment(), environment_of({"schema": "compat/environment/1", **TYPICAL})[0]):
            found = diagnose(text, errors, decisive(errors), environment, in_memory(()))
            if f"symptom-{symptom.name}" not in {each.rule for each in found}:
                missed.append(text)
    assert missed == []
