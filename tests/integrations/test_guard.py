"""``compat.guard()``, ``compat run`` and the plugins: the real programs in real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.integrations import guard
from tests.conftest import ROOT

Run = Callable[..., "subprocess.CompletedProcess[str]"]
_LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "COMPAT_GUARD", guard.GUARDED, "VIRTUAL_ENV")


def distribution(folder: Path, name: str, version: str, *requires: str) -> None:
    """A distribution as pip leaves it, without a module."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {each}" for each in requires)]
    (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (info / "INSTALLER").write_text("pip\n", encoding="utf-8")


@pytest.fixture
def start(tmp_path: Path) -> Run:
    """Starts Python in a project with one broken requirement: peft asks for an accelerate that is not the one there."""
    distribution(tmp_path / "site", "peft", "0.15.0", "accelerate>=0.21.0")
    distribution(tmp_path / "site", "accelerate", "0.20.3")
    project = tmp_path / "project"
    project.mkdir()

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name not in _LAUNCHERS}
        path = os.pathsep.join((str(tmp_path / "site"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])))
        return subprocess.run(
            [sys.executable, *words], cwd=project, capture_output=True, text=True, timeout=300, check=False,
            env={**kept, "PYTHONPATH": path, **variables},
        )  # fmt: skip

    return run


def script(tmp_path: Path, text: str) -> str:
    (tmp_path / "project" / "train.py").write_text(text, encoding="utf-8")
    return "train.py"


def test_it_prints_what_is_certain_and_goes_on(start: Run, tmp_path: Path) -> None:
    done = start(script(tmp_path, "import compat\nprint(compat.guard().exit)\nprint('trained')\n"))
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["1", "trained"]
    assert "accelerate" in done.stderr
    assert "peft" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full and a POSIX shell")
@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "2>/dev/null"])
@pytest.mark.parametrize("command", ["python train.py", "compat run train.py"])
def test_a_job_is_not_ended_because_nothing_can_be_said(start: Run, tmp_path: Path, redirected: str, command: str) -> None:
    """Services close standard error, and logs fill disks; what belongs there is not printed elsewhere either."""
    script(tmp_path, "import compat, os, sys\nreport = compat.guard()\nprint('trained')\nsys.stdout.flush()\nos._exit(0)\n")
    words = command.replace("python", sys.executable).replace("compat run", f"{sys.executable} -m compat run")
    shell = f"import os; os.execvp('sh', ['sh', '-c', {f'{words} {redirected}'!r}])"
    done = start("-c", shell)
    assert (done.returncode, done.stdout) == (0, "trained\n")


def test_it_does_not_follow_imports_that_are_about_to_run(start: Run, tmp_path: Path) -> None:
    """Reading the files of everything that a trainer imports takes seconds, which every start of the script would pay."""
    text = "import sys, compat\nif compat.guard():\n    print('compat.checks.running' in sys.modules)\n    sys.exit()\nimport peft\n"
    assert start(script(tmp_path, text)).stdout.splitlines() == ["False"]


def test_it_raises_from_the_level_that_is_asked_for(start: Run, tmp_path: Path) -> None:
    done = start(script(tmp_path, "import compat\ncompat.guard(fail_on='error')\nprint('trained')\n"))
    assert done.returncode == 1
    assert "compat.integrations.guard.KnownBad:" in done.stderr
    assert "trained" not in done.stdout


@pytest.mark.parametrize(
    ("switch", "code", "printed"), [("off", 0, False), ("warn", 0, True), ("error", 1, True), ("loud", 1, False)]
)
def test_the_environment_wins_over_the_argument(start: Run, tmp_path: Path, switch: str, code: int, printed: bool) -> None:
    done = start(script(tmp_path, "import compat\ncompat.guard(fail_on='error')\n"), COMPAT_GUARD=switch)
    assert done.returncode == code
    assert ("accelerate" in done.stderr) is printed
    assert ("'loud' is not one of off, warn, error, warning" in done.stderr) is (switch == "loud")


