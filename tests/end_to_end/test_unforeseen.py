"""What nobody foresaw ends with one line and exit code 2, and costs what is given beside it nothing."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.cli import main
from compat.cli.check import read_subject

GOOD = "torch==2.6.0\n"


def ran(
    *words: str, cwd: Path, before: Callable[[], object] | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "compat", *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, **variables}, preexec_fn=before,
    )  # fmt: skip


def test_a_fault_in_one_file_leaves_the_others_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def faulty(kind: str, name: str, matrix: object) -> object:
        if name == "bad.txt":
            raise ZeroDivisionError("of our own\nin two lines")
        return read_subject(kind, name, matrix)  # type: ignore[arg-type]

    monkeypatch.chdir(tmp_path)
    for name in ("good.txt", "bad.txt"):
        (tmp_path / name).write_text("transformers==4.51.3\nhuggingface-hub==0.20.0\n")
    monkeypatch.setattr("compat.cli.check.read_subject", faulty)
    assert main(["check", "bad.txt", "good.txt"]) == 2
    out, err = capsys.readouterr()
    assert "huggingface-hub" in out
    assert err.count("\n") == 1
    assert err.startswith("compat: bad.txt: unexpected ZeroDivisionError: of our own (")
    assert "COMPAT_TRACEBACK=1" in err
    monkeypatch.setenv("COMPAT_TRACEBACK", "1")
    assert main(["check", "bad.txt"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("problem", [ValueError("x"), RecursionError(), MemoryError(), OSError(24, "Too many open files")])
def test_no_exception_leaves_a_command(
    problem: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def raises(_: object) -> int:
        raise problem

    monkeypatch.setattr("compat.cli._dispatch", raises)
    assert main(["check", "requirements.txt"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("pin", ["===.*", "===0.6.*", "==0.6.5+cu118,<0.7", "===0.6.5,>0.1", "!=0.6.5+cu118"])
@pytest.mark.parametrize("option", ["extra-index-url", "index-url"])
@pytest.mark.parametrize("names", [("torch==2.5.1", "vllm"), ("vllm==0.6.5", "torch")])
def test_what_no_range_is_made_of(pin: str, names: tuple[str, str], option: str, tmp_path: Path) -> None:
    index = f"--{option} https://download.pytorch.org/whl/cu118\n"
    (tmp_path / "requirements.txt").write_text(f"{index}{names[0]}\n{names[1]}{pin}\n")
    done = ran("check", "requirements.txt", cwd=tmp_path)
    assert "unexpected" not in done.stderr
    assert done.returncode in (0, 1, 3)


def test_a_number_of_millions_of_digits(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    (tmp_path / "uv.lock").write_text(f'version = 1\n[[package]]\nname = "a"\nversion = 0x{"f" * 2_000_000}\n')
    (tmp_path / "rules.toml").write_text(f"[[rule]]\nid = 0x{'f' * 6_000}\n")
    done = ran("check", "good.txt", "uv.lock", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "compat: uv.lock:4: cannot be parsed: a number is too long\n")
    assert "good.txt" in done.stdout
    done = ran("check", "good.txt", "--rules", "rules.toml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "compat: rules.toml:2: cannot be parsed: a number is too long\n")


def test_rules_that_never_end(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", "pipe", "."):
        done = ran("check", "good.txt", "--rules", name, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, f"compat: {name}: is not a regular file\n")


@pytest.mark.parametrize("part", ['"="', '"' + "a" * 41 + '"', "'a,b'", "a"])
def test_a_key_of_thousands_of_parts(part: str, tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text("version = 1\n" + ".".join([part] * 40_000) + " = 1\n")
    done = ran("check", "uv.lock", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "compat: uv.lock:2: cannot be parsed: a key has too many parts\n")


def test_many_keys_of_many_parts(tmp_path: Path) -> None:
    keys = "".join(f"k{number}.{'a.' * 198}b = 1\n" for number in range(20_000))
    (tmp_path / "uv.lock").write_text(f"version = 1\n{keys}")
    done = ran("check", "uv.lock", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("cannot be parsed: a key has too many parts\n")


def test_the_current_folder_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    (tmp_path / "good.txt").write_text(GOOD)
    root = Path(__file__).resolve().parents[2]
    for words in (("check", str(tmp_path / "good.txt")), ("doctor",), ("check", "--installed")):
        code = "import os, sys; os.rmdir(os.getcwd()); from compat.cli import entry; entry()"
        done = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=gone, capture_output=True, text=True, check=False, timeout=300,
            env={**os.environ, "PYTHONPATH": str(root)},
        )  # fmt: skip
        gone.mkdir()
        assert done.returncode in (0, 1, 2)
        assert "Traceback" not in done.stderr
        assert done.returncode != 1 or done.stdout


def test_few_file_descriptors(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    for most in (4, 5, 6):
        done = ran(
            "check", "good.txt", cwd=tmp_path, before=lambda most=most: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        )  # type: ignore[misc]
        if "Fatal Python error" not in done.stderr:  # Python itself could start
            assert done.returncode in (0, 2), done.stderr
            assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink("nowhere", path)], ids=["pipe", "folder", "dangling link"]
)
def test_a_project_file_that_cannot_be_read_is_not_passed_over(make: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    make(tmp_path / "pyproject.toml")
    done = ran("check", "good.txt", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("compat: ")
    assert "pyproject.toml: " in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["version = 1\n", 'version = 1\n[[packages]]\nname = "torch"\nversion = "2.6.0"\n'])
def test_a_lock_without_packages_is_not_without_findings(text: str, tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(text)
    done = ran("check", "uv.lock", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "compat: uv.lock:1: expected [[package]] tables of a uv.lock\n")


def test_a_pixi_lock_of_the_future_is_undecided(tmp_path: Path) -> None:
    (tmp_path / "pixi.lock").write_text("version: 99\nenvironments: {}\npackages: []\n")
    done = ran("check", "pixi.lock", cwd=tmp_path)
    assert done.returncode == 3
    assert "pixi.lock of version 99: read as version 6" in done.stdout


def test_a_destructor_that_fails_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    program = (
        "import sys\nimport compat.cli as cli\n"
        "class Half:\n    def __del__(self):\n        raise AttributeError('_free')\n"
        "run = cli._dispatch\ndef interrupted(options):\n    half = Half()\n    raise KeyboardInterrupt\n"
        "cli._dispatch = interrupted\nsys.argv = ['compat', 'check', 'good.txt']\ncli.entry()\n"
    )
    for shown in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "COMPAT_TRACEBACK": shown},
        )  # fmt: skip
        assert done.returncode == 130
        assert ("Traceback" in done.stderr) == bool(shown)


@pytest.mark.parametrize(
    "words",
    [
        ["check"], ["check", "--environment"], ["check", "--pasted"], ["check", "good.txt", "--script"], ["check", "good.txt", "--baseline"],
        ["check", "good.txt", "--config"], ["diagnose"], ["diagnose", "good.txt", "--environment"], ["facts"], ["fix"], ["why", "torch"],
        ["fix", "--environment"], ["script"], ["rules", "lint"], ["doctor", "--python"], ["check", "--installed", "--python"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_pipe_that_nobody_writes_into_is_not_waited_for(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    os.mkfifo(tmp_path / "pipe.py")
    done = ran(*words, "pipe.py", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "pipe.py: is not a regular file" in done.stderr


@pytest.mark.parametrize("place", ["pyvenv.cfg", "include/python3.11/patchlevel.h"])
def test_a_pipe_in_an_environment_is_not_waited_for(place: str, tmp_path: Path) -> None:
    (tmp_path / "env" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (tmp_path / "env" / "bin").mkdir()
    os.symlink(sys.executable, tmp_path / "env" / "bin" / "python")
    (tmp_path / "env" / place).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / "env" / place)
    for path in ("env", "env/bin/python"):
        done = ran("check", "--installed", "--python", path, cwd=tmp_path)
        assert done.returncode in (0, 1, 2)
        assert "Traceback" not in done.stderr


def test_a_pipe_of_the_shell_is_read(tmp_path: Path) -> None:
    environment = '{"schema": "compat/environment/1", "distributions": [{"name": "torch", "version": "2.6.0"}]}'
    command = f"{sys.executable} -m compat check --environment <(echo '{environment}')"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "torch" in done.stdout


CONFLICT = "transformers==4.51.3\nhuggingface-hub==0.20.0\n"


@pytest.mark.parametrize(
    "more",
    [
        CONFLICT, "huggingface_hub\n", "huggingface-hub>=0.19\n", "huggingface-hub[cli]==0.20.0\n", "-r requirements.txt\n",
        "huggingface-hub==0.20.0; python_version > '3.8'\n", "".join(f"huggingface-hub>=0.{n}\n" for n in range(1, 20)),
    ],
)  # fmt: skip
def test_a_line_that_says_it_again_hides_nothing(more: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(CONFLICT + more)
    done = ran("check", "requirements.txt", cwd=tmp_path)
    assert done.returncode == 1
    assert "requires huggingface-hub" in done.stdout


def test_an_entry_that_is_repeated_hides_nothing(tmp_path: Path) -> None:
    once = [{"name": "transformers", "version": "4.51.3"}, {"name": "huggingface-hub", "version": "0.20.0"}]
    (tmp_path / "e.json").write_text(json.dumps({"schema": "compat/environment/1", "distributions": once * 2}))
    assert ran("check", "--environment", "e.json", cwd=tmp_path).returncode == 1
    text = "dependencies:\n- transformers=4.51.3\n- huggingface_hub=0.20.0\n- pip:\n  - huggingface-hub==0.20.0\n"
    (tmp_path / "environment.yml").write_text(text)
    assert ran("check", "environment.yml", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_project_file_in_another_encoding_is_not_passed_over(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    (tmp_path / "pyproject.toml").write_bytes("[tool.compat]\nunknown = 1\n".encode(encoding))
    done = ran("check", "good.txt", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"compat: {tmp_path}/pyproject.toml:1: is not UTF-8 text (byte 0)\n")


def test_a_project_file_that_is_too_large_is_not_read_in_part(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    (tmp_path / "pyproject.toml").write_text(f"# {'x' * 8 * 1024 * 1024}\n[tool.compat]\nunknown = 1\n")
    done = ran("check", "good.txt", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("pyproject.toml: is larger than 8 MiB\n")


@pytest.mark.parametrize("command", ["check", "fix"])
@pytest.mark.parametrize("script", ["missing.py", "folder.py", "pipe.py"])
def test_code_that_cannot_be_read_is_not_passed_over(script: str, command: str, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    done = ran(command, "good.txt", "--script", script, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"compat: {script}: ")


@pytest.mark.parametrize("value", ["A100:" + "9" * 5_000, "A" * 100_000])
def test_a_value_of_thousands_of_characters_is_one_readable_line(value: str, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text(GOOD)
    done = ran("check", "good.txt", f"--gpu={value}", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("compat: --gpu: ")
    assert "unexpected" not in done.stderr
    assert len(done.stderr) < 2_100


@pytest.mark.parametrize("command", ["##[error]", "##vso[task.setvariable variable=a]b", "##teamcity[buildProblem]"])
@pytest.mark.parametrize("runner", ["GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"])
def test_an_error_is_no_command_of_a_runner(command: str, runner: str, tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(f'version = 1\n[[package]]\nname = "torch"\nversion = "{command}"\n')
    done = ran("check", "uv.lock", cwd=tmp_path, **{runner: "1"})
    assert done.returncode == 2
    assert command not in done.stdout + done.stderr


@pytest.mark.parametrize("form", ["v{}", "0!{}", "{}.0.0", "0{}"])
def test_another_spelling_of_a_version_hides_nothing(form: str, tmp_path: Path) -> None:
    lines = f"transformers=={form.format('4.51.3')}\nhuggingface-hub=={form.format('0.20.0')}\n"
    (tmp_path / "requirements.txt").write_text(lines)
    assert ran("check", "requirements.txt", cwd=tmp_path).returncode == 1


def test_a_key_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    packages = '"distributions": [{"name": "torch", "version": "2.6.0"}]'
    (tmp_path / "e.json").write_text(f'{{"schema": "compat/environment/1", {packages}, "distributions": []}}')
    done = ran("check", "--environment", "e.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "compat: e.json: is not JSON: the key 'distributions' occurs twice\n")


@pytest.mark.parametrize("words", ["check nowhere.txt", "check bad.txt", "diagnose -", "rules show nothing"])
@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-", "<&-", ">&- 2>&-", "> /dev/full 2>&1"])
def test_an_error_that_cannot_be_printed_is_no_finding(words: str, streams: str, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("torch==\n")
    command = f"{sys.executable} -m compat {words} {streams}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60, input="",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )  # fmt: skip
    assert done.returncode == 2
    assert "unexpected" not in done.stderr


def test_an_incomplete_release_of_python_is_no_single_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = '[metadata]\nlock_version = "4"\n[[metadata.targets]]\nrequires_python = "==3."\n[[package]]\nname = "torch"\nversion = "2.6.0"\n'
    Path("pdm.lock").write_text(text)
    assert main(["check", "pdm.lock"]) == 0
    assert "unexpected" not in capsys.readouterr().err
