"""What an index offers, in every form that indexes have."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.index import Index, Metadata, Requirement, Settings, Store
from compat.index.client import parse_page
from compat.index.settings import THREADS, Credentials, Source
from tests.index.archives import sdist, wheel
from tests.index.server import IndexServer

PACKAGES: dict[str, Any] = {
    "a": {
        "1.0": {"requires": ["b>1", "c ; sys_platform == 'linux'"], "extras": {"fast": ["d==2"]}, "requires_python": ">=3.8"},
        "1.1": {"yanked": "does not start", "sdist": False, "uploaded": "2025-03-01T12:00:00.5Z"},
        "2.0+cu124": {"sdist": False, "uploaded": "2025-11-02T10:00:00Z", "wheel_tags": ["cp311-cp311-manylinux_2_28_x86_64"]},
    },
    "Some.Name": {"1.0": {"wheel": False}, "2.0": {"wheel": False, "dynamic": True, "requires": ["b"]}},
    "big": {"1.0": {"padding": 3 << 20, "requires": ["b"], "sdist": False}},
}  # fmt: skip
PACKAGES["some-name"] = PACKAGES.pop("Some.Name")
REQUIRED = (
    Requirement("b", ">1"),
    Requirement("c", marker='sys_platform == "linux"'),
    Requirement("d", "==2", marker='extra == "fast"'),
)
FIRST = Metadata(REQUIRED, ">=3.8", ("fast",), "metadata")
B, X, Y = ((Requirement(name),) for name in "bxy")


@pytest.fixture
def serve() -> Iterator[Any]:
    """Starts a server and gives it with an index that reads it; more words go to the server, ``index`` to the index."""
    ends = []

    def start(
        packages: Any = PACKAGES, *, index: Any = None, settings: Any = None, **options: Any
    ) -> tuple[IndexServer, Index]:
        server = IndexServer(packages, **options).__enter__()
        given = {"sources": (Source(server.url),), "retries": 0, "timeout": 5.0, **(settings or {})}
        made = Index(Settings(**given), Store(":memory:"), **(index or {}))
        ends.extend([made.close, lambda: server.__exit__()])
        return server, made

    yield start
    for end in ends:
        end()


@pytest.mark.parametrize("json", [True, False])
def test_a_page_says_what_there_is(serve: Any, json: bool) -> None:
    server, index = serve(json=json)
    files = index.files("A")
    assert [(file.filename, file.version, file.kind) for file in files] == [
        ("a-1.0-py3-none-any.whl", "1.0", "wheel"),
        ("a-1.0.tar.gz", "1.0", "sdist"),
        ("a-1.1-py3-none-any.whl", "1.1", "wheel"),
        ("a-2.0+cu124-cp311-cp311-manylinux_2_28_x86_64.whl", "2.0+cu124", "wheel"),
    ]
    first, source, yanked, local = files
    assert first.requires_python == ">=3.8"
    assert first.url == f"http://{server.host}/files/a-1.0-py3-none-any.whl"
    assert first.index == server.url
    assert first.size == (len(wheel("a", "1.0", PACKAGES["a"]["1.0"])) if json else None)
    assert (first.yanked, yanked.yanked) == (None, "does not start")
    assert (first.uploaded, yanked.uploaded) == (None, "2025-03-01T12:00:00.500000Z")
    assert isinstance(first.metadata_sha, str)
    assert source.metadata_sha is None
    assert local.tags == ("cp311", "cp311", "manylinux_2_28_x86_64")
    assert index.metadata(first) == FIRST
    assert index.metadata(local) == Metadata((), None, (), "metadata")
    assert index.problems == index.unusable == {}


def test_what_no_index_has_is_known_to_be_nowhere(serve: Any) -> None:
    server, index = serve()
    assert index.files("nowhere") == ()
    assert index.problems == {}
    assert index.files("nowhere") == ()
    assert server.requests == ["/simple/nowhere/"]


def test_names_are_normalised(serve: Any) -> None:
    server, index = serve()
    assert [file.name for file in index.files("Some_-.Name")] == ["some-name", "some-name"]
    assert server.requests == ["/simple/some-name/"]


def test_without_served_metadata_the_end_of_the_wheel_is_read(serve: Any) -> None:
    server, index = serve(metadata=False)
    assert index.metadata(index.files("a")[0]) == Metadata(*_first_three(FIRST), "wheel")
    (big,) = index.files("big")
    index.metadata(big)
    assert index.metadata(big) == Metadata(B, None, (), "wheel")
    spans = [each.partition(" ")[2] for each in server.requests if each.startswith("/files/big")]
    assert len(spans) == 2  # the end, and what lies before the padding
    assert index._reader().transport.bytes < 200_000


def _first_three(metadata: Metadata) -> tuple[Any, ...]:
    return metadata.requires, metadata.requires_python, metadata.provides_extra


def test_an_index_that_tells_no_sizes_and_a_host_that_counts_from_the_front_only(serve: Any) -> None:
    server, index = serve(metadata=False, json=False, ranges="absolute")
    (big,) = index.files("big")
    assert big.size is None
    assert index.metadata(big) == Metadata(B, None, (), "wheel")
    assert server.requests[1] == "/files/big-1.0-py3-none-any.whl bytes=-65536"


@pytest.mark.parametrize("json", [True, False])
def test_without_ranges_only_a_small_wheel_is_read_whole(serve: Any, json: bool) -> None:
    _, index = serve(metadata=False, ranges=False, json=json)
    small, (big,) = index.files("a")[0], index.files("big")
    assert index.metadata(small) == Metadata(*_first_three(FIRST), "wheel")
    assert index.metadata(big) is None
    assert index.problems == {
        big.filename: "big-1.0-py3-none-any.whl: its host does not support range requests and it has 3 MB"
    }
    assert index._reader().transport.bytes < 100_000


def test_an_sdist_counts_only_where_its_metadata_is_no_matter_of_a_build(serve: Any) -> None:
    _, index = serve()
    static, dynamic = index.files("some-name")
    assert index.metadata(static) == Metadata((), None, (), "sdist")
    assert index.metadata(dynamic) is None
    assert index.unusable == {dynamic.filename: f"{dynamic.filename}: its requirements are only known after it is built"}
    assert index.problems == {}


def test_a_requirement_that_cannot_be_read_makes_a_file_unusable(serve: Any) -> None:
    _, index = serve({"a": {"1.0": {"requires": ["b (>=1.0"], "sdist": False}}})
    assert index.metadata(index.files("a")[0]) is None
    assert index.unusable == {
        "a-1.0-py3-none-any.whl": "a-1.0-py3-none-any.whl requires 'b (>=1.0', which is not a valid requirement (PEP 508)"
    }


def test_uploads_after_a_day_are_left_out_and_unknown_days_are_kept(serve: Any) -> None:
    server, index = serve(index={"before": "2025-03-01"})
    assert [file.version for file in index.files("a")] == ["1.0", "1.0", "1.1"]
    assert index.undated == {"a"}
    for moment, expected in (("2025-11-02T10:00:00Z", 4), ("2025-11-02T09:59:59Z", 3), ("2025-02-28", 2), ("2025-11-02", 4)):
        other = Index(index.settings, Store(":memory:"), before=moment)
        assert len(other.files("a")) == expected, moment
        other.close()
    assert server.requests


def test_many_at_once_and_in_order(serve: Any) -> None:
    packages = {f"p{number}": {"1.0": {"requires": [f"p{number + 1}"], "sdist": False}} for number in range(40)}
    seen: list[tuple[str, int, int]] = []
    server, index = serve(packages, index={"progress": lambda *told: seen.append(told)}, seconds=0.1, faults={"*": "slow"})
    pages = index.files_many([*packages, "gone"])
    files = [page[0] for page in pages.values() if page]
    found = index.metadata_many(files)
    assert 4 < server.busiest <= THREADS
    assert [each.requires for each in found] == [(Requirement(f"p{number + 1}"),) for number in range(40)]
    assert pages["gone"] == ()
    assert seen[-1] == ("metadata", 40, 40)
    assert ("pages", 41, 41) in seen
    asked = len(server.requests)
    assert index.metadata_many(files) == found
    assert len(server.requests) == asked


def test_a_flat_page_and_a_folder_of_files(serve: Any, tmp_path: Path) -> None:
    server, _ = serve()
    (tmp_path / "b-3.0-py3-none-any.whl").write_bytes(wheel("b", "3.0", {"requires": ["x"]}))
    (tmp_path / "b-4.0.tar.gz").write_bytes(sdist("b", "4.0", {"requires": ["y"]}))
    (tmp_path / "notes.txt").write_text("no archive")
    sources = (
        Source(server.flat, flat=True),
        Source(tmp_path.as_uri(), flat=True),
        Source((tmp_path / "gone").as_uri(), flat=True),
    )
    index = Index(Settings(sources=sources), Store(":memory:"))
    pages = index.files_many(["a", "b", "c"])
    assert [file.version for file in pages["a"] or ()] == ["1.0", "1.0", "1.1", "2.0+cu124"]
    assert server.requests == ["/flat/"]
    local, static = pages["b"] or ()
    assert index.metadata_many([local, static]) == [Metadata(X, None, (), "wheel"), Metadata(Y, None, (), "sdist")]
    assert pages["c"] == ()
    assert index.notes == (f"{(tmp_path / 'gone').as_uri()} does not exist: no files are found there",)
    index.close()


@pytest.mark.parametrize("with_page", [True, False])
def test_an_index_of_folders(tmp_path: Path, with_page: bool) -> None:
    folder = tmp_path / "simple index" / "some-name"
    folder.mkdir(parents=True)
    name = "some_name-1.0+cpu-py3-none-any.whl"
    (folder / name).write_bytes(wheel("some-name", "1.0+cpu", {"requires": ["x"]}))
    if with_page:
        (folder / "index.html").write_text(f'<a href="{name.replace("+", "%2B")}" data-yanked="">{name}</a>')
    index = Index(Settings(sources=(Source((tmp_path / "simple index").as_uri()),)), Store(":memory:"), offline=True)
    (file,) = index.files("some.name") or ()
    assert (file.version, file.yanked) == ("1.0+cpu", "" if with_page else None)
    assert index.metadata(file) == Metadata(X, None, (), "wheel")
    assert index.files("other") == ()
    index.close()


def test_what_lies_on_this_machine_is_kept_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index_folder, links = tmp_path / "simple", tmp_path / "links"
    for folder in (index_folder / "a", links):
        folder.mkdir(parents=True)
        (folder / "a-1.0-py3-none-any.whl").write_bytes(wheel("a", "1.0", {"requires": ["x"]}))
    settings = Settings(sources=(Source(links.as_uri(), flat=True), Source(index_folder.as_uri())))
    path = str(tmp_path / "cache.sqlite")

    def read() -> tuple[list[str], list[Metadata | None]]:
        index = Index(settings, Store(path))
        files = index.files("a") or ()
        assert index.files("b") == ()
        found = index.metadata_many(files)
        index.close()
        return [file.version for file in files], found

    x, y = (Metadata(required, None, (), "wheel") for required in (X, Y))
    assert read() == (["1.0"], [x])
    with monkeypatch.context() as patch:
        patch.setattr("compat.index.index.Index._reader", None)  # nothing is read
        assert read() == (["1.0"], [x])
    (links / "a-2.0-py3-none-any.whl").write_bytes(wheel("a", "2.0", {}))
    os.utime(links, (5, 5))
    assert read()[0] == ["1.0", "2.0"]
    (links / "a-1.0-py3-none-any.whl").write_bytes(wheel("a", "1.0", {"requires": ["y"]}))
    os.utime(links / "a-1.0-py3-none-any.whl", (7, 7))
    assert read()[1][0] == y


def test_an_index_on_this_machine_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    index = Index(Settings(sources=(Source((tmp_path / "gone").as_uri()),)), Store(":memory:"))
    assert index.files("a") is None
    assert index.problems == {"a": f"{tmp_path / 'gone'} does not exist"}
    index.close()


def test_a_page_on_the_network_cannot_point_into_this_machine() -> None:
    links = ["file:///tmp/a-1.0-py3-none-any.whl", "ftp://h/a-3.0.tar.gz", f"../../f/a-2.0-py3-none-any.whl#sha256={'A' * 64}"]
    body = "".join(f'<a href="{link}">a</a>' for link in links).encode()
    (file,) = parse_page(body, "text/html; charset=utf-8", "https://me:pw@index.example/simple/a/", "", "a")
    assert (file.version, file.sha256) == ("2.0", "a" * 64)
    assert file.url == "https://index.example/f/a-2.0-py3-none-any.whl"


def test_the_first_index_that_has_a_package_is_the_only_one_unless_all_are_asked_for(serve: Any) -> None:
    first, _ = serve({"a": {"1.0": {}}})
    second, _ = serve({"a": {"1.0": {"wheel": False}, "2.0": {}}, "b": {"1.0": {}}})
    sources = (Source(first.url), Source(second.url))
    index = Index(Settings(sources=sources), Store(":memory:"))
    assert {file.version for file in index.files("a") or ()} == {"1.0"}
    assert second.requests == []
    assert [file.index for file in index.files("b") or ()] == [second.url, second.url]
    index.close()
    index = Index(Settings(sources=sources, strategy="unsafe-best-match"), Store(":memory:"))
    assert [(file.version, file.index) for file in index.files("a") or () if file.kind == "sdist"] == [
        ("1.0", first.url),
        ("2.0", second.url),
    ]
    index.close()


def test_an_explicit_index_is_asked_for_its_own_packages_only(serve: Any) -> None:
    default, _ = serve({"torch": {"2.6.0": {}}, "a": {"1.0": {}}})
    vendor, _ = serve({"torch": {"2.6.0+cu124": {}}, "a": {"9.0": {}}})
    sources = (Source(vendor.url, name="cu124", explicit=True), Source(default.url))
    index = Index(Settings(sources=sources, pinned={"torch": ("cu124",)}), Store(":memory:"))
    assert {file.version for file in index.files("torch") or ()} == {"2.6.0+cu124"}
    assert {file.version for file in index.files("a") or ()} == {"1.0"}
    assert vendor.requests == ["/simple/torch/"]
    index.close()


def test_credentials_go_to_their_host_and_nowhere_else(serve: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server, index = serve(login=("me", "s3cret"), settings={"keyring": False})
    assert index.files("a") is None
    assert index.problems == {"a": f"{server.url}/a/ answers HTTP 401"}
    known = {f"http://{server.host}": Credentials("me", "s3cret")}
    index = Index(Settings(sources=(Source(server.url),), credentials=known), Store(":memory:"))
    assert index.metadata((index.files("a") or ())[0]) == FIRST
    assert "s3cret" not in repr(index.files("a")) + repr(index.settings)
    index.close()
    elsewhere, _ = serve(login=("me", "s3cret"))
    server.faults["a"] = f"to {elsewhere.url}/a/"
    index = Index(Settings(sources=(Source(server.url),), credentials=known, keyring=False), Store(":memory:"))
    assert index.files("a") is None
    assert index.problems == {"a": f"{server.url}/a/ answers HTTP 401"}
    assert elsewhere.requests == ["/simple/a/"]
    index.close()
    server.faults.clear()
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password s3cret\n")
    index = Index(Settings(sources=(Source(server.url),)), Store(":memory:"))
    assert len(index.files("a") or ()) == 4
    index.close()


def test_the_keyring_is_asked_where_there_is_one(serve: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keyring.py").write_text(
        "import collections\nasked = []\n"
        "def get_credential(service, user):\n"
        "    asked.append(service)\n"
        "    return collections.namedtuple('C', 'username password')('me', 's3cret') if '://' not in service else None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server, index = serve(login=("me", "s3cret"))
    assert len(index.files("a")) == 4
    import keyring  # type: ignore[import-not-found]

    assert keyring.asked == [f"{server.url}/a/", server.host]
    monkeypatch.delitem(__import__("sys").modules, "keyring")


@pytest.mark.parametrize("validators", ["etag", "modified"])
def test_a_stale_page_is_revalidated_and_not_sent_again(serve: Any, tmp_path: Path, validators: str) -> None:
    packages = {name: {"1.0": {"sdist": False}} for name in "abc"}
    server, _ = serve(packages, validators=validators)
    settings, path = Settings(sources=(Source(server.url),)), str(tmp_path / "cache.sqlite")

    def run(max_age: float) -> tuple[list[str], list[str]]:
        """What was asked for, and what was sent in full."""
        server.requests.clear()
        server.full.clear()
        index = Index(settings, Store(path), max_age=max_age)
        pages = index.files_many(packages)
        assert [len(files or ()) for files in pages.values()] == [
            1 + ("2.0" in server_versions(server, name)) for name in pages
        ]
        index.metadata_many([file for files in pages.values() for file in files or ()])
        index.close()
        return sorted(server.requests), sorted(server.full)

    pages = ["/simple/a/", "/simple/b/", "/simple/c/"]
    metadata = [f"/files/{name}-1.0-py3-none-any.whl.metadata" for name in "abc"]
    assert run(0) == (metadata + pages, metadata + pages)
    assert run(600) == ([], [])  # fresh: not even asked for
    assert run(0) == (pages, [])  # stale: asked for, and not sent
    if validators == "etag":
        server.add("b", {"2.0": {"sdist": False}})
        changed = "/files/b-2.0-py3-none-any.whl.metadata"
        assert run(0) == ([changed, *pages], [changed, "/simple/b/"])
        assert run(0) == (pages, [])


def server_versions(server: IndexServer, name: str) -> set[str]:
    return {server.files[filename].version for filename in server.pages[name]}


def test_a_page_of_another_run_that_was_damaged_is_read_again(serve: Any, tmp_path: Path) -> None:
    server, _ = serve({"a": {"1.0": {"sdist": False}}}, validators="etag")
    settings, path = Settings(sources=(Source(server.url),)), str(tmp_path / "cache.sqlite")
    for _ in range(2):
        index = Index(settings, Store(path), max_age=0)
        assert len(index.files("a") or ()) == 1
        index.close()
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE files SET body = x'00'")
        connection.close()
    assert server.full == ["/simple/a/", "/simple/a/"]


def test_pins_are_read_from_their_pages_where_the_store_cannot_tell(serve: Any, tmp_path: Path) -> None:
    server, _ = serve(validators="etag")
    settings, path = Settings(sources=(Source(server.url),)), str(tmp_path / "cache.sqlite")

    def pinned(*pins: tuple[str, str], **options: Any) -> tuple[list[Any], list[str]]:
        server.requests.clear()
        index = Index(settings, Store(path), **options)
        found = index.files_of_pins(pins)
        versions = [None if found[pin] is None else sorted({file.version for file in found[pin] or ()}) for pin in pins]
        index.close()
        return versions, sorted(server.requests)

    assert pinned(("A", "1.0"), ("nowhere", "1"), ("big", "2.0")) == (
        [["1.0"], [], []], ["/simple/a/", "/simple/big/", "/simple/nowhere/"],
    )  # fmt: skip
    assert pinned(("A", "1.0"), ("nowhere", "1"), ("big", "2.0")) == ([["1.0"], [], []], [])
    # of a stale page only what it had is taken for granted: the rest it may have by now
    assert pinned(("A", "1.0"), ("a", "2.0+cu124"), max_age=0) == ([["1.0"], ["2.0+cu124"]], [])
    assert pinned(("nowhere", "1"), ("big", "2.0"), max_age=0) == ([[], []], ["/simple/big/", "/simple/nowhere/"])
    assert pinned(("a", "1.0"), ("big", "2.0"), ("other", "1"), offline=True) == ([["1.0"], [], None], [])
    assert pinned(("a", "2.0+cu124"), before="2025-03-01") == ([[]], [])


def test_pins_on_a_flat_page(serve: Any, tmp_path: Path) -> None:
    server, _ = serve()
    settings = Settings(sources=(Source(server.flat, flat=True), Source(server.url)))
    for _ in range(2):
        index = Index(settings, Store(str(tmp_path / "c")))
        found = index.files_of_pins([("a", "1.0"), ("big", "1.0")])
        assert [len(files or ()) for files in found.values()] == [2, 1]
        assert index.metadata_many([files[0] for files in found.values() if files])[0] == FIRST
        index.close()
    assert server.requests.count("/flat/") == 1


def test_offline_says_what_is_not_known_and_keeps_old_pages(serve: Any, tmp_path: Path) -> None:
    server, _ = serve()
    settings = Settings(sources=(Source(server.url),))
    path = str(tmp_path / "cache.sqlite")
    index = Index(settings, Store(path))
    first = (index.files("a") or ())[0]
    index.files("gone")
    assert index.metadata(first) == FIRST
    index.close()
    asked = len(server.requests)
    index = Index(settings, Store(path), offline=True, max_age=0)
    assert [file.version for file in index.files("a") or ()] == ["1.0", "1.0", "1.1", "2.0+cu124"]
    assert index.files("gone") == ()
    assert index.metadata(first) == FIRST
    assert index.files("big") is None
    assert index.metadata((index.files("a") or ())[2]) is None
    assert index.problems == {
        "big": "its page is not in the cache, and --offline was given",
        "a-1.1-py3-none-any.whl": "a-1.1-py3-none-any.whl is not in the cache, and --offline was given",
    }
    index.close()
    assert len(server.requests) == asked
    index = Index(settings, Store(path), max_age=0)
    assert len(index.files("a") or ()) == 4
    assert len(server.requests) == asked + 1
    index.close()
