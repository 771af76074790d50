"""``compat fix`` as people call it: a real process, real files and a package index on this machine; what is planned and written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.fixing import (
    JOB,
    LINES,
    PACKAGES,
    PLAN,
    REPORT,
    Run,
    Write,
    planned,
    release,
)
from tests.index.server import IndexServer

pytest.importorskip("clingo")

DATAPARALLEL, ACCURACY = "transformers-dataparallel-drops-data", "trl-sft-dataparallel-accuracy"


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
        "private-kernels": {"0.16.0": release("2025-04-01", "torch", wheel=False, dynamic=True)},
        "static": {"1.0": release("2025-04-01", "tokenizers>=0.20", wheel=False)},
    }
    (tmp_path / "requirements.txt").write_text(f"{LINES}private-kernels==0.16.0\nstatic==1.0\n")
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
