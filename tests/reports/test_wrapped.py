"""Lines that a terminal or a mail program has wrapped."""

from __future__ import annotations

import textwrap

from hypothesis import given
from hypothesis import strategies as st

from compat.reports.lines import JOINED
from compat.reports.wrapped import unwrapped

TRACEBACK = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/accelerate/utils/modeling.py", line 10, in infer_auto_device_map
    value = call(value)
ImportError: cannot import name 'build_regex_from_schema' from 'outlines.fsm.json_schema' (/opt/venv/lib/outlines.py)"""


def readings(text: str) -> list[list[str]]:
    return [[line for line in reading.split("\n") if line != JOINED] for reading in unwrapped(text)]


def test_cut_at_a_column() -> None:
    cut = "\n".join(line[at : at + 80] for line in TRACEBACK.split("\n") for at in range(0, len(line), 80))
    assert TRACEBACK.split("\n") in readings(cut)


def test_wrapped_between_words() -> None:
    lines = [textwrap.wrap(line, 80, break_long_words=False, drop_whitespace=True) for line in TRACEBACK.split("\n")]
    assert TRACEBACK.split("\n") in readings("\n".join(part for line in lines for part in line))


def test_lines_keep_their_numbers() -> None:
    text = f"{'a' * 60}\n{'b' * 60}\nc\nlast"
    assert [reading.split("\n")[-1] for reading in unwrapped(text)] == ["last"] * len(readings(text))
    assert all(reading.count("\n") == text.count("\n") for reading in unwrapped(text))


def test_what_is_not_wrapped_has_one_reading() -> None:
    assert readings("short\nlines\nonly") == []
    assert readings(TRACEBACK) == []


@given(st.text(alphabet="ab \n", max_size=400), st.integers(40, 90))
def test_a_text_keeps_its_letters(text: str, width: int) -> None:
    cut = "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width))
    for reading in unwrapped(cut):
        assert reading.count("\n") == cut.count("\n")
        assert "".join(reading.replace(JOINED, "").split()) == "".join(cut.split())
