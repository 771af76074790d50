"""Verdicts of existing rows on releases that came out since."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.interfaces.rows import Row, Rows
from compat.interfaces.source.module import FORM
from scripts.surface import newer, rows, tables
from scripts.surface.existing import Existing
from scripts.surface.extract import missing, read_records
from scripts.surface.history import history_of
from scripts.surface.mined import Mined
from scripts.surface.opened import rows_in
from scripts.surface.store import Fetched, Store

TRANSFORMERS = {
    "1.0": "def load(name): ...\nclass Trainer:\n    def train(self): self.step(1)",
    "2.0": "def load(name, dtype=None): ...\ndef mask(): ...\nclass Trainer:\n    def train(self): self.step(1, 2)\n    def log(self): ...",
    "3.0": "def load(name, dtype=None): ...\nclass Trainer:\n    def train(self): self.step(1)",
}
HUB = {"0.1": "", "0.2": "def login(): ..."}
LOGIN = "\nfrom huggingface_hub import login"
TRL = """
from transformers import Trainer, load, mask
class Ours(Trainer):
    def step(self, one): ...
    def train(self):
        self.log()
        load(1, dtype=2)
"""


def _keep(store: Store, package: str, version: str, day: str, source: str) -> None:
    store.keep(
        Fetched(
            package,
            version,
            "a.whl",
            None,
            day,
            True,
            1,
            0.1,
            (),
            {f"{package.replace('-', '_')}/__init__.py": source.encode()},
        )
    )
    store.keep_records(FORM, read_records(store, missing(store, package)))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Rows made when there were two releases, and then a third came."""
    folder, surface = tmp_path_factory.mktemp("store"), tmp_path_factory.mktemp("surface")
    store = Store(folder)
    for version in ("1.0", "2.0"):
        _keep(store, "transformers", version, f"2024-0{version[0]}-01", TRANSFORMERS[version] + LOGIN)
    for version in HUB:
        _keep(store, "huggingface-hub", version, f"2024-0{version[2]}-01", HUB[version])
    _keep(store, "trl", "1.0", "2024-02-02", TRL)
    _keep(store, "trl", "0.9", "2024-01-02", TRL.replace(", mask", "").replace("self.log()", "...").replace(", dtype=2", ""))
    with pytest.MonkeyPatch.context() as patch:
        for module in (rows, newer, tables):
            patch.setattr(module, "FOLDER", surface)
        assert rows.main(["--store", str(folder), "--jobs", "1"]) == 0
        _keep(store, "transformers", "3.0", "2024-03-01", TRANSFORMERS["3.0"] + LOGIN)
        (surface / "transformers.bin").write_bytes(tables.packed(history_of(Mined(store), "transformers")))
        assert newer.main(["transformers", "peft", "--store", str(folder)]) == 0
    opened = rows_in(surface / "rows.bin")
    assert opened is not None
    return opened


def _row(found: Rows, what: str) -> Row:
    return next(row for kind in "ER" for row in found.of("trl", "1.0", kind=kind) if row.what == what)


def test_the_rows_know_the_new_release(found: Rows) -> None:
    assert found.versions("transformers") == ("1.0", "2.0", "3.0")


def test_a_name_that_the_new_release_has_no_longer_is_missing_again(found: Rows) -> None:
    row = _row(found, "transformers.mask")
    assert row.bad == ("1.0", "3.0")
    assert [(each.version, each.has) for each in row.evidence][-2:] == [("2.0", True), ("3.0", False)]


def test_a_method_of_a_base_is_asked_for_by_its_name(found: Rows) -> None:
    assert _row(found, "transformers.Trainer.log").bad == ("1.0", "3.0")


def test_what_was_added_and_stays_is_there(found: Rows) -> None:
    assert _row(found, "transformers.load(dtype=)").bad == ("1.0",)


def test_an_override_fits_again_when_it_is_called_as_before(found: Rows) -> None:
    row = next(row for row in found.of("trl", "0.9", kind="R") if row.kind == "override")
    assert row.bad == ("2.0",)


def test_what_the_package_itself_still_needs_is_found_where_it_is_now(found: Rows) -> None:
    row = next(row for row in found.of("transformers", "3.0") if row.what == "huggingface_hub.login")
    assert (row.bad, row.line) == (("0.1",), 4)


def test_a_package_with_rows_of_its_own_waits_for_its_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newer, "FOLDER", tmp_path)
    monkeypatch.setattr(newer, "existing", lambda path: Existing({"trl": {}}, {}, {"trl": ("1.0",)}))
    store = Store(tmp_path / "store")
    _keep(store, "trl", "1.0", "2024-01-01", "")
    (tmp_path / "trl.bin").write_bytes(tables.packed(history_of(Mined(store), "trl")))
    assert newer.main(["trl", "--store", str(tmp_path / "none")]) == 0
    assert "not in the store" in capsys.readouterr().out
