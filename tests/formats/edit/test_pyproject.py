"""pyproject.toml, scripts with inline metadata and Pipfiles: values change, comments and order stay."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.model import Source
from compat.records import replace
from tests.formats.edit.conftest import COMMIT, VENDOR, Edited

TORCH = Change("torch", "2.5.1", "2.6.0")
CUDA = Change("torch", "2.5.1+cu124", "2.6.0+cu128", VENDOR)
PROJECT = """\
# a project
[project]
name = "demo"
dependencies = [
  "torch>=2.4",  # the framework
  'transformers[torch]>=4.40,<4.50; python_version > "3.9"',
  # trl moves every week
  "trl==0.12.0",
]

[project.optional-dependencies]
serve = ["vllm==0.7.1"]

[dependency-groups]
dev = ["pytest", {include-group = "lint"}]
lint = ["ruff==0.9"]
"""


def test_each_place_of_a_project(edited: Edited) -> None:
    changes = (TORCH, Change("trl", "0.12.0", "0.13"), Change("vllm", "0.7.1", "0.8.0"), Change("ruff", "0.9", "0.10"),
               Change("transformers", "4.45", "4.57.6"))  # fmt: skip
    new = edited("pyproject.toml", PROJECT, *changes)
    expected = PROJECT
    for old, text in (("torch>=2.4", "torch==2.6.0"), ("trl==0.12.0", "trl==0.13"), ("vllm==0.7.1", "vllm==0.8.0"),
                      ("ruff==0.9", "ruff==0.10"), ("[torch]>=4.40,<4.50", "[torch]==4.57.6")):  # fmt: skip
        expected = expected.replace(old, text)
    assert new == expected


def test_beside_uv_lock_ranges_are_only_moved(edited: Edited) -> None:
    new = edited("pyproject.toml", PROJECT, TORCH, **{"uv.lock": "version = 1\n"})
    assert new == PROJECT.replace("torch>=2.4", "torch>=2.6.0")
    fits = Change("torch", "2.3", "2.5")
    assert edited("pyproject.toml", PROJECT, fits, **{"uv.lock": "version = 1\n"}) == PROJECT


def test_groups_for_other_gpus_stay_as_they_are(edited: Edited) -> None:
    project = PROJECT.replace('dev = ["pytest", {include-group = "lint"}]', 'rocm = ["torch>=2.4", "vllm==0.7.1"]')
    changes = (replace(TORCH, left_out=frozenset({"group rocm"})),
               Change("vllm", "0.7.1", "0.8.0", left_out=frozenset({"group rocm"})))  # fmt: skip
    expected = project.replace('"torch>=2.4",  #', '"torch==2.6.0",  #').replace(
        'serve = ["vllm==0.7.1"]', 'serve = ["vllm==0.8.0"]'
    )
    assert edited("pyproject.toml", project, *changes) == expected


def test_a_lock_file_is_never_edited_but_what_it_is_made_from(edited: Edited) -> None:
    lock = 'version = 1\nrequires-python = ">=3.11"\n\n[[package]]\nname = "torch"\nversion = "2.5.1"\n'
    assert edited("uv.lock", lock, TORCH, **{"pyproject.toml": PROJECT}) == lock
    new = edited("uv.lock", lock, TORCH, of="pyproject.toml", **{"pyproject.toml": PROJECT})
    assert new == PROJECT.replace("torch>=2.4", "torch>=2.6.0")


def test_a_lock_file_with_nothing_beside_it(edited: Edited) -> None:
    with pytest.raises(InputError, match=r"poetry\.lock: is a lock file, which compat does not edit: expected pyproject\.toml"):
        edited("poetry.lock", "", TORCH)


def test_windows_line_ends(edited: Edited) -> None:
    text = PROJECT.replace("\n", "\r\n")
    new = edited("pyproject.toml", text, TORCH, Change("tokenizers", "0.20", "0.21", why="needed"))
    assert "\n" not in new.replace("\r\n", "")
    added = '  "trl==0.12.0",\r\n  "tokenizers==0.21", # needed\r\n'
    assert new == text.replace("torch>=2.4", "torch==2.6.0").replace('  "trl==0.12.0",\r\n', added)


def test_what_others_bring_becomes_a_constraint_for_uv(edited: Edited) -> None:
    change = Change("tokenizers", "0.20", "0.21", why="transformers 4.57 needs it")
    new = edited("pyproject.toml", f"{PROJECT}\n[tool.uv]\npackage = false\n\n[tool.x]\na = 1\n", change)
    line = 'constraint-dependencies = [\n    "tokenizers==0.21", # transformers 4.57 needs it\n]\n'
    assert new == f"{PROJECT}\n[tool.uv]\npackage = false\n{line}\n[tool.x]\na = 1\n"
    back = Change("tokenizers", "0.21", "0.20")
    assert 'constraint-dependencies = [\n    "tokenizers==0.20",' in edited("pyproject.toml", new, back)


def test_a_pin_that_must_be_violated_becomes_an_override(edited: Edited) -> None:
    change = Change("numpy", "1.26", "2.0", override=True, why="vllm is wrong")
    new = edited("pyproject.toml", PROJECT, change, **{"uv.lock": "version = 1\n"})
    assert new == f'{PROJECT}\n[tool.uv]\noverride-dependencies = [\n    "numpy==2.0", # vllm is wrong\n]\n'


def test_only_uv_can_override(edited: Edited) -> None:
    with pytest.raises(InputError, match="which only uv can override"):
        edited("pyproject.toml", PROJECT, Change("numpy", "1.26", "2.0", override=True))


UV = f"""{PROJECT}
[tool.uv.sources]
torch = {{ index = "pytorch-cu124" }}
trl = {{ git = "https://github.com/huggingface/trl.git", tag = "v0.12" }}
vllm = [
  {{ index = "a", extra = "serve" }},
  {{ index = "b", marker = "sys_platform == 'linux'" }},
]

