"""``compat fix`` of lock files with their project: the lock is made again in a copy, judged, and written with its source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.end_to_end.fixing import BAD_TRL, CLEAN, JOB, PACKAGES, RULE, Run, own, planned, release
from tests.index.server import IndexServer

pytest.importorskip("clingo")
uv = pytest.importorskip("uv")

PROJECT = """\
[project]
name = "mine"
version = "1"
requires-python = ">=3.10"
dependencies = [
    "torch>=2.6,<2.7",
    "transformers==4.51.3",  # models
    "trl==0.17.0",
]

[[tool.uv.index]]
url = "{url}"
default = true
"""
FIXED = PROJECT.replace("==4.51.3", "==4.57.1")
UV = {"PATH": "/usr/bin:/bin", "UV_PYTHON_DOWNLOADS": "never"}


def uv_of(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [uv.find_uv_bin(), *words, "--python", sys.executable, "--no-config" if words[0] == "pip" else "--quiet"],
        cwd=folder, env={**UV, "HOME": str(folder), "UV_CACHE_DIR": str(folder / "uv-cache")},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def locked(folder: Path, text: str) -> tuple[str, str]:
    """Write a project that uv locks with its present pins; returns both texts."""
    (folder / "pyproject.toml").write_text(text)
    done = uv_of(folder, "lock")
    assert done.returncode == 0, done.stderr
    return text, (folder / "uv.lock").read_text()


def files(folder: Path) -> list[str]:
    return sorted(
        each.name for each in folder.iterdir() if each.name not in (".local", "cache", "uv-cache", "requirements.txt")
    )


def test_the_lock_is_written_together_with_its_project(fix: Run, compat: Run, index: IndexServer, tmp_path: Path) -> None:
    before, lock = locked(tmp_path, PROJECT.format(url=index.url))
    shown = fix(subject=("uv.lock",))
    assert shown.returncode == 0, shown.stderr
    assert "+++ pyproject.toml" in shown.stdout
    assert "+++ uv.lock" in shown.stdout
    assert "checked   against the rules, in uv's lock" in shown.stdout
    assert (tmp_path / "pyproject.toml").read_text() == before
    assert (tmp_path / "uv.lock").read_text() == lock
    done = fix("--write", subject=("uv.lock",))
    assert done.returncode == 0, done.stderr
    assert "written: pyproject.toml, uv.lock" in done.stderr
    assert (tmp_path / "pyproject.toml").read_text() == FIXED.format(url=index.url)
    assert uv_of(tmp_path, "lock", "--check").returncode == 0
    assert compat("check", "uv.lock", *JOB).returncode == 0
    assert files(tmp_path) == ["pyproject.toml", "uv.lock"]


def test_a_project_that_is_published_does_not_require_what_its_release_does(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:
    """Its own requirements are what is edited, whatever an index says about the release of the same name and version."""
    index.add("mine", {"1": release("2025-05-01", "torch", "transformers==4.51.3", "trl==0.17.0")})
    locked(tmp_path, PROJECT.format(url=index.url))
    done = fix(subject=("uv.lock",))
    assert done.returncode == 0, done.stdout + done.stderr
    assert '+    "transformers==4.57.1",  # models' in done.stdout


def test_a_workspace_and_a_path_outside_the_project(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    member = '[project]\nname = "{}"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["{}"]\n'
    for folder, needed in (("root/kit", "trl==0.17.0"), ("beside", "accelerate==1.6.0")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "pyproject.toml").write_text(member.format(Path(folder).name, needed))
    text = PROJECT.format(url=index.url).replace('"trl==0.17.0"', '"kit",\n    "beside"')
    text += '[tool.uv.workspace]\nmembers = ["kit"]\n[tool.uv.sources]\nkit = { workspace = true }\nbeside = { path = "../beside" }\n'
    root = tmp_path / "root"
    locked(root, text)
    done = fix("--write", subject=("root/uv.lock",))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "written: root/pyproject.toml, root/uv.lock" in done.stderr
    assert '"transformers==4.57.1"' in (root / "pyproject.toml").read_text()
    assert uv_of(root, "lock", "--check").returncode == 0


def test_a_project_for_a_python_that_is_not_installed(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    text = PROJECT.format(url=index.url)
    _, lock = locked(tmp_path, text)
    for name, content in (("pyproject.toml", text), ("uv.lock", lock)):
        (tmp_path / name).write_text(content.replace('">=3.10"', '">=3.16.1,<3.30"'))
    done = fix("--write", subject=("uv.lock",), job=(*JOB[:-1], "3.16"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "written: pyproject.toml, uv.lock" in done.stderr
    assert 'requires-python = ">=3.16.1, <3.30"' in (tmp_path / "uv.lock").read_text()


def test_what_the_lock_brings_along_is_judged_and_named(fix: Run, tmp_path: Path) -> None:
    # uv moves the tokenizers with the release of the plan, and they are named
    with IndexServer(PACKAGES) as server:
        locked(tmp_path, PROJECT.format(url=server.url))
        moved = planned(fix("--format", "json", subject=("uv.lock",)))
    assert moved == {"transformers": ("4.51.3", "4.57.1"), "tokenizers": ("0.21.1", "0.22.1")}


def test_nothing_is_built_to_lock(fix: Run, tmp_path: Path) -> None:
    # a dependency without a wheel, whose metadata only its own code knows
    packages = {**PACKAGES, "only-source": {"1.0": release("2025-01-01", wheel=False, dynamic=True)}}
    with IndexServer(packages) as server:
        text = PROJECT.format(url=server.url)
        _, lock = locked(tmp_path, text)
        text = text.replace('"trl==0.17.0"', '"trl==0.17.0",\n    "only-source"')
        (tmp_path / "pyproject.toml").write_text(text)
        done = fix("--write", subject=("uv.lock",))
    assert done.returncode == 0, done.stderr
    assert "uv.lock: not updated: " in done.stderr
    assert "only-source" in done.stderr
    assert "lock      uv lock --upgrade-package" in done.stdout
    assert '"transformers==4.57.1"' in (tmp_path / "pyproject.toml").read_text()
    assert (tmp_path / "uv.lock").read_text() == lock


BACKEND = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
STARTED = """\
import pathlib
pathlib.Path({marker!r}).touch()
def prepare_metadata_for_build_editable(folder, settings=None):
    made = pathlib.Path(folder, "mine-1.dist-info")
    made.mkdir()
    (made / "METADATA").write_text({metadata!r})
    return made.name
