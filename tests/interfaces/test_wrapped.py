"""Decorators that take keywords themselves, overloads, and modules that exist without a file."""

from __future__ import annotations

import pytest

from compat.interfaces.world import World
from tests.interfaces.test_world import complaints, kinds, release

_TAKEN_OUT = """
from functools import wraps
def dropping(fn):
    @wraps(fn)
    def inner(*args, **kwargs):
        for name, value in zip("ab", kwargs.items()):
            pass
        kwargs = without_old(fn_name=fn.__name__, kwargs=kwargs)
        return fn(*args, **kwargs)
    return inner

def without_old(fn_name, kwargs):
    new = kwargs.copy()
    new.pop("proxies", None)
    return new

def passing(fn):
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)
    return inner

def translating(fn):
    def inner(*args, **kwargs):
        return fn(*args, **{NEW.get(name, name): value for name, value in kwargs.items()})
    return inner

def reading(fn):
    def inner(self, *args, **kwargs):
        if "return_dict" in kwargs:
            kwargs.pop("return_dict")
        return fn(self, *args, **kwargs)
    return inner
"""


@pytest.mark.parametrize(
    ("decorator", "given", "told"),
    [
        ("dropping", "proxies", []),
        ("dropping", "other", [("keyword", "other")]),
        ("passing", "proxies", [("keyword", "proxies")]),
        ("translating", "anything", []),
        ("reading", "return_dict", []),
        ("reading", "proxies", [("keyword", "proxies")]),
    ],
)
def test_what_a_decorator_takes_is_not_missing(decorator: str, given: str, told: list[tuple[str, str]]) -> None:
    source = f"from .wrap import {decorator}\n@{decorator}\ndef load(name): ...\nclass A:\n    @{decorator}\n    def __init__(self, name): ..."
    world = World((release("hub", {"hub/": source, "hub.wrap": _TAKEN_OUT}),))
    assert complaints(world, "hub.load", 0, "name", given) == told
    assert complaints(world, "hub.A", 0, "name", given) == told


def test_too_many_positional_arguments_are_told_through_a_decorator_that_can_be_read() -> None:
    source = "from .wrap import dropping, translating\n@dropping\ndef load(name): ...\n@translating\ndef other(name): ..."
    world = World((release("hub", {"hub/": source, "hub.wrap": _TAKEN_OUT}),))
    assert complaints(world, "hub.load", 2) == [("positional", "2")]
    assert complaints(world, "hub.other", 2) == []


def test_the_function_behind_overloads_says_what_is_taken() -> None:
    source = """
from typing import overload
@overload
def load(name, *, mixed): ...
@overload
def load(name): ...
def load(name, mixed=False): ...
class A:
    @overload
    def run(self, x): ...
    def run(self, x, y=1): ...
"""
    world = World((release("peft", {"peft/": source}),))
    assert complaints(world, "peft.load", 1, "mixed", "device_map") == [("keyword", "device_map")]
    assert complaints(world, "peft.A.run", 1, "z") == [("keyword", "z")]


def test_only_overloads_say_nothing() -> None:
    source = "from typing import overload\n@overload\ndef load(name): ...\n@overload\ndef load(other): ..."
    assert complaints(World((release("peft", {"peft/": source}),)), "peft.load", 0, "third") == []


_FINDER = """
import sys
OLD = {"st.models": "st.modules", "st.losses.Angle": "st.modules"}
def install():
    sys.meta_path.insert(0, Finder())
"""


def test_modules_that_a_finder_gives_are_not_missing() -> None:
    begins = release("st", {"st/": "from .util import install\ninstall()", "st.util": _FINDER, "st.modules": ""})
    # what is above an alias has to be importable by itself
    assert kinds(begins, "st.models", "st.models.Dense", "st.losses", "st.gone") == ["module", "unknown", "absent", "absent"]
    world = World((begins,))
    assert world.imported("st.models", "Dense").kind == "unknown"
    assert world.imported("st.gone", None).kind == "absent"


def test_a_finder_that_the_package_does_not_begin_with_counts_for_nothing() -> None:
    assert kinds(release("st", {"st/": "", "st.util": _FINDER}), "st.models") == ["absent"]


@pytest.mark.parametrize("text", ['sys.modules["st.old"] = new', 'import sys\nsys.modules["st.old"] = sys.modules[__name__]'])
def test_entries_in_sys_modules_are_modules(text: str) -> None:
    assert kinds(release("st", {"st/": text}), "st.old", "st.older") == ["module", "absent"]


def test_reading_sys_modules_gives_no_module() -> None:
    assert kinds(release("st", {"st/": 'if "st.old" in sys.modules: x = sys.modules["st.old"]'}), "st.old") == ["absent"]
