"""Published wheels that cannot be loaded here: symbols of another torch, libraries of another CUDA, a newer glibc, numpy 1."""

from __future__ import annotations

from compat.checks.fix_commands import by_pip, compiled, downgrade_to, upgrade_to
from compat.checks.torch_build import (
    INDEX,
    Stack,
    for_another_torch,
    index_label,
    is_of_unnamed_index,
    major_version,
    own_build,
    public_version,
    torch_for,
)
from compat.model import Distribution, Finding, Fix, of_no_index
from compat.records import replace
from compat.rules.rule import OFFLINE_TRAINING, kinds_of
from compat.tables.declared import open_declared
from compat.tables.linked import Linked, LinkedTable, NumpyAbi, open_numpy_abi, series_of
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compat.rules.facts import Facts

_MILDER = {
    "auto-gptq": ("warning", "slow"), "autoawq-kernels": ("warning", "slow"), "lmcache": ("warning", "crash"),
    "mooncake-transfer-engine": ("warning", "crash"), "onnxruntime-gpu": ("warning", "slow"), "torchao": ("info", "slow"),
}  # fmt: skip
"""Severity and effect for packages that go on without their own kernels, with a line in the log, or that a server only loads if
an option asks for them (lmcache, mooncake-transfer-engine)."""
_OF_TORCH = frozenset(
    ("torchvision", "torchaudio", "torchtext", "torchao", "torchcodec", "fbgemm-gpu", "fbgemm-gpu-genai", "xformers")
)
"""Packages that torch's own index has builds of for each CUDA: without a label only an index says which build it is."""
_PINNED = frozenset(("torchvision", "torchaudio", "torchtext"))
"""Packages that declare the exact torch they are compiled for, which is checked with their requirements."""
_WITHOUT_TORCH = frozenset(("onnxruntime-gpu",))
"""Packages that do not require torch, so that a toolkit may be all that brings the libraries of CUDA."""
_ANOTHER_ABI = ("2.6.0+cu126",)
"""Builds of torch with other symbols than the release's wheel on the index: compiled with the C++11 ABI."""


_OTHER_BUILDS = frozenset(("vllm", "sgl-kernel", "sglang-kernel"))
"""Packages whose projects publish builds for other CUDA releases, with a label that people leave out of reports."""
_SERVERS = frozenset((*_OTHER_BUILDS, "sglang", "lmdeploy"))
"""Packages that nothing imports in a training job that does not generate with them."""


def judge(stack: Stack, table: LinkedTable, seen: frozenset[str]) -> Iterator[Finding]:
    """Yield the findings; ``seen`` are the rules that other checks of wheels have already found."""
    environment = stack.facts.environment
    read = table.packages | stack.tables.extensions
    for copy in environment.distributions or ():
        if copy.name not in read or stack.one(copy.name) is not copy or own_build(copy):
            continue
        public, _, label = (copy.version or "").partition("+")
        if label and (copy.name not in _OTHER_BUILDS or not label.startswith("cu")):
            continue
        known = environment.os in (None, "linux")
        linked = table.release(copy.name, public, stack.flavour.numbered) if known else None
        found = [] if label else [*_cuda(stack, copy, linked, table), *_for_gpus(stack, copy, linked)]
        if linked is not None and not label and not found:
            found = list(_cudnn(stack, copy, linked, table))
        if linked is not None and environment.machine in (None, "x86_64"):
            # a build for another CUDA, which its label names, is compiled for the same torch
            found += [*(() if label else _glibc(stack, copy, linked, table)), *_symbols(stack, copy, linked, table)]
        for finding in found:
            if finding.rule not in seen:
                severity, effect = finding.severity, finding.effect
                if not finding.rule.endswith("-glibc"):
                    severity, effect = _MILDER.get(copy.name, (severity, effect))
                yield replace(finding, severity=severity, effect=effect)


