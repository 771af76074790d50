"""AMD devices from the kernel's topology files, in trees as the kernel lays them out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.machine.hardware import gfx_of, parse_properties, read_amd
from compat.model import Accelerator

CPU = "cpu_cores_count 32\nsimd_count 0\nmem_banks_count 1\ngfx_target_version 0\nvendor_id 0\n"
NODES = "sys/class/kfd/kfd/topology/nodes"


def node(root: Path, number: int, target: int, banks: tuple[tuple[int, int], ...] = (), minor: int | None = None) -> None:
    """A GPU's node; ``banks`` are (heap type, bytes)."""
    folder = root / NODES / str(number)
    folder.mkdir(parents=True)
    render = "" if minor is None else f"drm_render_minor {minor}\n"
    (folder / "properties").write_text(
        f"cpu_cores_count 0\nsimd_count 1216\ngfx_target_version {target}\nvendor_id 4098\n{render}"
    )
    for position, (heap, size) in enumerate(banks):
        bank = folder / "mem_banks" / str(position)
        bank.mkdir(parents=True)
        (bank / "properties").write_text(f"heap_type {heap}\nsize_in_bytes {size}\nflags 0\nwidth 8192\n")


def processor(root: Path) -> None:
    folder = root / NODES / "0"
    folder.mkdir(parents=True)
    (folder / "properties").write_text(CPU)


@pytest.mark.parametrize(
    ("target", "gfx"),
    [("90402", "gfx942"), ("90010", "gfx90a"), ("90500", "gfx950"), ("100300", "gfx1030"), ("110000", "gfx1100"),
     ("110501", "gfx1151"), ("120001", "gfx1201"), ("90012", "gfx90c"), ("0", None), ("", None), ("-1", None), ("x", None)],
)  # fmt: skip
def test_the_kernels_number_as_a_target_name(target: str, gfx: str | None) -> None:
    assert gfx_of(target) == gfx


def test_every_gpu_in_the_kernels_order_with_its_own_memory(tmp_path: Path) -> None:
    processor(tmp_path)
    node(tmp_path, 2, 90402, ((1, 192 << 30),))
    node(tmp_path, 10, 90402, ((1, 64 << 30), (2, 128 << 30)))
    assert read_amd(str(tmp_path)) == (
        Accelerator(vendor="amd", name="AMD gfx942", gfx="gfx942", memory_mib=192 * 1024),
        Accelerator(vendor="amd", name="AMD gfx942", gfx="gfx942", memory_mib=192 * 1024),
    )


def test_the_boards_own_name_where_it_has_one(tmp_path: Path) -> None:
    node(tmp_path, 1, 90402, minor=129)
    file = tmp_path / "sys/class/drm/renderD129/device/product_name"
    file.parent.mkdir(parents=True)
    file.write_text("AMD Instinct MI300X OAM\n")
    assert [device.name for device in read_amd(str(tmp_path))] == ["AMD Instinct MI300X OAM"]


def test_memory_shared_with_the_processor_is_unknown(tmp_path: Path) -> None:
    node(tmp_path, 1, 110501, ((1, 512 << 20),))
    assert [device.memory_mib for device in read_amd(str(tmp_path))] == [None]


def test_memory_of_the_host_is_not_the_devices(tmp_path: Path) -> None:
    node(tmp_path, 1, 110000, ((0, 256 << 30),))
    assert [device.memory_mib for device in read_amd(str(tmp_path))] == [None]


def test_a_node_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / NODES / "1").mkdir(parents=True)
    node(tmp_path, 2, 100300)
    assert [device.gfx for device in read_amd(str(tmp_path))] == ["gfx1030"]


def test_no_driver_no_device(tmp_path: Path) -> None:
    assert read_amd(str(tmp_path)) == ()
    processor(tmp_path)
    assert read_amd(str(tmp_path)) == ()


@given(st.text())
def test_properties_are_pairs_whatever_the_text(text: str) -> None:
    for name, value in parse_properties(text).items():
        assert name.split() == [name]
        assert value.split() == [value]


@given(st.text(max_size=12))
def test_any_text_may_stand_for_the_target(text: str) -> None:
    gfx = gfx_of(text)
    assert gfx is None or gfx.startswith("gfx")
