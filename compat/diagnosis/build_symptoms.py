"""Messages of compilers, drivers, installers and compiled companions that say themselves what is wrong.

Each row has the literals of which its message contains one; the groups of its pattern are values that its texts name.
"""

from __future__ import annotations

import re

from compat.diagnosis.symptom_table import Symptom
from compat.model import Fix

_GPU = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility"
_NVCC = "https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html#gpu-feature-list"
_CONTAINER = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html"
_EXTENSION = "https://pytorch.org/docs/stable/cpp_extension.html"
_PIP = "https://pip.pypa.io/en/stable/topics/dependency-resolution/"

_NEW_DRIVER = Fix("driver", text="install a newer driver on the machine (the host, not the container)")
_ISOLATION = Fix("config", text="build against the torch that is installed", command="pip install --no-build-isolation {name}")
_V = r"[\w.!+*-]{1,40}"


def _s(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


BUILD_SYMPTOMS = (
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
        "ptxas-too-old",
        _s(r"[Vv]alue '(?P<code>sm_\d{2,3}[af]?)' is not defined for option 'gpu-name'"),
        "The ptxas in use does not know {code}",
        "Triton compiles kernels with a ptxas of its own release, or with the one that TRITON_PTXAS_PATH names; both are older "
        "than the GPU.",
        hints=("is not defined for option",),
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
        "nvcc-architecture",
        _s(r"Unsupported gpu architecture '(?P<code>compute_\d{2,3}[af]?)'"),
        "This nvcc cannot compile for {code}",
        "The CUDA toolkit is older than the GPU, or so new that it dropped an old one.",
        hints=("Unsupported gpu architecture",),
        effect="install",
        facts=("cuda_toolkit", "accelerators", "variables"),
        fixes=(
            Fix("config", text="install a CUDA toolkit that knows the architecture (12.8 for compute_100 and compute_120)"),
            Fix(
                "env-var",
                text="compile only for architectures that this toolkit knows",
                command='export TORCH_CUDA_ARCH_LIST="8.0;9.0+PTX"',
            ),
        ),
        evidence=(_NVCC,),
    ),
    Symptom(
        "cuda-mismatch",
        _s(
            r"detected CUDA version \((?P<toolkit>[\d.]{1,10})\) mismatches the version that was used to "
            r"compile\s{1,20}PyTorch \((?P<torch>[\d.]{1,10})\)"
        ),
        "nvcc is of CUDA {toolkit}, and torch is built for CUDA {torch}",
        "An extension of torch is compiled with the nvcc that CUDA_HOME or PATH names, and both must be of one major release.",
        hints=("mismatches the version that was used to compile",),
        effect="install",
        facts=("cuda_toolkit", "build", "variables"),
        packages=("torch",),
        fixes=(
            Fix("env-var", text="use the toolkit that fits torch", command="export CUDA_HOME=/usr/local/cuda-{torch}"),
            Fix("source-install", "torch", "", "the build of torch for this toolkit, from torch's own index"),
        ),
        evidence=(_EXTENSION,),
    ),
    Symptom(
        "no-nvcc",
        _s(
            r"CUDA_HOME environment variable is not set|nvcc was not found|nvcc: (?:command )?not found|No such file or "
            r"directory: '[^'\n]{0,200}/bin/nvcc'"
        ),
        "A package is compiled here, and there is no CUDA toolkit",
        "No wheel fits this torch, Python and system, so that the package is built from source, which needs nvcc.",
        hints=(
            "CUDA_HOME environment variable",
            "nvcc",
        ),
        effect="install",
        facts=("cuda_toolkit", "variables", "build"),
        fixes=(
            Fix("pin", None, None, "install a release that has a wheel for this torch and Python"),
            Fix("env-var", text="name the toolkit", command="export CUDA_HOME=/usr/local/cuda"),
            Fix("config", text="start from an image with the toolkit (-devel)"),
        ),
        evidence=(_EXTENSION,),
    ),
    Symptom(
        "gcc-too-new",
        _s(r"unsupported GNU version! gcc versions later than (?P<most>\d{1,2}) are not supported"),
        "This CUDA toolkit takes gcc up to {most} only",
        "nvcc compiles host code with the system's gcc and refuses one that is newer than itself.",
        hints=("unsupported GNU version",),
        effect="install",
        facts=("cuda_toolkit", "platform"),
        fixes=(
            Fix(
                "env-var", text="compile with an older gcc", command="export CC=gcc-{most} CXX=g++-{most} NVCC_CCBIN=g++-{most}"
            ),
            Fix("config", text="install a newer CUDA toolkit"),
        ),
        evidence=("https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy",),
    ),
    Symptom(
        "no-msvc",
        _s(r"Microsoft Visual C\+\+ (?P<least>\d{2}\.\d) or greater is required"),
        "A package is compiled here, and there is no Visual C++",
        "No wheel for Windows and this Python exists, so that the package is built from source.",
        hints=("Microsoft Visual C++",),
        effect="install",
        facts=("os", "platform"),
        fixes=(
            Fix("pin", None, None, "install a release that has a wheel for Windows and this Python"),
            Fix("config", text="install the Build Tools for Visual Studio"),
        ),
        evidence=("https://wiki.python.org/moin/WindowsCompilers",),
    ),
    Symptom(
        "build-failed",
        _s(
            r"(?:Failed building wheel for|Could not build wheels for|Failed to build:? [`']?|Failed to build installable "
            r"wheels for some "
            r"pyproject\.toml based projects \()\s?(?P<name>[A-Za-z][\w-]{1,60})"
        ),
        "{name} is built from source here, and its build fails",
        "No wheel fits this Python, system and torch. The compiler's first error stands above.",
        hints=(
            "building wheel",
            "build wheels",
            "Failed to build",
        ),
        effect="install",
        facts=("build", "python", "cuda_toolkit"),
        packages=("{name}",),
        fixes=(
            Fix(
                "pin",
                "{name}",
                None,
                "a release that has a wheel for this Python and torch",
                "pip install --only-binary :all: {name}",
            ),
            _ISOLATION,
        ),
        evidence=("https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-only-binary",),
    ),
    Symptom(
        "no-such-release",
        _s(
            rf"(?:No matching distribution found for|Could not find a version that satisfies the requirement) "
            rf"(?P<name>[A-Za-z][\w-]{{1,60}})(?:\[[\w,-]{{1,60}}\])?(?P<spec>(?:[<>=!~]=|[<>]){_V})?"
            rf"|[Bb]ecause there (?:is|are) no versions? of (?P<name_2>[A-Za-z][\w-]{{1,60}})(?P<spec_2>(?:[<>=!~]=|[<>]){_V})?"
            rf"|(?:PackagesNotFoundError|ResolvePackageNotFound): .{{0,120}}\s{{1,20}}- (?P<name_3>[A-Za-z][\w-]{{1,60}})"
            rf"(?P<spec_3>(?:[<>=!~]=|[<>=]){_V})?"
        ),
        "No release {name}{spec} fits this Python and system",
        "The index has none with that number, or none with a wheel for this Python, machine and system. Old releases have no "
        "wheels for a new Python, and builds for one CUDA (+cu124) lie on torch's own index.",
        hints=(
            "No matching distribution",
            "Could not find a version",
            "ecause there",
            "PackagesNotFoundError",
            "ResolvePackageNotFound",
        ),
        effect="install",
        facts=("python", "os", "install"),
        packages=("{name}",),
        fixes=(
            Fix("pin", "{name}", None, "a release that has wheels here", "pip index versions {name}"),
            Fix("config", text="use a Python for which that release has wheels", command="uv venv --python 3.11"),
        ),
        evidence=("https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",),
    ),
    Symptom(
        "conflicting-requirements",
        _s(
            r"ResolutionImpossible|conflicting dependencies|No solution found when resolving|version solving failed|"
            r"LibMambaUnsatisfiableError|UnsatisfiableError"
        ),
        "What is asked for cannot be installed together",
        "The resolver found no set of releases that meets every requirement.",
        hints=(
            "ResolutionImpossible",
            "conflicting dependencies",
            "No solution found",
            "version solving failed",
            "UnsatisfiableError",
        ),
        effect="install",
        facts=("install",),
        fixes=(Fix("config", text="drop the pins that contradict each other and let 'compat fix FILE' choose them"),),
        evidence=(_PIP,),
    ),
    Symptom(
        "wheel-not-supported",
        _s(r"(?P<file>[\w.+%-]{3,200}\.whl) is not a supported wheel on this platform"),
        "{file} is made for another Python or system",
        "The tags at the end of its name say for which Python, ABI and platform it is.",
        hints=("is not a supported wheel",),
        effect="install",
        facts=("python", "platform", "os"),
        fixes=(
            Fix(
                "source-install",
                None,
                "",
                "the wheel for this Python, torch and CUDA: 'pip debug --verbose' lists the tags that fit",
            ),
        ),
        evidence=("https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",),
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
        "nccl",
        _s(
            r"unhandled (?P<what>cuda|system) error(?:[^\n]{0,80}NCCL version (?P<version>[\d.]{1,12}))?|"
            r"ncclUnhandledCudaError|ncclSystemError"
        ),
        "NCCL failed: the GPUs or processes could not reach each other",
        "The cause stands in NCCL's own log. Often it is too little /dev/shm in a container, GPUs without peer-to-peer, a "
        "network "
        "interface that cannot be used, or an NCCL of another release than torch was built with.",
        hints=(
            "unhandled",
            "ncclUnhandled",
            "ncclSystem",
        ),
        facts=("accelerators", "variables", "driver", "build"),
        packages=("torch",),
        fixes=(
            Fix("env-var", text="let NCCL say what failed", command="export NCCL_DEBUG=INFO"),
            Fix("launch", text="give the container shared memory", command="docker run --shm-size=16g --ipc=host"),
            Fix("env-var", text="go without peer-to-peer", command="export NCCL_P2P_DISABLE=1"),
        ),
        evidence=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",),
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
        "protobuf-generated",
        _s(r"Descriptors cannot be created directly|Detected incompatible Protobuf Gencode/Runtime versions"),
        "Code generated for an older protobuf is imported with a newer one",
        "protobuf 4 and later refuse what an old protoc generated.",
        hints=(
            "Descriptors cannot",
            "Protobuf Gencode",
        ),
        packages=("protobuf",),
        fixes=(
            Fix("downgrade", "protobuf", "<4", "the last series that takes old generated code", 'pip install "protobuf<4"'),
            Fix("env-var", text="use the slow implementation", command="export PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python"),
        ),
        evidence=("https://protobuf.dev/support/cross-version-runtime-guarantee/",),
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
)
