"""GPUs and drivers that do not support the requested operation."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

_NVCC = "https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html#gpu-feature-list"
_PTX = "https://docs.nvidia.com/cuda/parallel-thread-execution/#release-notes"
_GPU = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility"
_CONTAINER = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html"
_NEW_DRIVER = Fix("driver", text="install a newer driver on the machine (the host, not the container)")
_DRIVER = "https://docs.nvidia.com/deploy/cuda-compatibility/"
_OTHER_TORCH = Fix(
    kind="source-install",
    package="torch",
    spec="",
    text="install a torch built for an older CUDA, from torch's own index",
    command="pip install torch --index-url https://download.pytorch.org/whl/cuXYZ",
)


GPUS = (
    Symptom(
        "container-driver",
        re.compile(
            r"(?:unsatisfied condition:|requirements not met:) {0,3}\n?(?P<what>cuda|driver|brand|arch) ?"
            r"(?P<spec>[<>=]{1,2} ?[\d.]{1,20})"
        ),
        "The image requires {what}{spec}, which the host's driver does not satisfy",
        "NVIDIA's container toolkit compares NVIDIA_REQUIRE_CUDA in the image with the host's driver before the container "
        "starts.",
        hints=("unsatisfied condition:", "requirements not met:"),
        facts=("driver", "cuda_toolkit", "variables"),
        fixes=(
            _NEW_DRIVER,
            Fix("config", text="start from an image with an older CUDA"),
            Fix(
                "env-var",
                text="skip the check if the driver has compatibility libraries",
                command="export NVIDIA_DISABLE_REQUIRE=1",
            ),
        ),
        evidence=(_CONTAINER,),
    ),
    Symptom(
        "no-driver",
        re.compile(
            r"Found no NVIDIA driver on your system|No CUDA GPUs are available|CUDA driver initialization failed|"
            r"libcuda\.so\.1: cannot open shared object|no CUDA-capable device is detected"
        ),
        "No NVIDIA GPU or driver is visible to the process",
        "The container was started without its GPUs, CUDA_VISIBLE_DEVICES hides them, or the machine has no driver.",
        hints=(
            "Found no NVIDIA driver",
            "No CUDA GPUs",
            "CUDA driver init",
            "libcuda.so.1",
            "no CUDA-capable",
        ),
        facts=("driver", "accelerators", "variables"),
        fixes=(
            Fix("launch", text="start the container with its GPUs", command="docker run --gpus all"),
            Fix("env-var", text="stop hiding the devices", command="unset CUDA_VISIBLE_DEVICES"),
            _NEW_DRIVER,
        ),
        evidence=(_CONTAINER,),
    ),
    Symptom(
        "libcuda-name",
        re.compile(r"libcuda\.so: cannot open shared object"),
        "The driver's library is not found under the name libcuda.so",
        "Drivers install it as libcuda.so.1; the name without the number is a link that comes with packages for developers. "
        "Under WSL both are in /usr/lib/wsl/lib, which the loader of some distributions does not search.",
        hints=("libcuda.so: ",),
        facts=("driver", "variables", "platform"),
        fixes=(
            Fix(
                "env-var",
                text="under WSL, let the loader find the libraries of the Windows driver",
                command="export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH",
            ),
            Fix("config", text="link libcuda.so to libcuda.so.1 in the same folder, and run ldconfig"),
            Fix("launch", text="start the container with its GPUs", command="docker run --gpus all"),
            _NEW_DRIVER,
        ),
        evidence=("https://docs.nvidia.com/cuda/wsl-user-guide/index.html",),
    ),
    Symptom(
        "ptxas-too-old",
        re.compile(
            r"\b(?P<code>sm_\d{2,3}[af]?)'? (?:is )?not defined for option '?gpu-name"
            r"|'(?P<code_2>sm_\d{2,3}[af]?)' is not a recognized processor"
        ),
        "Triton's compiler does not support {code}",
        "Triton compiles kernels with its own LLVM and ptxas, or with the ptxas that TRITON_PTXAS_PATH points to; they are "
        "older than the GPU.",
        hints=("not defined for option", "is not a recognized processor"),
        facts=("accelerators", "cuda_toolkit", "variables", "build"),
        packages=("triton",),
        fixes=(
            Fix("upgrade", "triton", None, "a torch whose triton supports {code}", "pip install -U torch triton"),
            Fix(
                "env-var",
                text="use the ptxas of a newer CUDA toolkit",
                command="export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas",
            ),
        ),
        evidence=(_NVCC,),
    ),
    Symptom(
        "ptxas-ptx-version",
        re.compile(r"\.version '?(?P<wants>\d\.\d)'?; current version is '(?P<reads>\d\.\d)'"),
        "The assembler (ptxas) that ran reads PTX up to {reads}, and the compiler wrote PTX {wants}",
        "Triton and other compilers write PTX for the ptxas that they come with. An older one was found first: that of the "
        "CUDA toolkit on PATH, in CUDA_PATH or CUDA_HOME, or the one that TRITON_PTXAS_PATH points to.",
        hints=("current version is",),
        facts=("cuda_toolkit", "variables", "build"),
        packages=("triton",),
        fixes=(
            Fix("env-var", text="use the ptxas that triton comes with", command="unset TRITON_PTXAS_PATH"),
            Fix("config", text="install the CUDA toolkit that triton is for, or a newer one, or take the old one off PATH"),
            Fix("downgrade", "triton", None, "a triton for the toolkit that is installed, with its torch"),
        ),
        evidence=(_PTX,),
    ),
    Symptom(
        "ptxas-failed",
        re.compile(r"ptxas.{0,400}?--gpu-name=(?P<code>sm_\d{2,3}[af]?).{0,2000}?returned non-zero exit status", re.DOTALL),
        "Triton's assembler (ptxas) fails for {code}",
        "Triton runs its own ptxas, or the one that TRITON_PTXAS_PATH or the CUDA toolkit provides. It fails if it is older "
        "than the GPU, or older than the PTX that triton writes; its own output says which.",
        hints=("--gpu-name=",),
        facts=("accelerators", "cuda_toolkit", "variables", "build"),
        packages=("triton",),
        fixes=(
            Fix("upgrade", "triton", None, "a torch whose triton supports {code}", "pip install -U torch triton"),
            Fix(
                "env-var",
                text="use the ptxas of a newer CUDA toolkit",
                command="export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas",
            ),
        ),
        evidence=(_NVCC,),
        general=True,
    ),
    Symptom(
        "kernel-image-invalid",
        re.compile(r"device kernel image is invalid|CUDA_ERROR_INVALID_IMAGE|cudaErrorInvalidKernelImage"),
        "The driver cannot load a compiled kernel",
        "The kernel was compiled with a newer CUDA than the driver supports, or for a different GPU architecture.",
        hints=("kernel image is invalid", "INVALID_IMAGE", "InvalidKernelImage"),
        explained_by=("build-torch-driver", "build-toolkit-driver", "build-torch-gpu"),
        facts=("driver", "accelerators", "build"),
        else_packages=("triton", "torch"),
        fixes=(
            _NEW_DRIVER,
            Fix("downgrade", "torch", None, "a torch and triton built for the driver's CUDA release"),
        ),
        evidence=(_GPU,),
    ),
    Symptom(
        "torch-gpu",
        re.compile(
            r"CUDA capability (?P<code>sm_\d{2,3}) is not compatible with the current PyTorch installation"
            r"|current PyTorch install supports CUDA capabilities"
        ),
        "This torch has no code for GPUs of architecture {code}",
        "Its wheel was compiled for other architectures.",
        hints=("current PyTorch install",),
        explained_by=("build-torch-gpu",),
        facts=("accelerators", "build"),
        packages=("torch",),
        fixes=(
            Fix("upgrade", "torch", None, "a torch whose wheel has code for the GPU", "pip install -U torch"),
            Fix(
                "source-install",
                "torch",
                "",
                "the build of torch for another CUDA, from torch's own index",
                "pip install torch --index-url https://download.pytorch.org/whl/cuXYZ",
            ),
        ),
        evidence=(_GPU,),
    ),
    Symptom(
        "no-kernel-image",
        re.compile(
            r"no kernel image is available|GPUs with compute capability below [\d.]+ are not supported"
            r"|requires GPUs with sm\d+|requires sm\d+|hipErrorNoBinaryForGpu|only supports? sm\d+"
            r"|invalid device function|named symbol not found|no kernel found to launch"
        ),
        "{package} has no code for {gpu}",
        "The failing kernel was not compiled for the GPU's architecture, and there is no PTX that the driver could compile.",
        hints=(
            "no kernel",
            "GPUs with",
            "requires sm",
            "hipErrorNoBinaryForGpu",
            "support",
            "invalid device function",
            "named symbol not found",
        ),
        explained_by=("build-torch-gpu", "build-vllm-gpu", "build-", "precision-"),
        else_packages=("torch",),
        general=True,
        kernels=True,
        facts=("accelerators", "build"),
        fixes=(
            Fix("upgrade", "{package}", None, "a release whose wheel has code for the GPU", "pip install -U {package}"),
            Fix(
                "source-install",
                "{package}",
                "",
                "build it for the GPU: TORCH_CUDA_ARCH_LIST names its compute capability",
            ),
            Fix(
                kind="env-var",
                text="set the GPU's architecture for kernels that are compiled at run time",
                command="export TORCH_CUDA_ARCH_LIST=<compute capability>",
            ),
        ),
        evidence=(_GPU,),
    ),
    Symptom(
        "driver-too-old",
        re.compile(
            r"NVIDIA driver on your system is too old|CUDA driver version is insufficient|cudaErrorInsufficientDriver"
            r"|unsupported toolchain|CUDA_ERROR_UNSUPPORTED_PTX_VERSION|cudaErrorCallRequiresNewerDriver"
            r"|API call is not supported in the installed CUDA driver"
        ),
        "The NVIDIA driver is too old for this CUDA release",
        "The CUDA runtime in the wheel or the image requires a newer driver than the machine has.",
        hints=(
            "driver on your system",
            "driver version is insufficient",
            "InsufficientDriver",
            "unsupported toolchain",
            "UNSUPPORTED_PTX_VERSION",
            "RequiresNewerDriver",
            "installed CUDA driver",
        ),
        explained_by=("build-torch-driver", "build-toolkit-driver"),
        facts=("driver", "build", "cuda_toolkit"),
        fixes=(_NEW_DRIVER, _OTHER_TORCH),
        evidence=(_DRIVER,),
    ),
    Symptom(
        "forward-compatibility",
        re.compile(
            r"[Ee]rror 80[34]\b|forward compatibility was attempted on non supported HW"
            r"|unsupported display driver / cuda driver combination|cudaErrorCompatNotSupportedOnDevice"
            r"|cudaErrorSystemDriverMismatch"
        ),
        "The container's CUDA driver libraries do not match the host's driver",
        "CUDA images include compatibility libraries (/usr/local/cuda/compat). They only work on data-center GPUs with an "
        "older driver; with a newer driver or another GPU they cause this error.",
        hints=(
            "rror 80",
            "forward compatibility",
            "unsupported display driver",
            "CompatNotSupportedOnDevice",
            "SystemDriverMismatch",
        ),
        facts=("driver", "cuda_toolkit", "variables", "build"),
        fixes=(
            _NEW_DRIVER,
            Fix(
                kind="env-var",
                text="keep the compatibility libraries off the search path",
                command="export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:/usr/local/nvidia/lib64",
            ),
            Fix(
                kind="launch",
                text="start the container without its compatibility libraries, or with an image for an older CUDA",
            ),
        ),
        evidence=(_DRIVER,),
    ),
    Symptom(
        "fabric-manager",
        re.compile(
            r"Error 802: system not yet initialized|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY|(?i:cuda failure 802)"
        ),
        "The NVSwitch fabric is not running: CUDA reports that the system is not yet initialized",
        "Servers with NVSwitch (HGX and DGX) need NVIDIA's fabric manager in exactly the release of the driver. Until it "
        "runs, no CUDA program starts on A100, H100, H200 or B200 boards, although nvidia-smi lists the GPUs.",
        hints=("802", "SystemNotReady", "SYSTEM_NOT_READY"),
        facts=("driver", "accelerators"),
        fixes=(
            Fix(
                "driver",
                text="start the fabric manager; where that fails, install the release of the driver",
                command="systemctl restart nvidia-fabricmanager",
            ),
        ),
        evidence=(
            "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/",
            "https://github.com/pytorch/pytorch/issues/35710",
        ),
    ),
    Symptom(
        "nvml-assert",
        re.compile(r"NVML_SUCCESS == r INTERNAL ASSERT FAILED"),
        "Out of memory, but a failed NVML query hides the error",
        "After a failed allocation torch asks NVML which processes use the device. On MIG slices, on Jetson and in some "
        "containers NVML does not answer, and torch reports the assertion instead of the allocation.",
        effect="memory",
        hints=("NVML_SUCCESS",),
        facts=("accelerators",),
        packages=("torch",),
        fixes=(Fix("config", text="use a smaller batch or model, or a larger device or slice"),),
        evidence=(
            "https://github.com/pytorch/pytorch/issues/112377",
            "https://github.com/pytorch/pytorch/issues/185240",
        ),
    ),
    Symptom(
        "no-bf16",
        re.compile(
            r"[Bb]f(?:loat)?16 is only supported on GPUs|doesn't support bf16/gpu|bf16/gpu|does not support bfloat16"
            r"|--tf32 requires Ampere"
        ),
        "The GPU does not support bf16 or tf32",
        "Both need compute capability 8.0 (Ampere).",
        hints=("16 is only supported on GPUs", "bf16/gpu", "does not support bfloat16", "--tf32 requires"),
        explained_by=("precision-",),
        facts=("accelerators", "workload"),
        fixes=(Fix(kind="config", text="use fp16: fp16=True, bf16=False, tf32=False; --dtype half for vLLM"),),
        evidence=(_GPU,),
    ),
    Symptom(
        "ctranslate2-compute-type",
        re.compile(r"target device (?:or backend )?do(?:es)? not support efficient (?P<type>\w{3,20}) computation"),
        "CTranslate2 does not compute {type} on this device",
        "It refuses a compute type that the device does not compute efficiently: on NVIDIA GPUs float16 needs compute "
        "capability 7.0, int8 6.1, and bfloat16 8.0; a CPU has no float16. The device is the CPU unless one is asked for.",
        hints=("not support efficient",),
        facts=("accelerators", "workload"),
        packages=("ctranslate2",),
        fixes=(
            Fix("config", text='compute_type="int8" or "float32", or "auto" for the fastest that the device has'),
            Fix("config", text='device="cuda", if the GPU is meant'),
        ),
        evidence=("https://opennmt.net/CTranslate2/quantization.html",),
    ),
    Symptom(
        "flash-attention-gpu",
        re.compile(r"FlashAttention only supports Ampere"),
        "FlashAttention 2 needs an Ampere GPU or newer",
        "It has no kernels below compute capability 8.0.",
        hints=("FlashAttention only supports",),
        explained_by=("build-flash-attn-gpu",),
        facts=("accelerators",),
        packages=("flash-attn",),
        fixes=(
            Fix(kind="config", text='load the model with attn_implementation="sdpa"'),
            Fix("downgrade", "flash-attn", "<2", "FlashAttention 1 runs on Turing", 'pip install "flash-attn<2"'),
        ),
        evidence=(_GPU,),
    ),
    Symptom(
        "fp8-gpu",
        re.compile(
            r"torch\._scaled_mm is only supported|fp8e4nv not supported|type fp8e4\w* not supported"
            r"|FP8 .*(?:only supported|requires compute)"
        ),
        "The GPU does not support fp8",
        "It needs compute capability 8.9 (Ada).",
        hints=("_scaled_mm", "fp8e4", "FP8 "),
        explained_by=("precision-",),
        facts=("accelerators", "workload"),
        fixes=(Fix(kind="config", text="use bf16 or fp16 instead of fp8"),),
        evidence=(_GPU,),
    ),
)
