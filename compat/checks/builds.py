"""Findings about compiled code: compatibility of wheels with the GPU, the driver, the system and each other."""

from __future__ import annotations

from compat.checks.fix_commands import by_pip, compiled_anew, upgrade_to
from compat.checks.torch_build import (
    INDEX,
    Flavour,
    Stack,
    flavour_of,
    for_another_torch,
    has_cxx11_abi,
    is_of_unnamed_index,
    label_of,
    major_version,
    own_build,
    public_version,
    stack_of,
    version_tuple,
    wheel_has_cxx11_abi,
)
from compat.model import Distribution, Finding, Fix
from compat.records import replace
from compat.rules.facts import version_of_wheel
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.rules.facts import Facts
    from compat.tables.linked import LinkedTable


NAMES = frozenset((
    "torch", "torchvision", "torchaudio", "pytorch-cuda", "triton", "vllm", "xformers", "bitsandbytes", "flash-attn",
    "sgl-kernel", "sglang-kernel", "onnxruntime-gpu", "flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache",
    "auto-gptq", "autoawq", "lmdeploy",
))  # fmt: skip
"""Distributions whose builds are checked here, and the conda package that states torch's CUDA."""


def judge(facts: Facts) -> Iterator[Finding]:
    """Yield every finding about builds; the tables are opened only if there is something to check."""
    environment = facts.environment
    if isinstance(facts.package("numpy"), list):
        from compat.checks.loading import compiled_against_numpy_1

        yield from compiled_against_numpy_1(facts)
    there = any(each.name in NAMES for each in environment.distributions or ())
    if not there and not (environment.driver and environment.cuda_toolkit) and not environment.accelerators:
        return
    from compat.checks import drivers, loading
    from compat.tables.builds import open_code_tables
    from compat.tables.linked import open_linked

    stack = stack_of(facts, open_code_tables())
    if environment.accelerators or stack.flavour.cuda == "cpu":
        from compat.checks import gpu_code, images

        yield from gpu_code.judge(stack)
        yield from images.judge(stack)
    if any("compiler" in copy.extra for copy in environment.distributions or ()):
        from compat.checks import images

        yield from images.compiler(stack)
    if any(copy.source is not None and copy.source.kind == "image" for copy in environment.distributions or ()):
        from compat.checks import replaced_torch

        yield from replaced_torch.judge(stack)
    yield from drivers.judge(stack)
    yield from _bitsandbytes(stack)
    yield from _flashinfer(stack)
    linked = open_linked()
    compiled = (
        () if stack.torch is None else (*_tagged(stack), *_unpublished(stack), *_family(stack), *_xformers(stack, linked))
    )
    yield from compiled
    yield from loading.judge(stack, linked, frozenset(finding.rule for finding in compiled))


def _tagged(stack: Stack) -> Iterator[Finding]:
    """Wheels whose local version names the torch they were built for, such as flash-attn: ``+cu12torch2.6cxx11abiFALSE``."""
    for each in stack.facts.environment.distributions or ():
        label = _label(each)
        built = _torch_in(label) if label else ""
        copy = stack.one(each.name) if built else None
        if copy is None or stack.release is None:
            continue
        if version_tuple(built) == version_tuple(stack.release):
            yield from _of_other_abi(stack, copy, label)
            continue
        finding = for_another_torch(stack, copy, built, f"{copy.name} {copy.version} is built for torch {built}")
        # real projects combine these wheels with other torch releases, so it may not always fail
        stable = min(version_tuple(built), version_tuple(stack.release)) >= (2, 10)
        yield replace(finding, severity="warning", confidence="reported") if stable else finding


def _unpublished(stack: Stack) -> Iterator[Finding]:
    """An extension of which no wheel was published for this torch: it was compiled here, or it is a wheel for another one.

    Only where nothing says how it was installed: an installer that reads a file compiles it.
    """
    series = ".".join(map(str, version_tuple(stack.release or "")))
    here = stack.facts.environment.os in (None, "linux")  # for Windows, others publish wheels of their own
    if not here or not series or stack.torch is None or own_build(stack.torch):
        return
    for name, releases in stack.tables.published.items():
        copy = stack.one(name)
        wheels = releases.get(copy.version or "", ()) if copy is not None and copy.source is None else ()
        having = [version for version, known in releases.items() if series in known]
        if copy is None or not wheels or series in wheels or not having:  # of a newer torch than any wheel, all are compiled
            continue
        newer = min((each for each in having if key_of(each) > key_of(copy.version or "0")), key=key_of, default=None)
        yield Finding(
            rule=f"build-{name}-unpublished",
            origin="build",
            severity="warning",
            verdict="possible",
            title=f"No wheel of {name} {copy.version} is for torch {series}: one for another torch does not load",
            why=f"Its wheels are for torch {wheels[0]} to {wheels[-1]}. One that was compiled for the installed torch works; "
            "a wheel for another one, downloaded or from pip's cache, fails at import: undefined symbol.",
            packages={name: copy.version, "torch": stack.torch.version},
            facts=("build",),
            missing=("build",),
            unknown=(f"build.{name}",),
            fixes=(
                *((upgrade_to(name, newer, f"has wheels for torch {series}"),) if newer is not None else ()),
                compiled_anew(name, f"=={copy.version}"),
            ),
            evidence=("https://pytorch.org/docs/stable/cpp_index.html",),
            here=f"{name} {copy.version}, torch {stack.torch.version}",
        )


