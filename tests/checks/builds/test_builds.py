"""Wheels against hardware, drivers and each other, by the shipped tables; each trap that checkers fall into is a case."""

from __future__ import annotations

from typing import Any

import pytest

from compat.checks import builds, named_devices
from compat.model import Accelerator, Distribution, Environment, Finding, Source, Workload
from compat.rules.facts import Facts
from compat.tables.builds import CodeTables
from scripts.pack_facts import code_tables
from tests.conftest import ROOT


def found(*distributions: str, gpus: tuple[str, ...] = (), source: str | None = None, **keys: Any) -> dict[str, Finding]:
    """The findings about distributions written ``name==version``, by rule; ``gpus`` are names or capabilities."""
    copies = tuple(
        Distribution(name=name, version=version, source=None if source is None else Source(source))
        for name, _, version in (each.partition("==") for each in distributions)
    )
    devices = tuple(
        Accelerator(vendor="nvidia", compute_capability=each)
        if each[0].isdigit() and "." in each
        else Accelerator(vendor="nvidia", name=each)
        for each in gpus
    )
    environment = Environment(os=keys.pop("os", "linux"), distributions=copies, accelerators=devices or None, **keys)
    environment, _ = named_devices(environment)
    return {finding.rule: finding for finding in builds.judge(Facts(environment))}


def spec(finding: Finding, kind: str) -> str | None:
    return next(fix.spec for fix in finding.fixes if fix.kind == kind)


@pytest.mark.parametrize(
    ("torch", "gpu"),
    [
        ("2.5.1+cu124", "RTX 4090"),  # 8.9 runs code for 8.0 and 8.6, and no list names it
        ("2.5.1+cu124", "L40S"),
        ("2.8.0+cu128", "GB10"),  # 12.1 runs 12.0's
        ("2.8.0+cu128", "B300"),  # 10.3 runs 10.0's
        ("2.10.0+cu128", "V100"),
        ("2.7.1+cu126", "GTX 1080 Ti"),  # 6.1 runs 6.0's
        ("2.15.0+cu132", "T4"),
    ],
)
def test_code_of_the_same_major_capability_runs(torch: str, gpu: str) -> None:
    assert found(f"torch=={torch}", gpus=(gpu,)) == {}


@pytest.mark.parametrize(
    ("torch", "gpu", "kind", "wanted"),
    [
        ("2.6.0+cu124", "RTX 5090", "upgrade", ">=2.8.0"),
        ("2.8.0+cu128", "6.1", "source-install", "==2.8.0+cu126"),
        ("2.11.0+cu130", "V100", "downgrade", "<=2.10.0"),
        ("1.13.1+cu117", "H100", "upgrade", ">=2.1.0"),
    ],
)
def test_no_code_for_the_gpu(torch: str, gpu: str, kind: str, wanted: str) -> None:
    finding = found(f"torch=={torch}", gpus=(gpu,))["build-torch-gpu"]
    assert (finding.verdict, finding.severity) == ("hit", "error")
    assert spec(finding, kind) == wanted


def test_every_gpu_is_looked_at() -> None:
    assert "build-torch-gpu" in found("torch==2.6.0+cu124", gpus=("A100", "RTX 5090"))


def test_a_wheel_without_label_is_certain_only_where_it_came_from_an_index() -> None:
    assert found("torch==2.6.0", gpus=("RTX 5090",))["build-torch-gpu"].verdict == "hit"  # no build of 2.6 has the code
    assert found("torch==2.7.1", gpus=("RTX 5090",))["build-torch-gpu"].verdict == "possible"  # the one for CUDA 12.8 has
    assert found("torch==2.7.1", gpus=("RTX 5090",), source="index")["build-torch-gpu"].verdict == "hit"
    assert found("torch==2.7.1", gpus=("RTX 5090",), source="conda") == {}
    assert found("torch==2.2", gpus=("RTX 5090",))["build-torch-gpu"].packages == {"torch": "2.2"}  # installs 2.2.0
    assert found("torch==2.7.1+cu128", gpus=("RTX 5090",)) == {}


def test_what_the_tables_do_not_know_is_no_finding() -> None:
    assert found("torch==9.9.9", gpus=("RTX 5090",), driver="300.1") == {}
    assert found("torch==2.6.0+cu124", gpus=("99.0",)) == {}


