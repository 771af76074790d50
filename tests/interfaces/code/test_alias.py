"""Modules that keep old names by a function that is defined under a condition (transformers 5.0 to 5.20)."""

from __future__ import annotations

from compat.interfaces.source.module import read_module

SOURCE = """
import sys, types
if TYPE_CHECKING:
    from .a import b
else:
    _import_structure = {"a": ["b"]}
    sys.modules[__name__] = _LazyModule(__name__, _import_structure)

    def _alias(alias, target):
        module = types.ModuleType(alias)
        setattr(sys.modules[__name__], alias.rsplit(".", 1)[-1], module)

    _alias(f"{__name__}.old_name", ".new_name")
"""


def test_the_names_are_there_and_no_others_may_be() -> None:
    module = read_module(SOURCE.encode(), "lib", is_package=True)
    assert not module.open
    assert {"b", "old_name"} <= set(module.lazy)


def test_a_text_that_is_not_known_may_be_any_name() -> None:
    assert read_module(SOURCE.replace('f"{__name__}.old_name"', "name()").encode(), "lib", is_package=True).open