_ABI = "cxx11abi"
_UNFORCED = "https://github.com/Dao-AILab/flash-attention/issues/1783"


def _of_other_abi(stack: Stack, copy: Distribution, label: str) -> Iterator[Finding]:
    """A wheel for this torch, but with the other C++ ABI than that of torch's own wheels."""
    torch, machine = stack.torch, stack.facts.environment.machine
    forced = {"t": True, "f": False}.get(label.lower().partition(_ABI)[2][:1])
    if forced is None or torch is None or own_build(torch) or machine not in (None, "x86_64"):
        return
    series, version = ".".join(map(str, version_tuple(stack.release or ""))), _version(copy)
    mine = wheel_has_cxx11_abi(copy.name, version, series, forced=forced)
    new = has_cxx11_abi(torch.version or "")
    if new in (None, mine) or (torch.source is not None and torch.source.kind == "conda"):
        return
    certain = bool((torch.version or "").partition("+")[2]) or stack.flavour.certain
    other = wheel_has_cxx11_abi(copy.name, version, series, forced=not forced)
    wheel = [f"the wheel of the same release whose name has {_ABI}{str(not forced).upper()}"] if other == new else []
    yield Finding(
        rule=f"build-{copy.name}-abi",
        origin="build",
        verdict="hit" if certain else "possible",
        missing=() if certain else ("build",),
        title=f"{copy.name} is compiled {'without' if new else 'with'} the C++11 ABI, torch {torch.version} with"
        f"{'' if new else 'out'} it",
        why="The names of functions that take strings differ, so the extension does not load: undefined symbol. torch's wheels "
        "have the C++11 ABI since 2.7, NVIDIA's containers in every release."
        + (
            ""
            if forced == mine
            else f" {_ABI}FALSE only says that it was not forced: these were compiled with torch for CUDA 12.6."
        ),
        packages={copy.name: copy.version, "torch": torch.version},
        facts=("build",),
        fixes=(
            *(Fix("source-install", copy.name, "", text) for text in wheel),
            compiled_anew(copy.name),
        ),
        evidence=("https://pytorch.org/docs/stable/cpp_index.html", *(() if forced == mine else (_UNFORCED,))),
        here=f"{copy.name} {copy.version}, {_ABI}{str(forced).upper()}",
    )


def _version(copy: Distribution) -> str:
    """The release of a wheel, which the address has where nothing else does."""
    source = copy.source
    of_file = version_of_wheel(source.details.get("url"), copy.name) if source is not None and source.kind == "url" else None
    return public_version(copy.version or of_file or "")


def _label(copy: Distribution) -> str:
    """The local label of a wheel: in its version, else in the file's name, since the metadata of some wheels lacks it."""
    source = copy.source
    of_file = version_of_wheel(source.details.get("url"), copy.name) if source is not None and source.kind == "url" else None
    return (copy.version or "").partition("+")[2] or (of_file or "").partition("+")[2]


def _torch_in(label: str) -> str:
    """The torch in a local label: ``cu12torch2.6cxx11abiFALSE``, ``cu128.torch2.8.0``, ``torch260cu126``, ``pt26cu124``."""
    for word in ("torch", "pt"):
        before, found, after = label.partition(word)
        digits = after[
            : next((at for at, each in enumerate(after) if not (each.isdecimal() or each == ".")), len(after))
        ].strip(".")
        if not found or not digits or (word == "pt" and before[-1:].isalpha()):
            continue
        if "." in digits:
            return digits
        minor = digits[1:-1] if word == "torch" and len(digits) > 2 else digits[1:]  # torch260 has the patch release, too
        return f"{digits[0]}.{minor}" if minor else ""
    return ""


