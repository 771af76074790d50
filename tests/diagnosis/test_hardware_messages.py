"""What messages about GPUs, drivers, kernels and their communication mean, whichever package prints them."""

from __future__ import annotations

import pytest

import compat
from compat.diagnosis.diagnose import diagnose
from compat.diagnosis.loader import packages_in
from compat.model import Accelerator, Distribution, Environment, Finding
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.compiled import in_memory, open_matrix


def said(text: str, **installed: str) -> tuple[Finding, ...]:
    distributions = tuple(Distribution(name.replace("_", "-"), version) for name, version in installed.items())
    errors = parse_log(text)
    return diagnose(text, errors, decisive(errors), Environment(distributions=distributions or None), in_memory(()))


@pytest.mark.parametrize(
    ("text", "rule", "packages", "fix"),
    [
        ('docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].', "container-runtime", [], "nvidia-ctk runtime configure"),
        ("nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1", "container-runtime", [], "nvidia-ctk"),
        ("Failed to initialize NVML: Driver/library version mismatch", "nvml-mismatch", [], "restart"),
        ("Failed to initialize NVML: Unknown Error", "nvml-lost", [], "start the container again"),
        ("RuntimeError: CUDA error: invalid device ordinal", "device-ordinal", ["torch"], "unset CUDA_VISIBLE_DEVICES"),
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 34: CUDA driver is a stub library", "stub-driver", [], "unset LD_LIBRARY_PATH"),
        ("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment", "cuda-unknown", [], "modprobe nvidia_uvm"),
        ("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable", "device-busy", [], "--compute-mode=DEFAULT"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu-lost", [], "dmesg"),
        ("RuntimeError: CUDA error: device-side assert triggered", "device-assert", ["torch"], "CUDA_LAUNCH_BLOCKING"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "illegal-access", ["torch"], "pip install -U torch"),
        ("rocBLAS error: Could not initialize Tensile host: No devices found", "no-amd-gpu", ["torch"], "/dev/kfd"),
        ("Memory access fault by GPU node-1 on address 0x7f00. Reason: Page not present or supervisor privilege.", "illegal-access", ["torch"], "enforce-eager"),
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before? Error 304: OS call failed", "cuda-start", [], "nvidia-smi"),
        ("RuntimeError: Failed to infer device type", "no-gpu-visible", ["torch"], "--gpus all"),
        ("RuntimeError: Cannot re-initialize CUDA in forked subprocess.", "cuda-fork", ["torch"], "VLLM_WORKER_MULTIPROC_METHOD=spawn"),
        ("RuntimeError: API call is not supported in the installed CUDA driver", "driver-too-old", [], "newer driver"),
        (":1:hip_fatbin.cpp :687 : 1 us:  No compatible code objects found for: gfx1152", "hip-no-code", ["torch"], "HSA_OVERRIDE_GFX_VERSION"),
        ("rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: No such file for GPU arch : gfx90a", "hip-no-code", ["torch"], "HSA_OVERRIDE_GFX_VERSION"),
        ("ValueError: The quantization method x is not supported for the current GPU. Minimum capability: 80. Current capability: 75.", "capability-too-low", [], "backend"),
        ("ValueError: this needs a GPU with compute capability 9.0", "capability-too-low", [], "backend"),
        ("OSError: libcuda.so: cannot open shared object file: No such file or directory", "libcuda-name", [], "/usr/lib/wsl/lib"),
        ("ValueError: Requested int8_float16 compute type, but the target device or backend do not support efficient int8_float16 computation.", "ctranslate2-compute-type", ["ctranslate2"], "float32"),
        ("TypeError: MPS BFloat16 is only supported on MacOS 14 or newer", "macos-too-old", ["torch"], "install macOS 14"),
        ("RuntimeError: isin_Tensor_Tensor_out only works on floating types on MPS for pre MacOS_14_0. Received dtype: Long", "macos-too-old", ["torch"], "install macOS 14"),
        ("AssertionError: expected sm90 or sm100", "kernel-architecture", [], "backend"),
        ("AssertionError: Only SM 10.x and 11.x are supported", "kernel-architecture", [], "backend"),
        ("ValueError: The 'fa3' backend is not supported on Blackwell GPUs", "kernel-architecture", [], "backend"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_121a'", "nvcc-architecture", [], "toolkit 12.9 or newer"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120f'", "nvcc-architecture", [], "toolkit 12.9 or newer"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_70'", "nvcc-architecture", [], "toolkit 12.9 or older"),
        ("nvcc fatal   : Value 'compute_89' is not defined for option 'gpu-architecture'", "nvcc-architecture", [], "toolkit 11.8 or newer"),
        ("nvcc fatal   : Unknown option '-static-global-template-stub=false'", "nvcc-option", [], "toolkit 12.8 or newer"),
        ("nvcc fatal   : Value 'c++20' is not defined for option 'std'", "nvcc-option", [], "toolkit 12.0 or newer"),
        ('error: namespace "cub" has no member "Max"', "cuda-library-headers", [], "CUDA_HOME"),
        ("ptxas error   : Feature '.e2m1x2' not supported on .target 'sm_121'", "ptxas-feature", [], "FLASHINFER_CUDA_ARCH_LIST"),
        ("RuntimeError: Cannot find any available NVCC compiler", "no-nvcc", [], "CUDA_HOME"),
        ("RuntimeError: CUDART error: peer access is not supported between these two devices", "custom-all-reduce", ["vllm"], "--disable-custom-all-reduce"),
        ("NCCL WARN Cuda failure 'peer access is not supported between these two devices'", "peer-access", ["torch"], "NCCL_P2P_DISABLE=1"),
        ("NCCL WARN Mismatched NCCL version detected : rank 0 NCCL version 2.21.5 rank 1 NCCL version 2.20.5", "nccl-releases", ["torch", "nvidia-nccl-cu12"], "unset LD_LIBRARY_PATH"),
        ("TypeError: FlashAttentionImpl.__init__() got an unexpected keyword argument 'layer_idx'", "dual-chunk-attention", ["vllm"], "config.json"),
        ("NameError: name 'ncclGetVersion' is not defined", "nccl-not-loaded", ["vllm"], "VLLM_NCCL_SO_PATH"),
        ("ValueError: failed to dispatch head_dim 80", "flashinfer-configuration", ["flashinfer-python"], "TRITON_ATTN"),
        ("KeyError: 'model.layers.0.mlp.down_proj.weight_scale_inv'", "quantized-weights", ["vllm"], "pip install -U vllm"),
        ("RuntimeError: Error in function 'Runner' at /w/fmhaRunner.cuh:30: Unsupported architecture", "kernel-architecture", [], "backend"),
        ("RuntimeError: No supported CUDA architectures found for major versions [12].", "flashinfer-architectures", ["flashinfer-python"], "12.9"),
        ("RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist", "flashinfer-nvcc", ["flashinfer-python"], "VLLM_USE_FLASHINFER_SAMPLER=0"),
        ("  vLLM CPU backend requires AVX512 ISA support.", "processor-features", ["vllm"], "build it on this machine"),
        ("RuntimeError: Error building extension 'fused_adam'", "jit-failed", ["deepspeed"], "CUDA_HOME"),
        ("Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:336 'invalid argument'", "custom-all-reduce", ["vllm"], "--disable-custom-all-reduce"),
        ("Error while creating shared memory segment /dev/shm/nccl-CsYXMW (size 9637888)", "nccl-shared-memory", ["torch"], "--shm-size"),
        ("RuntimeError: Attempting to use hipBLASLt on a unsupported architecture!", "hipblaslt", ["torch"], "TORCH_BLAS_PREFER_HIPBLASLT=0"),
        ("RuntimeError: CUDA error: HIPBLAS_STATUS_NOT_SUPPORTED when calling `hipblasGemmEx`", "hipblas", ["torch"], "installed ROCm"),
        ("cuda_utils.c:14: error: include file 'Python.h' not found", "python-headers", ["triton"], "python3-dev"),
        ("AssertionError: torch.cuda.is_available()", "no-gpu-visible", ["torch"], "--gpus all"),
        ("Callback: Queue aborting with error : HSA_STATUS_ERROR_INVALID_ISA", "hip-no-code", ["torch"], "HSA_OVERRIDE_GFX_VERSION"),
        ("Disabling 'torch-scatter': libamdhip64.so.6: cannot open shared object file", "rocm-library", ["torch-scatter", "torch"], "build it"),
        ("Could not locate cudnn_ops64_9.dll. Please make sure it is in your library path!", "cuda-library-missing", ["nvidia-cudnn-cu12"], "torch>=2.4"),
        ("RuntimeError: Library cublas64_12.dll is not found or cannot be loaded", "cuda-library-missing", ["nvidia-cublas-cu12"], "nvidia-cublas-cu12"),
        ("Could not load library cudart64_110.dll", "cuda-library-missing", ["nvidia-cuda-runtime-cu11"], "nvidia-cuda-runtime-cu11"),
        ("Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1}", "cuda-library-missing", ["nvidia-cudnn-cu12"], "torch>=2.4"),
        ("ncclInternalError: Bootstrap : no socket interface found", "network-interface", ["torch"], "NCCL_SOCKET_IFNAME"),
        ("n1:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion with error 12", "infiniband", ["torch"], "memlock"),
        ("With --tensor-parallel-size 2 the server is stuck and prints nothing.", "multi-gpu-hang", ["torch", "nvidia-nccl-cu12"], "NCCL_P2P_DISABLE"),
    ],
)  # fmt: skip
def test_each_message(text: str, rule: str, packages: list[str], fix: str) -> None:
    found = {each.rule: each for each in said(text)}
    assert f"symptom-{rule}" in found
    finding = found[f"symptom-{rule}"]
    assert list(finding.packages) == packages
    assert any(fix in f"{each.command} {each.text}" for each in finding.fixes)
    assert not any(left in f"{finding.title} {finding.why}" for left in ("{", " ()"))


def test_a_kernel_belongs_to_the_only_extension_that_is_installed() -> None:
    (finding,) = said("RuntimeError: CUDA error: an illegal memory access was encountered", torch="2.6.0", vllm="0.8.5")
    assert list(finding.packages) == ["vllm"]
    assert finding.title.startswith("A kernel of vllm failed")
    assert finding.fixes[0].package == "vllm"


def test_several_extensions_leave_open_whose_kernel_it_is() -> None:
    text = "RuntimeError: CUDA error: an illegal memory access was encountered"
    (finding,) = said(text, torch="2.6.0", vllm="0.8.5", xformers="0.0.29")
    assert list(finding.packages) == ["torch"]


def test_the_file_of_a_kernel_names_its_package() -> None:
    (finding,) = said("CUDA Error: no kernel image is available /usr/src/flash-attention/csrc/layer_norm/ln.cuh:236")
    assert [(each.kind, each.package) for each in finding.fixes[:2]] == [
        ("upgrade", "flash-attn"),
        ("source-install", "flash-attn"),
    ]


def test_an_environment_that_is_called_after_a_package_is_not_that_package() -> None:
    assert packages_in("/home/u/miniconda3/envs/vllm/lib/python3.12/site-packages/flash_attn_2_cuda.so") == ["flash-attn"]


def test_without_a_package_no_command_is_given() -> None:
    (finding,) = said("AssertionError: expected sm90 or sm100")
    assert finding.title.startswith("A package has no implementation")
    assert [each.command for each in finding.fixes if each.kind == "upgrade"] == [None]


@pytest.mark.parametrize("text", ["The loss got stuck at 0.7 after the first epoch.", "RuntimeError: the queue is stuck"])
def test_other_things_that_are_stuck_are_no_hang_of_several_gpus(text: str) -> None:
    assert "symptom-multi-gpu-hang" not in {each.rule for each in said(text)}


def test_the_only_extension_asks_for_a_library_that_is_not_found() -> None:
    text = "Could not locate cudnn_ops64_9.dll. Please make sure it is in your library path!"
    (finding,) = said(text, torch="2.3.1", ctranslate2="4.5.0")
    assert list(finding.packages) == ["ctranslate2", "nvidia-cudnn-cu12"]
    assert finding.title.startswith("ctranslate2 is linked to cuDNN 9")
    assert [(fix.kind, fix.package) for fix in finding.fixes[:2]] == [("upgrade", "torch"), ("downgrade", "ctranslate2")]


def test_a_kernel_that_fails_shows_that_torch_is_no_build_for_the_cpu() -> None:
    gpu = Accelerator(vendor="nvidia", name="NVIDIA GH200", compute_capability="9.0")
    environment = Environment(
        os="linux", machine="aarch64", accelerators=(gpu,), distributions=(Distribution("torch", "2.7.0"),)
    )
    text = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    errors = parse_log(text)
    (finding,) = diagnose(text, errors, decisive(errors), environment, in_memory(()))
    assert finding.rule == "symptom-no-kernel-image"


def test_a_quantization_below_its_capability_names_the_method_and_the_package_that_refuses_it() -> None:
    text = (
        "ValueError: The quantization method awq is not supported for the current GPU. Minimum capability: 80. "
        "Current capability: 75.\n"
    )
    errors = parse_log(text)
    environment = Environment(distributions=(Distribution("vllm", "0.2.0"),))
    finding = next(
        each
        for each in diagnose(text, errors, decisive(errors), environment, open_matrix())
        if each.rule == "symptom-capability-too-low"
    )
    assert finding.title.endswith("requires (awq): 80")
    assert ("upgrade", "vllm") in [(fix.kind, fix.package) for fix in finding.fixes]


def test_a_container_with_a_cuda_above_that_of_the_driver_needs_the_driver_of_its_cuda() -> None:
    gpu = Accelerator(vendor="nvidia", name="NVIDIA GeForce RTX 4090")
    here = Environment(os="linux", driver="535.171.04", cuda_toolkit="12.4", accelerators=(gpu,))
    report = compat.diagnose(
        "RuntimeError: Error 804: forward compatibility was attempted on non supported HW", environment=here
    )
    (found,) = report.findings
    assert found.here.endswith("driver 535.171.04 (CUDA up to 12.2), CUDA toolkit 12.4")
    assert (found.fixes[0].kind, found.fixes[0].spec) == ("driver", ">=550")
