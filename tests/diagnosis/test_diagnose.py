"""Tracebacks of the founding bugs, and those that only look like them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., str]

SITE = "/home/u/.venv/lib/python3.11/site-packages"


def traceback(error: str, *frames: tuple[str, str], prefix: str = "") -> str:
    lines = ["Traceback (most recent call last):", '  File "/home/u/train.py", line 40, in <module>', "    trainer.train()"]
    for number, (file, function) in enumerate(frames):
        lines += [f'  File "{SITE}/{file}", line {100 + number}, in {function}', "    some(code)"]
    return "\n".join(prefix + line for line in [*lines, error]) + "\n"


STEP = ("transformers/trainer.py", "training_step")
CHUNK = traceback(
    "RuntimeError: chunk expects at least a 1-dimensional tensor",
    STEP, ("torch/nn/parallel/data_parallel.py", "forward"), ("torch/nn/parallel/scatter_gather.py", "scatter"),
)  # fmt: skip
ACCURACY = traceback(
    "RuntimeError: The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0",
    STEP, ("trl/trainer/sft_trainer.py", "compute_loss"),
)  # fmt: skip
GATHER = traceback(
    "TypeError: 'int' object is not iterable",
    STEP, ("trl/trainer/sft_trainer.py", "compute_loss"), ("accelerate/utils/operations.py", "_gpu_gather_object"),
    prefix="[rank1]: ",
)  # fmt: skip
ROTARY = traceback(
    "RuntimeError: The size of tensor a (1034) must match the size of tensor b (1035) at non-singleton dimension 2",
    ("trl/trainer/grpo_trainer.py", "_prepare_inputs"), ("transformers/generation/utils.py", "generate"),
    ("transformers/models/qwen2/modeling_qwen2.py", "apply_rotary_pos_emb"),
)  # fmt: skip
DEVICE = traceback(
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0! (when checking)",
    ("trl/trainer/grpo_trainer.py", "__init__"), ("vllm/worker/model_runner.py", "capture_model"),
    ("vllm/model_executor/layers/vocab_parallel_embedding.py", "forward"),
)  # fmt: skip
MISTRAL = (
    "torch._dynamo.exc.TorchRuntimeError: Failed running call_function <built-in method matmul>(*(FakeTensor(...))):\n"
    "a and b must have same reduction dim, but got [s0, 32000] X [4096, 32000].\n"
)
BAD_WEEK = {"trl": {"kind": "vcs", "commit": "e3244d2d096ff1e2e248c931d06d39e165e20623"}}


def findings(run: Run, text: str, *words: str) -> list[dict[str, Any]]:
    done = run("diagnose", "-", *words, "--format", "json", stdin=text)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["findings"]  # type: ignore[no-any-return]


FOUND = [
    (CHUNK, {"transformers": "4.50.3"}, {}, "transformers-dataparallel-scalar-num-items"),
    (ACCURACY, {"transformers": "4.51.3", "trl": "0.17.0"}, {}, "trl-sft-dataparallel-accuracy"),
    (GATHER, {"trl": "0.16.0.dev0"}, {"sources": BAD_WEEK}, "trl-sft-gather-for-metrics-int"),
    (ROTARY, {"transformers": "4.48.1"}, {}, "transformers-rotary-length-synced-generation"),
    (DEVICE, {"trl": "0.14.0", "vllm": "0.6.6.post1"}, {}, "trl-grpo-vllm-second-device"),
]


@pytest.mark.parametrize(("text", "packages", "more", "rule"), FOUND)
def test_an_error_with_fitting_packages_is_a_hit(
    compat: Run, described: Write, text: str, packages: dict[str, str], more: Any, rule: str
) -> None:
    """Nothing is said about launch or workload: the error itself shows them."""
    first, *_ = findings(compat, text, "--environment", described(packages, **more))
    assert (first["rule"], first["verdict"], first["missing"]) == (rule, "hit", [])


@pytest.mark.parametrize(
    ("text", "rule"), [(text, rule) for text, _, _, rule in FOUND] + [(MISTRAL, "unsloth-grpo-mistral-logits")]
)
def test_without_an_environment_the_error_is_a_question(compat: Run, text: str, rule: str) -> None:
    found = findings(compat, text)
    assert rule in {finding["rule"] for finding in found}
    assert {finding["verdict"] for finding in found} == {"possible"}
    assert all("distributions" in finding["missing"] for finding in found)


@pytest.mark.parametrize(
    ("text", "packages"),
    [
        (CHUNK, {"transformers": "4.49.0"}),
        (ACCURACY, {"transformers": "4.57.6", "trl": "0.24.0"}),
        (DEVICE, {"trl": "0.16.0", "vllm": "0.8.3"}),
    ],
)
def test_versions_that_cannot_produce_the_frames_are_named(
    compat: Run, described: Write, text: str, packages: dict[str, str]
) -> None:
    first, *_ = findings(compat, text, "--environment", described(packages))
    assert first["verdict"] == "possible"
    assert "this environment cannot produce it" in first["why"]
    name, version = next(iter(packages.items()))
    assert f"{name} {version} is outside" in first["why"]
    assert first["fixes"][0]["text"].startswith("find the copy that ran")


def test_fixes_for_the_environment_that_ran_are_shown_unless_this_one_has_them(compat: Run, described: Write) -> None:
    error = "TypeError: _get_per_token_logps() takes 5 positional arguments but 6 were given\n"

    def fixes(release: str) -> list[str | None]:
        environment = described({"unsloth": release, "trl": "0.19.1"})
        (finding, *_) = findings(compat, error, "--environment", environment)
        assert (finding["rule"], finding["verdict"]) == ("unsloth-grpo-logps-arguments", "possible")
        return [fix["spec"] for fix in finding["fixes"]]

    assert fixes("2025.7.1") == [None, ">=2025.7.3,<2026.9.12"]
    assert fixes("2025.7.5") == [None, ">=2025.5.8,<2025.7.2,!=2025.6.3"]


@pytest.mark.parametrize(
    "text",
    [
        # the same words elsewhere: another dimension, another relation of the numbers, another place
        ACCURACY.replace("dimension 0", "dimension 1"),
        ACCURACY.replace("tensor b (4)", "tensor b (3)"),
        ACCURACY.replace("trl/trainer/sft_trainer.py", "mymodel/loss.py"),
        ROTARY.replace("1035", "1036"),
        ROTARY.replace("transformers/generation/utils.py", "mytool/run.py"),
        GATHER.replace("accelerate/utils/operations.py", "mytool/gather.py"),
        DEVICE.replace("vllm/worker", "trl/x").replace("vllm/model_executor/layers", "trl/y"),
        CHUNK.replace("RuntimeError", "ValueError"),
        MISTRAL.replace("X [4096, 32000]", "X [4096, 4096]"),
        "KeyError: 'input_ids'\n",
    ],
)
def test_the_same_words_of_another_bug_are_not_matched(compat: Run, text: str) -> None:
    assert [each["rule"] for each in findings(compat, text) if each["origin"] == "rule"] == []


@pytest.mark.parametrize(
    ("packages", "work", "said"),
    [
        ({"unsloth": "2025.9.1"}, {"task": "grpo", "model": "mistral"}, "unsloth 2025.9.1 is outside"),
        ({"unsloth": "2025.2.15"}, {"task": "grpo", "model": "gpt-oss"}, "does not hold here: model is mistral"),
        ({"unsloth": "2025.2.15"}, {"task": "sft", "model": "mistral"}, "although task sft is stated"),
        ({"unsloth": "2025.2.15"}, {"task": "grpo", "model": "mistral"}, None),
    ],
)
def test_what_contradicts_a_message_is_named(compat: Run, described: Write, packages: Any, work: Any, said: str | None) -> None:
    path = described(packages, sources={"unsloth": "index"}, workload=work)
    (finding,) = findings(compat, MISTRAL, "--environment", path)
    assert (finding["rule"], finding["verdict"]) == ("unsloth-grpo-mistral-logits", "possible" if said else "hit")
    assert (said or "") in f"{finding['why']} {finding['here']}"


@pytest.mark.parametrize("work", [{}, {"task": "import"}, {"task": "serve", "launcher": "torchrun"}])
def test_a_message_proves_its_feature(compat: Run, described: Write, work: Any) -> None:
    """No default of a rule and nothing stated about the launch denies what the text shows."""
    text = "RuntimeError: Dataset scripts are no longer supported, but found superb.py\n"
    assert [each["rule"] for each in findings(compat, text)] == ["datasets4-no-scripts"]
    (finding,) = findings(compat, text, "--environment", described({"datasets": "4.0.0"}, workload=work))
    assert (finding["rule"], finding["packages"]) == ("datasets4-no-scripts", {"datasets": "4.0.0"})


def test_a_bug_that_fits_hides_those_that_cannot_have_happened(compat: Run, described: Write) -> None:
    path = described({"transformers": "4.50.3"}, workload={"task": "grpo", "features": ["zero-3", "no-cache"]})
    assert [f["rule"] for f in findings(compat, ROTARY, "--environment", path)] == ["transformers-rotary-length-without-cache"]


def test_versions_the_text_names_count_and_contradictions_are_said(compat: Run, described: Write) -> None:
    text = "- `transformers` version: 4.50.3\n- `trl` version: 0.15.2\n\n" + CHUNK
    first, *_ = findings(compat, text)
    assert (first["verdict"], first["packages"]) == ("hit", {"transformers": "4.50.3"})
    report = json.loads(
        compat("diagnose", "-", "--environment", described({"transformers": "4.57.6"}), "--format", "json", stdin=text).stdout
    )
    assert any("the text names transformers 4.50.3, but the environment has 4.57.6" in note for note in report["notes"])


def test_an_unknown_error_gives_search_terms_and_no_guess(compat: Run) -> None:
    text = traceback(
        "ValueError: cannot reshape array of size 123 into shape (4, 5) at 0x7ffe12",
        ("peft/mapping.py", "get"),
        ("torch/x.py", "f"),
    )
    done = compat("diagnose", "-", stdin=text)
    assert done.returncode == 0
    flat = " ".join(done.stdout.split())
    assert "no rule matches the main error (line 8): ValueError: cannot reshape" in flat
    assert 'search for: "ValueError" "cannot reshape array of size" "into shape" (in the issues of peft and torch)' in flat
    assert "No rule explains this text." in flat


@pytest.mark.parametrize(
    ("text", "found", "noted"),
    [
        (traceback("ValueError: cannot reshape array of size 123", ("peft/mapping.py", "get")) + "peft==0.15.0 torch==2.6.0\n",
         ["peft 0.15.0 has later patch releases, up to 0.15.2"], []),
        ("bitsandbytes 0.47.1.dev0 is fine. torch 2.6.0\nThe loss jumps\n", [], []),
        ("torchao 0.13.0\nThe weights are garbage after the conversion\n", [], []),
        ("accelerate 1.10.0\nThe batches are of another size in the second epoch\n",
         ["accelerate 1.10.0 has later patch releases, up to 1.10.1"], []),
        ("vllm 0.8.5, trl 0.17.0\nThe server answers nothing after the first request\n",
         [], ["vllm 0.8.5 has later patch releases, up to 0.8.5.post1"]),
        (traceback("ValueError: cannot reshape array of size 123", ("peft/mapping.py", "get")) + "peft==0.15.2 torch==2.6.0\n",
         [], []),
    ],
)  # fmt: skip
def test_later_patch_releases_are_the_first_to_try(compat: Run, text: str, found: list[str], noted: list[str]) -> None:
    report = json.loads(compat("diagnose", "-", "--format", "json", stdin=text).stdout)
    assert [each["title"] for each in report["findings"] if each["rule"] == "later-patch"] == found
    assert [each.partition(":")[0] for each in report["notes"] if "patch releases" in each] == noted


def test_text_without_any_error_says_so(compat: Run) -> None:
    assert "no error found" in " ".join(compat("diagnose", "-", stdin="loss 0.3\nloss 0.2\n").stdout.split())
    empty = compat("diagnose", "-", stdin=" \n")
    assert (empty.returncode, empty.stderr) == (2, "compat: the text is empty: expected a traceback or a log\n")


def test_binary_noise_is_no_error_of_ours(compat: Run, tmp_path: Any) -> None:
    (tmp_path / "log").write_bytes(b"\xff\xfe\x00" * 100)
    done = compat("diagnose", str(tmp_path / "log"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_signature_that_lives_of_its_frames_needs_them(compat: Run) -> None:
    """Every TypeError has some message: without frames it is nobody's."""
    text = "peft: 0.15.2\ntrl: 0.19.1\nTypeError: SFTTrainer.__init__() got an unexpected keyword argument 'tokenizer'\n"
    result = compat("diagnose", "-", "--format", "json", stdin=text)
    rules = [finding["rule"] for finding in json.loads(result.stdout)["findings"]]
    assert rules == ["symptom-interface"]


