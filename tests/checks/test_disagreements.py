"""Listed releases that require different releases of a package that is not listed."""

from __future__ import annotations

from pathlib import Path

import pytest

import compat
from compat.model import Distribution, Environment, Finding, Source


def found(*listed: str, **of: Source) -> list[Finding]:
    copies = tuple(
        Distribution(name, version or None, of.get(name)) for name, _, version in (text.partition("==") for text in listed)
    )
    report = compat.check(Environment(os="linux", python="3.11", distributions=copies))
    return [each for each in report.findings if each.rule.startswith("disagree-")]


def test_two_pins_of_a_third_package() -> None:
    (one,) = found("vllm==0.11.0", "llmcompressor==0.8.0")
    assert (one.verdict, one.severity) == ("hit", "warning")
    assert one.title == (
        "vllm 0.11.0 requires compressed-tensors==0.11.0, and llmcompressor 0.8.0 requires compressed-tensors==0.12.1"
    )
    assert [fix.package for fix in one.fixes] == ["llmcompressor", "vllm"]


@pytest.mark.parametrize(
    "listed",
    [
        ("vllm==0.11.0", "llmcompressor==0.7.1"),  # both take compressed-tensors 0.11.0
        ("vllm==0.11.0", "llmcompressor==0.8.0", "compressed-tensors==0.12.1"),  # the violated requirement is a finding already
        ("vllm==0.11.0", "llmcompressor"),
        ("transformers==4.46.2", "vllm==0.8.5"),  # vllm refuses that transformers anyway
        ("torchvision==0.17.0", "torchaudio==2.2.0"),
    ],
)
def test_nothing_to_disagree_about(listed: tuple[str, ...]) -> None:
    assert found(*listed) == []


def test_an_image_comes_with_what_it_requires() -> None:
    assert found("torchvision==0.17.0", "torchaudio==2.1.0")
    assert not found("torchvision==0.17.0", "torchaudio==2.1.0", torchaudio=Source("image"))


def test_what_a_pin_pins_counts() -> None:
    (one,) = found("vllm==0.30.0", "openrlhf==0.9.1.post1")
    assert one.title == (
        "vllm 0.30.0 requires huggingface-hub>=1.31.0, and transformers 4.57.3 (which openrlhf 0.9.1.post1 requires) "
        "requires huggingface-hub<1.0,>=0.34.0"
    )


def test_an_installer_refuses_the_pins_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("vllm==0.11.0\nllmcompressor==0.8.0\n")
    report = compat.check(path)
    (one,) = (each for each in report.findings if each.rule.startswith("disagree-"))
    assert (one.severity, report.exit) == ("error", 1)
    assert one.location is not None
    assert one.location.line == 1


@pytest.mark.parametrize(
    ("text", "options", "rules"),
    [
        ("vllm==0.6.3\n", {"python_version": "3.13"}, {"wheels-torch"}),  # it pins torch 2.4.0
        ("vllm==0.6.3\n", {"python_version": "3.12"}, set()),
        ("torchvision==0.18.0\n", {"python_version": "3.13"}, {"wheels-torchvision"}),  # not for its torch again
        ("torch==2.3.0\n", {"os": "darwin", "machine": "x86_64"}, {"wheels-torch"}),
        ("torch==2.3.0\n", {"os": "darwin", "machine": "arm64"}, set()),
        ("bitsandbytes==0.45.0\n", {"gpu": ["GB10"]}, {"wheels-bitsandbytes"}),
        ("bitsandbytes==0.46.0\n", {"gpu": ["GB10"]}, set()),
        ("decord==0.6.0\n", {"gpu": ["GH200"]}, {"wheels-decord"}),  # of which nothing but the wheels is known
        ("decord==0.6.0\n", {"gpu": ["H100"]}, set()),
    ],
)
def test_a_pin_without_a_file_for_the_target(text: str, options: dict[str, object], rules: set[str], tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(text)
    report = compat.check(path, **options)  # type: ignore[arg-type]
    found = {each.rule: each for each in report.findings if each.rule.startswith(("wheels-", "python-"))}
    assert found.keys() == rules
    assert all((each.severity, each.verdict) == ("error", "hit") and each.fixes for each in found.values())


def test_a_file_with_an_index_of_its_own_may_have_other_wheels(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("--extra-index-url https://index.example/simple\nbitsandbytes==0.45.0\n")
    (found,) = (each for each in compat.check(path, gpu=["GB10"]).findings if each.rule.startswith("wheels-"))
    assert found.severity == "warning"


def test_what_is_described_is_installed_from_wherever_a_build_came() -> None:
    described = Environment(os="linux", machine="aarch64", distributions=(Distribution("bitsandbytes", "0.45.0"),))
    assert not [each for each in compat.check(described).findings if each.rule.startswith("wheels-")]