def _family(stack: Stack) -> Iterator[Finding]:
    """torchvision or torchaudio built for another CUDA release than torch.

    torchaudio compares the CUDA releases at import and refuses any difference, torchvision only other major releases.
    """
    for name in ("torchvision", "torchaudio"):
        copy, mine = stack.one(name), stack.flavour
        theirs = Flavour(None) if copy is None else _flavour_of_companion(copy, stack)
        if copy is None or mine.cuda is None or theirs.cuda is None or mine.cuda == theirs.cuda:
            continue
        apart = mine.numbered is None or theirs.numbered is None or major_version(mine.cuda) != major_version(theirs.cuda)
        if not apart and name == "torchvision" and "+" not in (copy.version or ""):
            continue  # it loads
        label = label_of(mine.cuda) if mine.numbered else mine.cuda
        wanted = f"{public_version(copy.version or '')}+{label}"
        certain = mine.certain and theirs.certain
        yield Finding(
            rule=f"build-{name}-flavour",
            origin="build",
            verdict="hit" if certain else "possible",
            severity="error" if apart or name == "torchaudio" else "warning",
            title=f"torch and {name} are built for different CUDA releases: {mine.cuda} and {theirs.cuda}",
            why=f"{name} compares them at import, or fails to load its own kernels: couldn't load custom C++ ops.",
            packages={"torch": stack.torch.version if stack.torch else None, name: copy.version},
            facts=("build",),
            unknown=() if certain else (f"build.{name if mine.certain else 'torch'}",),
            fixes=(
                Fix(
                    "pin",
                    name,
                    f"=={wanted}",
                    "from the same index as torch",
                    f'pip install "{name}=={wanted}" --index-url {INDEX}/{label}',
                ),
            ),
            evidence=("https://pytorch.org/get-started/previous-versions/",),
            here=f"{name} {copy.version}",
        )


def _flavour_of_companion(copy: Distribution, stack: Stack) -> Flavour:
    """The CUDA of torchvision or torchaudio: by its label, else that of its index if it goes with this torch."""
    known = "+" in (copy.version or "") or _goes_with_torch(copy, stack)
    return flavour_of(copy, stack.release, stack.facts, stack.tables) if known else Flavour(None)


def _goes_with_torch(copy: Distribution, stack: Stack) -> bool:
    """Whether a companion without a label requires the release of this torch, whose index may have it for the same CUDA."""
    from compat.tables.declared import open_declared

    package = open_declared().package(copy.name)
    place = None if package is None or stack.flavour.numbered is None else package.place(copy.version or "")
    if package is None or place is None or stack.torch is None or is_of_unnamed_index(stack.torch):
        return False
    return {row[0] for row in package.requirements(place, "torch")} == {f"=={stack.release}"}


def _xformers(stack: Stack, table: LinkedTable) -> Iterator[Finding]:
    """xformers records the torch it was built with and needs the same major and minor release, up to xformers 0.0.33.

    From 0.0.34 on it uses only torch's stable ABI, which later series keep: their symbols decide (``loading.judge``).
    """
    copy = stack.one("xformers")
    if copy is None or stack.release is None or own_build(copy) or "+" in (copy.version or ""):
        return
    linked = table.release("xformers", copy.version or "", None)
    if linked is not None and linked.series is not None and len(linked.series) > 1:
        return
    built = {public_version(build.torch) for build in stack.extension(copy) if build.torch and build.known == "read"}
    if len(built) == 1 and version_tuple(next(iter(built))) != version_tuple(stack.release):
        (torch,) = built
        yield for_another_torch(stack, copy, torch, f"xformers {copy.version} is built with torch {torch}")


_CUBIN_LAST_ON_INDEX = "0.6.13"
"""The last release of flashinfer-cubin on the package index; later ones are only on FlashInfer's own."""
_FLASHINFER_INDEX = "https://flashinfer.ai/whl"
_FLASHINFER_IGNORES_OTHERS = key_of("0.7.2")
"""From this release on, kernels of another release are ignored with a warning."""
_FLASHINFER_CUBIN_DIR_FIRST = key_of("0.6.16")
"""From this release on, FLASHINFER_CUBIN_DIR is read before flashinfer-cubin is imported."""


