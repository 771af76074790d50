"""Contents of published wheels (``matrix/facts``), compiled: their GPU code, and the CUDA and torch they were built for.

Codes are written as in the wheels without their prefix: ``"90"`` is sm_90, ``"90a"`` runs on that exact capability only.
"""

from __future__ import annotations

import marshal
import os

from compat.files import DATA, read_table
from compat.records import cached, kept, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set
    from typing import Any, TypeAlias, TypedDict

    Codes: TypeAlias = tuple[str, ...]
    TorchRow: TypeAlias = tuple[str, str, bool, Codes, Codes, str]
    """The values of a :class:`TorchBuild`."""
    ExtensionRow: TypeAlias = tuple[str, str, str, Codes, Codes, str]
    """The values of an :class:`ExtensionBuild`."""

    class Tables(TypedDict):
        """The content of the file; wheels by package and release, the rest by compute capability or CUDA."""

        wheels: Mapping[str, bytes]
        """By package, as what :meth:`CodeTables.torch` and :meth:`CodeTables.extension` return: opened on first use."""
        triton: Mapping[str, Codes]
        assemblers: Mapping[str, tuple[str, str]]
        rocm: Mapping[str, Codes]
        rocm_of: Mapping[str, str]
        published: Mapping[str, Mapping[str, tuple[str, ...]]]
        published_for: Mapping[str, Mapping[str, tuple[Codes, Codes]]]
        capabilities: Mapping[str, Mapping[str, str]]
        floors: tuple[tuple[int, int], ...]
        runs_on: Mapping[str, Mapping[str, frozenset[str]]]


FILE = os.path.join(DATA, "code.bin")
EXTENSIONS = ("vllm", "xformers", "bitsandbytes", "sgl-kernel", "sglang-kernel", "auto-gptq", "autoawq")
"""Packages of ``extension_builds.csv``."""
CONDA = "pytorch"
"""conda's name of torch."""


@record(frozen=True)
class TorchBuild:
    """A torch wheel. ``cuda`` is "" for the CPU; ``default``: it is on the default index; ``known`` is the kind of evidence."""

    machine: str
    cuda: str
    default: bool
    codes: Codes
    ptx: Codes
    known: str


@record(frozen=True)
class ExtensionBuild:
    """A wheel with CUDA code, for a CUDA and built with a torch ("" if unknown); ``known`` is the kind of evidence."""

    machine: str
    cuda: str
    torch: str
    codes: Codes
    ptx: Codes
    known: str


class CodeTables:
    """The tables; releases are keyed as written in the fact files."""

    def __init__(self, tables: Tables) -> None:
        self._wheels = tables["wheels"]
        self._opened: dict[str, Mapping[str, Sequence[Any]]] = {}
        self.triton = tables["triton"]
        self.assemblers = tables["assemblers"]
        """Release of triton → the CUDA release of its assembler, and of that for Blackwell and newer GPUs."""
        self.rocm = tables["rocm"]
        """Release of ROCm → the gfx targets that wheels of torch for it were compiled for, at most."""
        self.rocm_of = tables["rocm_of"]
        """Minor release of torch → the release of ROCm that its stable wheels are for."""
        self.published = tables["published"]
        """Extension → release → the minor releases of torch that wheels outside the index are compiled for, which its setup.py
        downloads."""
        self.published_for = tables["published_for"]
        """Extension → release → the major releases of CUDA and the Pythons of these wheels, where their names have both."""
        self.capabilities = tables["capabilities"]
        self.floors = tables["floors"]
        self._runs = tables["runs_on"]

    def _releases(self, name: str) -> Mapping[str, Sequence[Any]]:
        if name not in self._opened:
            self._opened[name] = marshal.loads(self._wheels[name]) if name in self._wheels else {}
        return self._opened[name]

    @property
    def torch(self) -> Mapping[str, Sequence[TorchRow]]:
        """The releases of torch; :meth:`torch_builds` parses the wheels of one release, which is all a check needs."""
        return self._releases("torch")

    @property
    def conda(self) -> Mapping[str, Sequence[TorchRow]]:
        """The releases in conda's channel ``pytorch``."""
        return self._releases(CONDA)

    @property
    def extensions(self) -> Set[str]:
        """The extensions of which wheels were read."""
        return self._wheels.keys() - {"torch", CONDA}

    def extension(self, name: str) -> Mapping[str, Sequence[ExtensionRow]]:
        """The releases of an extension; see :meth:`extension_builds`."""
        return self._releases(name)

    def torch_builds(self, release: str) -> tuple[TorchBuild, ...]:
        return tuple(TorchBuild(*row) for row in self.torch.get(release, ()))

    def conda_builds(self, release: str) -> tuple[TorchBuild, ...]:
        """Return the builds of a torch release in conda's channel ``pytorch``."""
        return tuple(TorchBuild(*row) for row in self.conda.get(release, ()))

    def extension_builds(self, name: str, version: str, machine: str) -> tuple[ExtensionBuild, ...]:
        """Return the wheels of an extension's release for a machine."""
        builds = (ExtensionBuild(*row) for row in self.extension(name).get(version, ()))
        return tuple(build for build in builds if build.machine == machine)

    def runs(self, capability: str, codes: Codes, ptx: Codes, cuda: str = "") -> bool | None:
        """Whether one of the codes runs on a device; ``None`` if the device is unknown."""
        fitting = self._runs[""].get(capability)
        if fitting is None:
            return None
        if cuda and _pair(cuda) >= (13, 2):
            fitting = fitting | self._runs["13.2"].get(capability, frozenset())
        number = capability.replace(".", "")
        return any(_fits(code, number, fitting) for code in codes) or any(
            int(code) <= int(number) for code in ptx if code.isdecimal()
        )

    @kept
    def cudas_for(self, capability: str) -> frozenset[str]:
        """Return the CUDA releases for which some torch has code for a device."""
        builds = (build for release in self.torch for build in self.torch_builds(release) if build.cuda)
        return frozenset(each.cuda for each in builds if self.runs(capability, each.codes, each.ptx, each.cuda))

    def has_rocm(self, gfx: str | None) -> bool:
        """Whether some wheel of torch for ROCm has code for a target."""
        return any(gfx in targets for targets in self.rocm.values())

    def floor(self, cuda: str) -> int | None:
        """Return the driver branch below which no release of this CUDA major version runs."""
        return dict(self.floors).get(_pair(cuda)[0])


def _fits(code: str, number: str, fitting: frozenset[str]) -> bool:
    plain = code.rstrip("af")
    if code.endswith("a"):
        return plain == number
    if code.endswith("f"):
        return plain[:-1] == number[:-1] and plain <= number
    return code in fitting


def _pair(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


@cached
def open_code_tables() -> CodeTables:
    """Return the tables this package ships, read once."""
    return CodeTables(marshal.loads(read_table(FILE)))
