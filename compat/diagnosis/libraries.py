"""Missing shared libraries: which distribution ships them, and for which CUDA version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compat.checks.fix_commands import by_pip, upgrade_to
from compat.checks.torch_build import INDEX, label_of, major_version, stack_of
from compat.diagnosis.c_library import of_c_library
from compat.diagnosis.devices import cuda_wheel
from compat.diagnosis.frame_packages import inferred, is_before, version_of
from compat.diagnosis.loader import (
    COME_WITH_TORCH,
    CUDA_11_TO_13,
    LOADER,
    OF_SYSTEM,
    OTHER_NUMBERS,
    ROCM,
    TORCH,
    WHEELS,
    importing,
    of_numpy_1,
    of_torch,
    only_extension,
    packages_in,
    without_reason,
)
from compat.diagnosis.symbols import of_older_cuda_library, undefined_symbol
from compat.model import Finding, Fix
from compat.records import replace
from compat.rules.facts import Facts
from compat.tables.builds import open_code_tables
from compat.tables.linked import open_linked

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError


_CUT = re.compile(r"^((?:ImportError|OSError): lib[\w+-]{1,60}\.so(?:\.\d{1,4}){0,4}):?(?: c[\w ]{0,30})?$")
"""The loader's message without its end: a library alone is the name of one that is missing."""
_MISSING = re.compile(
    r"(?<![\w.+-])lib(?P<name>[\w+-]{1,60}(?:-\d\.\d)?)\.so(?:\.(?P<release>\d{1,4}))?[\d.]{0,20}: cannot open shared "
    r"object file"
)
_OF_CUDA = (
    r"(?:lib)?(?P<name>cu(?:blasLt|blas|dnn|dart|fft|rand|solver|sparse)|nvrtc|nvJitLink)"
    r"(?: ?\w{1,20}?)?(?:\.so\.|64_)(?P<release>\d{1,3})"
)
"""On Windows the name ends in ``64_12.dll``, ``64_120_0.dll`` or ``64_9.dll``; a page may take an underscore for markup."""
_NOT_LOADED = re.compile(rf"(?:Could not (?:load library|locate)|Unable to load any of \{{|Library) ?{_OF_CUDA}")
"""A library that a program opens itself."""
_NOT_THERE = re.compile(
    rf"(?<![\w.-]){_OF_CUDA}[\w.]{{0,20}}['\"`]{{0,3}} (?:=> |is |was )?"
    r"(?:not found|missing|(?:could not|cannot|can't) be (?:found|located|loaded|opened))"
)
"""The same in the words of a tool that lists libraries, of Windows, or of a person."""


def explain_loader_message(
    message: str, where: str, error: RaisedError | None, facts: Facts, derived: Sequence[Finding]
) -> list[Finding]:
    """Explain a loader's message: a missing library, an undefined symbol, or a C library that is too old."""
    message = _CUT.sub(r"\1: cannot open shared object file", message)
    for hint, read in _READERS:
        if hint in message and (found := read(message, where, error, facts)) is not None:
            of_builds = (f"build-{name}-cuda" for name in found.packages) if found.rule == _NO_CUDA else ()
            by = (found.rule, *_EXPLAINED_BY.get(found.rule, ()), *of_builds)
            explaining = [each for each in derived if each.rule.startswith(by)]
            return [replace(each, here=f"{where}, {each.here}") for each in explaining] or [found]
    return []


_NO_CUDA = "symptom-cuda-library-missing"
_EXPLAINED_BY = {
    _NO_CUDA: ("build-vllm-cuda", "build-xformers-cuda"),
    "symptom-nvjitlink": ("build-library-path", "overwritten-nvidia"),
    "symptom-glibc": ("glibc-",),
}
"""Findings about the environment that replace the explanation of the message alone, by rule."""


