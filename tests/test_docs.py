"""What the documents show is what the command prints."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.api.commands import COMMANDS
from tests.conftest import ROOT

_INDEXES = (("py" + "pi", "org"), ("python" + "hosted", "org"), ("npm" + "js", "org"), ("deb" + "ian", "org"))
Run = Callable[..., "subprocess.CompletedProcess[str]"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_transcript_in_the_readme_is_real(compat: Run) -> None:
    block = README.split("    $ compat check --environment docs/examples/trainer.json\n")[1].split("\n    $ echo $?\n")[0]
    shown = "\n".join(line[4:] for line in block.splitlines())
    done = compat("check", "--environment", "docs/examples/trainer.json", cwd=ROOT)
    assert done.stdout.rstrip() == shown
    assert README.split("    $ echo $?\n")[1].split()[0] == str(done.returncode)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_a_page_with_its_help(compat: Run, command: object) -> None:
    page = (ROOT / "docs" / "commands" / f"{command.name}.md").read_text(encoding="utf-8")  # type: ignore[attr-defined]
    shown = "usage: " + page.split("```\nusage: ")[1].split("\n```")[0]
    assert shown == compat(command.name, "--help").stdout.rstrip()  # type: ignore[attr-defined]


def test_links_between_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document}: {target}"


def test_nothing_names_the_host_of_an_index() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split("\n")
    # in pieces, so that this file does not name them either
    hosts = [".".join(parts) for parts in _INDEXES]
    for name in filter(None, tracked):
        path = Path(ROOT / name)
        if path.suffix in (".py", ".md", ".toml", ".csv", ".json", ".txt", "") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace").lower()
            assert not [host for host in hosts if host in text], name
