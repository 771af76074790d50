"""Every real file of the corpus against what independent readers found in it: ``compat facts FILE`` tells the same.

Names, versions, ranges, markers and sources are compared as far as the oracle holds them, in the order of the file. What
differs and is meant to is listed here with its reason; what is listed and does not differ any more fails.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import subprocess
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat.cli import main
from compat.formats.listing import ROOT, Listing
from compat.formats.registry import read_listings
from compat.model import normalized
from tests.formats.oracle import Difference, differences, oracles, packages_of, path_of, printed_packages

ORACLES = {oracle["file"]: oracle for oracle in oracles()}
LISTINGS = sorted(file for file, oracle in ORACLES.items() if oracle.get("ok"))
UNREADABLE = sorted(file for file, oracle in ORACLES.items() if not oracle.get("ok", True))
SETTINGS = sorted(file for file in ORACLES if file.startswith("accel_config/"))

if not ORACLES:
    pytest.skip("the corpus is not here", allow_module_level=True)


class Meant(NamedTuple):
    """A difference that is meant. ``files`` and ``names`` are several, separated by spaces; each of them differs somewhere."""

    files: str
    names: str
    field: str
    wanted: str
    found: str
    reason: str

    def each_name(self) -> list[str]:
        return [self.names] if self.names[:1] == "{" else self.names.split() or [""]

    def covers(self, file: str, difference: Difference) -> bool:
        return (
            any(fnmatchcase(file, pattern) for pattern in self.files.split())
            and any(fnmatchcase(difference.name, name) for name in self.each_name())
            and difference.field == self.field
            and fnmatchcase(difference.wanted, self.wanted)
            and fnmatchcase(difference.found, self.found)
        )


CALLED_BY_PIP = "conda's package pytorch holds the distribution torch; source.name keeps conda's name"
ONLY_CHANNEL = "no channel stated: the first of the file's channels that has PyTorch"
PLATFORM = "where builds for several platforms are listed, the platform is the marker"
SELECTOR = "a comment # [linux] is a condition"
PINNED = "the commit says it; what was asked for is not kept beside it"
DEVELOPMENT = "no index has a release of that name: a version .dev is a nightly build"
NAMELESS = "-e . has no name; skipped with a note"
NO_REQUIREMENT = "not a requirement of its own: applied to those that are"
APPLIED = "overridden or constrained in [tool.uv]"
UV_SOURCE = "[tool.uv.sources] says where it comes from"
ITSELF = "a project that asks for its own extras is not fetched from an index"
WHEEL = "the name of a wheel tells the version"
POETRY_PYTHON = "Poetry's constraint for Python is a marker"
INCLUDED = "another group that is included is an edge, and no requirement"
UNSPACED = "packaging asks for a space before the semicolon, uv does not"

AUTOMODEL = "pyproject/NVIDIA-NeMo__Automodel__36044ad3__pyproject.toml"
NEMO_RL = "pyproject/NVIDIA-NeMo__RL__7571a7d5__pyproject.toml"
OPEN_INSTRUCT = "pyproject/allenai__open-instruct__b08d6dc8__pyproject.toml"
LLM_STUDIO = "pyproject/h2oai__h2o-llmstudio__a4971c11__pyproject.toml"
TEXT_GENERATION = "pyproject/huggingface__text-generation-inference__922cc38f__pyproject.toml"

MEANT = (
    Meant("conda/*pixi.lock conda/*conda-lock.yml conda/ContextualAI* conda/konstantin*environment.yml", "pytorch", "name", "pytorch", "torch", CALLED_BY_PIP),
    Meant("conda/ContextualAI*environment.yaml", "pytorch", "source.channel", "", "pytorch", ONLY_CHANNEL),
    Meant("conda/*pixi.lock conda/*conda-lock.yml", "*", "marker", "", "*sys_platform == *", PLATFORM),
    Meant("conda/konstantin*environment.yml", "pytorch-cuda", "marker", "", "sys_platform == *", SELECTOR),
    Meant("conda/CCRI-POPROX__poprox-recommender__e7f6b95c__pixi.lock", "poprox-concepts", "source.requested_revision", "v0.1.0", "", PINNED),
    Meant("conda/volcengine__verl__4b2b3643__environment.yml", "verl", "source.kind", "index", "nightly", DEVELOPMENT),
    Meant("requirements/AlonKellner-RedHat* derived/crlf-continuations* derived/uvexport__NVIDIA-NeMo__RL*requirements.txt", "", "listed", "listed", "", NAMELESS),
    Meant(TEXT_GENERATION, "python", "listed", "poetry", "", NO_REQUIREMENT),
    Meant(f"{AUTOMODEL} {NEMO_RL}", "*", "listed", "uv-constraint", "", NO_REQUIREMENT),
    Meant(f"{AUTOMODEL} {NEMO_RL} {OPEN_INSTRUCT}", "*", "listed", "uv-override", "", NO_REQUIREMENT),
    Meant("pyproject/EleutherAI*", '{"include-group": "dev1"}', "listed", "group:dev", "", INCLUDED),
    Meant(AUTOMODEL, "dion", "marker", "", 'platform_machine == "x86_64" and platform_system != "Darwin"', UNSPACED),
    Meant(AUTOMODEL, "wandb mlflow diffusers pillow setuptools pytest", "range", "*", "*>=*", APPLIED),
    Meant(NEMO_RL, "setuptools numpy nvidia-modelopt pytest", "range", "*", ">=*", APPLIED),
    Meant(NEMO_RL, "timm", "range", "", "<=1.0.22", APPLIED),
    Meant(NEMO_RL, "nvidia-nvshmem-cu13", "marker", "*", 'sys_platform != "darwin"', APPLIED),
    Meant(NEMO_RL, "transformer-engine", "source.requested_revision", "v2.14.1", "release_v2.15", APPLIED),
    Meant(AUTOMODEL, "magi-attention megatron-fsdp deep-ep cut-cross-entropy liger-kernel", "source.kind", "index", "vcs", UV_SOURCE),
    Meant(NEMO_RL, "mamba-ssm causal-conv1d nv-grouped-gemm nvidia-modelopt nvidia-resiliency-ext", "source.kind", "index", "vcs", UV_SOURCE),
    Meant(NEMO_RL, "nemo-automodel megatron-bridge tensorrt-llm nemo-gym", "source.kind", "index", "directory", UV_SOURCE),
    Meant(OPEN_INSTRUCT, "ai2-olmo-core", "source.kind", "index", "vcs", UV_SOURCE),
    Meant(OPEN_INSTRUCT, "flash-attn", "source.kind", "index", "url", UV_SOURCE),
    Meant(LLM_STUDIO, "hac-playwright", "source.kind", "index", "url", UV_SOURCE),
    Meant(OPEN_INSTRUCT, "flash-attn", "range", ">=2.8.3", "", WHEEL),
    Meant(NEMO_RL, "flash-attn vllm", "version", "", "?*", WHEEL),
    Meant(OPEN_INSTRUCT, "flash-attn flash-attn-3 flash-attn-4", "version", "", "?*", WHEEL),
    Meant(LLM_STUDIO, "hac-playwright", "version", "", "1.48.0", WHEEL),
    Meant(TEXT_GENERATION, "attention-kernels marlin-kernels moe-kernels", "version", "", "?*", WHEEL),
    Meant(TEXT_GENERATION, "attention-kernels marlin-kernels moe-kernels", "marker", "", "python_full_version >= *", POETRY_PYTHON),
    Meant("pyproject/EleutherAI*", "lm-eval", "source.kind", "index", "directory", ITSELF),
    Meant(AUTOMODEL, "nemo-automodel", "source.kind", "index", "directory", ITSELF),
    Meant("pyproject/vllm-project*", "guidellm", "source.kind", "index", "directory", ITSELF),
)  # fmt: skip


@functools.cache
def facts(file: str) -> dict[str, Any]:
    """What ``compat facts`` prints of one file."""
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        assert main(["facts", str(path_of(ORACLES[file]))]) == 0, said.getvalue()
    found: dict[str, Any] = json.loads(printed.getvalue())
    return found


@functools.cache
def told_apart(file: str) -> tuple[Difference, ...]:
    return tuple(differences(packages_of(ORACLES[file]), printed_packages(facts(file))))


@pytest.mark.parametrize("file", LISTINGS)
def test_facts_tell_what_the_oracle_tells(file: str) -> None:
    assert len(facts(file)["distributions"]) > 0
    assert [each for each in told_apart(file) if not any(meant.covers(file, each) for meant in MEANT)] == []


@pytest.mark.parametrize("meant", MEANT, ids=lambda meant: f"{meant.field}-{meant.names}")
def test_what_is_meant_to_differ_does(meant: Meant) -> None:
    for pattern in meant.files.split():
        for name in meant.each_name():
            one = meant._replace(files=pattern, names=name)
            assert any(one.covers(file, each) for file in LISTINGS for each in told_apart(file)), (pattern, name)


@pytest.mark.parametrize("file", LISTINGS)
def test_every_entry_is_at_its_line(file: str) -> None:
    (listing,) = read_listings(str(path_of(ORACLES[file])))
    content = path_of(ORACLES[file]).read_bytes()
    lines = [normalized(line) for line in content.decode("utf-16" if content[:2] == b"\xff\xfe" else "utf-8").split("\n")]
    for entry in listing.entries:
        source = entry.distribution.source
        name = normalized((source.details if source else {}).get("name", entry.distribution.name))
        assert entry.line is not None
        assert name in "\n".join(lines[entry.line - 1 : entry.line + 2])
    given = [row["line"] for row in ORACLES[file].get("packages", ()) if row.get("line") and row["name"]]
    assert not given or [entry.line for entry in listing.entries] == given


def reachable(listing: Listing, leave_out: str = "") -> set[int]:
    """The entries that can get installed, without one kind of choice."""
    if listing.edges is None:
        return set(range(len(listing.entries)))
    below: dict[int, list[int]] = {}
    for parent, child, _, choice in listing.edges:
        if choice is None or listing.choices[choice].kind != leave_out:
            below.setdefault(parent, []).append(child)
    reached, todo = {ROOT}, [ROOT]
    while todo:
        fresh = set(below.get(todo.pop(), ())) - reached
        reached |= fresh
        todo += fresh
    return {number for number in reached if 0 <= number < len(listing.entries)}


@pytest.mark.parametrize("file", LISTINGS)
def test_everything_listed_can_be_installed(file: str) -> None:
    (listing,) = read_listings(str(path_of(ORACLES[file])))
    installed = [listing.entries[number].distribution for number in reachable(listing)]
    builds = {(each.name, each.version, str(each.source)) for each in installed}  # pixi lists some twice
    listed = [entry.distribution for entry in listing.entries]
    left = [each.name for each in listed if (each.name, each.version, str(each.source)) not in builds]
    assert left == (["scipy"] if "lorax__3ad7aaef__poetry" in file else [])  # optional there, and in no extra


@pytest.mark.parametrize("file", [file for file in LISTINGS if file.startswith("poetry.lock/")])
def test_what_poetry_calls_optional_needs_an_extra_and_nothing_else_does(file: str) -> None:
    packages = ORACLES[file]["packages"]
    if any(package["groups"] is not None for package in packages):
        pytest.skip("optional means something else since groups are in the lock")
    (listing,) = read_listings(str(path_of(ORACLES[file])))
    optional = {number for number, package in enumerate(packages) if package["optional"]}
    assert set(range(len(packages))) - reachable(listing, leave_out="extra") == optional


@pytest.mark.parametrize("file", [file for file in LISTINGS if "invalid" in ORACLES[file]["meta"]])
def test_skipped_lines_are_noted(file: str) -> None:
    path, oracle = str(path_of(ORACLES[file])), ORACLES[file]
    (listing,) = read_listings(path)
    nameless = [row["line"] for row in oracle["packages"] if row["name"] is None]
    wanted = sorted([*nameless, *(row["line"] for row in oracle["meta"]["invalid"])])
    noted = [int(note.removeprefix(f"{path}:").split(":")[0]) for note in listing.notes if "skipped" in note]
    assert sorted(noted) == wanted


@pytest.mark.parametrize(
    "file", [file for file in LISTINGS if file.endswith((".lock", "-lock.yml", "pylock.toml", "pyproject.toml"))]
)
def test_a_lock_is_complete_and_a_project_is_not(file: str) -> None:
    assert facts(file).get("distributions_complete", False) == (not file.endswith("pyproject.toml"))


@pytest.mark.parametrize("command", ["facts", "check"])
@pytest.mark.parametrize("file", UNREADABLE)
def test_what_cannot_be_read_is_said_in_one_line(
    file: str, command: str, compat: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    path = str(path_of(ORACLES[file]))
    done = compat(command, path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line == f"compat: {path}:2210: has an unresolved merge conflict"


FEATURES = {("FSDP", None): "fsdp", ("DEEPSPEED", 2): "zero-2", (None, 3): "zero-3"}


@pytest.mark.parametrize("file", SETTINGS)
def test_settings_of_a_launcher_are_read_as_the_oracle_reads_them(
    file: str, described: Callable[..., str], compat: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    data = ORACLES[file]["data"]
    (tmp_path / "train.py").touch()
    options = ["--config_file"] if "distributed_type" in data else ["--use_deepspeed", "--deepspeed_config_file"]
    done = compat("facts", described(), "--", "accelerate", "launch", *options, str(path_of(ORACLES[file])), "train.py")
    workload = json.loads(done.stdout)["workload"]
    stage = data.get("deepspeed_config") or data.get("zero_optimization") or {}
    assert FEATURES[data.get("distributed_type"), stage.get("zero_stage", stage.get("stage"))] in workload["features"]
    assert workload.get("processes") == data.get("num_processes")
    assert workload.get("precision") == data.get("mixed_precision")