[[tool.uv.index]]
name = "pytorch-cu124"
url = "https://download.pytorch.org/whl/cu124"
explicit = true
"""


def test_the_index_of_another_build(edited: Edited) -> None:
    new = edited("pyproject.toml", UV, CUDA)
    index = '\n[[tool.uv.index]]\nname = "pytorch-cu128"\nurl = "https://download.pytorch.org/whl/cu128"\nexplicit = true\n'
    expected = UV.replace("torch>=2.4", "torch==2.6.0+cu128").replace('index = "pytorch-cu124" }', 'index = "pytorch-cu128" }')
    assert new == expected + index
    assert edited("pyproject.toml", new, CUDA) == new


def test_a_commit_and_back_to_a_release(edited: Edited) -> None:
    new = edited("pyproject.toml", UV, Change("trl", "0.12.0", "0.13.0.dev0", COMMIT))
    assert f'trl = {{ git = "https://github.com/huggingface/trl.git", rev = "{"c" * 40}" }}' in new
    assert '  "trl",\n' in new
    released = edited("pyproject.toml", new, Change("trl", "0.13.0.dev0", "0.13.0"))
    assert '"trl==0.13.0"' in released
    assert "github.com/huggingface/trl" not in released


def test_several_sources_are_not_guessed_at(edited: Edited) -> None:
    assert edited("pyproject.toml", UV, Change("vllm", "0.7.1", "0.8.0")) == UV.replace("vllm==0.7.1", "vllm==0.8.0")
    with pytest.raises(InputError, match=r"pyproject\.toml:\d+: tool\.uv\.sources\.vllm: there are several sources"):
        edited("pyproject.toml", UV, Change("vllm", "0.7.1", "0.8.0", VENDOR))


POETRY = """\
[tool.poetry]
name = "demo"

[tool.poetry.dependencies]
python = "^3.10"
torch = { version = "^2.4", extras = ["opt"] } # framework
trl = "^0.12"  # weekly
peft = { git = "https://github.com/huggingface/peft", rev = "abc" }

