"""The table of accepted strings, from sources in a store to the file and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.interfaces.changes import VALUE, Changes
from scripts.surface import values
from scripts.surface.store import Fetched, Store

TRAINER = 'class C:\n    loss_type: Literal[{}] = "a"\n'
REGISTRY = 'METHODS = {{"awq": 1{}}}\n'


def kept(folder: Path, *releases: dict[str, str]) -> Store:
    """Return a store with a package of a release for each entry, ``1.0``, ``2.0`` …"""
    store = Store(folder)
    for at, modules in enumerate(releases, 1):
        bodies = {f"vllm/{name}.py": body.encode() for name, body in modules.items()}
        store.keep(Fetched("vllm", f"{at}.0", "a.whl", None, "2024-01-01", True, 1, 0.1, (), bodies))
    return store


def written(monkeypatch: pytest.MonkeyPatch, folder: Path, *releases: dict[str, str]) -> Changes:
    path = folder / "values.bin"
    monkeypatch.setattr(values, "PATH", path)
    kept(folder, *releases).close()
    assert values.main(["--store", str(folder), "--jobs", "1", "vllm"]) == 0
    return Changes(path.read_bytes())


def test_values_that_come_and_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = written(
        monkeypatch,
        tmp_path,
        {"quant": REGISTRY.format(', "squeezellm": 2')},
        {"quant": REGISTRY.format("")},
        {"quant": REGISTRY.format(', "moe_wna16": 3')},
    )
    told = {
        term: [(each.kind, each.module, each.owner, each.has, each.lacks) for each in table.of(term)] for term, _ in table.all()
    }
    assert told == {
        "squeezellm": [(VALUE, "vllm.quant", "METHODS", ("1.0",), ("2.0", "3.0"))],
        "moe_wna16": [(VALUE, "vllm.quant", "METHODS", ("3.0",), ("1.0", "2.0"))],
    }


def test_a_container_that_is_new_says_nothing_of_the_releases_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = written(monkeypatch, tmp_path, {"quant": ""}, {"quant": REGISTRY.format("")})
    assert list(table.all()) == []


def test_a_value_that_changes_somewhere_is_told_of_every_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = {"a": REGISTRY.format("")}, {"a": REGISTRY.format(', "fp8": 1'), "b": 'NEW = ["fp8"]'}
    table = written(monkeypatch, tmp_path, first, second)
    assert [(each.owner, each.has, each.lacks) for each in table.of("fp8")] == [
        ("METHODS", ("2.0",), ("1.0",)),
        ("NEW", ("2.0",), ()),
    ]


def test_comparisons_of_all_modules_count_as_one_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = written(
        monkeypatch,
        tmp_path,
        {"a": 'x = config.loss_type == "ipo"'},
        {"a": "", "b": 'y = args.loss_type == "ipo" or args.loss_type == "kto"'},
    )
    assert [(each.module, each.owner, each.has) for each in table.of("kto")] == [("", "=loss_type", ("2.0",))]
    assert table.of("ipo") == []


def test_a_package_that_is_not_in_the_store_keeps_its_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written(monkeypatch, tmp_path, {"quant": REGISTRY.format("")}, {"quant": REGISTRY.format(', "fp8": 1')})
    assert values.main(["--store", str(tmp_path / "other"), "--jobs", "1"]) == 0
    assert [each.has for each in Changes((tmp_path / "values.bin").read_bytes()).of("fp8")] == [("2.0",)]
