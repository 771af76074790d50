"""What the runtimes of GPUs report: CUDA's error codes, and AMD GPUs that are not visible or lack code in ROCm's libraries."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

AMD = (
    Symptom(
        "no-amd-gpu",
        re.compile(
            r"No HIP GPUs are available|hipErrorNoDevice|no ROCm-capable device is detected"
            r"|rocBLAS error: [^\n]{0,60}No devices found"
            r"|(?:Unable to open|Permission denied:? ?)[^\n]{0,12}/dev/(?:kfd|dri/renderD)"
        ),
        "No AMD GPU is visible to the process",
        "The container was started without /dev/kfd and /dev/dri, the user may not open them, or a variable hides the devices.",
        hints=("HIP GPUs", "hipErrorNoDevice", "ROCm-capable", "rocBLAS error", "/dev/"),
        facts=("driver", "accelerators", "variables"),
        packages=("torch",),
        fixes=(
            Fix(
                "launch",
                text="give the container its GPUs",
                command="docker run --device /dev/kfd --device /dev/dri --group-add video",
            ),
            Fix(
                "config", text="let the user open the devices, then log in again", command="sudo usermod -aG render,video $USER"
            ),
            Fix(
                "env-var",
                text="stop hiding the devices",
                command="unset HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES",
            ),
        ),
        evidence=("https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html",),
    ),
    Symptom(
        "hipblaslt",
        re.compile(r"(?:Error: |: )Attempting to use hipBLASLt on an? unsupported architecture|HIPBLAS_STATUS_ARCH_MISMATCH"),
        "hipBLASLt has no kernels for this AMD GPU",
        "It supports fewer GPUs than rocBLAS. Most releases of torch fall back to rocBLAS, with a warning; some fail instead.",
        hints=("hipBLASLt", "HIPBLAS_STATUS"),
        facts=("accelerators", "build", "variables"),
        packages=("torch",),
        fixes=(
            Fix("env-var", text="use rocBLAS", command="export TORCH_BLAS_PREFER_HIPBLASLT=0 DISABLE_ADDMM_CUDA_LT=1"),
            Fix("upgrade", "torch", None, "a later release, which falls back", "pip install -U torch"),
        ),
        evidence=("https://github.com/pytorch/pytorch/issues/138067", "https://github.com/ROCm/hipBLASLt/issues/1243"),
    ),
    Symptom(
        "hip-no-code",
        re.compile(
            r"HIP error: (?:invalid device function|no kernel image|the operation cannot be performed)|"
            r"hipErrorNoBinaryForGpu|Unable to find code object for all current devices"
            r"|invalid device function[^\n]{0,200}\.hip\b"
            r"|No compatible code objects found for: (?P<code>gfx\w{3,5})"
            r"|(?:Cannot read|No such file)[^\n]{0,200}(?:for GPU arch : (?P<code_2>gfx\w{3,5})|TensileLibrary)"
            r"|No paths matched [^\n]{0,200}(?P<code_3>gfx\w{3,5})|HSA_STATUS_ERROR_INVALID_ISA"
        ),
        "{package} has no code for {gpu}",
        "ROCm libraries contain code for some gfx targets only. Consumer GPUs often work as a similar target that is "
        "included, and images are often made for data-center GPUs alone.",
        hints=("HIP error", "hipError", "code object", ".hip", "TensileLibrary", "GPU arch", "No paths matched", "INVALID_ISA"),
        facts=("accelerators", "build", "variables"),
        explained_by=("build-torch-gfx",),
        else_packages=("torch",),
        kernels=True,
        fixes=(
            Fix(
                "env-var",
                text="treat the GPU as the nearest supported target: 10.3.0 for RX 6000, 11.0.0 for RX 7000, 11.5.1 for "
                "Radeon 800M and 8000S",
                command="export HSA_OVERRIDE_GFX_VERSION=<version>",
            ),
            Fix("source-install", "{package}", "", "build it for the GPU: PYTORCH_ROCM_ARCH names its gfx target"),
            Fix(
                "source-install",
                "torch",
                "",
                "a torch built for a ROCm release that supports the GPU",
                "pip install torch --index-url https://download.pytorch.org/whl/rocmX.Y",
            ),
        ),
        evidence=("https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html",),
    ),
    Symptom(
        "amd-architecture",
        re.compile(
            r"\b(?P<code>gfx\d{3,4}[a-f]?)\b[^\n]{0,20} (?:is|are) (?:invalid or )?(?:not (?:yet )?supported|unsupported)"
            r"|only supports (?P<code_2>AMD MI\d{2,3}) GPUs or newer"
        ),
        "A package has no code for this AMD GPU ({code})",
        "Kernels for ROCm are compiled for the gfx targets that their package lists; consumer GPUs are often not among them.",
        hints=("gfx", "only supports AMD"),
        facts=("accelerators", "build"),
        fixes=(
            Fix("config", text='load the model with attn_implementation="sdpa", which torch has kernels for'),
            Fix("env-var", text="where flash-attn is what fails", command="export FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE"),
            Fix("source-install", None, "", "build the package from a branch that supports the target"),
        ),
        evidence=("https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html",),
    ),
)


_CODES = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
_CONTAINER = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html"
_WHICH_CALL = Fix("env-var", text="see which call fails first", command="export CUDA_LAUNCH_BLOCKING=1")


CUDA_ERRORS = (
    Symptom(
        "container-runtime",
        re.compile(
            r"could not select device driver \"\S{0,40}\" with capabilities: \[\[gpu|unknown or invalid runtime name: nvidia"
            r"|nvidia-container-cli: (?P<what>initialization|ldcache|mount|detection|device|container) error"
            r"|failed to discover GPU vendor from CDI|unresolvable CDI devices"
        ),
        "The container engine cannot pass the GPUs on",
        "The NVIDIA Container Toolkit is not installed on the host, the engine is not configured for it, or it does not "
        "find the host's driver. No package in the image matters for this.",
        hints=("device driver", "runtime name", "nvidia-container-cli", "CDI"),
        facts=("driver", "platform"),
        fixes=(
            Fix(
                "launch",
                text="install the toolkit on the host, then configure the engine and restart it",
                command="nvidia-ctk runtime configure --runtime=docker && systemctl restart docker",
            ),
            Fix("driver", text="install the driver on the host; under WSL only the one for Windows"),
        ),
        evidence=(_CONTAINER,),
    ),
    Symptom(
        "nvml-mismatch",
        re.compile(r"Driver/library version mismatch|NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
        "The loaded kernel module of the NVIDIA driver is not the release of its libraries",
        "The driver was upgraded while it was in use. A container that brings driver libraries of its own has the same effect.",
        hints=("version mismatch", "VERSION_MISMATCH"),
        facts=("driver",),
        fixes=(
            Fix("driver", text="restart the machine, or unload and load the nvidia modules"),
            Fix("config", text="remove driver libraries from the image; the container toolkit provides the host's"),
        ),
        evidence=(_CONTAINER,),
    ),
    Symptom(
        "nvml-lost",
        re.compile(r"Failed to initialize NVML: Unknown Error"),
        "The container has lost its GPUs",
        "Reloading systemd on the host ('systemctl daemon-reload', an update) takes running containers the right to open the "
        "devices, if cgroups are managed by systemd.",
        hints=("initialize NVML",),
        facts=("driver", "platform"),
        fixes=(
            Fix("launch", text="start the container again"),
            Fix("launch", text="pass the devices by CDI, or by name (--device /dev/nvidia0 --device /dev/nvidiactl)"),
        ),
        evidence=(_CONTAINER,),
    ),
    Symptom(
        "device-ordinal",
        re.compile(r"invalid device ordinal|device >= 0 && device < num_gpus|hipErrorInvalidDevice\b"),
        "A GPU is used that the process does not see",
        "More processes were started than GPUs are visible, a device number is fixed in the code, or CUDA_VISIBLE_DEVICES "
        "hides devices. On a MIG device a process sees one instance only.",
        hints=("device ordinal", "num_gpus", "hipErrorInvalidDevice"),
        facts=("accelerators", "variables", "workload"),
        packages=("torch",),
        fixes=(
            Fix("launch", text="as many processes, or as large a tensor-parallel size, as GPUs are visible"),
            Fix("env-var", text="show all devices; they are numbered from 0 anew", command="unset CUDA_VISIBLE_DEVICES"),
        ),
        evidence=(_CODES,),
    ),
    Symptom(
        "stub-driver",
        re.compile(r"CUDA driver is a stub library|cudaErrorStubLibrary"),
        "The loader finds the toolkit's stub of libcuda.so instead of the driver",
        "The folder lib64/stubs is for linking on machines without a driver. It is on the library path.",
        hints=("stub library", "StubLibrary"),
        facts=("variables", "driver"),
        fixes=(Fix("env-var", text="remove the folder 'stubs' from the path", command="unset LD_LIBRARY_PATH"),),
        evidence=(_CODES,),
    ),
    Symptom(
        "cuda-unknown",
        re.compile(
            r"CUDA unknown error - this may be due to an incorrectly set up environment|[Ee]rror 999: unknown error"
            r"|cuInit\b[^\n]{0,40}\b999|CUDA_ERROR_UNKNOWN|Cuda failure (?:999 )?'unknown error'"
        ),
        "CUDA does not start: the driver reports an unknown error",
        "Its module nvidia_uvm is not loaded, or in a bad state after the machine was suspended; in a container, the device "
        "/dev/nvidia-uvm is missing.",
        hints=("unknown error", "999", "CUDA_ERROR_UNKNOWN"),
        facts=("driver", "variables", "platform"),
        fixes=(
            Fix("driver", text="load the module anew, or restart", command="rmmod nvidia_uvm && modprobe nvidia_uvm"),
            Fix("launch", text="give the container all devices", command="docker run --gpus all --device /dev/nvidia-uvm"),
        ),
        evidence=(_CODES, "https://github.com/pytorch/pytorch/issues/49081", "https://github.com/ollama/ollama/issues/8638"),
    ),
    Symptom(
        "device-busy",
        re.compile(
            r"all CUDA-capable devices are busy or unavailable|cudaErrorDevicesUnavailable|MPS client failed to connect"
            r"|cudaErrorMps\w{3,30}"
        ),
        "The GPU does not accept another process",
        "It is in exclusive mode and in use, the MPS server that should share it does not run, or its MIG instances are gone.",
        hints=("busy or unavailable", "DevicesUnavailable", "MPS client", "cudaErrorMps"),
        facts=("driver", "accelerators", "variables"),
        fixes=(
            Fix("config", text="end the other process, or allow several", command="nvidia-smi --compute-mode=DEFAULT"),
            Fix("env-var", text="do without MPS", command="unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"),
        ),
        evidence=(_CODES, "https://docs.nvidia.com/deploy/mps/index.html"),
    ),
    Symptom(
        "gpu-lost",
        re.compile(
            r"uncorrectable (?:ECC|NVLink) error|GPU has fallen off the bus|GPU is lost|Unable to determine the device handle"
            r"|NVRM: Xid \(PCI:[^\n)]{1,40}\): (?P<xid>\d{1,3})"
        ),
        "The GPU failed",
        "Memory errors that cannot be corrected, power, temperature or the PCIe slot. The driver logs an Xid code, which "
        "names the cause ('dmesg | grep Xid'). No package is at fault.",
        hints=("uncorrectable", "fallen off", "GPU is lost", "device handle", "Xid"),
        facts=("accelerators", "driver"),
        fixes=(
            Fix("driver", text="restart the machine, and read the Xid code in the kernel's log", command="dmesg | grep -i xid"),
            Fix("config", text="check the devices", command="compat probe"),
        ),
        evidence=("https://docs.nvidia.com/deploy/xid-errors/index.html",),
    ),
    Symptom(
        "cuda-fork",
        re.compile(r"Cannot re-initialize CUDA in forked subprocess"),
        "A process that had used CUDA was forked",
        "CUDA cannot be used in a process that was forked after its first use, for instance because the script asked torch "
        "for its devices. Programs that start workers must spawn them, and the script's own code then runs again in each of "
        "them.",
        hints=("re-initialize CUDA",),
        facts=("workload", "variables"),
        packages=("torch",),
        general=True,
        fixes=(
            Fix("env-var", text="let vLLM spawn its workers", command="export VLLM_WORKER_MULTIPROC_METHOD=spawn"),
            Fix(
                "config",
                text="elsewhere, multiprocessing.set_start_method('spawn'), or multiprocessing_context='spawn' for a "
                "DataLoader",
            ),
            Fix(
                "config",
                text="put the script's code under if __name__ == '__main__', and do not use CUDA before the workers start",
            ),
        ),
        evidence=(
            "https://pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing",
            "https://docs.vllm.ai/en/latest/usage/troubleshooting.html",
        ),
    ),
    Symptom(
        "device-assert",
        re.compile(
            r"device-side assert triggered|Assertion `[^`\n]{0,60}(?:[Ii]ndex|ind\b|n_classes"
            r"|srcSelectDimSize)[^\n]{0,200}failed"
        ),
        "A check in a kernel failed, mostly an index that is out of range",
        "Token ids beyond the model's vocabulary (added tokens without resize_token_embeddings), labels beyond the number of "
        "classes, or positions beyond the maximum length. Every later call in this process fails, too.",
        hints=("device-side assert", "Assertion `"),
        facts=("workload",),
        packages=("torch",),
        general=True,
        fixes=(
            Fix("config", text="compare the largest index with the size of the embedding: len(tokenizer), config.vocab_size"),
            _WHICH_CALL,
        ),
        evidence=("https://pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",),
    ),
    Symptom(
        "illegal-access",
        re.compile(
            r"an? (?P<what>illegal memory access|misaligned address|illegal instruction|illegal address) was encountered"
            r"|(?:error: |: )(?P<what_2>misaligned address|unspecified launch failure)"
            r"|CUDA_ERROR_(?:ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|LAUNCH_FAILED)|cudaError(?:IllegalAddress|LaunchFailure)"
            r"|(?P<what_3>Memory access fault) by GPU node|HSA_STATUS_ERROR_(?:EXCEPTION|MEMORY_\w{3,30})"
        ),
        "A kernel of {package} failed on the GPU ({what})",
        "A bug in a compiled kernel, mostly for certain shapes, types or GPUs, or one that was built for another release of "
        "torch or CUDA. The error is reported late: its frames may belong to another kernel.",
        hints=("illegal", "misaligned", "launch failure", "CUDA_ERROR_", "cudaError", "Memory access fault", "HSA_STATUS"),
        explained_by=("build-torch-gpu",),
        else_packages=("torch",),
        facts=("accelerators", "build"),
        general=True,
        kernels=True,
        fixes=(
            Fix("upgrade", "{package}", None, "a later release of the kernels", "pip install -U {package}"),
            Fix(
                "config",
                text="another attention or quantization backend, or no CUDA graphs (--enforce-eager, --disable-cuda-graph), to "
                "see which kernel it is",
            ),
            _WHICH_CALL,
        ),
        evidence=("https://pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",),
    ),
    Symptom(
        "cuda-start",
        re.compile(r"Unexpected error from cudaGetDeviceCount\(\)[^\n]{0,200}?Error (?P<code>\d{1,3}): (?P<said>[^\n(]{3,80})"),
        "CUDA does not start: error {code}, {said}",
        "The driver refuses the first call. After 'initialization error' and 'out of memory' look for other processes, for "
        "limits of the container and for a process that was forked after it had used CUDA.",
        hints=("cudaGetDeviceCount",),
        facts=("driver", "accelerators", "variables", "platform"),
        fixes=(
            Fix("config", text="see whether the driver itself works: nvidia-smi, on the host and in the container"),
            Fix("launch", text="start the container with its GPUs", command="docker run --gpus all"),
            Fix("driver", text="restart, or install the driver anew"),
        ),
        evidence=(_CODES,),
    ),
    Symptom(
        "no-gpu-visible",
        re.compile(
            r"Failed to infer device type|Device string must not be empty"
            r"|No platform detected, vLLM is running on UnspecifiedPlatform"
            r"|\b(?:CUDA|cuda|GPU) is not available\b|torch\.cuda\.is_available\(\)`? (?:is|returned|returns|was) False"
            r"|\bNo (?:CUDA )?GPUs? (?:was |were |is |are )?(?:found|detected|available)|NVML Shared Library Not Found"
            r"|NVIDIA-SMI has failed because it couldn't communicate|NVML_ERROR_(?:DRIVER_NOT_LOADED|LIBRARY_NOT_FOUND)"
        ),
        "No GPU is visible to the process",
        "The container was started without its GPUs, the machine has no working driver ('nvidia-smi' shows it), torch is a "
        "build for the CPU or for another vendor's GPUs, or a variable hides the devices. vLLM detects GPUs through NVML, "
        "the library of nvidia-smi, or amdsmi.",
        hints=("infer device", "Device string", "No platform", "is not available", "is_available", "No ", "NVML", "NVIDIA-SMI"),
        explained_by=("build-torch-cpu-only", "build-torch-vendor", "build-torch-driver"),
        facts=("driver", "accelerators", "build", "variables"),
        else_packages=("torch",),
        general=True,
        fixes=(
            Fix("launch", text="start the container with its GPUs", command="docker run --gpus all"),
            Fix("driver", text="install the driver on the machine (the host; under WSL only the one for Windows)"),
            Fix(
                "source-install",
                "torch",
                "",
                "a build of torch for the GPU, from torch's own index",
                "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cuXYZ",
            ),
            Fix("env-var", text="stop hiding the devices", command="unset CUDA_VISIBLE_DEVICES"),
        ),
        evidence=(_CONTAINER, "https://docs.vllm.ai/en/latest/usage/troubleshooting.html"),
    ),
)
