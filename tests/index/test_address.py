"""Links on a page: the quick way for those of most proxies gives what the standard library gives."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.index.settings import resolve_link

BASES = ("https://index.example/simple/a/", "http://u:p@index.example/root/simple/a", "https://index.example/simple/a/?page=2")
PART = st.one_of(
    st.sampled_from(["..", ".", "", "a", "a-1.0+cu128.whl", "a%20b", "a;b", "a?b", "x:y", "é", "~a", "-a", ".a"]),
    st.text(max_size=3),
)


@given(st.sampled_from(BASES), st.lists(PART, max_size=6), st.sampled_from(["", "/", "#sha256=00", "# a b"]))
def test_a_link_is_joined_as_the_standard_library_does(base: str, parts: list[str], end: str) -> None:
    link = "/".join(parts) + end
    found = resolve_link(base, link)
    try:
        url = urljoin(base, link.strip())
    except ValueError:
        assert found is None
        return
    if found is not None:
        assert found == url.partition("#")[0].replace("u:p@", "")


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("../../packages/ab/a-1.0.tar.gz#sha256=00", "https://index.example/packages/ab/a-1.0.tar.gz"),
        ("/f/a-1.0.tar.gz", "https://index.example/f/a-1.0.tar.gz"),
        ("a-1.0.tar.gz", "https://index.example/simple/a/a-1.0.tar.gz"),
        ("../../../../a-1.0.tar.gz", "https://index.example/a-1.0.tar.gz"),
        ("//other.example/a-1.0.tar.gz", "https://other.example/a-1.0.tar.gz"),
        ("../x/../a-1.0.tar.gz", "https://index.example/simple/a-1.0.tar.gz"),
    ],
)
def test_relative_links(link: str, url: str) -> None:
    assert resolve_link("https://index.example/simple/a/", link) == url
