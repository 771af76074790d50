"""The torch of an environment and the CUDA it is built for, and whether the driver and the library path fit it."""

from __future__ import annotations

from compat.model import Accelerator, Distribution, Finding, Fix
from compat.records import record, replace
from compat.rules.facts import ABSENT, Facts
from compat.tables.hardware import has_numbered_driver
from compat.versions import is_version, key_of, recorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.tables.builds import CodeTables, ExtensionBuild, TorchBuild


INDEX = "https://download.pytorch.org/whl"
"""torch's own index, with a folder for each CUDA release."""
OWN_BUILDS = ("vcs", "directory", "image", "conda", "nightly")
"""Kinds of source whose builds are not in the tables of published wheels."""


@record(frozen=True)
class Flavour:
    """The CUDA of torch's wheel ("12.4"; "cpu", "rocm") and whether that is certain; ``None`` if unknown."""

    cuda: str | None
    certain: bool = False

    @property
    def numbered(self) -> str | None:
        """The CUDA version; ``None`` for a CPU or ROCm build."""
        return self.cuda if self.cuda and self.cuda[0].isdecimal() else None


@record(frozen=True)
class Stack:
    """One environment, prepared for comparison with the tables; ``torch`` is ``None`` if its version is unknown."""

    facts: Facts
    tables: CodeTables
    torch: Distribution | None
    release: str | None
    flavour: Flavour

    @property
    def devices(self) -> tuple[Accelerator, ...]:
        """NVIDIA devices with a known compute capability."""
        found = self.facts.accelerators() or ()
        return tuple(each for each in found if each.vendor in (None, "nvidia") and each.compute_capability)

    @property
    def machine(self) -> str:
        return "aarch64" if self.facts.environment.machine in ("aarch64", "arm64") else "x86_64"

    def one(self, name: str) -> Distribution | None:
        """The only copy of a distribution with a valid version; ``None`` if it is absent, unknown or installed twice."""
        found = self.facts.package(name)
        if not found or found == ABSENT or len(found) != 1:
            return None
        copy: Distribution = found[0]  # type: ignore[assignment]
        return copy if copy.version is not None and is_version(copy.version) else None

    def builds(self) -> tuple[TorchBuild, ...]:
        """The builds of this torch for this machine."""
        return tuple(build for build in self.tables.torch_builds(self.release or "") if build.machine == self.machine)

    def build(self) -> TorchBuild | None:
        """The installed build; ``None`` if it is not in the tables."""
        return next((build for build in self.builds() if build.cuda == self.flavour.cuda), None)

    def extension(self, copy: Distribution) -> tuple[ExtensionBuild, ...]:
        """The builds of a published release; if the tables lack it, those that the releases before and after it share."""
        known = self.tables.extensions.get(copy.name)
        if not known:
            return ()
        version = recorded(copy.version or "", known)
        if version in known:
            return self.tables.extension_builds(copy.name, version)
        key = key_of(version)
        before = max((each for each in known if key_of(each) < key), key=key_of, default=None)
        after = min((each for each in known if key_of(each) > key), key=key_of, default=None)
        if before is None or after is None:
            return ()
        earlier = self.tables.extension_builds(copy.name, before)
        later = {(each.cuda, each.codes, each.ptx) for each in self.tables.extension_builds(copy.name, after)}
        both = [each for each in earlier if (each.cuda, each.codes, each.ptx) in later]
        return tuple(replace(each, known="inferred") for each in both) if len(both) == len(earlier) == len(later) else ()


def public_version(version: str) -> str:
    """A version without its local label."""
    return version.partition("+")[0]


def stack_of(facts: Facts, tables: CodeTables) -> Stack:
    """The stack of one environment."""
    found = facts.package("torch")
    torch: Distribution | None = found[0] if isinstance(found, list) and len(found) == 1 else None
    if torch is not None and (torch.version is None or not is_version(torch.version)):
        torch = None
    release = None if torch is None or torch.version is None else recorded(torch.version, tables.torch)
    return Stack(facts, tables, torch, release, flavour_of(torch, release, facts, tables))


