"""Names of GPUs as drivers report them, as catalogues print them and as people type them, against the shipped tables."""

from __future__ import annotations

import csv
import marshal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.machine.gpu_names import lookup, nearest
from scripts.pack_facts import gpu_table

FACTS = Path(__file__).resolve().parents[2] / "matrix" / "facts"
NVIDIA, AMD = ((FACTS / f"gpus_{vendor}.csv").read_text("utf-8") for vendor in ("nvidia", "amd"))
TABLE = gpu_table(NVIDIA, AMD)
ROWS = [row for text in (NVIDIA, AMD) for row in csv.DictReader(text.splitlines())]


@pytest.mark.parametrize(
    ("name", "capability", "gigabytes"),
    [
        ("NVIDIA A100-SXM4-80GB", "8.0", 80), ("NVIDIA A100-PCIE-40GB", "8.0", 40), ("NVIDIA A100 80GB PCIe", "8.0", 80),
        ("Tesla T4", "7.5", 16), ("Quadro RTX 8000", "7.5", 48), ("NVIDIA RTX A6000", "8.6", 48),
        ("NVIDIA RTX 6000 Ada Generation", "8.9", 48), ("NVIDIA H100 80GB HBM3", "9.0", 80), ("NVIDIA H100 PCIe", "9.0", 80),
        ("NVIDIA H100 NVL", "9.0", 94), ("NVIDIA H200", "9.0", 141), ("Tesla V100-SXM2-32GB", "7.0", 32),
        ("Tesla V100-DGXS-32GB", "7.0", 32), ("Tesla V100S-PCIE-32GB", "7.0", 32), ("NVIDIA GH200 480GB", "9.0", None),
        ("NVIDIA GH200 96GB HBM3", "9.0", 96), ("NVIDIA A800-SXM4-80GB", "8.0", 80), ("NVIDIA H800", "9.0", 80),
        ("NVIDIA H20", "9.0", None), ("NVIDIA L20", "8.9", 48), ("NVIDIA L2", "8.9", 24), ("NVIDIA A10G", "8.6", 24),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", 96),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0", 96),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0", 96), ("NVIDIA GB10", "12.1", None),
        ("NVIDIA GB200", "10.0", 186), ("GB200 NVL72", "10.0", 186), ("NVIDIA B300 SXM6 AC", "10.3", 288),
        ("NVIDIA Jetson AGX Orin", "8.7", None), ("NVIDIA Jetson AGX Orin Developer Kit", "8.7", None),
        ("NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super", "8.7", None), ("Orin (nvgpu)", "8.7", None),
        ("NVIDIA Jetson AGX Thor Developer Kit", "11.0", None), ("GeForce GTX 1060 6GB", "6.1", 6),
        ("Tesla P100-PCIE-16GB", "6.0", 16), ("NVIDIA GeForce RTX 3050", "8.6", None), ("NVIDIA GeForce RTX 4080 SUPER", "8.9", 16),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "8.9", 16), ("GeForce GTX 1650 SUPER", "7.5", 4), ("NVIDIA A16", "8.6", 16),
        ("Tesla K80", "3.7", 12), ("TITAN RTX", "7.5", 24), ("TITAN X (Pascal)", "6.1", 12), ("GeForce GTX TITAN X", "5.2", 12),
        ("GA102 [GeForce RTX 3090]", "8.6", 24), ("NVIDIA GeForce RTX 5090", "12.0", 32),
    ],
)  # fmt: skip
def test_names_that_drivers_report(name: str, capability: str, gigabytes: int | None) -> None:
    match = lookup(TABLE, name)
    assert (match.vendor, match.compute_capability, match.candidates) == ("nvidia", capability, ())
    assert match.memory_mib == (None if gigabytes is None else gigabytes * 1024)


@pytest.mark.parametrize(
    ("name", "capability"),
    [("A100", "8.0"), ("a100", "8.0"), ("RTX 5090", "12.0"), ("4090", "8.9"), ("rtx4090", "8.9"), ("3090ti", "8.6"), ("H100 SXM5", "9.0"),
     ("GTX1080Ti", "6.1"), ("rtx4070tisuper", "8.9"), ("2080 Ti", "7.5"), ("A100-80G", "8.0"), ("A100 80 GB", "8.0"), ("L4", "8.9"),
     ("6000 Ada", "8.9"), ("RTX PRO 6000", "12.0"), ("Quadro A6000", "8.6"), ("DGX Spark", "12.1"), ("V100", "7.0"), ("Orin", "8.7")],
)  # fmt: skip
def test_names_that_people_type(name: str, capability: str) -> None:
    match = lookup(TABLE, name)
    assert (match.vendor, match.compute_capability, match.candidates) == ("nvidia", capability, ())


