"""No index decides what is read for another, and nothing that an index sends ends in a traceback."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.index import Index, Metadata, Requirement, Settings, Store
from compat.index.archives import tar_metadata, zip_metadata
from compat.index.client import JSON, parse_page
from compat.index.metadata import File, Unread, Unusable, parse_metadata, parse_requirement
from compat.index.settings import Source, gather
from tests.index.archives import metadata_text
from tests.index.server import Hosted, IndexServer

HONEST: dict[str, Any] = {"a": {"1.0": {"requires": ["good"], "sdist": False}}}
WHEEL = File("a", "u", "a-1.0-py3-none-any.whl", "1.0", None, None, None, None, None, "wheel", None, "i")
SDIST = WHEEL._replace(filename="a-1.0.tar.gz", kind="sdist")


class EvilServer(IndexServer):
    """Claims that its files are those of another index, by their hashes, and serves metadata of its own."""

    def __init__(self, honest: IndexServer) -> None:
        super().__init__({"a": {"1.0": {"requires": ["evil"], "sdist": False}}})
        self._honest = honest

    def rows(self, page: list[str]) -> list[dict[str, Any]]:
        known = self._honest.files
        made = super().rows(page)
        return [
            {**row, "hashes": {"sha256": known[name].sha256}} if (name := row["filename"]) in known else row for row in made
        ]


@pytest.fixture
def both() -> Iterator[tuple[IndexServer, IndexServer]]:
    with IndexServer(HONEST) as honest, EvilServer(honest) as evil:
        yield honest, evil


def required(index: Index) -> list[Metadata | None]:
    files = index.files_of_pins([("a", "1.0")])["a", "1.0"] or ()
    return index.metadata_many(files)


def test_an_index_that_claims_the_hash_of_another_ones_file_decides_nothing_there(
    both: tuple[IndexServer, IndexServer], tmp_path: Path
) -> None:
    honest, evil = both
    for server, expected in ((evil, "evil"), (honest, "good"), (evil, "evil"), (honest, "good")):
        index = Index(Settings(sources=(Source(server.url),)), Store(str(tmp_path / "c")))
        (file,) = index.files("a") or ()
        assert file.sha256 == honest.files[file.filename].sha256
        for found in (index.metadata_many([file]), required(index)):
            assert found == [Metadata((Requirement(expected),), None, (), "metadata")]
        index.close()


def test_each_release_says_which_index_it_is_from(both: tuple[IndexServer, IndexServer]) -> None:
    honest, evil = both
    evil.add("b", {"1.0": {"sdist": False}})
    for strategy, asked in (("first-index", 1), ("unsafe-best-match", 2)):
        index = Index(Settings(sources=(Source(honest.url), Source(evil.url)), strategy=strategy), Store(":memory:"))
        assert [(file.filename, file.index) for file in index.files("a") or ()] == [("a-1.0-py3-none-any.whl", honest.url)]
        assert [file.index for file in index.files("b") or ()] == [evil.url]
        assert required(index) == [Metadata((Requirement("good"),), None, (), "metadata")]
        assert sum(request == "/simple/a/" for server in both for request in server.requests) == asked
        for server in both:
            server.requests.clear()
        index.close()


def test_a_package_that_an_index_before_its_own_has_by_now_is_taken_from_there(tmp_path: Path) -> None:
    with IndexServer({}) as first, IndexServer(HONEST) as second:
        settings = Settings(sources=(Source(first.url), Source(second.url)))
        for max_age, expected in ((600.0, second.url), (600.0, second.url), (0.0, first.url)):
            index = Index(settings, Store(str(tmp_path / "c")), max_age=max_age)
            files = index.files_of_pins([("a", "1.0")])["a", "1.0"]
            assert [file.index for file in files or ()] == [expected]
            index.close()
            if "a" not in first.pages and max_age and first.requests == ["/simple/a/"] and second.requests == ["/simple/a/"]:
                first.add("a", HONEST["a"])


def metadata(*lines: str) -> bytes:
    return "\n".join(["Metadata-Version: 2.2", "Name: a", "Version: 1.0", *lines, "", ""]).encode()


DEEP = "(" * 3000 + "os_name == 'x'" + ")" * 3000
HOSTILE = {
    "nested markers": (f"Requires-Dist: b ; {DEEP}", "which is too long or nested too deeply"),
    "forty parentheses": ("Requires-Dist: b ; " + "(" * 51 + "os_name == 'x'" + ")" * 51, "which is too long or nested"),
    "an endless version": (f"Requires-Dist: b=={'9' * 5000}", "which is too long"),
    "an endless list": (f"Requires-Dist: b{','.join(['!=1'] * 3000)}", "which is too long"),
    "a marker that cannot be evaluated": ("Requires-Dist: b ; os_name ~= 'posix'", "which is not a valid requirement"),
    "no requirement": ("Requires-Dist: ???", "'???', which is not a valid requirement (PEP 508)"),
    "an endless Requires-Python": (f"Requires-Python: >={'9' * 5000}", "has a Requires-Python of 5002 characters"),
    "a crowd": ("\n".join(f"Requires-Dist: b{number}" for number in range(6000)), "has more than 5000 requirements"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_metadata_is_a_named_cause(name: str) -> None:
    lines, told = HOSTILE[name]
    with pytest.raises(Unusable) as caught:
        parse_metadata(metadata(lines), WHEEL, "wheel")
    assert told in str(caught.value)
    assert str(caught.value).startswith("a-1.0-py3-none-any.whl ")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("lines", ["Name: b", "Version: 2", "Version: " + "9" * 5000, "Name:"])
def test_metadata_of_another_release_is_not_believed(lines: str) -> None:
    with pytest.raises(Unread) as caught:
        parse_metadata(
            f"Metadata-Version: 2.2\n{lines}\n{'' if 'Name' in lines else 'Name: a'}\nVersion: 1.0\n\n".encode(), WHEEL, "wheel"
        )
    assert len(str(caught.value)) < 400


def test_requirements_are_parsed_once() -> None:
    assert parse_requirement("B.c[X] >=1 ; os_name=='a'") == Requirement("b-c", ">=1", ("x",), 'os_name == "a"')
    assert parse_requirement("b @ https://index.example/b.whl").url == "https://index.example/b.whl"
    assert parse_requirement("b>1") is parse_requirement("b>1")


def zipped(members: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return made.getvalue()


def test_a_wheel_whose_metadata_is_a_bomb() -> None:
    bomb = zipped({"a-1.0.dist-info/METADATA": b"\0" * (64 << 20)})
    assert len(bomb) < 100_000
    with pytest.raises(Unread, match="its metadata is larger than 8 MB"):
        zip_metadata(io.BytesIO(bomb), WHEEL)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_is_unpacked_at_once_is_not_tried(method: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kilobyte of bzip2 became two gigabytes before the limit of metadata was looked at."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.writestr("a-1.0.dist-info/METADATA", b"\0" * (16 << 20))
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    with pytest.raises(Unread, match=f"compressed with method {method}, not with deflate"):
        zip_metadata(made, WHEEL)


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE]
)
def test_a_header_of_a_source_distribution_that_is_a_bomb(kind: bytes) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 4 << 30
    bomb = gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + b"\0" * (4 << 20), 1)
    read = []

    class Source(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            read.append(size)
            return super().read(size)

    with pytest.raises(Unread, match="extended header is too large"):
        tar_metadata(Source(bomb), SDIST)
    assert len(read) < 10


def test_members_of_a_source_distribution_are_not_kept() -> None:
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", compresslevel=1) as packed:
        for number in range(20_000):
            packed.write(tarfile.TarInfo(f"a-1.0/{number}").tobuf(tarfile.USTAR_FORMAT))
        packed.write(b"\0" * 1024)
    made.seek(0)
    tracemalloc.start()
    try:
        with pytest.raises(Unusable, match="has no PKG-INFO"):
            tar_metadata(made, SDIST)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def tarred(size: int) -> bytes:
    """A source distribution whose first member has so many bytes."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, body in (("a-1.0/zeros", b"\0" * size), ("a-1.0/PKG-INFO", metadata_text("a", "1.0", {}).encode())):
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return gzip.compress(made.getvalue(), 1)


