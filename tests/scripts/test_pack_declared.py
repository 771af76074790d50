"""How requirements are split before they are packed."""

from __future__ import annotations

import pytest

from compat.markers import parse
from scripts.pack_declared import _requirement


@pytest.mark.parametrize(
    ("marker", "rest", "extra"),
    [
        ('extra == "fast"', None, "fast"),
        ('os_name == "nt"', 'os_name == "nt"', None),
        ('extra == "fast" and os_name == "nt"', 'os_name == "nt"', "fast"),
        ('os_name != "nt" and (os_name != "java" and python_version > "3") and extra == "fast"',
         'os_name != "nt" and (os_name != "java" and python_version > "3")', "fast"),
        ('(os_name == "nt" or python_version < "3") and extra == "fast"', '(os_name == "nt" or python_version < "3")', "fast"),
    ],
)  # fmt: skip
def test_the_extra_of_a_marker_is_told_from_the_rest(marker: str, rest: str | None, extra: str | None) -> None:
    assert _requirement(f"torch>=2; {marker}")[2:] == (None if rest is None else parse(rest), extra)
