"""Two lines of a requirements file that leave no version."""

from __future__ import annotations

import pytest

from compat.checks.choices import Requested
from compat.checks.selections import judge_pins
from compat.formats.requirements.file import read_requirements
from compat.model import Environment, Finding


def found(text: str, known: Environment | None = None) -> tuple[Finding, ...]:
    (listing,) = read_requirements("requirements.txt", text)
    return judge_pins(listing, known or Environment(), Requested())


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.4.0\ntorch==2.6.0\n",
        "peft>=0.10\npeft<0.9\n",
        "torch==2.4.0\nnumpy\nTorch>=2.5\n",
        "vllm==0.8.0+cu118\nvllm==0.8.0+cu124\n",
        "a===1\na>2\n",
        'a==1 ; sys_platform == "linux" or sys_platform != "linux"\na==2\n',
    ],
)
def test_nothing_can_be_installed(text: str) -> None:
    (finding,) = found(text)
    assert (finding.rule, finding.verdict, finding.effect, finding.missing) == ("requirements-conflict", "hit", "install", ())
    assert finding.location is not None
    assert finding.location.line == text.count("\n")
    assert f"requirements.txt:1 or requirements.txt:{text.count(chr(10))}" in finding.fixes[0].text


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.4\ntorch==2.4.0\n",
        "torch==2.4\ntorch\n",
        "torch>=2.4\ntorch<3\n",
        "vllm==0.8.0\nvllm==0.8.0+cu118\n",
        'trl==0.18 ; python_version < "3.11"\ntrl==0.19 ; python_version >= "3.11"\n',
        "a @ https://example.org/a-1-py3-none-any.whl\na @ https://example.org/a-2-py3-none-any.whl\n",
        "a!=1\na>=1\n",
    ],
)
def test_something_can_be_installed_or_nobody_knows(text: str) -> None:
    assert found(text) == ()


def test_markers_that_overlap_in_part_are_a_question_that_the_target_answers() -> None:
    text = 'trl==0.18 ; sys_platform == "linux"\ntrl==0.19 ; python_version >= "3.12"\n'
    (finding,) = found(text)
    assert finding.verdict == "possible"
    assert {"python", "os"} <= set(finding.unknown)
    assert [each.verdict for each in found(text, Environment(os="linux", python="3.12"))] == ["hit"]
    assert found(text, Environment(os="linux", python="3.11")) == ()
    assert found(text, Environment(os="darwin")) == ()


def test_every_distribution_is_told_once() -> None:
    text = "a==1\na==2\na==3\nb<1\nb>2\n"
    assert [list(each.packages) for each in found(text)] == [["a"], ["b"]]
    assert found("a==1\nb==2\n") == ()


def test_many_lines_about_one_distribution_take_no_time() -> None:
    (finding,) = found("".join(f"a=={number}\n" for number in range(20_000)))
    assert finding.packages == {"a": "==0 and ==1"}