def test_a_source_distribution_that_is_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compat.index.archives.LARGEST_UNPACKED", 1 << 20)
    assert tar_metadata(io.BytesIO(tarred(1 << 19)), SDIST).startswith(b"Metadata-Version")
    with pytest.raises(Unread, match="no PKG-INFO within its first 1 MB"):
        tar_metadata(io.BytesIO(tarred(4 << 20)), SDIST)
    monkeypatch.setattr("compat.index.archives.LARGEST_SDIST", 100)
    with IndexServer({"a": {"1.0": {"wheel": False}}}) as server:
        index = Index(Settings(sources=(Source(server.url),)), Store(":memory:"))
        assert index.metadata_many(index.files("a") or ()) == [None]
        assert index.problems == {SDIST.filename: "a-1.0.tar.gz is too large to be searched"}
        index.close()


def test_a_directory_that_claims_to_be_huge() -> None:
    with IndexServer({"a": {"1.0": {"padding": 20 << 20, "sdist": False}}}, metadata=False) as server:
        (filename,) = server.files
        body = bytearray(server.files[filename].body)
        end = body.rfind(b"PK\5\6")
        struct.pack_into("<LL", body, end + 12, 10 << 20, end - (10 << 20))  # size and place of the directory
        changed = type("Changed", (Hosted,), {"body": bytes(body)})
        server.files[filename] = changed(*server.files[filename])
        index = Index(Settings(sources=(Source(server.url),)), Store(":memory:"))
        (file,) = index.files("a") or ()
        assert index.metadata(file) is None
        assert index.problems[filename].endswith("its directory is too large")
        assert index._reader().transport.bytes < 1 << 20
        index.close()


