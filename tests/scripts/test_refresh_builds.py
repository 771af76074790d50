"""``python -m scripts.refresh`` against an index on this machine: tables of compiled code, read by ranges."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("remotezip", reason="needs the extra 'maintain'")
pytest.importorskip("pypi_simple", reason="needs the extra 'maintain'")

from scripts.refresh import __main__ as program
from scripts.refresh import index
from scripts.refresh.updates import Request
from scripts.refresh.wheel import PIECE
from tests.index.server import IndexServer
from tests.scripts.compiled_wheels import fatbin, library, publish

Run = Callable[..., int]
HEADERS = {
    "extension_builds": "package,version,machine,cuda,torch,sm,ptx,known,source,date",
    "torch_builds": "torch,machine,cuda,default,sm,ptx,known,source,date",
    "triton_gpus": "triton,sm,cuda,blackwell,known,source,date",
}
AARCH64 = "cp310-cp310-manylinux_2_28_aarch64"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexServer]:
    with IndexServer({}) as started:
        monkeypatch.setenv("UV_DEFAULT_INDEX", started.url)
        monkeypatch.setattr(index.time, "sleep", lambda _: None)
        yield started


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(table: str, *words: str, rows: tuple[str, ...] | None = None) -> int:
        if rows is not None:
            (tmp_path / f"{table}.csv").write_text("\n".join([HEADERS[table], *rows]) + "\n", encoding="utf-8")
        return program.main(["--table", table, "--facts", str(tmp_path), *words])

    return call


@pytest.fixture
def rows(tmp_path: Path) -> Callable[[str], list[str]]:
    """The rows of a table without their source and date."""
    return lambda table: [
        line.split(",read,")[0].split(",declared,")[0]
        for line in (tmp_path / f"{table}.csv").read_text(encoding="utf-8").splitlines()[1:]
    ]


def vllm(server: IndexServer, version: str, *codes: str, noise: int = 0) -> str:
    return publish(server, "vllm", version, {"vllm/_C.abi3.so": library(*[fatbin(*codes)] * 3, cuda="12", noise=noise)})


OLD = "vllm,0.9.0,x86_64,12,,70 80 90,,read,a wheel,2026-01-01"


@pytest.mark.parametrize(("told", "metadata"), list(itertools.product((True, False), repeat=2)))
def test_a_new_release_is_added_in_its_place(
    server: IndexServer, run: Run, rows: Any, capsys: pytest.CaptureFixture[str], *, told: bool, metadata: bool
) -> None:
    server.json, server.metadata = told, metadata
    vllm(server, "0.9.0", "70", "80", "90")
    name = vllm(server, "0.10.0", "80", "90", "90a", "120f", "+120")
    assert run("extension_builds", "--package", "vllm", rows=("auto-gptq,0.7.1,x86_64,,,80,,read,a wheel,2026-01-01", OLD)) == 0
    assert rows("extension_builds") == [
        "auto-gptq,0.7.1,x86_64,,,80,",
        "vllm,0.9.0,x86_64,12,,70 80 90,",
        "vllm,0.10.0,x86_64,12,,80 90 120f,120",
    ]
    printed = capsys.readouterr()
    assert "@@ -3,0 +4 @@\n+vllm,0.10.0,x86_64,12,,80 90 120f,120,read," in printed.out
    assert f"{name}: fatbin headers of _C.abi3.so" in printed.out
    assert "1 releases read, 1 again" in printed.err
    assert run("extension_builds", "--package", "vllm") == 0
    assert capsys.readouterr().out == ""


def test_only_what_tells_is_fetched(server: IndexServer, run: Run, rows: Any, capsys: pytest.CaptureFixture[str]) -> None:
    members = {
        "vllm/weights.bin": Random(0).randbytes(1 << 22),
        "vllm/_C_stable_libtorch.abi3.so": library(fatbin("80"), cuda="13"),
        "vllm/_C.abi3.so": library(fatbin("70"), noise=1 << 20),
    }
    name = publish(server, "vllm", "0.10.0", members)
    assert run("extension_builds", "--package", "vllm", rows=()) == 0
    assert rows("extension_builds") == ["vllm,0.10.0,x86_64,13,,80,"]
    fetched = [request for request in server.requests if name in request]
    assert fetched
    assert all("bytes=" in request for request in fetched)
    assert "refresh: 0.1 MiB of wheels received" in capsys.readouterr().err


def test_an_old_row_that_reads_differently_stops_it_all(
    server: IndexServer, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vllm(server, "0.9.0", "80")
    vllm(server, "0.10.0", "80")
    assert run("extension_builds", "--package", "vllm", rows=(OLD,)) == 1
    assert (tmp_path / "extension_builds.csv").read_text(encoding="utf-8").splitlines()[1:] == [OLD]
    printed = capsys.readouterr()
    assert (
        "refresh: an old row differs: extension_builds.csv: vllm, 0.9.0, x86_64, 12: sm was '70 80 90' and is '80'"
        in printed.err
    )
    assert printed.out == ""


def test_the_old_rows_that_are_read_again_change_from_day_to_day(server: IndexServer, tmp_path: Path) -> None:
    versions = [f"0.{number}.0" for number in range(5, 9)]
    names = {vllm(server, version, "80"): version for version in versions}
    rows = [f"vllm,{version},x86_64,12,,80,,read,a wheel,2026-01-01" for version in versions]
    (tmp_path / "extension_builds.csv").write_text("\n".join([HEADERS["extension_builds"], *rows]) + "\n", encoding="utf-8")
    seen = set()
    for day in range(1, 5):
        server.requests.clear()
        assert program.refresh(tmp_path, ["extension_builds"], Request(("vllm",), f"2026-01-0{day}"), check=True) == 0
        seen.add(frozenset(names[name] for name in names if any(name in request for request in server.requests)))
    assert seen == {frozenset({version}) for version in versions}


def test_what_the_budget_does_not_cover_is_named_and_left_out(
    server: IndexServer, run: Run, rows: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    name = vllm(server, "0.10.0", "80", noise=3 << 20)
    vllm(server, "0.11.0", "80")
    assert run("extension_builds", "--package", "vllm", "--budget", "2", rows=(OLD,)) == 0
    assert rows("extension_builds") == ["vllm,0.9.0,x86_64,12,,70 80 90,", "vllm,0.11.0,x86_64,12,,80,"]
    assert (
        f"refresh: not read: vllm 0.10.0: {name}: vllm/_C.abi3.so would take 3.0 MiB, and 1.9 of 2.0 are left"
        in capsys.readouterr().err
    )
    assert (
        run(
            "extension_builds",
            "--package",
            "vllm",
            "--gaps",
            "1",
            rows=(OLD, "vllm,0.11.0,x86_64,12,,80,,read,a wheel,2026-01-01"),
        )
        == 0
    )
    assert "vllm,0.10.0,x86_64,12,,80," in rows("extension_builds")


def test_check_writes_nothing(server: IndexServer, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vllm(server, "0.10.0", "80")
    assert run("extension_builds", "--package", "vllm", "--check", rows=(OLD,)) == 1
    assert "+vllm,0.10.0,x86_64,12,,80" in capsys.readouterr().out
    assert (tmp_path / "extension_builds.csv").read_text(encoding="utf-8").splitlines()[1:] == [OLD]
    assert list(tmp_path.iterdir()) == [tmp_path / "extension_builds.csv"]
    assert run("extension_builds", "--package", "xgrammar", "--check") == 0


def test_inferences_give_way_and_do_not_change(
    server: IndexServer, run: Run, rows: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("0.8.0", "0.9.0", "0.10.0"):
        vllm(server, version, "80")
    empty = "vllm,0.8.0,x86_64,,,,,inferred,not read,2026-01-01"
    same, other = (f"vllm,0.9.0,x86_64,12,,{sm},,inferred,as its neighbours,2026-01-01" for sm in ("80", "70 80"))
    last = "vllm,0.10.0,x86_64,12,,80,,read,a wheel,2026-01-01"
    assert run("extension_builds", "--package", "vllm", rows=(empty, other, last)) == 0
    assert "inferred" in rows("extension_builds")[0]
    assert run("extension_builds", "--package", "vllm", "--gaps", "9", rows=(empty, same, last)) == 0
    assert rows("extension_builds") == ["vllm,0.8.0,x86_64,12,,80,", "vllm,0.9.0,x86_64,12,,80,", "vllm,0.10.0,x86_64,12,,80,"]
    assert run("extension_builds", "--package", "vllm", "--release", "0.9.0", rows=(empty, other, last)) == 1
    assert "sm was '70 80' and is '80'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "message"),
    [("no archive", "is no archive that can be read"), ("no ranges", "range"), ("no code", "no code for GPUs in vllm/_C.abi3.so"), ("500", "")],
)  # fmt: skip
def test_what_cannot_be_read_is_named(
    server: IndexServer, run: Run, rows: Any, capsys: pytest.CaptureFixture[str], fault: str, message: str
) -> None:
    name = vllm(server, "0.10.0", "80") if fault != "no code" else vllm(server, "0.10.0")
    if fault == "no archive":
        server.files[name].body = b"no wheel" * 20000  # type: ignore[misc]
    elif fault == "500":
        server.faults[name] = fault
    server.ranges = fault != "no ranges"
    assert run("extension_builds", "--package", "vllm", rows=(OLD,)) == 0
    assert rows("extension_builds") == ["vllm,0.9.0,x86_64,12,,70 80 90,"]
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("refresh: not read: vllm 0.10.0: ")]
    assert len(told) == 1
    assert message in told[0]


def test_a_connection_that_breaks_is_tried_again(server: IndexServer, run: Run, rows: Any) -> None:
    server.faults[vllm(server, "0.10.0", "80")] = "once-500"
    assert run("extension_builds", "--package", "vllm", rows=(OLD,)) == 0
    assert rows("extension_builds")[-1] == "vllm,0.10.0,x86_64,12,,80,"


def test_without_an_index_nothing_is_written(server: IndexServer, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    server.faults["vllm"] = "500"
    assert run("extension_builds", "--package", "vllm", rows=(OLD,)) == 1
    assert capsys.readouterr().err.startswith("refresh: vllm: HTTPError")


BITSANDBYTES = {
    "bitsandbytes/libbitsandbytes_cuda118.so": library(*[fatbin("75", "80")] * 3),
    "bitsandbytes/libbitsandbytes_cuda118_nocublaslt.so": library(*[fatbin("50", "75", "80")] * 3),
    "bitsandbytes/libbitsandbytes_cuda130.so": library(*[fatbin("80", "120", "+120")] * 3, noise=3 << 19),
    "bitsandbytes/libbitsandbytes_cuda132.dll": b"",
    "bitsandbytes/libbitsandbytes_rocm72.so": b"",
}


def test_a_library_for_each_cuda(server: IndexServer, run: Run, rows: Any, capsys: pytest.CaptureFixture[str]) -> None:
    publish(server, "bitsandbytes", "0.50.0", BITSANDBYTES)
    assert run("extension_builds", "--package", "bitsandbytes", "--budget", "1", rows=()) == 0
    assert rows("extension_builds") == ["bitsandbytes,0.50.0,x86_64,11.8,,50 75 80,", "bitsandbytes,0.50.0,x86_64,13.0,,,"]
    assert "not read: bitsandbytes 0.50.0: code for CUDA 13.0 is behind the budget" in capsys.readouterr().err
    assert run("extension_builds", "--package", "bitsandbytes", "--gaps", "1") == 0
    assert rows("extension_builds") == [
        "bitsandbytes,0.50.0,x86_64,11.8,,50 75 80,",
        "bitsandbytes,0.50.0,x86_64,13.0,,80 120,120",
    ]
    assert run("extension_builds", "--package", "bitsandbytes", "--budget", "1") == 0
    assert rows("extension_builds")[1] == "bitsandbytes,0.50.0,x86_64,13.0,,80 120,120"


def test_a_library_that_is_gone_is_an_old_row_that_differs(
    server: IndexServer, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(server, "bitsandbytes", "0.50.0", BITSANDBYTES)
    names = "bitsandbytes,0.50.0,x86_64,12.9,,,,read,names of its libraries,2026-01-01"
    assert run("extension_builds", "--package", "bitsandbytes", "--gaps", "1", rows=(names,)) == 1
    assert "bitsandbytes, 0.50.0, x86_64, 12.9: gone" in capsys.readouterr().err


def record(**changes: Any) -> str:
    whole = {"version": {"cuda": 1208, "torch": "2.10.0+cu128"}, "env": {"TORCH_CUDA_ARCH_LIST": "7.5 8.0+PTX 9.0a"}}
    return json.dumps({**whole, **changes})


def test_a_record_of_the_build(server: IndexServer, run: Run, rows: Any, capsys: pytest.CaptureFixture[str]) -> None:
    publish(server, "xformers", "0.0.35", {"xformers/cpp_lib.json": record()})
    publish(server, "xformers", "0.0.36", {"xformers/cpp_lib.json": record(env={"TORCH_CUDA_ARCH_LIST": None})})
    publish(server, "xformers", "0.0.37", {"xformers/_C.so": b""})
    old = "xformers,0.0.34,x86_64,12.8,2.10.0+cu128,75,,read,a wheel,2026-01-01"
    assert run("extension_builds", "--package", "xformers", rows=(old,)) == 0
    assert rows("extension_builds")[1:] == ["xformers,0.0.35,x86_64,12.8,2.10.0+cu128,75 80 90a,80"]
    told = capsys.readouterr().err
    assert "not read: xformers 0.0.36: " in told
    assert "cpp_lib.json is not as expected" in told
    assert "xformers_0" not in told
    assert (
        "not read: xformers 0.0.37: xformers-0.0.37-cp310-cp310-manylinux_2_28_x86_64.whl: holds no xformers/cpp_lib.json"
        in told
    )


def test_the_smallest_library_that_tells_and_wheels_without_any(server: IndexServer, run: Run, rows: Any) -> None:
    publish(server, "sgl-kernel", "0.3.20", {
        "sgl_kernel/sm90/common_ops.abi3.so": library(fatbin("80"), noise=3 << 19), "sgl_kernel/spatial_ops.abi3.so": library(fatbin("80", "100a")),
    })  # fmt: skip
    publish(server, "sgl-kernel", "0.3.21", {"sgl_kernel/__init__.py": ""})
    publish(server, "autoawq", "0.2.0", {
        "awq_inference_engine.cpython-310.so": library(fatbin("75", "80")), "ft_inference_engine.cpython-310.so": library(fatbin("80", "90")),
    })  # fmt: skip
    old = ("autoawq,0.1.8,x86_64,,,75,,read,a wheel,2026-01-01", "sgl-kernel,0.3.19,x86_64,,,80,,read,a wheel,2026-01-01")
    assert run("extension_builds", "--package", "sgl-kernel", "--package", "autoawq", "--budget", "1", rows=old) == 0
    assert rows("extension_builds") == [
        "autoawq,0.1.8,x86_64,,,75,",
        "autoawq,0.2.0,x86_64,,,80,",
        "sgl-kernel,0.3.19,x86_64,,,80,",
        "sgl-kernel,0.3.20,x86_64,,,80 100a,",
    ]


def torch(server: IndexServer, version: str, cuda: str, flags: str, machine: str, table: str = "") -> str:
    members: dict[str, bytes | str] = {
        "torch/version.py": f"from typing import Optional\n__version__ = '{version}'\ncuda: Optional[str] = {cuda}\n",
        "torch/cuda/__init__.py": table or "raise SystemExit('nothing that is fetched is run')\n",
        "torch/lib/libtorch_python.so": b"\0sm_90\0"
        + b"_ipc_h" * 43688
        + flags.encode()
        + b"\0"
        + Random(0).randbytes(3 << 20),
    }
    return publish(server, "torch", version, members, f"cp310-cp310-manylinux_2_28_{machine}")


def test_torch_for_each_machine_and_what_it_declares(
    server: IndexServer, run: Run, rows: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    torch(server, "2.10.0", "'12.8'", "sm_70 sm_120 compute_120", "x86_64")
    torch(server, "2.10.0", "None", "", "aarch64")
    table = (
        "PYTORCH_RELEASES_CODE_CC: dict = {'12.6': {90, 50}, '13.0': {75, 110}, '13.2': {'x86_64': {75, 120}, 'aarch64': {80}}}"
    )
    name = torch(server, "2.11.0", "'13.0'", "sm_75 sm_120", "x86_64", table)
    old = (
        "2.9.0,x86_64,12.8,yes,70,,read,a wheel,2026-01-01",
        "2.9.0,x86_64,13.0,,75,,curated,a script,2026-01-01",
    )
    assert run("torch_builds", rows=old) == 0
    assert rows("torch_builds")[2:] == [
        "2.10.0,aarch64,,yes,,",
        "2.10.0,x86_64,12.8,yes,70 120,120",
        "2.11.0,aarch64,12.6,,50 90,",
        "2.11.0,aarch64,13.0,,75 110,",
        "2.11.0,aarch64,13.2,,80,",
        "2.11.0,x86_64,12.6,,50 90,",
        "2.11.0,x86_64,13.0,yes,75 120,",
        "2.11.0,x86_64,13.2,,75 120,",
    ]
    assert f"{name} libtorch_python.so@262135 sha256={server.files[name].sha256[:16]}" in capsys.readouterr().out
    assert run("torch_builds", "--again", "9") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("cuda", "flags", "table", "message"),
    [
        ("'13.0'", "no list", "", "no list of architectures in torch/lib/libtorch_python.so"),
        ("open('x')", "sm_75 sm_80", "", "cuda is no plain value"),
        ("'13.0'", "sm_75 sm_80", "PYTORCH_RELEASES_CODE_CC = made()", "PYTORCH_RELEASES_CODE_CC is no plain value"),
        ("'13.0'", "sm_75 sm_80", "PYTORCH_RELEASES_CODE_CC = {12: 3}", "PYTORCH_RELEASES_CODE_CC is not as expected"),
    ],
)
def test_a_torch_that_does_not_tell(
    server: IndexServer,
    run: Run,
    rows: Any,
    capsys: pytest.CaptureFixture[str],
    cuda: str,
    flags: str,
    table: str,
    message: str,
) -> None:
    torch(server, "2.11.0", cuda, flags, "x86_64", table)
    assert run("torch_builds", rows=("2.9.0,x86_64,12.8,yes,70,,read,a wheel,2026-01-01",)) == 0
    assert rows("torch_builds") == ["2.9.0,x86_64,12.8,yes,70,"]
    assert message in capsys.readouterr().err


def test_the_assemblers_of_triton(server: IndexServer, run: Run, rows: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def assembler(release: str, *names: str) -> bytes:
        codes = b"".join(b"compute_" + name.encode() + b"\0" for name in names)
        made = f"Cuda compilation tools, release {release}, V{release}.93\0".encode()
        return b"\0sm_11\0" + Random(2).randbytes(PIECE - 12) + codes + Random(3).randbytes(PIECE - 12 - len(codes)) + made

    folder = "triton/backends/nvidia/bin"
    members = {
        f"{folder}/ptxas": assembler("12.8", "50", "90", "90a"),
        f"{folder}/ptxas-blackwell": assembler("13.1", "75", "120f"),
    }
    publish(server, "triton", "3.8.0", members)
    publish(server, "triton", "3.9.0", {f"{folder}/ptxas": b"nothing"})
    publish(server, "triton", "3.10.0", {"triton/__init__.py": b""})
    assert run("triton_gpus", rows=("3.7.0,50,12.8,,read,a wheel,2026-01-01",)) == 0
    assert rows("triton_gpus") == ["3.7.0,50,12.8,", "3.8.0,50 75 90 90a 120f,12.8,13.1"]
    told = capsys.readouterr().err
    assert "not read: triton 3.9.0: triton-3.9.0-cp310-cp310-manylinux_2_28_x86_64.whl: no names of architectures in" in told
    assert "not read: triton 3.10.0: triton-3.10.0-cp310-cp310-manylinux_2_28_x86_64.whl: holds no ptxas" in told


@pytest.mark.parametrize("told", [True, False])
def test_declared_tables_come_from_the_same_command(server: IndexServer, run: Run, tmp_path: Path, *, told: bool) -> None:
    server.json = server.metadata = told
    publish(server, "xgrammar", "0.2.0", {}, requires=("torch>=2", "numpy"))
    assert run("releases", "--package", "xgrammar") == 0
    assert "xgrammar,0.2.0," in (tmp_path / "releases.csv").read_text(encoding="utf-8")
    requirements = (tmp_path / "requirements.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split(",declared")[0] for line in requirements] == ["xgrammar,numpy,0.2.0", "xgrammar,torch>=2,0.2.0"]
    publish(server, "xgrammar", "0.3.0", {}, requires=("torch>=2",))
    assert run("requirements", "--package", "xgrammar") == 0
    assert "xgrammar,torch>=2,0.2.0..0.3.0" in (tmp_path / "requirements.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [("--budget", "much"), ("--gaps", "-1"), ("--package", "unheard-of"), ("--table", "moons")])
def test_words_that_are_not_understood(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        program.main(list(words))
    assert stopped.value.code == 2
    assert words[1] in capsys.readouterr().err