@pytest.mark.parametrize(
    ("name", "gfx"),
    [("AMD Instinct MI300X", "gfx942"), ("AMD Instinct MI300X OAM", "gfx942"), ("MI300", "gfx942"), ("AMD gfx1151", "gfx1151"),
     ("gfx942:sramecc+:xnack-", "gfx942"), ("Radeon RX 7900 XTX", "gfx1100"), ("AMD Radeon RX 6700 XT", "gfx1031"),
     ("7900xtx", "gfx1100"), ("Navi 31 [Radeon RX 7900 XT/7900 XTX]", "gfx1100"), ("AMD Instinct MI250X / MI250", "gfx90a"),
     ("AMD Ryzen AI Max+ 395 w/ Radeon 8060S", "gfx1151"), ("gfx1250", "gfx1250")],
)  # fmt: skip
def test_names_of_amd_devices(name: str, gfx: str) -> None:
    match = lookup(TABLE, name)
    assert (match.vendor, match.gfx, match.compute_capability, match.candidates) == ("amd", gfx, None, ())
    assert match.names


def test_apple_is_a_vendor_without_capability() -> None:
    match = lookup(TABLE, "Apple M4")
    assert (match.vendor, match.compute_capability, match.gfx, match.names) == ("apple", None, None, ("Apple M4",))


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("RTX 4000", {"Quadro RTX 4000", "RTX 4000 Ada", "RTX 4000 SFF Ada", "RTX PRO 4000 Blackwell", "RTX PRO 4000 Blackwell SFF Edition"}),
        ("NVIDIA RTX 5000", {"Quadro RTX 5000", "RTX 5000 Ada", "RTX PRO 5000 Blackwell"}),
        ("TITAN X", {"TITAN X (Pascal)", "GeForce GTX TITAN X"}),
    ],
)  # fmt: skip
def test_an_ambiguous_name_has_candidates_and_no_capability(name: str, candidates: set[str]) -> None:
    match = lookup(TABLE, name)
    assert match.compute_capability is None
    assert set(match.candidates) == candidates
    assert len({lookup(TABLE, candidate).compute_capability for candidate in candidates}) > 1


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("Quadro RTX 4000", "7.5"),
        ("NVIDIA RTX 4000 Ada Generation", "8.9"),
        ("NVIDIA RTX PRO 4000 Blackwell", "12.0"),
        ("Quadro 4000", "2.0"),
    ],
)
def test_the_full_name_is_not_ambiguous(name: str, capability: str) -> None:
    assert lookup(TABLE, name).compute_capability == capability


@pytest.mark.parametrize(
    ("name", "capability"),
    [("NVIDIA GeForce RTX 50 series", "12.0"), ("NVIDIA GeForce RTX 40 series", "8.9"), ("RTX 30xx", "8.6"), ("GTX 16-series", "7.5"),
     ("NVIDIA GeForce RTX 20 series", None)],
)  # fmt: skip
def test_a_family_has_the_capability_all_its_members_share(name: str, capability: str | None) -> None:
    match = lookup(TABLE, name)
    assert match.vendor == "nvidia"
    assert match.compute_capability == capability  # the RTX 2050 is an Ampere card among Turing's
    assert match.memory_mib is None
    assert all(member.startswith("GeForce") for member in match.names)
    assert bool(match.candidates) == (capability is None)
    assert len(match.names) > 4


def test_a_family_of_several_targets_has_none() -> None:
    match = lookup(TABLE, "Radeon RX 7000 series")
    assert (match.vendor, match.gfx) == ("amd", None)
    assert "Radeon RX 7900 XTX" in match.candidates


@pytest.mark.parametrize(
    "name", ["NVIDIA GeForce RTX 4090 Laptop GPU", "GeForce RTX 2070 with Max-Q Design", "RTX 3080 Mobile"]
)
def test_laptop_parts_share_the_name_but_not_the_memory(name: str) -> None:
    match = lookup(TABLE, name)
    assert match.compute_capability is not None
    assert match.memory_mib is None


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "GRID A100-40C",
        "NVIDIA A10-24Q",
        "GRID T4-16Q",
        "GRID A100D-3-40C MIG 3g.40gb",  # a virtual GPU on a MIG instance
        "GRID V100DX-16Q",
        "NVIDIA H100XM-80C",
        "NVIDIA H200X-141C",
        "NVIDIA L40S-48C",
    ],
)
def test_a_part_of_a_device_has_its_capability_but_not_its_memory(name: str) -> None:
    match = lookup(TABLE, name)
    assert match.compute_capability is not None
    assert match.memory_mib is None


