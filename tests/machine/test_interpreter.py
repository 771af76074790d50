"""Environments as files: fabricated site-packages folders, and a real virtual environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compat.errors import InputError
from compat.machine.interpreter import default_target, read_installed, running_target, target_at
from compat.model import Distribution, Source
from compat.records import replace


def install(
    folder: Path, name: str, version: str, *, text: str | None = None, url: dict[str, object] | None = None, installer: str = ""
) -> Path:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    if text is None:
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: x\n\nA description\n"
    (info / "METADATA").write_text(text, encoding="utf-8")
    if url is not None:
        (info / "direct_url.json").write_text(json.dumps(url), encoding="utf-8")
    if installer:
        (info / "INSTALLER").write_text(installer + "\n")
    return info


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    folder.mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").write_text(
        "home = /nowhere/bin\ninclude-system-site-packages = false\nversion = 3.11.9\n"
    )
    return folder


def installed(path: Path) -> tuple[dict[str, list[Distribution]], tuple[str, ...]]:
    result = read_installed(target_at(str(path)))
    found: dict[str, list[Distribution]] = {}
    for copy in result.distributions:
        found.setdefault(copy.name, []).append(replace(copy, requires=None))
    return found, result.notes


def test_what_a_distribution_requires_is_read(site: Path) -> None:
    text = "Metadata-Version: 2.1\nName: a\nVersion: 1\nRequires-Dist: b (>=2)\nRequires-Dist: c; extra == 'x'\n\nRequires-Dist: no\n"
    install(site, "a", "1", text=text)
    (copy,) = read_installed(target_at(str(site))).distributions
    assert copy.requires == ("b (>=2)",)  # nothing records which extras were asked for


def test_distributions_with_their_sources(site: Path) -> None:
    install(site, "Flash_Attn", "2.7.4.post1")
    install(
        site,
        "trl",
        "0.16.0.dev0",
        url={
            "url": "https://user:secret@example.org/trl.git",
            "vcs_info": {"vcs": "git", "commit_id": "ABCDEF1234", "requested_revision": "main"},
        },
    )
    install(site, "mine", "1.0", url={"url": "file:///home/me/mine", "dir_info": {"editable": True}})
    install(site, "wheel_by_url", "1.0", url={"url": "https://example.org/w.whl", "archive_info": {}})
    found, notes = installed(site)
    assert notes == ()
    assert found["flash-attn"] == [Distribution("flash-attn", "2.7.4.post1", Source("index"))]
    assert found["trl"][0].source == Source(
        "vcs", {"url": "https://example.org/trl.git", "commit": "abcdef1234", "revision": "main"}
    )
    assert found["mine"][0].source == Source("directory", {"url": "file:///home/me/mine", "editable": True})
    assert found["wheel-by-url"][0].source == Source("url", {"url": "https://example.org/w.whl"})


@pytest.mark.parametrize("given", ["env", "env/bin/python", "env/lib/python3.11/site-packages"])
def test_a_target_may_be_an_environment_an_interpreter_or_a_folder(site: Path, tmp_path: Path, given: str) -> None:
    install(site, "torch", "2.6.0+cu124")
    (tmp_path / "env" / "bin").mkdir()
    (tmp_path / "env" / "bin" / "python").write_bytes(b"\x7fELF")
    target = target_at(str(tmp_path / given))
    assert target.version is not None
    assert target.version.startswith("3.11")
    assert [copy.version for copy in read_installed(target).distributions] == ["2.6.0+cu124"]


def test_a_metadata_file_cut_in_half_is_said_and_the_rest_is_judged(site: Path) -> None:
    install(site, "torch", "2.6.0", text="Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0\nRequires-Dist: nvidia-cub")
    install(site, "vllm", "0.7.1", text="Metadata-Version: 2.1\nNam")
    install(site, "trl", "0.15.2")
    found, notes = installed(site)
    assert [copy.version for name in ("torch", "vllm", "trl") for copy in found[name]] == ["2.6.0", "0.7.1", "0.15.2"]
    assert len(notes) == 2
    assert all("is truncated" in note for note in notes)


@pytest.mark.parametrize("cut", ["Metadata-Version: 2.1\nName: transformers\nVersion: 4.5", "Metadata-Version: 2.1\nName: tr"])
def test_the_last_line_of_a_cut_file_is_not_believed(site: Path, cut: str) -> None:
    install(site, "transformers", "4.51.3", text=cut)
    found, notes = installed(site)
    assert [(name, copies[0].version) for name, copies in found.items()] == [("transformers", "4.51.3")]
    assert len(notes) == 1


def test_a_development_version_without_a_record_did_not_come_from_an_index(site: Path) -> None:
    install(site, "trl", "0.16.0.dev0")
    found, _ = installed(site)
    assert found["trl"][0].source == Source("nightly")


def test_missing_metadata_leaves_the_name_of_the_folder(site: Path) -> None:
    (site / "peft-0.14.0.dist-info").mkdir()
    (site / "nothing.dist-info").mkdir()
    found, notes = installed(site)
    assert found["peft"][0].version == "0.14.0"
    assert "nothing" not in found
    assert [("is missing" in note, "skipped" in note) for note in notes] == [(False, True), (True, False)]


def test_a_header_without_a_body_is_whole(site: Path) -> None:
    install(site, "six", "1.17.0", text="Metadata-Version: 2.1\nName: six\nVersion: 1.17.0\n")
    install(site, "dos", "1.0", text="Metadata-Version: 2.1\r\nName: dos\r\nVersion: 1.0\r\n\r\nbody\r\n")
    found, notes = installed(site)
    assert notes == ()
    assert found["dos"][0].version == "1.0"


def test_a_version_that_is_none_is_unknown(site: Path) -> None:
    install(site, "odd", "1.0", text="Metadata-Version: 2.1\nName: odd\nVersion: one\n\n")
    found, notes = installed(site)
    assert found["odd"][0].version is None
    assert "'one' is not a version" in notes[0]


def test_two_versions_in_one_folder_are_both_kept(site: Path) -> None:
    install(site, "transformers", "4.49.0")
    install(site, "transformers", "4.53.3")
    install(site, "trl", "0.15.2")
    found, _ = installed(site)
    assert sorted(str(copy.version) for copy in found["transformers"]) == ["4.49.0", "4.53.3"]


def test_leftovers_of_an_uninstall_are_not_installed(site: Path) -> None:
    install(site, "~ransformers", "4.49.0")
    found, notes = installed(site)
    assert found == {}
    assert "left over" in notes[0]


def test_the_first_folder_of_the_path_wins_and_the_other_copy_is_named(site: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    hidden = base / "lib" / "python3.11" / "site-packages"
    install(hidden, "trl", "0.14.0")
    install(hidden, "peft", "0.14.0")
    install(site, "trl", "0.15.2")
    (tmp_path / "env" / "pyvenv.cfg").write_text(f"home = {base}/bin\ninclude-system-site-packages = true\nversion = 3.11.9\n")
    found, _ = installed(tmp_path / "env")
    assert found["peft"][0].version == "0.14.0"
    assert [copy.version for copy in found["trl"]] == ["0.15.2"]
    assert found["trl"][0].source is not None
    assert found["trl"][0].source.details["shadows"] == [{"version": "0.14.0", "path": str(hidden)}]


def test_pth_files_add_folders_and_their_code_is_not_run(site: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    install(linked, "editable_thing", "1.0")
    marker = tmp_path / "ran"
    (site / "a.pth").write_text(
        f"import pathlib; pathlib.Path({str(marker)!r}).touch()\n{linked}\n# comment\n/does/not/exist\n"
    )
    found, _ = installed(tmp_path / "env")
    assert found["editable-thing"][0].version == "1.0"
    assert not marker.exists()
    assert read_installed(target_at(str(tmp_path / "env"))).folders == (str(site), str(linked))


def test_another_program_is_no_interpreter(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "env"
    program.parent.mkdir()
    program.write_bytes(b"\x7fELF")
    (tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    with pytest.raises(InputError, match="not a Python interpreter: it is another program"):
        target_at(str(program))


def test_conda_packages_are_told_by_their_installer(tmp_path: Path) -> None:
    prefix = tmp_path / "conda"
    folder = prefix / "lib" / "python3.10" / "site-packages"
    install(folder, "numpy", "1.26.4", installer="conda")
    install(folder, "trl", "0.15.2", installer="pip")
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "python-3.10.14-h955ad1f_1.json").write_text("{}")
    target = target_at(str(prefix))
    assert target.version == "3.10.14"
    sources = {copy.name: copy.source.kind for copy in read_installed(target).distributions if copy.source}
    assert sources == {"numpy": "conda", "trl": "index"}


def test_egg_info_is_read(site: Path) -> None:
    (site / "old.egg-info").mkdir()
    (site / "old.egg-info" / "PKG-INFO").write_text("Metadata-Version: 1.1\nName: old\nVersion: 0.3\n")
    (site / "older-0.1-py3.11.egg-info").write_text("Metadata-Version: 1.1\nName: older\nVersion: 0.1\n")
    found, notes = installed(site)
    assert notes == ()
    assert (found["old"][0].version, found["older"][0].version) == ("0.3", "0.1")


def test_a_broken_direct_url_is_said(site: Path) -> None:
    for name, content in (
        ("a", "{"),
        ("b", "[]"),
        ("c", '{"vcs_info": {}}'),
        ("d", '{"url": "u", "vcs_info": {"vcs": "git"}}'),
    ):
        info = install(site, name, "1.0")
        (info / "direct_url.json").write_text(content)
    found, notes = installed(site)
    assert [copies[0].source for copies in found.values()] == [Source("url")] * 4
    assert len(notes) == 4


@pytest.mark.parametrize("make", ["missing", "file", "script", "empty folder"])
def test_what_is_no_python_is_one_line(tmp_path: Path, make: str) -> None:
    path = tmp_path / "thing"
    if make == "file":
        path.write_bytes(b"\x7fELF")
    elif make == "script":
        path.write_text("#!/bin/sh\n")
    elif make == "empty folder":
        path.mkdir()
    with pytest.raises(InputError) as caught:
        target_at(str(path))
    assert "\n" not in str(caught.value)
    assert "thing" in str(caught.value)


def test_the_activated_environment_is_the_default(site: Path, tmp_path: Path) -> None:
    install(site, "trl", "0.15.2")
    assert default_target({"VIRTUAL_ENV": str(tmp_path / "env")}).folders == (str(site),)
    assert default_target({}).running
    assert default_target({"VIRTUAL_ENV": sys.prefix}).running


def test_a_pyenv_shim_is_seen_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tmp_path / "pyenv" / "versions" / "3.12.1"
    install(real / "lib" / "python3.12" / "site-packages", "trl", "0.15.2")
    (real / "bin").mkdir()
    (real / "bin" / "python3").write_bytes(b"\x7fELF")
    shims = tmp_path / "pyenv" / "shims"
    shims.mkdir()
    (shims / "python3").write_text("#!/usr/bin/env bash\nexec pyenv exec python3\n")
    (shims / "python3").chmod(0o755)
    (tmp_path / "pyenv" / "version").write_text("3.12.1\n")
    monkeypatch.delenv("PYENV_VERSION", raising=False)
    monkeypatch.setenv("PATH", str(shims))
    for given in (str(shims / "python3"), "python3"):
        assert [copy.name for copy in read_installed(target_at(given)).distributions] == ["trl"]


def test_a_real_virtual_environment(tmp_path: Path) -> None:
    """What ``venv`` makes and ``pip`` installs, against pip's own list."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "real")], check=True)
    python = tmp_path / "real" / ("Scripts" if os.name == "nt" else "bin") / "python"
    listed = json.loads(
        subprocess.run([str(python), "-m", "pip", "list", "--format", "json"], check=True, capture_output=True).stdout
    )
    result = read_installed(target_at(str(python)))
    assert {copy.name: copy.version for copy in result.distributions} == {entry["name"]: entry["version"] for entry in listed}
    assert result.target.version == ".".join(map(str, sys.version_info[:3]))


def test_the_running_environment_is_what_importlib_metadata_lists() -> None:
    from importlib.metadata import distributions

    from compat.model import normalized

    theirs = {normalized(found.metadata["Name"]): found.version for found in reversed(list(distributions()))}
    ours = {copy.name: copy.version for copy in read_installed(running_target()).distributions}
    assert ours == theirs


def test_metadata_with_more_requirements_than_any_real_one_is_read_in_part(site: Path) -> None:
    required = "".join(f"Requires-Dist: p{number}\n" for number in range(20_000))
    install(site, "torch", "2.6.0", text=f"Name: torch\nVersion: 2.6.0\n{required}\n\n")
    result = read_installed(target_at(str(site)))
    assert [len(each.requires or ()) for each in result.distributions] == [10_000]
    assert any("only its first 10000 requirements are considered" in note for note in result.notes)
