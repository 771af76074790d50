"""``compat why`` and ``compat suggest`` in real processes, against a package index on this machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.index.server import IndexServer

pytest.importorskip("clingo")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def release(day: str, *requires: str) -> dict[str, object]:
    return {"uploaded": f"{day}T00:00:00Z", "requires": list(requires), "requires_python": ">=3.9"}


PACKAGES = {
    "torch": {"2.6.0": release("2025-01-29"), "2.7.0": release("2025-04-23")},
    "transformers": {
        "4.51.3": release("2025-04-14", "tokenizers<0.22,>=0.21"), "4.56.2": release("2025-09-17", "tokenizers<=0.23,>=0.22"),
        "4.57.1": release("2025-10-14", "tokenizers<=0.23,>=0.22"),
    },
    "tokenizers": {"0.21.1": release("2025-03-13"), "0.22.1": release("2025-09-19")},
    "trl": {
        "0.17.0": release("2025-04-25", "transformers>=4.46.0", "accelerate>=0.34"),
        "0.24.0": release("2025-10-16", "transformers<4.57,>=4.56.1", "accelerate>=1.4.0"),
    },
    "accelerate": {"1.6.0": release("2025-04-01", "torch>=2.0"), "1.11.0": release("2025-10-20", "torch>=2.0")},
}  # fmt: skip
PINS = "torch==2.6.0\ntransformers==4.51.3\ntrl==0.17.0\naccelerate==1.6.0\ntokenizers==0.21.1\n"


@pytest.fixture
def index() -> Iterator[IndexServer]:
    with IndexServer(PACKAGES) as server:
        yield server


@pytest.fixture
def ask(compat: Run, tmp_path: Path, index: IndexServer) -> Run:
    (tmp_path / "requirements.txt").write_text(PINS)

    def run(*words: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
        own = {"COMPAT_CACHE_DIR": str(tmp_path / "cache"), "UV_CACHE_DIR": str(tmp_path / "uv-cache"), "PIP_RETRIES": "0"}
        return compat(*words, "--python-version", "3.11", "--index-url", url or index.url, **own)

    return run


def test_who_asks_for_a_package_and_what_moves_with_it(ask: Run) -> None:
    done = ask("why", "tokenizers", "requirements.txt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "tokenizers 0.21.1",
        "  required by   transformers 4.51.3: tokenizers<0.22,>=0.21",
        "  to move to 0.22.1:",
        "    tokenizers  0.21.1 → 0.22.1",
        "    transformers  4.51.3 → 4.56.2",
    ]


def test_requirements_of_extras_are_apart(ask: Run, index: IndexServer) -> None:
    old = "tokenizers==0.20; extra == 'benchmarks'"
    index.add("trl", {"0.17.0": release("2025-04-25", "transformers>=4.46.0", "accelerate>=0.34", "tokenizers", old)})
    assert ask("why", "tokenizers", "requirements.txt").stdout.splitlines()[1:4] == [
        "  required by   transformers 4.51.3: tokenizers<0.22,>=0.21",
        "  required by   trl 0.17.0: tokenizers",
        "  only if the extra is requested: trl 0.17.0: benchmarks (tokenizers==0.20)",
    ]


def test_a_move_that_cannot_be_made_says_what_stands_against_it(ask: Run) -> None:
    done = ask("why", "tokenizers", "requirements.txt", "--to", "0.30")
    assert done.returncode == 0, done.stderr
    assert "cannot move to 0.30" in done.stdout
    assert "tokenizers==0.30" in done.stdout


def test_what_is_the_newest_already(ask: Run) -> None:
    assert "2.7.0: it is the current version" not in ask("why", "torch", "requirements.txt").stdout
    assert "no other package requires it" in ask("why", "trl", "requirements.txt").stdout


@pytest.mark.parametrize(
    ("words", "message"), [((), "expected the name of a package"), (("flax",), "flax is not among the packages")]
)
def test_a_package_that_is_not_there_is_said_so(ask: Run, words: tuple[str, ...], message: str) -> None:
    done = ask("why", *words, *(("requirements.txt",) if words else ()))
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_pins_from_nothing_are_as_new_as_they_go_together(ask: Run) -> None:
    done = ask("suggest", "--task", "sft", "--with", "trl")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "accelerate==1.11.0", "tokenizers==0.22.1", "torch==2.7.0", "transformers==4.56.2", "trl==0.24.0",
    ]  # fmt: skip
    assert "and with uv pip compile" in done.stdout


def test_a_rule_keeps_what_is_bad_out(ask: Run) -> None:
    """Under nn.DataParallel transformers 4.56.2 loses data in silence, and trl 0.24.0 takes no other one here."""
    done = ask("suggest", "--task", "sft", "--launcher", "python", "--gpu", "A100:2", "--with", "trl", "--format", "json")
    plan = json.loads(done.stdout)["plan"]
    pins = {each["name"]: each["to"] for each in plan["changes"]}
    assert pins["transformers"] == "4.57.1"
    assert pins["trl"] == "0.17.0"
    assert not plan["left"]


def test_what_cannot_be_had_together_is_told(ask: Run) -> None:
    done = ask("suggest", "--with", "trl==0.24.0,transformers==4.51.3")
    assert done.returncode == 1
    assert "trl 0.24.0 requires transformers<4.57,>=4.56.1" in done.stdout
    assert not [line for line in done.stdout.splitlines() if not line.startswith("#")]


def test_an_index_that_is_down_decides_nothing(ask: Run) -> None:
    for words in (("suggest", "--with", "trl"), ("why", "trl", "requirements.txt")):
        done = ask(*words, url="http://127.0.0.1:9/simple/")
        assert done.returncode == 3
        assert not done.stdout
        assert done.stderr.startswith("compat: undecided: ")
        assert done.stderr.count("\n") == 1


def test_nothing_to_suggest_for(ask: Run) -> None:
    done = ask("suggest", "--gpu", "H100")
    assert done.returncode == 2
    assert "nothing to suggest" in done.stderr


def test_nothing_for_cuda_is_suggested_where_there_is_none(ask: Run, index: IndexServer) -> None:
    """A processor gets torch's build for processors with the line for its index; an AMD GPU none of the index's torch."""
    index.add("nvidia-cublas-cu12", {"12.8": release("2025-01-01")})
    index.add("torch", {"2.8.0": release("2025-08-06", "nvidia-cublas-cu12==12.8", "triton==3.4.0")})
    index.add("triton", {"3.4.0": release("2025-07-01")})
    vendor = "http://127.0.0.1:9/whl"
    lines = ask("suggest", "--with", "accelerate", "--gpu", "none", "--torch-index", vendor).stdout.splitlines()
    assert f"--extra-index-url {vendor}/cpu" in lines
    assert [line for line in lines if line[0] not in "#-"] == ["accelerate==1.11.0", "torch==2.8.0+cpu"]
    lines = ask("suggest", "--with", "accelerate", "--gpu", "MI300X").stdout.splitlines()
    assert [line for line in lines if line[0] not in "#-"] == ["accelerate==1.11.0"]
    assert any("install torch first" in line for line in lines)
    for gpu, platform in (("MI300X", "ROCm"), ("none", "the CPU")):
        refused = ask("suggest", "--with", "vllm", "--gpu", gpu)
        assert refused.returncode == 2
        assert f"vllm: the index only has wheels for CUDA; use an image or a build for {platform}" in refused.stderr


def test_an_apple_accelerator_means_macos(ask: Run) -> None:
    done = ask("suggest", "--with", "trl", "--gpu", "Apple M3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("# for Python 3.11; macOS arm64; Metal\n")


def test_extras_between_what_is_asked_for_are_respected(ask: Run, index: IndexServer) -> None:
    """trl takes an older peft for its own extra, which is what somebody wants who names both."""
    index.add("peft", {"0.1": release("2025-01-01"), "0.2": release("2025-02-01")})
    index.add("trl", {"0.25.0": release("2025-11-01", "peft<0.2; extra == 'peft'")})
    lines = ask("suggest", "--with", "trl,peft").stdout.splitlines()
    assert {"peft==0.1", "trl==0.25.0"} <= set(lines) or {"peft==0.2", "trl==0.24.0"} <= set(lines)
