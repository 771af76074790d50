"""Extensions of torch: the build that the name of a wheel tells, and releases without a wheel for a torch."""

from __future__ import annotations

import pytest

from compat.checks import builds
from compat.checks.fix_commands import in_project
from compat.model import Distribution, Environment, Finding, Fix, Source
from compat.records import replace
from compat.rules.facts import Facts
from tests.checks.builds.test_builds import found

FLASH = "https://index.example/v{version}/flash_attn-{version}%2Bcu12torch{torch}cxx11abi{abi}-cp310-cp310-linux_x86_64.whl"


@pytest.mark.parametrize(
    ("torch", "version", "built", "abi", "rule"),
    [
        ("2.6.0+cu124", "2.7.4.post1", "2.6", "TRUE", "build-flash-attn-abi"),
        ("2.6.0+cu124", "2.7.4.post1", "2.6", "FALSE", None),
        ("2.6.0+cu126", "2.7.4.post1", "2.6", "FALSE", "build-flash-attn-abi"),  # the one build of 2.6 with the C++11 ABI
        ("2.6.0+cu124", "2.8.3", "2.6", "FALSE", "build-flash-attn-abi"),  # compiled with that build
        ("2.6.0+cu126", "2.8.3", "2.6", "FALSE", None),
        ("2.7.1+cu128", "2.8.0.post2", "2.7", "FALSE", None),  # not forced, but that of its torch
        ("2.7.1+cu128", "2.8.0.post2", "2.7", "TRUE", None),
        ("2.6.0+cu124", "2.7.4.post1", "2.5", "FALSE", "build-flash-attn-torch"),
    ],
)
def test_the_name_of_a_wheel_from_an_address_tells_its_torch_and_its_abi(
    torch: str, version: str, built: str, abi: str, rule: str | None
) -> None:
    source = Source("url", {"url": FLASH.format(version=version, torch=built, abi=abi)})
    copies = (Distribution("torch", torch), Distribution("flash-attn", version, source=source))
    findings = list(builds.judge(Facts(Environment(os="linux", distributions=copies))))
    assert [each.rule for each in findings if each.verdict == "hit"] == ([] if rule is None else [rule])


def test_the_abi_of_a_torch_without_a_label_and_of_an_own_build_is_not_known() -> None:
    flash = "flash-attn==2.7.4.post1+cu12torch2.6cxx11abiTRUE"
    assert found("torch==2.6.0", flash)["build-flash-attn-abi"].verdict == "possible"
    assert found("torch==2.6.0", flash, source="directory") == {}
    assert found("torch==2.6.0+cu124", flash, machine="aarch64") == {}


@pytest.mark.parametrize(
    ("torch", "flash", "source", "spec"),
    [
        ("2.7.0+cu128", "2.7.4.post1", None, ">=2.8.0"),
        ("2.6.0+cu124", "2.7.4.post1", None, ""),  # one of its wheels is for this torch
        ("2.7.0+cu128", "2.7.4.post1", "index", ""),  # compiled by the installer
    ],
)
def test_an_extension_without_a_wheel_for_the_torch(torch: str, flash: str, source: str | None, spec: str) -> None:
    finding = found(f"torch=={torch}", f"flash-attn=={flash}", source=source).get("build-flash-attn-unpublished")
    assert (finding is not None) is bool(spec)
    if finding is not None:
        assert (finding.verdict, finding.unknown, finding.fixes[0].spec) == ("possible", ("build.flash-attn",), spec)


def test_what_is_built_with_torch_moves_with_its_build() -> None:
    """torchvision for another CUDA does not load beside it; of what is not from an index, nothing is said."""
    vision = Distribution("torchvision", "0.21.0")
    audio = Distribution("torchaudio", "2.6.0+cu124", source=Source("conda"))
    copies = (Distribution("torch", "2.6.0+cu124"), vision, audio)
    findings = list(builds.judge(Facts(Environment(os="linux", driver="515.65", distributions=copies))))
    (fix, *_) = next(each for each in findings if each.rule == "build-torch-driver").fixes
    assert fix.command == (
        'pip install "torch==2.6.0+cu118" "torchvision==0.21.0+cu118" --index-url https://download.pytorch.org/whl/cu118'
    )


def test_the_command_of_a_project_adds_builds_from_one_index_together() -> None:
    command = 'pip install "torch==2.6.0+cu118" "torchvision==0.21.0+cu118" --index-url https://index.example/cu118'
    fix = Fix("source-install", "torch", "==2.6.0+cu118", "", command)
    finding = Finding(
        rule="a", origin="build", effect="crash", title="", why="", packages={}, facts=(), fixes=(fix,), evidence=()
    )
    (moved,) = in_project(finding, "uv.lock", {}).fixes
    assert moved.command == 'uv add "torch==2.6.0+cu118" "torchvision==0.21.0+cu118" --index https://index.example/cu118'
    two = replace(finding, fixes=(replace(fix, command='pip install "a>=1" "b>=1"'),))
    assert in_project(two, "uv.lock", {}) == two
