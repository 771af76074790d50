"""The CUDA toolkit from its files, and the newest CUDA of a driver from the table of toolkit drivers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.machine.system import read_toolkit, toolkit_version
from compat.tables.hardware import newest_cuda
from scripts.pack_facts import driver_table

FACTS = Path(__file__).resolve().parents[2] / "matrix" / "facts"
TABLE = driver_table((FACTS / "cuda_driver.csv").read_text("utf-8"))

VERSION_JSON = '{\n   "cuda" : {\n      "name" : "CUDA SDK",\n      "version" : "%s"\n   },\n   "cuda_cccl" : {\n      "version" : "99.9"\n   }\n}\n'
HEADER = "/* licence */\n/** CUDA Runtime API Version */\n#define CUDART_VERSION  %s\n"


def toolkit(root: Path, path: str, **files: str) -> Path:
    folder = root / path.lstrip("/")
    for name, text in files.items():
        file = folder / {"json": "version.json", "txt": "version.txt", "header": "include/cuda_runtime_api.h"}[name]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize(
    ("written", "expected"), [("12.4.1", "12.4"), ("12.1.20230222", "12.1"), ("13.0.3", "13.0"), ("x", None)]
)
def test_the_version_file_of_a_toolkit(tmp_path: Path, written: str, expected: str | None) -> None:
    assert toolkit_version(str(toolkit(tmp_path, "cuda", json=VERSION_JSON % written))) == expected


def test_older_and_partial_toolkits(tmp_path: Path) -> None:
    assert toolkit_version(str(toolkit(tmp_path, "a", txt="CUDA Version 10.2.89\n"))) == "10.2"
    assert toolkit_version(str(toolkit(tmp_path, "b", header=HEADER % "12080"))) == "12.8"
    assert toolkit_version(str(toolkit(tmp_path, "c", header=HEADER % "(wrong)"))) is None
    assert toolkit_version(str(toolkit(tmp_path, "cuda-11.8"))) == "11.8"
    assert toolkit_version(str(toolkit(tmp_path, "cuda-none"))) is None
    assert toolkit_version(str(tmp_path / "absent")) is None


def test_a_variable_decides_alone(tmp_path: Path) -> None:
    toolkit(tmp_path, "/usr/local/cuda", json=VERSION_JSON % "12.4.1")
    toolkit(tmp_path, "/usr/lib/cuda", json=VERSION_JSON % "13.0.3")
    assert read_toolkit({"CUDA_HOME": "/usr/lib/cuda", "CUDA_PATH": "/usr/local/cuda"}, str(tmp_path)) == ("13.0", None)
    assert read_toolkit({"CUDA_PATH": "/usr/local/cuda"}, str(tmp_path)) == ("12.4", None)
    version, note = read_toolkit({"CUDA_HOME": "/srv/gone"}, str(tmp_path))
    assert version is None
    assert note is not None
    assert "CUDA_HOME" in note
    assert "/srv/gone" in note


def test_then_nvcc_then_the_usual_place(tmp_path: Path) -> None:
    assert read_toolkit({}, str(tmp_path)) == (None, None)
    toolkit(tmp_path, "/usr/local/cuda", json=VERSION_JSON % "12.4.1")
    assert read_toolkit({"PATH": "/usr/bin"}, str(tmp_path)) == ("12.4", None)
    folder = toolkit(tmp_path, "/usr/lib/cuda-12.8", json=VERSION_JSON % "12.8.0")
    (folder / "bin").mkdir()
    (folder / "bin/nvcc").write_text("")
    (folder / "bin/nvcc").chmod(0o755)
    assert read_toolkit({"PATH": "/usr/bin:/usr/lib/cuda-12.8/bin"}, str(tmp_path)) == ("12.8", None)
    (tmp_path / "usr/bin").mkdir()
    (tmp_path / "usr/bin/nvcc").symlink_to(folder / "bin/nvcc")
    assert read_toolkit({"PATH": "/usr/bin"}, str(tmp_path)) == ("12.8", None)


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [("550.54.15", "12.4"), ("550.54.14", "12.4"), ("550.54.13", "12.3"), ("535.129.03", "12.2"), ("525.60.13", "12.0"),
     ("580.65.06", "13.0"), ("580.65.05", "12.9"), ("610.43.02", "13.3"), ("470.82.01", "11.4"), ("440.33", "10.2"),
     ("418.87", None), ("999.1", "13.4"), ("550", "12.4"), ("580", "13.0"), ("", None), ("new", None)],
)  # fmt: skip
def test_the_newest_cuda_of_a_driver_on_linux(driver: str, cuda: str | None) -> None:
    assert newest_cuda(driver, TABLE) == cuda


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [("572.42", "12.8"), ("570.65", "12.8"), ("570.64", "12.6"), ("561.17", "12.6"), ("528.33", "12.0"), ("581.15", "13.0")],
)
def test_the_newest_cuda_of_a_driver_on_windows(driver: str, cuda: str) -> None:
    assert newest_cuda(driver, TABLE, windows=True) == cuda


def test_the_table_is_newest_first_and_has_every_minor_once() -> None:
    minors = [row[0] for row in TABLE]
    assert minors == sorted(set(minors), reverse=True)
    assert all(row[1] is not None for row in TABLE)
    drivers = [row[1] for row in TABLE]
    assert drivers == sorted(drivers, key=lambda version: version or (), reverse=True)


@given(st.text() | st.from_regex(r"\d{1,4}(\.\d{1,3}){0,3}", fullmatch=True))
def test_any_text_may_stand_for_a_driver(text: str) -> None:
    assert newest_cuda(text, TABLE) in {None, *(f"{cuda[0]}.{cuda[1]}" for cuda, _, _ in TABLE)}


@given(st.tuples(st.integers(400, 700), st.integers(0, 200), st.integers(0, 20)), st.integers(0, 50))
def test_a_newer_driver_never_supports_less(driver: tuple[int, int, int], later: int) -> None:
    older = newest_cuda(".".join(map(str, driver)), TABLE)
    newer = newest_cuda(".".join(map(str, (driver[0] + later, *driver[1:]))), TABLE)
    if older is not None:
        assert newer is not None
        assert [int(part) for part in newer.split(".")] >= [int(part) for part in older.split(".")]