def test_a_symbol_that_another_librarys_file_misses(compat: Run) -> None:
    text = "ImportError: /w/vllm/_C.abi3.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSsb\n"
    result = compat("diagnose", "-", "--format", "json", stdin=text)
    rules = [finding["rule"] for finding in json.loads(result.stdout)["findings"]]
    assert rules == ["symptom-undefined-symbol"]


def test_what_is_too_unlikely_to_warn_of_is_a_warning_once_it_has_happened(compat: Run, described: Write) -> None:
    packages, devices = {"vllm": "0.8.1", "ray": "2.44.0"}, [{"name": "NVIDIA H20"}] * 8
    environment = described(packages, accelerators=devices, workload={"task": "serve"})
    text = traceback(
        "RuntimeError: CUDA error: an illegal memory access was encountered", ("ray/dag/dag_node_operation.py", "run")
    )
    found = {each["rule"]: each["severity"] for each in findings(compat, text, "--environment", environment)}
    assert found["ray-2-44-vllm-pipeline-parallel"] == "warning"


def test_a_rule_whose_packages_nobody_named_comes_after_what_the_words_say(compat: Run) -> None:
    found = findings(compat, "ModuleNotFoundError: No module named 'distutils'\n")
    assert [each["rule"] for each in found] == ["symptom-python-release", "deepspeed-distutils-python312"]
    (first, *_) = findings(compat, "deepspeed fails:\nModuleNotFoundError: No module named 'distutils'\n")
    assert first["rule"] == "deepspeed-distutils-python312"


