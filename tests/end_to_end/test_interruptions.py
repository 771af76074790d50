"""Commands that are interrupted at random times; ``python -m tests.interruptions`` does it hundreds of times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.index.server import IndexServer
from tests.interruptions import PACKAGES, Rounds

pytest.importorskip("clingo")


def test_what_is_interrupted_leaves_nothing_half_done(tmp_path: Path) -> None:
    with IndexServer(PACKAGES) as server:
        rounds = Rounds(tmp_path, server.url, seed=20)
        for _ in range(4):
            what, wrong = rounds.one()
            assert wrong == [], what