def test_an_architecture_specific_target_runs_on_that_capability_only() -> None:
    tables = CodeTables(code_tables(str(ROOT / "matrix" / "facts")))
    assert tables.runs("9.0", ("90a",), ()) is True
    assert tables.runs("12.0", ("90a",), ("90a",)) is False
    assert tables.runs("12.0", (), ("90",)) is True
    assert tables.runs("8.0", (), ("90",)) is False
    assert tables.runs("10.3", ("100f",), ()) is True
    assert tables.runs("8.7", ("86",), ()) is False
    assert tables.runs("8.7", ("86",), (), "13.2") is True


def test_a_newer_gpu_needs_a_newer_vllm() -> None:
    """vllm 0.6.2 has PTX, but requires a torch without code for it; for an old GPU, only older releases have code."""
    newer = found("vllm==0.7.0", gpus=("RTX 5090",))["build-vllm-gpu"].fixes
    assert (
        found("vllm==0.2.7", gpus=("RTX 5090",))["build-vllm-gpu"].fixes[0] == newer[0]
    )  # not 0.4.0.post1, which has PTX as well
    older = found("vllm==0.24.0", gpus=("V100",))["build-vllm-gpu"].fixes
    assert [(each.kind, each.spec) for each in newer if each.spec] == [("upgrade", ">=0.9.2")]
    assert [(each.kind, each.spec) for each in older if each.spec] == [("downgrade", "<=0.19.1")]


@pytest.mark.parametrize(
    ("torch", "driver", "holds"),
    [
        ("2.8.0+cu128", "550.54.15", False),  # minor-version compatibility: the floor of CUDA 12 is 525
        ("2.8.0+cu128", "525.60.13", False),
        ("2.8.0+cu128", "515.65.01", True),
        ("2.11.0+cu130", "575.57.08", True),
        ("2.11.0+cu130", "580.65.06", False),
        ("2.11.0+cu126", "550.54.15", False),
        ("2.0.1+cu118", "470.199.02", False),
    ],
)
def test_a_driver_below_the_floor_of_the_major_release(torch: str, driver: str, holds: bool) -> None:
    assert ("build-torch-driver" in found(f"torch=={torch}", driver=driver)) is holds


@pytest.mark.parametrize(
    ("gpu", "keys", "holds"),
    [
        ("NVIDIA GH200 480GB", {}, True),  # beside an Arm processor, for which no wheel of 2.5 has CUDA
        ("NVIDIA GB10", {}, True),
        ("NVIDIA GH200 480GB", {"machine": "x86_64"}, False),  # what is stated counts
        ("NVIDIA H100 80GB HBM3", {}, False),
    ],
)
def test_a_gpu_that_only_exists_beside_an_arm_processor_says_which_wheels_there_are(
    gpu: str, keys: dict[str, Any], *, holds: bool
) -> None:
    assert ("build-torch-cpu-only" in found("torch==2.5.1", gpus=(gpu,), source="index", **keys)) is holds


@pytest.mark.parametrize(("torch", "gpu", "asked"), [
    ("2.5.1", "NVIDIA GH200 480GB", ["torch>=2.11.0"]),
    ("2.6.0", "NVIDIA GH200 480GB", ["torch==2.6.0+cu126"]),
    ("2.7.1", "NVIDIA GB10", ["torch==2.7.1+cu128"]),
    ("2.7.1", "NVIDIA A100-PCIE-40GB", ["torch>=2.11.0"]),  # these are for Hopper and Blackwell
    ("2.8.0", "NVIDIA GB200", ["torch==2.8.0+cu129"]),
    ("2.9.1", "NVIDIA GH200 480GB", ["torch==2.9.1+cu130", "torch==2.9.1+cu128"]),
    ("2.9.1", "NVIDIA Thor", ["torch==2.9.1+cu130"]),
])  # fmt: skip
def test_the_index_of_torch_has_builds_for_arm_servers_since_2_6(torch: str, gpu: str, asked: list[str]) -> None:
    finding = found(f"torch=={torch}", gpus=(gpu,), source="index", machine="aarch64")["build-torch-cpu-only"]
    assert [each for fix in finding.fixes for each in asked if f'"{each}"' in (fix.command or "")] == asked
    assert len(finding.fixes) == len(asked)


