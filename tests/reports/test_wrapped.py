"""Lines that a terminal or a mail program has wrapped."""

from __future__ import annotations

import textwrap

from hypothesis import given
from hypothesis import strategies as st

from compat.reports.lines import JOINED
from compat.reports.wrapped import readings as every_reading
from compat.reports.wrapped import unwrapped, with_whole_name

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


def test_an_error_below_labels_is_joined() -> None:
    text = "[rank0]:     with self._cp_context(\n[rank0]: AttributeError: 'Accelerator' object has no\nattribute '_cp_context'"
    assert any("'Accelerator' object has no attribute '_cp_context'" in each for each in every_reading(text))


def test_an_error_that_is_cut_inside_a_word_is_joined() -> None:
    text = "TypeError: Trainer.__init__() got an unexpected key\nword argument 'tokenizer'"
    assert any("got an unexpected keyword argument 'tokenizer'" in each for each in every_reading(text))


def test_a_cut_name_is_completed_from_the_code_above() -> None:
    line = "    from transformers import Cache, EncoderDecoderCache\nImportError: cannot import name 'EncoderDeco"
    assert with_whole_name(line).endswith("cannot import name 'EncoderDecoderCache'")
    assert with_whole_name("import pkg_resources\nNo module named 'pkg_resour…").endswith("'pkg_resources'")
    two = "from x import NameOne, NameTwo\ncannot import name 'Name"
    assert with_whole_name(two) == two


def test_letters_that_an_image_shows_as_digits() -> None:
    text = "libcudart.so.12: cannot open shared object fi1e, symb0l c10 of sm_120"
    assert "libcudart.so.12: cannot open shared object file, symbol c10 of sm_120" in list(every_reading(text))


def test_a_long_log_has_one_reading() -> None:
    assert list(every_reading("a line of a log that goes on and on and on and on\n" * 6000)) == []
