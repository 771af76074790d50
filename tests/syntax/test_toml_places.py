"""Where keys and strings of a TOML text stand."""

from __future__ import annotations

from compat.syntax.toml import Places

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
