"""What resolvers say of one package: no wheel that fits, not on the index, hidden by another index, left out."""

from __future__ import annotations

import pytest

from compat.api.diagnosis import environment_in
from compat.model import Environment, Finding
from compat.reports.wordings import Tag, tag_of
from tests.diagnosis.test_symptoms import said

NO_SOLUTION = "  × No solution found when resolving dependencies:\n  ╰─▶ "
UNSATISFIABLE = ", we can conclude that your requirements are unsatisfiable.\n"
MAC = f"""{NO_SOLUTION}Because torch{{platform_machine == 'aarch64' or platform_machine == 'x86_64'}}==2.11.0+cpu has no wheels with a
      matching platform tag (e.g., `macosx_26_0_x86_64`) and you require torch==2.11.0+cpu{UNSATISFIABLE}
      hint: Wheels are available for `torch` (v2.11.0+cpu) on the following platforms: `manylinux_2_28_aarch64`,
      `manylinux_2_28_x86_64`, `win_amd64`
"""
OLD_LINUX = f"""{NO_SOLUTION}Because onnxruntime-gpu==1.22.0 has no wheels with a matching platform tag (e.g., `manylinux_2_17_x86_64`) and
      you require onnxruntime-gpu==1.22.0{UNSATISFIABLE}
      hint: Wheels are available for `onnxruntime-gpu` (v1.22.0) on the following platforms: `manylinux_2_27_x86_64`
"""
ABI = f"Because triton==3.1.0 has no wheels with a matching Python implementation tag (e.g., `cp313`) and you require it{UNSATISFIABLE}"
LOCKED = """error: Distribution `some-kernels==0.5.3 @ registry+https://index.example/simple` can't be installed because it doesn't have a source distribution or wheel for the current platform

hint: You're using CPython 3.14 (`cp314`), but `some-kernels` (v0.5.3) only has wheels with the following Python ABI tags: `cp311`, `cp312`
"""
UNKNOWN = f"""{NO_SOLUTION}Because flashinfer was not found in the package registry and sglang[all]==0.4.2 depends on flashinfer==0.1.6, we can conclude that sglang[all]==0.4.2 cannot be used.
      And because your project depends on sglang[all]==0.4.2{UNSATISFIABLE}"""
HIDDEN = f"""{NO_SOLUTION}Because there is no version of nvidia-cudnn-cu12{{platform_machine == 'x86_64' and sys_platform == 'linux'}}==9.1.0.70 and torch==2.4.1 depends on nvidia-cudnn-cu12{{platform_machine == 'x86_64' and sys_platform ==
      'linux'}}==9.1.0.70, we can conclude that torch==2.4.1 cannot be used.
      And because you require torch==2.4.1{UNSATISFIABLE}"""
FIRST = f"""{NO_SOLUTION}Because there is no version of numpy==2.2.0 and you require numpy==2.2.0{UNSATISFIABLE}
      hint: `numpy` was found on https://index.example/cu128, but not at the requested version (numpy==2.2.0). A compatible
      version may be available on a subsequent index.
"""
PRERELEASE = f"""{NO_SOLUTION}Because there is no version of apache-tvm-ffi==0.1.0b15 and flashinfer-python==0.4.1 depends on apache-tvm-ffi==0.1.0b15{UNSATISFIABLE}
      hint: `apache-tvm-ffi` was requested with a pre-release marker (e.g., apache-tvm-ffi==0.1.0b15), but pre-releases weren't enabled (try: `--prerelease=allow`)
"""
POETRY = """The current project's supported Python range (>=3.9,<4.0) is not compatible with some of the required packages Python requirement:
  - vllm requires Python <3.13,>=3.9, so it will not be installable for Python >=3.13,<4.0

So, because app depends on vllm (^0.8.5), version solving failed.
"""
PIP = "ERROR: Cannot install torch==2.6.0 and xformers==0.0.28 because these package versions have conflicting dependencies.\n"


def fixes_of(finding: Finding) -> list[tuple[str, str | None, str | None]]:
    return [(fix.kind, fix.package, fix.spec) for fix in finding.fixes]


@pytest.mark.parametrize(
    ("text", "rule", "title", "fix"),
    [
        (MAC, "wheels-torch", "torch 2.11.0+cpu has no wheel for macOS on x86_64", ("config", None, None)),
        (
            OLD_LINUX,
            "wheels-onnxruntime-gpu",
            "onnxruntime-gpu 1.22.0 has no wheel for Linux on x86_64 with glibc 2.17",
            ("config", None, None),
        ),
        (ABI, "wheels-triton", "triton 3.1.0 has no wheel for Python 3.13", ("upgrade", "triton", ">=3.2.0")),
        (LOCKED, "wheels-some-kernels", "some-kernels 0.5.3 has no wheel for Python 3.14", ("config", None, None)),
        (
            UNKNOWN,
            "index-flashinfer",
            "The index has no package flashinfer; sglang 0.4.2 requires it",
            ("upgrade", "sglang", ">=0.4.2.post2"),
        ),
        (
            HIDDEN,
            "index-first-only",
            "uv takes nvidia-cudnn-cu12 from the first index that has it, and that one lacks the release",
            ("config", None, None),
        ),
        (
            FIRST,
            "index-first-only",
            "uv takes numpy from the first index that has it (https://index.example/cu128), and that one lacks the release",
            ("config", None, None),
        ),
        (
            PRERELEASE,
            "prerelease-apache-tvm-ffi",
            "apache-tvm-ffi 0.1.0b15 is a pre-release, which uv only selects on request",
            ("config", None, None),
        ),
        (POETRY, "project-python-range", "vllm requires Python <3.13,>=3.9, and the project allows others", ("config", None, None)),
        (PIP, "requires-xformers-torch", "xformers 0.0.28 requires torch==2.4.1, but 2.6.0 is installed", ("downgrade", "torch", "==2.4.1")),
    ],
)  # fmt: skip
def test_the_message_names_the_cause_alone(text: str, rule: str, title: str, fix: tuple[str, str | None, str | None]) -> None:
    (finding,) = said(text)
    assert (finding.rule, finding.title, fixes_of(finding)[0]) == (rule, title, fix)


