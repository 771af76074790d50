"""Distributions of different names that overwrite each other's files: how bad it is, and which one is kept."""

from __future__ import annotations

from typing import Any

import pytest

from compat.checks import check_environment
from compat.checks.selections import judged_listing
from compat.formats.registry import format_named
from compat.model import Accelerator, Distribution, Environment, Finding, Workload
from compat.rules.compiled import open_matrix

A100 = (Accelerator(vendor="nvidia", name="A100", compute_capability="8.0"),)


def found(
    *pins: str, files: dict[str, str] | None = None, requires: dict[str, tuple[str, ...]] | None = None, **facts: Any
) -> dict[str, Finding]:
    copies = []
    for name, _, version in (pin.partition("==") for pin in pins):
        state = (files or {}).get(name)
        copies.append(Distribution(name, version, extra={"files": state} if state else {}, requires=(requires or {}).get(name)))
    environment = Environment(distributions=tuple(copies), **{"os": "linux", "python": "3.11", **facts})
    _, findings, _ = check_environment(environment, open_matrix())
    return {each.rule: each for each in findings if each.rule.startswith("overwritten-")}


def listed(kind: str, text: str, **facts: Any) -> dict[str, Finding]:
    (listing,) = format_named(kind).listings(kind, text.encode())
    findings, _ = judged_listing(listing, Environment(**facts), open_matrix())
    return {each.rule: each for each in findings if each.rule.startswith("overwritten-")}


OPENCV = "opencv-python==4.10.0.84", "opencv-python-headless==4.11.0.86"
ONNX = "onnxruntime==1.20.1", "onnxruntime-gpu==1.20.1"


def test_two_builds_of_a_module_are_a_remark() -> None:
    finding = found(*OPENCV)["overwritten-cv2"]
    assert (finding.severity, finding.verdict, finding.effect) == ("info", "hit", "install")
    command = 'pip uninstall -y opencv-python-headless opencv-python && pip install --no-deps "opencv-python==4.10.0.84"'
    assert [fix.command for fix in finding.fixes] == [command]
    assert found("opencv-python==4.10.0.84") == {}


def test_what_another_package_requires_is_kept() -> None:
    finding = found(*OPENCV, "x==1", requires={"x": ("opencv-python-headless",)})["overwritten-cv2"]
    assert finding.fixes[0].text.startswith("keep opencv-python-headless (x requires it)")
    # if both are required, none can be uninstalled
    finding = found(*OPENCV, "x==1", requires={"x": ("opencv-python-headless", "opencv-python")})["overwritten-cv2"]
    assert finding.fixes[0].command == 'pip install --force-reinstall --no-deps "opencv-python==4.10.0.84"'


def test_a_release_that_a_requirement_does_not_accept_is_a_warning() -> None:
    finding = found(*OPENCV, "x==1", requires={"x": ("opencv-python-headless>=4.11",)})["overwritten-cv2"]
    assert (finding.severity, finding.effect) == ("warning", "crash")
    assert "x requires opencv-python-headless>=4.11" in finding.why
    kept = {"opencv-python-headless": "own", "opencv-python": "replaced"}
    finding = found(*OPENCV, "x==1", requires={"x": ("opencv-python-headless>=4.11",)}, files=kept)["overwritten-cv2"]
    assert finding.severity == "info"  # the accepted one is there


def test_other_projects_with_the_same_module_are_a_warning() -> None:
    finding = found("pyjwt==2.10.1", "jwt==1.4.0")["overwritten-jwt"]
    assert (finding.severity, finding.fixes[0].package) == ("warning", "jwt")
    assert found("decord==0.6.0", "decord2==3.4.0")["overwritten-decord"].severity == "info"  # a fork


# the examples of the rule that this check replaced, first
@pytest.mark.parametrize(
    ("pins", "facts", "severity"),
    [
        (ONNX, {"accelerators": A100}, "warning"),
        (ONNX[1:], {"accelerators": A100}, None),
        (ONNX[:1], {"accelerators": A100}, None),
        (ONNX, {"accelerators": A100, "workload": Workload(task="sft")}, "info"),
        (ONNX, {"accelerators": A100, "workload": Workload(task="prm")}, "info"),
        (ONNX, {"accelerators": ()}, "info"),
        (ONNX, {}, "info"),
        (("faiss-cpu==1.8.0", "faiss-gpu==1.7.2"), {"accelerators": A100}, "warning"),
        (("xgboost==3.0.4", "xgboost-cpu==3.0.4"), {"accelerators": A100}, "warning"),
    ],
)
def test_a_build_for_the_cpu_on_a_machine_with_a_gpu(
    pins: tuple[str, ...], facts: dict[str, Any], severity: str | None
) -> None:
    findings = list(found(*pins, **facts).values())
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])
    if severity == "warning":
        assert findings[0].effect == "slow"