def _symbols(stack: Stack, copy: Distribution, linked: Linked, table: LinkedTable) -> Iterator[Finding]:
    """A wheel whose symbols the installed series of torch does not export, though another series does."""
    if stack.torch is None or not linked.series or copy.name in _PINNED or own_build(stack.torch):
        return
    here = series_of(stack.release or "")
    unknown = stack.torch.version in _ANOTHER_ABI or key_of(here) > key_of(table.newest)
    if unknown or here in linked.series or key_of(here) < key_of(table.oldest):
        return
    first, last = linked.series[0], linked.series[-1]
    built = first if first == last else f"{first} to {last}"
    nearest = next((each for each in linked.series if key_of(each) > key_of(here)), last)
    finding = for_another_torch(stack, copy, nearest, f"{copy.name} {copy.version}, torch {stack.torch.version}")
    fixes = tuple(_release(copy, linked, table, lambda each: each.series is not None and here in each.series, f"torch {here}"))
    yield replace(
        finding,
        title=f"{copy.name} {copy.version} cannot be loaded with torch {here}: it is compiled for torch {built}",
        why="Its wheel needs symbols that this torch series does not export: undefined symbol.",
        fixes=(*fixes, *finding.fixes),
    )


def _cuda(stack: Stack, copy: Distribution, linked: Linked | None, table: LinkedTable) -> Iterator[Finding]:
    """A published wheel linked against another CUDA major release than the one torch comes with."""
    cuda, name = stack.flavour.numbered, copy.name
    if name in _WITHOUT_TORCH and linked is not None and not isinstance(stack.facts.package("torch"), list):
        yield from _toolkit(stack, copy, linked, table)
    if stack.torch is None or cuda is None or (name in _OF_TORCH and name != "xformers" and not _of_default_index(copy)):
        return
    if (copy.source is not None and "more" in copy.source.details) or (name in _OF_TORCH and is_of_unnamed_index(stack.torch)):
        return  # another index may have the same release for another CUDA, with a label that installers prefer
    linked_to = {linked.cuda()} if linked is not None else {build.cuda for build in stack.extension(copy) if _single(name)}
    wanted = {major_version(each) for each in linked_to if each}
    if len(wanted) != 1 or wanted == {major_version(cuda)} or _there(stack, name, *wanted):
        return
    (other,) = wanted
    builds = [build.cuda for build in stack.builds() if build.cuda and major_version(build.cuda) == other]
    fixes = [torch_for(stack.release, each, f"the torch for CUDA {each}") for each in sorted(builds, reverse=True)[:1]]
    fixes.append(compiled(name, f"build {name} for the installed CUDA"))
    if name in _WITHOUT_TORCH and linked is not None:
        fixes = [
            *_release(copy, linked, table, lambda each: each.cuda() == str(major_version(cuda)), f"CUDA {major_version(cuda)}"),
            *fixes,
        ]
    else:
        fixes += _for_cuda(stack, copy, table, major_version(cuda))
    described = copy.source is None and copy.requires is None and name in _OTHER_BUILDS
    unknown = (*(() if stack.flavour.certain else ("build.torch",)), *((f"build.{name}",) if described else ()))
    yield Finding(
        rule=f"build-{name}-cuda",
        origin="build",
        verdict="possible" if unknown else "hit",
        severity="warning" if name in _SERVERS and only_trains(stack) else "error",
        title=f"{name} is linked against CUDA {other}, but torch comes with CUDA {major_version(cuda)}",
        why=f"The wheel of {name} {public_version(copy.version or '')} loads libcudart.so.{other}, but this torch installs "
        "libraries of another major release: cannot open shared object file.",
        packages={name: copy.version, "torch": stack.torch.version},
        facts=("build",),
        missing=("build",) if unknown else (),
        unknown=unknown,
        fixes=tuple(fixes),
        evidence=("https://docs.vllm.ai/en/latest/getting_started/installation/gpu.html",),
        here=f"{name} {copy.version}, torch {stack.torch.version}",
    )