def test_a_build_in_place_of_one_for_the_cpu_has_code_for_the_gpu() -> None:
    finding = found("torch==2.11.0+cpu", gpus=("Tesla V100-SXM2-32GB",))["build-torch-cpu-only"]
    assert [fix.spec for fix in finding.fixes] == ["==2.11.0+cu126"]


@pytest.mark.parametrize(("torch", "gpu", "lacks"), [
    ("2.9.1+cu128", "NVIDIA Thor", True), ("2.9.1+cu130", "NVIDIA Thor", False), ("2.9.1+cu130", "NVIDIA GB10", False),
    ("2.10.0+cu126", "NVIDIA GB200", True), ("2.8.0+cu129", "Jetson AGX Orin", True), ("2.7.1+cu128", "NVIDIA GH200 480GB", False),
])  # fmt: skip
def test_what_the_builds_for_arm_servers_have_code_for(torch: str, gpu: str, *, lacks: bool) -> None:
    assert ("build-torch-gpu" in found(f"torch=={torch}", gpus=(gpu,), machine="aarch64")) is lacks


def test_volta_is_not_among_what_torch_2_11_is_compiled_for() -> None:
    # torch's own table of its builds says so of CUDA 12.8, which is wrong
    assert "build-torch-gpu" in found("torch==2.11.0+cu128", gpus=("Tesla V100-SXM2-32GB",))
    assert "build-torch-gpu" not in found("torch==2.10.0+cu128", gpus=("Tesla V100-SXM2-32GB",))


@pytest.mark.parametrize(
    ("gpu", "holds"),
    [("NVIDIA GH200 480GB", True), ("NVIDIA A100-PCIE-40GB", True), ("Jetson AGX Orin", False)],
)
def test_drivers_of_arm_servers_are_numbered_like_others_and_those_of_jetson_are_not(gpu: str, *, holds: bool) -> None:
    rules = found("torch==2.11.0+cu130", gpus=(gpu,), driver="550.90.07", machine="aarch64")
    assert ("build-torch-driver" in rules) is holds


def test_the_way_out_of_an_old_driver_is_another_build() -> None:
    finding = found("torch==2.11.0", driver="570.86.10", source="index")["build-torch-driver"]
    assert finding.verdict == "hit"
    assert (spec(finding, "source-install") or "").startswith("==2.11.0+cu12")
    assert spec(finding, "driver") == ">=580"


def test_compatibility_libraries_lift_the_floor() -> None:
    variables = {"LD_LIBRARY_PATH": "/usr/local/cuda/compat:/usr/lib"}
    assert "build-torch-driver" not in found("torch==2.11.0+cu130", driver="550.54.15", variables=variables)


def test_a_toolkit_above_the_driver() -> None:
    assert found(driver="575.57.08", cuda_toolkit="13.0")["build-toolkit-driver"].severity == "warning"
    assert found(driver="550.54.15", cuda_toolkit="12.8") == {}


@pytest.mark.parametrize(
    ("distributions", "rule"),
    [
        (("torch==2.6.0+cu124", "flash-attn==2.7.4.post1+cu12torch2.5cxx11abiFALSE"), "build-flash-attn-torch"),
        (("torch==2.8.0+cu126", "flashinfer-python==0.2.11+cu126torch2.7"), "build-flashinfer-python-torch"),
        (("torch==2.8.0+cu128", "exllamav2==0.3.2+cu128.torch2.7.0"), "build-exllamav2-torch"),
        (("torch==2.7.0+cu126", "natten==0.17.5+torch260cu126"), "build-natten-torch"),
        (("torch==2.7.0+cu126", "torch-scatter==2.1.2+pt26cu124"), "build-torch-scatter-torch"),
        (("torch==2.8.0+cu128", "torchvision==0.23.0+cpu"), "build-torchvision-flavour"),
        (("torch==2.5.0+cu124", "xformers==0.0.29.post3"), "build-xformers-torch"),
        (("torch==2.7.0+cu128", "bitsandbytes==0.45.2"), "build-bitsandbytes-cuda"),
        (("torch==2.1.2+cpu", "xformers==0.0.23.post1"), "build-torch-cpu-only"),
        (("flashinfer-python==0.5.3", "flashinfer-cubin==0.6.0"), "build-flashinfer-cubin"),
        (("flashinfer-python==0.6.11", "flashinfer-jit-cache==0.6.9+cu130"), "build-flashinfer-jit-cache"),
    ],
)
def test_wheels_that_do_not_belong_together(distributions: tuple[str, ...], rule: str) -> None:
    assert found(*distributions)[rule].verdict == "hit"