def test_the_build_for_the_gpu_is_kept_on_a_gpu() -> None:
    fix = found(*ONNX, accelerators=A100)["overwritten-onnxruntime"].fixes[0]
    assert fix.command == 'pip uninstall -y onnxruntime onnxruntime-gpu && pip install --no-deps "onnxruntime-gpu==1.20.1"'
    own = {"onnxruntime-gpu": "own", "onnxruntime": "replaced"}
    assert found(*ONNX, accelerators=A100, files=own)["overwritten-onnxruntime"].severity == "info"


def test_a_mix_of_two_builds() -> None:
    libs = "nvidia-cutlass-dsl-libs-base==4.5.2", "nvidia-cutlass-dsl-libs-cu13==4.5.2"
    finding = found(*libs, "torch==2.11.0+cu130")["overwritten-nvidia_cutlass_dsl"]
    assert finding.severity == "warning"
    assert finding.fixes[0].command == 'pip install "nvidia-cutlass-dsl-libs-base>4.5.3" "nvidia-cutlass-dsl-libs-cu13>4.5.3"'
    assert "libs-cu13" in (finding.fixes[1].command or "")
    along = found(*libs, "nvidia-cutlass-dsl==4.5.2", requires={"nvidia-cutlass-dsl": ("nvidia-cutlass-dsl-libs-base==4.5.2",)})
    assert along["overwritten-nvidia_cutlass_dsl"].fixes[0].command == 'pip install "nvidia-cutlass-dsl>4.5.3"'
    mixed = {"opencv-python": "mixed", "opencv-python-headless": "mixed"}
    assert found(*OPENCV, files=mixed)["overwritten-cv2"].severity == "warning"
    own = {"nvidia-cutlass-dsl-libs-base": "replaced", "nvidia-cutlass-dsl-libs-cu13": "own"}
    assert found(*libs, files=own)["overwritten-nvidia_cutlass_dsl"].severity == "info"


def test_a_part_of_a_package_is_installed_last_and_both_stay() -> None:
    pins = "flash-attn==2.8.3", "flash-attn-4==4.0.0b36"
    finding = found(*pins)["overwritten-flash_attn"]
    assert (finding.severity, finding.fixes[-1].kind) == ("info", "config")
    assert finding.fixes[-1].command == 'pip install --force-reinstall --no-deps "flash-attn-4==4.0.0b36"'
    replaced = {"flash-attn": "own", "flash-attn-4": "replaced"}
    assert found(*pins, files=replaced)["overwritten-flash_attn"].severity == "warning"


def test_a_module_that_went_with_another_distribution_is_an_error() -> None:
    finding = found("opencv-python==4.10.0.84", files={"opencv-python": "missing"})["overwritten-cv2"]
    assert (finding.severity, finding.verdict) == ("error", "hit")
    assert finding.fixes[0].command == 'pip install --force-reinstall --no-deps "opencv-python==4.10.0.84"'


def test_nvidias_libraries_for_two_cuda_releases_are_one_finding() -> None:
    pins = "nvidia-nccl-cu11==2.14.3", "nvidia-nccl-cu12==2.27.3"
    finding = found("torch==2.8.0+cu128", *pins)["overwritten-nvidia"]
    assert (finding.verdict, finding.severity, finding.fixes[0].package) == ("hit", "warning", "nvidia-nccl-cu11")
    assert "nvidia-nccl-cu12==2.27.3" in (finding.fixes[0].command or "")
    assert found("torch==2.8.0+cu128", "nvidia-nccl-cu12==2.27.7", "nvidia-nccl-cu13==2.27.7") == {}
    # of a torch that nobody mentioned nothing is known; of an environment without torch it is known that nothing loads it
    assert found(*pins)["overwritten-nvidia"].fixes[0].command is None
    assert found(*pins, distributions_complete=True) == {}
    assert found("torch==2.8.0+cu128", "nvidia-cublas-cu11==11.11.3.6", "nvidia-cublas-cu12==12.8.4.1") == {}
    more = found("torch==2.8.0+cu128", *pins, "nvidia-cudnn-cu11==9.1.0.70", "nvidia-cudnn-cu12==9.10.2.21")[
        "overwritten-nvidia"
    ]
    assert len(more.packages) == 4


