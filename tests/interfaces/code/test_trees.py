from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks.source_trees import tree_of


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "checkout"
    (root / "lib" / "deep").mkdir(parents=True)
    (root / "lib" / "__init__.py").write_text("from lib.deep.mod import f\n", encoding="utf-8")
    (root / "lib" / "deep" / "__init__.py").write_text("", encoding="utf-8")
    (root / "lib" / "deep" / "mod.py").write_text("def f(a): pass\n", encoding="utf-8")
    (root / "lib" / "fast.cpython-311.so").write_bytes(b"")
    return root


def test_modules_are_found_and_read(tree: Path) -> None:
    surface = tree_of("lib", "1.dev0", str(tree), ("lib",))
    assert surface is not None
    assert surface.names == {"lib", "lib.deep", "lib.deep.mod"}
    assert surface.holds("lib.fast") == "opaque"
    module = surface.module("lib.deep.mod")
    assert module is not None
    assert list(module.definitions) == ["f"]


def test_what_was_read_is_kept_by_content(tree: Path, tmp_path: Path) -> None:
    first = tree_of("lib", "1.dev0", str(tree), ("lib",))
    assert first is not None
    before = first.module("lib.deep.mod")
    kept = list((tmp_path / "cache").rglob("*/*"))
    assert any(each.is_file() for each in kept)
    again = tree_of("lib", "1.dev0", str(tree), ("lib",))
    assert again is not None
    assert again.module("lib.deep.mod") == before
    (tree / "lib" / "deep" / "mod.py").write_text("def g(a): pass\n", encoding="utf-8")
    changed = tree_of("lib", "1.dev0", str(tree), ("lib",))
    assert changed is not None
    module = changed.module("lib.deep.mod")
    assert module is not None
    assert list(module.definitions) == ["g"]


def test_a_damaged_cache_is_read_again(tree: Path, tmp_path: Path) -> None:
    first = tree_of("lib", "1.dev0", str(tree), ("lib",))
    assert first is not None
    before = first.module("lib")
    for each in (tmp_path / "cache").rglob("*"):
        if each.is_file():
            each.write_bytes(b"damaged")
    again = tree_of("lib", "1.dev0", str(tree), ("lib",))
    assert again is not None
    assert again.module("lib") == before


def test_no_tree_is_none(tmp_path: Path) -> None:
    assert tree_of("lib", "1", str(tmp_path), ("lib",)) is None
