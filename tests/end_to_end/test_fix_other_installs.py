"""``compat fix`` where another release is not what helps: torch for another CUDA, builds on the machine, commits, wishes of a project."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.index.server import IndexServer

pytest.importorskip("clingo")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TORCH = {"2.7.1": {"uploaded": "2025-06-04T00:00:00Z", "requires": ["triton==3.3.1", "nvidia-cudnn-cu12==9.5.1.17"]}}
LATER = {"2.8.0": {"uploaded": "2025-08-06T00:00:00Z", "requires": ["triton==3.4.0", "nvidia-cudnn-cu12==9.10.2.21"]}}
VISION = {
    "0.22.1": {"uploaded": "2025-06-04T00:00:00Z", "requires": ["torch==2.7.1"]},
    "0.23.0": {"uploaded": "2025-08-06T00:00:00Z", "requires": ["torch==2.8.0"]},
}
PACKAGES = {
    "torch": {**TORCH, **LATER}, "torchvision": VISION, "triton": {"3.3.1": {}, "3.4.0": {}},
    "nvidia-cudnn-cu12": {"9.5.1.17": {}, "9.7.1.26": {}, "9.10.2.21": {}},
}  # fmt: skip
VENDOR = {
    "torch": {"2.7.1+cu128": {"requires": ["triton==3.3.1", "nvidia-cudnn-cu12==9.7.1.26"]}},
    "torchvision": {"0.22.1+cu128": {"requires": ["torch==2.7.1"]}},
}
NOWHERE = "http://127.0.0.1:9"
FOR_5090 = ("--gpu", "RTX 5090", "--python-version", "3.11", "--os", "linux")


@pytest.fixture
def fix(compat: Run, tmp_path: Path) -> Run:
    def run(*words: str, url: str, torch_index: str = NOWHERE) -> subprocess.CompletedProcess[str]:
        own = {"COMPAT_CACHE_DIR": str(tmp_path / "cache"), "UV_CACHE_DIR": str(tmp_path / "uv-cache"), "PIP_RETRIES": "0"}
        return compat("fix", *words, "--index-url", url, "--torch-index", torch_index, **own)

    return run


def plan_of(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.stdout, done.stderr
    return json.loads(done.stdout)["plan"]


def moved(plan: dict[str, object]) -> dict[str, tuple[str | None, str | None]]:
    return {each["name"]: (each["from"], each["to"]) for each in plan["changes"] if not each["implied"]}  # type: ignore[attr-defined]


def test_the_build_for_another_cuda_is_read_from_torchs_index_and_checked_by_uv(fix: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "torch==2.7.1\ntorchvision==0.22.1\nnvidia-cudnn-cu12==9.5.1.17\ntriton==3.3.1\n"
    )
    with IndexServer(PACKAGES) as server, IndexServer(VENDOR, root="cu128") as vendor:
        words = ("requirements.txt", *FOR_5090, "--format", "json", "--write")
        done = fix(*words, url=server.url, torch_index=vendor.url.removesuffix("/cu128"))
    plan = plan_of(done)
    assert done.returncode == 0
    assert moved(plan) == {
        "torch": ("2.7.1", "2.7.1+cu128"), "torchvision": ("0.22.1", "0.22.1+cu128"),
        "nvidia-cudnn-cu12": ("9.5.1.17", "9.7.1.26"),
    }  # fmt: skip
    assert plan["verified"] == {"rules": True, "uv": True}
    assert (plan["proven"], plan["assumed"]) == (True, {})
    assert plan["cost"] == {"changed": 2}  # type: ignore[index]
    written = (tmp_path / "requirements.txt").read_text()
    assert written == (
        f"--extra-index-url {vendor.url}\ntorch==2.7.1+cu128\ntorchvision==0.22.1+cu128\nnvidia-cudnn-cu12==9.7.1.26\ntriton==3.3.1\n"
    )


def test_an_index_of_torch_that_cannot_be_reached_leaves_the_ordinary_builds(fix: Run, tmp_path: Path) -> None:
    """What uv resolves for the file has CUDA's libraries, of which nobody can say which ones another build wants."""
    (tmp_path / "requirements.txt").write_text("torch==2.7.1\ntorchvision==0.22.1\n")
    with IndexServer(PACKAGES) as server:
        done = fix("requirements.txt", *FOR_5090, "--explain", url=server.url)
    assert done.returncode == 0, done.stderr
    assert "and with uv pip compile\n" in done.stdout
    assert done.stdout.count("no builds from ") == 1
    lines = (tmp_path / "requirements.txt").read_text().splitlines()
    assert "+torch==2.8.0\n+torchvision==0.23.0\n" in done.stdout
    assert len(lines) == 2
    assert "+nvidia" not in done.stdout


