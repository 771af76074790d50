"""Whatever is pasted: nothing escapes, and a traceback comes out as it went in, whatever stands before its lines."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from compat.model import normalized
from compat.reports.log.native import is_abrupt
from compat.reports.log.traceback import MOST_ERRORS, Frame, decisive, parse_log, versions_in
from compat.versions import key_of
from tests.examples import examples
from tests.growth import assert_linear

PIECES = (
    "Traceback (most recent call last):", "Traceback (most recent call last)", '  File "a.py", line 3, in f', '  File "', "    g()", "\n",
    "\n\n", "\r", "\r\n", "\x1b[31m", "\x1b]8;;", "[0m", "| ", "  | ", "  +-+---------------- 1 ----------------", "```", "> ", "[rank0]: ",
    "(EngineCore_0 pid=12) ", "ERROR 01-02 12:00:00 [core.py:700] ", "vllm-1  | ", "2025-01-02T12:00:00Z ", "E   ", "----> 1 x", '{"log":"',
    "RuntimeError: no", "RuntimeError", "ValueError                Traceback (most recent call last)", "KeyError: 'x'", "  + Exception Group ",
    "The above exception was the direct cause of the following exception:", "Original ", "Cell In[1], line 2", "File x.py:3, in f(a)", '"""',
    "╭──── Traceback (most recent call last) ────╮", "│ x.py:3 in f │", "│ ❱ 3 │ g() │", "╰────╯", "Fatal Python error: Aborted", "from user code:",
    "Current thread 0x0 (most recent call first):", "terminate called", "frame #0: f() + 0x1 (0x2 in /x.so)", "Caught RuntimeError in replica 1",
    "CUDA error: x", "ExceptionGroup: both (2 sub-exceptions)", "torch==2.5.1", "- `trl` version: 0.15.2", "Package Version", "Name: torch",
    "Version: 1.0", "Successfully installed a-1.0", " 50%|##  | 1/2 [00:00<00:01]", "\0", "\ud800", "   ", "x.py line 3 f: code", "\\n", "'", '"',
    "ray.exceptions.RayTaskError(OSError): ray::f()", "x raised:", "Exception ignored in: <f>", "Unsloth 2025.2.15: Fast", "==((====))==  ",
)  # fmt: skip

anything = st.one_of(
    st.text(max_size=300), st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=60).map("".join)
)


@given(anything)
@settings(max_examples=examples(400), deadline=None)
def test_nothing_escapes_and_everything_fits_together(text):
    errors = parse_log(text)
    assert len(errors) <= MOST_ERRORS
    for index, error in enumerate(errors):
        assert 1 <= error.line <= text.count("\n") + 1
        assert error.cause is None or (0 <= error.cause < len(errors) and error.cause != index)
        assert error.exception is not None or error.message or error.frames
    assert [error.line for error in errors] == sorted(error.line for error in errors)
    order = decisive(errors)
    assert bool(order) == bool(errors)
    assert len(set(order)) == len(order)
    assert set(order) <= set(range(len(errors)))
    for name, version in versions_in(text).items():
        assert name == normalized(name)
        key_of(version)


word = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12)
number = st.integers(1, 99_999)
path = st.builds(
    lambda parts, absolute: "/" * absolute + "/".join(parts) + ".py", st.lists(word, min_size=1, max_size=5), st.booleans()
)
code = st.builds(
    lambda first, rest: (first + rest).strip(), st.sampled_from("abcxyz"), st.text("abcxyz0189 ()[]=.,+'_", max_size=60)
)
frames = st.lists(
    st.builds(Frame, path, number, st.one_of(word, st.just("<module>")), st.one_of(st.none(), code)), min_size=1, max_size=8
)
names = st.one_of(
    st.sampled_from(
        ["RuntimeError", "torch._dynamo.exc.TorchRuntimeError", "torch.OutOfMemoryError", "KeyError", "AssertionError"]
    ),
    st.builds(
        lambda module, name, end: f"{module}.{name.strip('_').title().replace('_', '') or 'X'}{end}",
        word,
        word,
        st.sampled_from(["Error", "", "Exception"]),
    ),
)
message_line = (
    st.text("abcdefghijklmnopqrstuvwxyz0123456789 ,.'()[]=<>/_%-", max_size=80)
    .filter(lambda text: not re.search(r"\[\d{1,3}m", text))  # reads like a colour whose escape character got lost
    .filter(lambda text: not is_abrupt(text))
    .map(lambda text: "m" + text.rstrip())
)
messages = st.lists(message_line, min_size=1, max_size=4).map("\n".join)
prefixes = st.sampled_from([
    "", "    ", "> ", "[rank0]: ", "[rank3]:", "(RayTrainWorker pid=123, ip=10.0.0.1) ", "(EngineCore_0 pid=12) ERROR 01-02 12:00:00 [core.py:700] ",
    "ERROR 02-13 10:00:00 engine.py:389] ", "vllm-1  | ", "2025-01-02T12:00:00.123Z ", "[2025-01-02 12:00:00,123] [ERROR] [x.py:1:f] ",
    "trainer-0: ", "[default1]:[rank1]: ", "E0213 10:00:00.000000 140 torch/distributed/x.py:869] ",
])  # fmt: skip