ROW = {"filename": "a-1.0-py3-none-any.whl", "url": "/f", "hashes": {}}


@pytest.mark.parametrize(
    "row",
    [
        {"filename": "a-1.0-py3-none-any.whl\x1b"}, {"url": "/f/\ud800.whl"}, {"requires-python": f">={'9' * 5000}"},
        {"filename": f"a-{'9' * 5000}-py3-none-any.whl"}, {"url": "file:///etc/passwd"}, {"filename": "a-1.0-1-2-3-py3-none-any.whl"},
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_what_it_claims_is_left_out(row: dict[str, Any]) -> None:
    body = json.dumps({"meta": {"api-version": "1.0"}, "name": "a", "files": [{**ROW, **row}, {**ROW, "url": "/ok"}]}).encode()
    files = parse_page(body, JSON, "https://index.example/simple/a/", "i", "a")
    assert [file.url for file in files] == ["https://index.example/ok"]


def test_a_deep_page_and_one_of_another_protocol() -> None:
    for body, told in ((b"[" * 100_000, "is not a page of an index"), (b'{"meta": {"api-version": "2.0"}}', "has version 2.0")):
        with pytest.raises(Unread, match=told):
            parse_page(body, JSON, "https://index.example/simple/a/", "i", "a")


def test_credentials_reach_no_store_and_no_message(tmp_path: Path) -> None:
    with IndexServer(HONEST, login=("me", "s3cret"), faults={"b": "to http://me:s3cret@127.0.0.1:9/x?token=s3cret"}) as server:
        settings = gather(
            str(tmp_path), environ={"PIP_CONFIG_FILE": "/dev/null", "HOME": str(tmp_path)},
            index_url=server.url.replace("://", "://me:s3cret@"),
        )  # fmt: skip
        index = Index(settings, Store(str(tmp_path / "c")))
        assert required(index) == [Metadata((Requirement("good"),), None, (), "metadata")]
        assert index.files("b") is None
        told = f"{index.problems} {index.unusable} {settings} {index.files('a')}"
        index.close()
    for path in tmp_path.iterdir():
        told += path.read_bytes().decode("latin-1")
    assert "s3cret" not in told
