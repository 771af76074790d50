"""``compat fix`` and what goes wrong: indexes, caches, interruptions, and what it cannot write."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.end_to_end.fixing import (
    JOB,
    LINES,
    PACKAGES,
    PLAN,
    REPORT,
    Run,
    planned,
    release,
    started,
    undecided,
)
from tests.index.server import IndexServer

pytest.importorskip("clingo")


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
    """The package that would have to move with the other one. The target and the error are shown all the same."""
    index.faults["tokenizers"] = "500"
    done = fix(url=index.url)
    undecided(done)
    assert "  target    Python 3.11;" in done.stdout
    assert "  ✗ " in done.stdout
    assert "No plan was found, but one may exist" in done.stdout


def test_an_unread_page_that_does_not_matter_is_told(fix: Run, index: IndexServer) -> None:
    index.faults["accelerate"] = "500"
    done = fix(url=index.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No smaller change fixes them." in done.stdout  # whatever its releases require
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


def test_a_plan_is_made_without_standard_error(index: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(LINES)
    words = shlex.join([sys.executable, "-m", "compat", "fix", "requirements.txt", *JOB, "--index-url", index.url])
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-c", f"{words} 2>&-"], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "transformers" in done.stdout


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


def test_what_a_file_lists_is_not_removed_because_another_page_cannot_be_read(fix: Run, tmp_path: Path) -> None:
    """One of the ways to end the error is to remove vllm; the file lists it, and the way that keeps it could not be looked up."""
    (tmp_path / "requirements.txt").write_text("trl==0.25.1\nvllm==0.12.0\n")
    packages = {
        "trl": {"0.25.1": release("2025-11-12"), "0.27.0": release("2026-01-16")},
        "vllm": {"0.12.0": release("2025-12-03")},
    }
    with IndexServer(packages) as server:
        server.faults["trl"] = "500"
        undecided(fix(url=server.url, job=("--gpu", "H100", "--task", "grpo")))
        del server.faults["trl"]
        done = fix("--write", url=server.url, job=("--gpu", "H100", "--task", "grpo"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == "trl==0.27.0\nvllm==0.12.0\n"
