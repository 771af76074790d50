"""Missing shared libraries and undefined symbols: which distribution ships them, and for which CUDA version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compat.checks.fix_commands import by_pip, upgrade_to
from compat.checks.torch_build import INDEX, label_of, major_version, stack_of
from compat.diagnosis.devices import cuda_wheel
from compat.diagnosis.frame_packages import distribution_in, inferred, is_before, version_of
from compat.diagnosis.loader import (
    COME_WITH_TORCH,
    CUDA_11_TO_13,
    CUDAS,
    EXTENSIONS,
    LOADER,
    OF_SYSTEM,
    OTHER_NUMBERS,
    ROCM,
    TORCH,
    WHEELS,
    has_strings,
    importing,
    of_numpy_1,
    of_torch,
    of_unknown_extension,
    only_extension,
    packages_in,
    requires_this_torch,
    without_reason,
)
from compat.model import Finding, Fix
from compat.records import replace
from compat.rules.facts import Facts
from compat.tables.builds import open_code_tables
from compat.tables.linked import open_linked
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError


_MANYLINUX = "https://peps.python.org/pep-0600/"

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
_VERSION = re.compile(r",? version lib\w{1,40}\.so\.(\d\d)(?!\d)")
"""What the loader adds for a symbol of a library that versions its symbols."""
_SYMBOL = re.compile(r"(?:(?<![\w./+-])(?P<path>[\w./+-]{1,400}): )?undefined symbol:?\s{1,20}(?P<symbol>\w{1,400})")
_LINKED = re.compile(
    r"(?:(?<![\w./+-])(?P<path>[\w./+-]{1,400}): )?symbol\s{1,20}(?P<symbol>\w{1,400}),?(?: version \S{1,80})?"
    r"(?: not defined in (?:file )?| version )lib(?P<name>[A-Za-z]{1,30})\.so\.(?P<release>\d{1,3})"
)
"""A versioned symbol that the library found at run time lacks: it is an older one than that of the build."""
_TORCHS = re.compile(r"_ZNK?(?:R?K?)\d{1,3}(?:c10|at|torch|caffe2)|_ZT[VISH]N?\d{1,3}(?:c10|at|torch|caffe2)|torch_|aoti_torch")
_TENSORS = re.compile(r"^_Z\d{1,3}\w+?N2at6Tensor")
"""A free function that takes tensors: a kernel that an extension defines itself."""
_SPACE = re.compile(r"_ZNK?(?P<length>\d{1,2})(?P<name>\w+)")
"""The outermost namespace of a C++ function."""
_DRIVERS = re.compile(r"cu[A-Z]\w+$")
"""Functions of the driver API, which libcuda.so.1 defines."""
_GLIBC = re.compile(
    r"version [`'](?P<what>GLIBC|GLIBCXX|CXXABI)_(?P<least>[\d.]{1,12})' not found(?: \(required by (?P<by>[^()\n]{1,400})\))?"
)


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


def _symbol(message: str, where: str, error: RaisedError | None, facts: Facts) -> Finding | None:
    match = _SYMBOL.search(message)
    if match is None:
        return None
    symbol = match["symbol"]
    path = match["path"] if any(ending in (match["path"] or "") for ending in (".so", ".pyd")) else ""
    library = path.rpartition("/")[2]
    names = packages_in(path) or distribution_in(path)
    if _TORCHS.match(symbol):
        names = names or importing(error)
        if not names and not library:
            names = only_extension(facts)
            if not names or requires_this_torch(names[0], facts):  # built for it, so one that is not listed is meant
                return of_unknown_extension(symbol, where, facts)
        return of_torch(names[0], f"{where}, {library}" if library else where, facts, symbol) if names else None
    if not library:
        named = [name for name in packages_in(message[: match.start()]) if name in EXTENSIONS.values()]
        spelled = named and not symbol.startswith("_")  # by a person, who leaves out the mangling
        return of_torch(named[0], where, facts, symbol) if spelled else None
    if _DRIVERS.match(symbol):
        return _old_driver(symbol, library, names, where, facts)
    owner = next((wheel for start, wheel in CUDAS if symbol.startswith(start)), None)
    if owner is None:
        space = _SPACE.match(symbol)
        module = space["name"][: int(space["length"])] if space is not None else ""
        own = names and (_TENSORS.search(symbol) or EXTENSIONS.get(module) == names[0])
        return _own_function(names[0], symbol, f"{where}, {library}", facts) if own else None
    asked = (
        re.search(r"_(\d\d)_\d{1,2}$", symbol)
        or re.search(r"\.so\.(\d\d)(?!\d)", library)
        or _VERSION.match(message, match.end())
    )
    wheel = WHEELS[owner] + CUDA_11_TO_13[asked[1]] if asked and asked[1] in CUDA_11_TO_13 else cuda_wheel(WHEELS[owner], facts)
    return _cuda_mixed(wheel, library, where, facts, names)


def _linked(message: str, where: str, error: RaisedError | None, facts: Facts) -> Finding | None:
    match = _LINKED.search(message)
    if match is None or match["name"] not in WHEELS:
        return None
    ending = OTHER_NUMBERS.get(match["name"], CUDA_11_TO_13).get(match["release"])
    owner = WHEELS[match["name"]]
    wheel = cuda_wheel(owner, facts) if ending is None else f"{owner}{ending}"
    path = match["path"] or ""
    return _cuda_mixed(wheel, path.rpartition("/")[2] or "a library", where, facts, packages_in(path) or importing(error))


def _old_driver(symbol: str, library: str, names: Sequence[str], where: str, facts: Facts) -> Finding:
    name = names[0] if names else None
    return inferred(
        rule="symptom-driver-too-old",
        origin="build",
        title=f"The NVIDIA driver has no {symbol}, which {name or library} calls",
        why="libcuda.so.1 belongs to the driver. A library built with a newer CUDA release calls functions that older drivers "
        "lack; a compatibility library or a stub on the path has the same effect.",
        packages={name: version_of(name, facts)} if name else {},
        facts=("driver", "cuda_toolkit", "variables"),
        fixes=(
            Fix("driver", text="install a newer driver on the machine (the host, not the container)"),
            Fix("env-var", text="let the loader find the driver's own libcuda.so.1", command="unset LD_LIBRARY_PATH"),
            *((Fix("downgrade", name, None, "a release built with an older CUDA release"),) if name else ()),
        ),
        evidence=("https://docs.nvidia.com/deploy/cuda-compatibility/",),
        here=where,
    )


def _own_function(name: str, symbol: str, where: str, facts: Facts) -> Finding:
    """Return the finding for a function of the extension itself that it does not find: not built, or with another ABI."""
    function = re.match(r"_Z\d{1,3}(\w+?)(?:RK?N|N2at)", symbol)
    title = f"{name} was built without a kernel of its own that it calls" + (f": {function[1]}" if function is not None else "")
    why = (
        "The missing symbol is a function of the extension itself, not of torch. Its source was left out of the build, "
        "usually because the CUDA toolkit or the list of architectures did not cover it, or files of two builds are mixed."
    )
    if has_strings(symbol):
        title = f"The parts of {name} were built with different C++ ABIs"
        why = (
            f"The missing symbol is a function of {name} itself that takes a string, whose type in C++ depends on the ABI. One "
            "part was compiled for the torch that is installed, the other one was published for another ABI: torch's wheels "
            "use the C++11 ABI since 2.7, and NVIDIA's images always."
        )
    return inferred(
        rule="symptom-own-symbol",
        origin="build",
        title=title,
        why=why,
        packages={name: version_of(name, facts)},
        facts=("build", "cuda_toolkit", "accelerators"),
        fixes=(
            Fix("pin", name, None, "install a published wheel instead of building", f"pip install --force-reinstall {name}"),
            Fix("source-install", name, "", "build it again from a clean checkout, for all architectures that it is made for"),
        ),
        evidence=(LOADER,),
        here=where,
    )


def _cuda_mixed(wheel: str, library: str, where: str, facts: Facts, names: Sequence[str] = ()) -> Finding:
    return inferred(
        rule="symptom-nvjitlink",
        origin="build",
        title=f"CUDA libraries of two releases are mixed: {wheel} is older than {library} requires",
        why="The loader found a library of an older CUDA release first: in LD_LIBRARY_PATH, in the conda environment, or in a "
        "second nvidia package.",
        packages={each: version_of(each, facts) for each in dict.fromkeys((*(names or ("torch",)), wheel))},
        facts=("variables", "build"),
        fixes=(
            Fix(
                "env-var",
                text="torch's wheels include their own CUDA libraries: remove other folders from the path",
                command="unset LD_LIBRARY_PATH",
            ),
            Fix("pin", wheel, None, "the release that torch pins", "pip install --force-reinstall torch"),
            *((by_pip("upgrade", wheel, None, f"if torch's is older than what {names[0]} was built with"),) if names else ()),
        ),
        evidence=(LOADER,),
        here=where,
    )


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


def _system(message: str, where: str, error: RaisedError | None, facts: Facts) -> Finding | None:
    match = _GLIBC.search(message)
    if match is None:
        return None
    by = match["by"] or ""
    names = packages_in(by) or packages_in(message[: match.start()][-400:]) or importing(error)
    names = names or _only_listed(match["what"], match["least"], facts)
    shown = f"{names[0]} needs" if names else "A wheel needs"
    older = tuple(_older_wheel(names, match["what"], match["least"], facts))
    if match["what"] == "GLIBC":
        return inferred(
            rule="symptom-glibc",
            origin="build",
            title=f"{shown} glibc {match['least']}, but this system has an older one",
            why="Its binaries were built on a newer Linux distribution; pip cannot upgrade glibc.",
            packages={name: version_of(name, facts) for name in names[:1]},
            facts=("glibc",),
            fixes=(
                *older,
                Fix(
                    "source-install",
                    names[0] if names else None,
                    "",
                    "build the package on this system, or use a release whose wheel supports older systems",
                ),
                Fix(
                    "config",
                    text=f"use a system with glibc {match['least']} or newer ({_SYSTEMS.get(match['least'], 'a newer image')})",
                ),
            ),
            evidence=(_MANYLINUX,),
            here=where,
        )
    compiler = _COMPILERS.get(f"{match['what']}_{match['least']}")
    return inferred(
        rule="symptom-glibcxx",
        origin="build",
        title=f"{shown} {match['what']}_{match['least']}, but an older libstdc++ is found first",
        why="The loader finds conda's or the system's libstdc++ before a newer one."
        + (f" That version comes with {compiler}." if compiler else ""),
        packages={name: version_of(name, facts) for name in names[:1]},
        facts=("variables", "glibc"),
        fixes=(
            *older,
            Fix("env-var", text="put the newer libstdc++ first", command="export LD_PRELOAD=$CONDA_PREFIX/lib/libstdc++.so.6"),
            Fix("config", text="install a newer one", command="conda install -c conda-forge libstdcxx-ng"),
        ),
        evidence=(LOADER,),
        here=where,
    )


def _only_listed(what: str, least: str, facts: Facts) -> list[str]:
    """Return the installed extension whose wheel asks for this version of a C library, if only one does."""
    table = open_linked()
    asking = [
        name
        for name in dict.fromkeys(EXTENSIONS.values())
        if isinstance(facts.package(name), list)
        and any(row.version == version_of(name, facts) and row.least(what) == least for row in table.of(name))
    ]
    return asking if len(asking) == 1 else []


def _older_wheel(names: Sequence[str], what: str, least: str, facts: Facts) -> Iterator[Fix]:
    """Yield the nearest release whose wheel asks for less, if that of the installed one is known to ask for this version."""
    rows = open_linked().of(names[0]) if names else ()
    here = [each.variant for each in rows if each.version == version_of(names[0], facts) and each.least(what) == least]
    fitting = [each.version for each in rows if each.variant in here and key_of(each.least(what) or "0") < key_of(least)]
    if fitting:
        command = f'pip install "{names[0]}=={fitting[-1]}"'
        yield Fix(
            "pin", names[0], f"=={fitting[-1]}", f"the newest release whose wheel needs less than {what}_{least}", command
        )


_COMPILERS = {
    "GLIBCXX_3.4.26": "GCC 9", "GLIBCXX_3.4.27": "GCC 9", "GLIBCXX_3.4.28": "GCC 9 and 10 (Ubuntu 20.04)",
    "GLIBCXX_3.4.29": "GCC 11 (RHEL 9)", "GLIBCXX_3.4.30": "GCC 12 (Ubuntu 22.04, Debian 12)", "GLIBCXX_3.4.31": "GCC 13.1",
    "GLIBCXX_3.4.32": "GCC 13.2 (Ubuntu 24.04)", "GLIBCXX_3.4.33": "GCC 14 (Ubuntu 24.04, Debian 13)",
    "CXXABI_1.3.12": "GCC 10", "CXXABI_1.3.13": "GCC 11 (RHEL 9)", "CXXABI_1.3.14": "GCC 13 (Ubuntu 24.04)",
    "CXXABI_1.3.15": "GCC 14 (Ubuntu 24.04, Debian 13)",
}  # fmt: skip
"""Version of the C++ library → the compiler that first ships it, and systems that have it."""

_SYSTEMS = {
    "2.27": "Ubuntu 18.04", "2.28": "Debian 10, RHEL 8", "2.29": "Ubuntu 20.04", "2.31": "Ubuntu 20.04, Debian 11",
    "2.32": "Ubuntu 22.04, Debian 12",
    "2.33": "Ubuntu 22.04, Debian 12", "2.34": "Ubuntu 22.04, RHEL 9", "2.35": "Ubuntu 22.04, Debian 12",
    "2.36": "Ubuntu 24.04, Debian 12",
    "2.38": "Ubuntu 24.04, Debian 13", "2.39": "Ubuntu 24.04, Debian 13",
}  # fmt: skip
"""glibc version → systems that ship it or a newer one."""


_READERS = (
    ("undefined symbol", _symbol),
    (" not def", _linked),
    ("cannot open shared object", _library),
    ("Could not load library ", _library),
    ("Could not locate ", _library),
    ("Unable to load any of ", _library),
    ("' not found", _system),
    (" not found", _library),
    (" missing", _library),
    (" be ", _library),
    ("-packages", without_reason),
    ("", of_numpy_1),
)
"""Part of a loader's message → the reader of that message."""
