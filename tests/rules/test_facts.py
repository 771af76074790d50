"""Facts that follow from others."""

from __future__ import annotations

from typing import Any

import pytest

from compat.api.public import check
from compat.formats.described import parse_described
from compat.model import Environment, Workload
from compat.records import replace
from compat.rules.facts import ABSENT, MODEL_FAMILIES, SAME_CLASSES, Facts, family_of, has_more, visible
from compat.rules.logic import holds
from compat.rules.rule import HasDevices, InRange, IsOneOf
from compat.versions import ranges_of


def environment(**document: Any) -> Environment:
    return parse_described(document, "x")[0]


def test_the_task_follows_from_the_trainer() -> None:
    assert Facts(environment(workload={"trainer": "SFTTrainer"})).value("workload.task") == "sft"
    assert Facts(environment(workload={"trainer": "GRPOTrainer", "task": "Other"})).value("workload.task") == "other"
    assert Facts(environment(workload={"trainer": "MyTrainer"})).value("workload.task") is None


def test_plain_python_is_one_process() -> None:
    assert Facts(environment(workload={"launcher": "python"})).value("workload.processes") == 1
    assert Facts(environment(workload={"launcher": "torchrun"})).value("workload.processes") is None


def test_sharding_is_of_one_kind_and_implies_its_engine() -> None:
    facts = Facts(environment(workload={"features": ["zero-2"]}))
    assert [facts.feature(name) for name in ("zero-2", "deepspeed", "zero-3", "fsdp", "vllm")] == [
        True,
        True,
        False,
        False,
        None,
    ]
    facts = Facts(environment(workload={"features": ["fsdp2"]}))
    assert [facts.feature(name) for name in ("fsdp2", "fsdp", "zero-3")] == [True, True, False]
    facts = Facts(environment(workload={"features": [], "features_complete": True}))
    assert facts.feature("vllm") is False


def test_distributions_are_there_absent_or_unknown() -> None:
    some = Facts(environment(distributions=[{"name": "trl", "version": "0.15.2"}]))
    assert isinstance(some.package("trl"), list)
    assert some.package("vllm") is None
    assert Facts(environment(distributions=[], distributions_complete=True)).package("vllm") == ABSENT


def test_defaults_fill_only_what_is_unknown() -> None:
    presume = (("task", "sft"), ("batch_size", 8), ("absent", ("trl",)), ("features_absent", ("liger",)))
    facts = Facts(environment(workload={"batch_size": 1}, distributions=[])).presuming(presume)
    assert (facts.value("workload.task"), facts.value("workload.batch_size")) == ("sft", 1)
    assert facts.package("trl") == ABSENT
    assert facts.feature("liger") is False
    assert (facts.is_presumed("workload.task"), facts.is_presumed("workload.batch_size")) == (True, False)


@pytest.mark.parametrize(
    ("workload", "used", "presumed"),
    [
        ({}, True, True),
        ({"features": ["vllm"]}, True, True),
        ({"features": ["peft"]}, True, False),
        ({"task": "lora"}, True, False),
        ({"features_absent": ["peft"]}, False, False),
        ({"features": [], "features_complete": True}, False, False),
    ],
)
def test_a_presumed_feature_gives_way_to_what_the_job_says(workload: dict[str, object], used: bool, presumed: bool) -> None:
    facts = Facts(environment(workload=workload)).presuming((("features", ("peft",)),))
    assert (facts.feature("peft"), facts.is_presumed("workload.features")) == (used, presumed)


