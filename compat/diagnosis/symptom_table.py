"""Messages that say what is wrong whichever release is at fault, and what they mean in terms of builds."""

from __future__ import annotations

import re

from compat.model import Fix
from compat.records import record

_GPU = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility"
_DRIVER = "https://docs.nvidia.com/deploy/cuda-compatibility/"
_LOADER = "https://man7.org/linux/man-pages/man8/ld.so.8.html"

_TRITON_BUILD = "https://github.com/triton-lang/triton/blob/main/python/triton/runtime/build.py"


@record(frozen=True)
class Symptom:
    """A message, the derived findings that explain it (by the beginning of their rule), and what it means without them.

    ``packages`` are what it is about; ``else_packages`` where neither the message nor its frames name one. Where there
    are ``hints``, each such message has one of them. Groups of the pattern are named in braces in texts, commands and packages;
    an alternative's group is called as the first one's with a number (``name_2``).
    """

    name: str
    pattern: re.Pattern[str]
    title: str
    why: str
    effect: str = "crash"
    explained_by: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    else_packages: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    evidence: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def _s(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_NEW_DRIVER = Fix(kind="driver", text="install a newer driver on the machine (the host, not the container)")
_OTHER_TORCH = Fix(
    kind="source-install",
    package="torch",
    spec="",
    text="install the torch that is built for an older CUDA, from torch's own index",
    command="pip install torch --index-url https://download.pytorch.org/whl/cuXYZ",
)
_PLAIN_PATH = Fix(
    kind="env-var",
    text="torch's wheels bring their own CUDA libraries: take other folders out",
    command="unset LD_LIBRARY_PATH",
)

SYMPTOMS = (
    Symptom(
        "torch-gpu",
        _s(r"is not compatible with the current PyTorch installation|current PyTorch install supports CUDA capabilities"),
        "This torch has no code for the GPU",
        "Its wheel was compiled for other architectures.",
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
        "flashinfer-cubin",
        _s(r"flashinfer-cubin version \([^)]*\) does not match flashinfer version"),
        "flashinfer-cubin and flashinfer-python are of different releases",
        "The compiled kernels are made for one release of the package.",
        explained_by=("build-flashinfer-cubin",),
        packages=("flashinfer-python", "flashinfer-cubin"),
        fixes=(
            Fix("pin", "flashinfer-cubin", None, "install the same release of both", None),
            Fix(kind="env-var", text="go without the comparison", command="export FLASHINFER_DISABLE_VERSION_CHECK=1"),
        ),
        evidence=("https://github.com/flashinfer-ai/flashinfer",),
    ),
    Symptom(
        "no-kernel-image",
        _s(
            r"no kernel image is available|GPUs with compute capability below [\d.]+ are not supported"
            r"|requires GPUs with sm\d+|requires sm\d+|hipErrorNoBinaryForGpu|only supports? sm\d+"
            r"|invalid device function|named symbol not found|no kernel found to launch"
        ),
        "A package in use has no code for this GPU",
        "The failing kernel was not compiled for the GPU's architecture, and there is no PTX that the driver could translate.",
        explained_by=("build-torch-gpu", "build-vllm-gpu", "build-", "precision-"),
        else_packages=("torch",),
        facts=("accelerators", "build"),
        fixes=(
            Fix("upgrade", "torch", None, "a torch whose wheel has code for the GPU", "pip install -U torch"),
            Fix(
                "source-install",
                None,
                "",
                "build the failing package for the GPU: TORCH_CUDA_ARCH_LIST names its compute capability",
            ),
            Fix(
                kind="env-var",
                text="name the GPU's architecture where kernels are compiled on the spot",
                command="export TORCH_CUDA_ARCH_LIST=<compute capability>",
            ),
        ),
        evidence=(_GPU,),
    ),
    Symptom(
        "driver-too-old",
        _s(
            r"NVIDIA driver on your system is too old|CUDA driver version is insufficient|cudaErrorInsufficientDriver"
            r"|unsupported toolchain|CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
        ),
        "The NVIDIA driver is older than the CUDA that is used",
        "The CUDA runtime in the wheel or in the image asks for a newer driver than the machine has.",
        explained_by=("build-torch-driver", "build-toolkit-driver"),
        facts=("driver", "build", "cuda_toolkit"),
        fixes=(_NEW_DRIVER, _OTHER_TORCH),
        evidence=(_DRIVER,),
    ),
    Symptom(
        "forward-compatibility",
        _s(
            r"[Ee]rror 80[34]\b|forward compatibility was attempted on non supported HW"
            r"|unsupported display driver / cuda driver combination|cudaErrorCompatNotSupportedOnDevice"
            r"|cudaErrorSystemDriverMismatch"
        ),
        "A container's own CUDA driver libraries do not fit the machine's driver",
        "CUDA images bring compatibility libraries "
        "(/usr/local/cuda/compat). They work on data-centre GPUs with an older driver only; with a newer driver or "
        "another GPU they "
        "stand in the way.",
        facts=("driver", "cuda_toolkit", "variables", "build"),
        fixes=(
            _NEW_DRIVER,
            Fix(
                kind="env-var",
                text="keep the compatibility libraries off the search path",
                command="export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:/usr/local/nvidia/lib64",
            ),
            Fix(
                kind="launch", text="start the container without its compatibility libraries, or with an image of an older CUDA"
            ),
        ),
        evidence=(_DRIVER,),
    ),
    Symptom(
        "no-bf16",
        _s(
            r"[Bb]f(?:loat)?16 is only supported on GPUs|doesn't support bf16/gpu|bf16/gpu|does not support bfloat16"
            r"|--tf32 requires Ampere"
        ),
        "The GPU has no bf16 or tf32",
        "Both need compute capability 8.0 (Ampere).",
        explained_by=("precision-",),
        facts=("accelerators", "workload"),
        fixes=(Fix(kind="config", text="use fp16: fp16=True, bf16=False, tf32=False; --dtype half for vLLM"),),
        evidence=(_GPU,),
    ),
    Symptom(
        "flash-attention-gpu",
        _s(r"FlashAttention only supports Ampere"),
        "FlashAttention 2 needs an Ampere GPU or newer",
        "It has no kernels below compute capability 8.0.",
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
        _s(
            r"torch\._scaled_mm is only supported|fp8e4nv not supported|type fp8e4\w* not supported"
            r"|FP8 .*(?:only supported|requires compute)"
        ),
        "The GPU has no fp8",
        "It needs compute capability 8.9 (Ada).",
        explained_by=("precision-",),
        facts=("accelerators", "workload"),
        fixes=(Fix(kind="config", text="use bf16 or fp16 instead of fp8"),),
        evidence=(_GPU,),
    ),
    Symptom(
        "cudnn-version",
        _s(
            r"cuDNN version incompatibility|CUDNN_STATUS_(?:NOT_INITIALIZED|SUBLIBRARY_VERSION_MISMATCH)"
            r"|PyTorch was compiled\s+against \(\d"
        ),
        "Another cuDNN is found than torch was built with",
        "A cuDNN on the library path, or a second nvidia-cudnn package, stands before the one that torch asks for.",
        facts=("variables", "build"),
        packages=("torch",),
        fixes=(_PLAIN_PATH, Fix("pin", "nvidia-cudnn-cu12", None, "the cuDNN that torch pins", None)),
        evidence=(_LOADER,),
    ),
    Symptom(
        "bitsandbytes-binary",
        _s(
            r"libbitsandbytes_c\w+\.(?:so|dll)|Could not find the bitsandbytes CUDA binary|CUDA SETUP: "
            r"|bitsandbytes was compiled without GPU support|CUDA Setup failed"
        ),
        "bitsandbytes finds no library for this CUDA",
        "It loads a library named after torch's CUDA, or did not find libcuda.so.",
        explained_by=("build-bitsandbytes",),
        facts=("build", "platform", "variables"),
        packages=("bitsandbytes",),
        fixes=(
            Fix("upgrade", "bitsandbytes", None, "a release with a library for torch's CUDA", "pip install -U bitsandbytes"),
            Fix(
                kind="env-var",
                text="name a CUDA whose library is there, and where libcuda.so lies (WSL: /usr/lib/wsl/lib)",
                command="export BNB_CUDA_VERSION=<XYZ>",
            ),
        ),
        evidence=("https://huggingface.co/docs/bitsandbytes/main/en/installation",),
    ),
    Symptom(
        "xformers-build",
        _s(r"xFormers can't load C\+\+/CUDA extensions"),
        "xformers is built for another torch than the one that is there",
        "Its kernels are compiled for one release and one CUDA of torch.",
        explained_by=("build-xformers", "build-torch-cpu-only", "requires-xformers"),
        facts=("build",),
        packages=("xformers", "torch"),
        fixes=(
            Fix("upgrade", "torch", None, "the torch that this xformers was built with", None),
            Fix("source-install", "torch", "", "the build of torch for the CUDA that xformers was built with"),
        ),
        evidence=("https://github.com/facebookresearch/xformers#installing-xformers",),
    ),
    Symptom(
        "no-compiler",
        _s(r"Failed to find C compiler|No working C\+\+ compiler found|InvalidCxxCompiler"),
        "Triton or torch.compile finds no C compiler",
        "Both write a little C and compile it when a kernel is first started; images without development tools (-runtime, "
        "-base, -slim) have no compiler.",
        facts=("variables",),
        else_packages=("triton",),
        fixes=(
            Fix(kind="config", text="install a compiler", command="apt-get install -y gcc g++"),
            Fix(kind="env-var", text="name one that is elsewhere", command="export CC=<path> CXX=<path>"),
            Fix(kind="config", text="start from the -devel image of the same CUDA"),
        ),
        evidence=(_TRITON_BUILD,),
    ),
    Symptom(
        "python-headers",
        _s(r"Python\.h: No such file or directory|'Python\.h' file not found"),
        "Triton compiles a little C, and Python's headers are not there",
        "What starts its kernels is an extension module, which needs Python.h; distributions ship it apart from Python.",
        else_packages=("triton",),
        facts=("platform",),
        fixes=(
            Fix(kind="config", text="install the headers of this Python", command="apt-get install -y python3-dev"),
            Fix(kind="config", text="use a Python that brings them: one of uv, of conda, or of the official images"),
        ),
        evidence=(_TRITON_BUILD,),
    ),
    Symptom(
        "libcuda-link",
        _s(r"cannot find -lcuda\b|libcuda\.so cannot found"),
        "Triton cannot link to the driver's libcuda.so",
        "It looks for libcuda.so.1 in the loader's cache and in LD_LIBRARY_PATH; some releases link to a libcuda.so beside it.",
        else_packages=("triton",),
        facts=("variables", "driver"),
        fixes=(
            Fix(
                kind="env-var",
                text="name the folder that holds libcuda.so (WSL: /usr/lib/wsl/lib)",
                command="export TRITON_LIBCUDA_PATH=<folder>",
            ),
            Fix(kind="config", text="let the loader find it: ldconfig, or a link libcuda.so to libcuda.so.1 beside it"),
            Fix(kind="launch", text="start the container with the GPU: --gpus all"),
        ),
        evidence=("https://github.com/triton-lang/triton/blob/main/third_party/nvidia/backend/driver.py",),
    ),
    Symptom(
        "tensor-cores-p2p",
        _s(r"(?i:using RTX 40\d\d series doesn't support faster communication)"),
        "GPUs of the RTX 40 series cannot talk to each other directly",
        "Their driver has no peer-to-peer; NCCL hangs or fails where it tries.",
        facts=("accelerators", "variables"),
        fixes=(Fix(kind="env-var", text="keep NCCL off it", command="export NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1"),),
        evidence=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",),
    ),
)
