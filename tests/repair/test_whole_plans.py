"""A finished plan judged as a whole: what is found is learnt for all releases for which it would be found as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks import named_devices
from compat.model import Accelerator, Distribution, Environment, Source, Workload
from compat.repair.candidates import Release
from compat.repair.engine import cheapest_model
from compat.repair.inputs import problem_of
from compat.repair.problem import Policy
from compat.repair.relaxation import Relaxation
from compat.repair.target import Need
from compat.repair.whole_plans import WholePlans, environment_after, findings, to_fix
from compat.rules.compiled import Matrix, open_matrix

TORCH = tuple(Release("torch", version) for version in ("2.4.0", "2.5.1", "2.6.0", "2.7.0", "2.7.0+cu128", "2.8.0"))
OTHERS = {"trl": Release("trl", "0.17.0"), "numpy": Release("numpy", "1.26.4")}


def environment(gpu: str, torch: str = "2.5.1") -> Environment:
    listed = (Distribution("torch", torch), *(Distribution(each.name, each.version) for each in OTHERS.values()))
    devices = (Accelerator(name=gpu),)
    return named_devices(
        Environment(python="3.11", os="linux", machine="x86_64", accelerators=devices, distributions=listed)
    )[0]  # fmt: skip


def with_torch(version: str) -> dict[str, Release]:
    return {"torch": Release("torch", version), **OTHERS}


def test_a_torch_without_code_for_the_gpu_is_learnt_for_all_such_releases_at_once(matrix: Matrix) -> None:
    judge = WholePlans(environment("NVIDIA GeForce RTX 5090"), matrix, with_torch("2.5.1"))
    (learnt,) = judge(with_torch("2.5.1"), {"torch": TORCH})
    assert learnt.together == (("torch", frozenset({"2.4.0", "2.5.1", "2.6.0", "2.7.0"})),)
    assert learnt.level == "errors left"
    assert "no code for NVIDIA GeForce RTX 5090" in learnt.statement.text
    assert list(judge(with_torch("2.7.0"), {"torch": TORCH})) == [learnt]  # it is no news
    assert list(judge(with_torch("2.7.0+cu128"), {"torch": TORCH})) == []
    assert list(judge(with_torch("2.8.0"), {"torch": TORCH})) == []


def test_a_gpu_that_all_of_them_know_teaches_nothing(matrix: Matrix) -> None:
    judge = WholePlans(environment("NVIDIA A100-SXM4-80GB"), matrix, with_torch("2.5.1"))
    assert [list(judge(with_torch(each.version), {"torch": TORCH})) for each in TORCH] == [[]] * len(TORCH)


def test_a_line_that_fails_is_learnt_for_all_releases_that_have_it_at_once(matrix: Matrix, tmp_path: Path) -> None:
    """Two packages with dozens of releases each: learnt one release at a time, the search did not end."""
    script = tmp_path / "train.py"
    script.write_text("from trl import DPOTrainer\n")
    pins = {"trl": "0.12.0", "transformers": "5.0.0", "torch": "2.9.0", "peft": "0.13.0", "datasets": "3.0.0"}
    listed = tuple(Distribution(name, version) for name, version in pins.items())
    here = Environment(
        python="3.12", os="linux", distributions=listed, distributions_complete=True, workload=Workload(code=(str(script),))
    )
    chosen = {name: Release(name, version) for name, version in pins.items()}
    known = {
        name: tuple(Release(name, version) for version in versions)
        for name, versions in (
            ("trl", ("0.11.0", "0.12.0", "0.12.1", "0.24.0")),
            ("transformers", ("4.57.3", "5.0.0", "5.1.0")),
        )
    }
    learnt = [each.together for each in WholePlans(here, matrix, chosen)(chosen, known)]
    bad = (("trl", frozenset({"0.11.0", "0.12.0", "0.12.1"})), ("transformers", frozenset({"5.0.0", "5.1.0"})))
    assert bad in learnt


def test_without_other_releases_the_chosen_one_is_learnt(matrix: Matrix) -> None:
    judge = WholePlans(environment("NVIDIA GeForce RTX 5090"), matrix, with_torch("2.5.1"))
    (learnt,) = judge(with_torch("2.5.1"), {})
    assert learnt.together == (("torch", frozenset({"2.5.1"})),)


@pytest.mark.parametrize(("gpu", "expected"), [("NVIDIA GeForce RTX 5090", ["build-torch-gpu"]), ("Tesla T4", [])])
def test_findings_are_what_certainly_holds(matrix: Matrix, gpu: str, expected: list[str]) -> None:
    assert [each.rule for each in findings(environment(gpu), matrix)] == expected


def test_a_planned_environment_keeps_what_is_not_moved() -> None:
    own = Source("vcs", {"url": "https://git.example/trl"})
    unknown = Distribution("unsloth", None)
    before = Environment(
        python="3.11", distributions=(Distribution("trl", "0.17.0", source=own), Distribution("torch", "2.5.1"), unknown),
    )  # fmt: skip
    after = environment_after(
        before, {"trl": Release("trl", "0.17.0"), "torch": Release("torch", "2.6.0"), "triton": Release("triton", "3.2.0")}
    )
    found = {each.name: (each.version, each.source and each.source.kind) for each in after.distributions or ()}
    assert found == {
        "trl": ("0.17.0", "vcs"), "torch": ("2.6.0", "index"), "triton": ("3.2.0", "index"), "unsloth": (None, None),
    }  # fmt: skip
    assert after.python == "3.11"
    gone = environment_after(before, {"trl": Release("trl", "0.17.0")})
    assert [each.name for each in gone.distributions or ()] == ["trl", "unsloth"]


@pytest.mark.parametrize("torch", ["2.10.0", "2.11.0"])
def test_torchaudio_stays_on_the_index_of_a_torch_that_stays(torch: str) -> None:
    index = Source("index", {"url": "https://download.pytorch.org/whl/cu130"})
    before = Environment(distributions=tuple(
        Distribution(name, version, source=index) for name, version in (("torch", "2.10.0"), ("torchaudio", "2.11.0"))
    ))  # fmt: skip
    after = environment_after(before, {"torch": Release("torch", torch), "torchaudio": Release("torchaudio", "2.10.0")})
    (audio,) = (each for each in after.distributions or () if each.name == "torchaudio")
    assert (audio.source == index) is (torch == "2.10.0")


@pytest.mark.parametrize(("tokenizers", "possible"), [("0.21.4", False), ("0.22.1", True)])
def test_what_conda_installed_is_as_it_is(tokenizers: str, possible: bool) -> None:
    copies = (Distribution("tokenizers", tokenizers, source=Source("conda")), Distribution("transformers", "4.55.4"))
    environment = Environment(python="3.11", distributions=copies)
    problem = problem_of(environment, keep=("transformers>=4.57",), policy=Policy())
    old, new = problem.current["transformers"], Release("transformers", "4.57.1")
    needs = {old: {"": (Need("tokenizers", "<0.22", ()),)}, new: {"": (Need("tokenizers", ">=0.22", ()),)}}
    relaxation = Relaxation(problem, {"transformers": (old, new)}, needs)
    assert (cheapest_model(relaxation.clauses) is not None) is possible


def test_an_error_that_a_rule_and_the_source_tell_is_fixed_once() -> None:
    """As in what ``check`` prints: the missing name is in the title of the rule about the same packages."""
    there = Environment(
        python="3.11", os="linux", machine="x86_64",
        distributions=(Distribution("peft", "0.21.2"), Distribution("accelerate", "0.21.0"), Distribution("torch", "2.8.0")),
    )  # fmt: skip
    found = to_fix(findings(there, open_matrix()), Policy())
    rules = [each.rule for each in found if {"peft", "accelerate"} == set(each.packages)]
    assert rules == ["peft-needs-clear-device-cache"]
