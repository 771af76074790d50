"""Lines as they stand in a log, and what is taken off them."""

from __future__ import annotations

import re

import pytest

from compat.reports.lines import read_lines, without_escapes, without_old_bars


def texts(text: str) -> list[str]:
    return [line.text for line in read_lines(text)]


@pytest.mark.parametrize(
    "coloured",
    [
        "\x1b[1;31mno\x1b[0m",
        "\\x1b[31mno\\x1b[0m",
        "\\033[31mno\\033[0m",
        "[1;31mno[0m",
        "\x1b]8;;file:x\x07no\x1b]8;;\x07",
        "\ufeffno",
    ],
)
def test_terminal_sequences_are_taken_out(coloured):
    assert without_escapes(coloured) == "no"


def test_brackets_that_are_no_colour_stay():
    assert without_escapes("rate(x[5m]) and [m for m in y]") == "rate(x[5m]) and [m for m in y]"


def test_numbers_follow_the_text_and_overwritten_lines_share_one():
    lines = list(read_lines("a\r\n 10%|# |\r 20%|## |\rb\n\nc"))
    assert [(line.number, line.text) for line in lines if not line.text.endswith("|")] == [
        (1, "a"),
        (2, "b"),
        (3, ""),
        (4, "c"),
    ]


def test_a_progress_bar_before_the_text_is_taken_off():
    assert texts("  0%|          | 0/10 [00:00<?, ?it/s]Traceback") == ["Traceback"]
    assert texts("100%|██████████| 3/3 [00:01<00:00,  2.5it/s, loss=0.1]") == [
        "100%|██████████| 3/3 [00:01<00:00,  2.5it/s, loss=0.1]"
    ]


@pytest.mark.parametrize(
    ("line", "text", "source", "logger", "rank", "quiet"),
    [
        ("[rank2]:   x", "  x", "[rank2]:", "", 2, False),
        ("[default0]:x", "x", "[default0]:", "", 0, False),
        ("(Worker rank=3 pid=9) x", "x", "(Worker rank=3 pid=9)", "", 3, False),
        ("(EngineCore_0 pid=9) INFO 01-02 12:00:00 [core.py:7] x", "x", "(EngineCore_0 pid=9)", "core.py:7", None, True),
        ("I0102 12:00:00.123456 99 a/b.cc:3] x", "x", "", "a/b.cc:3", None, True),
        ("vllm-1  |   x", "  x", "vllm-1", "", None, False),
        ("[INFO|trainer.py:698] 2025-02-13 10:00:00,123 >> x", "x", "", "trainer.py:698", None, True),
        ("ERROR:torch.distributed:x", "x", "", "log", None, False),
        ("ERROR:ValueError: x", "ERROR:ValueError: x", "", "", None, False),
        ("2025-01-02 12:00:00,123\tERROR worker.py:844 -- x", "x", "", "worker.py:844", None, False),
        ("> > x", "x", "", "", None, False),
        (">>> x", ">>> x", "", "", None, False),
        ("(x + y) z", "(x + y) z", "", "", None, False),
        ("a | b", "a | b", "", "", None, False),
    ],
)
def test_labels(line, text, source, logger, rank, quiet):
    (found,) = read_lines(line)
    assert found[:6] == (1, text, source, logger, rank, quiet)


@pytest.mark.parametrize(
    ("line", "warned"),
    [
        ("WARNING 06-13 11:42:20 _custom_ops.py:11] x", True),
        ("2025-01-02 12:00:00,123 - WARNING - x", True),
        ("W0102 12:00:00.123456 99 a/b.cc:3] x", True),
        ("ERROR 06-13 11:42:20 core.py:11] x", False),
        ("WARNING is not a level here", False),
    ],
)
def test_lines_that_were_logged_as_warnings(line: str, warned: bool) -> None:
    (found,) = read_lines(line)
    assert found.warned is warned


def test_unknown_labels_are_learned_from_a_traceback():
    text = 'node a: Traceback (most recent call last):\nnode a:   File "x.py", line 1\nnode a: KeyError: 1\nnode b: x'
    assert texts(text)[2:] == ["KeyError: 1", "node b: x"]
    assert texts("Oh no: Traceback (most recent call last):\nOh no: that is all") == [
        "Oh no: Traceback (most recent call last):",
        "Oh no: that is all",
    ]


def test_one_string_that_holds_a_traceback():
    assert texts(
        '{"msg": "Traceback (most recent call last):\\n  File \\"x.py\\", line 1\\nKeyError: 1", "level": "error"}'
    ) == [
        "Traceback (most recent call last):",
        '  File "x.py", line 1',
        "KeyError: 1",
    ]
    assert texts('{"log":"a b\\n","stream":"stdout"}\n{"log":') == ["a b", '{"log":']


def test_very_long_lines_are_cut():
    assert len(texts("x" * 100_000)[0]) < 10_000
    assert texts("x" * 100_000 + "Traceback (most recent call last):") == ["Traceback (most recent call last):"]


BAR = " {0}%|{1}| {0}/100 [00:10<00:10,  3.20it/s, loss=0.5]"


@pytest.mark.parametrize("end", ["\r", "\n"])
def test_of_many_progress_bars_the_last_is_kept_and_lines_keep_their_numbers(end: str) -> None:
    bars = [BAR.format(done, "#" * (done // 10)) for done in range(100)]
    text = (
        "start\n" + end.join([*bars[:50], "a word between", *bars[50:]]) + "\nTraceback (most recent call last):\nKeyError: 1\n"
    )
    kept = [line for line in re.split("[\r\n]", without_old_bars(text)) if line]
    assert kept == ["start", bars[49], "a word between", bars[-1], "Traceback (most recent call last):", "KeyError: 1"]
    assert re.findall("[\r\n]", without_old_bars(text)) == re.findall("[\r\n]", text)
    few = end.join(bars[:5])
    assert without_old_bars(few) == few


def test_what_is_written_behind_a_progress_bar_is_kept() -> None:
    text = "\r".join(f"{BAR.format(done, '')} CUDA error {done}" for done in range(40))
    assert without_old_bars(text) == text