def written(name: str, message: str, calls: list[Frame], markers: bool, color: bool) -> list[str]:
    """What CPython prints."""
    on, off = ("\x1b[35m", "\x1b[0m") if color else ("", "")
    lines = ["Traceback (most recent call last):"]
    for frame in calls:
        lines.append(f'  File {on}"{frame.file}"{off}, line {on}{frame.line}{off}, in {on}{frame.function}{off}')
        if frame.code is not None:
            lines.append(f"    {frame.code}")
            if markers:
                lines.append("    " + "~" * (len(frame.code) // 2) + "^" * (len(frame.code) - len(frame.code) // 2))
    return [*lines, *f"{on}{name}{off}: {on}{message}{off}".split("\n")]


@given(names, messages, frames, prefixes, st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=examples(250), deadline=None)
def test_a_traceback_comes_back(name, message, calls, prefix, markers, color, windows):
    lines = written(name, message, calls, markers, color)
    end = "\r\n" if windows else "\n"
    errors = parse_log("".join(f"{prefix}{line}{end}" for line in lines))
    assert [(error.exception, error.message, list(error.frames)) for error in errors] == [(name, message, calls)]
    assert errors[0].line == len(lines) - message.count("\n")


@given(st.lists(st.tuples(names, messages, frames), min_size=2, max_size=4), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=examples(200), deadline=None)
def test_ranks_that_write_in_turn_come_apart(raised, random, color):
    queues = [[f"[rank{rank}]: {line}" for line in written(*error, True, color)] for rank, error in enumerate(raised)]
    lines = []
    while any(queues):
        lines.append(random.choice([queue for queue in queues if queue]).pop(0))
    errors = sorted(parse_log("\n".join(lines)), key=lambda error: error.rank)
    assert [(error.rank, error.exception, error.message, list(error.frames)) for error in errors] == [
        (rank, *error) for rank, error in enumerate(raised)
    ]


@given(st.lists(st.tuples(names, messages, frames), min_size=2, max_size=5), prefixes)
@settings(max_examples=examples(100), deadline=None)
def test_a_chain_begins_with_its_root(raised, prefix):
    lines: list[str] = []
    for error in raised:
        if lines:
            lines += ["", "During handling of the above exception, another exception occurred:", ""]
        lines += written(*error, False, False)
    errors = parse_log("\n".join(prefix + line for line in lines))
    assert [error.cause for error in errors] == [None, *range(len(raised) - 1)]
    assert [(error.exception, error.message) for error in errors] == [(name, message) for name, message, _ in raised]
    assert decisive(errors)[0] == 0


@given(st.sampled_from(PIECES), st.sampled_from(PIECES), st.integers(0, 2))
@settings(max_examples=examples(100), deadline=None)
def test_time_is_linear(one, other, ends):
    """A repeated piece, on one line or on many, costs as much as it is long."""

    def read(text: str) -> None:
        decisive(parse_log(text))
        versions_in(text)

    piece = one + other + "\n" * ends + other + one + "\n" * ends  # most of many identical lines in a row are skipped
    assert_linear(read, lambda length: piece * (length // len(piece)), 60_000)
