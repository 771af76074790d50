"""The edits of a plan in this process: files that include others, and edits that would not do what the plan says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.api import edited
from compat.api.commands import command_named
from compat.api.fixing import Repair, repair_of
from compat.cli import parse
from compat.formats.edit.files import Edit
from compat.rules.compiled import open_matrix
from tests.end_to_end.fixing import BAD_TRL, CLEAN, PACKAGES, RULE, own, release
from tests.index.server import IndexServer

pytest.importorskip("clingo")


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in [
        name for name in os.environ if name.startswith(("PIP_", "UV_")) and name not in ("PIP_CONFIG_FILE", "UV_CACHE_DIR")
    ]:
        monkeypatch.delenv(name)
    packages = {**PACKAGES, "flash-attn": {"2.7.4.post1": release("2025-01-30", wheel=False)}}
    with IndexServer(packages) as server:
        yield server.url


def repaired(file: str, url: str, tmp_path: Path) -> Repair:
    options = parse(command_named("fix"), [file, *CLEAN, *own(tmp_path, BAD_TRL), "--config", "none", "--index-url", url])
    return repair_of(options, open_matrix(options.values.get("rules", ())))


def test_a_pin_that_conda_passes_to_pip_in_another_file_is_fixed_there(url: str, tmp_path: Path) -> None:
    environment = "dependencies:\n  - python=3.11\n  - pip\n  - pip:\n    - -r requirements.txt\n"
    (tmp_path / "environment.yml").write_text(environment)
    (tmp_path / "requirements.txt").write_text("trl==0.17.0\n")
    found = repaired("environment.yml", url, tmp_path)
    assert found.plan.stands
    assert [(each.path, each.after) for each in found.written.edits] == [("requirements.txt", b"trl==0.18.0\n")]


def test_edits_that_make_a_file_contradict_itself_are_not_proposed(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = b"trl==0.17.0\n"
    (tmp_path / "requirements.txt").write_bytes(lines)
    monkeypatch.setattr(edited, "edits_for", lambda file, changes: (Edit(file, lines, lines + b"trl==0.18.0\n"),))
    found = repaired("requirements.txt", url, tmp_path)
    assert not found.plan.stands
    assert found.plan.refused.startswith("the edited file would contradict itself: ")
    assert found.written.edits == ()


OLD_TRANSFORMERS = RULE.format(
    name="bad-transformers", severity="error", packages='transformers = "<4.57"', hit='transformers = "4.55.0"',
    clear='transformers = "4.57.1"', fix='[[rule.fix]]\nupgrade = { transformers = ">=4.57" }',
)  # fmt: skip
NEW_TRL = RULE.format(
    name="bad-trl", severity="error", packages='trl = ">=0.20"', hit='trl = "0.24.0"', clear='trl = "0.18.0"',
    fix='[[rule.fix]]\ndowngrade = { trl = "<0.20" }',
)  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        (BAD_TRL, "trl==0.17.0\n", "trl==0.18.0\n"),
        (OLD_TRANSFORMERS, "transformers==4.51.3\ntokenizers==0.21.1\n", "transformers==4.57.1\ntokenizers==0.22.1\n"),
        (NEW_TRL, "trl==0.24.0\ntransformers==4.57.1\n", "trl==0.18.0\ntransformers==4.57.1\n"),
    ],
)
def test_when_time_is_up_uv_finds_releases_without_the_error(
    url: str, tmp_path: Path, rule: str, before: str, after: str
) -> None:
    (tmp_path / "requirements.txt").write_text(before)
    words = ["requirements.txt", *CLEAN, *own(tmp_path, rule), "--config", "none", "--index-url", url, "--time-limit", "0"]
    options = parse(command_named("fix"), words)
    found = repair_of(options, open_matrix(options.values.get("rules", ())))
    assert found.plan.stands
    assert not found.plan.proven
    assert found.plan.verified is not None
    assert found.plan.verified.uv
    assert [each.after.decode() for each in found.written.edits] == [after]


OLD_TORCH = RULE.format(
    name="bad-torch", severity="error", packages='torch = "<2.7"', hit='torch = "2.6.0"', clear='torch = "2.7.0"',
    fix='[[rule.fix]]\nupgrade = { torch = ">=2.7" }',
)  # fmt: skip
WHEEL = "https://wheels.example/flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"


def test_a_wheel_by_address_that_was_compiled_for_another_torch_gives_way_to_its_release(url: str, tmp_path: Path) -> None:
    """Its name also says which Python the job has."""
    (tmp_path / "requirements.txt").write_text(f'torch==2.6.0\nflash-attn @ {WHEEL} ; sys_platform == "linux"\n')
    words = ["requirements.txt", "--gpu", "A100:1", *own(tmp_path, OLD_TORCH), "--config", "none", "--index-url", url]
    options = parse(command_named("fix"), [*words, "--torch-index", url])
    found = repair_of(options, open_matrix(options.values.get("rules", ())))
    assert found.case.told[0] == "Python 3.11 (its wheel of flash-attn)"
    assert found.plan.stands
    assert [each.after.decode() for each in found.written.edits] == [
        'torch==2.7.0\nflash-attn==2.7.4.post1 ; sys_platform == "linux"\n'
    ]


def fixed(lines: str, url: str, tmp_path: Path, *rules: str) -> str:
    """The requirements file after the plan for it."""
    (tmp_path / "requirements.txt").write_text(lines)
    words = ["requirements.txt", "--gpu", "A100:1", *(own(tmp_path, *rules) if rules else ()), "--config", "none"]
    options = parse(command_named("fix"), [*words, "--index-url", url, "--torch-index", url])
    found = repair_of(options, open_matrix(options.values.get("rules", ())))
    assert found.plan.stands, found.plan
    (edit,) = found.written.edits
    return edit.after.decode()


@pytest.mark.parametrize("listed", ["torch\n", ""])
def test_an_open_torch_follows_a_wheel_by_address(url: str, tmp_path: Path, listed: str) -> None:
    """The file says for which torch it was made; its release would be compiled against the newest one."""
    wheel = f"flash-attn @ {WHEEL}\n"
    assert (
        fixed(f"{listed}accelerate==1.6.0\n{wheel}", url, tmp_path).replace("torch<2.7\n", "") == f"accelerate==1.6.0\n{wheel}"
    )


def test_every_wheel_by_address_may_move_with_torch(url: str, tmp_path: Path) -> None:
    """Not only those of extensions whose releases are published as source."""
    wheel = "https://wheels.example/exllamav2-0.2.9+cu124.torch2.6.0-cp311-cp311-linux_x86_64.whl"
    with IndexServer({**PACKAGES, "exllamav2": {"0.2.9": release("2025-05-01")}}) as server:
        after = fixed(f"torch==2.6.0\n{wheel}\n", server.url, tmp_path, OLD_TORCH)
    assert after == "torch==2.7.0\nexllamav2==0.2.9\n"


def test_an_image_without_a_compiler_gives_way_whatever_release_is_compiled(url: str, tmp_path: Path) -> None:
    """The file names flash-attn without a version."""
    text = "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install torch==2.6.0\nRUN pip install flash-attn\n"
    (tmp_path / "Dockerfile").write_text(text)
    words = ["Dockerfile", "--gpu", "A100:1", "--python-version", "3.11", "--config", "none", "--index-url", url]
    options = parse(command_named("fix"), [*words, "--torch-index", url])
    found = repair_of(options, open_matrix(()))
    assert found.plan.stands, found.plan
    assert [each.after.decode() for each in found.written.edits] == [text.replace("runtime", "devel")]


def test_an_image_gets_the_compiler_of_the_cuda_of_torch(tmp_path: Path, url: str) -> None:
    """torch 2.11 is built for CUDA 13, and there is no wheel of flash-attn for it."""
    packages = {
        **PACKAGES,
        "torch": {"2.11.0": release("2026-03-01")},
        "flash-attn": {"2.8.3": release("2025-08-14", wheel=False)},
    }
    text = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install torch==2.11.0\nRUN pip install flash-attn==2.8.3\n"
    (tmp_path / "Dockerfile").write_text(text)
    with IndexServer(packages) as server:
        words = ["Dockerfile", "--gpu", "A100:1", "--python-version", "3.11", "--config", "none", "--index-url", server.url]
        found = repair_of(parse(command_named("fix"), [*words, "--torch-index", url]), open_matrix(()))
    assert found.plan.stands, found.plan
    assert [each.after.decode() for each in found.written.edits] == [text.replace("12.4.1", "13.0.1")]


ENGINE = {
    "engine": {
        "0.1": release("2023-06-01", wheel=False), "0.5": release("2024-08-01", "core==2.3"), "0.6": release("2024-10-01", "core==2.4"),
        "0.9": release("2025-07-01", "core==2.7"),
    },
    "core": {each: release("2024-07-01") for each in ("2.3", "2.4", "2.7", "2.15")},
    "tensors": {"0.5": release("2024-08-01", "core>=2"), "0.15": release("2026-10-01", "core>=2.10")},
    "models": {"4.12": release("2021-10-01"), "4.47": release("2024-12-01"), "5.0": release("2026-01-01")},
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tensors\nengine<=0.6\n", "tensors\nengine==0.6\n"),
        ("tensors>=0.10\nengine<=0.6\n", None),  # nothing else goes together
        ("tensors\nengine\n", None),  # nobody has said that it is 0.9 that goes with the rest
    ],
)
def test_a_range_is_not_left_to_its_oldest_release(tmp_path: Path, url: str, before: str, after: str | None) -> None:
    """uv takes the newest of the other packages first, then goes back to the engine that does not say what it needs."""
    (tmp_path / "requirements.txt").write_text(before)
    with IndexServer(ENGINE) as server:
        words = ["requirements.txt", "--python-version", "3.11", "--config", "none", "--index-url", server.url]
        found = repair_of(parse(command_named("fix"), words), open_matrix(()))
    assert [each.rule for each in found.errors] == ([] if after is None else ["far-back-engine"])
    assert [each.after.decode() for each in found.written.edits] == ([] if after is None else [after])