_CUDNN = ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12", "nvidia-cudnn-cu11")


def _cudnn(stack: Stack, copy: Distribution, linked: Linked, table: LinkedTable) -> Iterator[Finding]:
    """A wheel that loads the cuDNN of another major release than the one that torch installs, which may be on the system."""
    needed, here = linked.cudnn(), _cudnn_of(stack)
    if None in (needed, here) or needed == here or stack.facts.environment.accelerators == ():
        return
    fits = f"cuDNN {here}"
    yield Finding(
        rule=f"build-{copy.name}-cudnn",
        origin="build",
        verdict="possible",
        title=f"{copy.name} {copy.version} needs cuDNN {needed}, but torch comes with cuDNN {here}",
        why=f"Its CUDA library loads libcudnn.so.{needed}, which neither the wheel nor this torch has: cannot open shared "
        "object file.",
        packages={copy.name: copy.version, "torch": None if stack.torch is None else stack.torch.version},
        facts=("build",),
        missing=("build",),
        unknown=(f"build.{copy.name}",),
        fixes=(
            *_release(copy, linked, table, lambda each: each.cudnn() == here and each.cuda() == linked.cuda(), fits),
            *_torch_with(stack, needed),
        ),
        evidence=("https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html#requirements",),
        here=f"{copy.name} {copy.version}, cuDNN {here}",
    )


def _cudnn_of(stack: Stack) -> str | None:
    """The major release of the cuDNN that is listed, else of the one that this torch requires."""
    copies = [each for each in map(stack.one, _CUDNN) if each is not None]
    if copies:
        found = {str(major_version(each.version or "")) for each in copies}
        return found.pop() if len(found) == 1 else None
    torch = stack.torch
    return None if torch is None or own_build(torch) or not stack.flavour.numbered else _cudnn_required(torch.version or "")


def _cudnn_required(torch: str) -> str | None:
    """The major release of the cuDNN that a release of torch pins for Linux."""
    package = open_declared().package("torch")
    place = None if package is None else package.place(torch)
    if package is None or place is None:
        return None
    pins = [row[0] for name in _CUDNN for row in package.requirements(place, name)]
    return next((str(major_version(pin[2:])) for pin in pins if pin.startswith("==")), None)


def _torch_with(stack: Stack, cudnn: str | None) -> Iterator[Fix]:
    """The first later release of torch with a cuDNN."""
    known, here = open_declared().package("torch"), key_of(stack.release or "0")
    later = () if known is None else (each for each in known.versions if key_of(each) > here)
    first = next((each for each in later if _cudnn_required(each) == cudnn), None)
    if first is not None:
        yield upgrade_to("torch", first, f"the first release with cuDNN {cudnn}")


def only_trains(stack: Stack) -> bool:
    """Whether the job is known to be a training that uses no server."""
    job = stack.facts.environment.workload
    offline = job is not None and job.task is not None and OFFLINE_TRAINING in kinds_of(job.task)
    return job is not None and offline and not {"vllm", "sglang"}.intersection(job.features or ())


def _toolkit(stack: Stack, copy: Distribution, linked: Linked, table: LinkedTable) -> Iterator[Finding]:
    """A wheel installed without torch, linked against another CUDA major release than that of the toolkit."""
    environment, built = stack.facts.environment, linked.cuda()
    toolkit = environment.cuda_toolkit
    if toolkit is None or built is None or environment.accelerators == () or _there(stack, copy.name, int(built)):
        return
    cuda = str(major_version(toolkit))
    yield Finding(
        rule=f"build-{copy.name}-cuda",
        origin="build",
        verdict="possible",
        title=f"{copy.name} is linked against CUDA {built}, but the CUDA toolkit here is {toolkit}",
        why=f"The wheel of {copy.name} {public_version(copy.version or '')} loads libcudart.so.{built} and others of that "
        "major release, which neither the wheel nor this toolkit has: cannot open shared object file.",
        packages={copy.name: copy.version},
        facts=("cuda_toolkit", "build"),
        missing=("build",),
        unknown=(f"build.{copy.name}",),
        fixes=(
            *_release(copy, linked, table, lambda each: each.cuda() == cuda, f"CUDA {cuda}"),
            Fix("source-install", copy.name, "", f"a build for CUDA {cuda} from another index"),
        ),
        evidence=("https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html#requirements",),
        here=f"{copy.name} {copy.version}, CUDA toolkit {toolkit}",
    )