@pytest.mark.parametrize(
    ("name", "capability"),
    [("NVIDIA GeForce RTX 309...", "8.6"), ("NVIDIA GeForce RTX 5070 ...", "12.0"), ("NVIDIA A100-SXM...", "8.0"),
     ("Tesla V100-SXM2...", "7.0"), ("Tesla P100-PCI...", "6.0"), ("NVIDIA RTX PRO 6000 Blac...", "12.0"), ("GeForce RTX 208...", "7.5"),
     ("NVIDIA RTX 6000 Ada Gene...", "8.9"), ("NVIDIA RTX 6000 ...", None), ("NVIDIA GeForce RTX 20...", None), ("NVIDIA GeForce ...", None)],
)  # fmt: skip
def test_names_that_nvidia_smi_has_cut(name: str, capability: str | None) -> None:
    match = lookup(TABLE, name)
    assert match.compute_capability == capability
    assert match.memory_mib is None
    assert match.vendor == "nvidia"


@pytest.mark.parametrize(
    ("name", "vendor"),
    [("NVIDIA RTX 7777", "nvidia"), ("RTX 1080", "nvidia"), ("NVIDIA Graphics Device", "nvidia"), ("AMD Radeon Graphics", "amd"),
     ("Intel Arc A770", "intel"), ("foo", None), ("", None), ("...", None), ("80GB", None), ("A100 B200", None), ("A1000000", None)],
)  # fmt: skip
def test_a_name_nobody_knows_is_unknown(name: str, vendor: str | None) -> None:
    match = lookup(TABLE, name)
    assert match.vendor == vendor
    assert (match.compute_capability, match.gfx, match.memory_mib, match.names, match.candidates) == (None, None, None, (), ())


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RTX 5900", "GeForce RTX 5090"),
        ("A6000 Ada", "RTX 6000 Ada"),
        ("H10O", "H100"),
        ("Mi300z", "Instinct MI300X"),
        ("L40 S", "L40S"),
    ],
)
def test_the_nearest_names_of_a_misspelt_one(name: str, meant: str) -> None:
    assert not lookup(TABLE, name).names
    assert meant in nearest(TABLE, name)


def test_nothing_is_near_to_nonsense() -> None:
    assert nearest(TABLE, "qwertyuiop") == ()


def test_the_table_is_plain_and_survives_marshal() -> None:
    assert marshal.loads(marshal.dumps(TABLE, 4)) == TABLE


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_row_finds_itself_and_says_where_it_is_from(row: dict[str, str]) -> None:
    match = lookup(TABLE, row["name"])
    assert row["name"] in match.names
    assert match.compute_capability == row.get("compute_capability")
    assert match.gfx == row.get("gfx")
    assert row["known"] in ("declared", "curated")
    assert row["source"]
    assert row["date"].count("-") == 2
    for alias in filter(None, row["aliases"].split("; ")):
        assert row["name"] in lookup(TABLE, alias).names


WORDS = st.sampled_from(
    [
        "NVIDIA",
        "RTX",
        "GeForce",
        "4090",
        "A100",
        "80GB",
        "Ti",
        "gfx",
        "50",
        "series",
        "Laptop",
        "[",
        "]",
        "/",
        "...",
        "MIG 1g.5gb",
        "24Q",
    ]
)


@given(st.text() | st.lists(WORDS | st.text(max_size=4)).map(" ".join))
def test_any_text_may_stand_for_a_name(text: str) -> None:
    match = lookup(TABLE, text)
    known = {row[0] for row in TABLE[0]}
    assert match.vendor == "apple" or match.gfx is not None or set(match.names) <= known
    assert set(match.candidates) <= set(match.names)
    assert match.compute_capability is None or not match.candidates


@given(st.sampled_from([row[0] for row in TABLE[0]]), st.sampled_from(["", "NVIDIA ", "nvidia ", "  "]), st.booleans())
def test_brand_and_case_change_nothing(name: str, before: str, lower: bool) -> None:
    written = before + (name.lower() if lower else name)
    assert lookup(TABLE, written).names == lookup(TABLE, name).names
