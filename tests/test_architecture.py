"""The direction of the house: a room imports from the rooms below it, never from one above (docs/architecture.md)."""

from __future__ import annotations

import ast

import pytest

from scripts.shape import PACKAGE, Import, against, below_the_facade, cycles_of, imports_in, modules_of, room_of


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    return modules_of(PACKAGE)


@pytest.fixture(scope="module")
def imports(modules: dict[str, ast.Module]) -> list[Import]:
    """All imports, those for type checkers as well."""
    found = imports_in(PACKAGE, modules)
    assert found, "no import was read"
    return found


def test_every_module_has_a_room(modules: dict[str, ast.Module]) -> None:
    assert [name for name in modules if name != "compat" and room_of(name) is None] == []


def test_nothing_imports_from_a_room_above(imports: list[Import]) -> None:
    assert [f"{each.importer} imports {each.imported}" for each in imports if against(each)] == []


def test_no_modules_import_each_other_in_a_circle(imports: list[Import]) -> None:
    assert cycles_of(below_the_facade(imports)) == []


def test_digits_are_those_that_int_reads(modules: dict[str, ast.Module]) -> None:
    """``"²".isdigit()`` is true, and ``int("²")`` fails: a hostile file ended a command with it."""
    nodes = [(name, node) for name, module in modules.items() for node in ast.walk(module)]
    assert [f"{name}:{node.lineno}" for name, node in nodes if isinstance(node, ast.Attribute) and node.attr == "isdigit"] == []
