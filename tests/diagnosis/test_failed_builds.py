"""Packages that are built from source because no wheel of the release fits the Python."""

from __future__ import annotations

import pytest

from compat.model import Distribution, Environment
from tests.diagnosis.test_symptoms import said

PIP = """Collecting sentencepiece{pin}
  Downloading sentencepiece-0.2.0.tar.gz (2.6 MB)
  Getting requirements to build wheel: finished with status 'done'
Building wheels for collected packages: sentencepiece
  Building wheel for sentencepiece (pyproject.toml) ... error
  error: subprocess-exited-with-error
  Package sentencepiece was not found in the pkg-config search path.
"""
UV = """  × Failed to build `sentencepiece==0.2.0`
  ├─▶ The build backend returned an error
"""
METADATA = """Collecting numpy==1.24.4
  Using cached numpy-1.24.4.tar.gz (10.9 MB)
  Getting requirements to build wheel ... error
  error: subprocess-exited-with-error
  AttributeError: module 'pkgutil' has no attribute 'ImpImporter'
"""


def on(python: str, system: str = "linux", *distributions: Distribution) -> Environment:
    return Environment(python=python, os=system, distributions=distributions)


@pytest.mark.parametrize("text", [PIP.format(pin=""), PIP.format(pin="==0.2.0"), UV])
def test_the_release_that_has_a_wheel(text: str) -> None:
    finding = said(text, on("3.13.1"))[0]
    assert (finding.rule, finding.verdict, finding.severity) == ("wheels-sentencepiece", "hit", "error")
    assert finding.title == "sentencepiece 0.2.0 has no wheel for Python 3.13 on Linux, and building it fails"
    assert [(fix.kind, fix.spec, fix.command) for fix in finding.fixes] == [
        ("upgrade", ">=0.2.1", 'pip install "sentencepiece>=0.2.1"'),
        ("config", None, "uv venv --python 3.12"),
    ]


def test_metadata_that_cannot_be_made_belongs_to_the_last_package_collected() -> None:
    finding = said(METADATA, on("3.12", "windows"))[0]
    assert (finding.rule, finding.fixes[0].spec) == ("wheels-numpy", ">=1.26.0")


def test_a_package_whose_table_is_that_of_its_metadata() -> None:
    text = "Building wheel for tokenizers (pyproject.toml) ... error\n  error: can't find Rust compiler\n"
    finding = said(text, on("3.12", "linux", Distribution("tokenizers", "0.13.3")))[0]
    assert (finding.rule, finding.verdict) == ("wheels-tokenizers", "hit")


def test_without_a_version_the_answer_is_possible() -> None:
    text = "ERROR: Failed building wheel for sentencepiece\n"
    finding = said(text, on("3.13"))[0]
    assert (finding.verdict, finding.title[:27]) == ("possible", "sentencepiece before 0.2.1 ")


@pytest.mark.parametrize(
    ("text", "python"),
    [
        (UV, "3.12"),  # it has a wheel: something else is wrong
        (UV.replace("sentencepiece", "nobody-knows-it"), "3.13"),
        ("Building wheel for sentencepiece (pyproject.toml) ... done\n", "3.13"),
        ("RuntimeError: could not load sentencepiece 0.2.0\n", "3.13"),
    ],
)
def test_other_failures_are_not_about_wheels(text: str, python: str) -> None:
    assert not [each for each in said(text, on(python)) if each.rule.startswith("wheels-")]


@pytest.mark.parametrize(
    ("text", "rule", "fix"),
    [
        (
            "Collecting deepspeed\nAssertionError: Unable to pre-compile ops without torch installed.",
            "symptom-build-without-torch",
            "pip install --no-build-isolation deepspeed",
        ),
        (
            "CMake Error at CMakeLists.txt:15:\n  Compatibility with CMake < 3.5 has been removed from CMake.",
            "symptom-cmake-4",
            "export CMAKE_POLICY_VERSION_MINIMUM=3.5",
        ),
    ],
)
def test_builds_that_lack_something(text: str, rule: str, fix: str) -> None:
    finding = said(text)[0]
    assert (finding.rule, finding.fixes[0].command) == (rule, fix)


PIP_WINDOWS = """ERROR: Could not find a version that satisfies the requirement {0} (from versions: none)
ERROR: No matching distribution found for {0}
"""


def test_a_package_without_wheels_for_the_system() -> None:
    (finding,) = said(PIP_WINDOWS.format("triton==2.3.0"), on("3.11", "windows"))
    assert finding.title == "No release of triton has a wheel for Windows"
    assert [(fix.kind, fix.package) for fix in finding.fixes] == [("pin", "triton-windows"), ("config", None)]
    for text in ("triton==99", "xformers==99", "no-such-package"):  # another finding: this release, this Python
        assert [each.rule for each in said(PIP_WINDOWS.format(text), on("3.11"))] == ["symptom-no-such-release"]