def test_the_hub_is_offline_by_either_variable() -> None:
    def offline(variables: dict[str, str]) -> tuple[bool, str | None]:
        return Facts(environment(variables=variables)).variable("HF_HUB_OFFLINE")

    assert offline({"TRANSFORMERS_OFFLINE": "1"}) == (True, "1")
    assert offline({"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "1"}) == (True, "1")
    assert offline({"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "1"}) == (True, "0")
    assert offline({}) == (False, None)


DEVICES = [{"name": "A", "uuid": "GPU-1a"}, {"name": "B", "uuid": "GPU-2b"}, {"name": "C", "uuid": "GPU-2c"}]


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        ("0", "A"), ("2,0", "CA"), ("", ""), ("-1", ""), ("1,-1,2", "B"), ("7", ""), (" 0 , 1 ", "AB"),
        ("GPU-1a", "A"), ("GPU-2b,GPU-1", "BA"), ("GPU-2", ""), (None, "ABC"),
    ],
)  # fmt: skip
def test_cuda_visible_devices_is_read_as_cuda_reads_it(chosen: str | None, seen: str) -> None:
    found = visible(environment(accelerators=DEVICES, variables={"CUDA_VISIBLE_DEVICES": chosen})).accelerators
    assert found is not None
    assert "".join(device.name or "" for device in found) == seen


def test_a_device_named_by_an_id_we_were_not_told_still_counts() -> None:
    two = [{"name": "A100"}, {"name": "A100"}]
    found = visible(environment(accelerators=two, variables={"CUDA_VISIBLE_DEVICES": "GPU-8a,GPU-9b"})).accelerators
    assert found is not None
    assert len(found) == 2


OPEN = {"name": "A", "more": True}


@pytest.mark.parametrize(
    ("devices", "chosen", "seen"),
    [
        ([OPEN], "0", ["A"]), ([OPEN], "0,1", ["A+"]), ([OPEN], "0,1,-1,2", ["A+"]), ([OPEN], "1", None), ([OPEN], "", []),
        ([OPEN], None, ["A+"]), ([{"name": "B"}, OPEN], "0,1", ["B", "A"]), ([{"name": "B"}, OPEN], "0,2", ["B+"]),
        ([OPEN, {"name": "B"}], "0", ["A"]), ([OPEN, {"name": "B"}], "1", None),
    ],
)  # fmt: skip
def test_which_devices_of_a_kind_without_a_number_are_seen(
    devices: list[dict[str, Any]], chosen: str | None, seen: list[str] | None
) -> None:
    found = visible(environment(accelerators=devices, variables={"CUDA_VISIBLE_DEVICES": chosen})).accelerators
    told = None if found is None else [f"{each.name}{'+' if has_more(each) else ''}" for each in found]
    assert told == seen


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("mistral", "mistral"), ("mistralai/Mistral-7B-v0.3", "mistral"), ("unsloth/mistral-7b-bnb-4bit", "mistral"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral"), ("mistralai/Ministral-8B-Instruct", "ministral"),
        ("Qwen/Qwen2.5-7B", "qwen2"), ("meta-llama/Llama-3.1-8B", "llama-3.1"), ("meta-llama/Llama-2-7b-hf", "llama"), ("HuggingFaceH4/zephyr-7b-beta", None),
        ("google/gemma-2-9b-it", "gemma-2"), ("google/gemma-7b", "gemma"), ("Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-vl"),
        ("deepseek-ai/DeepSeek-V2-Lite", "deepseek-v2"), ("deepseek-ai/DeepSeek-R1", "deepseek-r1"),
        ("THUDM/chatglm3-6b", "chatglm"), ("THUDM/glm-4-9b-chat", "glm"), ("internlm/internlm2-chat-7b", "internlm2"),
        ("google/gemma-4-E4B-it", "gemma-4"), ("google/gemma-3n-E2B", "gemma-3n"), ("meta-llama/Llama-4-Scout-17B-16E", "llama-4"),
        ("Qwen/Qwen3.5-27B", "qwen3.5"), ("Wan-AI/Wan2.1-T2V-14B-Diffusers", "wan2"), ("OpenGVLab/InternVL3-8B-hf", "internvl"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "deepseek-r1-distill"), ("deepseek-ai/deepseek-llm-7b-base", "deepseek"),
        ("llava-hf/llava-v1.6-mistral-7b-hf", "llava"), ("llava-hf/llava-onevision-qwen2-7b-ov-hf", "llava"),
        ("OpenGVLab/InternVL2-Llama3-76B", "internvl"), ("microsoft/Phi-3.5-vision-instruct", "phi-3.5-vision"),
        ("microsoft/Phi-4-mini-instruct", "phi"), ("cognitivecomputations/dolphin-2.2-70b", None),
        ("facebook/opt-1.3b", "opt"), ("acme/optimized-7b", None),
        # numbers of parameters
        ("google/gemma-2b-it", "gemma"), ("google/codegemma-2b", "gemma"), ("google/gemma-2-2b", "gemma-2"), ("acme/Llama-405B", "llama"),
        # types, as configurations spell them
        ("qwen2_vl", "qwen2-vl"), ("qwen2_5_vl", "qwen2.5-vl"), ("qwen3_vl_moe", "qwen3-vl"), ("qwen3_next", "qwen3-next"),
        ("gemma3_text", "gemma-3"), ("gemma3n", "gemma-3n"), ("gemma2", "gemma-2"), ("gemma_2b", "gemma"), ("gemma27b", "gemma"),
        ("llama4_text", "llama-4"), ("gpt_oss", "gpt-oss"), ("deepseek_v3", "deepseek-v3"), ("phi3", "phi"), ("phimoe", "phimoe"),
        ("mt5", "t5"), ("optimus", "optimus"), ("starcoder2", "starcoder2"),
    ],
)  # fmt: skip
def test_families_of_models(model: str, family: str | None) -> None:
    assert family_of(model) == family


def test_an_installed_package_could_be_installed() -> None:
    described = environment(distributions=[{"name": "tokenizers", "version": "0.13.3"}], python="3.12.3", os="linux")
    (package,) = described.distributions or ()
    installed = replace(described, distributions=(replace(package, requires=()),))
    found = [[each.rule for each in check(each).findings] for each in (described, installed)]
    assert ["tokenizers-013-no-python312" in rules for rules in found] == [True, False]


@pytest.mark.parametrize(("version", "word"), [("2.0.1", "warning"), ("2.0.1+cu118", None), ("2.0.1+cpu", None)])
def test_a_local_label_is_not_from_the_package_index(version: str, word: str | None) -> None:
    found = check(
        {
            "distributions": [
                {"name": "torch", "version": version, "source": "index"},
                {"name": "numpy", "version": "1.26.4", "source": "index"},
            ],
            "distributions_complete": True,
            "os": "linux",
            "machine": "x86_64",
        }
    )
    rules = {each.rule: each.severity for each in found.findings}
    assert rules.get("torch-2-0-1-no-cuda-requirements") == word


@pytest.mark.parametrize(
    ("task", "feature", "expected"),
    [
        ("inference", "gradient-accumulation", False),
        ("serve", "zero-2", False),
        ("import", "resume", False),
        ("import", "fsdp2", False),
        ("build", "zero-3", False),
        ("serve", "fsdp", False),
        ("inference", "zero-3", True),
        ("inference", "fsdp", True),
        ("sft", "resume", True),
        (None, "resume", True),
    ],
)
def test_a_job_that_does_not_train_has_no_features_of_training(task: str | None, feature: str, expected: bool) -> None:
    assert Facts(environment(workload={"task": task, "features": [feature]})).feature(feature) is expected


def test_without_a_task_features_of_training_are_unknown() -> None:
    assert Facts(environment(workload={})).feature("resume") is None
    assert Facts(environment(workload={"task": "inference"})).feature("resume") is False


def test_a_server_trains_nothing_unless_it_is_said() -> None:
    assert Facts(environment(workload={"task": "serve"})).feature("unsloth") is False
    assert Facts(environment(workload={"task": "serve", "features": ["deepspeed"]})).feature("deepspeed") is True
    assert Facts(environment(workload={"task": "inference"})).feature("deepspeed") is None


def test_a_script_that_was_read_shows_whether_it_imports_unsloth() -> None:
    presume = (("features", ("unsloth", "peft")),)
    read = replace(environment(workload={"task": "sft"}), workload=Workload(task="sft", script="train.py"))
    facts = Facts(read).presuming(presume)
    assert (facts.feature("unsloth"), facts.feature("peft")) == (None, True)
    assert Facts(environment(workload={"task": "sft"})).presuming(presume).feature("unsloth") is True


@pytest.mark.parametrize(
    ("model", "same"), [("Qwen/Qwen3.6-35B-A3B", True), ("Qwen/Qwen3.8-27B-FP8", True), ("Qwen/Qwen3-8B", False)]
)
def test_a_rule_about_a_family_holds_for_those_with_its_classes(model: str, same: bool) -> None:
    assert set(SAME_CLASSES).union(SAME_CLASSES.values()) <= set(MODEL_FAMILIES)
    condition = IsOneOf("workload.model", ("qwen3.5",))
    assert holds(condition, Facts(environment(workload={"model": model}))) is same


@pytest.mark.parametrize(
    ("words", "answer"),
    [(("qwen/qwen2.5-vl-3b-instruct",), False), (("qwen2.5-vl", "qwen/qwen2-vl-2b"), None), (("some/model",), True)],
)
def test_a_model_of_an_unknown_family_is_none_that_is_named_in_full(words: tuple[str, ...], answer: bool | None) -> None:
    assert holds(IsOneOf("workload.model", words), Facts(environment(workload={"model": "some/model"}))) is answer


@pytest.mark.parametrize(
    ("name", "device", "same"),
    [
        ("A10", "NVIDIA A10", True), ("A10", "NVIDIA A10G", True), ("A10", "NVIDIA A100-SXM4-80GB", False), ("L4", "NVIDIA L40S", False),
        ("H200", "NVIDIA GH200 480GB", False), ("A100-SXM", "NVIDIA A100-SXM4-80GB", True), ("RTX 40", "NVIDIA GeForce RTX 4090", True),
        ("RTX A", "NVIDIA RTX A6000", True),
    ],
)  # fmt: skip
def test_a_device_is_named_by_the_beginning_of_a_word(name: str, device: str, same: bool) -> None:
    condition = HasDevices(ranges_of(">=1"), names=(name,))
    assert holds(condition, Facts(environment(accelerators=[{"name": device}]))) is same


@pytest.mark.parametrize(
    ("python", "answer"),
    [
        ("3.9", False),
        ("3.10", None),  # 3.10.0 is outside, 3.10.4 inside
        ("3.10.0", False),
        ("3.10.4", True),
        ("3.11", True),
        ("3.12", None),
        ("3.12.2", False),
        (None, None),
    ],
)
def test_a_python_without_its_patch_release_is_any_of_them(python: str | None, answer: bool | None) -> None:
    condition = InRange("python", ranges_of(">=3.10.1,<3.12.2"))
    assert holds(condition, Facts(environment() if python is None else environment(python=python))) is answer
