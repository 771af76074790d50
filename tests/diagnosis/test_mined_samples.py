"""A sample of what is mined names itself: messages that releases raise, and rows of what releases lack of one another."""

from __future__ import annotations

import random
import re
from itertools import islice

from compat.diagnosis.diagnose import diagnose
from compat.interfaces.messages import HOLE, open_messages
from compat.interfaces.rows import Row, open_rows
from compat.model import Distribution, Environment, Finding
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.compiled import in_memory
from tests.examples import examples

SEED, SAMPLE = 20260101, examples(320)
SITE = "/opt/venv/lib/python3.11/site-packages"


def said(text: str, environment: Environment) -> tuple[Finding, ...]:
    errors = parse_log(text)
    return diagnose(text, errors, decisive(errors), environment, in_memory(()))


def traceback_of(file: str, function: str, last: str) -> str:
    head = 'Traceback (most recent call last):\n  File "/app/train.py", line 3, in <module>\n    main()\n'
    return f'{head}  File "{SITE}/{file}", line 10, in {function}\n    call(value)\n{last}\n'


def test_most_mined_messages_name_their_package() -> None:
    """With the frame that raises them and the release that has them; what is raised with nothing but a value says nothing."""
    messages = open_messages()
    known = [(package, number) for package in messages.packages for number in range(len(messages.table(package)))]
    random.Random(SEED).shuffle(known)
    templates = (messages.table(package).template(number) for package, number in known)
    telling = (each for each in templates if each.kind == "raise" and each.places and sum(map(str.isalpha, each.text)) >= 24)
    named = 0
    for template in islice(telling, SAMPLE):
        place = template.places[0]
        text = template.text.replace(HOLE, "x7")
        last = f"{template.name or 'ValueError'}: {text}"
        release = Environment(distributions=(Distribution(template.package, place.versions[-1]),))
        file = f"{place.module.replace('.', '/')}.py"
        found = said(traceback_of(file, place.function.rpartition(".")[2] or "f", last), release)
        named += any(template.package in each.packages for each in found)
    assert named >= 0.9 * SAMPLE, named


def test_most_mined_rows_name_both_sides() -> None:
    """The error that a row leads to: the provider lacks what the consumer takes; with both releases and with the frame."""
    rows = open_rows()
    assert rows is not None
    names = ("trl", "vllm", "unsloth", "peft", "axolotl", "sglang", "verl", "accelerate", "diffusers", "lm-eval", "optimum")
    mined = [
        row
        for name in names
        for kind in ("E", "R")
        for _, row in rows.all_of(name, kind=kind)
        if row.problem in ("name", "keyword") and row.bad and row.consumer != row.package
    ]
    named = 0
    for row in random.Random(SEED).sample(mined, SAMPLE):
        pair = (Distribution(row.consumer, row.version), Distribution(row.package, row.bad[-1]))
        found = said(
            traceback_of(row.path, row.scope.rpartition(".")[2] or "<module>", _error(row)), Environment(distributions=pair)
        )
        named += any({row.consumer, row.package} <= set(each.packages) for each in found)
    assert named >= 0.9 * SAMPLE, named


def _error(row: Row) -> str:
    """What Python says where the release does not have it."""
    if row.problem == "keyword":
        function = f"{row.target.rpartition('.')[2]}.{row.name}" if row.name else row.target.rpartition(".")[2]
        return f"TypeError: {function}() got an unexpected keyword argument '{row.missing}'"
    missing = re.sub(r"^.*\.", "", row.missing)
    module = row.missing.rpartition(".")[0] or row.target
    return f"ImportError: cannot import name '{missing}' from '{module}' ({SITE}/{module.replace('.', '/')}.py)"
