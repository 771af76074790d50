"""The evaluator that packaging code, notebooks and training scripts share."""

from __future__ import annotations

import ast

import pytest

from compat.formats.installs.values import Values
from compat.syntax.expressions import Expressions
from compat.syntax.values import Text, Unknown, Value, alternatives
from compat.workload.script_names import Names


def plain(value: Value) -> object:
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value.value if isinstance(value, Text) else ... if isinstance(value, Unknown) else value


@pytest.mark.parametrize(("code", "expected"), [
    ("'a' + 'b'", "ab"), ("f'{1}-{\"x\"}'", "1-x"), ("'%s==%s' % ('a', '1')", "a==1"), ("'{}'.format(2)", "2"),
    ("1 + 2 * 3 - 4 // 3", 6), ("True + 1", ...), ("-1.5", -1.5), ("[1] + [2]", [1, 2]), ("'a,b'.split(',')", ["a", "b"]),
    ("[f'{n}=={v}' for n, v in {'a': '1'}.items()]", ["a==1"]), ("'-'.join(x.upper() for x in ('a', 'b'))", "A-B"),
    ("{**{'a': 1}, 'b': 2}['b']", 2), ("1 if 'a' in ('a', 'b') else 2", 1), ("'x' or name", "x"), ("len(['a'])", 1),
    ("name", ...), ("f'{name}'", ...), ("open('x').read()", ...), ("name.split()", ...), ("2 ** 3", ...), ("'-'.join('ab')", ...),
])  # fmt: skip
def test_expressions_have_the_value_that_python_gives_them(code: str, expected: object) -> None:
    assert plain(Expressions({}).value(ast.parse(code, mode="eval").body)) == expected


def test_the_variable_of_a_comprehension_ends_with_it() -> None:
    code = Expressions({})
    assert plain(code.value(ast.parse("[[x for x in ('a', 'b')], x]", mode="eval").body)) == [["a", "b"], ...]


def test_a_notebook_keeps_every_value_that_a_name_was_given() -> None:
    values = Values()
    for text in ("v = '1' if old else '2'", "pins = {'a': '1'}", "p = [f'{n}=={x}' for n, x in pins.items()]"):
        assign = ast.parse(text).body[0]
        assert isinstance(assign, ast.Assign)
        values.assign(assign.targets[0], assign.value)
    assert alternatives(values.value(ast.parse("f'trl=={v}'", mode="eval").body)) == ("trl==1", "trl==2")
    assert values.filled("pip install {' '.join(p)} {other.strip()}") == "pip install a==1 {other.strip()}"


def test_a_script_only_has_constants() -> None:
    tree = ast.parse("A = 'x'\nB = A.upper()\nC = 1\nC = 2\nD = [A, C]\nE = (A + '/y').split('/')")
    names = Names(tree)
    values = {name: names.value(ast.Name(name, ast.Load(), lineno=1, col_offset=0), ()) for name in "ABCDE"}
    assert values["A"] == "x"
    assert values["B"] == "X"
    assert values["E"] == ["x", "y"]
    assert repr([values["C"], values["D"]]) == "[UNKNOWN, ['x', UNKNOWN]]"
