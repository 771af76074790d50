"""Packages that are built from source because no wheel of the release fits the Python."""

from __future__ import annotations

import pytest

from compat.model import Distribution, Environment, Finding
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


OLD_TORCH = "1.13.0, 1.13.1, 2.0.0, 2.0.1, 2.1.0, 2.1.1, 2.1.2, 2.2.0, 2.2.1, 2.2.2, 2.3.0, 2.3.1, 2.4.0, 2.4.1, 2.5.0, 2.5.1, 2.6.0, 2.7.0"


def refused(requirement: str, offered: str, environment: Environment | None = None) -> Finding:
    text = (
        f"ERROR: Could not find a version that satisfies the requirement {requirement} (from versions: {offered})\n"
        f"ERROR: No matching distribution found for {requirement}\n"
    )
    return said(text, environment or Environment())[0]


@pytest.mark.parametrize(
    ("requirement", "offered", "title", "fixes"),
    [
        # the versions that are offered tell the Python
        (
            "torch==2.0.1", "2.5.0, 2.5.1, 2.6.0", "torch 2.0.1 is not available for Python 3.13",
            ['pip install "torch>=2.5.0"', "uv venv --python 3.11"],
        ),
        (
            "torch==1.12.1 (from unsloth)", "2.2.0, 2.2.1, 2.2.2, 2.3.0, 2.3.1, 2.4.0", "torch 1.12.1 is not available for Python 3.12",
            ['pip install "torch>=2.2.0"', None],
        ),
        ("torch==2.9.0", OLD_TORCH, "torch 2.9.0 is not available for Python 3.9", ["uv venv --python 3.12", 'pip install "torch==2.8.0"']),
        (
            "transformers>=5", "4.46.0, 4.46.1, 4.46.2, 4.46.3", "transformers>=5 is not available for Python 3.8",
            ["uv venv --python 3.12", 'pip install "transformers==4.46.3"'],
        ),
        # or the system
        ("bitsandbytes>=0.43", "0.41.0, 0.42.0", "bitsandbytes>=0.43 is not available for macOS", [None, 'pip install "bitsandbytes==0.42.0"']),
        ("torch==2.6.1", "2.5.1, 2.6.0, 2.7.0", "torch 2.6.1 was never released", ['pip install "torch==2.6.0"', 'pip install "torch>=2.7.0"']),
        (
            "torch==2.3.0+cu121", "2.2.0, 2.3.0", "torch 2.3.0+cu121 is only on the index for cu121",
            ['pip install "torch==2.3.0+cu121" --index-url https://download.pytorch.org/whl/cu121'],
        ),
        (
            "torch==2.4.0+cu117", "2.4.0", "torch 2.4.0 was not built for CUDA 11.7",
            [f'pip install "torch==2.4.0+{label}" --index-url https://download.pytorch.org/whl/{label}' for label in ("cu124", "cu121", "cu118")],
        ),
    ],
)  # fmt: skip
def test_why_pip_finds_nothing(requirement: str, offered: str, title: str, fixes: list[str | None]) -> None:
    finding = refused(requirement, offered)
    assert (finding.title, finding.verdict, finding.severity) == (title, "hit", "error")
    assert [fix.command for fix in finding.fixes] == fixes


def test_the_python_of_the_environment_decides() -> None:
    finding = refused("torch==2.1.0", "none", on("3.12"))
    assert (finding.title, finding.verdict) == ("torch 2.1.0 is not available for Python 3.12", "hit")
    assert refused("torch==2.1.0", "none").verdict == "possible"


@pytest.mark.parametrize(
    ("requirement", "offered", "python"),
    [
        ("torch==2.6.0", "2.5.1", "3.12"),  # it has a wheel: the index lacks it
        ("requests==2.32.0", "none", None),  # for every Python: no connection
        ("no-such-package==1", "none", "3.12"),
        ("torch>=99", "2.6.0", "3.12"),
        ("torch==2.3.0", "2.2.0, 2.2.1, 2.2.2", None),  # an Intel Mac; the table does not tell machines apart
    ],
)
def test_what_the_recorded_releases_do_not_explain(requirement: str, offered: str, python: str | None) -> None:
    assert refused(requirement, offered, on(python) if python else None).rule == "symptom-no-such-release"


def test_uv_on_a_release_that_was_never_published() -> None:
    text = "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of torch==2.6.1 and you require torch==2.6.1, we can conclude that your requirements are unsatisfiable.\n"
    assert said(text)[0].title == "torch 2.6.1 was never released"
