"""The direction of the house: a room imports from the rooms below it, never from one above (docs/architecture.md)."""

from __future__ import annotations

from scripts.shape import PACKAGE, against, below_the_facade, cycles_of, imports_in, modules_of, room_of


def test_every_module_has_a_room() -> None:
    homeless = [name for name in modules_of(PACKAGE) if name != "compat" and room_of(name) is None]
    assert homeless == []


def test_nothing_imports_from_a_room_above() -> None:
    found = imports_in(PACKAGE)
    wrong = [f"{each.importer} imports {each.imported}" for each in found if against(each) and not each.typing]
    assert found, "no import was read"
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    real = [each for each in below_the_facade(imports_in(PACKAGE)) if not each.typing]
    assert real, "no import was read"
    assert cycles_of(real) == []
