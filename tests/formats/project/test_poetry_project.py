"""Poetry's own tables."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.listing import Listing
from compat.formats.project.pyproject import Pyproject
from compat.model import Distribution, Source

POETRY = """\
[tool.poetry]
name = "server"
[tool.poetry.dependencies]
python = "^3.10"
torch = {version = "^2.4.1", optional = true, source = "Torch"}
vllm = "~0.8.5"
trl = "0.17.0"
numpy = "1.26.*"
rich = "*"
peft = {git = "https://github.com/o/peft.git", rev = "0b62b4378b4ce9367932c73540349da9a41bdea8"}
kernels = [
  {url = "https://h.example/kernels-0.1+cu123-cp310-cp310-linux_x86_64.whl", python = "~3.10", optional = true},
  {version = "^0.2", python = ">=3.11", platform = "linux", markers = "os_name != 'nt'", extras = ["b", "a"]},
]
local = {path = "../local", develop = true}
either = "^1.0 || ^3.0"
[tool.poetry.extras]
gpu = ["torch", "kernels"]
[tool.poetry.group.dev.dependencies]
pytest = "^7.3.0"
[tool.poetry.group.docs]
optional = true
include-groups = ["dev"]
[tool.poetry.group.docs.dependencies]
sphinx = ">=7"
[[tool.poetry.source]]
name = "torch"
url = "https://download.pytorch.org/whl/cu121"
"""


def read(text: str) -> Listing:
    (listing,) = Pyproject().read("pyproject.toml", text)
    return listing


def test_dependencies() -> None:
    listing = read(POETRY)
    wheel = "https://h.example/kernels-0.1+cu123-cp310-cp310-linux_x86_64.whl"
    commit = {"url": "https://github.com/o/peft.git", "commit": "0b62b4378b4ce9367932c73540349da9a41bdea8"}
    ten, linux = (
        'python_full_version >= "3.10" and python_full_version < "3.11"',
        'python_full_version >= "3.11" and sys_platform == "linux"',
    )
    index = Source("index")
    assert [entry.distribution for entry in listing.entries] == [
        Distribution("torch", None, Source("index", {"url": "https://download.pytorch.org/whl/cu121"}), None, ">=2.4.1,<3"),
        Distribution("vllm", None, index, None, ">=0.8.5,<0.9"),
        Distribution("trl", "0.17.0", index),
        Distribution("numpy", None, index, None, "==1.26.*"),
        Distribution("rich", None, index),
        Distribution("peft", None, Source("vcs", commit)),
        Distribution("kernels", "0.1+cu123", Source("url", {"url": wheel}), ten),
        Distribution("kernels", None, index, f'({linux}) and os_name != "nt"', ">=0.2,<0.3", {"extras": ["a", "b"]}),
        Distribution("local", None, Source("directory", {"path": "../local", "editable": True})),
        Distribution("either", None, index, None, None, {"requested": "^1.0 || ^3.0"}),
        Distribution("pytest", None, index, None, ">=7.3.0,<8"),
        Distribution("sphinx", None, index, None, ">=7"),
    ]
    assert [entry.line for entry in listing.entries] == [5, 6, 7, 8, 9, 10, 12, 12, 15, 16, 20, 25]
    assert listing.requires_python == ">=3.10,<4"


def test_an_optional_dependency_is_installed_by_its_extra_only() -> None:
    listing = read(POETRY)
    assert [(choice.label, choice.default) for choice in listing.choices] == [
        ("extra gpu", False),
        ("group dev", True),
        ("group docs", False),
    ]
    edges = listing.edges or ()
    below: dict[int, set[int]] = {}
    for parent, child, _, _ in edges:
        below.setdefault(parent, set()).add(child)
    count = len(listing.entries)
    assert {child for child in below[-1] if child < count} == {1, 2, 3, 4, 5, 7, 8, 9}
    gpu, dev, docs = (next(child for parent, child, _, choice in edges if choice == number) for number in range(3))
    assert {entry for middle in below[gpu] for entry in below[middle]} == {0, 6, 7}
    assert below[dev] == {10}
    assert below[docs] == {11, dev}


def test_pythons_that_are_no_single_range_are_a_note() -> None:
    listing = read('[tool.poetry.dependencies]\npython = "3.10 || 3.12"\n')
    assert listing.requires_python is None
    assert listing.notes == ("pyproject.toml:2: the Pythons 3.10 || 3.12 are not a single range; any Python is accepted",)


def test_old_development_dependencies() -> None:
    listing = read('[tool.poetry.dev-dependencies]\npytest = "7"\n')
    assert [(choice.name, choice.default) for choice in listing.choices] == [("dev", True)]
    assert listing.entries[0].distribution.version == "7"


def test_beside_a_project_table_it_only_says_where_things_come_from() -> None:
    text = '[project]\nname = "x"\ndependencies = ["torch>=2", "a"]\n[tool.poetry.dependencies]\ntorch = {source = "t"}\na = "1"\nb = "1"\n[[tool.poetry.source]]\nname = "t"\nurl = "https://t.example"\n'
    assert [entry.distribution for entry in read(text).entries] == [
        Distribution("torch", None, Source("index", {"url": "https://t.example"}), None, ">=2"), Distribution("a", source=Source("index"))]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "dependencies = 1", "dependencies = {a = 1}", "dependencies = {a = 'x y'}", "dependencies = {a = '^'}", "dependencies = {a = [1]}",
        "dependencies = {a = {version = 1}}", "dependencies = {a = {git = 1}}", "dependencies = {a = {optional = 'yes'}}", "dependencies = {python = 3}",
        "dependencies = {a = {python = '^y'}}", "dependencies = {a = {markers = 'x'}}", "dependencies = {a = {platform = \"a'\\\"b\"}}",
        "dependencies = {a = {extras = 1}}", "dependencies = {'a b' = '1'}", "extras = {a = 1}", "extras = 1", "group = 1", "group = {a = 1}",
        "group = {a = {optional = 1}}", "group = {a = {dependencies = 1}}", "group = {a = {include-groups = ['b']}}", "source = 1", "name = 1",
        "dependencies = {a = '" + ">=1 " * 1000 + "'}", "dev-dependencies = []", "dependencies = {a = '9" + "9" * 30 + ".x.'}",
    ],
)  # fmt: skip
def test_what_is_wrong_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError):
        Pyproject().read("pyproject.toml", f"[tool.poetry]\n{text}\n")
