"""Small real-looking files to begin with, one a feature, and slices of the real ones where they are at hand."""

from __future__ import annotations

import random
from pathlib import Path

HERE = Path(__file__).resolve().parent / "seeds"
CORPUS = HERE.parents[3] / "shared" / "corpus" / "files"
_REAL = {
    "uv": "uv.lock/*", "poetry": "poetry.lock/*", "pdm": "pdm.lock/*", "pipfile": "Pipfile.lock/*", "pylock": "pylock.toml/*",
    "requirements": "requirements/*", "pyproject": "pyproject/*", "conda": "conda/*environment.y*", "conda-lock": "conda/*conda-lock.yml",
    "pixi": "conda/*pixi.lock",
}  # fmt: skip
_BLOCKS = {"uv": "\n[[package]]", "poetry": "\n[[package]]", "pdm": "\n[[package]]", "pylock": "\n[[packages]]", "conda-lock": "\n- name:",
           "pixi": "\n- "}  # fmt: skip
SLICES = 4
"""Of each real file."""


def seeds_of(reader: str) -> list[bytes]:
    """The checked-in files of a reader (of every one for ``kind_of``), in a fixed order."""
    folders = sorted(HERE.iterdir()) if reader == "kind_of" else [HERE / reader]
    return [file.read_bytes() for folder in folders for file in sorted(folder.glob("*.txt"))]


def slices_of(reader: str) -> list[bytes]:
    """Pieces of some 1 to 4 KB of the real files of a kind; none where the files are not at hand."""
    if reader not in _REAL or not CORPUS.is_dir():
        return []
    chance = random.Random(f"slices of {reader}")
    return [
        _slice(file.read_text(encoding="utf-8"), _BLOCKS.get(reader), chance).encode()
        for file in sorted(CORPUS.glob(_REAL[reader])) for _ in range(SLICES)
    ]  # fmt: skip


def _slice(text: str, separator: str | None, chance: random.Random) -> str:
    if separator is not None:
        head, *blocks = text.split(separator)
        start = chance.randrange(max(1, len(blocks)))
        kept = [*blocks[start : start + 3], *chance.sample(blocks, min(2, len(blocks)))]
        return separator.join([head[:1500], *(block[:1200] for block in kept)])
    lines = text.split("\n")
    if len(lines) < 60:
        return text
    start = chance.randrange(len(lines))
    return "\n".join([*lines[:12], *lines[start : start + 25], *lines[-4:]])
