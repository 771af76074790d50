"""The machine a plan is for: markers, wheels' tags, Requires-Python, and its name for uv."""

from __future__ import annotations

import pytest
from packaging.markers import Marker

from compat.errors import InputError
from compat.model import Environment
from compat.repair.target import Need, Target, satisfies

LINUX = Target(Environment(python="3.11.9", os="linux", machine="x86_64", glibc="2.31"))
MAC = Target(Environment(python="3.12", os="darwin", machine="arm64"))
WINDOWS = Target(Environment(python="3.10.4", os="windows"))


def test_without_a_python_there_is_no_target() -> None:
    with pytest.raises(InputError, match="--python-version"):
        Target(Environment(os="linux"))


@pytest.mark.parametrize(
    ("marker", "where"),
    [
        ("sys_platform == 'linux'", (True, False, False)),
        ("platform_system == 'Darwin' and platform_machine == 'arm64'", (False, True, False)),
        ("os_name == 'nt'", (False, False, True)),
        ("python_version < '3.11'", (False, False, True)),
        ("python_full_version >= '3.11.9'", (True, True, False)),
        ("python_full_version >= '3.12.1'", (False, False, False)),  # of 3.12 the least is known
        ("platform_python_implementation == 'CPython'", (True, True, True)),
        ("extra == 'gpu'", (False, False, False)),
    ],
)
def test_markers(marker: str, where: tuple[bool, bool, bool]) -> None:
    assert tuple(target.holds(Marker(marker)) for target in (LINUX, MAC, WINDOWS)) == where


@pytest.mark.parametrize(
    ("tags", "where"),
    [
        ("py3-none-any", (True, True, True)),
        ("py2.py3-none-any", (True, True, True)),
        ("py2-none-any", (False, False, False)),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", (True, False, False)),
        ("cp311-cp311-manylinux_2_31_x86_64", (True, False, False)),
        ("cp311-cp311-manylinux_2_34_x86_64", (False, False, False)),
        ("cp311-cp311-manylinux1_x86_64", (True, False, False)),
        ("cp311-cp311-linux_x86_64", (True, False, False)),
        ("cp311-cp311-musllinux_1_2_x86_64", (False, False, False)),
        ("cp311-cp311-manylinux_2_17_aarch64", (False, False, False)),
        ("cp38-abi3-manylinux_2_17_x86_64", (True, False, False)),
        ("cp312-abi3-manylinux_2_17_x86_64", (False, False, False)),
        ("cp312-cp312-manylinux_2_17_x86_64", (False, False, False)),
        ("cp312-cp312-macosx_11_0_arm64", (False, True, False)),
        ("cp312-cp312-macosx_10_9_universal2", (False, True, False)),
        ("cp312-cp312-macosx_10_9_x86_64", (False, False, False)),
        ("cp310-cp310-win_amd64", (False, False, True)),
        ("cp310-cp310-win32", (False, False, False)),
        ("foo-none-any", (False, False, False)),
    ],
)
def test_tags(tags: str, where: tuple[bool, bool, bool]) -> None:
    python, abi, platform = tags.split("-")
    assert tuple(target.takes((python, abi, platform)) for target in (LINUX, MAC, WINDOWS)) == where


@pytest.mark.parametrize(
    ("specifier", "where"),
    [
        (None, (True, True, True)),
        (">=3.9", (True, True, True)),
        (">=3.11.4", (True, True, False)),
        (">=3.12.1", (False, False, False)),
        ("<3.12", (True, False, True)),
        (">=3.8,!=3.11.9", (False, True, True)),
        ("not a specifier", (True, True, True)),
    ],
)
def test_requires_python(specifier: str | None, where: tuple[bool, bool, bool]) -> None:
    assert tuple(target.accepts_python(specifier) for target in (LINUX, MAC, WINDOWS)) == where


def test_needs_are_those_that_apply() -> None:
    texts = (
        "Numpy >= 1.24", "triton==3.2.0; platform_system == 'Linux' and platform_machine == 'x86_64'",
        "pywin32; sys_platform == 'win32'", "Ray[Default,cgraph]>=2.9; extra == 'ray'", "flash_attn @ https://index.example/f.whl",
        "deepspeed; extra == 'all' or extra == 'Deep_Speed'", "not a requirement!",
    )  # fmt: skip
    assert LINUX.needs(texts) == (Need("numpy", ">=1.24", ()), Need("triton", "==3.2.0", ()), Need("flash-attn", "", ()))
    found = LINUX.needs_by_extra(texts)
    assert found["ray"] == (Need("ray", ">=2.9", ("cgraph", "default")),)
    assert found["all"] == found["deep-speed"] == (Need("deepspeed", "", ()),)
    assert [need.name for need in WINDOWS.needs(texts)] == ["numpy", "pywin32", "flash-attn"]


def test_a_need_is_told_as_a_requirement() -> None:
    assert Need("ray", ">=2.9", ("cgraph", "default")).text == "ray[cgraph,default]>=2.9"


@pytest.mark.parametrize(
    ("version", "specifier", "expected"),
    [
        ("2.6.0+cu124", "==2.6.0", True),
        ("2.6.0", "==2.6.0+cu124", False),
        ("2.6.0+cu124", "==2.6.0+cu124", True),
        ("2.6.0+cu124", ">2.6.0", False),
        ("2.6.0+cu124", "<=2.6.0", True),
        ("1.0.post1", "==1.0", False),
        ("1.0.post1", ">1.0", False),
        ("1.0.post1", ">=1.0", True),
        ("2.0rc1", ">=1.0", True),  # pre-releases were sorted out before
        ("2.0rc1", "<2.0", False),
        ("1.0", "===1.0", True),
        ("1.0.0", "===1.0", False),
        ("1.0", "nonsense", True),
    ],
)
def test_specifiers(version: str, specifier: str, expected: bool) -> None:
    assert satisfies(version, specifier) is expected


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        (Environment(python="3.11", os="linux", machine="x86_64", glibc="2.35"), "x86_64-manylinux_2_35"),
        (Environment(python="3.11", os="linux", machine="aarch64", glibc="2.29"), "aarch64-manylinux_2_28"),
        (Environment(python="3.11", os="linux", glibc="2.12"), "x86_64-manylinux_2_17"),
        (Environment(python="3.11", os="darwin", machine="arm64"), "aarch64-apple-darwin"),
        (Environment(python="3.11", os="windows"), "x86_64-pc-windows-msvc"),
    ],
)
def test_platforms_of_uv(environment: Environment, name: str) -> None:
    assert Target(environment).uv_platform == name
