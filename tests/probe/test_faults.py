"""Each injected fault is flagged, by the probe that looks for it, and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat.probe.request import FAILED, ProbeReport, ProbeResult
from tests.examples import slow
from tests.probe.conftest import needs

Probe = Callable[..., ProbeReport]

# fault, group, the probes that flag it, words of what they say
NUMBERS = [
    ("flipped-bit", "matmul", {"fp32", "bf16", "fp16"}, "exact arithmetic gives"),
    ("fp16-accumulation", "matmul", {"fp16"}, "its sums are kept in a type that is too short"),
    ("tf32", "matmul", {"fp32"}, "exact arithmetic gives"),
    ("nan", "matmul", {"fp32", "bf16", "fp16"}, "is nan"),
    ("wrong-device", "matmul", {"fp32", "bf16", "fp16"}, "on meta"),
    ("wrong-type", "matmul", {"fp32"}, "came back as torch.bfloat16"),
    ("unstable", "matmul", {"fp32", "bf16", "fp16"}, ""),
    ("ragged", "matmul", {"fp32", "bf16", "fp16"}, "ragged"),
    ("strides", "matmul", {"fp32", "bf16", "fp16"}, "transposed"),
    ("batch", "matmul", {"fp32", "bf16", "fp16"}, "in a batch"),
    ("rotary-own-offset", "rotary", {"eager-angles"}, "position"),
    ("rotary-own-sign", "rotary", {"eager-half", "eager-interleaved"}, "float64 gives"),
    ("rotary-keys", "rotary", {"eager-half", "eager-interleaved", "eager-lengths"}, ""),
    ("attention-causal", "attention", {"sdpa-math", "sdpa-flash", "sdpa-default"}, "causal"),
    ("attention-groups", "attention", {"sdpa-math", "sdpa-flash", "sdpa-default"}, "8 and 2 heads"),
    ("attention-padding", "attention", {"sdpa-padding"}, "lengths"),
    ("attention-scale", "attention", {"sdpa-math", "sdpa-flash", "sdpa-default", "sdpa-padding"}, "rounding explains"),
]
STACK = [  # one for each of what is compared; the eager rotations above have a wrong sign and wrong angles as well
    pytest.param("rotary-sign", {"transformers-half"}, "float64 gives", marks=slow, id="rotary-sign"),
    ("rotary-halves", {"transformers-half"}, "float64 gives"),
    ("rotary-gradient", {"transformers-half"}, "gradients"),
    ("rotary-stale", {"transformers-angles"}, "position"),
    pytest.param("rotary-bf16-angles", {"transformers-angles"}, "position", marks=slow, id="rotary-bf16-angles"),
    ("rotary-short", {"transformers-lengths"}, "1035 tokens with cos and sin of 1034 rows"),
]
ENDS = [
    pytest.param("hang", "did not finish within", marks=slow),
    pytest.param("exit", "exit code 3", marks=slow),
    ("exit-0", "exit code 0"),
    ("segfault", "SIGSEGV"),
    pytest.param("killed", "SIGKILL", marks=slow),
    ("memory", "allocate memory"),
]


def flagged(report: ProbeReport, group: str) -> dict[str, ProbeResult]:
    return {each.probe.partition("/")[2]: each for each in report.results if each.status == FAILED and each.group == group}


@pytest.mark.parametrize(("fault", "group", "probes", "words"), NUMBERS, ids=[case[0] for case in NUMBERS])
def test_a_wrong_number(probed: Probe, fault: str, group: str, probes: set[str], words: str) -> None:
    report = probed(group, fault=fault, depth="quick")
    found = flagged(report, group)
    assert set(found) == probes
    assert all(words in result.why for result in found.values())
    assert report.exit == 1


@pytest.mark.parametrize(("fault", "probes", "words"), STACK)
def test_a_wrong_rotation_of_the_stack(probed: Probe, fault: str, probes: set[str], words: str) -> None:
    needs("transformers")
    found = flagged(probed("rotary/transformers", fault=fault), "rotary")
    assert set(found) == probes
    assert all(words in result.why for result in found.values())


@pytest.mark.parametrize(("fault", "words"), ENDS)
def test_an_end_in_the_middle_of_a_group(probed: Probe, fault: str, words: str) -> None:
    """The probe under way is the failed one; those before and after it have their verdicts all the same."""
    limit = 25.0 if fault == "hang" else 600.0
    report = probed("rotary", "attention", fault=fault, depth="quick", limit=limit)
    found = flagged(report, "attention")
    assert "sdpa-math" in found
    assert words in found["sdpa-math"].why
    assert report.exit == 1
    assert any(result.probe == "rotary/eager-half" and result.status == "passed" for result in report.results)
    if fault == "segfault":
        assert any("attention.py" in word for word in found["sdpa-math"].last_words)
    if fault != "hang":  # which takes all of the time there is
        assert set(found) == {"sdpa-math", "sdpa-flash", "sdpa-default", "sdpa-padding"}


@pytest.mark.parametrize(
    ("fault", "words"),
    [("import-fails", "libcudart.so.12"), ("import-crashes", "SIGABRT"), ("import-hangs", "did not finish within")],
)
def test_a_torch_that_cannot_be_imported(probed: Probe, fault: str, words: str) -> None:
    report = probed("matmul", "attention", fault=fault, limit=5.0 if fault == "import-hangs" else 600.0)
    (result,) = report.results
    assert (result.probe, result.status, report.exit) == ("torch/import", FAILED, 1)
    assert words in result.why


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("rank-other-data", "all-reduce of 4096 numbers on rank 0: element 100 is"),
        ("rank-order", "all-gather of 1 numbers on rank 0, part 0"),
        ("rank-hangs", "did not finish within"),
        ("rank-dies", "rank 1 of 2 ended with signal 6"),
    ],
)
def test_a_rank_that_goes_its_own_way(probed: Probe, fault: str, words: str) -> None:
    found = flagged(probed("devices/collectives", fault=fault, limit=24.0 if fault == "rank-hangs" else 600.0), "devices")
    assert set(found) == {"collectives"}
    assert words in found["collectives"].why


def test_a_replica_that_gets_no_share(probed: Probe) -> None:
    found = flagged(probed("devices/dataparallel", fault="replica-dropped"), "devices")
    assert "its 2 replicas got [3]" in found["dataparallel"].why


def test_the_silent_bug_of_the_trainer(probed: Probe) -> None:
    needs("transformers", "accelerate")
    found = flagged(probed("devices/trainer-dataparallel", fault="num-items"), "devices")
    assert set(found) == {"trainer-dataparallel"}
    assert (
        "of a batch of 6 rows, nn.DataParallel gave its 2 replicas [3]: 3 rows reached none"
        in found["trainer-dataparallel"].why
    )


@pytest.mark.parametrize(
    ("fault", "launcher", "words"),
    [
        pytest.param("trainer-other-data", "torchrun", "rank 1 saw rows", marks=slow),
        ("trainer-unsynced", "torchrun", "the loss of step 2 is"),
        ("trainer-nan", "python", "the loss of step 1 is"),
    ],
)
def test_a_trainer_that_learns_something_else(probed: Probe, fault: str, launcher: str, words: str) -> None:
    needs("transformers", "accelerate", "trl", "datasets")
    found = flagged(probed("trainer", fault=fault, launcher=launcher), "trainer")
    assert set(found) == {"sft"}
    assert words in found["sft"].why
