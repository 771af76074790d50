"""``linked.csv`` and ``torch_symbols.csv``: the dynamic section of libraries, read from wheels on an index on this machine."""

from __future__ import annotations

import csv
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("remotezip", reason="needs the extra 'maintain'")
pytest.importorskip("pypi_simple", reason="needs the extra 'maintain'")

from compat.tables.linked import LinkedTable
from scripts.pack_wheels import packed_linked
from scripts.refresh import __main__ as program
from scripts.refresh.elf import dynamic_of
from scripts.refresh.linked import runs
from tests.index.server import IndexServer
from tests.scripts.compiled_wheels import publish

CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib"
OLDER = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb"
STABLE = "_ZN3c105ErrorD1Ev"


def shared_object(
    needed: Sequence[str] = (),
    undefined: Sequence[str] = (),
    exported: Sequence[str] = (),
    weak: Sequence[str] = (),
    versions: Sequence[str] = (),
) -> bytes:
    """A library of four sections: strings, symbols, the dynamic section, and the versions it needs of libc.so.6."""
    names = b"\0"
    places: dict[str, int] = {}
    for name in (*needed, *undefined, *exported, *weak, *versions):
        places[name] = len(names)
        names += name.encode() + b"\0"
    symbols = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for each, binding, section in ((undefined, 1, 0), (weak, 2, 0), (exported, 1, 7)):
        symbols += b"".join(struct.pack("<IBBHQQ", places[name], binding << 4, 0, section, 0, 0) for name in each)
    dynamic = b"".join(struct.pack("<qQ", 1, places[name]) for name in needed)
    wanted = struct.pack("<HHIII", 1, len(versions), 0, 16, 0) if versions else b""
    for at, name in enumerate(versions):
        wanted += struct.pack("<IHHII", 0, 0, 0, places[name], 16 if at + 1 < len(versions) else 0)
    sections, body = [], b""
    for kind, link, count, content in (
        (3, 0, 0, names),
        (11, 0, 0, symbols),
        (6, 0, 0, dynamic),
        (0x6FFFFFFE, 0, bool(versions), wanted),
    ):
        sections.append(struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, 64 + len(body), len(content), link, count, 0, 0))
        body += content
    ident = b"\x7fELF\x02\x01".ljust(16, b"\0")
    return (
        struct.pack("<16sHHIQQQIHHHHHH", ident, 3, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(sections), 0)
        + body
        + b"".join(sections)
    )


def torch(*exported: str) -> dict[str, bytes]:
    return {"torch/lib/libc10.so": shared_object(exported=exported)}


def refreshed(folder: Path, *packages: str) -> list[dict[str, str]]:
    words = [word for name in packages for word in ("--package", name)]
    assert program.main(["--table", "linked", "--facts", str(folder), *words]) == 0
    with (folder / "linked.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_dynamic_section_of_a_library() -> None:
    content = shared_object(["libc10.so"], [STABLE], ["own"], ["_ZN3c106maybe"], ["GLIBC_2.14", "GLIBC_2.34"])
    found = dynamic_of(memoryview(content))
    assert (found.needed, found.undefined, found.exported) == (("libc10.so",), {STABLE}, {"own"})
    assert found.versions == {"GLIBC_2.14", "GLIBC_2.34"}


@pytest.mark.parametrize(
    "content", [b"", b"MZ" * 100, b"\x7fELF\x01\x01".ljust(64, b"\0"), shared_object(undefined=["a"])[:100]]
)
def test_what_is_no_library_is_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match="ELF"):
        dynamic_of(memoryview(content))


