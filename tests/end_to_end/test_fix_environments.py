"""``compat fix`` of files that describe several environments, each of which is planned for."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat import fix as fix_of
from tests.end_to_end.fixing import PACKAGES, REPORT, RULE, own
from tests.index.server import IndexServer

pytest.importorskip("clingo")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TARGET = ("--gpu", "A100:1", "--python-version", "3.11", "--torch-index", "http://127.0.0.1:9")
JOB = "  {}:\n    runs-on: gpu\n    steps:\n      - run: pip install {}\n"
BAD = "transformers==4.51.3 tokenizers==0.22.1"
GOOD = "transformers==4.51.3 tokenizers==0.21.1"


def workflow(folder: Path, *jobs: str) -> Path:
    path = folder / ".github" / "workflows" / "test.yml"
    path.parent.mkdir(parents=True)
    text = "".join(JOB.format(name, words) for name, words in zip("abc", jobs))
    path.write_text(f"name: test\non: push\njobs:\n{text}", encoding="utf-8")
    return path


def fix(compat: Run, path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    with IndexServer(PACKAGES) as server:
        return compat("fix", str(path), *TARGET, "--index-url", server.url, *words)


def test_each_environment_has_its_plan_and_all_edits_are_written(compat: Run, tmp_path: Path) -> None:
    path = workflow(tmp_path, BAD, "accelerate==1.6.0", "trl==0.24.0 transformers==4.51.3 accelerate==1.6.0")
    done = fix(compat, path, "--write")
    assert done.returncode == 0, done.stdout + done.stderr
    first, _, rest = done.stdout.partition("job b:\n")
    second, _, third = rest.partition("job c:\n")
    assert first.startswith("job a:\n")
    assert "fixes 1 error" in first
    assert "Nothing to fix" in second
    assert "fixes 1 error" in third
    assert done.stdout.count("+++ ") == 1  # one difference of the whole file
    text = path.read_text(encoding="utf-8")
    assert BAD not in text
    assert "accelerate==1.6.0\n" in text
    again = compat("check", str(path), *TARGET[:4])
    assert again.returncode == 0, again.stdout


def test_the_plans_as_json(compat: Run, tmp_path: Path) -> None:
    path = workflow(tmp_path, GOOD, BAD)
    done = fix(compat, path, "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert not list(REPORT.iter_errors(report))
    assert [(each["name"], len(each["changes"])) for each in report["plans"]] == [("job a", 0), ("job b", 1)]
    assert report["plan"]["changes"] == report["plans"][1]["changes"]
    assert [each["selections"] for each in report["findings"]] == [["job b"]]
    assert [each["name"] for each in report["parts"]] == ["job a", "job b"]


def test_only_the_lines_of_an_environment_are_edited_for_it(compat: Run, tmp_path: Path) -> None:
    path = workflow(tmp_path, GOOD, "trl==0.24.0 transformers==4.51.3 accelerate==1.11.0")
    done = fix(compat, path, "--write")
    assert done.returncode == 0, done.stdout + done.stderr
    text = path.read_text(encoding="utf-8")
    assert GOOD in text
    assert "transformers==4.57.1" in text
    assert compat("check", str(path), *TARGET[:4]).returncode == 0


def test_what_environments_share_is_judged_for_each(compat: Run, tmp_path: Path) -> None:
    """A list that two targets install is edited for one, and the other is planned for again."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    common = project / "common.txt"
    common.write_text("transformers==4.51.3\n", encoding="utf-8")
    path = project / "Makefile"
    text = "a:\n\tpip install -r common.txt tokenizers==0.21.1\nb:\n\tpip install -r common.txt trl==0.17.0 accelerate==1.6.0\n"
    path.write_text(text, encoding="utf-8")
    rule = RULE.format(
        name="old-for-trl", severity="error", packages='transformers = "<4.57", trl = "*"',
        hit='transformers = "4.51.3", trl = "0.17.0"', clear='transformers = "4.57.1", trl = "0.17.0"',
        fix='[[rule.fix]]\nupgrade = { transformers = ">=4.57" }',
    )  # fmt: skip
    done = fix(compat, path, "--write", *own(tmp_path, rule))
    assert done.returncode == 0, done.stdout + done.stderr
    assert common.read_text(encoding="utf-8") == "transformers==4.57.1\n"
    assert "tokenizers==0.22" in path.read_text(encoding="utf-8")
    assert compat("check", str(path), *TARGET[:4]).returncode == 0


def test_what_cannot_be_fixed_in_one_environment_is_left_in_the_whole(compat: Run, tmp_path: Path) -> None:
    """The first job has no plan, since nothing but these releases of transformers and tokenizers is allowed to move."""
    path = workflow(tmp_path, "bad==1.0", BAD)
    rule = RULE.format(name="never-good", severity="error", packages='bad = "*"', hit='bad = "1.0"', clear='other = "1.0"', fix=(
        '[[rule.fix]]\nconfig = "x"\ntext = "do without it"'))  # fmt: skip
    with IndexServer({**PACKAGES, "bad": {"1.0": {"uploaded": "2025-01-01T00:00:00Z"}}}) as server:
        words = (str(path), *TARGET, "--index-url", server.url, *own(tmp_path, rule), "--format", "json")
        done = compat("fix", *words)
    assert done.returncode in (1, 3), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert [len(each["changes"]) for each in report["plans"]] == [0, 1]
    assert len(report["plan"]["changes"]) == 1
    assert report["plan"]["left"] == ["never-good"]


def test_the_library_call_has_the_changes_of_all(compat: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workflow(tmp_path, BAD, GOOD, BAD)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    with IndexServer(PACKAGES) as server:
        plan = fix_of(str(path), gpu="A100:1", python_version="3.11", index_url=server.url, torch_index="http://127.0.0.1:9")
    assert plan.stands
    assert not plan.left
    assert len(plan.changes) == 1


def test_a_page_is_about_one_environment(compat: Run, tmp_path: Path) -> None:
    done = fix(compat, workflow(tmp_path, GOOD, BAD), "--format", "html")
    assert (done.returncode, done.stdout) == (2, "")
    assert "expected a file with one environment" in done.stderr
