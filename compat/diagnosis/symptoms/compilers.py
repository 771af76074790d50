"""Missing compilers, headers and toolkits that a build requires, before a run or during it."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

_NVCC = "https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html#gpu-feature-list"
_EXTENSION = "https://pytorch.org/docs/stable/cpp_extension.html"
_ISOLATION_ANY = Fix("config", text="build against the torch that is installed: pip install --no-build-isolation")
_TRITON_BUILD = "https://github.com/triton-lang/triton/blob/main/python/triton/runtime/build.py"


COMPILERS = (
    Symptom(
        "no-compiler",
        re.compile(r"Failed to find C compiler|No working C\+\+ compiler found|InvalidCxxCompiler"),
        "Triton or torch.compile finds no C compiler",
        "Both generate C code and compile it when a kernel first runs. Images without development tools (-runtime, -base, "
        "-slim) have no compiler.",
        hints=("C compiler", "C++ compiler", "InvalidCxxCompiler"),
        facts=("variables",),
        else_packages=("triton",),
        fixes=(
            Fix(kind="config", text="install a compiler", command="apt-get install -y gcc g++"),
            Fix(kind="env-var", text="point to a compiler that is not on PATH", command="export CC=<path> CXX=<path>"),
            Fix(kind="config", text="start from the -devel image of the same CUDA"),
        ),
        evidence=(_TRITON_BUILD,),
    ),
    Symptom(
        "python-headers",
        re.compile(r"Python\.h: No such file or directory|'Python\.h' file not found"),
        "C code is compiled for Python, and Python.h is not there",
        "Triton compiles what starts its kernels while a program runs, and DeepSpeed and other packages their extensions. "
        "That needs Python's headers, which Linux distributions ship apart from Python.",
        else_packages=("triton",),
        facts=("platform", "python"),
        hints=("Python.h",),
        fixes=(
            Fix(kind="config", text="install the headers of this Python", command="apt-get install -y python3-dev"),
            Fix(kind="config", text="use a Python that includes them: from uv, conda, or the official images"),
        ),
        evidence=(_TRITON_BUILD,),
    ),
    Symptom(
        "libcuda-link",
        re.compile(r"cannot find -lcuda\b|libcuda\.so cannot found"),
        "Triton cannot link to the driver's libcuda.so",
        "It looks for libcuda.so.1 in the loader's cache and in LD_LIBRARY_PATH; some releases link against a libcuda.so next "
        "to it.",
        hints=("-lcuda", "libcuda.so cannot"),
        else_packages=("triton",),
        facts=("variables", "driver"),
        fixes=(
            Fix(
                kind="env-var",
                text="set the folder that contains libcuda.so (WSL: /usr/lib/wsl/lib)",
                command="export TRITON_LIBCUDA_PATH=<folder>",
            ),
            Fix(
                kind="config",
                text="let the loader find it: run ldconfig, or link libcuda.so to libcuda.so.1 in the same folder",
            ),
            Fix(kind="launch", text="start the container with the GPU: --gpus all"),
        ),
        evidence=("https://github.com/triton-lang/triton/blob/main/third_party/nvidia/backend/driver.py",),
    ),
    Symptom(
        "launcher-not-compiled",
        re.compile(
            r"Command '\[[^\n]{0,80}(?:gcc|cc|clang)'[^\n]{0,400}?(?:/main\.c'|cuda_utils|-lcuda\b|__triton_launcher)"
            r"[^\n]{0,1500}returned non-zero exit status"
        ),
        "Triton cannot compile the C code that starts its kernels",
        "The compiler's own message stands above this error. Common causes are missing Python headers (Python.h), a libcuda.so "
        "that the linker does not find, and a compiler of another environment.",
        hints=("returned non-zero exit status",),
        else_packages=("triton",),
        facts=("variables", "platform", "python"),
        general=True,
        fixes=(
            Fix(
                kind="config",
                text="install a compiler and the headers of this Python",
                command="apt-get install -y gcc python3-dev",
            ),
            Fix(
                kind="env-var",
                text="set the folder that contains libcuda.so (WSL: /usr/lib/wsl/lib)",
                command="export TRITON_LIBCUDA_PATH=<folder>",
            ),
            Fix(kind="env-var", text="use the system's compiler, not that of an environment", command="export CC=/usr/bin/gcc"),
        ),
        evidence=(_TRITON_BUILD,),
    ),
    Symptom(
        "nvcc-architecture",
        re.compile(r"Unsupported gpu architecture '(?P<code>compute_\d{2,3}[af]?)'"),
        "This nvcc cannot compile for {code}",
        "The CUDA toolkit is older than the GPU, or so new that it dropped support for it.",
        hints=("Unsupported gpu architecture",),
        effect="install",
        facts=("cuda_toolkit", "accelerators", "variables"),
        fixes=(
            Fix("config", text="install a CUDA toolkit that supports the architecture (12.8 for compute_100 and compute_120)"),
            Fix(
                "env-var",
                text="compile only for architectures that this toolkit supports",
                command='export TORCH_CUDA_ARCH_LIST="8.0;9.0+PTX"',
            ),
        ),
        evidence=(_NVCC,),
    ),
    Symptom(
        "cuda-toolkit-old",
        re.compile(
            r"(?:only supported (?:on|with)|[Rr]equires?|[Nn]eeds?) (?:NVIDIA )?CUDA (?:[Tt]oolkit )?(?:version )?(?:>= ?)?"
            r"(?P<least>\d{1,2}\.\d{1,2})\+?(?: (?:and|or) (?:above|newer|higher|later|greater))?"
            r"|CUDA (?:version )?(?P<least_2>\d{1,2}\.\d{1,2}) or (?:above|newer|higher|later|greater) is required"
            r"|nvcc version must be at least (?P<least_3>\d{1,2}\.\d{1,2})"
        ),
        "{package} requires CUDA {least} or newer",
        "A build takes the release of nvcc, which CUDA_HOME or PATH points to. The number that nvidia-smi shows is the newest "
        "CUDA that the driver supports, and says nothing about nvcc. At run time, the CUDA that torch is built for counts.",
        hints=("CUDA", "nvcc version"),
        effect="install",
        facts=("cuda_toolkit", "variables", "build"),
        fixes=(
            Fix("config", text="install a CUDA toolkit {least} or newer, and set CUDA_HOME to it", command="nvcc --version"),
            Fix(
                "pin",
                "{package}",
                None,
                "or a wheel of it, which needs no toolkit",
                "pip install --only-binary :all: {package}",
            ),
        ),
        evidence=(_NVCC,),
    ),
    Symptom(
        "cuda-mismatch",
        re.compile(
            r"detected CUDA version \((?P<toolkit>[\d.]{1,10})\) mismatches the version that was used to "
            r"compile\s{1,20}PyTorch \((?P<torch>[\d.]{1,10})\)"
            r"|detected CUDA version \(%s\) mismatches the version that was used to compile(?:\\n|\s)PyTorch \(%s\)"
            r"[^'\n]{0,80}', '(?P<toolkit_3>[\d.]{1,10})', '(?P<torch_3>[\d.]{1,10})'"  # later releases do not fill them in
            r"|Installed CUDA version (?P<toolkit_2>[\d.]{1,10}) does not match the version torch was compiled with "
            r"(?P<torch_2>\d{1,3}\.\d{1,3})"  # DeepSpeed
        ),
        "nvcc belongs to CUDA {toolkit}, but torch is built for CUDA {torch}",
        "torch extensions are compiled with the nvcc that CUDA_HOME or PATH points to; both must have the same major release.",
        hints=("mismatches the version that was used to compile", "does not match the version torch was compiled with"),
        effect="install",
        facts=("cuda_toolkit", "build", "variables"),
        packages=("torch",),
        fixes=(
            Fix("env-var", text="use the toolkit that matches torch", command="export CUDA_HOME=/usr/local/cuda-{torch}"),
            Fix("source-install", "torch", "", "the build of torch for this toolkit, from torch's own index"),
        ),
        evidence=(_EXTENSION,),
    ),
    Symptom(
        "no-nvcc",
        re.compile(
            r"CUDA_HOME environment variable is not set|Cannot find CUDA_HOME|nvcc was not found|nvcc: (?:command )?not found"
            r"|No such file or directory: '[^'\n]{0,200}/bin/nvcc'"
        ),
        "A package is built from source, but no CUDA toolkit is installed",
        "No wheel matches this torch, Python and system, so the package is built from source, which needs nvcc.",
        hints=("CUDA_HOME", "nvcc"),
        effect="install",
        facts=("cuda_toolkit", "variables", "build"),
        fixes=(
            Fix("pin", None, None, "install a release that has a wheel for this torch and Python"),
            Fix("env-var", text="point to the toolkit", command="export CUDA_HOME=/usr/local/cuda"),
            Fix("config", text="start from an image with the toolkit (-devel)"),
        ),
        evidence=(_EXTENSION,),
    ),
    Symptom(
        "gcc-too-new",
        re.compile(r"unsupported GNU version! gcc versions later than (?P<most>\d{1,2}) are not supported"),
        "This CUDA toolkit supports gcc only up to {most}",
        "nvcc compiles host code with the system's gcc and rejects releases newer than it knows.",
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
        re.compile(r"Microsoft Visual C\+\+ (?P<least>\d{2}\.\d) or greater is required"),
        "A package is built from source, but Visual C++ is not installed",
        "There is no wheel for Windows and this Python, so the package is built from source.",
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
        "cuda-headers",
        re.compile(
            r"fatal error: (?P<header>(?:cu\w{1,40}|nccl|nv\w{1,40}|thrust/\w{1,40}|cub/\w{1,40})\.(?:h|hpp|cuh)): No such file"
        ),
        "{header} is missing: the CUDA toolkit is incomplete",
        "A package is built from source. nvcc on its own, as conda and pip ship it, comes without the headers of the CUDA "
        "libraries.",
        hints=("No such file",),
        effect="install",
        facts=("cuda_toolkit", "variables"),
        fixes=(
            Fix("config", text="install the complete toolkit, or start from an image that has it (-devel)"),
            Fix(
                "config",
                text="with conda, the development packages",
                command="conda install -c nvidia cuda-libraries-dev cuda-cudart-dev",
            ),
            Fix("pin", None, None, "install a release that has a wheel for this torch and Python"),
        ),
        evidence=(_EXTENSION,),
    ),
    Symptom(
        "compiler-too-old",
        re.compile(
            r"current installed version of (?P<what>[\w+]{1,10}) \((?P<found>[\d.]{1,12})\) is less than the minimum required "
            r"version(?: by CUDA [\d.]{1,6} \((?P<least>[\d.]{1,8})\))?"
            r"|You need C\+\+(?P<standard>\d\d) to compile PyTorch"
            r"|C\+\+ versions less than (?P<standard_2>\d{4}) are not supported"
        ),
        "The compiler is too old for this torch and CUDA",
        "A package is built from source, and torch's headers or nvcc require a newer g++ or C++ standard.",
        hints=("minimum required version", "to compile PyTorch", "versions less than"),
        effect="install",
        facts=("cuda_toolkit", "platform", "install"),
        packages=(),
        else_packages=("torch",),
        fixes=(
            Fix("config", text="install a newer compiler", command="conda install -c conda-forge gxx_linux-64"),
            Fix("pin", None, None, "install a release that has a wheel for this torch and Python"),
        ),
        evidence=(_EXTENSION,),
    ),
    Symptom(
        "no-rust",
        re.compile(
            r"can't find Rust compiler|Rust not found, installing into a temporary directory|requires Rust \d"
            r"|Cargo, the Rust package manager, is not installed|error\[E0\d{3}\]: "
        ),
        "A package is built from source with Rust, which is missing or too old",
        "No wheel matches this Python and system, so it is built from source. Old releases have no wheels for new Python "
        "releases.",
        hints=("Rust", "error[E0"),
        effect="install",
        facts=("python", "platform", "install"),
        fixes=(
            Fix("pin", None, None, "install a release that has a wheel for this Python"),
            Fix("config", text="use a Python for which that release has wheels", command="uv venv --python 3.11"),
        ),
        evidence=("https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",),
    ),
    Symptom(
        "compiler-failed",
        re.compile(r"error: command '[^'\n]{0,200}?(?P<what>gcc|g\+\+|cc|c\+\+|nvcc|cl\.exe|ninja|cmake)(?:-\d{1,2})?' failed"),
        "A package is built from source, and {what} fails",
        "No wheel matches this Python, system and torch. The compiler's first error is further up in the log.",
        hints=("error: command ",),
        effect="install",
        facts=("build", "python", "cuda_toolkit"),
        fixes=(Fix("pin", None, None, "install a release that has a wheel for this Python and torch"), _ISOLATION_ANY),
        evidence=("https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-only-binary",),
    ),
    Symptom(
        "jit-failed",
        re.compile(
            r"[Nn]inja build failed|ninja: build stopped: subcommand failed|Error building extension '(?P<extension>\w{1,60})'"
            r"|nvcc fatal {1,4}: (?P<said>[^\n]{3,120})|NVCC compilation failed|NVRTC_ERROR_\w{3,40}|\bnvrtc: error"
        ),
        "CUDA code of {package} does not compile on this machine",
        "It is compiled when it is first needed, with the nvcc that CUDA_HOME or PATH points to. The compiler's own message "
        "stands above this one. Common causes are a toolkit of another CUDA release than torch's, incomplete headers, a g++ "
        "that nvcc does not accept, and files of an earlier attempt.",
        hints=("inja", "building extension", "nvcc fatal", "NVCC", "NVRTC", "nvrtc"),
        effect="install",
        else_packages=("torch",),
        facts=("cuda_toolkit", "variables", "build"),
        general=True,
        kernels=True,
        fixes=(
            Fix("env-var", text="use a complete toolkit of torch's CUDA release", command="export CUDA_HOME=/usr/local/cuda"),
            Fix(
                "pin",
                "flashinfer-jit-cache",
                None,
                "for FlashInfer, kernels that are already compiled, in the release of flashinfer-python",
            ),
            Fix("env-var", text="do without FlashInfer's sampler in vLLM", command="export VLLM_USE_FLASHINFER_SAMPLER=0"),
            Fix(
                "config", text="delete what was compiled before", command="rm -r ~/.cache/flashinfer ~/.cache/torch_extensions"
            ),
        ),
        evidence=("https://docs.flashinfer.ai/installation.html", "https://pytorch.org/docs/stable/cpp_extension.html"),
    ),
)
