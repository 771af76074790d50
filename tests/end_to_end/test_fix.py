"""``compat fix`` as people call it: a real process, real files, a package index on this machine, and what goes wrong with one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.conftest import ROOT
from tests.end_to_end.fixing import BAD_TRL, CLEAN, JOB, LINES, PACKAGES, PLAN, RULE, Run, own, planned, release
from tests.index.server import IndexServer

pytest.importorskip("clingo")

Write = Callable[..., str]
REPORT = Draft202012Validator(json.loads((ROOT / "docs" / "schemas" / "report-1.json").read_text()))
DATAPARALLEL, ACCURACY = "transformers-dataparallel-drops-data", "trl-sft-dataparallel-accuracy"


def undecided(done: subprocess.CompletedProcess[str]) -> None:
    """Exit code 3, one line, no claim that something cannot be had."""
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stderr.startswith("compat: undecided: ")
    assert done.stderr.count("\n") == 1
    assert "conflict with each other" not in done.stdout


# What is planned and written


def test_two_errors_are_mended_by_the_smallest_change(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    done = fix(url=index.url)
    assert done.returncode == 0, done.stderr
    assert DATAPARALLEL in done.stdout
    assert ACCURACY in done.stdout
    assert "2 changes fix 2 errors. No smaller change fixes them." in done.stdout
    assert "because Only the first GPU receives data" in done.stdout
    assert "and with uv pip compile" in done.stdout
    assert "-transformers==4.51.3  # models\n+transformers==4.57.1  # models\n" in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == LINES


def test_what_is_written_needs_no_mending(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    done = fix("--write", "--brief", url=index.url)
    assert done.returncode == 0
    assert done.stderr == "written: requirements.txt\n"
    written = (tmp_path / "requirements.txt").read_text()
    assert written == LINES.replace("4.51.3", "4.57.1").replace("0.21.1", "0.22.1")
    again = fix("--write", url=index.url)
    assert again.returncode == 0
    assert "Nothing to fix" in again.stdout
    assert (tmp_path / "requirements.txt").read_text() == written


def test_the_report_follows_the_schema(fix: Run, index: IndexServer) -> None:
    done = fix("--format", "json", url=index.url)
    report = json.loads(done.stdout)
    REPORT.validate(report)
    assert {each["rule"] for each in report["findings"]} == {DATAPARALLEL, ACCURACY}
    assert planned(done) == PLAN
    plan = report["plan"]
    assert plan["verified"] == {"rules": True, "uv": True}
    assert (plan["proven"], plan["left"], plan["core"], plan["relief"], plan["unread"]) == (True, [], None, None, {})
    assert plan["cost"] == {"changed": 2, "steps": 3}
    assert report["exit"] == 0
    assert "uv pip install -r requirements.txt" in plan["commands"]


def test_indexes_are_those_of_pip_and_of_uv(fix: Run, index: IndexServer) -> None:
    for variable in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        assert planned(fix("--brief", "--format", "json", **{variable: index.url})) == PLAN


def test_credentials_of_the_index_reach_uv_too(fix: Run) -> None:
    with IndexServer(PACKAGES, login=("user", "secret")) as server:
        done = fix("--format", "json", url=server.url.replace("http://", "http://user:secret@"))
    assert planned(done) == PLAN
    assert json.loads(done.stdout)["plan"]["verified"] == {"rules": True, "uv": True}
    assert "secret" not in done.stdout + done.stderr


def test_what_is_kept_may_make_it_impossible(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    done = fix("--keep", "transformers", "--write", url=index.url)
    assert done.returncode == 1
    assert "conflict with each other:\n  - you keep transformers==4.51.3\n" in done.stdout
    assert "Dropping this would help most: you keep transformers==4.51.3" in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == LINES
    report = json.loads(fix("--keep", "transformers", "--format", "json", url=index.url).stdout)
    REPORT.validate(report)
    assert report["exit"] == 1
    assert report["plan"]["changes"] == []
    assert "you keep transformers==4.51.3" in report["plan"]["core"]
    assert report["plan"]["relief"] == "you keep transformers==4.51.3"


def test_two_wishes_that_contradict_each_other(fix: Run, index: IndexServer) -> None:
    done = fix("--keep", "transformers==4.57.1", "tokenizers", url=index.url)
    assert done.returncode == 1
    for text in ("you keep transformers==4.57.1", "you keep tokenizers==0.21.1", "requires tokenizers<=0.23,>=0.22"):
        assert text in done.stdout
    assert "Dropping this would help most: you keep tokenizers==0.21.1" in done.stdout


def test_a_kept_release_moves_the_rest(fix: Run, index: IndexServer) -> None:
    assert planned(fix("--keep", "transformers==4.57.3", "--format", "json", url=index.url)) == {
        "transformers": ("4.51.3", "4.57.3"), "tokenizers": ("0.21.1", "0.22.1"),
    }  # fmt: skip


def test_nothing_newer_than_a_day(fix: Run, index: IndexServer) -> None:
    done = fix("--before", "2025-09-30", "--format", "json", url=index.url)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["plan"]["changes"] == []
    assert any("transformers" in text for text in report["plan"]["core"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--keep", "transformers=4"), "--keep 'transformers=4'"),
        (("--time-limit", "soon"), "--time-limit: expected seconds"),
        (("--keep", "nothing-of-the-kind"), "nothing-of-the-kind is not among"),
        (("--index-url", "nonsense://x"), "--index-url"),
    ],
)
def test_words_that_cannot_be_used(fix: Run, words: tuple[str, ...], said: str) -> None:
    done = fix(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


# Other subjects


def test_a_described_environment(fix: Run, index: IndexServer, described: Write) -> None:
    packages = {"torch": "2.6.0", "transformers": "4.51.3", "trl": "0.17.0", "accelerate": "1.6.0", "tokenizers": "0.21.1"}
    whole = described(packages, python="3.11.9", os="linux", machine="x86_64", distributions_complete=True)
    done = fix("--format", "json", url=index.url, subject=("--environment", whole), job=JOB[:-2])
    assert planned(done) == PLAN
    assert json.loads(done.stdout)["plan"]["verified"] == {"rules": True, "uv": True}
    refused = fix("--write", url=index.url, subject=("--environment", whole), job=JOB[:-2])
    assert refused.returncode == 2
    assert "--write only changes files" in refused.stderr


def test_what_a_description_leaves_out_may_be_there(fix: Run, index: IndexServer, described: Write) -> None:
    part = described({"transformers": "4.51.3", "trl": "0.17.0"}, python="3.11.9", os="linux", machine="x86_64")
    subject = ("--environment", part)
    done = fix("--format", "json", url=index.url, subject=subject, job=JOB[:-2])
    assert planned(done) == {"transformers": ("4.51.3", "4.57.1"), "tokenizers": (None, "0.22.1")}
    assert json.loads(done.stdout)["plan"]["commands"] == ['uv pip install "transformers==4.57.1"']
    text = fix("--brief", url=index.url, subject=subject, job=JOB[:-2])
    assert "1 change fixes 2 errors." in text.stdout
    assert "also      tokenizers 0.22.1" in text.stdout


def test_an_installed_environment_is_read_from_its_metadata(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    folder = installed(tmp_path, {name: next(iter(versions)) for name, versions in PACKAGES.items()})
    done = fix("--format", "json", url=index.url, subject=("--python", str(folder)), job=JOB[:-2])
    assert planned(done) == PLAN, done.stderr
    pages = {path.split("/")[2] for path in index.requests if path.startswith("/simple/")}
    metadata = [path for path in index.requests if path.endswith("2.6.0-py3-none-any.whl.metadata")]
    assert "transformers" in pages
    assert len(metadata) <= 1  # uv's; ours is what is installed


def installed(folder: Path, packages: dict[str, str]) -> Path:
    site = folder / "venv" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (folder / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.9\n")
    for name, version in packages.items():
        requires = "".join(f"Requires-Dist: {each}\n" for each in PACKAGES[name][version]["requires"])  # type: ignore[attr-defined]
        (site / f"{name}-{version}.dist-info").mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}\n"
        (site / f"{name}-{version}.dist-info" / "METADATA").write_text(text)
    return folder / "venv"


def test_source_distributions_are_never_built(fix: Run, tmp_path: Path) -> None:
    """Neither by us nor by uv: what only a build tells is no candidate, and stays where it is there."""
    packages = {
        **PACKAGES,
        "deepspeed": {"0.16.0": release("2025-04-01", "torch", wheel=False, dynamic=True)},
        "static": {"1.0": release("2025-04-01", "tokenizers>=0.20", wheel=False)},
    }
    (tmp_path / "requirements.txt").write_text(f"{LINES}deepspeed==0.16.0\nstatic==1.0\n")
    with IndexServer(packages) as server:
        done = fix("--format", "json", url=server.url)
        assert planned(done) == PLAN
        assert json.loads(done.stdout)["plan"]["verified"] == {"rules": True, "uv": True}
        assert "/simple/setuptools/" not in server.requests


def test_a_local_build_that_no_index_has_stays(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(LINES.replace("torch==2.6.0", "torch==2.6.0+cu124"))
    done = fix("--format", "json", url=index.url)
    assert planned(done) == PLAN
    assert json.loads(done.stdout)["plan"]["verified"] == {"rules": True, "uv": True}


# What goes wrong


@pytest.mark.parametrize("fault", ["500", "403", "not-a-page", "redirect-loop", "broken-off"])
def test_pages_that_cannot_be_read(fix: Run, index: IndexServer, tmp_path: Path, fault: str) -> None:
    index.faults["*"] = fault
    undecided(fix("--write", url=index.url))
    report = json.loads(fix("--format", "json", url=index.url).stdout)
    REPORT.validate(report)
    assert (report["exit"], report["plan"]["changes"], report["plan"]["core"]) == (3, [], None)
    assert report["plan"]["unread"]
    assert (tmp_path / "requirements.txt").read_text() == LINES


def test_an_index_that_is_down(fix: Run, tmp_path: Path) -> None:
    with IndexServer({}) as server:
        url = server.url
    undecided(fix(url=url))
    assert "cannot be reached" in fix(url=url).stderr


def test_offline_with_an_empty_cache_and_with_a_full_one(fix: Run, index: IndexServer) -> None:
    undecided(fix("--offline", url=index.url))
    assert index.requests == []
    assert fix(url=index.url).returncode == 0
    index.requests.clear()
    done = fix("--offline", "--format", "json", url=index.url)
    assert (done.returncode, planned(done)) == (0, PLAN)
    assert index.requests == []


def test_one_page_that_cannot_be_read_is_no_conflict(fix: Run, index: IndexServer) -> None:
    """The package that would have to move with the other one."""
    index.faults["tokenizers"] = "500"
    undecided(fix(url=index.url))


def test_an_unread_page_that_does_not_matter_is_told(fix: Run, index: IndexServer) -> None:
    index.faults["accelerate"] = "500"
    done = fix(url=index.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Not all packages could be read: a smaller one may exist." in done.stdout
    assert "unread    accelerate: " in done.stdout


def test_a_hash_that_is_wrong_is_no_candidate(fix: Run) -> None:
    """Without metadata beside it the wheel itself is read; the release after it takes its place."""
    with IndexServer(PACKAGES, metadata=False, ranges=False) as server:
        server.faults["transformers-4.57.1-py3-none-any.whl"] = "wrong-hash"
        done = fix("--format", "json", url=server.url)
        assert planned(done)["transformers"] == ("4.51.3", "4.57.3")
        server.faults["*"] = "wrong-hash"
        undecided(fix(url=server.url, COMPAT_CACHE_DIR="empty"))


def test_metadata_that_was_promised_is_read_from_the_wheel(fix: Run, index: IndexServer) -> None:
    index.faults["*"] = "no-metadata"
    assert planned(fix("--format", "json", url=index.url)) == PLAN


@pytest.mark.parametrize("options", [{"json": False}, {"json": False, "metadata": False}, {"hashes": False}])
def test_indexes_of_all_kinds(fix: Run, options: dict[str, bool]) -> None:
    with IndexServer(PACKAGES, **options) as server:  # type: ignore[arg-type]
        done = fix("--format", "json", url=server.url)
    assert planned(done) == PLAN
    assert json.loads(done.stdout)["plan"]["verified"]["uv"] is True


def test_uv_refuses_what_it_sees_otherwise(fix: Run, index: IndexServer) -> None:
    """A cache that is not true any more: what uv says counts."""
    assert fix(url=index.url).returncode == 0
    changed = {**PACKAGES, "transformers": {**PACKAGES["transformers"], "4.57.1": release("2025-10-14", "tokenizers>=9")}}
    with IndexServer(changed) as other:
        index.faults["transformers-4.57.1-py3-none-any.whl"] = f"to {other.url}"
        index.files.update(other.files)
        done = fix("--format", "json", url=index.url, UV_CACHE_DIR="another")
    report = json.loads(done.stdout)
    assert report["plan"]["verified"]["uv"] is False
    assert "tokenizers" in report["plan"]["verified"]["why"]
    assert (done.returncode, report["plan"]["changes"]) == (1, [])


def test_a_cache_that_is_damaged_or_cannot_be_written(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "index-1.sqlite").write_bytes(b"this is no database" * 100)
    (tmp_path / "file").write_text("")
    for folder in ("broken", "file"):
        assert planned(fix("--format", "json", url=index.url, COMPAT_CACHE_DIR=str(tmp_path / folder))) == PLAN


def started(tmp_path: Path, url: str, *words: str) -> subprocess.Popen[str]:
    variables = {
        "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "COMPAT_CACHE_DIR": str(tmp_path / "cache"),
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"), "LANG": "C.UTF-8",
    }  # fmt: skip
    command = [sys.executable, "-m", "compat", "fix", "requirements.txt", *JOB, "--index-url", url, *words]
    return subprocess.Popen(
        command, cwd=tmp_path, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupted_run_leaves_the_file_whole(fix: Run, tmp_path: Path, ending: signal.Signals, code: int) -> None:
    with IndexServer(PACKAGES, faults={"transformers": "slow"}, seconds=20) as server:
        run = started(tmp_path, server.url, "--write")
        until = time.monotonic() + 120
        while not server.requests and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.2)
        os.killpg(run.pid, ending)
        out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (code, "")
    assert "Traceback" not in err
    assert (tmp_path / "requirements.txt").read_text() == LINES
    assert not [each for each in tmp_path.iterdir() if each.is_file() and each.name != "requirements.txt"]
    with IndexServer(PACKAGES) as server:
        assert planned(fix("--format", "json", url=server.url)) == PLAN


def test_two_runs_at_once_share_a_cache(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    runs = [started(tmp_path, index.url, "--format", "json") for _ in range(3)]
    answers = [run.communicate(timeout=300) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], answers
    assert len({out for out, _ in answers}) == 1
    assert fix(url=index.url).returncode == 0


def test_without_uv_the_plan_says_who_checked_it(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    blocked = tmp_path / "without"
    blocked.mkdir()
    (blocked / "uv.py").write_text("raise ImportError\n")
    done = fix(url=index.url, PYTHONPATH=f"{blocked}{os.pathsep}{ROOT}")
    assert done.returncode == 0
    assert "against the rules; uv was not found" in done.stdout


def test_a_lock_file_without_the_file_it_is_made_from_has_a_plan_all_the_same(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:
    packages = [("transformers", "4.51.3", "tokenizers"), ("tokenizers", "0.21.1", "")]
    text = 'version = 1\nrequires-python = ">=3.11"\n[[package]]\nname = "job"\nversion = "1"\nsource = { virtual = "." }\ndependencies = [{ name = "transformers" }]\n'
    for name, version, needed in packages:
        needs = f'dependencies = [{{ name = "{needed}" }}]\n' if needed else ""
        text += f'[[package]]\nname = "{name}"\nversion = "{version}"\nsource = {{ registry = "https://index.example/simple" }}\n{needs}'
    (tmp_path / "uv.lock").write_text(text)
    done = fix("--brief", url=index.url, subject=("uv.lock",))
    assert done.returncode == 0, done.stderr
    assert "transformers  4.51.3 → 4.57.1" in done.stdout
    assert "not written: uv.lock: is a lock file, which compat does not edit: expected pyproject.toml next to it" in done.stdout
    assert "lock      uv lock " in done.stdout
    assert '--upgrade-package "transformers==4.57.1"' in done.stdout
    asked = fix("--brief", "--write", url=index.url, subject=("uv.lock",))
    assert asked.returncode == 0, asked.stderr
    assert "is not next to it: the plan is only printed" in asked.stderr
    assert (tmp_path / "uv.lock").read_text() == text


# What a plan is made for, and what it may not do


def target_of(done: subprocess.CompletedProcess[str]) -> str:
    return "; ".join(json.loads(done.stdout)["plan"]["target"])


def test_the_python_is_the_newest_that_the_pins_have_wheels_for(fix: Run, tmp_path: Path) -> None:
    """Never the oldest that the file admits; what stands beside the file is believed first."""
    compiled = {"wheel_tags": ("cp311-cp311-manylinux_2_28_x86_64", "cp310-cp310-manylinux_2_28_x86_64")}
    packages = {**PACKAGES, "xformers": {"1.0": release("2025-01-01", **compiled)}}
    (tmp_path / "requirements.txt").write_text(f"{LINES}xformers==1.0\n")
    with IndexServer(packages) as server:
        inferred = fix("--format", "json", url=server.url, job=JOB[:-2])
        (tmp_path / ".python-version").write_text("3.10\n")
        stated = fix("--format", "json", url=server.url, job=JOB[:-2])
    assert target_of(inferred).startswith("Python 3.11 (the newest that the pins have wheels for)"), inferred.stderr
    assert target_of(stated).startswith("Python 3.10 (.python-version)")
    assert planned(inferred) == planned(stated) == PLAN


def test_where_nothing_tells_the_python_it_is_a_usual_one(fix: Run, index: IndexServer) -> None:
    done = fix(url=index.url, job=JOB[:-2])
    assert "target Python 3.12 (assumed); Linux x86_64 (assumed); glibc 2.35 (assumed); CUDA (A100)" in " ".join(
        done.stdout.split()
    )


def test_what_the_user_takes_from_a_repository_stays(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    lines = LINES.replace("accelerate==1.6.0", "accelerate @ git+https://git.example/accelerate@0b62b43")
    (tmp_path / "requirements.txt").write_text(lines)
    done = fix("--write", url=index.url)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = lines.replace("4.51.3", "4.57.1").replace("0.21.1", "0.22.1")
    assert (tmp_path / "requirements.txt").read_text() == expected


def test_a_plan_that_lowers_nothing_is_not_proposed(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """The only other accelerate has an error of its own: nothing is written, and the reason is printed."""
    old = RULE.format(
        name="old-accelerate", severity="error", packages='accelerate = "<1.11"', hit='accelerate = "1.6.0"',
        clear='accelerate = "1.11.0"', fix='[[rule.fix]]\nupgrade = { accelerate = ">=1.11" }',
    )  # fmt: skip
    new = RULE.format(
        name="new-accelerate", severity="error", packages='accelerate = ">=1.11"', hit='accelerate = "1.11.0"',
        clear='accelerate = "1.6.0"', fix='[[rule.fix]]\ndowngrade = { accelerate = "<1.11" }',
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("accelerate==1.6.0\ntorch==2.6.0\n")
    done = fix("--write", *own(tmp_path, old, new), url=index.url, job=CLEAN)
    assert done.returncode == 1, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == "accelerate==1.6.0\ntorch==2.6.0\n"
    assert "conflict with each other" in done.stdout or "No plan is proposed: " in done.stdout


def test_the_fix_that_a_rule_recommends_comes_before_a_smaller_change(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Moving trl alone would do; the rule says to move transformers, which takes tokenizers along."""
    pair = RULE.format(
        name="pair", severity="error", packages='transformers = "<4.57", trl = "<0.18"', fix="",
        hit='transformers = "4.51.3", trl = "0.17.0"', clear='transformers = "4.57.1", trl = "0.17.0"',
    )  # fmt: skip
    recommended = pair.replace("[[rule.example]]", '[[rule.fix]]\nupgrade = { transformers = ">=4.57" }\n[[rule.example]]', 1)
    other = pair.replace("[[rule.example]]", '[[rule.fix]]\nupgrade = { trl = ">=0.18" }\n[[rule.example]]', 1)
    assert planned(fix("--format", "json", *own(tmp_path, recommended), url=index.url, job=CLEAN)) == PLAN
    changed = planned(fix("--format", "json", *own(tmp_path, other), url=index.url, job=CLEAN))
    assert changed == {"trl": ("0.17.0", "0.18.0")}