def test_a_python_that_has_wheels_is_named() -> None:
    (finding,) = said(LOCKED)
    assert [fix.command for fix in finding.fixes] == ["uv venv --python 3.12"]


def test_wheels_for_every_python_do_not_blame_the_python() -> None:
    text = f"Because vllm==0.8.5 has no wheels with a matching Python ABI tag (e.g., `cp313`) and you require vllm==0.8.5{UNSATISFIABLE}"
    (finding,) = said(text)
    assert fixes_of(finding) == [("pin", "vllm", None)]


def test_another_python_for_a_release_that_the_tables_do_not_have() -> None:
    text = f"Because nothing-known==2.5.9 has no wheels with a matching Python ABI tag and you require nothing-known==2.5.9{UNSATISFIABLE}"
    (finding,) = said(text)
    assert (finding.fixes[0].kind, finding.fixes[0].command) == ("config", "uv venv --python 3.11")


@pytest.mark.parametrize(
    ("text", "python", "system", "glibc"),
    [(MAC, None, "darwin", None), (OLD_LINUX, None, "linux", "2.17"), (ABI, "3.13", None, None), (LOCKED, "3.14", None, None)],
)
def test_tags_describe_the_machine(text: str, python: str | None, system: str | None, glibc: str | None) -> None:
    environment, _ = environment_in(text)
    assert (environment.python, environment.os, environment.glibc) == (python, system, glibc)


def test_two_requirements_that_exclude_each_other_are_one_finding() -> None:
    text = f"""{NO_SOLUTION}Because xformers==0.0.28 depends on torch==2.4.1 and vllm==0.8.0 depends on torch==2.6.0, we can conclude that
      xformers==0.0.28 and vllm==0.8.0 are incompatible.
"""
    (finding,) = said(text, Environment())
    assert (finding.rule, finding.verdict) == ("symptom-opposed-requirements", "hit")
    assert finding.title == "xformers 0.0.28 requires torch==2.4.1, and vllm 0.8.0 requires torch==2.6.0: no release is both"
    assert [(fix.kind, fix.package, fix.spec) for fix in finding.fixes] == [
        ("upgrade", "xformers", ">=0.0.29.post2"),
        ("config", None, None),
    ]


PIP = """ERROR: Cannot install a-project and xformers because these package versions have conflicting dependencies.

The conflict is caused by:
    {}
"""


@pytest.mark.parametrize(
    ("lines", "fixes"),
    [
        ("vllm 0.8.0 depends on torch==2.6.0\n    nobody-knows 1.0 depends on torch<2.3", [("pin", "nobody-knows"), ("downgrade", "vllm")]),
        ("vllm 0.6.5 depends on torch==2.5.1\n    vllm-flash-attn 2.6.2 depends on torch==2.4.0",
         [("downgrade", "vllm"), ("uninstall", "vllm-flash-attn")]),
        ("vllm 0.8.0 depends on torch==2.6.0\n    xformers 0.0.29.post3 depends on torch==2.6.0", []),
        ("vllm 0.8.0 depends on torch==2.6.0\n    vllm 0.7.3 depends on torch==2.5.1", []),
    ],
)  # fmt: skip
def test_which_of_two_packages_can_move(lines: str, fixes: list[tuple[str, str]]) -> None:
    found = [each for each in said(PIP.format(lines), Environment()) if each.rule == "symptom-opposed-requirements"]
    assert [(fix.kind, fix.package) for each in found for fix in each.fixes if fix.package] == fixes


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("cp313t", Tag(python="3.13")),
        ("manylinux_2_28_aarch64", Tag(system="linux", machine="aarch64", glibc="2.28")),
        ("manylinux2014_x86_64", Tag(system="linux", machine="x86_64")),
        ("musllinux_1_2_x86_64", Tag(system="linux", machine="x86_64")),
        ("win_amd64", Tag(system="windows", machine="x86_64")),
        ("macosx_14_0_arm64", Tag(system="darwin", machine="arm64")),
        ("linux_s390x", Tag(system="linux", machine="s390x")),
        ("py3", Tag()),
    ],
)
def test_tags(text: str, tag: Tag) -> None:
    assert tag_of(text) == tag


def test_the_first_index_is_one_possibility_beside_the_release_that_is_missing() -> None:
    text = f"""{NO_SOLUTION}Because there is no version of xformers==0.0.33+5d4b92a5 and vllm==0.11.1 depends on xformers==0.0.33+5d4b92a5
      hint: `vllm` was found on https://index.example/nightly, but not at the requested version (vllm>0.11.1).
"""
    found = said(text)
    assert [(each.rule, each.verdict, list(each.packages)) for each in found] == [
        ("index-first-only", "possible", ["vllm"]),
        ("symptom-no-such-release", "possible", ["xformers"]),
    ]
