"""Builds that fail because nvcc, the host compiler and CMake are of releases that do not go together, or for lack of memory."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

_HOST = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy"
_HOST_WINDOWS = "https://docs.nvidia.com/cuda/cuda-installation-guide-microsoft-windows/#system-requirements"
_CMAKE = "https://cmake.org/cmake/help/latest/variable/CMAKE_LANG_COMPILER.html"
_WHEEL = Fix("pin", None, None, "install a release that has a wheel for this torch and Python")
_OLDER_GCC = Fix(
    "env-var",
    text="compile with an older gcc, as nvcc's host compiler too",
    command="export CC=gcc-12 CXX=g++-12 NVCC_CCBIN=g++-12",
)
_NEWER_TOOLKIT = Fix("config", text="install a newer CUDA toolkit, which accepts this compiler")


SOURCE_BUILDS = (
    Symptom(
        "gcc-newer-than-nvcc",
        re.compile(
            r"current installed version of (?P<what>[\w+]{1,10}) \((?P<found>[\d.]{1,12})\) is greater than the maximum "
            r"required version by CUDA (?P<cuda>[\d.]{1,6})(?: \((?P<most>[\d.]{1,8})\))?"
        ),
        "{what} {found} is newer than CUDA {cuda} accepts: {most}",
        "nvcc compiles host code with the system's compiler and rejects releases newer than it knows.",
        hints=("maximum required version",),
        effect="install",
        facts=("cuda_toolkit", "platform"),
        fixes=(_OLDER_GCC, _NEWER_TOOLKIT),
        evidence=(_HOST,),
    ),
    Symptom(
        "gcc-headers",
        re.compile(
            r"identifier \"?__builtin_(?:ia32|dynamic|neon|aarch64)_\w{1,60}\"? is undefined"
            r"|std_function\.h:\d{1,5}:\d{1,5}: error: parameter packs not expanded"
            r"|(?:amx|avx512|serialize|x86gprint|arm_neon|arm_sve|arm_acle)\w{0,20}\.h(?:\(\d|:\d)[^\n]{0,120}error\b"
        ),
        "This nvcc cannot read the headers of the gcc that it uses",
        "The headers of a gcc release use built-in functions and syntax that an older nvcc does not know. Some releases pass "
        "nvcc's own check of the version all the same, such as gcc 11 with CUDA 11.5.",
        hints=("__builtin_", "parameter packs", "error"),
        effect="install",
        facts=("cuda_toolkit", "platform"),
        fixes=(_OLDER_GCC, _NEWER_TOOLKIT),
        evidence=(_HOST,),
    ),
    Symptom(
        "msvc-unsupported",
        re.compile(
            r"unsupported Microsoft Visual Studio version! Only the versions between (?P<first>\d{4}) and (?P<last>\d{4})"
            r"|STL1002: Unexpected compiler version, expected CUDA (?P<least>\d{1,2}\.\d{1,2}) or newer"
        ),
        "This CUDA toolkit does not support the installed Visual C++",
        "nvcc compiles host code with Visual C++ and rejects releases that it does not know; an update within Visual Studio "
        "2022 (17.10) was enough for toolkits before CUDA 12.4.",
        hints=("unsupported Microsoft Visual Studio", "STL1002"),
        effect="install",
        facts=("cuda_toolkit", "platform", "os"),
        fixes=(
            Fix("config", text="install a newer CUDA toolkit, or build with an older Visual C++ toolset (-vcvars_ver=14.39)"),
            Fix("env-var", text="let nvcc try all the same", command="set NVCC_PREPEND_FLAGS=-allow-unsupported-compiler"),
            _WHEEL,
        ),
        evidence=(_HOST_WINDOWS,),
    ),
    Symptom(
        "cmake-no-cuda",
        re.compile(
            r"CMAKE_CUDA_COMPILER(?:-NOTFOUND|[`']? not set|[^\n]{0,40}could be found)|No CUDA toolset found"
            r"|Failed to find nvcc\b|Could NOT find CUDA(?:Toolkit)?\b"
            r"|Unable to find (?:the )?(?:cuda_runtime\.h|CUDA compiler)"
        ),
        "CMake finds no CUDA toolkit, and the build needs nvcc",
        "torch's wheels bring CUDA's libraries, but not nvcc. CMake looks for it in PATH, CUDACXX and CUDA_PATH; on Windows "
        "the toolkit's integration has to be installed into Visual Studio as well.",
        hints=("CMAKE_CUDA_COMPILER", "No CUDA toolset", "find nvcc", "Could NOT find", "Unable to find"),
        effect="install",
        facts=("cuda_toolkit", "variables"),
        fixes=(
            Fix("env-var", text="point to the toolkit's nvcc", command="export CUDACXX=/usr/local/cuda/bin/nvcc"),
            Fix("config", text="install the CUDA toolkit, or start from an image with it (-devel)"),
            _WHEEL,
        ),
        evidence=(_CMAKE,),
    ),
    Symptom(
        "cmake-too-old",
        re.compile(
            r"CMake (?P<least>\d\.[\d.]{1,8}) or higher is required\.\s{1,4}You are running version (?P<found>\d[\w.]{1,12})"
        ),
        "The build needs CMake {least} or newer, and CMake {found} runs",
        "It is the first cmake on PATH: that of the system, unless the environment has its own.",
        hints=("or higher is required",),
        effect="install",
        facts=("platform", "variables"),
        fixes=(Fix("upgrade", "cmake", ">={least}", "the wheel of CMake, first on PATH", 'pip install "cmake>={least}"'),),
        evidence=("https://cmake.org/cmake/help/latest/command/cmake_minimum_required.html",),
    ),
    Symptom(
        "compiler-killed",
        re.compile(
            r"fatal error: Killed signal terminated program|(?:cicc|ptxas|cudafe\+\+|cc1plus)['\"]? died due to signal 9"
            r"|nvcc error\s{1,4}: '\w{2,12}' died due to signal"
        ),
        "The compiler is killed for lack of memory",
        "Kernels are compiled by as many processes as the machine has cores, each of which takes several GB.",
        hints=("Killed signal", "died due to signal"),
        effect="install",
        facts=("install",),
        fixes=(
            Fix(
                "env-var",
                text="compile with fewer processes",
                command="export MAX_JOBS=2 NVCC_THREADS=1 CMAKE_BUILD_PARALLEL_LEVEL=2",
            ),
            _WHEEL,
        ),
        evidence=("https://github.com/Dao-AILab/flash-attention#installation-and-features",),
    ),
    Symptom(
        "cuda-types-missing",
        re.compile(r"identifier \"(?P<type>__nv_fp[48](?:_|x\d)\w{1,12})\" is undefined"),
        "This CUDA toolkit has no {type}",
        "The source uses number formats that the toolkit's headers do not define yet: fp8 came with CUDA 11.8, fp4 with 12.8.",
        hints=("__nv_fp",),
        effect="install",
        facts=("cuda_toolkit", "variables"),
        fixes=(
            Fix("config", text="install a newer CUDA toolkit, and set CUDA_HOME to it", command="nvcc --version"),
            _WHEEL,
        ),
        evidence=("https://docs.nvidia.com/cuda/cuda-math-api/",),
    ),
)
