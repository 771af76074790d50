"""From fetched sources to records, tables and rows: two small packages in a store of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.interfaces.imports import eager_rows
from compat.interfaces.rows import E1, E2, R1, Rows
from compat.interfaces.source.module import FORM
from compat.interfaces.table import Table
from compat.interfaces.world import World
from scripts.surface import rows, tables
from scripts.surface.extract import missing, read_records
from scripts.surface.history import history_of
from scripts.surface.imports import shortened
from scripts.surface.mined import Mined
from scripts.surface.opened import rows_in, table_in
from scripts.surface.store import Fetched, Store

PEFT = {
    "0.1.0": {"peft/__init__.py": "from .utils import prepare_int8\nfrom .utils import old\ndef load(model, name=None): ..."},
    "0.2.0": {"peft/__init__.py": "from .utils import prepare, prepare_int8\n\ndef load(model, adapter=None): ..."},
    "0.3.0": {"peft/__init__.py": "from .utils import prepare\ndef load(model, adapter=None): ..."},
}
UTILS = {
    "0.1.0": "def old(): ...\ndef prepare_int8(m): ...",
    "0.2.0": "def prepare(m): ...\ndef prepare_int8(m): ...",
    "0.3.0": "\ndef prepare(m): ...",
}
TRL = {
    "1.0": {
        "trl/__init__.py": "from .core import Trainer",
        "trl/core.py": "import x\nfrom peft import prepare_int8\nclass Trainer:\n    def save(self):\n        from peft import load\n        load(1, adapter=2)",
        "trl/extra.py": "if is_peft_available():\n    from peft import prepare",
        "trl/safe.py": "try:\n    from peft import old\nexcept ImportError:\n    old = None",
        "trl/tests/test_it.py": "from peft import old",
    },
    "1.1": {"trl/__init__.py": "from .core import Trainer", "trl/core.py": "from peft import prepare\nclass Trainer: ..."},
}
UNSLOTH = {"2025.1.1": {"unsloth/__init__.py": "import trl.extra"}}
DAYS = {"0.1.0": "2024-01-01", "0.2.0": "2024-03-01", "0.3.0": "2024-06-01", "1.0": "2024-03-02", "1.1": "2024-06-02", "2025.1.1": "2024-03-05"}  # fmt: skip


def fetched(package: str, version: str, members: dict[str, str]) -> Fetched:
    bodies = {path: body.encode() for path, body in members.items()}
    return Fetched(package, version, f"{package}.whl", None, DAYS[version], True, 1, 0.1, (), bodies)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("store")
    store = Store(made)
    for version, members in PEFT.items():
        store.keep(fetched("peft", version, {**members, "peft/utils.py": UTILS[version]}))
    for package, releases in (("trl", TRL), ("unsloth", UNSLOTH)):
        for version, members in releases.items():
            store.keep(fetched(package, version, members))
    for package in store.packages():
        store.keep_records(FORM, read_records(store, missing(store, package)))
    store.close()
    return made


@pytest.fixture(scope="module")
def found(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    target = tmp_path_factory.mktemp("surface")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "FOLDER", target)
        assert rows.main(["--store", str(folder), "--jobs", "1"]) == 0
    opened = rows_in(target / "rows.bin")
    assert opened is not None
    return opened


@pytest.fixture(scope="module")
def peft(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Table:
    path = tmp_path_factory.mktemp("tables") / "peft.bin"
    path.write_bytes(tables.packed(history_of(Mined(Store(folder)), "peft")))
    table = table_in(path)
    assert table is not None
    return table


def _table(folder: Path, package: str, releases: dict[str, dict[str, str]]) -> Table:
    store = Store(folder / package)
    for version, members in releases.items():
        bodies = {path: body.encode() for path, body in members.items()}
        store.keep(Fetched(package, version, "a.whl", None, "2024-01-01", True, 1, 0.1, (), bodies))
    store.keep_records(FORM, read_records(store, missing(store, package)))
    path = folder / f"{package}.bin"
    path.write_bytes(tables.packed(history_of(Mined(store), package)))
    table = table_in(path)
    assert table is not None
    return table


def _kinds(table: Table, module: str, name: str | None) -> list[str]:
    return [World((surface,)).imported(module, name).kind for surface in table.surfaces()]


class TestTablesOfOtherShapes:
    def test_a_top_level_module_that_is_gone_is_absent_and_one_to_come_unknown(self, tmp_path: Path) -> None:
        releases = {
            "1.0": {"setuptools/__init__.py": "", "other/__init__.py": ""},
            "2.0": {"setuptools/__init__.py": "", "pkg_resources/__init__.py": "def require(): ..."},
            "3.0": {"setuptools/__init__.py": ""},
        }
        table = _table(tmp_path, "setuptools", releases)
        assert _kinds(table, "pkg_resources", None) == ["unknown", "module", "absent"]
        assert _kinds(table, "pkg_resources", "require") == ["unknown", "function", "absent"]
        assert "other" not in table.tops

    def test_a_stub_shows_what_compiled_code_gives_and_what_is_missing_stays_so(self, tmp_path: Path) -> None:
        releases = {
            "1.0": {
                "numpy/__init__.py": "from ._core import *",
                "numpy/__init__.pyi": "float_: int\n_private: int\nfrom typing import Any",
            },
            "2.0": {"numpy/__init__.py": "from ._core import float64", "numpy/__init__.pyi": "float64: int\ninvented: int"},
        }
        table = _table(tmp_path, "numpy", releases)
        assert _kinds(table, "numpy", "float_") == ["value", "absent"]
        assert _kinds(table, "numpy", "invented") == ["never", "never"]
        assert _kinds(table, "numpy", "Any") == ["never", "never"]

    def test_names_alone_hold_what_a_package_passes_on(self, tmp_path: Path) -> None:
        releases = {
            "1.0": {
                "compressed_tensors/utils/__init__.py": "from .helpers import one",
                "compressed_tensors/utils/helpers.py": "one = two = 1",
            },
            "2.0": {
                "compressed_tensors/utils/__init__.py": "from .helpers import two",
                "compressed_tensors/utils/helpers.py": "one = two = 1",
            },
        }
        table = _table(tmp_path, "compressed-tensors", releases)
        assert _kinds(table, "compressed_tensors.utils", "one") == ["value", "absent"]

    def test_a_package_that_imports_its_own_module_still_has_it(self, tmp_path: Path) -> None:
        releases = {
            "1.0": {"compressed_tensors/utils/__init__.py": "", "compressed_tensors/utils/data.py": "one = 1"},
            "2.0": {
                "compressed_tensors/utils/__init__.py": "from compressed_tensors.utils import data as data",
                "compressed_tensors/utils/data.py": "one = 1",
            },
        }
        table = _table(tmp_path, "compressed-tensors", releases)
        assert [World((surface,)).find("compressed_tensors.utils.data.one").kind for surface in table.surfaces()] == [
            "value"
        ] * 2


class TestTables:
    def test_releases_are_in_order(self, peft: Table) -> None:
        assert (peft.versions, peft.uploaded[0]) == (("0.1.0", "0.2.0", "0.3.0"), "2024-01-01")

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("peft.prepare", ["absent", "function", "function"]),
            ("peft.prepare_int8", ["function", "function", "absent"]),
            ("peft.utils.old", ["function", "absent", "absent"]),
            ("peft.load", ["function"] * 3),
            ("peft.lode", ["never"] * 3),
            ("peft.utils", ["module"] * 3),
        ],
    )
    def test_names_by_release(self, peft: Table, name: str, expected: list[str]) -> None:
        assert [World((surface,)).find(name).kind for surface in peft.surfaces()] == expected

    def test_keywords_by_release(self, peft: Table) -> None:
        answers = []
        for surface in peft.surfaces():
            world = World((surface,))
            callee = world.callee(world.find("peft.load"))
            assert callee is not None
            answers.append(bool(world.rejected(*callee, 1, ("adapter",))))
        assert answers == [True, False, False]

    def test_a_table_answers_as_the_sources_do(self, folder: Path, peft: Table) -> None:
        mined = Mined(Store(folder))
        for release in mined.releases("peft"):
            sources, table = World((mined.surface(release),)), peft.surface(release.version)
            assert table is not None
            for module in peft.modules():
                for name in peft.names_in(module):
                    assert World((table,)).imported(module, name).kind == sources.imported(module, name).kind

    def test_an_unknown_release_has_no_surface(self, peft: Table) -> None:
        assert peft.surface("9.9") is None
        assert peft.surface("not a version") is None
        assert peft.surface("0.2") is not None


class TestRowsOfSome:
    def test_they_are_those_of_a_whole_run_and_all_others_stay(
        self, folder: Path, found: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rows, "FOLDER", tmp_path)
        assert rows.main(["peft", "trl", "--store", str(folder), "--jobs", "1"]) == 0
        for package in ("peft", "trl", "unsloth"):
            (tmp_path / f"{package}.bin").write_bytes(tables.packed(history_of(Mined(Store(folder)), package)))
        assert rows.main(["--consumers", "trl", "unsloth", "--store", str(folder), "--jobs", "1"]) == 0
        some = rows_in(tmp_path / "rows.bin")
        assert some is not None
        installed = {"trl": "1.0", "peft": "0.3.0"}
        ((row,), (same,)) = found.broken(installed, tiers=(E1,)), some.broken(installed, tiers=(E1,))
        assert (row.what, row.path, row.line, row.bad) == (same.what, same.path, same.line, same.bad)
        assert [(each.version, each.path) for each in same.evidence] == [(each.version, each.path) for each in row.evidence]
        ((row, chain),) = eager_rows(some, {"trl": "1.0", "peft": "0.1.0", "unsloth": "2025.1.1"})
        assert (row.what, chain) == ("peft.prepare", ("unsloth", "trl.extra"))


class TestRows:
    def test_what_fails_at_import(self, found: Rows) -> None:
        (row,) = found.broken({"trl": "1.0", "peft": "0.3.0"}, tiers=(E1,))
        assert (row.what, row.path, row.line, row.bad) == ("peft.prepare_int8", "trl/core.py", 2, ("0.3.0",))
        assert [(each.version, each.path, each.has) for each in row.evidence] == [
            ("0.2.0", "peft/utils.py", True), ("0.3.0", "peft/__init__.py", False),
        ]  # fmt: skip

    def test_nothing_between_releases_that_fit(self, found: Rows) -> None:
        assert found.broken({"trl": "1.0", "peft": "0.2.0"}) == []
        assert found.broken({"trl": "1.1", "peft": "0.3.0"}) == []

    def test_what_fails_later_and_what_a_module_needs(self, found: Rows) -> None:
        rows_of = found.broken({"trl": "1.0", "peft": "0.1.0"})
        assert {(row.tier, row.what, row.scope) for row in rows_of} == {
            (R1, "peft.load(adapter=)", "Trainer.save"), (E2, "peft.prepare", ""),
        }  # fmt: skip

    def test_another_package_that_imports_the_module_breaks_with_it(self, found: Rows) -> None:
        installed = {"trl": "1.0", "peft": "0.1.0"}
        assert eager_rows(found, installed) == []
        ((row, chain),) = eager_rows(found, installed | {"unsloth": "2025.1.1"})
        assert (row.what, chain) == ("peft.prepare", ("unsloth", "trl.extra"))

    @pytest.mark.parametrize(
        ("version", "fails"), [("0.0.9", True), ("0.0.9+cu118", True), ("0.0.9.dev0", False), ("0.1.0rc1", False)]
    )
    def test_a_release_before_the_oldest_lacks_what_came_later(self, version: str, fails: bool, found: Rows) -> None:
        (row,) = found.broken({"trl": "1.0", "peft": version}, tiers=(E2,)) or [None]
        assert (row is not None and row.what == "peft.prepare") is fails
        assert found.broken({"trl": "1.0", "peft": version}, tiers=(E1,)) == []  # that was removed from a later one

    def test_guards_tests_and_unknown_releases_say_nothing(self, found: Rows) -> None:
        assert not any(row.what.endswith(".old") for _, row in found.all_of("trl"))
        assert found.broken({"trl": "1.0", "peft": "9.9"}) == []
        assert found.broken({"trl": "9.9", "peft": "0.3.0"}) == []


def test_edges_through_modules_that_are_left_out_are_replaced_by_what_they_lead_to() -> None:
    edges = {
        ("vllm", "vllm.model_executor.loader", ()): 0b011,
        ("vllm.model_executor.loader", "vllm.model_executor.weights", ("awq",)): 0b110,
        ("vllm.model_executor.weights", "transformers:AutoModel", ()): 0b111,
        ("vllm.model_executor.weights", "vllm.model_executor.loader", ()): 0b111,  # a cycle
        ("vllm.model_executor.weights", "vllm.model_executor.leaf", ()): 0b111,
        ("vllm.outputs", "vllm", ()): 0b111,
    }
    assert shortened(edges, {"transformers:AutoModel"}) == {
        ("vllm", "transformers:AutoModel", ("awq",)): 0b010,
        ("vllm.outputs", "vllm", ()): 0b111,
    }
    assert ("vllm", "vllm.model_executor.leaf", ("awq",)) in shortened(edges, {"vllm.model_executor.leaf"})
