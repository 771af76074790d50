"""The page "By GPU": which releases have code for which GPU, and the newest combinations per task.

As in the tables of pairs, a cell is the report about an environment with one release and one device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from compat.model import Accelerator, Distribution, Finding
from compat.output.html.page import Child, Html, element, joined
from compat.records import replace
from compat.tables.builds import EXTENSIONS, CodeTables, open_code_tables
from compat.tables.stacks import open_stacks
from scripts.site.frame import Page
from scripts.site.tables import TARGET, Cell, assessed, cell_of, findings, matrix, releases_of, shown, table_of

ON_GPUS = ("torch", "vllm", "flash-attn", "xformers", "bitsandbytes", "sgl-kernel")
ON_AMD = ("flash-attn", "bitsandbytes")
"""Those whose files on the package index are for AMD GPUs, too, at least some releases."""
NVIDIA = (
    ("V100", "7.0"),
    ("T4, RTX 20", "7.5"),
    ("A100", "8.0"),
    ("A10, A40, RTX 30", "8.6"),
    ("L4, L40S, RTX 40", "8.9"),
    ("H100, H200", "9.0"),
    ("B200", "10.0"),
    ("B300", "10.3"),
    ("RTX 50", "12.0"),
    ("DGX Spark", "12.1"),
)
AMD = (
    ("MI50, Radeon VII", "gfx906"),
    ("MI100", "gfx908"),
    ("MI200", "gfx90a"),
    ("MI300", "gfx942"),
    ("MI350", "gfx950"),
    ("RX 6800, RX 6900", "gfx1030"),
    ("RX 6700", "gfx1031"),
    ("RX 7900", "gfx1100"),
    ("RX 7700, RX 7800", "gfx1101"),
    ("RX 7600", "gfx1102"),
    ("Radeon 780M", "gfx1103"),
    ("Radeon 890M", "gfx1150"),
    ("Ryzen AI Max", "gfx1151"),
    ("RX 9060", "gfx1200"),
    ("RX 9070", "gfx1201"),
)


def gpu_page(most: int, workers: int) -> Page:
    """Which releases have code for which GPU."""
    here = "gpus.html"
    parts: list[Child] = [
        element("p", "Which releases have code for a GPU, and what else is known about both."),
        element("h2", "NVIDIA", id="nvidia"),
        element("p", "The wheels of the package index."),
    ]
    for package in ON_GPUS:
        parts += _table(package, releases_of(package, most), _named(NVIDIA), GpuCells(package), workers, here)
    parts += [
        element("h2", "AMD", id="amd"),
        element(
            "p",
            "torch from its own index, by the ROCm it is built for (the index of the folder rocm6.4 has torch 2.9.0+rocm6.4), "
            "without HSA_OVERRIDE_GFX_VERSION, which runs the code of another GPU. On the package index, the wheels of vllm, "
            "xformers and sgl-kernel are for NVIDIA.",
        ),
    ]
    parts += _table("torch for ROCm", sorted(_tables().rocm, key=_number), _named(AMD), RocmCells(), workers, here, "AMD")
    for package in ON_AMD:
        parts += _table(package, releases_of(package, most), _named(AMD), GpuCells(package), workers, here, "AMD")
    parts += [element("h2", "Newest combinations", id="stacks"), *_stacks()]
    return Page(here, "By GPU", joined(parts))


def _named(devices: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{name} ({target})" for name, target in devices]


def _table(
    what: str,
    rows: Sequence[str],
    devices: Sequence[str],
    cells: GpuCells | RocmCells,
    workers: int,
    here: str,
    vendor: str = "NVIDIA",
) -> Iterator[Html]:
    """A heading and its table; nothing where nothing is known."""
    table = table_of(rows, devices, cells, workers, ranged=False)
    if any(cell.state != "unknown" for row in table.cells for cell in row):
        yield element("h3", f"{what} on {vendor}")
        yield shown(table, what, f"{vendor} GPU", here, prefix=f"{vendor}-{what.replace(' ', '-')}-", level=4)


def _stacks() -> Iterator[Html]:
    """What ``compat suggest --list`` prints: the newest releases for a task and a GPU that resolved and were judged clean."""
    yield element("p", "Resolved and judged clean on the day that is given; the command prints all pins for today.")
    head = element("tr", *(element("th", name, scope="col") for name in ("task", "GPU", "newest", "command")))
    rows = []
    for each in open_stacks():
        pins = ", ".join(pin.replace("==", " ") for pin in each.pins.split())
        gpu = f"{each.gpu}, driver {each.driver}" if each.driver else each.gpu
        driver = f" --driver {each.driver}" if each.driver else ""
        command = f'compat suggest --task {each.task} --gpu "{each.gpu}"{driver} --with {each.stack}'
        rows.append(element(
            "tr", element("th", each.task, scope="row"), element("td", gpu),
            element("td", f"{pins} (Python {each.python}, {each.packages} packages, {each.checked})"),
            element("td", element("code", command)),
        ))  # fmt: skip
    grid = element("table", head, *rows)
    yield element("div", grid, class_="scroll", tabindex="0", role="region", aria_label="Newest combinations")


@dataclass(frozen=True)
class GpuCells:
    """What is known of a release on a GPU, which is named with its capability or target: ``A100 (8.0)``, ``MI300 (gfx942)``."""

    package: str

    def __call__(self, row: str, column: str) -> Cell:
        device = _device(column)
        copy = Distribution(self.package, row)
        environment = replace(TARGET, distributions=(copy,), accelerators=(device,))
        if device.vendor == "amd":  # what is known concerns tasks and settings that few have, but no third package
            about = [each for each in _about(findings(environment, "all"), self.package) if len(each.packages) == 1]
            return cell_of(about, assessed=assessed(self.package, row))
        return cell_of(_about(findings(environment), self.package), assessed=_code_is_known(self.package, row))


@dataclass(frozen=True)
class RocmCells:
    """Whether torch for a release of ROCm has code for an AMD GPU."""

    def __call__(self, row: str, column: str) -> Cell:
        copy = Distribution("torch", f"{matrix().newest['torch']}+rocm{row}")
        unset = {"HSA_OVERRIDE_GFX_VERSION": None}
        found = findings(replace(TARGET, distributions=(copy,), accelerators=(_device(column),), variables=unset))
        # what a rule says is about one release of torch, and a row holds for all that are built for this ROCm
        return cell_of([each for each in _about(found, "torch") if each.origin == "build"], assessed=True)


def _device(column: str) -> Accelerator:
    target = column.rpartition("(")[2].rstrip(")")
    if target.startswith("gfx"):
        return Accelerator(vendor="amd", gfx=target)
    return Accelerator(vendor="nvidia", compute_capability=target)


def _about(found: Sequence[Finding], package: str) -> list[Finding]:
    return [each for each in found if package in each.packages and "accelerators" in each.facts]


@cache
def _tables() -> CodeTables:
    return open_code_tables()


def _code_is_known(name: str, version: str) -> bool:
    return version in (_tables().torch if name == "torch" else _tables().extension(name)) or (
        name not in ("torch", *EXTENSIONS) and assessed(name, version)
    )


def _number(rocm: str) -> tuple[int, ...]:
    return tuple(map(int, rocm.split(".")))