def _flashinfer(stack: Stack) -> Iterator[Finding]:
    """The packages with FlashInfer's compiled kernels must have the version of flashinfer-python, which checks it at import."""
    python = stack.one("flashinfer-python")
    if python is None or own_build(python):
        return
    wanted = public_version(python.version or "")
    release = key_of(wanted)
    if release >= _FLASHINFER_IGNORES_OTHERS or stack.facts.variable("FLASHINFER_DISABLE_VERSION_CHECK")[1]:
        return
    from compat.checks.loading import only_trains

    elsewhere = release >= _FLASHINFER_CUBIN_DIR_FIRST and stack.facts.variable("FLASHINFER_CUBIN_DIR")[1]
    for name in ("flashinfer-jit-cache",) if elsewhere else ("flashinfer-cubin", "flashinfer-jit-cache"):
        copy = stack.one(name)
        theirs = "" if copy is None else public_version(copy.version or "")
        if copy is None or key_of(theirs) == release:
            continue
        if name == "flashinfer-jit-cache" and (copy.version or "").startswith(wanted):  # 0.6.11+cu130 passes the check of 0.6.1
            continue
        same = by_pip("pin", name, f"=={wanted}", "the same release")
        remove = Fix(
            "uninstall", name, text="FlashInfer downloads or compiles the kernels when it first needs them",
            command=f"pip uninstall -y {name}",
        )  # fmt: skip
        label = label_of(stack.flavour.numbered) if stack.flavour.numbered else "cuXYZ"
        index = _FLASHINFER_INDEX + ("" if name == "flashinfer-cubin" else f"/{label}")
        elsewhere_only = Fix(
            "source-install", name, f"=={wanted}", "the same release, which only FlashInfer's own index has",
            f'pip install "{name}=={wanted}" --index-url {index}',
        )  # fmt: skip
        on_index = name == "flashinfer-cubin" and release <= key_of(_CUBIN_LAST_ON_INDEX)
        yield Finding(
            rule=f"build-{name}",
            origin="build",
            severity="warning" if only_trains(stack) else "error",
            title=f"{name} {copy.version} does not match flashinfer-python {python.version}",
            why="The compiled kernels only work with one release of flashinfer-python, which compares versions at import.",
            packages={"flashinfer-python": python.version, name: copy.version},
            fixes=(
                *((same,) if on_index else (remove, elsewhere_only)),
                by_pip("pin", "flashinfer-python", f"=={theirs}", f"or the release that {name} is for"),
                Fix(kind="env-var", text="skip the version check", command="export FLASHINFER_DISABLE_VERSION_CHECK=1"),
            ),
            evidence=(
                "https://github.com/flashinfer-ai/flashinfer/blob/v0.6.12/flashinfer/jit/env.py",
                *(() if on_index else ("https://github.com/flashinfer-ai/flashinfer/pull/3853",)),
            ),
            here=f"flashinfer-python {python.version}, {name} {copy.version}",
        )


def _bitsandbytes(stack: Stack) -> Iterator[Finding]:
    """bitsandbytes ships one library for each CUDA release; the one for torch's CUDA must be among them."""
    copy = stack.one("bitsandbytes")
    if copy is None or own_build(copy):
        return
    shipped = {build.cuda for build in stack.extension(copy) if build.cuda}
    wanted = _wanted_cuda(stack)
    if not shipped or not wanted or wanted & shipped:
        return
    certain = stack.flavour.numbered is None or stack.flavour.certain
    newer = [
        version
        for version in stack.tables.extension("bitsandbytes")
        if key_of(version) > key_of(public_version(copy.version or ""))
        and wanted & {build.cuda for build in stack.tables.extension_builds("bitsandbytes", version, stack.machine)}
    ]
    cuda = min(wanted, key=version_tuple)
    nearest = max((each for each in shipped if major_version(each) == major_version(cuda)), key=version_tuple, default=None)
    fixes = []
    if newer:
        first = min(newer, key=key_of)
        fixes.append(by_pip("upgrade", "bitsandbytes", f">={first}", f"the first release with a library for CUDA {cuda}"))
    if nearest:
        fixes.append(
            Fix(
                kind="env-var",
                text=f"load the library for CUDA {nearest} instead",
                command=f"export BNB_CUDA_VERSION={nearest.replace('.', '')}",
            )
        )
    yield Finding(
        rule="build-bitsandbytes-cuda",
        origin="build",
        verdict="hit" if certain else "possible",
        title=f"This bitsandbytes has no library for CUDA {cuda}",
        why=f"It loads the library for torch's CUDA release, and the wheel only contains those for "
        f"{', '.join(sorted(shipped, key=version_tuple))}. 4-bit and 8-bit layers and optimizers fail.",
        packages={"bitsandbytes": copy.version, **({"torch": stack.torch.version} if stack.torch else {})},
        facts=("build",) if stack.flavour.numbered else ("build", "accelerators"),
        missing=() if certain else ("build",),
        unknown=() if certain else ("build.torch",),
        fixes=tuple(fixes),
        evidence=("https://huggingface.co/docs/bitsandbytes/main/en/installation",),
        here=f"bitsandbytes {copy.version}, "
        + (f"torch for CUDA {cuda}" if stack.flavour.numbered else f"a GPU that needs CUDA {cuda}"),
    )


def _wanted_cuda(stack: Stack) -> set[str]:
    """The CUDA of torch; if unknown, every CUDA for which some torch build has code for the GPU."""
    if stack.flavour.numbered:
        return {stack.flavour.numbered}
    if stack.flavour.cuda or (stack.torch is not None and stack.torch.source is not None and own_build(stack.torch)):
        return set()
    return set().union(*(stack.tables.cudas_for(device.compute_capability or "") for device in stack.devices))