def flavour_of(torch: Distribution | None, release: str | None, facts: Facts, tables: CodeTables) -> Flavour:
    """The CUDA of a published wheel of torch, or of a companion that is built with this release of torch."""
    if torch is None or torch.version is None or release is None:
        return Flavour(None)
    local = torch.version.partition("+")[2].lower()
    labelled = cuda_of(local)
    if labelled is not None:
        return Flavour(labelled, certain=True)
    published = tables.torch_builds(release)
    kind = None if torch.source is None else torch.source.kind
    if kind in (None, "index") and (backend := torch.extra.get("cuda")):  # uv's --torch-backend
        return Flavour(str(backend), certain=True)
    if kind == "image" and not local and (stated := _stated(torch, facts)) is not None:
        # the project's own images contain the published build that their tag names
        return Flavour(stated, certain=any(build.cuda == stated for build in published))
    if kind == "image" and not local and facts.environment.cuda_toolkit:
        # an image usually contains a published build for its own toolkit
        toolkit = ".".join(facts.environment.cuda_toolkit.split(".")[:2])
        return Flavour(toolkit if any(build.cuda == toolkit for build in published) else None)
    if local or kind in OWN_BUILDS or facts.environment.os == "darwin":
        return Flavour(None)
    details = {} if torch.source is None else torch.source.details
    if (labelled := cuda_of(index_label(torch))) is not None:
        return Flavour(labelled, certain=True)
    labels = [label for url in details.get("more", ()) for part in url.split("/") if (label := cuda_of(part)) is not None]
    # of two builds of a release, pip prefers the one with a local label, and uv the one of the additional index
    preferred = next((label for label in labels if label in ("cpu", "rocm", *(build.cuda for build in published))), None)
    if preferred is not None:
        return Flavour(preferred)
    if any(label[:1].isdigit() for label in labels) and all(build.default for build in published):
        return Flavour(None)  # of this release, only the default build is recorded
    certain = kind == "index" and "more" not in details
    if facts.environment.os == "windows":  # the default index has builds for the CPU alone; others are labelled
        return Flavour("cpu", certain=True) if certain else Flavour(None)
    machine = "aarch64" if facts.environment.machine in ("aarch64", "arm64") else "x86_64"
    default = next((each.cuda for each in published if each.default and each.machine == machine), None)
    if default is None:
        return Flavour(None)
    return Flavour(default or "cpu", certain=certain and facts.environment.os == "linux")


_OWN_IMAGES = ("pytorch/pytorch", "vllm/vllm-openai", "lmsysorg/sglang")
"""Images whose torch is the published wheel for the CUDA that their tag or release implies."""


def _stated(torch: Distribution, facts: Facts) -> str | None:
    """The CUDA of the torch in an image that states it; ``None`` for images of others, who also build torch themselves."""
    image = image_of(torch)
    repository = image.partition("@")[0].rpartition(":")[0]
    cuda = torch.extra.get("cuda")
    return str(cuda) if cuda and repository.endswith(_OWN_IMAGES) and facts.environment.os in (None, "linux") else None


def image_of(copy: Distribution) -> str:
    """The image that contains a distribution; "" if it is from elsewhere or unknown."""
    source = copy.source
    return str(source.details.get("image", "")) if source is not None and source.kind == "image" else ""


def index_label(copy: Distribution) -> str:
    """The label of the vendor's index that a package is from (``cu124``, ``cpu``, ``xpu``); "" for any other index."""
    url = "" if copy.source is None else str(copy.source.details.get("url", ""))
    return next((part for part in url.split("/") if part == "xpu" or cuda_of(part) is not None), "")


def is_of_unnamed_index(torch: Distribution) -> bool:
    """Whether a file requires a labelled torch, which the default index does not have, and leaves its index to the command."""
    source = torch.source
    of_file = torch.requires is None and source is not None and source.kind == "index" and not source.details
    return of_file and "+" in (torch.version or "")


def cuda_of(label: str) -> str | None:
    """``cu124`` → ``12.4``, ``cpu…`` → ``cpu``, ``rocm…`` → ``rocm``; ``None`` for anything else."""
    if label == "cpu" or label.startswith("cpu."):
        return "cpu"
    if label.startswith("rocm"):
        return "rocm"
    digits = label[2:].partition(".")[0]
    if label.startswith("cu") and digits.isascii() and digits.isdigit() and len(digits) == 3:
        return f"{digits[:2]}.{digits[2]}"
    return None


def torch_for(release: str | None, cuda: str, text: str) -> Fix:
    """The same release of torch, built for another CUDA, from torch's own index."""
    label = label_of(cuda)
    spec = f"=={release}+{label}"
    return Fix("source-install", "torch", spec, text, f'pip install "torch{spec}" --index-url {INDEX}/{label}')


def for_another_torch(stack: Stack, copy: Distribution, built: str, here: str) -> Finding:
    """The finding for an extension that was compiled for the torch ``built``, a release or a series."""
    return Finding(
        rule=f"build-{copy.name}-torch",
        origin="build",
        title=f"{copy.name} is compiled for another torch: {built}, not {stack.release}",
        why="torch's C++ ABI changes between releases. An extension compiled for another release fails to load (undefined "
        "symbol) or crashes.",
        packages={copy.name: copy.version, "torch": stack.torch.version if stack.torch else None},
        facts=("build",),
        fixes=(
            Fix(
                "pin",
                "torch",
                f"=={public_version(built)}" if built.count(".") > 1 else f"=={built}.*",
                "the torch it was compiled for",
                f'pip install "torch=={public_version(built) if built.count(".") > 1 else built + ".*"}"',
            ),
            Fix(
                "source-install",
                copy.name,
                "",
                "compile it for the installed torch",
                f"pip install --no-build-isolation --no-binary {copy.name} --force-reinstall --no-deps {copy.name}",
            ),
        ),
        evidence=("https://pytorch.org/docs/stable/cpp_index.html",),
        here=here,
    )