def test_a_file_with_hashes_gets_the_build_whose_hashes_are_known(fix: Run, tmp_path: Path) -> None:
    """``+cu128`` is the smaller change, but pip refuses it without a hash, and the index that has them is out of reach."""
    pins = ("torch==2.8.0+cu126", "triton==3.4.0", "nvidia-cudnn-cu12==9.10.2.21")
    (tmp_path / "requirements.txt").write_text("".join(f"{pin} --hash=sha256:{64 * 'a'}\n" for pin in pins))
    (tmp_path / "plain.txt").write_text("".join(f"{pin}\n" for pin in pins))
    with IndexServer(PACKAGES) as server:
        hashed = fix("requirements.txt", *FOR_5090, "--format", "json", "--write", url=server.url)
        plain = fix("plain.txt", *FOR_5090, "--format", "json", url=server.url)
    assert moved(plan_of(hashed)) == {"torch": ("2.8.0+cu126", "2.8.0")}
    assert moved(plan_of(plain)) == {"torch": ("2.8.0+cu126", "2.8.0+cu128")}
    assert hashed.returncode == 0, hashed.stderr
    written = (tmp_path / "requirements.txt").read_text().splitlines()
    assert written[0].startswith("torch==2.8.0 --hash=sha256:")
    assert 64 * "a" not in written[0]


def test_without_an_index_of_torch_and_a_plan_the_error_is_shown_with_what_is_missing(fix: Run, tmp_path: Path) -> None:
    """Undecided all the same: a build that only that index has might fix it."""
    (tmp_path / "requirements.txt").write_text("torch==2.5.1\nolder==1.0\n")
    last = {"2.7.0": {"uploaded": "2025-04-23T00:00:00Z"}}
    packages = {"torch": {**XFORMERS["torch"], **last}, "older": {"1.0": {"requires": ["torch<2.8"]}}}
    with IndexServer(packages) as server:
        done = fix("requirements.txt", *FOR_5090, url=server.url)
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stderr == ""
    assert "✗ This torch has no code for RTX 5090" in done.stdout
    assert "No plan is proposed: no set of the releases that could be read fixes an error\n" in done.stdout
    assert "  no builds from http" in done.stdout


