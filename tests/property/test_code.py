"""Reading code never raises anything but :class:`InputError`, and what is not known accuses nobody."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from compat.interfaces.code.files import read_code
from compat.interfaces.code.needs import CodeNeeds
from compat.interfaces.code.releases import Reverse
from tests.interfaces.code.made_up import TRACKED, releases

_NAMES = st.sampled_from(("lib", "base", "Special", "Config", "Trainer", "helper", "args", "x", "nothing"))
_LINES = st.builds(
    str.format,
    st.sampled_from((
        "import {0}", "from {0} import {1}", "from {0} import *", "{0} = {1}", "{0}.{1} = {2}", "{0}({1}, {2}={1})", "{0}.{1}(**{2})",
        "class {0}({1}):\n    def {2}(self, *a, {0}=1): return super().{2}({0}={1})", "try:\n    import {0}\nexcept {1}:\n    {2} = 1",
        "if {0}.{1}:\n    from {0} import {2}", "for {0} in {1}: {0}.{2}", "with {0}() as {1}: {1}.{2}()", "def {0}({1}, {2}=1): {1}.{2}",
        "{0}, {1} = HfArgumentParser(({2}, Config)).parse_args_into_dataclasses()", "lambda {0}: {0}.{1}", "del {0}", "{0}: {1} = {2}",
        "setattr({0}, '{1}', {2})", "hasattr({0}, '{1}')", "[{0}.{1} for {0} in {2}]", "@{0}({1}={2})\ndef {1}(): pass",
    )),
    _NAMES, _NAMES, _NAMES,
)  # fmt: skip
_CODE = st.lists(_LINES, max_size=12).map("\n".join)


def _wanted(text: str | bytes, name: str = "run.py") -> CodeNeeds:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return CodeNeeds(read_code((str(path),)), TRACKED)


@given(_CODE)
@example("from lib import *\nlib.x")
@example("class A(A): pass\nclass B(A): pass")
def test_code_of_any_kind_is_judged(text: str) -> None:
    wanted = _wanted(text)
    for each in Reverse(wanted, releases()).ranges():
        assert each.allowed <= set(each.versions)
        assert each.allowed.isdisjoint(version for version, why in each.why.items() if why)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
@example(b"\xff\xfe")
@example(b"# coding: nothing\n")
@example("\0")
@example("(" * 3000)
def test_anything_else_is_a_problem_of_one_line(text: str | bytes) -> None:
    for problem in _wanted(text).code.problems:
        assert "\n" not in str(problem)


@given(_CODE)
def test_in_a_try_nothing_is_needed(text: str) -> None:
    inside = "\n".join(f"    {line}" for line in (text or "pass").split("\n"))
    wanted = _wanted(f"try:\n{inside}\nexcept Exception:\n    pass")
    assert all(each.need[0] == "override" for each in wanted.all)


@given(_CODE)
def test_packages_that_are_not_known_are_not_accused(text: str) -> None:
    wanted = _wanted(text.replace("lib", "other").replace("base", "another"))
    assert wanted.all == ()