_NEW_ABI = (2, 7)
"""The first torch whose wheels are compiled with the C++11 ABI (:data:`_NEW_BEFORE` were before)."""
_NEW_BEFORE = ("2.6.0+cu126",)


def has_cxx11_abi(torch: str) -> bool | None:
    """Whether a wheel of torch is compiled with the C++11 ABI; ``None`` if its label is not one of torch's own indexes."""
    label = torch.partition("+")[2]
    if label and not label.startswith(("cu", "cpu")):
        return None
    return torch in _NEW_BEFORE or version_tuple(torch) >= _NEW_ABI


def label_of(cuda: str) -> str:
    """``12.4`` → ``cu124``."""
    return "cu" + cuda.replace(".", "")


def version_tuple(version: str) -> tuple[int, ...]:
    """``12.4`` → ``(12, 4)``."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def major_version(version: str) -> int:
    return version_tuple(version)[0]


def device_name(device: Accelerator) -> str:
    """A GPU's name, or what is known of it."""
    return device.name or device.gfx or f"a GPU with compute capability {device.compute_capability}"


def name_and_code(device: Accelerator) -> str:
    """``NVIDIA GeForce RTX 5090 (compute capability 12.0)``."""
    code = device.gfx or (f"compute capability {device.compute_capability}" if device.compute_capability else None)
    name = device_name(device)
    return f"{name} ({code})" if code and device.name and code not in name else name


def own_build(copy: Distribution) -> bool:
    """Whether a distribution is a custom build, or a wheel from another location than an index."""
    source = copy.source
    return source is not None and (source.kind in (*OWN_BUILDS, "url") or bool(source.details.get("build")))


# --- Driver compatibility with the CUDA of torch and of the toolkit: only the minimum of the CUDA major release is required.


_GUIDE = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"


def driver_findings(stack: Stack) -> Iterator[Finding]:
    """Yield findings about a driver that is too old, and about CUDA libraries that hide those of torch."""
    branch = driver_branch(stack)
    if branch is not None:
        yield from _torch(stack, branch)
        yield from _toolkit(stack, branch)
    yield from _shadowed(stack)


def driver_branch(stack: Stack) -> int | None:
    """Return the branch of NVIDIA's driver, such as 570; ``None`` if it is unknown or not the one that programs load."""
    environment = stack.facts.environment
    branch = (environment.driver or "").partition(".")[0]
    # NVIDIA's forward-compatibility package overrides the driver's own library
    compatible = "/compat" in (stack.facts.variable("LD_LIBRARY_PATH")[1] or "")
    numbered = branch.isascii() and branch.isdigit() and len(branch) < 5 and has_numbered_driver(environment)
    return int(branch) if numbered and not compatible else None


_FORWARD = " On data-center GPUs, the forward-compatibility libraries of the image may help."


def of_consumers(stack: Stack) -> bool:
    """Whether all GPUs are consumer cards, on which forward compatibility fails with error 804."""
    if not stack.devices:
        return False
    from compat.machine.gpu_names import lookup
    from compat.tables.hardware import open_gpus

    found = [lookup(open_gpus(), each.name or "").names for each in stack.devices]
    return all(names and all(name.startswith(("GeForce", "NVIDIA TITAN", "TITAN")) for name in names) for names in found)


def _torch(stack: Stack, branch: int) -> Iterator[Finding]:
    cuda = stack.flavour.numbered
    floor = None if cuda is None else stack.tables.floor(cuda)
    if stack.torch is None or cuda is None or floor is None or branch >= floor:
        return
    known = {build.cuda for build in stack.builds() if build.cuda}
    certain = stack.flavour.certain or all((stack.tables.floor(each) or 0) > branch for each in known)
    # an image may contain NVIDIA's forward-compatibility libraries, which work on data-center GPUs only
    rescued = bool(image_of(stack.torch)) and not of_consumers(stack)
    missing = () if certain and not rescued else ("accelerators",) if certain and not stack.devices else ("build",)
    certain = not missing
    older = sorted((each for each in known if (stack.tables.floor(each) or 0) <= branch), reverse=True)
    release = stack.release
    fixes = [torch_for(release, each, f"the build for CUDA {each}") for each in older[:1]]
    fixes.append(Fix(kind="driver", spec=f">={floor}", text=f"install a driver of branch {floor} or newer"))
    if not older:
        fixes += _older_release(stack, branch)
    yield Finding(
        rule="build-torch-driver",
        origin="build",
        verdict="hit" if certain else "possible",
        title=f"The driver is too old for this torch: CUDA {major_version(cuda)} needs {floor} or newer",
        why=f"torch {release} is built for CUDA {cuda}. Older drivers only work down to the minimum of each major release of "
        "CUDA. Below it, torch finds no GPU and reports that the NVIDIA driver is too old." + (_FORWARD if rescued else ""),
        packages={"torch": stack.torch.version},
        facts=("driver", "build"),
        missing=missing,
        unknown=("container",) if rescued else ("build.torch",) if missing else (),
        fixes=tuple(fixes),
        evidence=(_GUIDE,),
        here=f"torch {stack.torch.version}, driver {stack.facts.environment.driver}",
    )


