"""What the documents show is what the command prints."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.api.commands import COMMANDS
from compat.formats.registry import FORMATS
from compat.probe.request import NAMES
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
    help_text = compat(command.name, "--help").stdout.rstrip()  # type: ignore[attr-defined]
    assert shown == help_text, "python -m scripts.golden --quick --record copies it"


def test_the_help_of_format_names_every_format() -> None:
    for command in COMMANDS:
        for option in command.options:
            if option.name == "format":
                assert [each for each in option.choices if each not in f"{option.help} {option.metavar}"] == [], command.name


def test_the_page_of_probes_names_every_group() -> None:
    page = (ROOT / "docs" / "probes.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if name not in page] == []


def test_the_page_of_check_names_every_lock_file() -> None:
    page = (ROOT / "docs" / "commands" / "check.md").read_text(encoding="utf-8")
    assert [row.kind for row in FORMATS if row.is_lock and f"`{row.kind.split('.')[0]}" not in page] == []


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


# --- Modules that texts name: they move and merge, and a text that names an old one misleads.

_TEXTS = (".md", ".py", ".toml", ".yml", "Makefile")
_PATH = re.compile(r"(?<![\w/.-])(?:compat|scripts|tests|benchmarks)/(?:[\w*]+/)*(?:[\w*]+\.py|(?=[^\w*<{$]))")
_DOTTED = re.compile(r"`~?((?:compat|scripts|tests|benchmarks)(?:\.\w+)+)(?:\(\))?`")
_SIBLING = re.compile(r":mod:`(\w+)`")
_BARE = re.compile(r"`((?:\w+/)*\w+\.py)`")


def _tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _names_something(dotted: str) -> bool:
    """Whether a dotted name is a module, a package, or a name that occurs in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if source.is_file() or place.is_dir():
            rest = parts[length : length + 1]
            return not rest or (
                source.is_file() and re.search(rf"\b{rest[0]}\b", source.read_text(encoding="utf-8")) is not None
            )
    return False


def test_modules_that_texts_name_exist() -> None:
    tracked = _tracked()
    stale = []
    for name in tracked:
        if not name.endswith(_TEXTS) or name == "CHANGELOG.md" or name.startswith("tests/golden/"):
            continue
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            missing = [each for each in _PATH.findall(line) if not any(ROOT.glob(each.rstrip("/")))]
            missing += [each for each in _DOTTED.findall(line) if not _names_something(each)]
            missing += [
                each
                for each in _SIBLING.findall(line)
                if each not in sys.stdlib_module_names and not any((ROOT / name).parent.glob(f"{each}*"))
            ]
            if name in (
                "CONTRIBUTING.md",
                "docs/architecture.md",
                "docs/probes.md",
            ):  # they also name modules by the end of their paths
                missing += [each for each in _BARE.findall(line) if not any(f"/{one}".endswith(f"/{each}") for one in tracked)]
            stale += [f"{name}:{number}: {each}" for each in missing if each != "setup.py"]
    assert not stale, "\n".join(stale)
