"""Releases that were published at the same time."""

from __future__ import annotations

import pytest

from compat.diagnosis.contemporaries import not_yet_there, published_after, without_needing, written_for
from compat.diagnosis.named_releases import of_name
from compat.model import Distribution, Environment, Fix
from compat.reports.log.traceback import parse_log
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


@pytest.mark.parametrize(
    ("asking", "module", "name", "version", "expected"),
    [
        ("autoawq", "transformers.modeling_outputs", "MoeModelOutputWithPast", None, ("downgrade", "autoawq", "<0.1.8")),
        ("autoawq", "transformers.modeling_outputs", "MoeModelOutputWithPast", "0.2.4", ("downgrade", "autoawq", "<0.1.8")),
        ("autoawq", "transformers.modeling_outputs", "MoeModelOutputWithPast", "0.1.7", None),  # does not use it
        ("peft", "transformers", "HybridCache", None, ("upgrade", "peft", ">=0.18.0")),  # transformers 5 no longer has it
        ("trl", "transformers.modeling_outputs", "MoeModelOutputWithPast", None, None),
    ],
)
def test_the_releases_that_do_not_need_a_name(
    asking: str, module: str, name: str, version: str | None, expected: tuple[str, str, str] | None
) -> None:
    known = of_name(module, name)
    assert known is not None
    assert of(without_needing(known, asking, facts(**({} if version is None else {asking: version})))) == expected


BETWEEN = """Traceback (most recent call last):
  File "/v/site-packages/trl/trainer/sft_trainer.py", line 300, in train
    super().train()
  File "/v/site-packages/transformers/trainer.py", line 2000, in _unheard_of
    something()
{error}
"""


@pytest.mark.parametrize(
    ("error", "versions", "found"),
    [
        ("RuntimeError: quite an unusual state", {"trl": "0.9.6", "transformers": "4.57.0"}, True),
        (
            "RuntimeError: quite an unusual state",
            {"trl": "0.9.6", "transformers": "4.42.4"},
            False,
        ),  # a patch of a series before
        ("RuntimeError: quite an unusual state", {"trl": "0.24.0", "transformers": "4.57.0"}, False),
        ("RuntimeError: quite an unusual state", {"trl": "0.9.6"}, False),
        ("torch.OutOfMemoryError: CUDA out of memory", {"trl": "0.9.6", "transformers": "4.57.0"}, False),
    ],
)
def test_a_call_into_a_series_that_is_newer_than_its_user(error: str, versions: dict[str, str], found: bool) -> None:
    errors = parse_log(BETWEEN.format(error=error))
    findings = [each for error in errors for each in not_yet_there(error, facts(**versions))]
    assert [each.rule for each in findings] == ["symptom-newer-than-its-user"] * found
    for each in findings:
        assert each.severity == "warning"
        assert [(fix.kind, fix.package) for fix in each.fixes] == [("upgrade", "trl"), ("downgrade", "transformers")]
        assert (each.packages, each.fixes[0].spec) == (versions, ">=0.24.0")
