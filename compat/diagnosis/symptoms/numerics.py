"""Data types, kernels and devices that do not go together: what an operation lacks on this device, and models in two types."""

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
