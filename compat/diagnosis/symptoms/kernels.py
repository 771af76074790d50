"""Kernels that need another GPU, processor or compiler than the machine has, or that do not compile when they first run."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

_CAPABILITIES = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities"
_OTHER_KERNEL = Fix(
    "config",
    text="another implementation: the attention, MoE or GEMM backend (vLLM: VLLM_ATTENTION_BACKEND, --attention-backend; "
    "SGLang: --attention-backend, --moe-runner-backend, --fp8-gemm-backend), or another quantization of the model",
)


KERNELS = (
    Symptom(
        "capability-too-low",
        re.compile(
            r"Min(?:imum)? capability: (?P<least>\d{2,3})[.,'\") ]{1,10}Current capability: (?P<have>\d{2,3})\b"
            r"|(?:requires?|needs?|only (?:supports?|supported on|available on|works on)) (?:an? )?(?:NVIDIA )?(?:GPUs?"
            r"|devices?|"
            r"cards?) (?:with|of) (?:CUDA )?(?:compute )?capability (?:of )?(?:at least )?(?P<least_2>[<>=]{0,2} ?\d{1,2}\.\d)"
            r"|requires? (?:CUDA )?compute capability (?:of )?(?:at least )?(?P<least_3>[<>=]{0,2} ?\d{1,2}\.\d)"
            r"|GPUs? with (?:CUDA |compute )?capability \d{1,2}[. ]\d (?:is|are) not supported"
        ),
        "The GPU's compute capability is lower than this kernel requires: {least}",
        "The method has kernels for newer GPUs only. Later releases sometimes add kernels for older ones (Marlin, Triton).",
        hints=("apability",),
        explained_by=("precision-",),
        facts=("accelerators", "workload"),
        kernels=True,
        fixes=(
            _OTHER_KERNEL,
            Fix("upgrade", "{package}", None, "a later release may have a kernel for this GPU", "pip install -U {package}"),
        ),
        evidence=(_CAPABILITIES,),
    ),
    Symptom(
        "kernel-architecture",
        re.compile(
            r"\b(?:[Ee]xpected|only (?:runs|works|supported|available)(?: on)?|[Oo]nly supports?|requires?|must be) "
            r"(?:NVIDIA )?(?:Hopper|Blackwell|Ampere|Ada|(?:sm|SM)_?\d{2,3}[af]?)"
            r"(?:(?:,? (?:or|and) |/|, )(?:Hopper|Blackwell|(?:sm|SM)_?\d{2,3}[af]?)){0,4}"
            r"|\b[Oo]nly (?:Hopper|Blackwell|Ampere|Ada)\b[^\n]{0,60}\bGPUs? (?:is|are) supported"
            r"|(?:\.cuh?|\.hpp):\d{1,5}\W{0,3} (?:Assertion failed: )?[Uu]nsupported (?:GPU )?arch(?:itecture)?"
            r"|layout\.hpp:\d{1,4}\W{0,3} Unknown recipe|Failed to open: \S{0,200}\s?\S{0,100}/sm_?\d{2,3}\w{0,60}\.cuh"
            r"|is not supported on (?:this|the current) (?:GPU|device|architecture|platform)|[Uu]nsupported compute capability"
            r"|unsupported GPU arch(?:itecture)?\b|No (?:valid|suitable|compatible) (?:attention )?(?:backend"
            r"|kernel) (?:found )?for"
        ),
        "{package} has no implementation of a kernel for this GPU",
        "Some kernels are written for one generation only: wgmma and TMA for Hopper (sm_90), tcgen05 for data-center Blackwell "
        "(sm_100, sm_103). Consumer and workstation Blackwell (sm_120, sm_121) run neither, although its number is higher.",
        hints=(
            "xpected",
            "only ",
            "Only ",
            "requires",
            "require ",
            "must be",
            "nsupported",
            "Unknown recipe",
            "Failed to open",
            "not supported on",
            "No ",
        ),
        explained_by=("build-", "precision-"),
        facts=("accelerators", "build"),
        general=True,
        kernels=True,
        fixes=(
            _OTHER_KERNEL,
            Fix("upgrade", "{package}", None, "a later release, which may support the GPU", "pip install -U {package}"),
        ),
        evidence=(_CAPABILITIES,),
    ),
    Symptom(
        "flashinfer-architectures",
        re.compile(r"No supported CUDA architectures found for major versions \[(?P<majors>[\d, ]{1,20})\]"),
        "FlashInfer cannot compile this kernel for the GPU with the CUDA toolkit that it finds",
        "It leaves out architectures that nvcc does not know: sm_120 and sm_121 need the toolkit of CUDA 12.9, sm_100 12.8. "
        "The same message follows if the kernel exists for GPUs of major version {majors} only.",
        hints=("No supported CUDA architectures",),
        packages=("flashinfer-python",),
        facts=("accelerators", "cuda_toolkit", "variables"),
        fixes=(
            Fix("config", text="install the CUDA toolkit 12.9 or newer, and let CUDA_HOME point to it"),
            Fix("pin", "flashinfer-jit-cache", None, "kernels that are already compiled, in the release of flashinfer-python"),
            Fix("env-var", text="name the GPU's architecture", command="export FLASHINFER_CUDA_ARCH_LIST=<compute capability>"),
            _OTHER_KERNEL,
        ),
        evidence=(
            "https://github.com/flashinfer-ai/flashinfer/pull/3633",
            "https://github.com/vllm-project/vllm/issues/50705",
        ),
    ),
    Symptom(
        "processor-features",
        re.compile(
            r"requires? (?P<feature>AVX[\w-]{0,12}|AMX[\w-]{0,8})(?: ISA)? (?:support|instructions?)"
            r"|(?:does not|doesn't|not) support (?P<feature_2>AVX[\w-]{0,12}|AMX[\w-]{0,8})\b"
            r"|(?P<feature_3>AVX[\w-]{0,12}) (?:ISA |instructions? )?(?:is|are) (?:required|not supported|not available)"
        ),
        "{package} needs a processor with {feature}",
        "Its code for the CPU is compiled for these instructions. Older processors lack them, and virtual machines hide them.",
        hints=("AVX", "AMX"),
        facts=("machine", "os", "install"),
        kernels=True,
        fixes=(
            Fix("upgrade", "{package}", None, "a later release, which may have code for other processors"),
            Fix("source-install", "{package}", "", "build it on this machine"),
            Fix("config", text="pass the host's CPU features through to the virtual machine"),
        ),
        evidence=("https://docs.vllm.ai/en/latest/getting_started/installation/cpu.html",),
    ),
    Symptom(
        "flashinfer-nvcc",
        re.compile(r"Could not find nvcc and default cuda_home"),
        "FlashInfer compiles a kernel when it first runs, and finds no CUDA toolkit",
        "torch's wheels bring CUDA's libraries, but not nvcc. vLLM samples with FlashInfer by default, and other kernels of "
        "it are compiled for the model as well, unless they are installed already compiled.",
        hints=("Could not find nvcc",),
        packages=("flashinfer-python",),
        facts=("cuda_toolkit", "variables"),
        fixes=(
            Fix("env-var", text="let vLLM sample with PyTorch", command="export VLLM_USE_FLASHINFER_SAMPLER=0"),
            Fix(
                "pin",
                "flashinfer-jit-cache",
                None,
                "compiled kernels, in the release of flashinfer-python, from FlashInfer's index",
            ),
            Fix("config", text="install the CUDA toolkit of torch's CUDA release, or start from an image that has it (-devel)"),
            Fix("env-var", text="point to a toolkit in another folder", command="export CUDA_HOME=<folder>"),
        ),
        evidence=("https://docs.flashinfer.ai/installation.html", "https://github.com/vllm-project/vllm/issues/49497"),
    ),
)
