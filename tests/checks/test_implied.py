"""Releases that a partial description implies, and the questions they raise."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import compat
from compat.checks import check_environment
from compat.checks.implied_releases import implied_by, newest_by
from compat.checks.questions import likelihood
from compat.model import Accelerator, Distribution, Environment, Finding, Source, Workload
from compat.records import replace
from compat.rules.compiled import open_matrix
from compat.tables.declared import open_declared
from compat.versions import is_final, key_of


def environment(
    *, complete: bool = False, os: str = "linux", machine: str | None = None, python: str | None = "3.11", **packages: str
) -> Environment:
    copies = tuple(Distribution(name.replace("_", "-"), version) for name, version in packages.items())
    return Environment(os=os, machine=machine, python=python, distributions=copies, distributions_complete=complete)


def versions(here: Environment) -> dict[str, str]:
    return {name: each.version for name, each in implied_by(here, open_declared()).items()}


def questions(here: Environment) -> dict[str, Finding]:
    return {each.rule: each for each in check_environment(here, open_matrix(()))[1] if each.verdict == "possible"}


def test_pins_are_followed_and_open_requirements_are_not() -> None:
    found = versions(environment(vllm="0.10.0"))
    assert (found["torch"], found["triton"]) == ("2.7.1", "3.3.1")
    assert "vllm" not in found
    assert "transformers" not in found


def test_what_is_listed_is_not_implied() -> None:
    assert "triton" not in versions(environment(torch="2.9.1", triton="3.4.0"))


def test_markers_of_another_system_imply_nothing() -> None:
    assert "triton" not in versions(environment(os="windows", torch="2.9.1"))


@pytest.mark.parametrize(
    ("torch", "cublas"),
    [
        ("2.3.0", "12.1.3.1"), ("2.3.0+cu121", "12.1.3.1"), ("2.5.1+cu124", "12.4.5.8"),
        ("2.3.0+cu118", None), ("2.5.1+cu121", None), ("2.3.0+cpu", None), ("2.7.0+rocm6.3", None),
    ],
)  # fmt: skip
def test_a_torch_for_another_cuda_pins_other_libraries(torch: str, cublas: str | None) -> None:
    assert versions(environment(torch=torch)).get("nvidia-cublas-cu12") == cublas


def test_pins_that_differ_by_interpreter_imply_nothing_where_it_is_unknown() -> None:
    assert "numba" not in versions(environment(python=None, vllm="0.10.0"))
    assert versions(environment(python="3.11", vllm="0.10.0"))["numba"] == "0.61.2"


def test_a_complete_list_implies_nothing() -> None:
    assert versions(environment(torch="2.9.1", complete=True)) == {}


def test_a_pin_makes_a_question_of_a_rule_and_never_a_hit() -> None:
    here = replace(environment(sglang="0.5.8", torch="2.9.1"), workload=Workload(model="Qwen/Qwen2.5-VL-7B-Instruct"))
    asked = questions(here)["sglang-cudnn-conv3d-check"]
    assert asked.packages["nvidia-cudnn-cu12"] is None
    assert asked.unknown == ("distributions.nvidia-cudnn-cu12",)
    assert asked.here.endswith("nvidia-cudnn-cu12 9.10.2.21, which torch 2.9.1 requires")
    assert asked.likelihood == 0.8


def selected(here: Environment) -> dict[str, str]:
    declared = open_declared()
    return {name: each.version for name, each in newest_by(here, implied_by(here, declared), declared).items()}


def test_an_installer_selects_the_newest_release_that_the_others_accept() -> None:
    found = selected(environment(machine="x86_64", python="3.11", bitsandbytes="0.45.0"))
    torch = open_declared().package("torch")
    assert torch is not None
    place = torch.place(found["torch"])
    assert place is not None
    (accepted,) = [row[0] for row in torch.requirements(place, "triton")]
    assert found["triton"] in SpecifierSet(accepted)
    listed = (Distribution("transformers", None), Distribution("tokenizers", "0.13.3"))
    older = selected(Environment(os="linux", python="3.11", distributions=listed))
    assert older["transformers"] == "4.33.3"  # the last release that accepts this tokenizers


def test_pre_releases_and_releases_for_another_python_are_not_selected() -> None:
    newest, older = (selected(environment(python=python, trl="0.9.6"))["transformers"] for python in ("3.12", "3.9"))
    assert key_of(older) < key_of(newest)
    assert is_final(key_of(newest))


def test_a_file_is_asked_about_what_a_new_installation_gets(tmp_path: Path) -> None:
    rule = "vllm-all-special-tokens-extended"
    asked = asked_about(tmp_path, "vllm==0.7.2\n")
    assert asked[rule].here.startswith("vllm 0.7.2; transformers 5.")
    assert asked[rule].here.endswith(", which an installer selects for vllm 0.7.2")
    assert rule not in asked_about(tmp_path, "vllm==0.7.2\ntransformers<5\n")
    assert rule in asked_about(tmp_path, "vllm==0.7.2\ntransformers\n")


def test_releases_between_which_nothing_is_pinned_raise_no_question(tmp_path: Path) -> None:
    asked = asked_about(tmp_path, "trl>=0.9\ntransformers>=4.40\n")
    assert not any("an installer selects" in each.here for each in asked.values())


def test_an_installed_environment_is_not_taken_for_a_new_installation() -> None:
    assert likelihood(questions(environment(vllm="0.7.2"))["vllm-all-special-tokens-extended"]) == 0


def test_a_few_listed_releases_are_taken_to_be_installed_soon_after_the_newest_of_them() -> None:
    rule = "datasets-fsspec-local-protocol"
    soon = questions(replace(environment(datasets="2.10.1"), workload=Workload(task="sft")))[rule]  # fsspec broke it in months
    assert soon.here.startswith("datasets 2.10.1; fsspec 2023.")
    assert soon.packages == {"datasets": "2.10.1", "fsspec": None}
    assert 0.25 <= likelihood(soon) < 0.5
    much_later = questions(environment(vllm="0.4.2"))  # transformers 5 was published after 20 months
    assert not any("transformers" in each.packages and likelihood(each) > 0 for each in much_later.values())


def test_an_image_contains_what_its_distributions_require() -> None:
    inside = Environment(os="linux", distributions=(Distribution("datasets", "2.10.1", Source("image")),))
    assert likelihood(questions(inside)["datasets-fsspec-local-protocol"]) == 0


def test_a_long_list_would_name_what_it_conflicts_with() -> None:
    others = dict.fromkeys(("rich", "tqdm", "psutil", "regex", "xxhash", "dill", "multiprocess", "pandas"), "1.0")
    assert likelihood(questions(environment(datasets="2.10.1", **others))["datasets-fsspec-local-protocol"]) == 0


def test_releases_of_a_later_day_are_not_selected() -> None:
    declared = open_declared()
    transformers = declared.package("transformers")
    assert transformers is not None
    day = transformers.day("4.50.0")
    found = newest_by(environment(trl="0.9.6"), {}, declared, day)
    assert found["transformers"].version == "4.50.0"


def asked_about(folder: Path, text: str) -> dict[str, Finding]:
    file = folder / "requirements.txt"
    file.write_text(text)
    return {each.rule: each for each in compat.check(file).findings if each.verdict == "possible"}


def test_vllm_from_an_image_without_a_name_is_that_of_the_project() -> None:
    here = Environment(
        os="linux",
        accelerators=(Accelerator(name="NVIDIA GeForce RTX 5070 Ti"),),
        distributions=(Distribution("vllm", "0.10.0", Source("image")),),
    )
    asked = questions(here)["build-torch-gpu"]
    assert asked.here.endswith("torch 2.7.1, which the image of vllm 0.10.0 contains")
    assert (asked.verdict, asked.likelihood) == ("possible", 0.8)
    named = Distribution("vllm", "0.10.0", Source("image", {"image": "someone/vllm:0.10.0"}))
    assert "build-torch-gpu" not in questions(replace(here, distributions=(named,)))
    newer = Distribution("vllm", "0.10.1", Source("image"))
    assert "build-torch-gpu" not in questions(replace(here, distributions=(newer,)))


def pinned_torch(text: str, folder: Path, name: str = "requirements.txt") -> list[Finding]:
    (folder / name).write_text(text)
    report = compat.check(folder / name, gpu="RTX 5090")
    return [each for each in report.findings if each.rule.startswith("build-") and each.severity == "error"]


def test_the_torch_that_a_release_pins_is_judged_on_the_machine(tmp_path: Path) -> None:
    """vllm 0.5.1 requires torch 2.3.0, which has no code for the GPU: an installer takes no other one."""
    (finding,) = pinned_torch("vllm==0.5.1\n", tmp_path)
    assert (finding.rule, finding.verdict) == ("build-torch-gpu", "hit")
    assert finding.location is not None
    assert finding.location.line == 1
    assert finding.here.endswith("as vllm 0.5.1 requires torch==2.3.0")
    assert [fix.command for fix in finding.fixes] == ['pip install "torch>=2.8.0" "vllm>=0.10.2"']


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("vllm==0.10.2\n", "requirements.txt"),  # whose torch has code for it
        ("vllm>=0.5.1\n", "requirements.txt"),
        ("FROM ubuntu:22.04\nRUN pip install --no-deps vllm==0.5.1\n", "Dockerfile"),
        ("vllm @ git+https://github.com/vllm-project/vllm@v0.5.1\n", "requirements.txt"),
    ],
)
def test_a_torch_that_may_be_another_one_is_no_error(text: str, name: str, tmp_path: Path) -> None:
    assert pinned_torch(text, tmp_path, name) == []


def test_one_error_about_the_machine_is_enough_for_a_release_and_its_torch(tmp_path: Path) -> None:
    assert [each.rule for each in pinned_torch("vllm==0.7.2\n", tmp_path)] == ["build-vllm-gpu"]
