"""Whatever an index sends, reading it ends in an answer or in one of our own exceptions."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("requests")

from compat.index import Store
from compat.index.archives import tar_metadata, zip_metadata
from compat.index.client import JSON, parse_page
from compat.index.metadata import File, Page, Requirement, Unread, Unusable, parse_metadata
from tests.examples import examples
from tests.index.archives import metadata_text, sdist, wheel

RELEASE = {"requires": ["b>1"], "padding": 300}
WHEEL, SDIST = wheel("a", "1.0", RELEASE), sdist("a", "1.0", RELEASE)
QUICK = settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def file(filename: str) -> File:
    kind = "wheel" if filename.endswith(".whl") else "sdist"
    return File("a", "u", filename, "1.0", None, None, None, None, None, kind, None, "i")


changes = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=8)), max_size=6)


def changed(body: bytes, spots: list[tuple[float, bytes]], keep: float) -> bytes:
    made = bytearray(body)
    for place, new in spots:
        start = int(place * len(made))
        made[start : start + len(new)] = new
    return bytes(made[: int(keep * len(made))])


@QUICK
@given(changes, st.one_of(st.just(1.0), st.floats(0, 1)))
def test_any_wheel(spots: list[tuple[float, bytes]], keep: float) -> None:
    target = file("a-1.0-py3-none-any.whl")
    try:
        found = parse_metadata(zip_metadata(io.BytesIO(changed(WHEEL, spots, keep)), target), target, "wheel")
    except (Unread, Unusable):
        assert spots or keep < 1
    else:
        assert found.requires == (Requirement("b", ">1"),)  # members carry a checksum


@QUICK
@given(changes, st.one_of(st.just(1.0), st.floats(0, 1)))
def test_any_sdist(spots: list[tuple[float, bytes]], keep: float) -> None:
    target = file("a-1.0.tar.gz")
    try:
        tar_metadata(io.BytesIO(changed(SDIST, spots, keep)), target)
    except (Unread, Unusable):
        assert spots or keep < 1


@QUICK
@given(changes, st.one_of(st.just(1.0), st.floats(0, 1)))
def test_any_metadata(spots: list[tuple[float, bytes]], keep: float) -> None:
    try:
        parse_metadata(changed(metadata_text("a", "1.0", RELEASE).encode(), spots, keep), file("a-1.0.tar.gz"), "sdist")
    except (Unread, Unusable):
        assert spots or keep < 1


words = st.text(max_size=12)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6,
)  # fmt: skip
names = st.sampled_from(
    ["a-1.0-py3-none-any.whl", "a-1.0.tar.gz", "a-1.0+x.1-py3-none-any.whl", "b-1.whl", "a-x.zip", "a-1!2.0.post1.zip", ".whl"]
)
rows = st.fixed_dictionaries(
    {"filename": names | words, "url": st.sampled_from(["/f/x", "file:///x", "http://[/x", "https://h.example/a b"]) | words, "hashes": st.just({})},
    optional={
        "requires-python": words | st.none(), "yanked": st.booleans() | words, "size": st.integers(0, 1 << 40),
        "upload-time": st.datetimes().map(lambda when: f"{when.isoformat()}Z") | words, "core-metadata": st.booleans() | anything,
        "dist-info-metadata": anything,
    },
)  # fmt: skip


@QUICK
@given(
    st.fixed_dictionaries(
        {
            "meta": st.just({"api-version": "1.0"}) | anything,
            "name": st.just("a"),
            "files": st.lists(rows, max_size=4) | anything,
        }
    )
    | anything
)
def test_any_json_page_and_its_way_through_the_store(page: Any) -> None:
    try:
        files = parse_page(
            json.dumps(page).encode(), JSON, "https://index.example/simple/a/", "https://index.example/simple", "a"
        )
    except Unread:
        return
    assert all(each.name == "a" and each.url.startswith("http") for each in files)
    store = Store(":memory:")
    store.keep_page("https://index.example/simple", "a", Page(files))
    kept = store.page("https://index.example/simple", "a")
    store.close()
    assert kept is not None
    assert sorted(kept.files or (), key=str) == sorted(files, key=str)


@QUICK
@given(
    st.text(alphabet="<>a='\"&; /href#sha256-1.0whl\n\x00é", max_size=200)
    | st.binary(max_size=100).map(lambda b: b.decode("latin-1"))
)
def test_any_html_page(text: str) -> None:
    with contextlib.suppress(Unread):
        parse_page(f"<a href='/f/a-1.0.tar.gz'>x</a>{text}".encode(), "text/html", "https://index.example/simple/a/", "i", "a")


def test_the_fixtures_are_real(tmp_path: Path) -> None:
    target = file("a-1.0-py3-none-any.whl")
    assert parse_metadata(zip_metadata(io.BytesIO(WHEEL), target), target, "wheel").requires == (Requirement("b", ">1"),)
    target = file("a-1.0.tar.gz")
    assert parse_metadata(tar_metadata(io.BytesIO(SDIST), target), target, "sdist").requires == (Requirement("b", ">1"),)