def _older_release(stack: Stack, branch: int) -> Iterator[Fix]:
    here = key_of(stack.release or "0")
    fitting = [
        release
        for release in stack.tables.torch
        if key_of(release) < here
        and any(
            build.default and build.cuda and build.machine == stack.machine and (stack.tables.floor(build.cuda) or 0) <= branch
            for build in stack.tables.torch_builds(release)
        )
    ]
    if fitting:
        newest = max(fitting, key=key_of)
        text = "the last release whose default wheel runs with this driver"
        yield Fix("downgrade", "torch", f"<={newest}", text, f'pip install "torch=={newest}"')


def _toolkit(stack: Stack, branch: int) -> Iterator[Finding]:
    """Check the driver minimum of the machine's or image's toolkit, for code compiled with it or linked to its libraries."""
    toolkit = stack.facts.environment.cuda_toolkit
    if toolkit is None or not toolkit[:1].isdecimal():
        return
    floor = stack.tables.floor(toolkit)
    if floor is None or branch >= floor:
        return
    yield Finding(
        rule="build-toolkit-driver",
        origin="build",
        severity="warning",
        title=f"The driver is too old for the CUDA toolkit {toolkit}: it needs {floor} or newer",
        why="Programs that use the toolkit's libraries do not start if the driver is older than the minimum of that major "
        "release. In a container, the toolkit comes from the image and the driver from the host.",
        facts=("driver", "cuda_toolkit"),
        fixes=(
            Fix(kind="driver", spec=f">={floor}", text=f"install a driver of branch {floor} or newer"),
            Fix(
                kind="env-var",
                text="on data-center GPUs, use the toolkit's compatibility libraries",
                command="export LD_LIBRARY_PATH=/usr/local/cuda/compat:$LD_LIBRARY_PATH",
            ),
        ),
        evidence=(_GUIDE,),
        here=f"driver {stack.facts.environment.driver}, CUDA toolkit {toolkit}",
    )


def _shadowed(stack: Stack) -> Iterator[Finding]:
    """Find an older toolkit in ``LD_LIBRARY_PATH``, which is searched before the folders of a wheel."""
    if stack.facts.environment.os == "windows":
        return  # Windows does not use LD_LIBRARY_PATH
    known, value = stack.facts.variable("LD_LIBRARY_PATH")
    cuda = stack.flavour.numbered
    if not known or not value or cuda is None or stack.torch is None:
        return
    for folder in value.split(":"):
        version = _release_in(folder, stack.facts.environment.cuda_toolkit)
        if version is None or major_version(version) != major_version(cuda) or version_tuple(version) >= version_tuple(cuda):
            continue
        yield Finding(
            rule="build-library-path",
            origin="build",
            severity="warning",
            title=f"LD_LIBRARY_PATH puts CUDA {version} libraries ahead of torch's own (CUDA {cuda})",
            why="The loader finds them first, and torch's libraries then miss symbols of the newer release, such as undefined "
            "symbol __nvJitLinkAddData.",
            packages={"torch": stack.torch.version},
            facts=("variables", "build"),
            fixes=(
                Fix(
                    kind="env-var",
                    text="torch's wheels include their own CUDA libraries: remove the folder from the path",
                    command="unset LD_LIBRARY_PATH",
                ),
            ),
            evidence=("https://github.com/pytorch/pytorch/issues/111469",),
            here=f"torch {stack.torch.version}, {folder}",
        )
        return


def _release_in(folder: str, installed: str | None) -> str | None:
    """The CUDA release of a library folder: from its name, or the toolkit's if it is the usual ``cuda`` symlink."""
    for part in folder.split("/"):
        if part.startswith("cuda-"):
            text = part[5:]
            return text if text.count(".") == 1 and text.replace(".", "").isdecimal() else None
    return installed if "/cuda/" in f"{folder}/" and installed and installed.count(".") == 1 else None