def test_a_report_may_leave_out_the_label_of_a_build_for_another_cuda() -> None:
    versions = "torch==2.11.0+cu129", "vllm==0.21.0"
    assert found(*versions, source="index")["build-vllm-cuda"].verdict == "hit"
    assert found(*versions)["build-vllm-cuda"].unknown == ("build.vllm",)


@pytest.mark.parametrize(
    ("task", "features", "severity"),
    [("serve", None, "error"), ("grpo", None, "error"), ("sft", None, "warning"), ("sft", ("vllm",), "error")],
)
def test_a_training_that_generates_nothing_does_not_load_a_server(task: str, features: Any, severity: str) -> None:
    job = Workload(task=task, features=features)
    assert found("torch==2.6.0+cu118", "vllm==0.8.1", source="index", workload=job)["build-vllm-cuda"].severity == severity


@pytest.mark.parametrize(
    "distributions",
    [
        ("torch==2.6.0+cu124", "flash-attn==2.7.4.post1+cu12torch2.6cxx11abiFALSE"),
        ("torch==2.7.1+cu126", "flashinfer-python==0.2.11+cu126torch2.7"),
        ("torch==2.10.0+cu128", "torch-scatter==2.1.2+pt210cu128"),
        ("torch==2.10.0+cu128", "natten==0.21.1+torch2100cu128"),
        ("torch==2.7.0+cu126", "some-package==1.0+opt26"),
        ("torch==2.11.0+cu130", "vllm==0.21.0"),
        ("torch==2.8.0+cu128", "torchvision==0.23.0+cu128", "torchaudio==2.8.0"),
        ("torch==2.6.0+cu124", "xformers==0.0.29.post3"),
        ("torch==2.11.0+cu128", "xformers==0.0.35"),  # on the stable ABI of torch 2.10
        ("torch==2.7.0+cu128", "bitsandbytes==0.45.3"),
        ("torch==2.1.2+cpu",),
        ("flashinfer-python==0.6.0", "flashinfer-cubin==0.6.0"),
        ("flashinfer-python==0.6.11", "flashinfer-jit-cache==0.6.11+cu130", "flashinfer-cubin==0.6.11"),
    ],
)
def test_wheels_that_belong_together(distributions: tuple[str, ...]) -> None:
    assert found(*distributions) == {}


def test_what_was_built_from_source_is_not_held_against_wheels() -> None:
    assert found("torch==2.11.0+cu129", "vllm==0.21.0", source="vcs") == {}


@pytest.mark.parametrize(
    ("gpu", "precision", "distributions", "severity"),
    [
        ("T4", "bf16", (), "warning"),  # torch emulates it
        ("T4", "bf16", ("vllm==0.6.6",), "error"),  # vLLM refuses it
        ("A100", "fp8", (), "error"),
        ("A100", "bf16", (), None),
        ("L40S", "fp8", (), None),
    ],
)
def test_precision(gpu: str, precision: str, distributions: tuple[str, ...], severity: str | None) -> None:
    findings = found(*distributions, gpus=(gpu,), workload=Workload(precision=precision))
    assert [each.severity for each in findings.values()] == ([] if severity is None else [severity])


@pytest.mark.parametrize(
    ("path", "toolkit", "holds"),
    [
        ("/usr/local/cuda-12.0/lib64", None, True),
        ("/usr/local/cuda/lib64", "12.0", True),
        ("/usr/local/cuda/lib64", None, False),
        ("/usr/local/cuda-12.6/lib64", None, False),
        ("/usr/local/cuda-11.8/lib64", None, False),  # other file names: nothing is shadowed
        ("/opt/lib", "12.0", False),
    ],
)
def test_an_older_cuda_on_the_library_path(path: str, toolkit: str | None, holds: bool) -> None:
    findings = found("torch==2.1.0+cu121", variables={"LD_LIBRARY_PATH": path}, cuda_toolkit=toolkit)
    assert ("build-library-path" in findings) is holds


def test_the_code_of_a_wheel_from_another_index_is_unknown() -> None:
    assert "build-sgl-kernel-gpu" in found("sgl-kernel==0.3.21", gpus=("GB10",))
    assert "build-sgl-kernel-gpu" not in found("sgl-kernel==0.3.21+cu130", gpus=("GB10",))