def test_a_curated_rule_about_the_same_packages_says_more() -> None:
    pins = "cuda-python==12.6.2.post1", "cuda-bindings==13.5.0"
    assert list(found(*pins)) == ["overwritten-cuda"]
    assert found(*pins, "nvidia-cutlass-dsl==4.8.1", "flashinfer-python==0.6.12", workload=Workload(task="serve")) == {}


# --- In files.


@pytest.mark.parametrize(
    "line", ["opencv-python-headless", "opencv-python-headless>=4", 'opencv-python-headless>4; python_version>"3"']
)
def test_what_the_kept_one_requires_is_not_taken_away(line: str) -> None:
    finding = found(*OPENCV, "x==1", requires={"x": ("opencv-python",), "opencv-python": (line,)})["overwritten-cv2"]
    assert [fix.kind for fix in finding.fixes][-1] == "config"
    assert finding.fixes[-1].text.endswith("opencv-python requires opencv-python-headless")


def test_a_line_of_a_requirements_file_is_left_out() -> None:
    finding = listed("requirements", "\n".join(ONNX), accelerators=A100)["overwritten-onnxruntime"]
    assert [(fix.package, fix.command) for fix in finding.fixes] == [("onnxruntime", None)]
    assert "line 1" in finding.fixes[0].text


UV = """version = 1
requires-python = ">=3.11"

[[package]]
name = "fastembed"
version = "0.7.0"
source = { registry = "https://index.example/simple" }
dependencies = [{ name = "onnxruntime" }]

[[package]]
name = "onnxruntime"
version = "1.20.1"
source = { registry = "https://index.example/simple" }

[[package]]
name = "onnxruntime-gpu"
version = "1.20.1"
source = { registry = "https://index.example/simple" }

[[package]]
name = "opencv-python"
version = "4.10.0.84"
source = { registry = "https://index.example/simple" }

[[package]]
name = "opencv-python-headless"
version = "4.10.0.84"
source = { registry = "https://index.example/simple" }

[[package]]
name = "vision"
version = "1.0"
source = { registry = "https://index.example/simple" }
dependencies = [{ name = "opencv-python-headless" }]

[[package]]
name = "project"
version = "0"
source = { virtual = "." }
dependencies = [
    { name = "fastembed" }, { name = "onnxruntime-gpu" }, { name = "opencv-python" }, { name = "vision" },
]
"""


def test_uv_overrides_what_another_package_requires() -> None:
    findings = listed("uv.lock", UV, accelerators=A100)
    (fix,) = findings["overwritten-onnxruntime"].fixes
    assert (fix.package, fix.command) == ("onnxruntime", "uv lock")
    assert "fastembed requires onnxruntime" in fix.text
    assert "\"onnxruntime; sys_platform == 'never'\"" in fix.text
    (fix,) = findings["overwritten-cv2"].fixes
    assert fix.command == "uv remove opencv-python"
    assert "vision requires it" in fix.text


def test_other_locks_do_not_say_what_the_project_states() -> None:
    text = (
        '[[package]]\nname = "opencv-python"\nversion = "4.10.0.84"\ngroups = ["default"]\n\n'
        '[[package]]\nname = "opencv-python-headless"\nversion = "4.10.0.84"\ngroups = ["default"]\n\n'
        '[metadata]\ngroups = ["default"]\nlock_version = "4.5.0"\ncontent_hash = "sha256:0"\n'
    )
    remove, last = listed("pdm.lock", text)["overwritten-cv2"].fixes
    assert remove.command == "pdm remove opencv-python-headless"
    assert last.command == 'pip install --force-reinstall --no-deps "opencv-python==4.10.0.84"'


def test_what_another_package_requires_is_overwritten_if_it_cannot_be_left_out() -> None:
    package = '[[package]]\nname = "{}"\nversion = "{}"\noptional = false\npython-versions = "*"\n{}\n'
    asks = '[package.dependencies]\n{} = "*"\n'
    text = "".join((
        package.format("one", "1", asks.format("opencv-python")),
        package.format("opencv-python", "4.10.0.84", ""),
        package.format("opencv-python-headless", "4.10.0.84", ""),
        package.format("other", "1", asks.format("opencv-python-headless")),
        '[metadata]\nlock-version = "2.0"\npython-versions = "^3.10"\ncontent-hash = "0"\n',
    ))  # fmt: skip
    (fix,) = listed("poetry.lock", text)["overwritten-cv2"].fixes
    assert fix.command == 'pip install --force-reinstall --no-deps "opencv-python==4.10.0.84"'
    assert "other requires opencv-python-headless" in fix.text