def _for_gpus(stack: Stack, copy: Distribution, linked: Linked | None) -> Iterator[Finding]:
    """A CUDA build of torchvision with a CPU-only torch, which lacks the libraries it loads."""
    torch, flavour = stack.torch, stack.flavour
    needed = linked is not None and copy.name == "torchvision" and "libtorch_cuda.so" in linked.needs
    if not needed or torch is None or flavour.cuda != "cpu" or stack.machine != "x86_64" or index_label(copy) == "cpu":
        return
    certain = flavour.certain and _of_default_index(copy)
    wanted = f"{public_version(copy.version or '')}+cpu"
    command = f'pip install "torchvision=={wanted}" --index-url {INDEX}/cpu'
    yield Finding(
        rule="build-torchvision-cpu",
        origin="build",
        verdict="hit" if certain else "possible",
        title=f"torchvision {copy.version} is built for CUDA, but torch {torch.version} is a CPU-only build",
        why="Its wheel loads libtorch_cuda.so, which this torch does not have, so its operators are missing: operator "
        "torchvision::nms does not exist.",
        packages={"torchvision": copy.version, "torch": torch.version},
        facts=("build",),
        missing=() if certain else ("build",),
        unknown=() if certain else ("build.torchvision",),
        fixes=(Fix("pin", "torchvision", f"=={wanted}", "from the same index as torch", command),),
        evidence=("https://pytorch.org/get-started/previous-versions/",),
        here=f"torchvision {copy.version}, torch {torch.version}",
    )


def _single(name: str) -> bool:
    """Whether the wheel of a release is made for one CUDA."""
    return name in ("vllm", "xformers")


def _of_default_index(copy: Distribution) -> bool:
    named = index_label(copy) or copy.extra.get("cuda")  # the build of an image, or of uv's --torch-backend
    return copy.source is not None and copy.source.kind == "index" and not named


_FIND_WHEELS = frozenset(("lmdeploy", "onnxruntime-gpu", "transformer-engine-cu12", "transformer-engine-cu13"))
"""Packages that load the libraries of NVIDIA's wheels themselves, or have a run path to them (``readelf -d``): the others find
only what torch has loaded, and what the system's loader finds."""


def _there(stack: Stack, name: str, cuda: int) -> bool:
    """Whether a package finds the run-time library of a CUDA major release elsewhere: in a wheel, or an installed toolkit."""
    toolkit = stack.facts.environment.cuda_toolkit
    wheel = "nvidia-cuda-runtime" if cuda > 12 else f"nvidia-cuda-runtime-cu{cuda}"
    by_wheel = name in _FIND_WHEELS and isinstance(stack.facts.package(wheel), list)
    return by_wheel or (toolkit is not None and major_version(toolkit) == cuda)


def _for_cuda(stack: Stack, copy: Distribution, table: LinkedTable, wanted: int) -> Iterator[Fix]:
    """The last release before this one that is linked against a CUDA major release."""
    here = key_of(public_version(copy.version or ""))
    found = {each.version for each in table.of(copy.name) if each.cuda() == str(wanted)}
    found |= {
        version
        for version in stack.tables.extension(copy.name) if _single(copy.name)
        for each in stack.tables.extension_builds(copy.name, version, stack.machine)
        if each.cuda and major_version(each.cuda) == wanted
    }  # fmt: skip
    older = [version for version in found if key_of(version) < here]
    if older:
        yield downgrade_to(copy.name, max(older, key=key_of), f"the last release for CUDA {wanted}")