# for people who work on it
[tool.poetry.group.dev.dependencies]
ruff = "~0.9"
"""


def test_poetry(edited: Edited) -> None:
    changes = (TORCH, Change("trl", "0.12.1", "0.13.0"), Change("peft", "0.1", "0.14.0"), Change("ruff", "0.9.1", "0.10"))
    new = edited("pyproject.toml", POETRY, *changes)
    expected = POETRY.replace('"^2.4"', '"2.6.0"').replace('"^0.12"', '"0.13.0"').replace('"~0.9"', '"0.10"')
    peft = 'peft = { git = "https://github.com/huggingface/peft", rev = "abc" }'
    assert new == expected.replace(peft, 'peft = { version = "0.14.0" }')


def test_poetry_gets_what_it_does_not_name_before_the_next_comment(edited: Edited) -> None:
    new = edited("pyproject.toml", POETRY, Change("tokenizers", "0.20", "0.21", why="needed"))
    assert new == POETRY.replace('rev = "abc" }\n', 'rev = "abc" }\ntokenizers = "0.21" # needed\n')
    new = edited("pyproject.toml", POETRY, CUDA)
    assert 'torch = { version = "2.6.0+cu128", extras = ["opt"], source = "pytorch-cu128" } # framework' in new
    assert new.endswith('name = "pytorch-cu128"\nurl = "https://download.pytorch.org/whl/cu128"\npriority = "explicit"\n')


def test_pdm(edited: Edited) -> None:
    text = '[project]\nname = "a"\ndependencies = ["torch==2.5.1"]\n\n[tool.pdm.dev-dependencies]\ntest = ["-e git+https://github.com/huggingface/trl@x#egg=trl"]\n'
    new = edited("pyproject.toml", text, TORCH, Change("trl", "1", "2", COMMIT), Change("tokenizers", "1", "2", why="x"))
    assert 'dependencies = ["torch==2.6.0", "tokenizers==2"]' in new
    assert f'test = ["-e git+https://github.com/huggingface/trl@{"c" * 40}#egg=trl"]' in new


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[project]\nname="a"\ndynamic=["dependencies"]\n', "pyproject.toml:3: the dependencies are dynamic"),
        ('[tool.uv]\n[tool.uv.sources]\ntorch={path="../torch"}\n[project]\nname="a"\ndependencies=["torch"]', "pyproject.toml:3: tool.uv.sources.torch: it is installed from a directory"),
        ("[tool.ruff]\n", "pyproject.toml: has no [project]"), ("[project\n", "pyproject.toml:1: is not TOML"),
        ('[tool.poetry.dependencies]\ntorch={path="../t"}\n', "pyproject.toml:2: torch is installed from a directory"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_safely(edited: Edited, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        edited("pyproject.toml", text, TORCH)
    assert str(caught.value).startswith(message)


def test_poetry_with_a_release_for_each_platform(edited: Edited) -> None:
    text = '[tool.poetry.dependencies]\ntorch=[{version="2.5.1", platform="linux"}, {version="2.5.0", platform="darwin"}]\n'
    assert edited("pyproject.toml", text, TORCH) == text.replace("2.5.1", "2.6.0")
    with pytest.raises(InputError, match=r"pyproject\.toml:2: torch is required in several places"):
        edited("pyproject.toml", text, Change("torch", "2.5.1", None))


def test_removed(edited: Edited) -> None:
    new = edited("pyproject.toml", UV, Change("trl", "0.12.0", None), Change("torch", "2.5.1", None))
    assert "torch>=" not in new
    assert '"trl' not in new
    assert "huggingface/trl" not in new
    assert "  # trl moves every week\n" in new


def test_inline_script(edited: Edited) -> None:
    text = '#!/usr/bin/env -S uv run\n# /// script\n# dependencies = [\n#   "torch==2.5.1", # x\n# ]\n# ///\nimport torch\n'
    new = edited("train.py", text, TORCH, Change("tokenizers", "1", "2"))
    assert new == text.replace("2.5.1", "2.6.0").replace(
        "# ]\n", '# ]\n#\n# [tool.uv]\n# constraint-dependencies = [\n#     "tokenizers==2",\n# ]\n'
    )
    with pytest.raises(InputError, match=r"train\.py: expected one '# /// script' block"):
        edited("train.py", "import torch\n", TORCH)


@pytest.mark.parametrize("settings", ["", "#\n", "# [tool.uv]\n# offline = true\n"])
def test_the_first_dependency_of_an_inline_script(edited: Edited, settings: str) -> None:
    text = f"#!/usr/bin/env python\n# /// script\n{settings}# ///\nimport torch\n"
    new = edited("train.py", text, Change("torch", None, "2.6.0", direct=True))
    assert new.startswith('#!/usr/bin/env python\n# /// script\n# dependencies = ["torch==2.6.0"]\n')
    assert new.endswith(f"{settings.removeprefix('#' + chr(10))}# ///\nimport torch\n")


def test_pipfile(edited: Edited) -> None:
    text = '[packages]\ntorch = {version = "==2.5.1", index = "a"}  # x\ntrl = "*"\n\n[dev-packages]\nruff = ">=0.9"\n'
    new = edited(
        "Pipfile", text, TORCH, Change("trl", "0.12", "0.13"), Change("ruff", "0.9", "0.10"), Change("b", None, "1", why="w")
    )
    assert new == text.replace("==2.5.1", "==2.6.0").replace('"*"\n', '"==0.13"\nb = "==1" # w\n').replace(">=0.9", "==0.10")


def test_an_archive(edited: Edited) -> None:
    wheel = Source("url", {"url": "https://example.org/trl-0.13-py3-none-any.whl"})
    assert '"trl @ https://example.org/trl-0.13-py3-none-any.whl"' in edited(
        "pyproject.toml", PROJECT, Change("trl", "0.12.0", "0.13", wheel)
    )
    new = edited("pyproject.toml", UV, Change("trl", "0.12.0", "0.13", wheel))
    assert 'trl = { url = "https://example.org/trl-0.13-py3-none-any.whl" }' in new


def test_two_constraints_are_added_to_one_array(edited: Edited) -> None:
    text = '[project]\nname = "a"\nversion = "1"\ndependencies = []\n'
    added = [Change("rich", None, "13.9.4"), Change("typer-slim", None, "0.21.1", why="trl needs it")]
    new = edited("pyproject.toml", text, *added, **{"uv.lock": "version = 1\n"})
    array = 'constraint-dependencies = [\n    "rich==13.9.4",\n    "typer-slim==0.21.1", # trl needs it\n]\n'
    assert new == f"{text}\n[tool.uv]\n{array}"


@pytest.mark.parametrize(
    ("tool", "table"),
    [
        ("uv", '[[tool.uv.index]]\nname = "pytorch-cu128"\nurl = "{}"\nexplicit = true\n'),
        ("pdm", '[[tool.pdm.source]]\nname = "pytorch-cu128"\nurl = "{}"\ninclude_packages = ["torch", "torchvision"]\n'),
    ],
)
def test_an_index_that_two_packages_come_from_is_added_once(edited: Edited, tool: str, table: str) -> None:
    text = f'[project]\nname = "a"\nversion = "1"\ndependencies = ["torch==2.5.1", "torchvision==0.20.1"]\n[tool.{tool}]\n'
    moved = [Change("torch", "2.5.1", "2.7.0", VENDOR), Change("torchvision", "0.20.1", "0.22.0", VENDOR)]
    assert edited("pyproject.toml", text, *moved).endswith(table.format(VENDOR.details["url"]))


def test_the_reason_why_a_project_cannot_be_edited(edited: Edited) -> None:
    text = '[project]\nname = "a"\nversion = "1"\ndependencies = []\n[tool]\nuv = {}\n'
    with pytest.raises(InputError, match=r"the result would not be valid TOML \(line \d+: "):
        edited("pyproject.toml", text, Change("rich", None, "13.9.4"), **{"uv.lock": "version = 1\n"})


OLD_INDEX = Source("index", {"url": "https://download.pytorch.org/whl/cu121"})
DEFAULT = "https://download.pytorch.org/whl/cu128"
WITH_INDEXES = """\
[tool.poetry.dependencies]
torch = {version = "2.3.0", source = "pytorch"}
triton = {version = "2.3.0", source = "pytorch"}
own = {version = "1.0", source = "company"}
trl = "0.12.0"

