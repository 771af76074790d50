"""Messages of compilers, CMake, loaders and containers that concern no release of a package alone."""

from __future__ import annotations

import pytest

from tests.diagnosis.test_symptoms import said

BUILDS = [
    (
        (
            "RuntimeError: The current installed version of g++ (14.2.0) is greater than the maximum required version by CUDA 12.4 "
            "(13.2). Please make sure to use an adequate version of g++ (>=6.0.0, <=13.2)."
        ),
        "gcc-newer-than-nvcc",
        "g++ 14.2.0 is newer than the newest that CUDA 12.4 accepts: 13.2",
    ),
    (
        '/usr/lib/gcc/x86_64-linux-gnu/11/include/serializeintrin.h(41): error: identifier "__builtin_ia32_serialize" is undefined',
        "gcc-headers",
        "This nvcc cannot parse the headers of its host gcc",
    ),
    (
        "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with '...':",
        "gcc-headers",
        "This nvcc cannot parse the headers of its host gcc",
    ),
    (
        (
            r"C:\CUDA\v11.8\include\crt/host_config.h(153): fatal error C1189: #error:  -- unsupported Microsoft Visual Studio "
            "version! Only the versions between 2017 and 2022 (inclusive) are supported!"
        ),
        "msvc-unsupported",
        "This CUDA toolkit does not support the installed Visual C++",
    ),
    ("CMake Error: CMAKE_CUDA_COMPILER not set, after EnableLanguage", "cmake-no-cuda", "CMake cannot find a CUDA toolkit"),
    (
        "CMake Error at CMakeLists.txt:9 (project):\n  No CUDA toolset found.",
        "cmake-no-cuda",
        "CMake cannot find a CUDA toolkit",
    ),
    (
        (
            "CMake Error at CMakeLists.txt:1 (cmake_minimum_required):\n  CMake 3.26 or higher is required.  You are running version "
            "3.22.1\n"
        ),
        "cmake-too-old",
        "The build needs CMake 3.26 or newer, but uses CMake 3.22.1",
    ),
    ("c++: fatal error: Killed signal terminated program cc1plus", "compiler-killed", "The compiler was killed"),
    ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "compiler-killed", "The compiler was killed"),
    (
        'a.cu(41): error: identifier "__nv_fp8_e4m3" is undefined',
        "cuda-types-missing",
        "This CUDA toolkit has no __nv_fp8_e4m3",
    ),
    ("RuntimeError: Cannot find CUDA_HOME. CUDA must be available to build the package.", "no-nvcc", "A package compiles"),
    ("AssertionError: nvcc version must be at least 12.3", "cuda-toolkit-old", "A package requires CUDA 12.3 or newer"),
]
LOADING = [
    (
        (
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions. PyTorch has CUDA "
            "Version=12.4 and torchvision has CUDA Version=11.8. Please reinstall the torchvision that matches your PyTorch install."
        ),
        "companion-cuda",
        "torchvision is built for CUDA 11.8, but torch is built for CUDA 12.4",
    ),
    (
        (
            "RuntimeError: Detected that PyTorch and TorchAudio were compiled with different CUDA versions. PyTorch has CUDA version "
            "12.8 whereas torchaudio has CUDA version 12.6."
        ),
        "companion-cuda",
        "torchaudio is built for CUDA 12.6, but torch is built for CUDA 12.8",
    ),
    (
        "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.",
        "torchvision-operators",
        "torchvision was compiled for another torch, or without CUDA",
    ),
    (
        "RuntimeError: operator _C::machete_prepack_B does not exist",
        "operators-not-loaded",
        "The compiled operators torch.ops._C are not loaded",
    ),
    (
        "ImportError: dlopen(/v/torch/_C.so, 0x0002): Library not loaded: /opt/homebrew/opt/libomp/lib/libomp.dylib",
        "library-macos",
        "libomp.dylib, which a compiled module needs, is not installed",
    ),
    (
        (
            'OSError: [WinError 127] The specified procedure could not be found. Error loading "C:\\v\\torchaudio\\lib\\libtorchaudio.pyd"'
            " or one of its dependencies."
        ),
        "dll-procedure",
        "torchaudio was compiled against different libraries than those installed",
    ),
    (
        "FileNotFoundError: Could not find module 'C:\\v\\llama_cpp\\lib\\llama.dll' (or one of its dependencies).",
        "dll-load",
        "A Windows library that llama.dll needs is missing",
    ),
    (
        (
            "[TRT] [E] 6: The engine plan file is not compatible with this version of TensorRT, expecting library version 10.3.0.26 "
            "got 10.0.1.6, please rebuild."
        ),
        "tensorrt-engine",
        "The engine was built with TensorRT 10.0.1.6, but TensorRT 10.3.0.26 is installed",
    ),
    (
        "llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'qwen3moe'",
        "gguf-architecture",
        "This llama.cpp does not support qwen3moe of the model file",
    ),
    (
        "ImportError: cannot import name '_C' from 'vllm' (unknown location)",
        "folder-not-package",
        "vllm is found as a folder without its compiled module _C",
    ),
    ("RuntimeError: Device string must not be empty", "no-gpu-visible", "No GPU is visible to the process"),
    ("Unable to open /dev/kfd read-write: Permission denied", "no-amd-gpu", "No AMD GPU is visible to the process"),
    (
        "RuntimeError: Only Hopper (SM90) and Blackwell GPUs are supported by DeepGEMM",
        "kernel-architecture",
        "deep-gemm has no implementation of a kernel for this GPU",
    ),
]
CONTAINERS = [
    (
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver",
        "container-driver",
        "The image requires cuda>=12.4, which the host's driver does not satisfy",
    ),
    (
        "error modifying OCI spec: requirements not met: \ncuda>=13.3||brand=unknown&&driver>=535&&driver<536",
        "container-driver",
        "The image requires cuda>=13.3, which the host's driver does not satisfy",
    ),
]


@pytest.mark.parametrize(("text", "symptom", "title"), [*BUILDS, *LOADING, *CONTAINERS])
def test_messages_of_tools(text: str, symptom: str, title: str) -> None:
    (finding,) = said(text + "\n")
    assert (finding.rule, finding.verdict, finding.severity) == (f"symptom-{symptom}", "possible", "error")
    assert finding.title.startswith(title)
    assert finding.fixes


@pytest.mark.parametrize(
    "text",
    [
        "CMake 3.26 or higher is required to build from source.",
        "The headers are parsed with gcc 12 without an error",
        "requirements not met: see the notes",
        "This error is due to signal 9",
    ],
)
def test_other_text_is_not_a_message_of_a_tool(text: str) -> None:
    assert not [each for each in said(text + "\n") if each.rule != "symptom-killed"]