def _library(message: str, where: str, error: RaisedError | None, facts: Facts) -> Finding | None:
    match = _MISSING.search(message) or _NOT_LOADED.search(message) or _NOT_THERE.search(message)
    if match is None:
        return None
    name, release = match["name"], match["release"] or ""
    about = packages_in(message[max(0, match.start() - 400) : match.end() + 200]) or importing(error)
    if name in ROCM:
        return _rocm_library(name, release, about, where, facts)
    plain = "cudnn" if name.startswith("cudnn") else name
    if plain in WHEELS:
        about = about or only_extension(facts, COME_WITH_TORCH)
    if match.re is not _MISSING:
        release = release[:2]  # cudart64_110.dll, nvrtc64_120_0.dll
    if plain in WHEELS:
        return _cuda_library(plain, release, about, where, facts)
    if name.startswith(("nvinfer", "nvonnxparser")):
        return _tensorrt(name, release, about, where, facts)
    if name.startswith(("torch", "c10")):
        names = [each for each in about if each != "torch"]
        if names and not name.endswith("_cuda"):
            return of_torch(names[0], where, facts)
        return _no_cuda_in_torch(name, names, where, facts) if name.endswith("_cuda") else None
    if name not in OF_SYSTEM:
        return None
    likely, package = OF_SYSTEM[name]
    asking = next(iter(about), likely if version_of(likely, facts) is not None else None)
    fixes = [Fix("config", text=f"install the library (Debian, Ubuntu: {package})", command=f"apt-get install -y {package}")]
    if package in ("libgl1", "libglib2.0-0"):
        asking = "opencv-python"
        text = "the build that does not need a display"
        fixes.append(
            Fix(
                "pin",
                "opencv-python-headless",
                None,
                text,
                "pip uninstall -y opencv-python && pip install opencv-python-headless",
            )
        )
    return inferred(
        rule="symptom-system-library",
        origin="build",
        title=f"lib{name}.so, which {asking or 'an extension'} needs, is not installed",
        why="It is a system library that wheels do not include; slim images leave it out.",
        packages={asking: version_of(asking, facts)} if asking else {},
        facts=("platform",),
        fixes=tuple(fixes),
        evidence=(LOADER,),
        here=where,
    )


def _rocm_library(name: str, release: str, about: Sequence[str], where: str, facts: Facts) -> Finding:
    asking = next((each for each in about if each != "torch"), None)
    rocm = f"ROCm {release}" if name == "amdhip64" and release else "another release of ROCm"
    return inferred(
        rule="symptom-rocm-library",
        origin="build",
        title=f"{asking or 'A package'} is compiled for {rocm}, but the libraries of that release are not installed",
        why=f"It is linked to lib{name}.so{'.' * bool(release)}{release}. The numbers of ROCm's libraries change with its "
        "major releases; the wheels of torch from its own index bring theirs, others use the libraries in /opt/rocm.",
        packages={each: version_of(each, facts) for each in dict.fromkeys((*about, "torch"))},
        facts=("build", "variables"),
        fixes=(
            Fix("source-install", asking or "torch", "", "a build for the installed ROCm, or build it on this machine"),
            *((Fix("source-install", "torch", "", f"a build of torch for {rocm}"),) if asking else ()),
            Fix("env-var", text="let the loader find the libraries", command="export LD_LIBRARY_PATH=/opt/rocm/lib"),
        ),
        evidence=("https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/3rd-party/pytorch-install.html",),
        here=where,
    )


def _tensorrt(name: str, release: str, about: Sequence[str], where: str, facts: Facts) -> Finding:
    asking, spec = next(iter(about), None), f"=={release}.*" if release else None
    return inferred(
        rule="symptom-tensorrt-library",
        origin="build",
        title=f"{asking or 'A package'} is compiled for TensorRT {release}, whose libraries are not found".replace("  ", " "),
        why=f"lib{name}.so{'.' * bool(release)}{release} comes with TensorRT; the number is its major release. NVIDIA's "
        "containers have it, and the distribution tensorrt installs it.",
        packages={each: version_of(each, facts) for each in dict.fromkeys((*about, "tensorrt"))},
        facts=("install", "variables"),
        fixes=(
            Fix("pin", "tensorrt", spec, "the release that provides the library", f'pip install "tensorrt{spec or ""}"'),
            Fix("env-var", text="let the loader find the libraries of the wheel: the folder tensorrt_libs in site-packages"),
            Fix("config", text="start from NVIDIA's container for the release"),
        ),
        evidence=("https://docs.nvidia.com/deeplearning/tensorrt/latest/installing-tensorrt/installing.html",),
        here=where,
    )


def _no_cuda_in_torch(library: str, names: Sequence[str], where: str, facts: Facts) -> Finding:
    """Only builds of torch with CUDA have these libraries, so the extension was compiled for one of them."""
    name = names[0] if names else None
    return inferred(
        rule="symptom-cpu-only-torch",
        origin="build",
        title=f"{name or 'An extension'} is compiled for a torch with CUDA, but this torch has no lib{library}.so",
        why="The installed torch is a CPU-only build, or not the one the extension was compiled for.",
        packages={each: version_of(each, facts) for each in (*names[:1], "torch")},
        facts=("build", "install"),
        fixes=(
            Fix(
                "pin", "torch", None, "a build of the same release with CUDA (see the selector on pytorch.org for the index)",
                "uv pip install --reinstall torch --torch-backend=auto",
            ),
            *((by_pip("upgrade", name, None, "a release for this torch"),) if name else ()),
        ),
        evidence=(TORCH,),
        here=where,
    )  # fmt: skip