def test_one_process_of_a_job_checks(start: Run, tmp_path: Path) -> None:
    program = script(tmp_path, "import compat\nprint(compat.guard() is None)\n")
    ranks = [start(program, RANK=rank, LOCAL_RANK=rank, WORLD_SIZE="2") for rank in "01"]
    assert [each.stdout.strip() for each in ranks] == ["False", "True"]
    assert [bool(each.stderr) for each in ranks] == [True, False]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}, "torchrun 2"),
        ({"RAY_RAYLET_PID": "7", "RAY_JOB_ID": "01000000"}, "ray None"),
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"}, "None 4"),
        ({}, "python 1"),
    ],
)
def test_the_launcher_is_the_one_that_started_this_process(
    start: Run, tmp_path: Path, variables: dict[str, str], expected: str
) -> None:
    text = "import compat\nfound = compat.guard().environment.workload\nprint(found.launcher, found.processes)\n"
    done = start(script(tmp_path, text), **variables)
    assert done.stdout.splitlines() == [expected]


def test_workers_of_multiprocessing_do_not_check_again(start: Run, tmp_path: Path) -> None:
    text = (
        "import multiprocessing\nimport compat\nchecked = compat.guard() is not None\n"
        "def work(number):\n    return checked\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        print(checked, pool.map(work, [1]))\n"
    )
    done = start(script(tmp_path, text))
    assert done.stdout.strip() == "True [False]"
    assert done.stderr.count("peft 0.15.0") == start(script(tmp_path, "import compat\ncompat.guard()\n")).stderr.count(
        "peft 0.15.0"
    )


def test_a_guard_that_cannot_check_says_so(start: Run, tmp_path: Path) -> None:
    text = "import compat, compat.api.machine as m\nm.read_machine = lambda *a: 1 / 0\n"
    printed = start(script(tmp_path, text + "compat.guard()\nprint('trained')\n"))
    assert (printed.returncode, printed.stdout) == (0, "trained\n")
    assert printed.stderr.startswith("compat: could not check this job: ")
    assert start(script(tmp_path, text + "compat.guard(fail_on='error')\n")).returncode == 1


def test_run_checks_and_becomes_the_program(start: Run, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import sys, compat\nprint(__name__, sys.argv, sys.stdout.write_through, compat.guard())\nraise SystemExit(7)\n",
    )
    done = start("-u", "-m", "compat", "run", program, "--help", "--gpu", "x", "--", "-m")
    assert done.returncode == 7
    assert done.stdout.strip() == "__main__ ['train.py', '--help', '--gpu', 'x', '--', '-m'] True None"
    assert "accelerate" in done.stderr


def test_run_does_not_start_what_it_is_asked_to_stop(start: Run, tmp_path: Path) -> None:
    done = start("-m", "compat", "run", "--fail-on", "error", script(tmp_path, "print('trained')\n"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "compat: not started: " in done.stderr
    assert start("-m", "compat", "run", "-m", "json.tool", "--help").stdout.startswith("usage:")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [((), "expected a script"), (("-m",), "-m needs the name"), (("no.py",), "no.py: no such file"),
     (("--gpus", "1", "train.py"), "unknown option '--gpus'"), (("--fail-on", "info", "train.py"), "'info' is not one of")],
)  # fmt: skip
def test_run_refuses_what_it_cannot_start(start: Run, words: tuple[str, ...], wanted: str) -> None:
    done = start("-m", "compat", "run", *words)
    assert done.returncode == 2
    assert wanted in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_pytest_fails_at_once_where_it_is_asked_to(start: Run, tmp_path: Path) -> None:
    (tmp_path / "project" / "test_one.py").write_text("def test_one():\n    pass\n", encoding="utf-8")
    # by name alone, whether or not the entry point is installed as well
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugin = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "compat.integrations.pytest_plugin")
    assert start(*plugin, **alone).returncode == 0
    failed = start(*plugin, "--compat", "test_one.py", **alone)
    assert failed.returncode == 1
    assert "peft" in failed.stdout + failed.stderr
    assert "1 passed" not in failed.stdout
    (tmp_path / "project" / "pytest.ini").write_text("[pytest]\ncompat = nonsense\n", encoding="utf-8")
    assert "'nonsense' is not one of error, warning" in start(*plugin, **alone).stderr


def test_vllm_s_plugin_does_nothing_unless_it_is_asked_to(start: Run, tmp_path: Path) -> None:
    program = script(tmp_path, "from compat.integrations.vllm_plugin import register\nregister()\nprint('engine')\n")
    silent, asked = start(program), start(program, COMPAT_GUARD="error")
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "engine\n", "")
    assert asked.returncode == 1
    assert "KnownBad" in asked.stderr


def test_the_wheel_declares_the_plugins() -> None:
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'compat = "compat.integrations.vllm_plugin:register"' in declared
    assert 'compat = "compat.integrations.pytest_plugin"' in declared