def test_what_a_wheel_asks_for_is_a_row(server: IndexServer, tmp_path: Path) -> None:
    library = shared_object(
        ["libc10.so", "libcudart.so.12", "libc.so.6", "libown.so"],
        [CHECK, STABLE, "malloc"],
        versions=["GLIBC_2.9", "GLIBC_2.32"],
    )
    name = publish(server, "vllm", "0.9.0", {"vllm/_C.abi3.so": library, "vllm.libs/libown.so": shared_object()})
    (row,) = refreshed(tmp_path, "vllm")
    assert (row["needs"], row["versions"], row["variant"]) == ("libc10.so libcudart.so.12", "GLIBC_2.32", "")
    assert row["source"] == f"{name}: _C.abi3.so"


def test_a_library_for_each_cuda_is_a_row_for_each(server: IndexServer, tmp_path: Path) -> None:
    members = {
        f"bitsandbytes/libbitsandbytes_cuda{cuda}.so": shared_object(versions=[f"GLIBC_2.{glibc}"])
        for cuda, glibc in (("124", 14), ("126", 34))
    }
    publish(server, "bitsandbytes", "0.45.0", members)
    assert [(row["variant"], row["versions"]) for row in refreshed(tmp_path, "bitsandbytes")] == [
        ("12.4", "GLIBC_2.14"), ("12.6", "GLIBC_2.34"),
    ]  # fmt: skip


def test_the_series_of_torch_that_export_what_a_wheel_asks_for(server: IndexServer, tmp_path: Path) -> None:
    for version, exported in (
        ("2.7.0", (STABLE, OLDER)),
        ("2.8.0", (STABLE,)),
        ("2.8.1", (STABLE, CHECK)),
        ("2.9.0", (STABLE, CHECK)),
    ):
        publish(server, "torch", version, torch(*exported))
    publish(server, "vllm", "0.9.0", {"vllm/_C.abi3.so": shared_object(undefined=[CHECK, STABLE])})
    publish(server, "vllm", "0.8.0", {"vllm/_C.abi3.so": shared_object(undefined=[STABLE])})
    refreshed(tmp_path, "vllm", "torch")
    with (tmp_path / "torch_symbols.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["symbol"]: (row["series"], row["needed_by"]) for row in csv.DictReader(file)}
    assert rows == {CHECK: ("2.8..2.9", "vllm 0.9.0"), OLDER: ("2.7", "")}
    content, _ = packed_linked(str(tmp_path))
    table = LinkedTable(content)
    assert [(each.version, each.series, each.tag) for each in table.of("vllm")] == [
        ("0.8.0", None, "2.28"), ("0.9.0", ("2.8", "2.9"), "2.28"),
    ]  # fmt: skip


def test_a_stopped_run_goes_on_without_reading_again(server: IndexServer, tmp_path: Path) -> None:
    name = publish(server, "vllm", "0.9.0", {"vllm/_C.abi3.so": shared_object(undefined=[STABLE])})
    before = refreshed(tmp_path, "vllm")
    (tmp_path / "linked.csv").unlink()
    server.files[name].body = b""  # type: ignore[attr-defined]
    assert refreshed(tmp_path, "vllm") == before


def test_what_is_known_of_a_wheel_stays_without_the_cache(server: IndexServer, tmp_path: Path) -> None:
    for version, exported in (("2.7.0", (STABLE,)), ("2.8.0", (STABLE, CHECK))):
        publish(server, "torch", version, torch(*exported))
    publish(server, "vllm", "0.9.0", {"vllm/_C.abi3.so": shared_object(undefined=[CHECK])})
    refreshed(tmp_path, "vllm", "torch")
    before = (tmp_path / "torch_symbols.csv").read_text(encoding="utf-8")
    assert ",vllm 0.9.0," in before
    for kept in (tmp_path / "cache").rglob("*.z"):
        kept.unlink()
    refreshed(tmp_path, "vllm", "torch")
    assert (tmp_path / "torch_symbols.csv").read_text(encoding="utf-8") == before


def test_runs_of_consecutive_members() -> None:
    assert runs(["1", "2", "3", "4"], ["1", "2", "4"]) == "1..2 4"
    assert runs(["1", "2"], []) == ""
