"""Public names that only one package has."""

from __future__ import annotations

import pytest

from compat.interfaces.homes import public_homes
from compat.interfaces.table import open_table, tracked
from scripts.pack_mined import public_names


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("BitsAndBytesConfig", ()),  # of several packages
        ("FastLanguageModel", ("unsloth", "unsloth.models")),
        ("no_such_name_anywhere", ()),
    ],
)
def test_the_modules_of_a_name(name: str, modules: tuple[str, ...]) -> None:
    assert public_homes(name) == modules


def test_what_is_stored_is_what_the_tables_have() -> None:
    every: dict[str, set[str]] = {}
    for package, module, name in public_names():
        every.setdefault(name, set()).add(package)
        if package == "trl" and (found := public_homes(name)):
            assert module in found
    assert len(every) > 30_000
    one = [name for name, packages in every.items() if len(packages) == 1]
    assert all(map(public_homes, one[::50]))
    assert not any(public_homes(name) for name in every if len(every[name]) > 1)


def test_private_and_deep_modules_are_no_homes() -> None:
    table = open_table("transformers")
    assert table is not None
    deep = "transformers.models.llama.modeling_llama"
    assert "LlamaDecoderLayer" in table.names_in(deep)
    assert deep not in public_homes("LlamaDecoderLayer")
    assert set(tracked()) >= {module.partition(".")[0] for module in public_homes("GRPOTrainer")}