[[tool.poetry.source]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu121"
priority = "explicit"

[[tool.poetry.source]]
name = "company"
url = "https://company.example/simple"
"""


def test_the_index_of_an_old_cuda_is_left_with_its_releases(edited: Edited) -> None:
    changes = (
        Change("torch", "2.3.0", "2.8.0", before_source=OLD_INDEX, default_index=DEFAULT),
        Change("triton", "2.3.0", "3.4.0", before_source=OLD_INDEX),
        Change("own", "1.0", "1.1", before_source=Source("index", {"url": "https://company.example/simple"})),
        Change("trl", "0.12.0", "0.13.0", default_index=DEFAULT),
    )
    new = edited("pyproject.toml", WITH_INDEXES, *changes)
    assert 'torch = {version = "2.8.0", source = "pytorch-cu128"}\n' in new
    assert 'triton = {version = "3.4.0"}\n' in new
    assert 'own = {version = "1.1", source = "company"}\n' in new
    assert 'trl = "0.13.0"\n' in new
    assert f'name = "pytorch-cu128"\nurl = "{DEFAULT}"\n' in new
    pipfile = '[packages]\ntorch = {version = "==2.3.0", index = "pytorch"}\n[[source]]\nname = "pytorch"\nurl = "https://download.pytorch.org/whl/cu121"\n'
    new = edited("Pipfile", pipfile, changes[0])
    assert 'torch = {version = "==2.8.0", index = "pytorch-cu128"}\n' in new
