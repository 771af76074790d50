"""Whatever stands in a YAML file: listings, or one line that says what was expected; nothing else escapes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packaging.markers import Marker

from compat.errors import InputError
from compat.formats.conda_environment import CondaEnvironment
from compat.formats.conda_lock import CondaLock, PixiLock
from compat.formats.docker.compose import Compose
from compat.formats.listing import Listing
from tests.examples import examples
from tests.formats import test_conda_environment, test_conda_lock, test_pixi_lock
from tests.formats.docker import test_compose

Reader = Callable[[str, str], tuple[Listing, ...]]

SAMPLES: list[tuple[Reader, str]] = [
    (CondaEnvironment().read, test_conda_environment.TEXT),
    (CondaLock().read, test_conda_lock.TEXT),
    (PixiLock().read, test_pixi_lock.SIX),
    (PixiLock().read, test_pixi_lock.FIVE),
    (Compose().read, test_compose.TEXT),
]
READERS = [CondaEnvironment().read, CondaLock().read, PixiLock().read, Compose().read]
PIECES = (
    "null", "[]", "{}", "[a, b]", "{a: b}", "1", "true", "'", '"', "\0", "\udc80", "&a ", "*a", "<<: *gpu", "- ", "? ", "|\n",
    "!!python/object:os.system x", "!reset null", "\x85", "\u2028", "\ufeff", "9" * 5000, "[", "]", "{", "}", "=", ">=1|<2",
    "[version='", "::", "$", "${", "${A:-${B:-c}}", "extends: vllm", ".inf", "2020-99-99", "- pip: [a, -r x, -e .]",
    "# [linux", "# [not win]", "<<<<<<< HEAD\n", "\r",
)  # fmt: skip


def check(reader: Reader, text: str) -> None:
    try:
        listings = reader("/nowhere/file.yml", text)
    except InputError as problem:
        assert "\n" not in str(problem)
        assert len(str(problem)) < 500
        return
    assert listings
    for listing in listings:
        for _, node, marker, choice in listing.edges or ():
            assert 0 <= node < len(listing.entries)
            assert choice is None or 0 <= choice < len(listing.choices)
            assert marker is None or Marker(marker)
        for entry in listing.entries:
            assert entry.line is not None
            assert 1 <= entry.line <= len(text.splitlines())


@pytest.mark.parametrize("reader", READERS)
@given(text=st.text(max_size=200))
@example(text="dependencies: {<<: [x]}")
@example(text="version: 6\npackages: null\nenvironments: null")
@example(text="services: null")
@settings(max_examples=examples(100), deadline=None)
def test_any_text(reader: Reader, text: str) -> None:
    check(reader, text)


@given(st.sampled_from(SAMPLES), st.integers(0, 2**32), st.sampled_from(READERS))
@settings(max_examples=examples(500), deadline=None)
def test_damaged_files(sample: tuple[Reader, str], seed: int, other: Reader) -> None:
    reader, text = sample
    chance = random.Random(seed)
    damaged = _damaged(text, chance)
    check(reader, damaged)
    if chance.random() < 0.1:
        check(other, damaged)


def _damaged(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(chance.randint(1, 4)):
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        place = chance.randint(0, len(lines[at]))
        match chance.randrange(6):
            case 0:
                lines[at : at + chance.randint(1, 5)] = [""]
            case 1:
                lines.insert(at, lines[other])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = lines[at][:place] + chance.choice(PIECES) + lines[at][place:]
            case 4:
                lines[at] = lines[at].partition(":")[0] + ": " + chance.choice(PIECES)
            case _:
                lines[at] = lines[at][:place] + chr(chance.randrange(0x3000)) + lines[at][place + 1 :]
    whole = "\n".join(lines)
    return whole[: chance.randint(0, len(whole))] if chance.random() < 0.2 else whole