def test_releases_that_have_a_missing_name_come_after_a_rule_that_only_its_words_match(compat: Run) -> None:
    found = findings(compat, "module 'torch' has no attribute 'float8_e8m0fnu'\n")
    assert [each["rule"] for each in found] == ["peft-0190-torch-2-7", "symptom-interface"]
    assert found[1]["fixes"][0]["spec"] == ">=2.7.0"


@pytest.mark.parametrize(
    ("text", "packages", "first", "also"),
    [
        ("AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.",
         {"numpy": "2.0.1"}, "symptom-numpy-name", "wandb-numpy-2-float"),
        ("RuntimeError: Could not load libtorchcodec. Likely causes:",
         {"torchcodec": "0.5", "torch": "2.6.0"}, "build-torchcodec-torch", "vllm-0250-torchcodec"),
        ("ImportError: numpy.core.multiarray failed to import", {"numpy": "2.1.0"}, "symptom-numpy-abi", "onnxruntime-numpy-2"),
    ],
)  # fmt: skip
def test_what_is_known_of_a_listed_package_comes_before_rules_about_others(
    compat: Run, tmp_path: Path, text: str, packages: dict[str, str], first: str, also: str
) -> None:
    described = {"schema": "compat/environment/1", "distributions": [{"name": n, "version": v} for n, v in packages.items()]}
    (tmp_path / "env.json").write_text(json.dumps(described))
    named = [each["rule"] for each in findings(compat, text + "\n", "--environment", str(tmp_path / "env.json"))]
    assert (named[0], also in named) == (first, True)
    assert len(named) <= 4, "at most three rules about packages that nothing names"


def test_a_rule_with_the_message_comes_before_a_guess_that_names_no_release(compat: Run) -> None:
    first, second = findings(compat, "AttributeError: 'AdamW' object has no attribute 'train'")
    assert (first["rule"], second["rule"]) == ("accelerate-optimizer-has-no-train", "symptom-interface")
    assert (second["confidence"], [fix.get("spec") for fix in second["fixes"]]) == ("reported", [None])