def _glibc(stack: Stack, copy: Distribution, linked: Linked, table: LinkedTable) -> Iterator[Finding]:
    """A wheel that an installer accepts by its platform tag, though its libraries ask for a newer glibc."""
    glibc, least = stack.facts.environment.glibc, linked.least("GLIBC")
    if not glibc or not least or key_of(least) <= key_of(glibc) or (linked.tag and key_of(linked.tag) > key_of(glibc)):
        return
    fits = f"glibc {glibc}"
    yield Finding(
        rule=f"build-{copy.name}-glibc",
        origin="build",
        title=f"{copy.name} {copy.version} needs glibc {least}, but this system has {glibc}",
        why=f"Its platform tag promises glibc {linked.tag or 'of any release'}, so it is installed, but its library asks for "
        f"GLIBC_{least}: version not found.",
        packages={copy.name: copy.version},
        facts=("glibc",),
        fixes=tuple(_release(copy, linked, table, lambda each: key_of(each.least("GLIBC") or "0") <= key_of(glibc), fits)),
        evidence=("https://peps.python.org/pep-0600/",),
        here=f"{copy.name} {copy.version}, glibc {glibc}",
    )


def _release(
    copy: Distribution, linked: Linked, table: LinkedTable, fits: Callable[[Linked], bool], what: str
) -> Iterator[Fix]:
    """The nearest releases whose wheels fit, the later one first."""
    here = key_of(copy.version or "")
    fitting = [each.version for each in table.of(copy.name) if each.variant == linked.variant and fits(each)]
    for version in [each for each in fitting if key_of(each) > here][:1]:
        yield upgrade_to(copy.name, version, f"a release for {what}")
    for version in [each for each in fitting if key_of(each) < here][-1:]:
        yield downgrade_to(copy.name, version, f"the last release for {what}")


def compiled_against_numpy_1(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for each release that was compiled against numpy 1, if numpy 2 is installed."""
    copies = facts.package("numpy")
    here = copies[0].version if isinstance(copies, list) and len(copies) == 1 else None
    if here is None or key_of(here) < NUMPY_2:
        return
    table = open_numpy_abi()
    for copy in facts.environment.distributions or ():
        row = table.get(copy.name)
        if row is None or not copy.version or own_build(copy) or of_no_index(copy):
            continue
        if key_of(public_version(copy.version)) <= key_of(row.last):
            yield replace(
                of_numpy_1(copy.name, copy.version, here, row),
                verdict="hit",
                title=f"import {row.module} fails: {copy.name} {copy.version} is compiled against numpy 1",
                why=f"The compiled code of releases up to {row.last} uses types with a different layout in numpy 2: "
                "numpy.dtype size changed, numpy.core.multiarray failed to import, or _ARRAY_API not found.",
                facts=(),
                here=f"{copy.name} {copy.version}, numpy {here}",
            )


def of_numpy_1(name: str, version: str | None, numpy: str | None, row: NumpyAbi) -> Finding:
    """The finding about a release compiled against numpy 1 and installed with numpy 2; both versions may be unknown."""
    older = by_pip("downgrade", "numpy", "<2", "the numpy it was compiled against")
    newer = [upgrade_to(name, row.first, "the first release compiled against numpy 2")] if row.first else []
    return Finding(
        rule=f"build-{name}-numpy",
        origin="build",
        verdict="possible",
        title=f"{name} up to {row.last} is compiled against numpy 1 and cannot be imported with numpy 2",
        why="Its compiled code uses types with a different layout in numpy 2.",
        packages={name: version, "numpy": numpy},
        facts=("build",),
        fixes=(*newer, older),
        evidence=("https://numpy.org/doc/stable/dev/depending_on_numpy.html#numpy-2-0-specific-advice",),
    )


NUMPY_2 = key_of("2.0.0b1")
"""The first numpy with another ABI."""
