"""Incompatible compiled libraries: built for a torch, NumPy, CUDA or system other than the installed one."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

_FAULTHANDLER = "https://docs.python.org/3/library/faulthandler.html"
_LOADER = "https://man7.org/linux/man-pages/man8/ld.so.8.html"
_PLAIN_PATH = Fix(
    kind="env-var",
    text="torch's wheels include their own CUDA libraries: remove other folders from the path",
    command="unset LD_LIBRARY_PATH",
)


BINARIES = (
    Symptom(
        "torchvision-operator",
        re.compile(r"operator (?P<name>torchvision|torchaudio|torchcodec|torchao)::\w{1,60} does not exist"),
        "{name} is compiled for a torch other than the installed one",
        "Its compiled operators were not registered because its library does not load with this torch. Each release of {name} "
        "is built for exactly one release of torch, and CPU and CUDA builds cannot be mixed.",
        hints=("does not exist",),
        explained_by=("requires-torchvision", "requires-torchaudio", "build-torchvision"),
        facts=("build",),
        packages=("{name}", "torch"),
        fixes=(
            Fix(
                "pin",
                "{name}",
                None,
                "install both from the same index, so that they match",
                "pip install --force-reinstall torch {name}",
            ),
            Fix("uninstall", "{name}", None, "if nothing needs it", "pip uninstall {name}"),
        ),
        evidence=("https://github.com/pytorch/vision#installation",),
    ),
    Symptom(
        "cpu-only-torch",
        re.compile(
            r"Torch not compiled with CUDA enabled|Torch is not able to use GPU|not linked with support for cuda devices"
        ),
        "This torch is a CPU-only build",
        "That is the default on Windows and macOS, and what an index of CPU wheels provides on Linux.",
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
        re.compile(r"Cannot find a working triton installation|triton is not installed|TritonMissing"),
        "torch.compile finds no working triton",
        "torch's Linux wheels install it. It is missing on Windows and with CPU builds, and a release other than the one "
        "torch pins does not work.",
        hints=("riton",),
        facts=("os", "build"),
        packages=("triton", "torch"),
        fixes=(
            Fix("pin", "triton", None, "the triton that torch pins", "pip install --force-reinstall torch"),
            Fix("pin", "triton-windows", None, "on Windows", "pip install triton-windows"),
            Fix("config", text="disable compilation", command="export TORCH_COMPILE_DISABLE=1"),
        ),
        evidence=("https://github.com/triton-lang/triton#compatibility",),
    ),
    Symptom(
        "static-tls",
        re.compile(r"(?P<library>lib[\w.+-]{1,60}?\.so)[\w.]{0,20}: cannot allocate memory in static TLS block"),
        "{library} is loaded too late: glibc has no static storage for threads left",
        "Libraries with thread-local variables share a table of fixed size. Those imported before have filled it, mostly on "
        "aarch64 and with glibc below 2.32.",
        hints=("static TLS",),
        facts=("machine", "glibc"),
        fixes=(
            Fix("env-var", text="load it first: the path that the error names", command="export LD_PRELOAD=<path>"),
            Fix("config", text="import the package that fails before the others"),
        ),
        evidence=("https://github.com/lightgbm-org/LightGBM/issues/6509",),
    ),
    Symptom(
        "no-flash-attention",
        re.compile(
            r"FlashAttention2 has been toggled on|flash_attn (?:seems to be )?(?:is )?not installed|Flash ?Attention ?2 is "
            r"not (?:available|installed)|package flash_attn seems to be not installed"
        ),
        "FlashAttention 2 is requested but not installed",
        'attn_implementation="flash_attention_2" needs the package flash-attn and a GPU of compute capability 8.0 or newer.',
        hints=("lash",),
        facts=("accelerators", "build"),
        packages=("flash-attn",),
        fixes=(
            Fix(
                "pin",
                "flash-attn",
                None,
                "build it for the installed torch",
                "pip install --no-build-isolation flash-attn",
            ),
            Fix("config", text='load the model with attn_implementation="sdpa"'),
        ),
        evidence=("https://github.com/Dao-AILab/flash-attention#installation-and-features",),
    ),
    Symptom(
        "numpy-abi",
        re.compile(
            r"_ARRAY_API not found|numpy\.(?:dtype|ufunc) size changed|compiled against (?:ABI|API) version \w{1,12} but "
            r"this version of numpy is|numpy\.core\.multiarray failed to import"
        ),
        "A package is compiled for a NumPy other than the installed one",
        "NumPy's C ABI changed in 2.0: packages compiled for 1.x do not load with 2.x, and packages that need a newer NumPy "
        "do not load with an older one.",
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
        "dll-procedure",
        re.compile(
            r"DLL load failed while importing (?P<module>\w{1,60}): (?:The specified procedure could not be found"
            r"|Die angegebene Prozedur|La procédure spécifiée|No se encontró el proceso especificado|找不到指定的程序"
            r"|指定されたプロシージャ|Не найдена указанная процедура)"
            r"|\[WinError 127\][^\n]{0,200}?(?P<module_2>[\w.-]{1,60})\.(?:dll|pyd)\""
        ),
        "{package} is compiled for other libraries than those that are installed",
        "Windows loaded the compiled module {module} and the libraries that it is linked to, but one of them does not have a "
        "function that it calls. For an extension of torch that is torch itself: its C++ ABI changes between releases.",
        hints=("DLL load failed", "WinError 127"),
        facts=("os", "build"),
        packages=("{module}",),
        fixes=(
            Fix("source-install", "{package}", "", "a wheel of it for the installed torch, CUDA and Python"),
            Fix("pin", "torch", None, "the torch that {package} was compiled for"),
        ),
        evidence=("https://pytorch.org/docs/stable/cpp_index.html",),
    ),
    Symptom(
        "dll-load",
        re.compile(
            r"DLL load failed while importing (?P<module>\w{1,60})|\[WinError 126\][^\n]{0,200}?"
            r"(?P<module_2>[\w.-]{1,60}\.dll)|Error loading \"[^\"\n]{0,300}?(?P<module_3>[\w.-]{1,60}\.dll)\""
            r"|Could not find module '[^'\n]{0,300}?(?P<module_4>[\w.-]{1,60}\.dll)' \(or one of its dependencies\)"
        ),
        "A Windows library that {module} needs is missing",
        "Its compiled module was found, but not one of the libraries it is linked against: the Visual C++ runtime, a CUDA "
        "library, or the torch it was built with.",
        hints=(
            "DLL load failed",
            "WinError 126",
            "Error loading",
            "Could not find module",
        ),
        facts=("os", "build", "platform"),
        fixes=(
            Fix("config", text="install the Microsoft Visual C++ Redistributable (x64)"),
            Fix("pin", None, None, "install torch and the package again, for the same torch and CUDA"),
        ),
        evidence=("https://learn.microsoft.com/en-us/cpp/windows/latest-supported-vc-redist",),
    ),
    Symptom(
        "cudnn-version",
        re.compile(
            r"cuDNN version incompatibility|CUDNN_STATUS_(?:NOT_INITIALIZED|SUBLIBRARY_VERSION_MISMATCH)"
            r"|PyTorch was compiled\s+against \(\d"
        ),
        "The loader finds a cuDNN other than the one torch was built with",
        "A cuDNN on the library path, or a second nvidia-cudnn package, comes before the one torch requires.",
        hints=("cuDNN version", "CUDNN_STATUS_", "PyTorch was compiled"),
        facts=("variables", "build"),
        packages=("torch",),
        fixes=(_PLAIN_PATH, Fix("pin", "nvidia-cudnn-cu12", None, "the cuDNN that torch pins", None)),
        evidence=(_LOADER,),
    ),
    Symptom(
        "bitsandbytes-binary",
        re.compile(
            r"(?P<library>libbitsandbytes_c\w{1,30}\.(?:so|dll))|Could not find the bitsandbytes CUDA binary"
            r"|CUDA SETUP: (?:[^\n]{0,80}?(?P<library_2>libbitsandbytes_c\w{1,30}\.(?:so|dll)))?"
            r"|bitsandbytes was compiled without GPU support|CUDA Setup failed"
        ),
        "bitsandbytes finds no library {library} for this CUDA",
        "It loads the library for torch's CUDA release, or it did not find libcuda.so.",
        explained_by=("build-bitsandbytes",),
        hints=("libbitsandbytes_c", "bitsandbytes CUDA binary", "CUDA SETUP: ", "without GPU support", "CUDA Setup failed"),
        facts=("build", "platform", "variables"),
        packages=("bitsandbytes",),
        fixes=(
            Fix("upgrade", "bitsandbytes", None, "a release with a library for torch's CUDA", "pip install -U bitsandbytes"),
            Fix(
                kind="env-var",
                text="select a CUDA release whose library exists, and add the folder of libcuda.so (WSL: /usr/lib/wsl/lib)",
                command="export BNB_CUDA_VERSION=<XYZ>",
            ),
        ),
        evidence=("https://huggingface.co/docs/bitsandbytes/main/en/installation",),
    ),
    Symptom(
        "xformers-cpu-torch",
        re.compile(r"PyTorch (?P<built>[\d.]{3,12}\+(?:cu|rocm)[\d.]{2,8})[^\n]{0,40}\(you have (?P<have>[\d.]{3,12}\+cpu)\)"),
        "xformers is built for torch {built}, and {have}, a CPU build, is installed",
        "A CPU build of torch has no CUDA that the kernels of xformers could use. It is what the default index has for "
        "Windows, and what an index of CPU wheels gives on Linux.",
        explained_by=("build-torch-cpu-only",),
        hints=("+cpu)",),
        facts=("build",),
        packages=("torch", "xformers"),
        fixes=(
            Fix(
                "source-install",
                "torch",
                "=={built}",
                "the CUDA build that xformers was built with, from torch's own index",
                "pip install --force-reinstall torch=={built} --index-url https://download.pytorch.org/whl/cuXYZ",
            ),
        ),
        evidence=("https://github.com/facebookresearch/xformers#installing-xformers",),
    ),
    Symptom(
        "xformers-other-cuda",
        re.compile(
            r"PyTorch (?P<release>[\d.]{3,12})\+(?P<built>\w{3,10})\b[^\n]{0,40}"
            r"\(you have (?P<have>(?P=release)(?:\+\w{2,10})?)\)"
        ),
        "xformers is built for torch {release}+{built}, and {have} is a build for another CUDA",
        "Its kernels are compiled for one release of torch and one CUDA release.",
        explained_by=("build-xformers-cuda",),
        hints=("(you have ",),
        facts=("build",),
        packages=("xformers", "torch"),
        fixes=(
            Fix(
                "source-install",
                "torch",
                "",
                "the torch build for the CUDA release that xformers was built with, from torch's own index",
                "pip install --force-reinstall torch=={release} --index-url https://download.pytorch.org/whl/{built}",
            ),
            Fix(
                "upgrade",
                "torch",
                None,
                "both anew, from the index of one CUDA",
                "pip install -U torch xformers --index-url https://download.pytorch.org/whl/{built}",
            ),
        ),
        evidence=("https://github.com/facebookresearch/xformers#installing-xformers",),
    ),
    Symptom(
        "xformers-other-python",
        re.compile(
            r"PyTorch (?P<built>[\d.]{3,12})(?P<label>\+\w{2,10})? [^\n]{0,40}\(you have (?P=built)(?:(?P=label))?\)"
            r"\s{1,10}Python {1,3}(?P<python>\d\.\d{1,2})\.[\d.]{1,4} \(you have (?!(?P=python)\.)(?P<have>\d\.\d{1,2})"
        ),
        "xformers is built for Python {python}, and Python {have} runs",
        "Its compiled module is for one release of Python, unless its name has 'abi3'; torch is the one it was built for.",
        hints=("(you have ",),
        facts=("python", "build"),
        packages=("xformers",),
        fixes=(
            Fix("source-install", "xformers", "", "a wheel of it for Python {have}, or build it on this machine"),
            Fix("config", text="use Python {python}", command="uv venv --python {python}"),
        ),
        evidence=("https://github.com/facebookresearch/xformers#installing-xformers",),
    ),
    Symptom(
        "xformers-other-torch",
        re.compile(
            r"PyTorch (?P<built>[\d.]{3,12})(?P<label>\+\w{2,10})?\b[^\n]{0,40}"
            r"\(you have (?P<have>[\d.]{3,12}(?:\+\w{2,10})?)\)"
        ),
        "xformers is built for torch {built}{label}, and {have} is installed",
        "Its kernels are compiled for one release of torch and one CUDA release.",
        explained_by=("build-xformers", "requires-xformers"),
        hints=("(you have ",),
        facts=("build",),
        packages=("xformers", "torch"),
        fixes=(
            Fix("pin", "torch", "=={built}", "the torch this xformers was built with", "pip install torch=={built}"),
            Fix("pin", "xformers", None, "the xformers that is built for torch {have}, from the index of the same CUDA", None),
        ),
        evidence=("https://github.com/facebookresearch/xformers#installing-xformers",),
    ),
    Symptom(
        "xformers-build",
        re.compile(
            r"xFormers can't load C\+\+/CUDA extensions|xFormers wasn't build with CUDA support"
            r"|No operator found for `memory_efficient_attention"
        ),
        "The xformers that is installed has no kernels for this torch and GPU",
        "Its kernels are compiled for one release and one CUDA of torch; a wheel for another torch, or one from the "
        "default index for another CUDA, does not load them. 'python -m xformers.info' says what it was built for.",
        hints=("xFormers can't", "wasn't build with", "No operator found"),
        explained_by=("build-xformers", "build-torch-cpu-only", "requires-xformers"),
        facts=("build",),
        packages=("xformers", "torch"),
        fixes=(
            Fix("upgrade", "torch", None, "the torch this xformers was built with", None),
            Fix("source-install", "torch", "", "the torch build for the CUDA release that xformers was built with"),
        ),
        evidence=("https://github.com/facebookresearch/xformers#installing-xformers",),
    ),
    Symptom(
        "flashinfer-cubin",
        re.compile(r"flashinfer-cubin version \([^)]*\) does not match flashinfer version"),
        "flashinfer-cubin and flashinfer-python are different releases",
        "The compiled kernels only match one release of the package.",
        explained_by=("build-flashinfer-cubin",),
        hints=("flashinfer-cubin version",),
        packages=("flashinfer-python", "flashinfer-cubin"),
        fixes=(
            Fix("pin", "flashinfer-cubin", None, "install the same release of both", None),
            Fix(kind="env-var", text="skip the version check", command="export FLASHINFER_DISABLE_VERSION_CHECK=1"),
        ),
        evidence=("https://github.com/flashinfer-ai/flashinfer",),
    ),
    Symptom(
        "illegal-instruction",
        re.compile(r"Illegal instruction|SIGILL"),
        "A compiled package uses instructions that this processor does not support",
        "Its wheel was compiled for newer processors (AVX, AVX2, AVX-512), or a virtual machine hides them.",
        hints=("Illegal instruction", "SIGILL"),
        facts=("machine", "build"),
        kernels=True,
        fixes=(
            Fix("source-install", "{package}", "", "build the package in the last frames on this machine"),
            Fix("config", text="pass the host's CPU features through to the virtual machine"),
        ),
        evidence=(_FAULTHANDLER,),
    ),
    Symptom(
        "native-crash",
        re.compile(
            r"Fatal Python error: (?P<what>Segmentation fault|Aborted|Bus error)|Segfault encountered|Segmentation fault"
            r"|(?:free|malloc|realloc|munmap_chunk)\(\): \w|double free or corruption|corrupted (?:size|double-linked list)"
        ),
        "A compiled package crashed the process",
        "Often two packages include the same library, or one was compiled for another release of a library that is already "
        "loaded. faulthandler's frames show what was imported last.",
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
            Fix("config", text="show where Python crashes", command="python -X faulthandler <program>"),
            Fix("pin", None, None, "reinstall torch and that package, for the same torch and CUDA"),
        ),
        evidence=(_FAULTHANDLER,),
    ),
    Symptom(
        "bitsandbytes-no-library",
        re.compile(
            r"'NoneType' object has no attribute '(?P<function>c(?:quantize|dequantize|adam|lion|ademamix|get_managed|prefetch|"
            r"gemm|igemm|extract|percentile|histogram|momentum|rmsprop|lars|lamb|fill|arange|elementwise)\w{0,60})'"
        ),
        "bitsandbytes has not loaded its compiled library ({function} is a function of it)",
        "An import error of the library was logged before this error. Usually the wheel has no library for the CUDA release of "
        "the installed torch, torch is a CPU-only build, or libcudart is not found.",
        hints=("'NoneType' object has no attribute 'c",),
        explained_by=("build-bitsandbytes", "build-torch-cpu-only"),
        facts=("build", "cuda_toolkit", "variables"),
        packages=("bitsandbytes",),
        fixes=(
            Fix(
                "upgrade", "bitsandbytes", None, "its wheel has libraries for more CUDA releases", "pip install -U bitsandbytes"
            ),
            Fix("config", text="show which library is missing", command="python -m bitsandbytes"),
            Fix("pin", "torch", None, "a build of torch with CUDA, if it is a CPU-only build"),
        ),
        evidence=("https://huggingface.co/docs/bitsandbytes/main/en/installation",),
    ),
    Symptom(
        "operators-not-loaded",
        re.compile(
            r"'_OpNamespace' '(?P<space>\w{1,40})' object has no attribute '(?P<operator>\w{1,80})'"
            r"|\b[Oo]perator (?P<space_2>\w{1,40})::(?P<operator_2>\w{1,80}) does not exist"
        ),
        "The compiled operators torch.ops.{space} are not loaded, or are of another release ({operator})",
        "A package registers them when its compiled module is imported. That import failed before (its warning stands above), "
        "or the module was built from another release than the Python code.",
        hints=("'_OpNamespace'", "perator "),
        explained_by=("build-", "requires-torch"),
        facts=("build", "install"),
        else_packages=("torch",),
        fixes=(
            Fix(
                "config",
                text="import the compiled module alone, to see why it does not load (for vLLM: python -c 'import vllm._C')",
            ),
            Fix("pin", None, None, "reinstall the package, built for the installed torch"),
        ),
        evidence=("https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html",),
    ),
)
