from __future__ import annotations

import pytest

from compat.checks import interfaces as surface
from compat.checks.interfaces import broken_together

_ROWS = surface.open_rows_once()
pytestmark = pytest.mark.skipif(_ROWS is None, reason="the tables are not there: scripts/build_matrix.py")


def _suspects(*releases: tuple[str, str | None]) -> frozenset[str]:
    assert _ROWS is not None
    listed: dict[str, list[str]] = {}
    for name, version in releases:
        listed.setdefault(name, []).extend([] if version is None else [version])
    return broken_together(listed, _ROWS, later=False)


def test_only_packages_that_can_fail_beside_each_other() -> None:
    assert _suspects(("peft", "0.15.0"), ("accelerate", "0.26.0"), ("torch", "2.6.0")) == {"peft", "accelerate"}
    assert _suspects(("peft", "0.15.0"), ("accelerate", "1.6.0"), ("torch", "2.6.0")) == frozenset()
    assert _suspects(("peft", None), ("accelerate", "0.26.0")) == frozenset()


def test_one_of_several_listed_releases_is_enough() -> None:
    assert _suspects(("peft", "0.15.0"), ("accelerate", "1.6.0"), ("accelerate", "0.26.0")) == {"peft", "accelerate"}


def test_many_forks_are_tried_one_by_one() -> None:
    forks = [(name, f"1.{number}.0") for name in ("trl", "transformers", "datasets") for number in range(5)]
    assert {"peft", "accelerate"} <= _suspects(("peft", "0.14.0"), ("peft", "0.15.0"), ("accelerate", "0.26.0"), *forks)
