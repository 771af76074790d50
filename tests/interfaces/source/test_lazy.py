"""Names that modules give on demand, and names that they refuse."""

from __future__ import annotations

import pytest

from compat.interfaces.release import SourceSurface
from compat.interfaces.source.module import read_module
from compat.interfaces.world import World

_MIGRATION = b"""
MOVED = {"pkg:Moved": "pkg.types:Moved", "pkg.tools:helper": "pkg.old:helper"}
REDIRECTED = {f"pkg.utils:{name}": f"pkg.v1.utils:{name}" for name in ("one", "two")}
REMOVED = {"pkg:Removed"}

def getattr_migration(module):
    def wrapper(name):
        path = f"{module}:{name}"
        if path in MOVED:
            return import_string(MOVED[path])
        raise AttributeError(name)
    return wrapper
"""


def _kind(sources: dict[str, bytes], module: str, name: str) -> str:
    read = {each: read_module(body, each, is_package=each == "pkg") for each, body in sources.items()}
    return World((SourceSurface("pkg", "1.0", read, read.get),)).imported(module, name).kind


@pytest.mark.parametrize(
    ("module", "name", "kind"),
    [
        ("pkg.utils", "one", "value"),
        ("pkg.utils", "three", "absent"),
        ("pkg.tools", "helper", "value"),
        ("pkg", "Moved", "value"),
        ("pkg", "Removed", "absent"),
        ("pkg", "Listed", "value"),
        ("pkg", "BaseSettings", "absent"),
    ],
)
def test_a_getter_that_another_module_makes_gives_what_its_tables_list(module: str, name: str, kind: str) -> None:
    assigned = b"from ._migration import getattr_migration\n__getattr__ = getattr_migration(__name__)\n"
    sources = {
        "pkg": b"""
from importlib import import_module
from ._migration import getattr_migration
_dynamic = {"Listed": (__spec__.parent, ".listed")}
_last = getattr_migration(__name__)
def __getattr__(name):
    found = _dynamic.get(name)
    if found is None:
        return _last(name)
    result = getattr(import_module(found[1], package=found[0]), name)
    globals()[name] = result
    return result
""",
        "pkg._migration": _MIGRATION,
        "pkg.utils": assigned,
        "pkg.tools": assigned,
    }
    assert _kind(sources, module, name) == kind


@pytest.mark.parametrize(
    ("arguments", "name", "kind"),
    [
        (b'rename={"Old": (New, "6.0")}', "Old", "value"),
        (b'remove={"Gone": (New, "6.0")}, rename={}', "Gone", "value"),
        (b'rename={"Old": (New, "6.0")}', "Other", "absent"),
        (b"rename=TABLE", "Other", "unknown"),
        (b"rename={**TABLE}", "Other", "unknown"),
    ],
)
def test_a_getter_gives_the_keys_of_the_tables_that_it_is_made_with(arguments: bytes, name: str, kind: str) -> None:
    made = b"from .utils import deprecate_attr\nclass New: pass\n__getattr__ = deprecate_attr(__name__, " + arguments + b")\n"
    assert _kind({"pkg": b"", "pkg.a": made, "pkg.utils": b"def deprecate_attr(name, **tables): ...\n"}, "pkg.a", name) == kind


def test_an_assigned_getter_of_unknown_origin_leaves_every_name_unknown() -> None:
    assert _kind({"pkg": b"import lazy\n__getattr__ = lazy.attach(__name__, [])\n"}, "pkg", "anything") == "unknown"


_CONDITIONAL = b"""
if SETUP:
    pass
else:
    from . import _core
    for ta in ["float96", "float128"]:
        try:
            globals()[ta] = getattr(_core, ta)
        except AttributeError:
            pass

    def __getattr__(attr):
        if attr == "linalg":
            import pkg.linalg as linalg
            return linalg
        elif attr == "array_api":
            raise AttributeError("not available")
        if attr == "chararray":
            return _core.chararray
        raise AttributeError(attr)
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [("float96", "value"), ("chararray", "value"), ("linalg", "value"), ("array_api", "absent"), ("float_", "absent")],
)
def test_a_getter_under_a_condition_gives_what_it_compares_with(name: str, kind: str) -> None:
    assert _kind({"pkg": _CONDITIONAL}, "pkg", name) == kind