def test_warnings_are_fixed_on_request(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    rule = RULE.format(
        name="slow", severity="warning", packages='trl = "<0.18"', hit='trl = "0.17.0"', clear='trl = "0.18.0"',
        fix='[[rule.fix]]\nupgrade = { trl = ">=0.18" }',
    )  # fmt: skip
    assert "Nothing to fix" in fix(*own(tmp_path, rule), url=index.url, job=CLEAN).stdout
    done = fix("--level", "warning", "--format", "json", *own(tmp_path, rule), url=index.url, job=CLEAN)
    assert planned(done) == {"trl": ("0.17.0", "0.18.0")}
    assert done.returncode == 0


def test_an_extension_is_compiled_again_when_torch_moves(fix: Run, tmp_path: Path) -> None:
    old = RULE.format(
        name="old-torch", severity="error", packages='torch = "<2.7"', hit='torch = "2.6.0"', clear='torch = "2.7.0"',
        fix='[[rule.fix]]\nupgrade = { torch = ">=2.7" }',
    )  # fmt: skip
    packages = {**PACKAGES, "flash-attn": {"2.7.4.post1": release("2025-01-29", "torch")}}
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\nflash-attn==2.7.4.post1\n")
    with IndexServer(packages) as server:
        done = fix(*own(tmp_path, old), url=server.url, job=CLEAN)
        plan = json.loads(fix("--format", "json", *own(tmp_path, old), url=server.url, job=CLEAN).stdout)["plan"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rebuild   flash-attn 2.7.4.post1: it is compiled against torch 2.6.0" in done.stdout
    again = (
        'uv pip install --no-build-isolation --reinstall-package flash-attn --no-binary flash-attn "flash-attn==2.7.4.post1"'
    )
    again = f'TORCH_CUDA_ARCH_LIST="8.0" {again}'
    assert plan["commands"] == ["uv pip install -r requirements.txt", again]
    assert [each["name"] for each in plan["changes"]] == ["torch"]
    assert plan["actions"] == [
        {
            "kind": "source-install",
            "text": "rebuild flash-attn 2.7.4.post1: it is compiled against torch 2.6.0",
            "command": None,
        }
    ]


def test_of_releases_that_fix_an_error_one_without_a_warning_is_taken(fix: Run, tmp_path: Path) -> None:
    """The warning is there before, and alone it is no reason to move; what moves anyway heeds it."""
    warning = RULE.format(
        name="accelerate-wants-trl-0-19", severity="warning", packages='accelerate = "*", trl = "!=0.19.0"',
        hit='accelerate = "1.6.0", trl = "0.18.0"', clear='accelerate = "1.6.0", trl = "0.19.0"',
        fix='[[rule.fix]]\npin = { trl = "==0.19.0" }',
    )  # fmt: skip
    trl = {f"0.{minor}.0": release(f"2025-0{minor - 13}-25") for minor in (17, 18, 19)}
    (tmp_path / "requirements.txt").write_text("trl==0.17.0\naccelerate==1.6.0\n")
    with IndexServer({**PACKAGES, "trl": trl}) as server:
        done = fix("--write", *own(tmp_path, BAD_TRL + warning), url=server.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == "trl==0.19.0\naccelerate==1.6.0\n"


# Indexes that only some packages come from, and packages that only a build could tell about

OWN_INDEX = """\
[project]
name = "job"
version = "1"
requires-python = "==3.11.*"
dependencies = ["torch==2.6.0", "transformers==4.51.3", "trl==0.17.0", "accelerate==1.6.0", "old>=1"]

[tool.uv.sources]
torch = { index = "vendor" }

[[tool.uv.index]]
name = "vendor"
url = "http://127.0.0.1:9/simple"
explicit = true
"""


def test_an_index_of_the_project_that_is_down_is_no_contradiction(fix: Run, tmp_path: Path) -> None:
    """Started from another folder: the project's own configuration counts, and the ordinary index has the release."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "pyproject.toml").write_text(OWN_INDEX)
    built = {"old": {"1.0": release("2020-01-01", wheel=False, dynamic=True)}}
    with IndexServer({**PACKAGES, **built}) as server:
        done = fix("--format", "json", url=server.url, subject=("job/pyproject.toml",))
    plan = json.loads(done.stdout)["plan"]
    assert done.returncode == 0, done.stderr
    assert planned(done)["transformers"] == PLAN["transformers"]
    assert plan["core"] is None
    assert plan["verified"]["uv"] is True
    assert any("old: no wheel" in note for note in json.loads(done.stdout)["notes"])


def test_what_moves_to_the_ordinary_index_leaves_the_one_that_is_down(fix: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(OWN_INDEX.replace(', "old>=1"', ""))
    with IndexServer(PACKAGES) as server:
        done = fix("--write", "--keep", "torch==2.7.0", url=server.url, subject=("pyproject.toml",))
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "pyproject.toml").read_text()
    assert '"torch==2.7.0"' in written
    assert 'torch = { index = "vendor" }' not in written


CONFLICTING = """\
[project]
name = "job"
version = "1"
requires-python = "==3.11.*"
dependencies = ["torch==2.6.0"]

[project.optional-dependencies]
one = ["accelerate==1.6.0"]
two = ["trl==0.17.0", "transformers==4.55.0"]

[tool.uv]
conflicts = [[{ extra = "one" }, { extra = "two" }]]
"""


def bad(name: str, version: str, good: str) -> str:
    return RULE.format(
        name=f"bad-{name}", severity="error", packages=f'{name} = "<{good}"', hit=f'{name} = "{version}"',
        clear=f'{name} = "{good}"', fix=f'[[rule.fix]]\nupgrade = {{ {name} = ">={good}" }}',
    )  # fmt: skip


def test_one_plan_fixes_every_selection(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Two extras that cannot be installed together, each with an error of its own."""
    (tmp_path / "pyproject.toml").write_text(CONFLICTING)
    rules = own(tmp_path, bad("accelerate", "1.6.0", "1.11.0"), bad("trl", "0.17.0", "0.18.0"))
    options = {"url": index.url, "job": CLEAN, "subject": ("pyproject.toml",)}
    done = fix("--write", "--format", "json", *rules, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert planned(done) == {"accelerate": ("1.6.0", "1.11.0"), "trl": ("0.17.0", "0.18.0")}
    assert {each["rule"] for each in json.loads(done.stdout)["findings"]} == {"bad-accelerate", "bad-trl"}
    assert [each["reasons"] for each in json.loads(done.stdout)["plan"]["changes"]] == [
        ["bad-accelerate (bad-accelerate)"], ["bad-trl (bad-trl)"],
    ]  # fmt: skip
    expected = CONFLICTING.replace("accelerate==1.6.0", "accelerate==1.11.0").replace("trl==0.17.0", "trl==0.18.0")
    assert (tmp_path / "pyproject.toml").read_text() == expected
    assert "Nothing to fix" in fix(*rules, **options).stdout


def test_what_one_selection_needs_and_cannot_have_is_left(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(CONFLICTING)
    rules = own(tmp_path, bad("accelerate", "1.6.0", "1.11.0"), bad("trl", "0.17.0", "9"))
    done = fix("--format", "json", *rules, url=index.url, job=CLEAN, subject=("pyproject.toml",))
    plan = json.loads(done.stdout)["plan"]
    assert done.returncode == 1, done.stdout + done.stderr
    assert planned(done) == {"accelerate": ("1.6.0", "1.11.0")}
    assert plan["left"] == ["bad-trl"]


UNSLOTH = {
    "unsloth": {
        "2025.2.12": release("2025-02-10"), "2025.2.14": release("2025-02-15"), "2025.2.15": release("2025-02-20"),
        "2025.3.1": release("2025-03-03"),
    },
    "unsloth-zoo": {"2025.2.7": release("2025-02-15"), "2025.3.6": release("2025-03-07")},
    "trl": {"0.15.2": release("2025-02-25")},
}  # fmt: skip
MISTRAL = ("--task", "grpo", "--model", "mistral", "--gpu", "A100:1", "--python-version", "3.11")
COMMIT = "455517aae97fc152aa59aae3e328c22c25a89151"


def test_a_commit_that_a_rule_recommends_is_the_fix_where_no_release_is(fix: Run, tmp_path: Path) -> None:
    """It is pure Python: nothing is compiled for a GPU, and the build is isolated."""
    (tmp_path / "requirements.txt").write_text("unsloth==2025.2.14\nunsloth-zoo==2025.2.7\ntrl==0.15.2\n")
    with IndexServer(UNSLOTH) as server:
        releases = fix("--format", "json", url=server.url, job=MISTRAL)
        kept = ("--keep", "unsloth>=2025.2.14,<2025.3")
        commit = fix("--format", "json", *kept, url=server.url, job=MISTRAL)
        asked = fix("--format", "json", "--allow-source", *kept, url=server.url, job=MISTRAL)
    assert planned(releases)["unsloth"] == ("2025.2.14", "2025.3.1"), releases.stderr
    for done in (commit, asked):
        plan = json.loads(done.stdout)["plan"]
        (change,) = plan["changes"]
        assert (change["name"], change["to"], change["commit"]) == ("unsloth", "2025.2.15", COMMIT), done.stderr
        assert plan["left"] == []
        assert plan["cost"] == {"changed": 1, "source": 1, "steps": plan["cost"]["steps"]}
        assert "TORCH_CUDA_ARCH_LIST" not in " ".join(plan["commands"])
        assert "no-build-isolation" not in " ".join(plan["commands"])
