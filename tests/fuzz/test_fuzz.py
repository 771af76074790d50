"""The fuzz harness itself: some hundreds of inputs through every reader, and that it notices what it is there for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fuzz.mutations import maker
from tests.fuzz.readers import READERS
from tests.fuzz.seeds import seeds_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and timers of Linux")
_NAMES = sorted(READERS)

_BAD = """
import os, pickle, socket, subprocess, sys, tempfile, time
from pathlib import Path
from compat.errors import InputError
from tests.fuzz.readers import READERS, Reader, Wrong
from tests.fuzz.trials import Trials

def read(name, content, matrix):
    if content == b"fails": {}["a"]
    if content == b"refuses": raise InputError("expected something", name, 1)
    if content == b"wrong line": raise InputError("expected something", name, 7)
    if content == b"two lines": raise InputError("", name, 1)
    if content == b"opens": open("/etc/hostname").close()
    if content == b"opens quietly":
        try: open("/etc/hostname").close()
        except BaseException: pass
    if content == b"link": open("link-outside.txt").close()
    if content == b"pipe": open("pipe.txt").close()
    if content == b"given": open("base.txt").close()
    if content == b"writes": open("new.txt", "w").close()
    if content == b"lists": os.listdir("/")
    if content == b"executes": exec(compile("1", "<given>", "exec"))
    if content == b"imports": import wave
    if content == b"starts": subprocess.run(["true"])
    if content == b"connects": socket.socket().connect(("127.0.0.1", 9))
    if content == b"unpickles": pickle.loads(b"cos\\nsystem\\n.")
    if content == b"computes":
        while True: pass
    if content == b"eats": b"x" * 5 * 1024**3
    if b"needle" in content: raise KeyError("needle")

READERS["bad"] = Reader(("bad.txt",), "plain", read)
folder = tempfile.mkdtemp()
trials = Trials("bad", Path(folder))
for word in sys.argv[1:]:
    taken, failure = trials.tried("bad.txt", word.encode())
    print(f"{word}: {'taken' if taken else 'refused' if failure is None else failure.key}")
_, failure = trials.tried("bad.txt", b"some\\nlines\\nand a needle\\nin hay\\n" * 3)
print(f"shrunk: {trials.shrunk(failure).content}")
"""
_EXPECTED = {
    "nothing": "taken", "given": "taken", "refuses": "refused", "fails": "KeyError", "wrong line": "Wrong line 7 of 1",
    "two lines": "Wrong an error that", "opens": "Forbidden opens '/etc/hostname'", "opens quietly": "Forbidden opens '/etc/hostname'",
    "link": "Forbidden opens 'link-outside.txt'", "pipe": "Forbidden opens 'pipe.txt'", "writes": "Forbidden writes 'new.txt'",
    "lists": "Forbidden lists the folder '/'", "executes": "Forbidden executes '<given>'", "imports": "taken",
    "starts": "Forbidden subprocess.Popen", "connects": "Forbidden socket.", "unpickles": "Forbidden pickle.find_class",
    "computes": "TooSlow", "eats": "MemoryError",
}  # fmt: skip


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own: the harness sets limits and hooks that stay."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("part", range(4))
def test_no_reader_fails_on_some_hundred_inputs(part: int) -> None:
    result = ran("-m", "tests.fuzz.quick", *_NAMES[part::4])
    assert result.returncode == 0, result.stdout + result.stderr
    for reader in _NAMES[part::4]:
        assert f"{reader}: " in result.stdout


def test_what_a_reader_may_not_do_is_noticed() -> None:
    result = ran("-c", _BAD, *_EXPECTED)
    assert result.returncode == 0, result.stderr
    *lines, shrunk = result.stdout.splitlines()
    found = dict(line.split(": ", 1) for line in lines)
    assert found.keys() == _EXPECTED.keys()
    for word, expected in _EXPECTED.items():
        assert found[word].startswith(expected), (word, found[word])
    assert shrunk == "shrunk: b'needle'"


def test_a_run_reports_and_keeps_what_failed(tmp_path: Path) -> None:
    arguments = ("-m", "tests.fuzz.fuzz_readers", "--reader", "baseline", "--count", "5", "--output", str(tmp_path))
    result = ran(*arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "baseline" in result.stdout
    assert not list(tmp_path.iterdir())
    kept = tmp_path / "baseline@00000000@given.json"
    kept.write_text("[1", encoding="utf-8")
    result = ran("-m", "tests.fuzz.fuzz_readers", "--replay", str(kept))
    assert result.returncode == 0
    assert "refused" in result.stdout


@pytest.mark.parametrize("reader", _NAMES)
def test_inputs_can_be_made_again(reader: str) -> None:
    assert seeds_of(reader)
    first, second = (maker(READERS[reader], reader, 1) for _ in range(2))
    numbers = [0, first.small() - 1, *range(first.fixed(), first.fixed() + 20)]
    made = [first.made(number) for number in numbers]
    assert made == [second.made(number) for number in reversed(numbers)][::-1]
    assert len(set(made)) > 12
    assert made != [maker(READERS[reader], reader, 2).made(number) for number in numbers]
