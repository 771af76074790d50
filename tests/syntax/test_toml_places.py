"""Where keys and strings of a TOML text stand."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.syntax.toml import Places, parse_text

TEXT = """\
[ tool."uv" ] # settings
dev-dependencies = [
  # "a",
  "a", 'b ; os_name == "nt"',
  ["a"],
]
[tool.uv.sources.torch]
index = "x"
[[tool.uv.index]]
"name" = "x"
"""


def test_keys_and_headers() -> None:
    places = Places(TEXT)
    assert places.key("tool.uv", "dev-dependencies") == 2
    assert places.key("tool.uv.sources", "torch") == 7
    assert places.key("tool.uv.index", "name") == 10
    assert places.key("tool.uv.index", "url") == 9
    assert places.key("project", "dependencies") is None


def test_strings_from_a_line_on() -> None:
    places = Places(TEXT)
    assert places.string("a", 1) == 4
    assert places.string("a", 5) == 5
    assert places.string('b ; os_name == "nt"', 2) == 4
    assert places.string("nowhere", 2) == 2
    assert places.string("nowhere", None) is None


@pytest.mark.parametrize(("text", "line"), [('a = 1\nb = "c', 2), ("a = [\n  1,\n\n", 2), ("a = 1\nb = = 2\nc = 3\n", 2)])
def test_an_error_names_its_line_and_the_last_one_if_the_text_ends_early(text: str, line: int) -> None:
    with pytest.raises(InputError, match="is not TOML") as caught:
        parse_text(text, "uv.lock")
    assert caught.value.line == line
