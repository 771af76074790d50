"""``compat script``, ``compat surface`` and ``--script``, as they are run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.checks.interfaces import open_rows_once

Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.skipif(open_rows_once() is None, reason="the tables are not there: scripts/build_matrix.py")
ORPO = """from trl import ORPOConfig, ORPOTrainer
from trl.trainer.utils import SIMPLE_CHAT_TEMPLATE

ORPOTrainer("model", args=ORPOConfig(), tokenizer=SIMPLE_CHAT_TEMPLATE)
"""
LOCK = "trl==0.16.0\ntransformers==4.50.0\naccelerate==1.6.0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orpo.py").write_text(ORPO, encoding="utf-8")
    (tmp_path / "old.py").write_text("import trl\nprint 'x'\n", encoding="utf-8")
    (tmp_path / "requirements.txt").write_text(LOCK, encoding="utf-8")
    return tmp_path


def test_the_releases_of_a_script(compat: Run, folder: Path) -> None:
    done = compat("script", "orpo.py", "--format", "json", cwd=folder)
    told = json.loads(done.stdout)
    (trl,) = told["packages"]
    assert (done.returncode, told["schema"]) == (0, "compat/script/1")
    assert (trl["name"], trl["specifier"]) == ("trl", ">=0.11.0,<=0.14.0,!=0.12.0")
    assert trl["below"]["reasons"][0]["place"] == "orpo.py:2"
    assert trl["above"]["reasons"][0]["renamed"] == "processing_class"


def test_text_says_which_line_decides(compat: Run, folder: Path) -> None:
    done = compat("script", "orpo.py", cwd=folder)
    assert "trl  0.11.0 – 0.14.0" in done.stdout
    assert "orpo.py:4 trl.ORPOTrainer(tokenizer=): renamed processing_class in 0.15.0" in " ".join(done.stdout.split())


def test_a_file_that_cannot_be_read_is_one_line_and_the_others_are_judged(compat: Run, folder: Path) -> None:
    done = compat("script", "old.py", "orpo.py", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("compat: old.py:2: is not Python 3.")
    assert done.stderr.count("\n") == 1
    assert "0.11.0 – 0.14.0" in done.stdout


@pytest.mark.parametrize(
    "words", [("script",), ("script", "nothing.py"), ("surface", "trl==0.16.0"), ("surface", "trl", "peft==0.15.0")]
)
def test_what_cannot_be_used_is_one_line(compat: Run, folder: Path, words: tuple[str, ...]) -> None:
    done = compat(*words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_code_against_a_file(compat: Run, folder: Path) -> None:
    done = compat("check", "--script", "orpo.py", "requirements.txt", "--format", "json", cwd=folder)
    found = [each for each in json.loads(done.stdout)["findings"] if each["origin"] == "surface"]
    assert done.returncode == 1
    assert [each["rule"] for each in found] == ["surface-trl-ORPOTrainer-tokenizer"]
    assert found[0]["location"] == {"file": "orpo.py", "line": 4}
    assert [fix["spec"] for fix in found[0]["fixes"]] == [None, "==0.14.0"]


def test_the_finding_is_gone_at_its_fix(compat: Run, folder: Path) -> None:
    (folder / "requirements.txt").write_text(LOCK.replace("0.16.0", "0.14.0"), encoding="utf-8")
    done = compat("check", "--script", "orpo.py", "requirements.txt", "--format", "json", cwd=folder)
    assert not [each for each in json.loads(done.stdout)["findings"] if each["origin"] == "surface"]


def test_unreadable_code_makes_a_check_unusable(compat: Run, folder: Path) -> None:
    done = compat("check", "--script", "old.py", "requirements.txt", cwd=folder)
    assert done.returncode == 2
    assert "old.py:2: is not Python" in done.stderr


def test_what_breaks_between_releases(compat: Run, folder: Path) -> None:
    done = compat("surface", "peft==0.15.0", "accelerate==0.26.0", cwd=folder)
    assert done.returncode == 1
    assert "peft 0.15.0 peft/utils/loftq_utils.py:25" in " ".join(done.stdout.split())
    assert "accelerate/utils/memory.py:29" in done.stdout
    assert compat("surface", "peft==0.15.0", "accelerate==0.32.0", cwd=folder).returncode == 0
    unknown = compat("surface", "peft==0.15.0", "accelerate==99.0", cwd=folder)
    assert (unknown.returncode, "is not in the table" in unknown.stderr) == (3, True)


def test_a_source_install_is_read_on_the_spot(compat: Run, folder: Path) -> None:
    site = folder / "site"
    (site / "trl").mkdir(parents=True)
    (site / "trl" / "__init__.py").write_text(
        "from accelerate.utils.memory import clear_device_cache\nclass ORPOTrainer:\n    def __init__(self, processing_class): pass\n",
        encoding="utf-8",
    )
    for name, version in (("trl", "0.16.0.dev0"), ("accelerate", "0.26.0")):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
        (info / "RECORD").write_text("", encoding="utf-8")
    url = '{"url": "https://example.org/trl", "vcs_info": {"vcs": "git", "commit_id": "abc"}}'
    (site / "trl-0.16.0.dev0.dist-info" / "direct_url.json").write_text(url, encoding="utf-8")
    words = ("check", "--installed", "--python", "site", "--script", "orpo.py", "--format", "json")
    found = {
        each["rule"]: each for each in json.loads(compat(*words, cwd=folder).stdout)["findings"] if each["origin"] == "surface"
    }
    assert "surface-trl-ORPOTrainer-tokenizer" in found
    assert "trl/__init__.py:1" in found["surface-trl-accelerate"]["why"]
