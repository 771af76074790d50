"""Packages that load in part: companions of torch for another CUDA, folders in place of packages, files of other releases."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

_OWN_INDEX = "https://pytorch.org/get-started/previous-versions/"
_LABEL = r"\d{1,2}\.\d{1,2}"


LOADING = (
    Symptom(
        "companion-cuda",
        re.compile(
            rf"compiled with different CUDA (?:major )?versions\. PyTorch has CUDA [Vv]ersion ?=? ?(?P<torch>{_LABEL}) "
            rf"(?:and|whereas) (?P<name>torch\w{{4,12}}) has CUDA [Vv]ersion ?=? ?(?P<cuda>{_LABEL})"
        ),
        "{name} is a build for CUDA {cuda}, and torch is one for CUDA {torch}",
        "Both come from an index of one CUDA release; a later 'pip install' of one of them took it from another index.",
        hints=("compiled with different CUDA",),
        explained_by=("build-companion", "requires-torchvision", "requires-torchaudio"),
        facts=("build",),
        packages=("{name}", "torch"),
        fixes=(
            Fix("source-install", "{name}", "", "the build for torch's CUDA, from the same index as torch"),
            Fix("source-install", "torch", "", "or both anew, from the index of one CUDA"),
        ),
        evidence=(_OWN_INDEX,),
    ),
    Symptom(
        "torchvision-operators",
        re.compile(
            r"Couldn't load custom C\+\+ ops\. This can happen if your PyTorch and torchvision versions are incompatible"
            r"|Could not run 'torchvision::\w{1,40}' with arguments from the 'CUDA' backend"
        ),
        "torchvision is compiled for another torch, or is a build without CUDA",
        "Its operators are registered when its compiled library loads. The library of a wheel for another torch does not load, "
        "and that of a CPU build has no kernels for the GPU.",
        hints=("custom C++ ops", "torchvision::"),
        explained_by=("requires-torchvision", "build-companion"),
        facts=("build",),
        packages=("torchvision", "torch"),
        fixes=(
            Fix("pin", "torchvision", None, "the release for this torch, from the index that torch is from"),
            Fix("source-install", "torch", "", "or torch and torchvision anew, from the index of one CUDA"),
        ),
        evidence=("https://github.com/pytorch/vision#installation",),
    ),
    Symptom(
        "library-macos",
        re.compile(
            r"Library not loaded: (?:@rpath/|@loader_path/|/(?:opt/homebrew|usr/local)/opt/(?P<formula>[\w@.-]{1,40})/lib/)"
            r"(?P<library>lib[\w.+-]{1,60}\.dylib)"
        ),
        "{library}, which a compiled module needs, is not installed",
        "macOS loads it from the folder that was there when the module was built: that of another package, or of Homebrew.",
        hints=("Library not loaded",),
        facts=("os", "build"),
        fixes=(
            Fix("config", text="install the library (Homebrew: {formula}; OpenMP is libomp)", command="brew install {formula}"),
            Fix("pin", None, None, "reinstall the package and torch from wheels"),
        ),
        evidence=("https://developer.apple.com/library/archive/documentation/DeveloperTools/Conceptual/DynamicLibraries/",),
    ),
    Symptom(
        "tensorrt-engine",
        re.compile(
            r"(?:engine plan file|serialized engine) is not compatible with this version of TensorRT, expecting "
            r"(?:library )?version (?P<here>[\d.]{1,14}) got (?P<built>[\d.]{1,14}\d)"
        ),
        "The engine was built with TensorRT {built}, and TensorRT {here} runs",
        "A plan is compiled code for one release of TensorRT and one GPU; other releases refuse it.",
        hints=("is not compatible with this version of TensorRT",),
        packages=("tensorrt",),
        fixes=(
            Fix("config", text="build the engine again with TensorRT {here}"),
            Fix("pin", "tensorrt", "=={built}", "the release that built it"),
        ),
        evidence=("https://docs.nvidia.com/deeplearning/tensorrt/latest/architecture/how-trt-works.html",),
    ),
    Symptom(
        "gguf-architecture",
        re.compile(r"unknown (?:pre-tokenizer type|model architecture): '(?P<what>[\w.-]{1,40})'"),
        "This llama.cpp does not know {what}, which the model's file names",
        "llama.cpp reads the architecture and the tokenizer that a GGUF file names. Support is added in its releases; packages "
        "that include llama.cpp follow later.",
        hints=("unknown model architecture", "unknown pre-tokenizer"),
        else_packages=("llama-cpp-python",),
        fixes=(
            Fix("upgrade", "{package}", None, "a later release, with a newer llama.cpp", "pip install -U {package}"),
            Fix("config", text="a GGUF file that was converted for this release"),
        ),
        evidence=("https://github.com/ggml-org/llama.cpp#text-only",),
    ),
    Symptom(
        "folder-not-package",
        re.compile(r"cannot import name '(?P<name>_\w{0,60}C)' from '(?P<module>[\w.]{1,80})' \(unknown location\)"),
        "{module} is found as a folder without its compiled module {name}",
        "Python imports a folder of that name if it finds no installed package first. It is the checkout that the program is "
        "started in, what an uninstall left behind, or an installation whose compiled module was not built for this machine.",
        hints=("(unknown location)",),
        facts=("install",),
        packages=("{module}",),
        fixes=(
            Fix("config", text="start the program in another folder than the checkout of the package"),
            Fix("pin", "{package}", None, "install it anew", "pip install --force-reinstall --no-deps {package}"),
        ),
        evidence=("https://docs.python.org/3/reference/import.html#namespace-packages",),
        general=True,
    ),
)
