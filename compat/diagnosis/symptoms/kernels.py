"""Kernels that need another GPU, compiler or data type: what an operation lacks on this device, and models in two types."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

_AMP = "https://pytorch.org/docs/stable/amp.html"
_CHECKPOINT = "https://pytorch.org/docs/stable/checkpoint.html"
_MPS = "https://pytorch.org/docs/stable/notes/mps.html"
_ATTENTION = "https://github.com/Dao-AILab/flash-attention#installation-and-features"
_TRITON = "https://github.com/triton-lang/triton#compatibility"
_CUBLAS = "https://docs.nvidia.com/cuda/cublas/#cublasstatus-t"
_SDPA = Fix("config", text='attn_implementation="sdpa" (torch\'s own attention)')
_BF16 = Fix("config", text="use bf16 where the GPU supports it (bf16=True; --dtype bfloat16), else fp32")


NUMERICS = (
    Symptom(
        "half-on-cpu",
        re.compile(r"\"(?P<kernel>\w{3,60})\" not implemented for '(?P<type>Half|BFloat16|Float8_e4m3fn|Float8_e5m2)'"),
        "This torch has no kernel for {type} on the device where the tensor is: {kernel}",
        "Older releases of torch compute few operations in half precision on a CPU. A model loaded in fp16 runs on the CPU if "
        "no GPU is found, if torch is a CPU-only build, or if device_map moved a part of it there.",
        hints=("not implemented for '",),
        facts=("accelerators", "build", "workload"),
        packages=("torch",),
        explained_by=("build-torch-cpu-only",),
        fixes=(
            Fix("config", text="load the model in fp32 or bf16 on a CPU (torch_dtype=torch.float32)"),
            Fix("config", text="move the model and its inputs to the GPU; check that torch sees one"),
            Fix("upgrade", "torch", None, "later releases have more of these kernels", "pip install -U torch"),
        ),
        evidence=(_AMP,),
    ),
    Symptom(
        "two-dtypes",
        re.compile(
            r"\w{1,20} and \w{1,20} (?:must|to) have the same dtype|query, key, and value to have the same dtype"
            r"|expected scalar type (?P<one>\w{3,20}) but found (?P<other>\w{3,20})|Found dtype \w{3,20} but expected \w{3,20}"
            r"|Input type \(\w[\w.:]{2,40}\) and (?:bias|weight) type \(\w[\w.:]{2,40}\) should be the same"
            r"|expected dtype \w[\w.:]{2,20} for `\w{1,20}` but got dtype|to have the same type as tensor for argument #"
        ),
        "Parts of the model, or its inputs, have different data types",
        "Weights, adapters or inputs were loaded in different types, and autocast does not cover the operation: often a "
        "quantized or half-precision model with layers in fp32, or a release that casts other parts than before.",
        hints=("same dtype", "expected scalar type", "should be the same", "Found dtype", "expected dtype", "the same type as"),
        facts=("workload",),
        general=True,
        fixes=(
            Fix("config", text="train with mixed precision: bf16=True (or fp16=True), so that autocast converts the inputs"),
            Fix("config", text="load everything in one type: torch_dtype, bnb_4bit_compute_dtype and the adapters' dtype"),
        ),
        evidence=(_AMP,),
    ),
    Symptom(
        "fp16-parameters",
        re.compile(r"Attempting to unscale FP16 gradients"),
        "The trained parameters are in fp16, and fp16 training scales gradients of fp32 parameters",
        "With fp16=True the optimizer needs the parameters in fp32, and autocast computes in fp16. The model was loaded in "
        "fp16, or its adapters took that type; peft casts adapters to fp32 from 0.12 on.",
        hints=("unscale FP16",),
        facts=("workload",),
        packages=("torch",),
        fixes=(
            Fix("config", text="load the model in fp32, or quantized (torch_dtype=torch.float32)"),
            Fix("config", text="train in bf16 where the GPU supports it (bf16=True), which scales nothing"),
            Fix("config", text="cast what is trained: p.data = p.data.float() for every parameter that requires a gradient"),
        ),
        evidence=(_AMP,),
    ),
    Symptom(
        "nothing-to-train",
        re.compile(r"element 0 of tensors does not require grad and does not have a grad_fn"),
        "The loss does not depend on any trained parameter",
        "All parameters are frozen, or gradient checkpointing in its reentrant form cuts the graph: the inputs of its blocks "
        "come from frozen embeddings and require no gradient.",
        hints=("does not require grad",),
        facts=("workload",),
        general=True,
        fixes=(
            Fix("config", text="gradient_checkpointing_kwargs=dict(use_reentrant=False)"),
            Fix("config", text="model.enable_input_require_grads() before the adapters are added"),
            Fix("config", text="print_trainable_parameters() shows whether anything is trained"),
        ),
        evidence=(_CHECKPOINT,),
    ),
    Symptom(
        "not-finite",
        re.compile(r"probability tensor contains either `inf`, `nan` or element < 0|Token id -?\d{1,12} is out of vocabulary"),
        "The model computes values that are not finite",
        "fp16 overflows in models trained in bf16. Broken kernels and peer-to-peer copies that return wrong data have the same "
        "effect; compat probe shows which.",
        effect="wrong-result",
        hints=("probability tensor", "out of vocabulary"),
        facts=("accelerators", "workload", "driver"),
        general=True,
        fixes=(
            _BF16,
            Fix("config", text='attn_implementation="eager", to see whether the attention kernel is at fault'),
            Fix("config", text="check the devices", command="compat probe"),
        ),
        evidence=(_AMP,),
    ),
    Symptom(
        "cublas",
        re.compile(
            r"CUBLAS_STATUS_(?P<status>NOT_INITIALIZED|ALLOC_FAILED|NOT_SUPPORTED|INVALID_VALUE|EXECUTION_FAILED"
            r"|INTERNAL_ERROR)"
        ),
        "cuBLAS fails: CUBLAS_STATUS_{status}",
        "NOT_INITIALIZED and ALLOC_FAILED mostly mean that no GPU memory is left. NOT_SUPPORTED and INVALID_VALUE mean that "
        "this GPU, or this release of cuBLAS, has no kernel for the type, often because a library on the path replaces "
        "torch's own. After an index out of range, every later call fails, too.",
        hints=("CUBLAS_STATUS_",),
        facts=("accelerators", "variables", "build"),
        packages=("torch",),
        explained_by=("build-torch-gpu", "build-library-path"),
        fixes=(
            Fix("env-var", text="let torch find the cuBLAS it was built with", command="unset LD_LIBRARY_PATH"),
            Fix("config", text="a smaller batch, or a type that the GPU supports (fp16 before Ampere)"),
            Fix("env-var", text="see which call fails first", command="export CUDA_LAUNCH_BLOCKING=1"),
        ),
        evidence=(_CUBLAS,),
    ),
    Symptom(
        "no-cudnn-engine",
        re.compile(
            r"GET was unable to find an engine to execute this computation|CUDNN_STATUS_(?:NOT_SUPPORTED|ARCH_MISMATCH)"
        ),
        "cuDNN has no kernel for this operation on this GPU",
        "The type is not supported by the GPU, no memory is left, or a cuDNN other than torch's own is loaded.",
        hints=("unable to find an engine", "CUDNN_STATUS_"),
        facts=("accelerators", "variables", "build"),
        packages=("torch",),
        explained_by=("build-torch-gpu", "build-library-path"),
        fixes=(
            Fix("env-var", text="let torch find the cuDNN it was built with", command="unset LD_LIBRARY_PATH"),
            Fix("config", text="a smaller batch, or a type that the GPU supports"),
        ),
        evidence=("https://docs.nvidia.com/deeplearning/cudnn/latest/reference/support-matrix.html",),
    ),
    Symptom(
        "macos-too-old",
        re.compile(
            r"only (?:supported|available|works) on [Mm]ac ?OS (?P<least>\d{1,2}(?:\.\d{1,2})?)"
            r"(?: or (?:newer|later)|\+|,| and)"
            r"|on MPS for pre [Mm]ac ?OS_(?P<least_2>\d{1,2})_\d"
        ),
        "The MPS backend of torch needs macOS {least} for this",
        "The types and operations of Apple GPUs come with macOS: bfloat16, for example, with macOS 14.",
        hints=("acOS", "ac OS"),
        facts=("os", "platform", "accelerators"),
        packages=("torch",),
        fixes=(
            Fix("config", text="install macOS {least} or newer"),
            Fix("config", text="use fp16 or fp32 instead of bfloat16, or the CPU"),
        ),
        evidence=(_MPS,),
    ),
    Symptom(
        "mps-operator",
        re.compile(
            r"[Tt]he operator '(?P<operator>[\w:.]{3,80})' is not currently (?:implemented|supported) (?:for|on) the MPS"
            r"|MPS (?:backend )?does ?n[o']t support (?P<type>\w{3,20})|(?P<type_2>Float64|float64) dtype as the MPS framework"
            r"|(?P<type_3>\w{3,20}) is not supported on MPS|[Tt]rying to convert (?P<type_4>\w{3,20}) to the MPS backend"
        ),
        "This torch cannot compute {operator}{type} on an Apple GPU",
        "The MPS backend of torch covers more operations and types with every release; some types are not available at all.",
        hints=("MPS",),
        facts=("accelerators", "os"),
        packages=("torch",),
        fixes=(
            Fix("upgrade", "torch", None, "later releases cover more operations", "pip install -U torch"),
            Fix("env-var", text="compute what is missing on the CPU", command="export PYTORCH_ENABLE_MPS_FALLBACK=1"),
            Fix("config", text="use fp32 or fp16"),
        ),
        evidence=(_MPS,),
    ),
    Symptom(
        "attention-limits",
        re.compile(
            r"FlashAttention (?:forward |backward )?only supports? "
            r"(?P<what>head dimension[^\n.;]{0,60}|fp16 and bf16[^\n.;]{0,40})"
        ),
        "flash-attn only supports {what}",
        "Its kernels exist for these types and sizes only. A model in fp32, or with larger heads, needs another attention.",
        hints=("FlashAttention",),
        facts=("workload", "accelerators"),
        packages=("flash-attn",),
        fixes=(Fix("config", text="load the model in bf16 or fp16 (torch_dtype)"), _SDPA),
        evidence=(_ATTENTION,),
    ),
    Symptom(
        "triton-shared-memory",
        re.compile(
            r"out of resources?: (?P<what>shared memory|registers|threads)[^\n]{0,60}?(?:Required: (?P<needed>\d{1,9}))?"
        ),
        "A Triton kernel needs more {what} than this GPU has",
        "Its block sizes were chosen for data-center GPUs. Consumer and older GPUs have less shared memory per multiprocessor.",
        hints=("out of resource",),
        facts=("accelerators",),
        else_packages=("triton",),
        fixes=(
            Fix("upgrade", None, None, "a later release of the package whose kernel it is may choose blocks by GPU"),
            Fix("config", text="another implementation of the kernel, shorter sequences or smaller heads"),
        ),
        evidence=("https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities",),
    ),
    Symptom(
        "triton-gpu",
        re.compile(
            r"mma -> mma layout conversion is only supported on Ampere|LLVM ERROR: Cannot select: intrinsic %llvm\.nvvm"
            r"|LLVM ERROR: Cannot select: \w+ = [^\n]{0,80}(?:bf16|f8)|Feature '[\w.:]{2,60}' requires \.target sm_\d\d"
        ),
        "Triton cannot compile a kernel for this GPU",
        "Triton supports compute capability 8.0 and later; some kernels, and types such as bf16, fail on older GPUs.",
        hints=("mma layout", "Cannot select", "requires .target"),
        facts=("accelerators",),
        packages=("triton",),
        fixes=(
            Fix("config", text="another attention or kernel backend (eager, sdpa, xformers), and fp16 instead of bf16"),
            Fix("downgrade", None, None, "a release of the package from before it required newer GPUs"),
        ),
        evidence=(_TRITON,),
    ),
    Symptom(
        "cut-file",
        re.compile(r"Error while deserializing header: (?P<why>\w{5,40})|PytorchStreamReader failed (?P<why_2>[a-z ]{5,60})"),
        "A weight file is incomplete, or is not what its name says ({why})",
        "The download was interrupted, the disk was full when it was written, or it is a pointer of Git LFS "
        "instead of the file.",
        hints=("deserializing header", "PytorchStreamReader"),
        facts=("install",),
        else_packages=("safetensors",),
        fixes=(
            Fix("config", text="delete the file and download it again (for a clone: git lfs pull)"),
            Fix("config", text="if training wrote it: save again, and compare its size with what the index file lists"),
        ),
        evidence=("https://huggingface.co/docs/safetensors/index#format",),
    ),
)


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
            r"(?:quantization method (?P<what>\w{1,40}) [^\n:]{1,80})?Min(?:imum)? capability: (?P<least>\d{2,3})"
            r"[.,'\") ]{1,10}Current capability: (?P<have>\d{2,3})\b"
            r"|(?:requires?|needs?|only (?:supports?|supported on|available on|works on)) (?:an? )?(?:NVIDIA )?(?:GPUs?"
            r"|devices?|"
            r"cards?) (?:with|of) (?:CUDA )?(?:compute )?capability (?:of )?(?:at least )?(?P<least_2>[<>=]{0,2} ?\d{1,2}\.\d)"
            r"|requires? (?:CUDA )?compute capability (?:of )?(?:at least )?(?P<least_3>[<>=]{0,2} ?\d{1,2}\.\d)"
            r"|GPUs? with (?:CUDA |compute )?capability \d{1,2}[. ]\d (?:is|are) not supported"
        ),
        "The GPU's compute capability is lower than this kernel requires ({what}): {least}",
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
