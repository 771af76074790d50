"""AMD GPUs that are not visible, or that the ROCm libraries have no code for."""

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