build_editable = build_wheel = None
"""


def test_the_project_is_never_built(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    # uv lock --no-build runs the build backend of a project whose metadata is computed; its code may be anything
    requires = "".join(f"Requires-Dist: {each}\n" for each in ("torch>=2.6,<2.7", "transformers==4.57.1", "trl==0.17.0"))
    metadata = f"Metadata-Version: 2.1\nName: mine\nVersion: 1\nRequires-Python: >=3.10\n{requires}"
    text = PROJECT.format(url=index.url) + BACKEND
    _, lock = locked(tmp_path, text)
    marker = tmp_path / "cache" / "started"
    (tmp_path / "backend.py").write_text(STARTED.format(marker=str(marker), metadata=metadata))
    # a version that the backend computes changes nothing in the lock, so it is locked without asking for it
    computed = text.replace('version = "1"', 'dynamic = ["version"]')
    (tmp_path / "pyproject.toml").write_text(computed)
    (tmp_path / "uv.lock").write_text(lock.replace('name = "mine"\nversion = "1"\n', 'name = "mine"\n'))
    done = fix("--write", subject=("uv.lock",))
    assert done.returncode == 0, done.stderr
    assert "written: pyproject.toml, uv.lock" in done.stderr
    assert not marker.exists()
    assert uv_of(tmp_path, "lock", "--check").returncode == 0, "not what uv locks if it may build"
    # what else it computes, nobody knows without running it
    asked = 'dependencies = [\n    "torch>=2.6,<2.7",\n    "transformers==4.51.3",  # models\n    "trl==0.17.0",\n]\n'
    (tmp_path / "pyproject.toml").write_text(text.replace(asked, 'dynamic = ["dependencies"]\n[tool.uv]\nmanaged = true\n'))
    (tmp_path / "uv.lock").write_text(lock)
    done = fix("--write", "--keep", "torch", subject=("uv.lock",))
    assert not marker.exists()
    assert (tmp_path / "uv.lock").read_text() == lock
    (tmp_path / "uv.lock").unlink()
    uv_of(tmp_path, "lock", "--no-build")
    assert marker.exists(), "uv has stopped to build the project: compat need not keep it from that"


def test_a_project_with_a_release_without_a_wheel_is_locked(fix: Run, tmp_path: Path) -> None:
    """What it requires is in its source distribution, so that nothing has to be built."""
    packages = {**PACKAGES, "sources": {"1.0": release("2025-01-01", "accelerate", wheel=False)}}
    with IndexServer(packages) as server:
        text = PROJECT.format(url=server.url)
        locked(tmp_path, text.replace('    "trl==0.17.0",\n', '    "trl==0.17.0",\n    "sources",\n'))
        done = fix("--write", subject=("uv.lock",))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "written: pyproject.toml, uv.lock" in done.stderr
        assert uv_of(tmp_path, "lock", "--check").returncode == 0


@pytest.mark.parametrize("python", [">=3.10", ">=3.10,!=3.10.0", "~=3.10"])
def test_a_project_no_longer_admits_what_its_releases_are_not_for(fix: Run, tmp_path: Path, python: str) -> None:
    """The planned release excludes a Python that the project supports, which only a lock for all of them shows."""
    packages = {**PACKAGES, "transformers": {
        version: {**each, "requires_python": ">=3.11"} if version.startswith("4.57") else each
        for version, each in PACKAGES["transformers"].items()
    }}  # fmt: skip
    with IndexServer(packages) as server:
        before, lock = locked(tmp_path, PROJECT.format(url=server.url).replace(">=3.10", python))
        done = fix("--write", subject=("uv.lock",))
    after = (tmp_path / "pyproject.toml").read_text()
    if python.startswith("~"):  # which says more than an oldest Python
        assert done.returncode == 1, done.stdout
        assert "uv refuses to lock the edited file" in done.stdout
        assert (after, (tmp_path / "uv.lock").read_text()) == (before, lock)
        return
    assert done.returncode == 0, done.stdout + done.stderr
    assert f'requires-python = "{python.replace("3.10", "3.11", 1)}"' in after
    assert 'requires-python = ">=3.11"' in (tmp_path / "uv.lock").read_text()
    assert "python        3.10 → 3.11\n      because requires-python admits Python 3.10" in done.stdout


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_while_it_locks(fix: Run, tmp_path: Path, ending: signal.Signals) -> None:
    with IndexServer(PACKAGES) as server:
        before, lock = locked(tmp_path, PROJECT.format(url=server.url))
        (tmp_path / "tmp").mkdir()
        variables = {
            **os.environ, **UV, "HOME": str(tmp_path), "TMPDIR": str(tmp_path / "tmp"), "COMPAT_CACHE_DIR": str(tmp_path / "cache"),
            "UV_CACHE_DIR": str(tmp_path / "new-cache"),
        }  # fmt: skip
        command = [sys.executable, "-m", "compat", "fix", "uv.lock", "--write", *JOB]
        running = subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 60
        while not any((tmp_path / "tmp").glob("compat-lock-*/python3")) and time.monotonic() < until and running.poll() is None:
            time.sleep(0.01)
        running.send_signal(ending)
        _, err = running.communicate(timeout=60)
    assert running.returncode != 0
    assert "Traceback" not in err
    assert (tmp_path / "pyproject.toml").read_text() == before
    assert (tmp_path / "uv.lock").read_text() == lock
    if ending is signal.SIGINT:
        assert not any((tmp_path / "tmp").glob("compat-lock-*"))


def compiled(folder: Path, url: str, *options: str) -> str:
    """Write requirements with a bound, compile them in a folder, and return the compiled file."""
    (folder / "base.in").write_text("torch==2.6.0\n")
    (folder / "job.in").write_text(f"--index-url {url}\n-r base.in\ntransformers<4.56  # models\ntrl==0.17.0\n")
    words = ("pip", "compile", f"{folder.name}/job.in", "-o", f"{folder.name}/job.txt", "--generate-hashes", *options)
    (folder / "job.txt").write_text("transformers==4.51.3\n")
    done = uv_of(folder.parent, *words)
    assert done.returncode == 0, done.stderr
    return (folder / "job.txt").read_text()


def test_compiled_requirements_and_their_source(fix: Run, compat: Run, index: IndexServer, tmp_path: Path) -> None:
    folder = tmp_path / "deps"
    folder.mkdir()
    before = compiled(folder, index.url, "--no-header")
    head = "# This file was autogenerated by uv via the following command:\n#    uv pip compile deps/job.in -o deps/job.txt"
    before = f"{head} --generate-hashes --python-version 3.11\n{before}"
    (folder / "job.txt").write_text(before)
    done = fix("--write", url=index.url, subject=("deps/job.txt",))
    assert done.returncode == 0, done.stdout + done.stderr
    after = (folder / "job.txt").read_text()
    assert "checked   against the rules, in uv's lock" in done.stdout
    assert (folder / "job.in").read_text().splitlines()[2] == "transformers==4.57.1  # models"
    assert (folder / "base.in").read_text() == "torch==2.6.0\n"
    assert after.splitlines()[:2] == before.splitlines()[:2]
    assert {line.split(" ")[0] for line in after.splitlines() if "==" in line and "#" not in line} == {
        "torch==2.6.0", "transformers==4.57.1", "tokenizers==0.22.1", "trl==0.17.0", "accelerate==1.11.0",
    }  # fmt: skip
    assert compat("check", "deps/job.txt", *JOB).returncode == 0


def test_a_header_is_no_command_to_be_trusted(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "deps").mkdir()
    before = compiled(tmp_path / "deps", index.url, "--no-header")
    head = "# This file was autogenerated by uv via the following command:\n#    uv pip compile deps/job.in -o deps/job.txt"
    (tmp_path / "deps/job.txt").write_text(f"{head} --python ./python\n{before}")
    (tmp_path / "python").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / "python").chmod(0o755)
    done = fix(url=index.url, subject=("deps/job.txt",))
    assert done.returncode == 0, done.stderr
    assert "in uv's lock" not in done.stdout
    assert not (tmp_path / "started").exists()


POETRY = """[[package]]
name = "trl"
version = "0.17.0"
description = ""
optional = false
groups = ["main"]
python-versions = ">=3.9"
files = []