def _cuda_library(name: str, release: str, about: Sequence[str], where: str, facts: Facts) -> Finding:
    ending = OTHER_NUMBERS.get(name, CUDA_11_TO_13).get(release)
    of_cuda = {"-cu11": "11", "-cu12": "12", "": "13"}.get(ending) if ending is not None else None
    wheel = cuda_wheel(WHEELS[name], facts) if ending is None else f"{WHEELS[name]}{ending}"
    spec = f"=={release}.*" if name == "cudnn" and release else None
    asking = about[0] if about else None
    library = f"lib{name}.so.{release}".rstrip(".")
    cudnn = f"cuDNN {release}" if name == "cudnn" and release else None
    return inferred(
        rule=_NO_CUDA,
        origin="build",
        title=f"{asking or 'A package'} is linked to {f'CUDA {of_cuda}' if of_cuda else cudnn or library}, but those "
        "libraries are not installed",
        why=f"Its wheel was built for another major release of {'cuDNN' if cudnn else 'CUDA'} than the one that is installed. "
        f"{wheel} ships {library}.",
        packages={each: version_of(each, facts) for each in dict.fromkeys((*about, wheel))},
        facts=("build",),
        fixes=(
            *(_for_cudnn(asking, release) if name == "cudnn" else ()),
            *(_for_cuda_of_torch(asking, of_cuda, facts) if asking else ()),
            Fix("source-install", asking, "", "install builds of both for the same CUDA release"),
            Fix("pin", wheel, spec, "the wheel that has the library", f'pip install "{wheel}{spec or ""}"'),
        ),
        evidence=(LOADER,),
        here=where,
    )


def _for_cudnn(asking: str | None, release: str) -> Iterator[Fix]:
    """Yield the releases of torch that come with this cuDNN (9 since 2.4), and those of the package that use the other one."""
    if release not in ("8", "9"):
        return
    older = release == "8"
    spec = "<2.4" if older else ">=2.4"
    yield by_pip("downgrade" if older else "upgrade", "torch", spec, f"it comes with cuDNN {release}")
    if asking:
        other = "9" if older else "8"
        yield Fix("upgrade" if older else "downgrade", asking, None, f"a release that is built for cuDNN {other}")


def _for_cuda_of_torch(name: str, built: str | None, facts: Facts) -> Iterator[Fix]:
    """Yield the newest release whose published wheel is linked against the CUDA that torch, or else the toolkit, has.

    Where neither is known, it is the first release for a later CUDA than that of the missing library, unless the installed one
    is older than all whose CUDA is known: then torch may as well be for an earlier CUDA.
    """
    stack = stack_of(facts, open_code_tables())
    cuda = stack.flavour.numbered or (facts.environment.cuda_toolkit if stack.torch is None else None)
    rows = open_linked().of(name)
    if cuda and name in COME_WITH_TORCH:
        index = f"pip install --force-reinstall --no-deps {name} --index-url {INDEX}/{label_of(cuda)}"
        yield Fix("source-install", name, "", f"its build for CUDA {cuda}, from torch's index", index)
    if cuda:
        fitting = [each.version for each in rows if each.cuda() == str(major_version(cuda))]
        if fitting and version_of(name, facts) not in fitting:
            command = f'pip install "{name}=={fitting[-1]}"'
            yield Fix("pin", name, f"=={fitting[-1]}", f"the newest release for CUDA {major_version(cuda)}", command)
        return
    version = version_of(name, facts)
    if rows and is_before(version, rows[0].version):
        text = f"a build for the CUDA of {name} {version}" + (f", which is {built}" if built else "")
        yield Fix("source-install", "torch", "", text, f"pip install torch --index-url {INDEX}/cuXYZ")
        return
    later = [(each.version, newer) for each in rows if built and (newer := each.cuda()) and int(newer) > int(built)]
    if later:
        yield upgrade_to(name, later[0][0], f"the first release for CUDA {later[0][1]}")


_READERS = (
    ("undefined symbol", undefined_symbol),
    (" not def", of_older_cuda_library),
    ("cannot open shared object", _library),
    ("Could not load library ", _library),
    ("Could not locate ", _library),
    ("Unable to load any of ", _library),
    ("' not found", of_c_library),
    (" not found", _library),
    (" missing", _library),
    (" be ", _library),
    ("-packages", without_reason),
    ("", of_numpy_1),
)
"""Part of a loader's message → the reader of that message."""
