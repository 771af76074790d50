"""The table of assertions without a message: which are read, and where releases differ in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.interfaces.changes import ASSERTION, Changes
from scripts.messages import assertions
from scripts.messages.assertions import assertions_of
from scripts.surface.store import Fetched, Store

SOURCE = b"""
assert ready

class Pool:
    def take(self, count):
        assert count > 0
        assert count < 9, "that many there are not"
        for each in self.free:
            async def wait():
                assert (
                    each.is_free
                    and each.size
                )
        assert (count,
                self.free)
        assert callable(
            self.give), f"not {self.give}"
        asserted = 1


def give(block):
    '''Say
        assert it, please.
    '''
    assert block.refs == 0  # an owner is left
"""


def test_assertions_in_functions_without_a_message() -> None:
    assert assertions_of(SOURCE) == [
        ("Pool.take", "", "callable(self.give)"),
        ("Pool.take", "", "count < 9"),
        ("Pool.take", "assert (count,", "(count, self.free)"),
        ("Pool.take", "assert count > 0", "count > 0"),
        ("Pool.take.wait", "assert (", "each.is_free and each.size"),
        ("give", "assert block.refs == 0  # an owner is left", "block.refs == 0"),
    ]


@pytest.mark.parametrize("source", [b"", b"assert x\n", b"def f():\n    assert (\n", b"\xff\xfe\n  assert\n"])
def test_what_has_none_gives_nothing(source: bytes) -> None:
    assert assertions_of(source) == []


def written(monkeypatch: pytest.MonkeyPatch, folder: Path, *releases: dict[str, str]) -> Changes:
    store = Store(folder)
    for at, modules in enumerate(releases, 1):
        bodies = {f"vllm/{name}.py": body.encode() for name, body in modules.items()}
        store.keep(Fetched("vllm", f"{at}.0", "a.whl", None, "2024-01-01", True, 1, 0.1, (), bodies))
    store.close()
    path = folder / "assertions.bin"
    monkeypatch.setattr(assertions, "PATH", path)
    assert assertions.main(["--store", str(folder), "--jobs", "1", "vllm"]) == 0
    return Changes(path.read_bytes())


def function(name: str, *lines: str) -> str:
    return f"def {name}(x):\n" + "".join(f"    {line}\n" for line in (*lines, "return x"))


def test_assertions_that_come_and_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = written(
        monkeypatch,
        tmp_path,
        {"pool": function("take", "assert x > 0")},
        {"pool": function("take", "assert x > 0", "assert x.size")},
        {"pool": function("take", "assert x.size")},
    )
    told = {
        term: [(each.kind, each.module, each.owner, each.has, each.lacks) for each in table.of(term)] for term, _ in table.all()
    }
    assert told == {
        "assert x > 0": [(ASSERTION, "vllm.pool", "take", ("1.0", "2.0"), ("3.0",))],
        "assert x.size": [(ASSERTION, "vllm.pool", "take", ("2.0", "3.0"), ("1.0",))],
    }


def test_a_function_that_is_new_says_nothing_of_the_releases_before_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    new = function("take", "assert x > 0")
    assert list(written(monkeypatch, tmp_path, {"pool": function("give")}, {"pool": new, "other": new}).all()) == []


@pytest.mark.parametrize(
    "again",
    [
        {"pool": function("take", "assert (", "    x > 0", ")")},
        {"pool": function("take", 'assert x > 0, "none is left"')},
        {"pool": function("take", "_check(x)") + function("_check", "assert x > 0  # none is left")},
        {"pool": function("take"), "base": function("take", "assert x > 0  # none is left")},
    ],
)
def test_the_same_test_elsewhere_is_the_same_assertion(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, again: dict[str, str]
) -> None:
    assert written(monkeypatch, tmp_path, {"pool": function("take", "assert x > 0")}, again).of("assert x > 0") == []
