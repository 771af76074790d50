"""The site in a real Chromium (``make test-site``): what is pasted gives the report of the command line, and goes nowhere."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.conftest import ROOT

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SITE = Path(os.environ.get("COMPAT_SITE", ROOT / "dist" / "site"))
PLAYWRIGHT = ROOT / "dist" / "browser"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SHEET = 980
"""Pixels across a Letter sheet without its margins; A4 has more."""
SEEDS, TEXTS = ROOT / "tests" / "fuzz" / "seeds", ROOT / "tests" / "golden" / "inputs" / "diagnose"
pytestmark = pytest.mark.skipif(
    "COMPAT_SITE" not in os.environ or not CHROMIUM or not shutil.which("node") or not (PLAYWRIGHT / "node_modules").is_dir(),
    reason="needs node, Chromium and a built site: make test-site",
)


@dataclass(frozen=True)
class Pasted:
    """A text, what it is to be read as ("" for what it looks like), and what is chosen."""

    text: str
    name: str = ""
    options: dict[str, str] = field(default_factory=dict)


def seed(path: str) -> str:
    return (SEEDS / path).read_text(encoding="utf-8")


def text(name: str) -> str:
    return (TEXTS / name).read_text(encoding="utf-8")


BROKEN = "torch==2.6.0\ntorchvision==0.20.1\ntransformers==4.55.0\ntokenizers==0.20.0\n"
INPUTS = (
    Pasted(BROKEN, "requirements.txt"),
    Pasted(BROKEN),
    Pasted("trl==0.14.0\nvllm==0.7.1\ntorch==2.5.1\n", options={"gpu": "A100:2", "task": "grpo", "launcher": "accelerate"}),
    Pasted(
        "torch==2.5.1\nflash-attn==2.7.4\n",
        "requirements.txt",
        {"gpu": "RTX 5090", "driver": "570.86.15", "python-version": "3.11"},
    ),
    Pasted("vllm==0.7.1\n", "requirements.txt", {"gpu": "a GPU that is none"}),
    Pasted(seed("uv/forks.txt"), "uv.lock"),
    Pasted(seed("uv/conflicts.txt")),
    Pasted(seed("poetry/groups.txt"), "poetry.lock"),
    Pasted(seed("pdm/targets.txt"), "pdm.lock"),
    Pasted(seed("pylock/uv.txt"), "pylock.toml"),
    Pasted(seed("pixi/v6.txt"), "pixi.lock"),
    Pasted(seed("pyproject/uv.txt"), "pyproject.toml"),
    Pasted(seed("conda/environment.txt"), "environment.yml", {"gpu": "T4"}),
    Pasted(seed("dockerfile/stages.txt"), "Dockerfile"),
    Pasted(seed("compose/services.txt"), "compose.yaml"),
    Pasted(seed("shell/setup.txt"), "install.sh"),
    Pasted(seed("notebook/installs.txt"), "notebook.ipynb"),
    Pasted(seed("described/full.txt")),
    Pasted(seed("pasted/collect_env.txt")),
    Pasted(seed("pasted/mixed.txt"), options={"task": "sft"}),
    Pasted(seed("log/vllm.txt")),
    Pasted(text("issue.md")),
    Pasted(text("machine.txt")),
    Pasted(text("traceback.txt")),
    Pasted(text("no-kernel.txt"), options={"gpu": "RTX 5090"}),
    Pasted(text("undefined-symbol.txt")),
    Pasted(text("harmless.txt")),
    Pasted("RuntimeError: Dataset scripts are no longer supported, but found superb.py\n"),
    Pasted("ValueError: <script>alert(1)</script> <img src=x onerror=alert(1)> https://bob:hunter2secret@index.example/\n"),
    Pasted("not = a [lock", "uv.lock"),
)


class Quiet(SimpleHTTPRequestHandler):
    extensions_map: ClassVar = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *_: Any) -> None:
        pass


class Foreign(SimpleHTTPRequestHandler):
    """Another origin that lets everybody in, and counts who comes."""

    came: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.came.append(self.path)
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    """Everything that was done in one Chromium."""
    servers = [
        ThreadingHTTPServer(("127.0.0.1", 0), handler)
        for handler in (functools.partial(Quiet, directory=str(SITE.parent)), Foreign)
    ]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    base, foreign = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    paths = ("index.html", "check.html", "gpus.html", "pairs/trl-vllm.html", "rules/index.html", "packages/vllm.html")
    asked = {
        "playwright": str(PLAYWRIGHT), "chromium": CHROMIUM, "base": f"{base}/{SITE.name}/", "foreign": f"{foreign}/stolen",
        "checks": [vars(each) for each in INPUTS],
        "blocked": [*paths, "rules/trl-grpo-vllm-below-0-7-2.html"],
        "searches": [{"path": "rules/index.html", "search": "grpo vllm"}],
        "files": [SITE.joinpath("rules/index.html").resolve().as_uri()],
        "printed": {"pairs/vllm-transformers.html": SHEET, "gpus.html": SHEET},
        "screenshots": [{"path": path, "width": width, "dark": width < 500} for path in paths for width in (1100, 390)],
    }  # fmt: skip
    command = ["node", str(ROOT / "tests" / "site" / "browse.mjs")]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    for server in servers:
        server.shutdown()
    assert done.returncode == 0, done.stderr[-2000:]
    return {**json.loads(done.stdout), "base": base}


@pytest.mark.parametrize("number", range(len(INPUTS)))
def test_the_page_gives_the_report_of_the_command(seen: dict[str, Any], compat: Run, tmp_path: Path, number: int) -> None:
    pasted, answer = INPUTS[number], seen["answers"][number]
    assert answer["status"].startswith("Done")
    words = shlex.split(answer["command"])[1:]
    folder = tmp_path / "project"  # the home directory of these tests is no project
    folder.mkdir()
    (folder / (pasted.name or "pasted")).write_text(pasted.text, encoding="utf-8")
    done = compat(*words, "--format", "html", cwd=folder)
    assert answer["exit"] == done.returncode
    assert answer["page"].rstrip("\n") == done.stdout.rstrip("\n")
    assert answer["errors"].rstrip("\n") == done.stderr.rstrip("\n")
    assert "hunter2secret" not in answer["shown"]
    assert answer["focus"] == "go", "whoever checks with the keyboard starts again at the top of the page"


def test_what_is_pasted_is_read_as_what_it_is(seen: dict[str, Any]) -> None:
    commands = {pasted.text: answer["command"] for pasted, answer in zip(INPUTS, seen["answers"])}
    assert commands[BROKEN] == "compat check --pasted pasted"
    assert commands[text("traceback.txt")] == "compat diagnose pasted"
    assert commands[seed("described/full.txt")] == "compat check pasted"
    assert commands[seed("uv/conflicts.txt")] == "compat check pasted"


def test_nothing_is_asked_of_another_origin(seen: dict[str, Any]) -> None:
    elsewhere = [
        address for address in seen["requests"] if not address.startswith((seen["base"], f"blob:{seen['base']}", "file:"))
    ]
    assert [address for address in elsewhere if not address.endswith("/stolen")] == []
    assert seen["blocked"] == {"page": "blocked: Failed to fetch", "worker": "blocked: Failed to fetch"}
    assert Foreign.came == []
    assert seen["before"] == [], "a page broke its own policy, or a script failed"


def test_a_permalink_brings_the_same_report(seen: dict[str, Any]) -> None:
    assert seen["again"]["shown"] == seen["answers"][-1]["shown"]


def test_the_search_finds_rules_offline_and_from_a_file(seen: dict[str, Any]) -> None:
    assert len(seen["found"]) == 2
    for found in seen["found"]:
        assert any("rules/trl-grpo-vllm-below-0-7-2.html" in address for _, address in found)


def test_without_scripts_only_the_check_is_missing(seen: dict[str, Any]) -> None:
    said = seen["silent"]
    assert "This page needs scripts" in said["check.html"]
    assert not any("needs scripts" in text for path, text in said.items() if path != "check.html")
    assert "torch for ROCm ↓ AMD GPU →" in said["gpus.html"]
    assert "GRPO with vLLM 0.8 and trl below 0.16" in said["pairs/trl-vllm.html"]
    assert "GRPO with vLLM 0.7.0 or 0.7.1" in said["rules/index.html"]
    assert "fix" in said["rules/trl-grpo-vllm-below-0-7-2.html"]


def test_axe_finds_nothing_that_keeps_people_out(seen: dict[str, Any]) -> None:
    assert seen["violations"] == []


def test_a_table_fits_on_a_sheet(seen: dict[str, Any]) -> None:
    assert {path: each["wide"] for path, each in seen["printed"].items()} == dict.fromkeys(seen["printed"], SHEET)
    assert all(float(each["across"]) > float(each["down"]) for each in seen["printed"].values()), "not across"


def test_no_page_is_wider_than_the_screen(seen: dict[str, Any]) -> None:
    assert [each for each in seen["wide"] if each[2] > each[1]] == []
