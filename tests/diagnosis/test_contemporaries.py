"""Releases that were published at the same time."""

from __future__ import annotations

import pytest

from compat.diagnosis.contemporaries import published_after, written_for
from compat.model import Distribution, Environment, Fix
from compat.rules.facts import Facts


def facts(**versions: str) -> Facts:
    return Facts(Environment(distributions=tuple(Distribution(name, version) for name, version in versions.items())))


def of(fix: Fix | None) -> tuple[str, str | None, str | None] | None:
    return None if fix is None else (fix.kind, fix.package, fix.spec)


@pytest.mark.parametrize(
    ("trl", "transformers", "expected"),
    [
        ("0.9.6", "4.46.0", ("downgrade", "transformers", "<=4.41.2")),  # 0.9.6: 8 July 2024; 4.42.0: 27 June
        ("0.9.6", "4.46.0+local", ("downgrade", "transformers", "<=4.41.2")),
        ("0.9.6", "4.38.0", ("upgrade", "transformers", ">=4.41.2")),
        ("0.9.6", "4.41.2", None),
        ("0.9.7.dev0", "4.46.0", None),
    ],
)
def test_the_releases_that_one_was_written_for(trl: str, transformers: str, expected: tuple[str, str, str] | None) -> None:
    assert of(written_for("trl", "transformers", facts(trl=trl, transformers=transformers))) == expected


def test_release_candidates_do_not_count() -> None:
    """transformers 4.57.6 came out after 5.0.0rc3; release candidates do not count."""
    fix = written_for("trl", "transformers", facts(trl="0.27.2", transformers="4.40.0"))
    assert of(fix) == ("upgrade", "transformers", ">=4.57.6")


def test_the_first_release_after_another_one() -> None:
    fix = published_after("trl", "transformers", facts(trl="0.9.6", transformers="4.46.0"))
    assert of(fix) == ("upgrade", "trl", ">=0.12.0")  # 24 October and 4 November 2024
    assert published_after("trl", "transformers", facts(trl="0.12.0", transformers="4.46.0")) is None
    assert published_after("no-such-package", "transformers", facts(transformers="4.46.0")) is None
