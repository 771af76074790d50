"""The torch of an environment: its release, the CUDA it is built for, and its ABI."""

from __future__ import annotations

from compat.checks.fix_commands import compiled_anew
from compat.model import Accelerator, Distribution, Finding, Fix
from compat.records import record, replace
from compat.rules.facts import ABSENT, Facts
from compat.versions import is_version, key_of, recorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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

    def beside(self) -> tuple[Distribution, ...]:
        """The copies of torchvision and torchaudio from an index, which have to be builds for the CUDA of torch."""
        copies = filter(None, map(self.one, ("torchvision", "torchaudio")))
        return tuple(copy for copy in copies if copy.source is None or copy.source.kind == "index")

    def builds(self) -> tuple[TorchBuild, ...]:
        """The builds of this torch for this machine."""
        return tuple(build for build in self.tables.torch_builds(self.release or "") if build.machine == self.machine)

    def build(self) -> TorchBuild | None:
        """The installed build; ``None`` if it is not in the tables."""
        return next((build for build in self.builds() if build.cuda == self.flavour.cuda), None)

    def extension(self, copy: Distribution) -> tuple[ExtensionBuild, ...]:
        """The builds of a published release; if the tables lack it, those that the releases before and after it share."""
        known = self.tables.extension(copy.name)
        if not known:
            return ()
        version = recorded(copy.version or "", known)
        if version in known:
            return self.tables.extension_builds(copy.name, version, self.machine)
        key = key_of(version)
        before = max((each for each in known if key_of(each) < key), key=key_of, default=None)
        after = min((each for each in known if key_of(each) > key), key=key_of, default=None)
        if before is None or after is None:
            return ()
        earlier = self.tables.extension_builds(copy.name, before, self.machine)
        later = {(each.cuda, each.codes, each.ptx) for each in self.tables.extension_builds(copy.name, after, self.machine)}
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
    if any(label[:1].isdecimal() for label in labels) and all(build.default for build in published):
        return Flavour(None)  # of this release, only the default build is recorded
    certain = kind == "index" and "more" not in details
    if facts.environment.os == "windows":  # the default index has builds for the CPU alone; others are labelled
        return Flavour("cpu", certain=True) if certain else Flavour(None)
    if kind is None and (beside := _of_runtime(facts)) is not None:
        # torch is listed without its label, beside the libraries that one of its builds requires
        return Flavour(beside if not published or any(build.cuda == beside for build in published) else None)
    return _of_default_index(published, facts, certain=certain)


def _of_default_index(published: Sequence[TorchBuild], facts: Facts, *, certain: bool) -> Flavour:
    """The CUDA of the wheel that the default index has of a release for this processor."""
    machine = "aarch64" if facts.environment.machine in ("aarch64", "arm64") else "x86_64"
    default = next((each.cuda for each in published if each.default and each.machine == machine), None)
    if default is None:
        return Flavour(None)
    return Flavour(default or "cpu", certain=certain and facts.environment.os == "linux")


_RUNTIMES = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu11")


def _of_runtime(facts: Facts) -> str | None:
    """The CUDA of the only runtime wheel that is listed, ``12.8`` for 12.8.90, if nothing beside torch may have brought it."""
    others = (copy.name for copy in facts.environment.distributions or () if not copy.name.startswith("nvidia-"))
    if any(name.endswith(("-cu11", "-cu12", "-cu13")) for name in others):
        return None
    listed = (facts.package(name) for name in _RUNTIMES)
    found = [copy for copies in listed if isinstance(copies, list) for copy in copies]
    versions = {".".join((copy.version or "").split(".")[:2]) for copy in found}
    return versions.pop() if len(versions) == 1 and "." in min(versions) else None


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


REPLACES = "replaces"
OF_IMAGE = (REPLACES, "no_compiler", "compiler")
"""What is noted with a distribution about the image that it is installed on."""
"""Key in ``extra`` of what an installer puts in the place of a package of an image: the image."""


def replaced_image_of(copy: Distribution) -> str:
    """The image of which an installer replaces this package; "" for any other."""
    return str(copy.extra.get(REPLACES, ""))


def own_image_of(copy: Distribution) -> str:
    """The image that a distribution is from, or of which an installer replaces it; "" if there is none."""
    return image_of(copy) or replaced_image_of(copy)


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
    if label.startswith("cu") and digits.isascii() and digits.isdecimal() and len(digits) == 3:
        return f"{digits[:2]}.{digits[2]}"
    return None


def torch_for(release: str | None, cuda: str, text: str, beside: Iterable[Distribution] = ()) -> Fix:
    """The same release of torch, built for another CUDA, from torch's own index, with the builds of what is ``beside`` it."""
    label = label_of(cuda)
    spec = f"=={release}+{label}"
    others = "".join(f' "{copy.name}=={public_version(copy.version or "")}+{label}"' for copy in beside)
    return Fix("source-install", "torch", spec, text, f'pip install "torch{spec}"{others} --index-url {INDEX}/{label}')


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
            compiled_anew(copy.name),
        ),
        evidence=("https://pytorch.org/docs/stable/cpp_index.html",),
        here=here,
    )


_NEW_ABI = (2, 7)
"""The first torch whose wheels are compiled with the C++11 ABI (:data:`_NEW_BEFORE` were before)."""
_NEW_BEFORE = ("2.6.0+cu126",)
_NEW_BEFORE_SERIES = (2, 6)


def has_cxx11_abi(torch: str) -> bool | None:
    """Whether a wheel of torch is compiled with the C++11 ABI; ``None`` if its label is not one of torch's own indexes."""
    label = torch.partition("+")[2]
    if label and not label.startswith(("cu", "cpu")):
        return None
    return torch in _NEW_BEFORE or version_tuple(torch) >= _NEW_ABI


def wheel_has_cxx11_abi(name: str, version: str, series: str, *, forced: bool) -> bool:
    """Whether an extension's wheel for a series of torch is compiled with the C++11 ABI.

    ``cxx11abiTRUE`` in its name says that this was ``forced``, ``cxx11abiFALSE`` only that it was not: the wheel then has the
    ABI of the torch that it was compiled with, which for flash-attn 2.8 and torch 2.6 was the build for CUDA 12.6.
    """
    own = version_tuple(series)
    of_new = name == "flash-attn" and own == _NEW_BEFORE_SERIES and version_tuple(version) >= (2, 8)
    return forced or own >= _NEW_ABI or of_new


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