[metadata]
lock-version = "2.1"
python-versions = ">=3.10"
content-hash = "00"
"""


def test_a_lock_that_another_tool_makes_is_named_with_its_command(fix: Run, tmp_path: Path) -> None:
    """The project is edited; the lock is not up to date before its tool has made it again, also when there is nothing to edit."""
    (tmp_path / "pyproject.toml").write_text('[tool.poetry.dependencies]\npython = ">=3.10"\ntrl = "0.17.0"\n')
    (tmp_path / "poetry.lock").write_text(POETRY)
    packages = {"trl": {"0.17.0": release("2025-04-25"), "0.18.0": release("2025-05-27")}}
    behind = "compat: poetry.lock: not updated: its tool makes it from the edited file: poetry update --lock trl\n"
    with IndexServer(packages) as server:
        words = ("--write", *own(tmp_path, BAD_TRL))
        done = fix(*words, url=server.url, subject=["poetry.lock"], job=CLEAN)
        again = fix(*words, url=server.url, subject=["poetry.lock"], job=CLEAN)
    assert (tmp_path / "pyproject.toml").read_text().endswith('trl = "0.18.0"\n'), done.stdout + done.stderr
    assert done.stderr == f"written: pyproject.toml\n{behind}"
    assert again.stderr == behind


def test_what_poetry_moves_itself_does_not_become_a_requirement(fix: Run, tmp_path: Path) -> None:
    """It has no constraints: only a transitive package with an error is added to the project."""
    (tmp_path / "pyproject.toml").write_text('[tool.poetry.dependencies]\npython = ">=3.10"\njob = "1.0"\n')
    entry = POETRY.partition("\n[metadata]")[0]
    others = [entry.replace('"trl"', f'"{name}"').replace("0.17.0", "1.0") for name in ("helper", "job")]
    needs = '\n[package.dependencies]\n{} = "*"\n'
    text = POETRY.replace("files = []\n", "files = []\n" + needs.format("helper"))
    (tmp_path / "poetry.lock").write_text("\n".join([others[0], others[1] + needs.format("trl"), text]))
    packages = {
        "job": {"1.0": release("2025-04-01", "trl")}, "helper": {"1.0": release("2025-04-01"), "2.0": release("2025-05-01")},
        "trl": {"0.17.0": release("2025-04-25", "helper"), "0.18.0": release("2025-05-27", "helper>=2")},
    }  # fmt: skip
    with IndexServer(packages) as server:
        done = fix("--write", *own(tmp_path, BAD_TRL), url=server.url, subject=["poetry.lock"], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "poetry update --lock helper trl" in done.stdout
    new = (tmp_path / "pyproject.toml").read_text()
    assert 'trl = "0.18.0"' in new
    assert "helper" not in new


def test_what_the_project_of_a_poetry_lock_states_is_direct(fix: Run, tmp_path: Path) -> None:
    """The lock does not record it: both are required by a third package, and only one of them by the project."""
    packages = {
        "alpha": {"1.0": release("2025-04-25"), "2.0": release("2025-05-27")},
        "beta": {"3.0": release("2025-10-14"), "4.0": release("2025-11-25")},
        "gamma": {"1.0": release("2025-11-25", "alpha", "beta")},
    }
    locked_ = "".join(
        f'[[package]]\nname = "{name}"\nversion = "{version}"\noptional = false\npython-versions = ">=3.9"\nfiles = []\n{needs}\n'
        for name, version, needs in (
            ("alpha", "1.0", ""), ("beta", "4.0", ""), ("gamma", "1.0", '[package.dependencies]\nalpha = "*"\nbeta = "*"\n'),
        )
    )  # fmt: skip
    (tmp_path / "poetry.lock").write_text(
        f'{locked_}[metadata]\nlock-version = "2.0"\npython-versions = ">=3.9"\ncontent-hash = "0"\n'
    )
    project = (
        '[project]\nname = "mine"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["alpha==1.0", "gamma==1.0"]\n'
    )
    (tmp_path / "pyproject.toml").write_text(f"{project}\n[tool.poetry]\npackage-mode = false\n")
    rule = RULE.format(
        name="pair", severity="error", packages='alpha = "<2", beta = ">=4"', fix='[[rule.fix]]\nlaunch = "another trainer"',
        hit='alpha = "1.0", beta = "4.0"', clear='alpha = "2.0", beta = "4.0"',
    )  # fmt: skip
    with IndexServer(packages) as server:
        done = fix("--format", "json", *own(tmp_path, rule), url=server.url, job=CLEAN, subject=("poetry.lock",))
    assert planned(done) == {"beta": ("4.0", "3.0")}, done.stdout + done.stderr


def test_what_extras_that_exclude_each_other_need_is_added_once(fix: Run, tmp_path: Path) -> None:
    """The lock of a workspace names its extras with their project, and stays: what was added for it is found again."""
    packages = {
        **PACKAGES, "helper": {"1.0": release("2025-01-01"), "1.1": release("2025-02-01")},
        "engine": {"1.0": release("2025-01-01", "helper")}, "server": {"1.0": release("2025-01-01", "plugin")},
        "plugin": {"1.0": release("2025-01-01"), "1.1": release("2025-02-01")},
        "built": {"1.0": release("2025-01-01", wheel=False, dynamic=["Requires-Dist"])},
    }  # fmt: skip
    member = '[project]\nname = "{0}"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["{1}"]\n'
    root = (
        member.format("mine", "other") + '[project.optional-dependencies]\none = ["engine"]\ntwo = ["server"]\n'
        '[tool.uv]\nconflicts = [[{{ extra = "one" }}, {{ extra = "two" }}]]\nconstraint-dependencies = ["helper<1.1", "plugin<1.1"]\n'
        '[tool.uv.workspace]\nmembers = ["other"]\n[tool.uv.sources]\nother = {{ workspace = true }}\n'
        '[[tool.uv.index]]\nurl = "{url}"\ndefault = true\n'
    )  # fmt: skip
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pyproject.toml").write_text(member.format("other", "trl==0.18.0"))
    with IndexServer(packages) as server:
        text, before = locked(tmp_path, root.format(url=server.url))
        loose = text.replace('constraint-dependencies = ["helper<1.1", "plugin<1.1"]\n', "").replace(
            '["other"]', '["other", "built"]', 1
        )
        (tmp_path / "pyproject.toml").write_text(loose)
        bad = [
            RULE.format(name=f"bad-{name}", severity="error", packages=f'{name} = "<1.1"', hit=f'{name} = "1.0"',
                        clear=f'{name} = "1.1"', fix=f'[[rule.fix]]\nupgrade = {{ {name} = ">=1.1" }}')
            for name in ("helper", "plugin")
        ]  # fmt: skip
        done = fix("--write", *own(tmp_path, *bad), url=server.url, job=CLEAN, subject=("uv.lock",))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "uv.lock: not updated: uv would have to build built==1.0" in done.stderr
    expected = loose.replace('["engine"]', '["engine", "helper==1.1"]').replace('["server"]', '["server", "plugin==1.1"]')
    assert (tmp_path / "pyproject.toml").read_text() == expected
    assert (tmp_path / "uv.lock").read_text() == before
