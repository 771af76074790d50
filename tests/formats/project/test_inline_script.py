"""Inline metadata of scripts (PEP 723)."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.project.inline import PythonScript, read_inline_script
from compat.model import Source

SCRIPT = """\
#!/usr/bin/env -S uv run
# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "torch==2.6.0",
#     "trl>=0.17 ; sys_platform == 'linux'",
# ]
#
# [tool.uv.sources]
# torch = {index = "cu124"}
# [[tool.uv.index]]
# name = "cu124"
# url = "https://download.pytorch.org/whl/cu124"
# ///
import torch
"""


@pytest.mark.parametrize("text", [SCRIPT, SCRIPT.replace("\n", "\r\n"), "\ufeff" + SCRIPT])
def test_a_script(text: str) -> None:
    (listing,) = read_inline_script("train.py", text)
    assert [(e.distribution.name, e.distribution.version or e.distribution.specifier, e.line) for e in listing.entries] == [
        ("torch", "2.6.0", 5), ("trl", ">=0.17", 6)]  # fmt: skip
    assert listing.entries[0].distribution.source == Source("index", {"url": "https://download.pytorch.org/whl/cu124"})
    assert (listing.kind, listing.requires_python, listing.complete) == ("script", ">=3.11", False)
    assert listing.edges == ((-1, 0, None, None), (-1, 1, 'sys_platform == "linux"', None))


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n",
        "# /// script\n# dependencies = ['a']\nimport x\n",
        "# /// other\n# ///\n",
        "x = '# /// script'\n",
        " # /// script\n # ///\n",
    ],
)
def test_no_block_no_listing(text: str) -> None:
    assert read_inline_script("train.py", text) == ()


def test_an_empty_block_installs_nothing() -> None:
    (listing,) = read_inline_script("train.py", "# /// script\n# ///\n")
    assert listing.entries == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n# /// script\n# dependencies = [\n# ///\n", None),
        ("\n# /// script\n# dependencies = ['a b']\n# ///\n", 3),
        ("# /// script\n# dependencies = 'a'\n# ///\n", 2),
        ("# /// script\n# requires-python = 3\n# ///\n", 2),
        ("# /// script\n# ///\n\n# /// script\n# ///\n", 4),
        ("# /// script\n# x = 1\n# ///\n# x = 2\n# ///\n", 3),
        ("# /// script\n# tool = 1\n# ///\n", None),
    ],
)
def test_what_is_wrong_is_an_input_error(text: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        read_inline_script("train.py", text)
    assert caught.value.file == "train.py"
    assert line is None or caught.value.line == line


def test_a_script_that_lists_nothing_says_how_its_imports_are_checked(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    (listing,) = PythonScript().read(str(tmp_path / "train.py"), "import torch\n")
    assert listing.entries == ()
    assert any("compat doctor -- python SCRIPT" in note for note in listing.notes)
    (tmp_path / "train.py").write_text(SCRIPT)
    (listing,) = PythonScript().read(str(tmp_path / "train.py"), SCRIPT)
    assert not any("lists no packages" in note for note in listing.notes)
