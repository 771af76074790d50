"""setup.py: what the code passes to ``setup()``, read as syntax."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.formats.listing import Listing
from compat.formats.registry import format_of
from compat.formats.setuptools.setup_py import SetupPy
from tests.formats.listings import selected


def read(text: str, path: str = "setup.py") -> Listing:
    (listing,) = SetupPy().read(path, text)
    return listing


def required(listing: Listing) -> list[str]:
    """Name, version or specifier of every entry, in order."""
    found = [each.distribution for each in listing.entries]
    return [f"{each.name} {each.version or each.specifier or '*'}" for each in found]


LITERAL = """\
from setuptools import find_packages, setup

setup(
    name="toy",
    packages=find_packages(),
    python_requires=">=3.9, <4",
    install_requires=[
        "torch>=2.0,<2.3",  # tested
        'transformers[torch] == 4.40.1 ; sys_platform == "linux"',
        "numpy",
    ],
    extras_require={"train": ["trl==0.8.6"], "all": ["toy[train]", "peft"], ":python_version < '3.10'": ["tomli"]},
)
"""


def test_literal_lists_are_entries_with_lines_and_extras_are_choices() -> None:
    listing = read(LITERAL)
    assert [(each.distribution.name, each.line) for each in listing.entries] == [
        ("torch", 8), ("transformers", 9), ("numpy", 10), ("trl", 12), ("toy", 12), ("peft", 12), ("tomli", 12),
    ]  # fmt: skip
    assert [choice.label for choice in listing.choices] == ["extra train", "extra all"]
    assert (listing.kind, listing.requires_python, listing.notes, listing.elsewhere) == ("setup.py", ">=3.9,<4", (), ())
    assert "trl 0.8.6" in selected(listing, extras=("all",))
    assert "trl 0.8.6" not in selected(listing)
    assert "tomli None" in selected(listing, python="3.9.2")
    assert "tomli None" not in selected(listing, python="3.11.2")


COMPUTED = """\
import os
import re
import setuptools

_deps = ["torch==2.4.0", "transformers[sentencepiece]>=4.45", "accelerate", "peft @ git+https://example.org/peft.git"]
deps = {b: a for a, b in (re.findall(r"^(([^!=<>~ ]+)(?:[!=<>~ ].*)?$)", x)[0] for x in _deps)}


def deps_list(*names):
    return [deps[name] for name in names]


TORCH = "2.1"
requirements = [f"triton=={TORCH}.0", "xformers==" + "0.0.23"] + deps_list("torch", "accelerate")
requirements += deps_list("transformers")
requirements.append("einops")
extras = {}
extras["hub"] = deps_list("peft")
extras["dev"] = extras["hub"] + ["pytest"] if True else []
extras.update(docs=["sphinx"])
extras["all"] = sorted({each for listed in extras.values() for each in listed})


def main():
    setuptools.setup(name="toy", install_requires=requirements, **{"extras_require": extras})


if __name__ == "__main__":
    main()