def test_vllm_without_code_for_the_gpu() -> None:
    assert spec(found("vllm==0.9.0", gpus=("RTX 5090",))["build-vllm-gpu"], "upgrade") == ">=0.9.2"
    assert spec(found("vllm==0.20.2", gpus=("V100",))["build-vllm-gpu"], "downgrade") == "<=0.19.1"
    assert found("vllm==0.19.1", gpus=("V100",)) == {}
    assert (
        found("vllm==0.2.0", gpus=("P100",))["build-vllm-gpu"].fixes[0].text.startswith("use a GPU with compute capability 7.0")
    )


def test_a_published_build_in_an_image_is_a_question() -> None:
    assert found("vllm==0.9.0", gpus=("RTX 5090",), source="image")["build-vllm-gpu"].verdict == "possible"


def test_torch_in_an_image_is_the_build_for_its_toolkit() -> None:
    asked = found("torch==2.0.1", gpus=("NVIDIA H100 PCIe",), source="image", cuda_toolkit="11.7")["build-torch-gpu"]
    assert (asked.verdict, asked.unknown) == ("possible", ("build.torch",))
    assert "build-torch-gpu" not in found("torch==2.0.1", gpus=("NVIDIA H100 PCIe",), source="image", cuda_toolkit="11.8")
    assert "build-torch-gpu" not in found("torch==2.0.1", gpus=("NVIDIA H100 PCIe",), source="image")
    assert "build-torch-gpu" not in found("torch==2.0.1", gpus=("NVIDIA H100 PCIe",), source="image", cuda_toolkit="10.2")


@pytest.mark.parametrize(
    ("torch", "gpu", "verdict"),
    [
        ("2.6.0+cu124", "MI300X", "hit"),
        ("2.6.0", "MI300X", "possible"),  # the default build, unless an image or another index brought it
        ("2.6.0+rocm6.2", "H100", "hit"),
        ("2.6.0+rocm6.2", "MI300X", None),
        ("2.6.0+cu124", "H100", None),
    ],
)
def test_a_build_for_the_gpus_of_another_vendor(torch: str, gpu: str, verdict: str | None) -> None:
    device = Accelerator(vendor="amd" if gpu.startswith("MI") else "nvidia", name=gpu)
    environment = Environment(os="linux", distributions=(Distribution("torch", torch),), accelerators=(device, device))
    finding = {each.rule: each for each in builds.judge(Facts(named_devices(environment)[0]))}.get("build-torch-vendor")
    assert (finding and finding.verdict) == verdict
    assert finding is None or finding.severity == "error"


@pytest.mark.parametrize(
    ("torch", "source", "verdict"),
    [("2.13.0+cpu", "index", "hit"), ("2.13.0+cpu", None, "possible"), ("2.13.0+cu130", "index", None)],
)
def test_a_torchvision_for_gpus_does_not_load_with_a_torch_for_the_cpu(
    torch: str, source: str | None, verdict: str | None
) -> None:
    finding = found(f"torch=={torch}", "torchvision==0.28.0", source=source, os="linux").get("build-torchvision-cpu")
    assert (finding.verdict if finding is not None else None) == verdict


@pytest.mark.parametrize(("label", "loads"), [("cpu", True), ("cu126", False)])
def test_the_index_of_torchvision_says_which_build_it_is(label: str, loads: bool) -> None:
    copies = (
        Distribution("torch", "2.13.0", source=Source("index", {"url": "https://index.example/whl/cpu"})),
        Distribution("torchvision", "0.28.0", source=Source("index", {"url": f"https://index.example/whl/{label}"})),
    )
    findings = {each.rule for each in builds.judge(Facts(Environment(os="linux", distributions=copies)))}
    assert ("build-torchvision-cpu" not in findings) is loads


def test_turbomind_without_code_for_the_gpu_is_a_warning() -> None:
    finding = found("lmdeploy==0.9.2", "torch==2.7.1+cu128", gpus=("NVIDIA GeForce RTX 5090",))["build-lmdeploy-gpu"]
    assert (finding.verdict, finding.severity, finding.fixes[0].spec) == ("hit", "warning", ">=0.13.0")
    assert "--backend pytorch" in finding.why
    assert "build-lmdeploy-gpu" not in found("lmdeploy==0.13.0", gpus=("NVIDIA GeForce RTX 5090",))
    assert "build-lmdeploy-gpu" not in found("lmdeploy==0.9.2", gpus=("NVIDIA H100 80GB HBM3",))
    assert "build-lmdeploy-gpu" not in found("lmdeploy==0.3.0", gpus=("NVIDIA GeForce RTX 5090",))  # its PTX is compiled


