"""Files of ours that installers refuse, or that a change of one line breaks: what ``fix --write`` leaves is what uv says of it.

Each has its own small index. If a plan is written, ``uv pip compile`` resolves the file to what the plan states; if the answer is
that there is none, uv refuses the file as well.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.end_to_end.fixing import Run, release
from tests.index.server import IndexServer

pytest.importorskip("clingo")
uv = pytest.importorskip("uv")

JOB = ("--python-version", "3.11", "--os", "linux", "--machine", "x86_64", "--glibc", "2.35")
DAY = "2025-01-01"


def of(*requires: str, **more: object) -> dict[str, object]:
    return {**release(DAY, *requires), **more}


class Broken(NamedTuple):
    """A file, the releases of its index, the file as it is written (``None``: no plan), and other files.

    ``{more}`` stands for the address of a second index, with the releases ``more``.
    """

    name: str
    text: str
    packages: Mapping[str, Mapping[str, Mapping[str, object]]]
    after: str | None
    others: Mapping[str, str] = {}
    more: Mapping[str, Mapping[str, Mapping[str, object]]] = {}


A = {"1.0": of(), "1.5": of(), "2.0": of()}
SCENARIOS = (
    Broken(
        "a marker chooses one of two pins",
        "a==1.0 ; python_version < '3.12'\na==2.0 ; python_version >= '3.12'\nb==1.0\n",
        {"a": A, "b": {"1.0": of("a>=1.5")}},
        "a==1.5 ; python_version < '3.12'\na==2.0 ; python_version >= '3.12'\nb==1.0\n",
    ),
    Broken(
        "a marker excludes the contradiction", "a==1.0\nb==1.0 ; sys_platform == 'win32'\n",
        {"a": A, "b": {"1.0": of("a>=2")}}, "a==1.0\nb==1.0 ; sys_platform == 'win32'\n",
    ),
    Broken(
        "an extra requires more", "a==1.0\nb[fast]==1.0\n", {"a": A, "b": {"1.0": of(extras={"fast": ["a>=2"]})}},
        "a==2.0\nb[fast]==1.0\n",
    ),
    Broken(
        "an extra that only another release can have", "a==1.0\nb[fast]==1.0\n",
        {"a": A, "b": {"1.0": of(extras={"fast": ["a>=3"]}), "1.1": of(extras={"fast": ["a"]})}}, "a==1.0\nb[fast]==1.1\n",
    ),
    Broken(
        "from a pre-release to the release", "a==2.0rc1\nb==1.0\n",
        {"a": {"2.0rc1": of(), "2.0": of()}, "b": {"1.0": of("a>=2.0")}}, "a==2.0\nb==1.0\n",
    ),
    Broken(
        "no way to a pre-release", "a==1.0\nb==1.0\n",
        {"a": {"1.0": of(), "2.0rc1": of()}, "b": {"0.9": of("a>=1"), "1.0": of("a>=2.0rc1")}}, "a==1.0\nb==0.9\n",
    ),
    Broken(
        "a yanked pin may stay", "a==1.0\nb==1.0\n", {"a": {"1.0": of(yanked="late"), "1.1": of()}, "b": {"1.0": of("a>=1")}},
        "a==1.0\nb==1.0\n",
    ),
    Broken(
        "a yanked release is no way out", "a==1.0\nb==1.0\n",
        {"a": {"1.0": of(), "2.0": of(yanked=True), "2.1": of()}, "b": {"1.0": of("a>=2")}}, "a==2.1\nb==1.0\n",
    ),
    Broken(
        "the local version that another asks for", "a==1.0+y\nb==1.0\n",
        {"a": {"1.0+x": of(), "1.0+y": of()}, "b": {"1.0": of("a==1.0+x")}}, "a==1.0+x\nb==1.0\n",
    ),
    Broken(
        "a local version above a bound", "a==1.0+x\nb==1.0\n",
        {"a": {"1.0+x": of(), "1.5+x": of()}, "b": {"1.0": of("a>=1.5")}}, "a==1.5+x\nb==1.0\n",
    ),
    Broken(
        "a release for a newer Python", "a==2.0\n", {"a": {"1.0": of(), "2.0": of(requires_python=">=3.12")}}, "a==1.0\n",
    ),
    Broken(
        "what it brings in is for a newer Python", "b==1.0\n",
        {"a": {"1.0": of(), "2.0": of(requires_python=">=3.12")}, "b": {"0.9": of("a<2"), "1.0": of("a>=2")}}, "b==0.9\n",
    ),
    Broken("nothing helps", "a==1.0\nb==1.0\n", {"a": {"1.0": of()}, "b": {"1.0": of("a>=2")}}, None),
    Broken(
        "the release is on another index", "--extra-index-url {more}\na==1.0\nb==1.0\n",
        {"b": {"1.0": of("a>=2")}}, "--extra-index-url {more}\na==2.0\nb==1.0\n", more={"a": A},
    ),
    Broken(
        "a constraint beside a requirement", "-c limits.txt\na==1.5\nb==1.0\n", {"a": A, "b": {"1.0": of("a>=2")}},
        "-c limits.txt\na==2.0\nb==1.0\n", {"limits.txt": "a<2\n"},
    ),
    Broken(
        "a compatible release that is not", "a~=1.0\nb==1.0\n", {"a": A, "b": {"1.0": of("a>=2")}}, "a~=2.0\nb==1.0\n",
    ),
)  # fmt: skip


@pytest.mark.parametrize("broken", SCENARIOS, ids=lambda each: each.name)
def test_what_is_written_is_what_uv_resolves(fix: Run, tmp_path: Path, broken: Broken) -> None:
    with IndexServer(broken.packages) as server, IndexServer(broken.more) as second:
        text, after = (each and each.replace("{more}", second.url) for each in (broken.text, broken.after))
        (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")  # a project, whose files may be included
        for name, content in {"requirements.txt": text or "", **broken.others}.items():
            (tmp_path / name).write_text(content)
        more = ("--extra-index-url", second.url) if broken.more else ()
        done = fix("--write", "--brief", *more, url=server.url, job=JOB, HOME=str(tmp_path / "some" / "home"))
        command = [uv.find_uv_bin(), "pip", "compile", "--quiet", "--no-config", "--no-build", "--default-index", server.url]
        command += ["--python", sys.executable, "--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_35"]
        theirs = subprocess.run(
            [*command, "requirements.txt"], cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "UV_CACHE_DIR": str(tmp_path / "own")},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    written = (tmp_path / "requirements.txt").read_text()
    if after is None:
        assert (done.returncode, theirs.returncode) == (1, 1), done.stdout + done.stderr
        assert "conflict with each other" in done.stdout
        assert written == text
        return
    assert done.returncode == 0, done.stdout + done.stderr
    assert theirs.returncode == 0, theirs.stderr
    assert written == after