"""


def test_names_functions_tables_and_concatenation_are_followed() -> None:
    listing = read(COMPUTED)
    assert required(listing)[:6] == [
        "triton 2.1.0", "xformers 0.0.23", "torch 2.4.0", "accelerate *", "transformers >=4.45", "einops *",
    ]  # fmt: skip
    assert [choice.name for choice in listing.choices] == ["hub", "dev", "docs", "all"]
    assert sorted(required(listing)[-3:]) == ["peft *", "pytest *", "sphinx *"]
    assert listing.elsewhere == ()


@pytest.mark.parametrize(
    "code",
    [
        "requirements = open('requirements.txt').read().splitlines()",
        "with open('requirements.txt') as file:\n    requirements = [line.strip() for line in file if line[:1] != '#']",
        "with open('requirements.txt', encoding='utf-8') as file:\n    requirements = file.read().strip().split('\\n')",
        ("import os\nhere = os.path.dirname(os.path.abspath(__file__))\n"
        "requirements = list(open(os.path.join(here, 'requirements.txt')))"),
        "from pathlib import Path\nrequirements = (Path(__file__).parent / 'requirements.txt').read_text().split('\\n')",
        ("def load(name='requirements.txt'):\n    with open(name) as file:\n        lines = file.readlines()\n"
        "    return [line for line in map(str.strip, lines) if line and not line.startswith('#')]\nrequirements = load()"),
        ("import pkg_resources\nwith open('requirements.txt') as file:\n"
        "    requirements = [str(each) for each in pkg_resources.parse_requirements(file)]"),
        ("from pip._internal.req import parse_requirements\n"
        "requirements = [str(each.requirement) for each in parse_requirements('requirements.txt', session=None)]"),
        ("def lines(name):\n    for line in open(name):\n        line = line.strip()\n        if line.startswith('#'):\n"
        "            continue\n        yield line\nrequirements = list(lines('requirements.txt'))"),
        ("import re\ndef parse(name):\n    found = []\n    for line in open(name):\n        found.append(re.split('#', line)[0])\n"
        "    return found, []\nrequirements, links = parse('requirements.txt')"),
    ],
)  # fmt: skip
def test_requirements_files_are_read_as_packaging_code_reads_them(tmp_path: Path, code: str) -> None:
    (tmp_path / "requirements.txt").write_text("# comment\ntorch==2.2.0  # pinned\ntrl>=0.8\n\n")
    path = str(tmp_path / "setup.py")
    listing = read(f"from setuptools import setup\n{code}\nsetup(install_requires=requirements)\n", path)
    assert required(listing) == ["torch 2.2.0", "trl >=0.8"]
    assert [(each.file, each.line) for each in listing.entries] == [
        (str(tmp_path / "requirements.txt"), 2), (str(tmp_path / "requirements.txt"), 3),
    ]  # fmt: skip
    assert listing.elsewhere == ()


def test_what_depends_on_the_machine_is_a_note_and_no_requirement() -> None:
    listing = read(
        "import os, subprocess\nfrom setuptools import setup\n"
        "requirements = ['numpy']\n"
        "if os.environ.get('USE_CUDA'):\n    requirements.append('triton==2.1.0')\n"
        "try:\n    import torch\nexcept ImportError:\n    requirements += ['torch']\n"
        "setup(install_requires=requirements + subprocess.run(['list']).stdout.split(), extras_require=extras())\n"
    )
    assert required(listing) == ["numpy *"]
    assert listing.elsewhere == (
        "setup.py:10: install_requires is computed in a way that could not be followed",
        "setup.py:10: extras_require is computed in a way that could not be followed",
        "setup.py:4: triton==2.1.0 (install_requires) depends on this condition: not read",
        "setup.py:6: torch (install_requires) depends on this condition: not read",
    )


def test_both_ways_of_an_undecided_condition_agree() -> None:
    listing = read(
        "import sys\nfrom setuptools import setup\n"
        "def base():\n    if sys.platform == 'win32':\n        return ['numpy', 'torch==2.0.1']\n    return ['numpy', 'triton']\n"
        "if not sys.version_info > (3, 8):\n    raise SystemExit('too old')\n"
        "setup(install_requires=base())\n"
    )
    assert required(listing) == ["numpy *"]
    assert listing.elsewhere == ("setup.py:4: torch==2.0.1, triton (install_requires) depend on this condition: not read",)


def test_a_missing_file_and_one_outside_of_the_project_are_notes(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "requirements.txt").write_text("torch==2.2.0\n")
    path = str(tmp_path / "project" / "setup.py")
    for name in ("requirements.txt", "../requirements.txt"):
        listing = read(f"from setuptools import setup\nsetup(install_requires=open({name!r}).read().split())\n", path)
        assert (listing.entries, len(listing.elsewhere)) == ((), 1)


def test_nothing_of_the_code_runs(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    read(f"from setuptools import setup\nopen({str(mark)!r}, 'w').write('x')\nimport os\nos.mkdir({str(mark)!r})\nsetup()\n")
    assert not mark.exists()


@pytest.mark.parametrize(
    "code",
    [
        "def again(x):\n    return again(x)\nrequirements = again(1)",
        "requirements = ['a']\nfor _ in range(10**9):\n    requirements.append('b')",
        "requirements = ['a']\n" + "requirements = requirements + requirements\n" * 60,
        "requirements = ['a']\nwhile True:\n    requirements.append('b')",
        "import os\n" + "".join(f"if os.environ.get('{n}'):\n    requirements = ['a{n}']\n" for n in range(200)),
        "def f():\n" + "".join(f"    if x{n}:\n        return ['a']\n" for n in range(60)) + "requirements = f()",
    ],
)
def test_code_that_never_ends_is_left_in_time(code: str) -> None:
    listing = read(f"from setuptools import setup\n{code}\nsetup(install_requires=requirements)\n")
    assert len(listing.entries) < 20_000
    assert listing.kind == "setup.py"
    assert listing.elsewhere


def test_setup_cfg_and_pyproject_next_to_an_empty_call(tmp_path: Path) -> None:
    path = str(tmp_path / "setup.py")
    text = "from setuptools import setup\nsetup()\n"
    assert (read(text, path).entries, read(text, path).elsewhere) == ((), ())
    (tmp_path / "setup.cfg").write_text("[options]\ninstall_requires =\n    torch==2.2.0\n")
    listing = read(text, path)
    assert [(each.distribution.name, each.file, each.line) for each in listing.entries] == [
        ("torch", str(tmp_path / "setup.cfg"), 3)
    ]
    (tmp_path / "setup.cfg").unlink()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'toy'\n")
    assert read(text, path).elsewhere == (f"{path}:1: the requirements are in pyproject.toml: check that file",)


def test_other_files_of_this_name_are_scripts(tmp_path: Path) -> None:
    assert format_of("src/trainer/setup.py", b"").kind == "setup.py"
    text = "def setup(model):\n    return model\n\nprint(setup(1))\n"
    (tmp_path / "setup.py").write_text(text)
    listing = read(text, str(tmp_path / "setup.py"))
    assert (listing.kind, listing.entries) == ("script", ())
