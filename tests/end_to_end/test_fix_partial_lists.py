"""``compat fix`` of a file that lists only part of what gets installed: what is judged and written is what uv resolves."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from compat.index.configuration import uv_binary
from tests.conftest import ROOT
from tests.end_to_end.fixing import BAD_TRL, CLEAN, LINES, RULE, Run, own, release
from tests.index.server import IndexServer

pytest.importorskip("clingo")


def test_what_uv_installs_for_a_list_is_what_is_judged(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """The file names trl alone; what it brings in has an error, whose fix is written with its reason, and nothing else is."""
    bad = RULE.format(
        name="bad-accelerate", severity="error", packages='accelerate = ">=1.11"', hit='accelerate = "1.11.0"',
        clear='accelerate = "1.6.0"', fix='[[rule.fix]]\ndowngrade = { accelerate = "<1.11" }',
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("trl\n")
    done = fix("--write", *own(tmp_path, bad), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "packages that uv resolves today" in " ".join(done.stdout.split())
    assert "because bad-accelerate (bad-accelerate)" in done.stdout
    lines = (tmp_path / "requirements.txt").read_text().splitlines()
    assert lines[0] == "trl"
    assert [line.partition(" ")[0] for line in lines[1:]] == ["accelerate<1.11"]
    assert "Nothing to fix" in fix(*own(tmp_path, bad), url=index.url, job=CLEAN).stdout


SETUP = """from setuptools import setup
setup(name="job", version="1.0", install_requires=["trl>=0.17,<0.18"])
"""
CONFIGURED = "[options]\ninstall_requires =\n    trl>=0.17,<0.18\n"
PIPFILE = '[packages]\ntrl = ">=0.17,<0.18"\n'


@pytest.mark.parametrize(("name", "text"), [("setup.py", SETUP), ("setup.cfg", CONFIGURED), ("Pipfile", PIPFILE)])
def test_every_list_is_completed_that_an_installer_completes(
    fix: Run, index: IndexServer, tmp_path: Path, name: str, text: str
) -> None:
    """Not only requirements files and pyproject.toml: the release of a range is the one that uv resolves."""
    (tmp_path / name).write_text(text)
    done = fix("--write", *own(tmp_path, BAD_TRL), url=index.url, subject=[name], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "packages that uv resolves today" in " ".join(done.stdout.split())
    assert (tmp_path / name).read_text() == text.replace(">=0.17,<0.18", ">=0.18.0,<0.19")


def test_a_project_that_names_what_torch_brings_along_is_edited_there_as_well(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:  # fmt: skip
    """What a project without a lock states is its own requirement, also if all of it is: a pin of triton moves with torch."""
    index.add("torch", {"2.6.0": release("2025-01-29", "triton==3.2.0"), "2.7.0": release("2025-04-23", "triton==3.3.0")})
    index.add("triton", {"3.2.0": release("2025-01-22"), "3.3.0": release("2025-04-09")})
    bad = RULE.format(
        name="bad-torch", severity="error", packages='torch = "<2.7"', hit='torch = "2.6.0"', clear='torch = "2.7.0"',
        fix='[[rule.fix]]\nupgrade = { torch = ">=2.7" }',
    )  # fmt: skip
    text = '[project]\nname = "job"\nversion = "1"\ndependencies = ["torch==2.6.0", "triton==3.2.0"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    done = fix("--write", *own(tmp_path, bad), url=index.url, subject=["pyproject.toml"], job=CLEAN)
    assert done.returncode in (0, 3), done.stdout + done.stderr  # torch's own index has other builds
    assert (tmp_path / "pyproject.toml").read_text() == text.replace("2.6.0", "2.7.0").replace("3.2.0", "3.3.0")


@pytest.mark.parametrize("name", ["requirements.txt", "install.sh"])
def test_what_only_the_old_release_brought_along_keeps_nothing_back(
    name: str, fix: Run, index: IndexServer, tmp_path: Path
) -> None:
    """A script may install over packages of the machine, but what no file lists was not among them."""
    index.add("kernels", {"1.0": release("2025-01-01", "torch==2.6.0")})
    index.add("engine", {"1.0": release("2025-01-01", "kernels"), "2.0": release("2025-05-01", "torch==2.7.0")})
    bad = RULE.format(
        name="bad-torch", severity="error", packages='torch = "<2.7"', hit='torch = "2.6.0"', clear='torch = "2.7.0"',
        fix='[[rule.fix]]\nupgrade = { torch = ">=2.7" }',
    )  # fmt: skip
    text = "torch==2.6.0\nengine==1.0\n" if name.endswith(".txt") else "pip install torch==2.6.0\npip install engine==1.0\n"
    (tmp_path / name).write_text(text)
    done = fix("--write", *own(tmp_path, bad), url=index.url, subject=[name], job=("--gpu", "T4", "--python-version", "3.11"))
    assert done.returncode in (0, 3), done.stdout + done.stderr  # torch's own index has other builds
    assert (tmp_path / name).read_text() == text.replace("2.6.0", "2.7.0").replace("1.0", "2.0")


def test_what_no_file_lists_is_no_reason_beside_what_one_does(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    index.add("helper", {"1.0": release("2025-01-01"), "2.0": release("2025-05-01")})
    index.add(
        "engine",
        {
            "1.0": release("2025-01-01", "helper==1.0", "trl==0.17.0"),
            "2.0": release("2025-05-01", "helper==2.0", "trl==0.18.0"),
        },
    )
    (tmp_path / "requirements.txt").write_text("engine==1.0\ntrl==0.17.0\n")
    done = fix(*own(tmp_path, BAD_TRL), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "engine 1.0 requires trl==0.17.0" in " ".join(done.stdout.split())
    assert "engine 1.0 requires helper" not in " ".join(done.stdout.split())


def test_the_python_is_one_that_the_whole_file_resolves_for(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """The pin has a wheel for 3.12, and what it requires only one for 3.11."""
    index.add(
        "fast", {"1.0": release("2025-01-01", wheel_tags=[f"cp{each}-cp{each}-manylinux_2_28_x86_64" for each in (311, 312)])}
    )
    index.add("slow", {"1.0": release("2025-01-01", wheel_tags=["cp311-cp311-manylinux_2_28_x86_64"], sdist=False)})
    index.add("both", {"1.0": release("2025-01-01", "slow", "fast")})
    (tmp_path / "requirements.txt").write_text("both==1.0\nfast==1.0\n")
    done = fix("--format", "json", url=index.url, job=())
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)["plan"]["target"]
    assert told[0] == "Python 3.11 (the newest that uv resolves the file for)"
    assert told[-1] == "the 3 packages that uv resolves today"


def test_the_python_is_no_newer_than_usual_without_a_pin_that_needs_it(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """A pin with wheels for every Python says nothing about the rest of the stack."""
    newest = [f"cp{each}-cp{each}-manylinux_2_28_x86_64" for each in (313, 314)]
    index.add("any", {"1.0": release("2025-01-01", wheel_tags=["cp312-cp312-manylinux_2_28_x86_64", *newest], sdist=False)})
    index.add("new", {"1.0": release("2025-01-01", wheel_tags=newest, sdist=False)})
    for lines, python in (("any==1.0\n", "Python 3.12 (assumed; the pins have wheels for it)"),
                          ("new==1.0\n", "Python 3.14 (the newest that the pins have wheels for)")):  # fmt: skip
        (tmp_path / "requirements.txt").write_text(lines)
        done = fix("--format", "json", url=index.url, job=())
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["plan"]["target"][0] == python


def test_the_python_of_a_freeze_is_the_one_that_its_backports_are_for(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """One of them alone may be there for another reason."""
    names = [f"plain-{number}" for number in range(20)]
    backports = ["tomli", "exceptiongroup"]
    for name in (*names, *backports):
        index.add(name, {"1.0": release("2025-01-01")})
    index.add("tool", {"1.0": release("2025-01-01", *(f"{name} ; python_version < '3.11'" for name in backports))})
    for there, python in ((backports, "Python 3.10 (the newest that exceptiongroup and 1 more of the pins are for)"),
                          (backports[:1], "Python 3.12 (assumed)")):  # fmt: skip
        (tmp_path / "requirements.txt").write_text("".join(f"{name}==1.0\n" for name in (*names, *there, "tool")))
        done = fix("--format", "json", url=index.url, job=())
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["plan"]["target"][0] == python


def test_a_pin_that_keeps_the_python_back_moves_where_only_a_newer_one_has_the_fix(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:
    """The Python was inferred from the pin; where it is stated, the releases that are only for newer ones are named."""
    bad = RULE.format(
        name="bad-fast", severity="error", packages='fast = "<2"', hit='fast = "1.0"', clear='fast = "2.0"',
        fix='[[rule.fix]]\nupgrade = { fast = ">=2" }',
    )  # fmt: skip
    wheels = {each: [f"cp{each}-cp{each}-manylinux_2_17_x86_64"] for each in (311, 312)}
    index.add("fast", {"1.0": release("2025-01-01"), "2.0": release("2025-03-01", wheel_tags=wheels[312], sdist=False)})
    index.add("old", {"1.0": release("2025-01-01", wheel_tags=wheels[311], sdist=False)})
    index.add("old", {"1.1": release("2025-02-01", wheel_tags=[*wheels[311], *wheels[312]], sdist=False)})
    (tmp_path / "requirements.txt").write_text("old==1.0\nfast\n")
    own_rule, job = own(tmp_path, bad), ("--gpu", "A100:1")
    done = fix(*own_rule, url=index.url, job=(*job, "--python-version", "3.11"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "  - fast 2.0 and later have no wheel for Python 3.11\n" in done.stdout
    done = fix(*own_rule, "--write", url=index.url, job=job)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "  target    Python 3.12;" in done.stdout
    assert "no plan for Python 3.11 fixes everything (bad-fast); this one is for Python 3.12\n" in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "old==1.1\nfast\n"


def test_a_build_that_no_index_has_is_judged_with_all_that_it_installs(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """torch's own index is not read; what trl brings in has an error all the same."""
    index.add("torch", {"2.6.0": release("2025-01-29", "nvidia-cublas-cu12")})
    index.add("nvidia-cublas-cu12", {"12.4": release("2025-01-01")})
    bad = RULE.format(
        name="bad-accelerate", severity="error", packages='accelerate = ">=1.11"', hit='accelerate = "1.11.0"',
        clear='accelerate = "1.6.0"', fix='[[rule.fix]]\ndowngrade = { accelerate = "<1.11" }',
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("torch==2.6.0+cu118\ntrl\n")
    done = fix("--write", "--format", "json", *own(tmp_path, bad), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert any("torch: resolved as the default build" in note for note in report["notes"])
    assert "nvidia-cublas-cu12" not in done.stdout
    assert (tmp_path / "requirements.txt").read_text().startswith("torch==2.6.0+cu118\ntrl\naccelerate<1.11")


def test_libraries_pinned_for_a_build_that_no_index_has_do_not_contradict_it(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:
    """The default build of torch 2.5.1, which it is resolved like, is for CUDA 12.4."""
    index.add("torch", {"2.5.1": release("2024-10-29", "nvidia-cublas-cu12==12.4.5.8")})
    index.add("nvidia-cublas-cu12", {"12.1.3.1": release("2023-04-01"), "12.4.5.8": release("2024-04-01")})
    (tmp_path / "requirements.txt").write_text("torch==2.5.1+cu121\nnvidia-cublas-cu12==12.1.3.1\n")
    done = fix(url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing to fix: no known error applies here." in done.stdout


def test_a_pin_for_other_pythons_is_left_alone(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """The package is installed here all the same, because another one requires it."""
    index.add("helper", {"1.0": release("2025-01-01"), "2.0": release("2025-02-01")})
    index.add("trl", {"0.17.0": release("2025-04-25"), "0.18.0": release("2025-05-27", "helper")})
    lines = 'trl==0.17.0\nhelper==1.0 ; python_version < "3.11"\n'
    (tmp_path / "requirements.txt").write_text(lines)
    done = fix("--write", *own(tmp_path, BAD_TRL), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == lines.replace("0.17.0", "0.18.0")


def test_a_package_whose_only_wheels_are_early_ones_is_one_that_is_built(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """An installer builds the final release; a wheel for another system changes nothing."""
    early = release("2020-01-01", "no-such-package")
    index.add("built", {"0.1.dev3": release("2020-01-01"), "0.2.dev1": early, "1.0": release("2025-01-01", wheel=False)})
    index.add("built", {"0.9": release("2025-01-01", wheel_tags=["cp311-cp311-win_amd64"])})
    index.add("early", {"0.66b2": release("2025-01-01")})
    (tmp_path / "requirements.txt").write_text("built\nearly\n")
    done = fix("--format", "json", url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["plan"]["target"][-1] == "the 2 packages that uv resolves today"
    assert "built 1.0: no wheel, so installers build it from source" in report["notes"]


def test_a_release_without_a_wheel_is_resolved_like_any_other(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """``trl`` was resolved to 0.16, which has a wheel and no need of the source; of ``opaque`` nothing is known, nor built."""
    early = release("2025-01-01", wheel=False)
    index.add("trl", {"0.16.0": release("2025-03-01"), "0.17.0": release("2025-04-25", "sourced", "opaque")})
    index.add("trl", {"0.18.0": release("2025-05-27", "sourced", "opaque")})
    index.add("sourced", {"0.9": release("2024-01-01"), "1.0": release("2025-01-01", "helper<2", wheel=False)})
    index.add("opaque", {"1.0": {**early, "dynamic": True}})
    index.add("helper", {"1.0": release("2024-01-01"), "2.0": release("2025-01-01")})
    (tmp_path / "requirements.txt").write_text("trl<0.18\n")
    done = fix("--format", "json", "--write", *own(tmp_path, BAD_TRL), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["plan"]["target"][-1] == "the 4 packages that uv resolves today"
    assert "sourced 1.0: no wheel, so installers build it from source" in report["notes"]
    assert "opaque: no wheel, and compat builds nothing, so their requirements are unknown" in report["notes"]
    assert (tmp_path / "requirements.txt").read_text() == "trl<0.19\n"
    assert not any("setuptools" in path for path in index.requests)


def test_a_source_older_than_the_python_is_an_error_wherever_it_comes_from(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:  # fmt: skip
    """``tokenizers`` of 2023 has wheels for Python 3.11 and no other: that is taken where none is given, else what requires it
    moves on."""
    index.add("tokenizers", {"0.13.3": release("2023-04-05", wheel_tags=["cp311-cp311-manylinux_2_17_x86_64"])})
    index.add("tokenizers", {"0.14.0": release("2023-09-01")})
    index.add(
        "transformers",
        {"4.28.1": release("2023-04-14", "tokenizers<0.14"), "4.34.0": release("2023-10-03", "tokenizers<0.15,>=0.14")},
    )
    (tmp_path / "requirements.txt").write_text("transformers==4.28.1\n")
    done = fix("--write", url=index.url, job=("--gpu", "none"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Python 3.11 (the newest that tokenizers has wheels for)" in done.stdout
    assert "Nothing to fix" in done.stdout
    words = ("--python-version", "3.12", "--gpu", "none")
    done = fix("--format", "json", "--write", url=index.url, job=words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["rule"] for each in json.loads(done.stdout)["findings"]] == ["wheels-tokenizers"]
    assert (tmp_path / "requirements.txt").read_text() == "transformers==4.34.0\n"


def test_uv_is_asked_once_where_the_pins_are_all_that_is_installed(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Pins that require one another alone are what uv resolves; with one of them missing it has to be asked first."""
    counting = tmp_path / "counting"
    counting.mkdir()
    (counting / "uv.py").write_text(f"def find_uv_bin():\n    return {str(counting / 'uv')!r}\n")
    asked = counting / "asked"
    (counting / "uv").write_text(f'#!/bin/sh\necho >> "{asked}"\nexec "{uv_binary()}" "$@"\n')
    (counting / "uv").chmod(0o755)
    for lines, times in ((LINES, 1), (LINES.replace("tokenizers==0.21.1\n", ""), 2)):  # before, and as written
        (tmp_path / "requirements.txt").write_text(lines)
        asked.unlink(missing_ok=True)
        done = fix("--format", "json", url=index.url, PYTHONPATH=f"{counting}{os.pathsep}{ROOT}")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["plan"]["verified"]["uv"] is True
        assert len(asked.read_text()) == times


def test_what_a_list_does_not_name_is_left_to_uv(fix: Run, tmp_path: Path) -> None:
    """Fewest packages are brought in with an old helper; nothing is the matter with the one that uv takes by itself."""
    packages = {
        "job": {"1.0": release("2025-01-01"), "2.0": release("2025-02-01", "helper")},
        "helper": {"1.0": release("2025-01-01"), "2.0": release("2025-02-01", "more")},
        "more": {"1.0": release("2025-01-01")},
    }
    bad = RULE.format(
        name="bad-job", severity="error", packages='job = "<2"', hit='job = "1.0"', clear='job = "2.0"',
        fix='[[rule.fix]]\nupgrade = { job = ">=2" }',
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("job==1.0\n")
    with IndexServer(packages) as server:
        done = fix("--write", *own(tmp_path, bad), url=server.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "helper 2.0, more 1.0" in done.stdout, done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "job==2.0\n"


def test_a_list_left_as_it_is_fixes_nothing_by_itself(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """uv takes the newest alpha, which is older than what the good engine accepts; what that one adds makes no difference."""
    index.add("alpha", {"1.0": release("2025-01-01"), "2.0": release("2025-02-01")})
    index.add("helper", {"1.0": release("2025-01-01", "alpha<2")})
    index.add("engine", {"1.0": release("2025-01-01"), "2.0": release("2025-02-01", "helper")})
    rules = [
        RULE.format(
            name=f"bad-{name}", severity="error", packages=f'{name} = "{bad}"', hit=f'{name} = "{at}"', clear=f'{name} = "{good}"',
            fix=f'[[rule.fix]]\n{move} = {{ {name} = "{to}" }}',
        ) for name, bad, at, good, move, to in (
            ("engine", "<2", "1.0", "2.0", "upgrade", ">=2"), ("alpha", ">=2", "2.0", "1.0", "downgrade", "<2"),
        )
    ]  # fmt: skip
    (tmp_path / "requirements.txt").write_text("alpha\nengine>=0.5\n")
    done = fix("--write", *own(tmp_path, *rules), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == "alpha\nengine>=2.0\n"  # which brings the alpha along
    assert "Nothing to fix" in fix(*own(tmp_path, *rules), url=index.url, job=CLEAN).stdout


def test_what_only_an_index_of_its_vendor_has_is_left_as_it_is(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """The rest of the file is fixed; without the index that the file names, nothing is known about that package."""
    text = "FROM python:3.11\nRUN pip install trl==0.17.0\nRUN pip install kernels-of-a-vendor -i https://index.example/cu121\n"
    (tmp_path / "Dockerfile").write_text(text)
    done = fix("--write", *own(tmp_path, BAD_TRL), url=index.url, job=("--gpu", "A100:1"), subject=("Dockerfile",))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kernels-of-a-vendor: on an index that was not queried" in done.stdout
    assert (tmp_path / "Dockerfile").read_text() == text.replace("trl==0.17.0", "trl==0.18.0")


@pytest.mark.parametrize(("image", "whole"), [("python:3.11", True), ("python:3.11-slim", True), ("company/base:1", False)])
def test_what_a_dockerfile_installs_is_all_there_is_on_an_image_without_packages(
    image: str, whole: bool, fix: Run, index: IndexServer, tmp_path: Path
) -> None:
    """What uv resolves is judged; on another image nobody knows what is there, and what is not listed is not judged."""
    bad = RULE.format(
        name="bad-transformers", severity="error", packages='transformers = ">=4.57.3"', hit='transformers = "4.57.3"',
        clear='transformers = "4.57.1"', fix='[[rule.fix]]\ndowngrade = { transformers = "<4.57.3" }',
    )  # fmt: skip
    (tmp_path / "Dockerfile").write_text(f"FROM {image}\nRUN pip install accelerate trl==0.17.0\n")
    done = fix("--write", "--brief", *own(tmp_path, BAD_TRL, bad), url=index.url, subject=["Dockerfile"], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "packages that uv resolves today" in " ".join(done.stdout.split())
    lines = (tmp_path / "Dockerfile").read_text()
    assert "trl==0.18.0" in lines
    assert ('"transformers<4.57.3"' in lines) == whole


def test_constraints_limit_what_is_not_listed(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """They are applied to what uv adds, and move with what needs another release; what is removed may stay in them."""
    index.add("old", {"1.0": release("2025-01-01")})
    index.add("triton", {"3.2.0": release("2025-01-29"), "3.3.0": release("2025-04-23")})
    torch = {"2.6.0": release("2025-01-29", "triton==3.2.0", "old"), "2.7.0": release("2025-04-23", "triton==3.3.0")}
    index.add("torch", torch)
    bad = RULE.format(name="old-torch", severity="error", packages='torch = "<2.7"', hit='torch = "2.6.0"',
                      clear='torch = "2.7.0"', fix='[[rule.fix]]\nupgrade = { torch = ">=2.7" }')  # fmt: skip
    new = RULE.format(name="bad-tokenizers", severity="error", packages='tokenizers = ">=0.22"', hit='tokenizers = "0.22.1"',
                      clear='tokenizers = "0.21.1"', fix='[[rule.fix]]\ndowngrade = { tokenizers = "<0.22" }')  # fmt: skip
    job = tmp_path / "job"
    job.mkdir()
    limits = "transformers==4.51.3\ntorch==2.6.0\ntriton==3.2.0\nold==1.0\n"
    (job / "constraints.txt").write_text(limits)
    (job / "requirements.txt").write_text("-c constraints.txt\ntrl==0.18.0\ntorch\n")
    done = fix("--write", *own(tmp_path, bad, new), url=index.url, job=CLEAN, subject=["job/requirements.txt"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bad-tokenizers" not in done.stdout  # of the transformers that the constraint allows
    assert (job / "constraints.txt").read_text() == limits.replace("torch==2.6.0\ntriton==3.2.0", "torch==2.7.0\ntriton==3.3.0")


def test_the_edited_file_is_judged_with_the_extra_that_was_fixed(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """After the edit no selection has an error by its list alone: what uv adds for the extra still counts."""
    bad_helper = RULE.format(
        name="bad-helper", severity="error", packages='trl-helper = ">=2"', hit='trl-helper = "2.0"',
        clear='trl-helper = "1.0"', fix='[[rule.fix]]\ndowngrade = { trl-helper = "<2" }',
    )  # fmt: skip
    index.add("trl", {each: release("2025-05-27", "trl-helper") for each in ("0.17.0", "0.18.0")})
    index.add("trl-helper", {"1.0": release("2025-05-01"), "2.0": release("2025-06-01")})
    text = '[project]\nname = "job"\nversion = "1"\ndependencies = ["accelerate==1.6.0"]\n[project.optional-dependencies]\nall = ["trl>=0.17,<0.18"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    words = (*own(tmp_path, BAD_TRL, bad_helper), "--write")
    done = fix(*words, url=index.url, subject=["pyproject.toml"], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    written = (tmp_path / "pyproject.toml").read_text()
    assert '"trl>=0.18.0,<0.19"' in written
    assert "trl-helper<2" in written
    again = fix(*words, "--extras", "all", url=index.url, subject=["pyproject.toml"], job=CLEAN)
    assert "Nothing to fix" in again.stdout


def test_the_extra_with_a_pin_that_has_no_wheel_is_fixed(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """``check`` takes it for a warning, as the pin may be for another Python; for a plan it is an error."""
    text = '[project]\nname = "job"\nversion = "1"\ndependencies = ["accelerate==1.6.0"]\n[project.optional-dependencies]\nold = ["torch==2.1.2"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    wheels = {
        each: release(day, wheel_tags=(f"cp{python}-cp{python}-manylinux_2_17_x86_64",), sdist=False)
        for each, day, python in (("2.1.2", "2023-12-15", "311"), ("2.2.0", "2024-01-30", "312"))
    }
    index.add("torch", wheels)
    job = ("--gpu", "A100:1", "--python-version", "3.12")
    done = fix("--write", url=index.url, subject=["pyproject.toml"], job=job)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "pyproject.toml").read_text() == text.replace("2.1.2", "2.2.0")


def test_warnings_of_an_extra_are_fixed_if_asked(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    text = '[project]\nname = "job"\nversion = "1"\ndependencies = ["accelerate==1.6.0"]\n[project.optional-dependencies]\nall = ["trl==0.17.0"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    words = own(tmp_path, BAD_TRL.replace('severity = "error"', 'severity = "warning"'))
    done = fix("--write", "--level", "warning", *words, url=index.url, subject=["pyproject.toml"], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "pyproject.toml").read_text() == text.replace("0.17.0", "0.18.0")


def test_a_range_decides_the_python_that_it_has_wheels_for(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Without a Python of its own, the file is for one with wheels for what it lists."""
    old = release("2025-05-01", "accelerate", wheel_tags=("cp311-cp311-manylinux_2_17_x86_64",))
    index.add("helper", {"1.0": old, "1.1": old})
    (tmp_path / "requirements.txt").write_text("trl==0.17.0\nhelper==1.*\n")
    done = fix(*own(tmp_path, BAD_TRL), url=index.url, job=("--gpu", "A100:1"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Python 3.11 (the newest that helper has wheels for)" in " ".join(done.stdout.split())


def test_what_is_compiled_against_an_unlisted_torch_moves_freely_with_it(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """flash-attn 2.5.8 has no error of its own, but no published wheel for the new torch, and a warning about the GPU."""
    index.add("torch", {"2.3.0": release("2024-04-24"), "2.8.0": release("2025-08-06")})
    index.add("helper", {"1.0": release("2024-05-01", "torch==2.3.0"), "1.1": release("2025-08-10", "torch==2.8.0")})
    index.add(
        "flash-attn",
        {each: release(day, "torch", wheel=False) for each, day in (("2.5.8", "2024-04-26"), ("2.8.3", "2025-08-14"))},
    )
    (tmp_path / "requirements.txt").write_text("helper==1.0\nflash-attn==2.5.8\n")
    job = ("--gpu", "B200", "--python-version", "3.11", "--torch-index", "http://127.0.0.1:9")
    done = fix("--write", "--any-age", url=index.url, job=job)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == "helper==1.1\nflash-attn==2.8.3\n"
    assert done.stdout.index('install "torch==2.8.0"') < done.stdout.index("--no-build-isolation-package flash-attn")
