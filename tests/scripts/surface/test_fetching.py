"""Which file of a release is read, and what of it is kept."""

from __future__ import annotations

import hashlib
import io
import random
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from compat.index.metadata import File, Unread
from compat.index.transport import Answer
from scripts.surface.fetch import missing
from scripts.surface.members import Contents, read_members
from scripts.surface.store import Fetched, Store

FILES = {
    "trl/__init__.py": b"import trl.core",
    "trl/_C.cpython-311-x86_64-linux-gnu.so": b"ELF",
    "trl/stub.pyi": b"x: int",
    "trl/tests/test_it.py": b"secret",
    "trl/data.json": b"{}",
    "trl-1.0.data/purelib/trl/moved.py": b"moved = 1",
    "trl-1.0.dist-info/METADATA": b"",
}


class Host:
    """A transport that has one file."""

    bytes = 0

    def __init__(self, body: bytes) -> None:
        self.body = body

    def get(self, url: str, *, limit: int, headers: dict[str, str] | None = None) -> Answer:
        span = (headers or {}).get("Range", "")
        if not span:
            return Answer(200, {}, self.body, url)
        first, _, last = span.removeprefix("bytes=").partition("-")
        start = int(first) if first else len(self.body) - int(last)
        end = int(last) if first else len(self.body) - 1
        part = self.body[start : end + 1]
        return Answer(206, {"Content-Range": f"bytes {start}-{start + len(part) - 1}/{len(self.body)}"}, part, url)


def wheel(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return made.getvalue()


def listed(filename: str, *, size: int | None = 1, sha256: str | None = None, uploaded: str | None = "2024-01-01T00:00:00Z", version: str = "1.0") -> File:  # fmt: skip
    return File(
        "trl", f"https://index.example/{filename}", filename, version, sha256, size, None, None, uploaded, "wheel", None, ""
    )


def contents(body: bytes, file: File) -> Contents:
    host: Any = Host(body)
    return read_members(host, file)


class TestMembers:
    @pytest.mark.parametrize("size", [1, None], ids=["whole", "ranged"])
    def test_python_files_of_a_wheel(self, size: int | None) -> None:
        padding = {"trl/weights.bin": random.Random(1).randbytes(1 << 20)}
        found = contents(wheel({**FILES, **padding}), listed("trl-1.0-py3-none-any.whl", size=size))
        assert set(found.members) == {"trl/__init__.py", "trl/stub.pyi", "trl/moved.py"}
        assert found.members["trl/moved.py"] == b"moved = 1"
        assert found.opaque == {"trl._C", "trl.tests"}

    def test_python_files_of_an_sdist(self) -> None:
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w:gz") as archive:
            for name in ("trl-1.0/setup.py", "trl-1.0/src/trl/__init__.py", "trl-1.0/docs/conf.py"):
                info = tarfile.TarInfo(name)
                info.size = 5
                archive.addfile(info, io.BytesIO(b"x = 1"))
        assert set(contents(made.getvalue(), listed("trl-1.0.tar.gz")).members) == {"trl/__init__.py"}

    def test_the_hash_is_checked(self) -> None:
        body = wheel(FILES)
        good = listed("trl-1.0-py3-none-any.whl", sha256=hashlib.sha256(body).hexdigest())
        assert contents(body, good).verified
        with pytest.raises(Unread, match="another hash"):
            contents(body, listed("trl-1.0-py3-none-any.whl", sha256="0" * 64))

    @pytest.mark.parametrize(
        "body", [b"", b"PK\x03\x04 broken", wheel({"trl/data.json": b"{}"})], ids=["empty", "broken", "no Python"]
    )
    def test_what_cannot_be_read_is_said(self, body: bytes) -> None:
        with pytest.raises(Unread):
            contents(body, listed("trl-1.0-py3-none-any.whl"))


class TestChoice:
    def test_one_file_a_release_pure_before_linux_before_sources(self) -> None:
        names = [
            "trl-1.0.tar.gz", "trl-1.0-cp311-cp311-macosx_11_0_arm64.whl", "trl-1.0-cp39-cp39-manylinux_2_17_x86_64.whl",
            "trl-1.0-cp311-cp311-manylinux_2_17_x86_64.whl", "trl-1.0-py3-none-any.whl",
        ]  # fmt: skip
        for at in range(len(names), 0, -1):
            (chosen,) = missing([listed(name) for name in names[:at]], "trl", set())
            assert chosen.filename == {2: "trl-1.0-cp311-cp311-macosx_11_0_arm64.whl"}.get(at, names[:at][-1])

    def test_what_is_known_old_or_not_final_is_left(self) -> None:
        files = [
            listed("trl-1.0-py3-none-any.whl"),
            listed("trl-1.1-py3-none-any.whl", version="1.1"),
            listed("trl-1.2rc1-py3-none-any.whl", version="1.2rc1"),
            listed("trl-0.1-py3-none-any.whl", version="0.1", uploaded="2021-01-01T00:00:00Z"),
            listed("trl-1.3.post1-py3-none-any.whl", version="1.3.post1"),
        ]
        assert [file.version for file in missing(files, "trl", {"1.0"})] == ["1.3.post1", "1.1"]


def test_the_store_keeps_each_file_once(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def fetched(version: str, members: dict[str, bytes]) -> Fetched:
        return Fetched("trl", version, "f", None, "2024-01-01", True, 10, 0.1, ("trl._C",), members)

    assert store.keep(fetched("1.0", {"a.py": b"1", "b.py": b"2"})) == 2
    assert store.keep(fetched("1.1", {"a.py": b"1", "c.py": b"2"})) == 0
    assert (store.known("trl"), store.totals()["files"]) == ({"1.0", "1.1"}, 2)
    release = next(each for each in store.releases("trl") if each.version == "1.1")
    assert {path: store.body(source) for path, source in release.members.items()} == {"a.py": b"1", "c.py": b"2"}
    assert release.opaque == ("trl._C",)
