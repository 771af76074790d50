"""Features of the language that an older Python does not have."""

from __future__ import annotations

import pytest

from compat.model import Distribution, Environment
from tests.diagnosis.test_symptoms import said

FRAME = """Traceback (most recent call last):
  File "/usr/lib/python3.9/site-packages/vllm/benchmarks/serve.py", line 21, in <module>
    {line}
{error}
"""


def found(error: str, line: str = "x = f()", python: str | None = "3.9.18") -> list[str]:
    environment = Environment(python=python, distributions=(Distribution("vllm", "0.10.1"),))
    findings = said(FRAME.format(error=error, line=line), environment)
    return [f"{each.verdict}: {each.title}" for each in findings if each.rule == "symptom-python-feature"]


@pytest.mark.parametrize(
    ("error", "line", "feature", "release"),
    [
        ("TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'", "a: int | None", "X | Y in annotations", "3.10"),
        ("TypeError: unsupported operand type(s) for |: '_GenericAlias' and 'type'", "a: B", "X | Y in annotations", "3.10"),
        ("TypeError: dataclass() got an unexpected keyword argument 'kw_only'", "@d", "the slots or kw_only of data classes", "3.10"),
        ("TypeError: zip() takes no keyword arguments", "zip(a, strict=True)", "the strict of zip()", "3.10"),
        ("NameError: name 'ExceptionGroup' is not defined", "raise ExceptionGroup", "ExceptionGroup", "3.11"),
        ("SyntaxError: invalid syntax", "match kind:", "match statements", "3.10"),
        ("SyntaxError: invalid syntax", "except* ValueError:", "except*", "3.11"),
        ("SyntaxError: invalid syntax", "type Pair = tuple[int, int]", "type parameters", "3.12"),
        ("SyntaxError: f-string: expecting '}'", "f'{a['b']}'", "quotes and backslashes inside an f-string", "3.12"),
    ],
)  # fmt: skip
def test_a_feature_of_a_newer_python(error: str, line: str, feature: str, release: str) -> None:
    assert found(error, line) == [f"hit: vllm uses {feature}, which Python has since {release}"]
    assert found(error, line, None) == [f"possible: vllm uses {feature}, which Python has since {release}"]
    assert found(error, line, "3.14.0") == []


def test_subscripts_of_python_s_own_classes() -> None:
    error = "TypeError: 'type' object is not subscriptable"
    assert found(error, "a: list[int]", "3.8.10") == ["hit: vllm uses list[…] in annotations, which Python has since 3.9"]
    assert found(error, "a: Config[int]", "3.8.10") == []
    assert found(error, "a: list[int]", "3.9.1") == []


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("SyntaxError: invalid syntax", "match = find(text):"),
        ("SyntaxError: invalid syntax", "print 'x'"),
        ("TypeError: unsupported operand type(s) for |: 'set' and 'list'", "a | b"),
        ("NameError: name 'Group' is not defined", "Group()"),
    ],
)
def test_other_errors(error: str, line: str) -> None:
    assert found(error, line) == []


@pytest.mark.parametrize(
    ("error", "os", "verdict"),
    [
        ("ModuleNotFoundError: No module named 'fcntl'", "windows", "hit"),
        ("ModuleNotFoundError: No module named 'fcntl'", None, "possible"),
        ("ModuleNotFoundError: No module named 'fcntl'", "linux", None),
        ("AttributeError: module 'signal' has no attribute 'SIGKILL'", "windows", "hit"),
        ("AttributeError: module 'os' has no attribute 'sched_getaffinity'", "darwin", "hit"),
        ("ModuleNotFoundError: No module named 'winreg'", "linux", "hit"),
        ("ModuleNotFoundError: No module named 'winreg'", "windows", None),
    ],
)
def test_a_name_that_python_has_on_other_systems(error: str, os: str | None, verdict: str | None) -> None:
    found = said(FRAME.format(error=error, line="x = f()"), Environment(os=os, distributions=(Distribution("vllm", "0.10.1"),)))
    assert [each.verdict for each in found if each.rule == "symptom-python-system"] == ([] if verdict is None else [verdict])


def test_a_removed_module_has_a_distribution_for_later_releases() -> None:
    (finding,) = said("ModuleNotFoundError: No module named 'telnetlib'")
    assert [fix.package for fix in finding.fixes] == [None, "standard-telnetlib"]


def test_the_fallback_of_a_removed_module_stands_for_it() -> None:
    (finding,) = said("ModuleNotFoundError: No module named 'pyaudioop'")
    assert finding.title == "pydub uses audioop of the standard library, which Python 3.13 removed"
    assert [fix.package for fix in finding.fixes] == ["audioop-lts", None]