def installed(**packages: str) -> dict[str, Finding]:
    """The findings about packages installed from an index, whose metadata was read."""
    copies = tuple(Distribution(name, version, Source("index"), requires=()) for name, version in packages.items())
    return {each.rule: each for each in builds.judge(Facts(Environment(os="linux", distributions=copies)))}


@pytest.mark.parametrize(
    ("torch", "torchaudio", "verdict"),
    [
        ("2.10.0+cu129", "2.10.0", "hit"),  # the default index has it for CUDA 12.8
        ("2.10.0+cu128", "2.10.0", None),
        ("2.10.0", "2.10.0+cu126", "hit"),
        ("2.9.1+cu129", "2.10.0", None),  # another release is another finding
        ("2.10.0+cpu", "2.10.0", None),
    ],
)
def test_torchaudio_refuses_a_torch_for_another_cuda(torch: str, torchaudio: str, verdict: str | None) -> None:
    finding = installed(torch=torch, torchaudio=torchaudio).get("build-torchaudio-flavour")
    assert (None if finding is None else (finding.verdict, finding.severity)) == (verdict and (verdict, "error"))


def test_a_torchaudio_of_unknown_origin_is_a_question() -> None:
    finding = found("torch==2.10.0+cu129", "torchaudio==2.10.0")["build-torchaudio-flavour"]
    assert (finding.verdict, finding.unknown) == ("possible", ("build.torchaudio",))


def test_the_index_of_a_labelled_torch_in_a_file_may_have_its_torchaudio() -> None:
    assert "build-torchaudio-flavour" not in found("torch==2.10.0+cu129", "torchaudio==2.10.0", source="index")


def test_torchvision_loads_with_a_torch_for_another_minor_release_of_cuda() -> None:
    assert "build-torchvision-flavour" not in installed(torch="2.10.0+cu129", torchvision="0.25.0")
    assert "build-torchvision-flavour" in installed(torch="2.10.0+cu130", torchvision="0.25.0")


@pytest.mark.parametrize(("packages", "gpu", "lacks"), [
    (("vllm==0.30.0", "torch==2.13.0+cu130"), "NVIDIA Thor", False), (("vllm==0.15.1", "torch==2.9.1+cu130"), "NVIDIA Thor", True),
    (("vllm==0.10.2", "torch==2.8.0+cu129"), "Jetson AGX Orin", False), (("vllm==0.9.2", "torch==2.7.1+cu128"), "NVIDIA GB200", False),
    (("bitsandbytes==0.50.2", "torch==2.13.0+cu130"), "NVIDIA Thor", False),
    (("bitsandbytes==0.50.2", "torch==2.11.0+cu128"), "NVIDIA Thor", True),
    (("sgl-kernel==0.3.20",), "NVIDIA GB10", True), (("sglang-kernel==0.4.2",), "NVIDIA GB10", False),
    (("sglang-kernel==0.4.2",), "NVIDIA A100-PCIE-40GB", True),
])  # fmt: skip
def test_the_wheels_of_extensions_for_arm_have_code_for_other_gpus(packages: tuple[str, ...], gpu: str, *, lacks: bool) -> None:
    name = packages[0].partition("==")[0]
    assert (f"build-{name}-gpu" in found(*packages, gpus=(gpu,), machine="aarch64")) is lacks


def test_what_is_published_as_wheels_alone_is_not_compiled_by_pip() -> None:
    fixes = {
        each.kind: each for each in found("sgl-kernel==0.3.20", gpus=("Tesla V100-SXM2-32GB",))["build-sgl-kernel-gpu"].fixes
    }
    assert fixes["source-install"].command is None
    assert "from its repository" in fixes["source-install"].text
    fixes = {each.kind: each for each in found("vllm==0.30.0", gpus=("Tesla V100-SXM2-32GB",))["build-vllm-gpu"].fixes}
    assert "--no-binary vllm" in (fixes["source-install"].command or "")
