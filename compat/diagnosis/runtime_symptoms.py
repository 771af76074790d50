"""Messages of drivers, libraries and compiled companions that say themselves what is wrong when a program runs.

Each row has the literals of which its message contains one; the groups of its pattern are values that its texts name.
"""

from __future__ import annotations

import re

from compat.diagnosis.symptom_table import Symptom
from compat.model import Fix

_NVCC = "https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html#gpu-feature-list"
_GPU = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility"
_CONTAINER = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html"
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
_PROTOBUF = "https://protobuf.dev/support/cross-version-runtime-guarantee/"
_FAULTHANDLER = "https://docs.python.org/3/library/faulthandler.html"
_WHATS_NEW = "https://docs.python.org/3/whatsnew/"

_NEW_DRIVER = Fix("driver", text="install a newer driver on the machine (the host, not the container)")
_NO_P2P = Fix("env-var", text="go without peer-to-peer", command="export NCCL_P2P_DISABLE=1")
_NCCL_LOG = Fix("env-var", text="let NCCL say what failed", command="export NCCL_DEBUG=INFO")


def _s(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


RUNTIME_SYMPTOMS = (
    Symptom(
        "torchvision-operator",
        _s(r"operator (?P<name>torchvision|torchaudio|torchcodec)::\w{1,60} does not exist"),
        "{name} is compiled for another torch than the one that is installed",
        "Its compiled operators were not registered, because its library does not load with this torch. Each release of {name} "
        "is built for exactly one release of torch, and a CPU build does not fit a CUDA build.",
        hints=("does not exist",),
        explained_by=("requires-torchvision", "requires-torchaudio", "build-torchvision"),
        facts=("build",),
        packages=("{name}", "torch"),
        fixes=(
            Fix(
                "pin",
                "{name}",
                None,
                "install both from one index, so that they fit",
                "pip install --force-reinstall torch {name}",
            ),
            Fix("uninstall", "{name}", None, "if nothing needs it", "pip uninstall {name}"),
        ),
        evidence=("https://github.com/pytorch/vision#installation",),
    ),
    Symptom(
        "container-driver",
        _s(r"unsatisfied condition: (?P<what>cuda|driver|brand|arch) ?(?P<spec>[<>=]{1,2} ?[\d.]{1,20})"),
        "The image needs {what}{spec}, and the host's driver does not offer it",
        "nvidia-container-cli compares NVIDIA_REQUIRE_CUDA of the image with the driver of the machine before the "
        "container starts.",
        hints=("unsatisfied condition:",),
        facts=("driver", "cuda_toolkit", "variables"),
        fixes=(
            _NEW_DRIVER,
            Fix("config", text="start from an image of an older CUDA"),
            Fix(
                "env-var",
                text="skip the comparison where the driver has compatibility libraries",
                command="export NVIDIA_DISABLE_REQUIRE=1",
            ),
        ),
        evidence=(_CONTAINER,),
    ),
    Symptom(
        "no-driver",
        _s(
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
            Fix("env-var", text="do not hide the devices", command="unset CUDA_VISIBLE_DEVICES"),
            _NEW_DRIVER,
        ),
        evidence=(_CONTAINER,),
    ),
    Symptom(
        "cpu-only-torch",
        _s(r"Torch not compiled with CUDA enabled|Torch is not able to use GPU|not linked with support for cuda devices"),
        "This torch is built without CUDA",
        "It is a CPU build: the default on Windows and macOS, and what an index of CPU wheels gives on Linux.",
        hints=(
            "not compiled with CUDA",
            "not able to use GPU",
            "not linked with",
        ),
        explained_by=("build-torch-cpu-only",),
        facts=("build", "accelerators"),
        packages=("torch",),
        fixes=(
            Fix(
                "source-install",
                "torch",
                "",
                "the CUDA build, from torch's own index",
                "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cuXYZ",
            ),
        ),
        evidence=("https://pytorch.org/get-started/locally/",),
    ),
    Symptom(
        "no-triton",
        _s(r"Cannot find a working triton installation|triton is not installed|TritonMissing"),
        "torch.compile finds no triton that works",
        "The wheels of torch for Linux bring it along. On Windows and with CPU builds it is missing, and one of another "
        "release "
        "than torch wants does not work.",
        hints=("riton",),
        facts=("os", "build"),
        packages=("triton", "torch"),
        fixes=(
            Fix("pin", "triton", None, "the triton that torch pins", "pip install --force-reinstall torch"),
            Fix("pin", "triton-windows", None, "on Windows", "pip install triton-windows"),
            Fix("config", text="go without compilation", command="export TORCH_COMPILE_DISABLE=1"),
        ),
        evidence=("https://github.com/triton-lang/triton#compatibility",),
    ),
    Symptom(
        "no-flash-attention",
        _s(
            r"FlashAttention2 has been toggled on|flash_attn (?:seems to be )?(?:is )?not installed|Flash ?Attention ?2 is "
            r"not (?:available|installed)|package flash_attn seems to be not installed"
        ),
        "FlashAttention 2 is asked for and not installed",
        'attn_implementation="flash_attention_2" needs the package flash-attn and a GPU of compute capability 8.0 or newer.',
        hints=("lash",),
        facts=("accelerators", "build"),
        packages=("flash-attn",),
        fixes=(
            Fix(
                "pin",
                "flash-attn",
                None,
                "install it, for the torch that is there",
                "pip install --no-build-isolation flash-attn",
            ),
            Fix("config", text='load the model with attn_implementation="sdpa"'),
        ),
        evidence=("https://github.com/Dao-AILab/flash-attention#installation-and-features",),
    ),
    Symptom(
        "out-of-memory",
        _s(
            r"(?:CUDA|HIP) out of memory\.(?: Tried to allocate (?P<size>[\d.]{1,12} [KMGT]iB))?|OutOfMemoryError|No "
            r"available memory for the cache blocks|CUDA error: out of memory"
        ),
        "The GPU's memory does not suffice",
        "No release is at fault as long as the same job does not fit with others either.",
        hints=(
            "out of memory",
            "OutOfMemory",
            "cache blocks",
        ),
        effect="memory",
        facts=("accelerators", "workload"),
        fixes=(
            Fix("config", text="a smaller batch with gradient accumulation, gradient checkpointing, or shorter sequences"),
            Fix("config", text="load the model in 4 or 8 bits, or shard it (FSDP, ZeRO-3)"),
            Fix("env-var", text="against fragmentation", command="export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
        ),
        evidence=("https://pytorch.org/docs/stable/notes/cuda.html#memory-management",),
    ),
    Symptom(
        "hip-no-code",
        _s(
            r"HIP error: (?:invalid device function|no kernel image|the operation cannot be performed)|"
            r"hipErrorNoBinaryForGpu|Unable to find code object for all current devices"
        ),
        "A package in use has no code for this AMD GPU",
        "ROCm libraries hold code for some gfx targets only; consumer GPUs often run as a near one that they have.",
        hints=(
            "HIP error",
            "hipError",
            "code object",
        ),
        facts=("accelerators", "build", "variables"),
        packages=("torch",),
        fixes=(
            Fix(
                "env-var",
                text="let the GPU pass as the nearest supported target",
                command="export HSA_OVERRIDE_GFX_VERSION=10.3.0",
            ),
            Fix(
                "source-install",
                "torch",
                "",
                "the torch for a ROCm that supports the GPU",
                "pip install torch --index-url https://download.pytorch.org/whl/rocmX.Y",
            ),
        ),
        evidence=("https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html",),
    ),
    Symptom(
        "numpy-abi",
        _s(
            r"_ARRAY_API not found|numpy\.(?:dtype|ufunc) size changed|compiled against (?:ABI|API) version \w{1,12} but "
            r"this version of numpy is|numpy\.core\.multiarray failed to import"
        ),
        "A package is compiled for another NumPy than the one that is installed",
        "The C interface of NumPy changed in 2.0: what was compiled for 1.x does not load with 2.x, and what needs a newer one "
        "does not load with an older one.",
        hints=(
            "_ARRAY_API",
            "size changed",
            "but this version of numpy",
            "multiarray failed",
        ),
        facts=("build",),
        packages=("numpy",),
        fixes=(
            Fix("downgrade", "numpy", "<2", "for packages compiled for NumPy 1", 'pip install "numpy<2"'),
            Fix("upgrade", None, None, "upgrade the package whose import fails to a release built for NumPy 2"),
        ),
        evidence=("https://numpy.org/doc/stable/numpy_2_0_migration_guide.html",),
    ),
    Symptom(
        "dll-load",
        _s(
            r"DLL load failed while importing (?P<module>\w{1,60})|\[WinError 126\][^\n]{0,200}?"
            r"(?P<module_2>[\w.-]{1,60}\.dll)|Error loading \"[^\"\n]{0,300}?(?P<module_3>[\w.-]{1,60}\.dll)\""
        ),
        "A library of Windows that {module} needs is missing",
        "Its compiled module was found, one of the libraries that it is linked with was not: the Visual C++ runtime, a CUDA "
        "library, or the torch that it was built with.",
        hints=(
            "DLL load failed",
            "WinError 126",
            "Error loading",
        ),
        facts=("os", "build", "platform"),
        fixes=(
            Fix("config", text="install the Microsoft Visual C++ Redistributable (x64)"),
            Fix("pin", None, None, "install torch and the package again, for the same torch and CUDA"),
        ),
        evidence=("https://learn.microsoft.com/en-us/cpp/windows/latest-supported-vc-redist",),
    ),
    Symptom(
        "ptxas-too-old",
        _s(
            r"[Vv]alue '(?P<code>sm_\d{2,3}[af]?)' is not defined for option 'gpu-name'"
            r"|'(?P<code_2>sm_\d{2,3}[af]?)' is not a recognized processor"
        ),
        "Triton's compiler does not know {code}",
        "Triton compiles kernels with an LLVM and a ptxas of its own release, or with the ptxas that TRITON_PTXAS_PATH names; "
        "they are older than the GPU.",
        hints=("is not defined for option", "is not a recognized processor"),
        facts=("accelerators", "cuda_toolkit", "variables", "build"),
        packages=("triton",),
        fixes=(
            Fix("upgrade", "triton", None, "a torch whose triton knows {code}", "pip install -U torch triton"),
            Fix(
                "env-var",
                text="use the ptxas of a newer CUDA toolkit",
                command="export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas",
            ),
        ),
        evidence=(_NVCC,),
    ),
    Symptom(
        "kernel-image-invalid",
        _s(r"device kernel image is invalid|CUDA_ERROR_INVALID_IMAGE|cudaErrorInvalidKernelImage"),
        "The driver cannot load a kernel that was compiled for it",
        "The kernel was compiled by a newer CUDA than the driver supports, or for another architecture than the GPU's.",
        hints=("kernel image is invalid", "INVALID_IMAGE", "InvalidKernelImage"),
        explained_by=("build-torch-driver", "build-toolkit-driver", "build-torch-gpu"),
        facts=("driver", "accelerators", "build"),
        else_packages=("triton", "torch"),
        fixes=(
            _NEW_DRIVER,
            Fix("downgrade", "torch", None, "a torch, with its triton, that is built for the driver's CUDA"),
        ),
        evidence=(_GPU,),
    ),
    Symptom(
        "nccl",
        _s(
            r"unhandled (?P<what>cuda|system) error(?:[^\n]{0,80}NCCL version (?P<version>[\d.]{1,12}))?|"
            r"ncclUnhandledCudaError|ncclSystemError|ncclInternalError|ncclInvalidUsage|NCCL error in: "
        ),
        "NCCL failed: the GPUs or processes could not reach each other",
        "The cause stands in NCCL's own log. Often it is too little /dev/shm in a container, GPUs without peer-to-peer, a "
        "network interface that cannot be used, two processes on one GPU, or an NCCL of another release than torch was built "
        "with.",
        hints=("unhandled", "nccl", "NCCL error"),
        facts=("accelerators", "variables", "driver", "build"),
        packages=("torch",),
        fixes=(
            _NCCL_LOG,
            Fix("launch", text="give the container shared memory", command="docker run --shm-size=16g --ipc=host"),
            _NO_P2P,
        ),
        evidence=(_NCCL,),
    ),
    Symptom(
        "nccl-timeout",
        _s(
            r"Watchdog caught collective operation timeout[^\n]{0,60}?(?:OpType=(?P<operation>\w{1,30}))?"
            r"|watchdog got stuck for \d{1,6} seconds|Heartbeat monitor timed out"
        ),
        "A collective operation of NCCL did not end: one process waits for another",
        "One rank never got there: it failed earlier (its own error stands above), does other work or another number of "
        "steps, or the GPUs cannot reach each other directly: peer-to-peer does not work on consumer GPUs, with "
        "some drivers, and with an IOMMU in the way.",
        effect="hang",
        hints=("Watchdog caught", "watchdog got stuck", "Heartbeat monitor"),
        facts=("accelerators", "variables", "driver", "workload"),
        packages=("torch",),
        fixes=(
            _NO_P2P,
            _NCCL_LOG,
            Fix("driver", text="another release of the driver, where peer-to-peer is what hangs"),
            Fix("config", text="a longer timeout, where one rank only works longer (ddp_timeout, init_process_group)"),
        ),
        evidence=(_NCCL,),
    ),
    Symptom(
        "protobuf-generated",
        _s(r"Descriptors cannot (?:not )?be created directly|Detected incompatible Protobuf Gencode/Runtime versions"),
        "Code generated for an older protobuf is imported with a newer one",
        "protobuf 4 and later refuse what an old protoc generated.",
        hints=("Descriptors cannot", "Protobuf Gencode"),
        packages=("protobuf",),
        fixes=(
            Fix("downgrade", "protobuf", "<4", "the last series that takes old generated code", 'pip install "protobuf<4"'),
            Fix("env-var", text="use the slow implementation", command="export PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python"),
        ),
        evidence=(_PROTOBUF,),
    ),
    Symptom(
        "protobuf-getprototype",
        _s(r"'MessageFactory' object has no attribute 'GetPrototype'"),
        "A package calls what protobuf 6 removed",
        "MessageFactory.GetPrototype was deprecated in protobuf 4 and is gone in 6.",
        hints=("GetPrototype",),
        packages=("protobuf",),
        fixes=(
            Fix("downgrade", "protobuf", "<6", "still has it", 'pip install "protobuf<6"'),
            Fix("upgrade", None, None, "the package whose frames stand last: a release that is written for protobuf 6"),
        ),
        evidence=(_PROTOBUF,),
    ),
    Symptom(
        "protobuf-runtime-old",
        _s(r"cannot import name 'runtime_version' from 'google\.protobuf'"),
        "Code generated by a newer protoc is imported with an older protobuf",
        "Code that protoc 5.27 or newer generated asks the runtime for its version, which older ones cannot tell.",
        hints=("runtime_version",),
        packages=("protobuf",),
        fixes=(Fix("upgrade", "protobuf", ">=5.27", "has runtime_version", 'pip install "protobuf>=5.27"'),),
        evidence=(_PROTOBUF,),
    ),
    Symptom(
        "tokenizer-file-newer",
        _s(r"data did not match any variant of untagged enum (?P<what>\w{1,60})"),
        "The tokenizer's file is written by a newer tokenizers than the one that reads it",
        "tokenizer.json holds a {what} in a form that this tokenizers does not know; transformers decides which tokenizers is "
        "installed.",
        hints=("untagged enum",),
        packages=("tokenizers", "transformers"),
        fixes=(
            Fix(
                "upgrade",
                "transformers",
                None,
                "with the tokenizers that it asks for",
                "pip install -U transformers tokenizers",
            ),
            Fix("config", text="load the tokenizer with use_fast=False where the model has a slow one"),
        ),
        evidence=("https://github.com/huggingface/tokenizers/releases",),
    ),
    Symptom(
        "pydantic-2",
        _s(
            r"PydanticImportError|PydanticUserError|`BaseSettings` has been moved to the `pydantic-settings` package"
            r"|Config class 'orm_mode'|`@root_validator` with pre=False"
        ),
        "Code written for pydantic 1 runs with pydantic 2",
        "pydantic 2 moved or removed much of what version 1 had.",
        hints=("Pydantic", "pydantic-settings", "orm_mode", "root_validator"),
        packages=("pydantic",),
        fixes=(
            Fix("downgrade", "pydantic", "<2", "for code that was not ported", 'pip install "pydantic<2"'),
            Fix("upgrade", None, None, "the package whose frames stand last: a release that is written for pydantic 2"),
        ),
        evidence=("https://docs.pydantic.dev/latest/migration/",),
    ),
    Symptom(
        "pydantic-1-python",
        _s(r"ForwardRef\._evaluate\(\) missing 1 required keyword-only argument: 'recursive_guard'"),
        "This pydantic calls what Python 3.12.4 changed",
        "Releases of pydantic 1 before 1.10.16, and of what bundles it, do not pass an argument that newer Pythons ask for.",
        hints=("recursive_guard",),
        facts=("python",),
        packages=("pydantic",),
        fixes=(
            Fix("upgrade", "pydantic", ">=1.10.16", "passes the argument", 'pip install "pydantic>=1.10.16"'),
            Fix("config", text="use an older Python", command="uv venv --python 3.11"),
        ),
        evidence=("https://github.com/pydantic/pydantic/releases",),
    ),
    Symptom(
        "dataclass-default",
        _s(r"mutable default <class '(?P<name>\w{1,60})[\w.]{0,120}'> for field (?P<field>\w{1,60}) is not allowed"),
        "{name} is written for a Python before 3.11",
        "Since Python 3.11 a dataclass refuses every default that cannot be hashed, as field {field} has one.",
        hints=("mutable default",),
        facts=("python",),
        packages=("{name}",),
        fixes=(
            Fix("upgrade", "{name}", None, "a release for this Python", "pip install -U {name}"),
            Fix("config", text="use Python 3.10", command="uv venv --python 3.10"),
        ),
        evidence=(f"{_WHATS_NEW}3.11.html",),
    ),
    Symptom(
        "import-unfinished",
        _s(r"partially initialized module '(?P<name>[A-Za-z]\w{0,60})' has no attribute '(?P<what>\w{1,60})'"),
        "The import of {name} has not come to its end when {what} is asked for",
        "A file or folder of that name lies beside the program, or an earlier error stopped the import, as a compiled part "
        "that does not fit what is installed.",
        hints=("partially initialized",),
        packages=("{name}",),
        fixes=(
            Fix("config", text="rename files and folders of your own that are called {name}"),
            Fix("pin", "{name}", None, "install it again", "pip install --force-reinstall {name}"),
        ),
        evidence=("https://docs.python.org/3/faq/programming.html#what-are-the-best-practices-for-using-import-in-a-module",),
    ),
    Symptom(
        "illegal-instruction",
        _s(r"Illegal instruction|SIGILL"),
        "A compiled package uses instructions that this processor does not have",
        "Its wheel was compiled for newer processors (AVX, AVX2, AVX-512), or a virtual machine hides them.",
        hints=("Illegal instruction", "SIGILL"),
        facts=("machine", "build"),
        fixes=(
            Fix("source-install", None, "", "build the package whose frames stand last on this machine"),
            Fix("config", text="let the virtual machine pass the host's processor through"),
        ),
        evidence=(_FAULTHANDLER,),
    ),
    Symptom(
        "native-crash",
        _s(
            r"Fatal Python error: (?P<what>Segmentation fault|Aborted|Bus error)|Segfault encountered|Segmentation fault"
            r"|(?:free|malloc|realloc|munmap_chunk)\(\): \w|double free or corruption|corrupted (?:size|double-linked list)"
        ),
        "A compiled package crashed the process",
        "Often two packages bring the same library, or one was compiled for another release of a library that is loaded "
        "already. What was imported last stands in the frames of faulthandler.",
        hints=(
            "Segmentation fault",
            "Segfault",
            "Aborted",
            "Bus error",
            "free()",
            "malloc()",
            "munmap",
            "corrupt",
            "realloc()",
        ),
        explained_by=("build-", "requires-torch"),
        facts=("build",),
        fixes=(
            Fix("config", text="let Python say where it crashes", command="python -X faulthandler <program>"),
            Fix("pin", None, None, "install torch and the package that is named, for the same torch and CUDA"),
        ),
        evidence=(_FAULTHANDLER,),
    ),
)
