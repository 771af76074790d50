"""What a script runs in an installed environment: imports that fail, and packages that it never imports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from compat.checks import running, unused
from compat.model import Distribution, Environment, Finding, Source, Workload
from compat.records import replace

Files = Mapping[str, str]


def environment(folder: Path, script: str, files: Files, versions: Mapping[str, str], python: str = "3.11.9") -> Environment:
    """An environment of a script and the files of its packages, each with a list of its files."""
    packages = folder / "site-packages"
    for name, text in files.items():
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, version in versions.items():
        top = name.replace("-", "_")
        info = packages / f"{top}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "RECORD").write_text(f"{top}/__init__.py,,\n{info.name}/METADATA,,\n")
    (folder / "prog.py").write_text(script)
    found = tuple(Distribution(name, version, source=Source("index")) for name, version in versions.items())
    workload = Workload(launcher="python", script="prog.py", code=(str(folder / "prog.py"),))
    return Environment(
        python=python, distributions=found, distributions_complete=True, folders=(str(packages),), workload=workload
    )


def found(folder: Path, script: str, files: Files, versions: Mapping[str, str], python: str = "3.11.9") -> list[Finding]:
    return list(running.judge(environment(folder, script, files, versions, python)))


CHAIN = {"alpha/__init__.py": "from .part import f\n", "alpha/part.py": "import os\nimport beta.deep\n\ndef f(): ...\n"}


def test_a_module_that_an_import_needs_is_not_installed(tmp_path: Path) -> None:
    (error,) = found(tmp_path, "import alpha\n", {**CHAIN, "alpha/part.py": "import requests\nf = 1\n"}, {"alpha": "1.0"})
    assert error.rule == "missing-requests"
    assert error.severity == "error"
    assert error.title == "alpha 1.0 imports requests, which is not installed"
    assert "alpha/part.py:1 always runs with this script (prog.py → alpha → alpha.part)" in error.why
    assert error.fixes[0].command == "pip install requests"


@pytest.mark.parametrize(
    "part",
    [
        "try:\n    import requests\nexcept ImportError:\n    requests = None\nf = 1\n",
        '"""Use it so:\n\nimport requests\n"""\nf = 1\n',
        "if False:\n    import requests\nf = 1\n",
        "def f():\n    import requests\n",
        "import sys\nsys.path.insert(0, 'vendored')\nimport requests\nf = 1\n",
        "import sys\nsys.modules['requests'] = sys\nimport requests\nf = 1\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import requests\nf = 1\n",
    ],
)
def test_an_import_that_need_not_run_or_succeeds_otherwise_is_no_error(tmp_path: Path, part: str) -> None:
    files = {**CHAIN, "alpha/part.py": part, "alpha/vendored/requests.py" if "vendored" in part else "alpha/other.py": ""}
    assert found(tmp_path, "import alpha\n", files, {"alpha": "1.0"}) == []


@pytest.mark.parametrize(
    "script", ["import os\n", "def main():\n    import alpha\n", "try:\n    import alpha\nexcept ImportError:\n    pass\n"]
)
def test_what_the_script_does_not_import_for_sure_is_no_error(tmp_path: Path, script: str) -> None:
    assert found(tmp_path, script, {"alpha/__init__.py": "import requests\n"}, {"alpha": "1.0"}) == []


def test_a_name_that_the_installed_release_does_not_have(tmp_path: Path) -> None:
    files = {"alpha/__init__.py": "from beta.pool import (\n    Queue,  # used below\n    Pool as P,\n)\n", "beta/__init__.py": "",
             "beta/pool.py": "class Pool: ...\n"}  # fmt: skip
    (error,) = found(tmp_path, "from alpha import x\n", {**files, "alpha/__init__.py": files["alpha/__init__.py"] + "x = 1\n"},
                     {"alpha": "1.0", "beta": "2.0"})  # fmt: skip
    assert error.title == "alpha 1.0 imports beta.pool.Queue, which beta 2.0 does not have"
    assert error.packages == {"alpha": "1.0", "beta": "2.0"}
    assert "cannot import name 'Queue' from 'beta.pool'" in error.why


@pytest.mark.parametrize(
    "pool",
    [
        "class Queue: ...\n",
        "def __getattr__(name): ...\n",
        "from .more import *\n",
        "from _compiled import *\n",
        "globals().update({})\n",
    ],
)
def test_a_name_that_may_come_from_elsewhere_is_no_error(tmp_path: Path, pool: str) -> None:
    files = {"alpha/__init__.py": "from beta.pool import Queue\n", "beta/__init__.py": "", "beta/pool.py": pool,
             "beta/more.py": "Queue = 1\n"}  # fmt: skip
    assert [
        each for each in found(tmp_path, "import alpha\n", files, {"alpha": "1", "beta": "2"}) if "Queue" in each.title
    ] == []


def test_a_submodule_that_the_installed_release_does_not_have(tmp_path: Path) -> None:
    (error,) = found(tmp_path, "import alpha\n", {**CHAIN, "beta/__init__.py": ""}, {"alpha": "1.0", "beta": "2.0"})
    assert error.title == "alpha 1.0 imports beta.deep, which beta 2.0 does not have"


def test_a_module_that_this_python_no_longer_has(tmp_path: Path) -> None:
    files = {"alpha/__init__.py": "import imp\n"}
    (tmp_path / "new").mkdir()
    (tmp_path / "old").mkdir()
    (error,) = found(tmp_path / "new", "import alpha\n", files, {"alpha": "1.0"}, python="3.12.1")
    assert error.title == "alpha 1.0 imports imp, which Python 3.12 removed"
    assert found(tmp_path / "old", "import alpha\n", files, {"alpha": "1.0"}, python="3.11.9") == []


def test_pkg_resources_comes_back_with_an_older_setuptools(tmp_path: Path) -> None:
    files = {"alpha/__init__.py": "import pkg_resources\n", "setuptools/__init__.py": ""}
    (error,) = found(tmp_path, "import alpha\n", files, {"alpha": "1.0", "setuptools": "84.0"})
    assert error.packages == {"alpha": "1.0", "setuptools": "84.0"}
    assert error.fixes[0].command == 'pip install "setuptools<82"'


def test_code_generated_for_an_older_protobuf(tmp_path: Path) -> None:
    files = {
        "alpha/__init__.py": "from . import a_pb2\n",
        "alpha/a_pb2.py": "x = [\n  _descriptor.FieldDescriptor(name='a')]\n",
    }
    for at, (version, errors) in enumerate({"5.29.0": ["generated-alpha-protobuf"], "3.20.3": []}.items()):
        folder = tmp_path / str(at)
        folder.mkdir()
        assert [each.rule for each in found(folder, "import alpha\n", files, {"alpha": "1.0", "protobuf": version})] == errors


def about(*names: str) -> Finding:
    return Finding(
        rule=names[0], origin="rule", verdict="hit", severity="error", effect="crash", title="import fails", why="It fails.",
        confidence="confirmed", packages=dict.fromkeys(names, "1"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("alpha", "severity"),
    [
        ("", "warning"),
        ("def f():\n    import beta\n", "warning"),
        ("try:\n    import beta\nexcept ImportError:\n    beta = None\n", "warning"),
        ("import beta\n", "error"),
        ("if is_beta_available():\n    import beta\n", "error"),
        ("try:\n    import beta\nexcept ImportError:\n    raise RuntimeError\n", "error"),
        ("try:\n    import beta\nexcept ImportError:\n    beta = None\nif beta:\n    from beta import x\n", "warning"),
    ],
)
def test_an_error_about_a_package_that_the_script_does_not_come_to_is_a_warning(
    tmp_path: Path, alpha: str, severity: str
) -> None:
    files = {"alpha/__init__.py": alpha, "beta/__init__.py": ""}
    case = environment(tmp_path, "import alpha\n", files, {"alpha": "1", "beta": "1"})
    (finding,) = unused.softened(case, (about("alpha", "beta"),))
    assert finding.severity == severity
    assert ("does not import beta" in finding.why) is (severity == "warning")


def test_an_error_that_rests_on_the_workload_stays(tmp_path: Path) -> None:
    case = environment(
        tmp_path, "import alpha\n", {"alpha/__init__.py": "", "beta/__init__.py": ""}, {"alpha": "1", "beta": "1"}
    )
    (finding,) = unused.softened(case, (replace(about("beta"), facts=("workload",)),))
    assert finding.severity == "error"


def test_what_the_script_imports_in_a_function_counts(tmp_path: Path) -> None:
    files = {"alpha/__init__.py": "", "beta/__init__.py": ""}
    case = environment(tmp_path, "def main():\n    import beta\n", files, {"alpha": "1", "beta": "1"})
    (finding,) = unused.softened(case, (about("beta"),))
    assert finding.severity == "error"


def test_what_a_command_imports_before_it_starts_the_script(tmp_path: Path) -> None:
    case = environment(tmp_path, "", {"alpha/cli.py": "import pytest\n", "alpha/__init__.py": ""}, {"alpha": "1.0"})
    (tmp_path / "site-packages/alpha-1.0.dist-info/entry_points.txt").write_text(
        "[console_scripts]\nrun-alpha = alpha.cli:main\n"
    )
    assert case.workload is not None
    (error,) = running.judge(replace(case, workload=replace(case.workload, code=None, program="run-alpha")))
    assert error.rule == "missing-pytest"
    assert "(run-alpha → alpha.cli)" in error.why


def test_a_logger_that_the_script_reports_to_is_imported(tmp_path: Path) -> None:
    script = "from alpha import f\nf(report_to=['wandb'])\n"
    files = {"alpha/__init__.py": "f = print\n", "wandb/__init__.py": "import pkg_resources\n"}
    (error,) = found(tmp_path, script, files, {"alpha": "1", "wandb": "0.12.14"})
    assert error.title == "wandb 0.12.14 imports pkg_resources, which setuptools does not have"


@pytest.mark.parametrize(
    ("others", "errors"),
    [
        ({}, ["missing-requests"]),
        ({"alpha/utils/dummy_objects.py": "class Part(metaclass=Dummy): ...\n"}, []),
        ({"alpha/utils/dummy_objects.py": "class Other(metaclass=Dummy): ...\n"}, ["missing-requests"]),
    ],
)
def test_a_name_with_a_stand_in_does_not_load_its_module(
    tmp_path: Path, others: Files, errors: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running.Script, "_home", lambda script, module, name: "alpha.part" if name == "Part" else None)
    files = {"alpha/__init__.py": "_import_structure = {'part': ['Part']}\n", "alpha/part.py": "import requests\n", **others}
    assert [each.rule for each in found(tmp_path, "from alpha import Part\n", files, {"alpha": "1.0"})] == errors


def test_a_stand_in_next_to_a_part_of_a_namespace_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running.Script, "_home", lambda script, module, name: "alpha.intel.ov" if name == "Part" else None)
    lazy = "_import_structure = {'ov': ['Part']}\n"
    files = {"alpha/intel/__init__.py": lazy, "alpha/intel/ov.py": "import openvino\n"}
    stand_in = {"alpha/intel/utils/dummy_ov.py": "class Part(metaclass=Dummy): ...\n"}
    script = "from alpha.intel import Part\n"
    (tmp_path / "with").mkdir()
    assert [each.rule for each in found(tmp_path, script, files, {"alpha": "1.0"})] == ["missing-openvino"]
    assert found(tmp_path / "with", script, {**files, **stand_in}, {"alpha": "1.0"}) == []


@pytest.mark.parametrize(
    ("source", "errors"),
    [
        ("try:\n    import absent\nexcept ImportError:\n    raise ImportError('install it')\n", ["missing-absent"]),
        ("try:\n    # needed\n    import absent\nexcept ImportError as error:\n    raise Missing from error\n", ["missing-absent"]),
        ("try:\n    import absent\nexcept ImportError:\n    absent = None\n", []),
        ("try:\n    import absent\nexcept ImportError:\n    if required:\n        raise\n", []),
    ],
)  # fmt: skip
def test_an_import_whose_handler_raises_is_as_good_as_unguarded(tmp_path: Path, source: str, errors: list[str]) -> None:
    files = {"alpha/__init__.py": source}
    assert [each.rule for each in found(tmp_path, "import alpha\n", files, {"alpha": "1.0"})] == errors


def test_names_of_a_package_do_not_make_its_modules_importable(tmp_path: Path) -> None:
    files = {
        "alpha/__init__.py": "from beta.chat.vertex import Vertex\n", "beta/__init__.py": "",
        "beta/chat/__init__.py": "_lookup = {'Vertex': 'beta.chat.vertex'}\ndef __getattr__(name): return import_module(_lookup[name])\n",
    }  # fmt: skip
    (error,) = found(tmp_path, "import alpha\n", files, {"alpha": "1.0", "beta": "2.0"})
    assert error.title == "alpha 1.0 imports beta.chat.vertex, which beta 2.0 does not have"
    registered = {**files, "beta/chat/__init__.py": "sys.modules[__name__ + '.vertex'] = made\n"}
    (tmp_path / "with").mkdir()
    assert found(tmp_path / "with", "import alpha\n", registered, {"alpha": "1.0", "beta": "2.0"}) == []


def test_a_folder_of_a_package_with_the_name_of_a_module_does_not_provide_it(tmp_path: Path) -> None:
    files = {
        "alpha/__init__.py": "from alpha.ops import f\n",
        "alpha/ops.py": "import triton as f\n",
        "alpha/triton/kernel.py": "",
    }
    assert [each.rule for each in found(tmp_path, "import alpha\n", files, {"alpha": "1.0"})] == ["missing-triton"]
    files["alpha/__init__.py"] = "sys.path.insert(0, here)\nfrom alpha.ops import f\n"
    (tmp_path / "with").mkdir()
    assert found(tmp_path / "with", "import alpha\n", files, {"alpha": "1.0"}) == []


def test_setuptools_provides_distutils(tmp_path: Path) -> None:
    files = {"alpha/__init__.py": "import distutils.version\n"}
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    (error,) = found(tmp_path / "without", "import alpha\n", files, {"alpha": "1.0"}, python="3.12.1")
    assert error.fixes[0].command == "pip install setuptools"
    hack = {**files, "_distutils_hack/__init__.py": ""}
    assert found(tmp_path / "with", "import alpha\n", hack, {"alpha": "1.0", "setuptools": "80.0"}, python="3.12.1") == []


@pytest.mark.parametrize(
    "script", ["import alpha\nimport_module('beta')\n", "import alpha\nsubprocess.run(['beta'])\n", "from alpha import Lazy\n"]
)
def test_an_error_stays_where_imports_cannot_be_followed(tmp_path: Path, script: str) -> None:
    lazy = "def __getattr__(name):\n    return import_module(name)\n" if "Lazy" in script else ""
    files = {"alpha/__init__.py": lazy, "beta/__init__.py": ""}
    case = environment(tmp_path, script, files, {"alpha": "1", "beta": "1"})
    (finding,) = unused.softened(case, (about("beta"),))
    assert finding.severity == "error"


def test_an_error_about_what_transformers_loads_by_name_stays(tmp_path: Path) -> None:
    files = {"transformers/__init__.py": "", "transformers/quantizers/__init__.py": "", "beta/__init__.py": "",
             "transformers/quantizers/q.py": "if is_beta_available():\n    import beta\n", "gamma/__init__.py": ""}  # fmt: skip
    case = environment(tmp_path, "import transformers\n", files, {"transformers": "0", "beta": "1", "gamma": "1"})
    assert [each.severity for each in unused.softened(case, (about("beta"), about("gamma")))] == ["error", "warning"]


def test_an_error_about_a_missing_part_stays_and_so_does_one_without_a_script(tmp_path: Path) -> None:
    case = environment(tmp_path, "import alpha\n", {"alpha/__init__.py": ""}, {"alpha": "1", "setuptools": "84"})
    (finding,) = unused.softened(case, (about("alpha", "setuptools"),))
    assert finding.severity == "error"
    assert case.workload is not None
    module = replace(case, workload=replace(case.workload, code=None, program="python"))
    (finding,) = unused.softened(module, (about("beta"),))
    assert finding.severity == "error"


@pytest.mark.parametrize(
    ("setup", "errors"),
    [
        ("import sys\n\ndef setup():\n    sys.modules['alpha.models'] = sys\n", []),
        ("def setup():\n    pass\n", ["missing-alpha"]),
    ],
)
def test_modules_that_a_function_of_the_package_adds(tmp_path: Path, setup: str, errors: list[str]) -> None:
    files = {
        "alpha/__init__.py": "from alpha.util.moved import setup\n\nsetup()\n",
        "alpha/util/__init__.py": "",
        "alpha/util/moved.py": setup,
        "beta/__init__.py": "from alpha import models\n",
    }
    rules = [each.rule for each in found(tmp_path, "import beta\n", files, {"alpha": "1", "beta": "1"})]
    assert bool(rules) is bool(errors)


@pytest.mark.parametrize(("part", "severity"), [("import gamma\n", "error"), ("", "warning")])
def test_an_undeclared_package_that_the_script_does_not_come_to(tmp_path: Path, part: str, severity: str) -> None:
    files = {"alpha/__init__.py": part, "alpha/server.py": "import gamma\n"}
    case = environment(tmp_path, "import alpha\n", files, {"alpha": "1"})
    guard = replace(
        about("alpha"),
        origin="guard",
        title="alpha 1 raises ModuleNotFoundError: No module named 'gamma'",
        packages={"alpha": "1", "gamma": None},
    )
    (finding,) = unused.softened(case, (guard,))
    assert finding.severity == severity


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("from alpha.plots import draw\n", "alpha.plots"),
        ("from alpha import draw\n", "alpha.draw"),
        ("from bare import draw\n", "bare.draw"),
        ("import bare.plots\n", "bare.plots"),
        ("from alpha import part\nimport bare.inner\n", None),
        ("try:\n    from alpha import draw\nexcept ImportError:\n    draw = None\n", None),
        ("import sys\nsys.path.insert(0, 'other')\nfrom alpha import draw\n", None),
    ],
)
def test_what_the_script_itself_imports_from_a_release_that_no_table_knows(
    tmp_path: Path, script: str, what: str | None
) -> None:
    files = {"alpha/__init__.py": "x = 1\n", "alpha/part.py": "", "bare/inner.py": ""}
    errors = found(tmp_path, script, files, {"alpha": "1.0", "bare": "2.0"})
    titles = [f"prog.py imports {what}, which {what.partition('.')[0]}" for _ in "." if what]
    assert [each.title[: len(title)] for each, title in zip(errors, titles, strict=True)] == titles
    assert all("prog.py:1 always runs with this script" in each.why for each in errors)


def test_folders_without_code_have_no_names_unless_something_adds_them(tmp_path: Path) -> None:
    files = {"alpha/__init__.py": "from beta.inner import draw\n", "beta/__init__.py": "", "beta/inner/part.py": ""}
    (error,) = found(tmp_path, "import alpha\n", files, {"alpha": "1.0", "beta": "2.0"})
    assert error.title == "alpha 1.0 imports beta.inner.draw, which beta 2.0 does not have"
    for case, more in {"hook": "sys.meta_path.append(Finder())\n", "editable": "", "compiled": ""}.items():
        (tmp_path / case).mkdir()
        beside = {"hook": "other.py", "editable": "__editable___beta_finder.py", "compiled": "beta/inner.abi3.so"}[case]
        assert found(tmp_path / case, "import alpha\n", {**files, "beta/__init__.py": more, beside: ""}, {"alpha": "1"}) == []


@pytest.mark.parametrize(
    ("root", "missing"),
    [
        ("from .lazy import _LazyModule\n", True),
        ("class _LazyModule(Module): ...\n", True),
        ("made = _LazyModule(__name__, {'old': ['f']})\n", False),
    ],
)
def test_a_package_that_passes_a_lazy_module_on_is_none_itself(tmp_path: Path, root: str, missing: bool) -> None:
    files = {"alpha/__init__.py": "from beta.old import f\n", "beta/__init__.py": root, "beta/lazy.py": ""}
    assert bool(found(tmp_path, "import alpha\n", files, {"alpha": "1.0", "beta": "2.0"})) is missing


def test_a_folder_without_code_does_not_hide_the_package_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "alpha").mkdir()  # such as the folders that loggers write to
    (error,) = found(tmp_path, "import alpha\n", {"alpha/__init__.py": "import requests\n"}, {"alpha": "1.0"})
    assert error.rule == "missing-requests"


def test_a_file_next_to_the_script_that_hides_an_installed_package(tmp_path: Path) -> None:
    """Python looks in the script's folder first, so the packages that need it get the file as well."""
    (tmp_path / "beta.py").write_text("x = 1\n")
    files = {"alpha/__init__.py": "from beta import f\n", "beta/__init__.py": "def f(): ...\n"}
    (error,) = found(tmp_path, "import alpha\n", files, {"alpha": "1.0", "beta": "2.0"})
    assert (error.rule, error.severity) == ("hidden-beta", "error")
    assert error.title == "beta.py next to the script hides the installed beta 2.0"
    assert error.fixes[0].text == f"rename beta.py, which is in {tmp_path}"


def test_a_file_that_hides_nothing_installed(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("x = 1\n")
    assert found(tmp_path, "from helper import missing\n", {}, {"alpha": "1.0"}) == []
