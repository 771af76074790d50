"""Undefined symbols: whether torch, a CUDA library, the driver or the extension itself lacks them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.checks.fix_commands import by_pip
from compat.diagnosis.devices import cuda_wheel
from compat.diagnosis.frame_packages import distribution_in, inferred, version_of
from compat.diagnosis.loader import (
    CUDA_11_TO_13,
    CUDAS,
    EXTENSIONS,
    LOADER,
    OTHER_NUMBERS,
    WHEELS,
    has_strings,
    importing,
    of_torch,
    of_unknown_extension,
    only_extension,
    packages_in,
    requires_this_torch,
)
from compat.model import Finding, Fix
from compat.rules.facts import Facts

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError


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


def undefined_symbol(message: str, where: str, error: RaisedError | None, facts: Facts) -> Finding | None:
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


def of_older_cuda_library(message: str, where: str, error: RaisedError | None, facts: Facts) -> Finding | None:
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
