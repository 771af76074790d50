"""The input of the build checks: torch and its CUDA flavour, the devices, the driver."""

from __future__ import annotations

from compat.model import Accelerator, Distribution, Fix
from compat.records import record, replace
from compat.rules.facts import ABSENT, Facts
from compat.versions import Key, is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
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
        known = self.tables.extensions.get(copy.name, {})
        version = public(copy.version or "")
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


def public(version: str) -> str:
    """A version without its local label."""
    return version.partition("+")[0]


def stack_of(facts: Facts, tables: CodeTables) -> Stack:
    """The stack of one environment."""
    found = facts.package("torch")
    torch: Distribution | None = found[0] if isinstance(found, list) and len(found) == 1 else None
    if torch is not None and (torch.version is None or not is_version(torch.version)):
        torch = None
    release = None if torch is None or torch.version is None else public(torch.version)
    return Stack(facts, tables, torch, release, _flavour(torch, release, facts, tables))


def _flavour(torch: Distribution | None, release: str | None, facts: Facts, tables: CodeTables) -> Flavour:
    if torch is None or torch.version is None or release is None:
        return Flavour(None)
    local = torch.version.partition("+")[2].lower()
    labelled = cuda_of(local)
    if labelled is not None:
        return Flavour(labelled, certain=True)
    kind = None if torch.source is None else torch.source.kind
    if kind == "image" and not local and facts.environment.cuda_toolkit:
        # an image usually contains a published build for its own toolkit
        toolkit = ".".join(facts.environment.cuda_toolkit.split(".")[:2])
        published = {build.cuda for build in tables.torch_builds(release)}
        return Flavour(toolkit if toolkit in published else None)
    if local or kind in OWN_BUILDS or facts.environment.os in ("windows", "darwin"):
        return Flavour(None)
    url = str(torch.source.details.get("url", "")) if torch.source is not None else ""
    for part in url.split("/"):
        if cuda_of(part) is not None:
            return Flavour(cuda_of(part), certain=True)
    machine = "aarch64" if facts.environment.machine in ("aarch64", "arm64") else "x86_64"
    default = next((each.cuda for each in tables.torch_builds(release) if each.default and each.machine == machine), None)
    if default is None:
        return Flavour(None)
    return Flavour(default or "cpu", certain=kind == "index" and facts.environment.os == "linux")


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


def label_of(cuda: str) -> str:
    """``12.4`` → ``cu124``."""
    return "cu" + cuda.replace(".", "")


def numbers(version: str) -> tuple[int, ...]:
    """``12.4`` → ``(12, 4)``."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def major(version: str) -> int:
    return numbers(version)[0]


def key(copy: Distribution) -> Key:
    return key_of(copy.version or "0")


def own_build(copy: Distribution) -> bool:
    """Whether a distribution is a custom build, or a wheel from another location than an index."""
    source = copy.source
    return source is not None and (source.kind in (*OWN_BUILDS, "url") or bool(source.details.get("build")))