def test_an_index_that_has_no_such_build_leads_to_another_plan(fix: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.7.1\ntorchvision==0.22.1\n")
    with IndexServer(PACKAGES) as server, IndexServer({"torch": {}, "torchvision": {}}, root="cu128") as vendor:
        done = fix(
            "requirements.txt", *FOR_5090, "--format", "json", url=server.url, torch_index=vendor.url.removesuffix("/cu128")
        )  # fmt: skip
    found = moved(plan_of(done)).items()
    assert {"torch": ("2.7.1", "2.8.0"), "torchvision": ("0.22.1", "0.23.0")}.items() <= found


XFORMERS = {
    "xformers": {"0.0.28.post3": {"uploaded": "2024-10-30T00:00:00Z", "requires": ["torch==2.5.1"], "dynamic": True}},
    "torch": {"2.5.1": {"uploaded": "2024-10-29T00:00:00Z"}, "2.6.0": {"uploaded": "2025-01-29T00:00:00Z"}},
}
KEPT = ("--keep", "torch==2.6.0", "xformers==0.0.28.post3")
FOR_H100 = ("--gpu", "H100", "--python-version", "3.11", "--os", "linux")


def test_what_is_compiled_for_another_torch_is_built_where_that_is_allowed(fix: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\nxformers==0.0.28.post3\n")
    with IndexServer(XFORMERS) as server:
        refused = fix("requirements.txt", *FOR_H100, *KEPT, url=server.url)
        assert refused.returncode == 1
        assert "conflict with each other" in refused.stdout
        done = fix("requirements.txt", *FOR_H100, *KEPT, "--allow-source", "--write", url=server.url)
    assert done.returncode == 0, done.stdout
    assert "xformers  0.0.28.post3 → 0.0.28.post3 built from source" in done.stdout
    command = 'TORCH_CUDA_ARCH_LIST="9.0" uv pip install -r requirements.txt --no-build-isolation-package xformers'
    assert f"{command} --reinstall-package xformers" in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "--no-binary xformers\ntorch==2.6.0\nxformers==0.0.28.post3\n"


def test_uv_is_told_in_the_project_what_to_build(fix: Run, tmp_path: Path) -> None:
    requirements = '["torch==2.6.0", "xformers==0.0.28.post3"]'
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nname = "job"\nversion = "1"\ndependencies = {requirements}\n[tool.uv]\n'
    )
    with IndexServer(XFORMERS) as server:
        done = fix("pyproject.toml", *FOR_H100, *KEPT, "--allow-source", "--write", url=server.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'no-binary-package = [\n    "xformers",' in (tmp_path / "pyproject.toml").read_text()


def test_a_file_that_cannot_say_it_stays_as_it_is(fix: Run, tmp_path: Path) -> None:
    text = "FROM python:3.11\nRUN pip install torch==2.6.0 xformers==0.0.28.post3\n"
    (tmp_path / "Dockerfile").write_text(text)
    with IndexServer(XFORMERS) as server:
        done = fix("Dockerfile", "--gpu", "H100", *KEPT, "--allow-source", "--write", url=server.url)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "add --no-binary xformers to its install command" in done.stderr
    assert "0.0.28.post3 built from source" in done.stdout
    assert (tmp_path / "Dockerfile").read_text() == text


def test_a_commit_that_a_rule_names_is_proposed_where_no_release_may_be(fix: Run, described: Callable[..., str]) -> None:
    bad = "e3244d2d096ff1e2e248c931d06d39e165e20623"
    source = {"kind": "vcs", "url": "https://github.com/huggingface/trl.git", "commit": bad}
    environment = described(
        {"trl": "0.16.0.dev0"}, sources={"trl": source}, python="3.11.9", os="linux", machine="x86_64",
        workload={"task": "sft", "launcher": "accelerate", "processes": 2},
    )  # fmt: skip
    trl = {"trl": {"0.15.2": {"uploaded": "2025-02-25T00:00:00Z"}, "0.16.0": {"uploaded": "2025-03-22T00:00:00Z"}}}
    words = ("--environment", environment, "--format", "json")
    with IndexServer(trl) as server:
        released = plan_of(fix(*words, "--allow-source", url=server.url))
        assert moved(released) == {"trl": ("0.16.0.dev0", "0.16.0")}
        kept = plan_of(fix(*words, "--keep", "trl==0.16.0.dev0", url=server.url))
        plan = plan_of(fix(*words, "--keep", "trl==0.16.0.dev0", "--allow-source", url=server.url))
    assert kept["changes"] == plan["changes"]  # it is the only fix: nobody has to ask for it
    (change,) = plan["changes"]  # type: ignore[misc]
    assert (change["source"], change["commit"]) == ("vcs", "2ee6fd369f36c4538a08444cf0a7925354a39938")
    assert plan["assumed"] == {"trl 0.16.0.dev0 at commit 2ee6fd369f36": "assumed to have the requirements of trl 0.16.0"}
    assert any("git+https://github.com/huggingface/trl@2ee6fd369f36" in line for line in plan["commands"])  # type: ignore[attr-defined]


def test_a_dry_run_of_the_installation_is_made_where_it_is_asked_for(fix: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "torch==2.7.1\ntorchvision==0.22.1\ntriton==3.3.1\nnvidia-cudnn-cu12==9.5.1.17\n"
    )
    words = ("requirements.txt", *FOR_5090, "--keep", "torch>=2.8", "--format", "json", "--verify", "install")
    with IndexServer(PACKAGES) as server:
        plan = plan_of(fix(*words, url=server.url))
        assert plan["verified"] == {"rules": True, "uv": True, "install": True}


TARGETS = """[project]
name = "job"
version = "1"
dependencies = ["torch==2.7.1"]
[[tool.compat.target]]
name = "new"
gpus = ["RTX 5090"]
[[tool.compat.target]]
name = "old"
gpus = ["A100"]
"""


def test_a_declared_target_is_what_is_mended_for(fix: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(TARGETS)
    words = ("pyproject.toml", "--python-version", "3.11", "--os", "linux")
    with IndexServer(PACKAGES) as server:
        several = fix(*words, url=server.url)
        assert several.returncode == 2
        assert (
            several.stderr.strip()
            == "compat: pyproject.toml: several targets are declared (new, old): choose one with --target"
        )
        assert "Nothing to fix" in fix(*words, "--target", "old", url=server.url).stdout
        assert "torch  2.7.1 → 2.8.0" in fix(*words, "--target", "new", url=server.url).stdout
        (tmp_path / "pyproject.toml").write_text(
            f'{TARGETS}[[tool.compat.ignore]]\nrule = "build-torch-gpu"\nreason = "we build it"\n'
        )
        assert "Nothing to fix" in fix(*words, "--target", "new", url=server.url).stdout
