"""Conditions of published source as typed conditions, and what facts say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compat.checks.guards import condition_holds, known_in_words
from compat.interfaces.guards import condition_of
from compat.interfaces.refusals import Both, Either, FactTest, Opposite, fact_tests
from compat.model import Accelerator, Distribution, Environment, Workload
from compat.rules.facts import Facts

if TYPE_CHECKING:
    from compat.interfaces.refusals import Condition

NAMES = ("torch", "transformers", "vllm", "accelerate", "bitsandbytes", "flash-attn", "huggingface-hub", "triton", "peft")
CAPABILITY = FactTest("capability", "", "<", "8.0")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("version.parse(torch.__version__) < version.parse('2.1')", FactTest("package", "torch", "<", "2.1")),
        ("Version('0.10.2') <= Version(_vllm_version)", FactTest("package", "vllm", ">=", "0.10.2")),
        ("parse(importlib.metadata.version('accelerate')) > parse('0.27.0')", FactTest("package", "accelerate", ">", "0.27.0")),
        ("bitsandbytes.__version__ < '0.46.1'", FactTest("package", "bitsandbytes", "<", "0.46.1")),
        ("torch.__version__.split('+')[0] == '2.0.1'", FactTest("package", "torch", "==", "2.0.1")),
        ("is_torch_version('>=', '1.13')", FactTest("package", "torch", ">=", "1.13")),
        ("is_torch_less_than_2_4", FactTest("package", "torch", "<", "2.4")),
        ("is_torch_greater_or_equal('2.6')", FactTest("package", "torch", ">=", "2.6")),
        ("compare_versions('transformers', '<', '4.40')", FactTest("package", "transformers", "<", "4.40")),
        ("is_peft_available()", FactTest("installed", "peft")),
        ("is_vllm_available(min_version='0.22.0')", FactTest("package", "vllm", ">=", "0.22.0")),
        ("sys.version_info >= (3, 12)", FactTest("python", "", ">=", "3.12")),
        ("sys.version_info[:2] == (3, 8)", FactTest("python", "", "==", "3.8")),
        ("sys.platform == 'win32'", FactTest("os", "", "==", "win32")),
        ("platform.system() != 'Linux'", FactTest("os", "", "!=", "Linux")),
        ("torch.cuda.get_device_capability() < (8, 0)", CAPABILITY),
        ("torch.cuda.get_device_capability(device)[0] != 10", FactTest("capability", "major", "!=", "10")),
        ("torch.cuda.get_device_capability()[1] < 5", FactTest("capability", "minor", "<", "5")),
        ("torch.cuda.get_device_capability()[2] < 5", FactTest()),
        ("is_cuda()", FactTest("devices", "", ">=", "1")),
        ("get_bool_env_var('A_B')", FactTest("variable", "A_B", "==", "1")),
        ("torch.cuda.device_count() > 1", FactTest("devices", "", ">", "1")),
        ("torch.cuda.is_available()", FactTest("devices", "", ">=", "1")),
        ("os.environ.get('A_B', '0') == '1'", FactTest("variable", "A_B", "==", "1")),
        ("'A_B' not in os.environ", FactTest("variable", "A_B", "unset")),
        ("is_deepspeed_zero3_enabled()", FactTest("feature", "zero-3")),
        ("not is_peft_available()", Opposite(FactTest("installed", "peft"))),
        ("is_peft_available() and x > 3", Both((FactTest("installed", "peft"), FactTest()))),
        ("is_peft_available() or x", Either((FactTest("installed", "peft"), FactTest()))),
        (
            "Version('1') <= Version(_vllm_version) <= Version('2')",
            Both((FactTest("package", "vllm", ">=", "1"), FactTest("package", "vllm", "<=", "2"))),
        ),
        ("except ImportError", FactTest()),
        ("len(x) > 3 …", FactTest()),
        ("version.parse(other.__version__) < version.parse('2.1')", FactTest()),
        ("torch.__version__ < MINIMUM", FactTest()),
        ("torch.__version__ < other_version", FactTest()),
        ("is_cuda_available()", FactTest()),
        ("torch.__version__ in ('1', '2')", FactTest()),
        ("", FactTest()),
    ],
)  # fmt: skip
def test_what_is_understood_of_a_condition(text: str, condition: Condition) -> None:
    assert condition_of(text, NAMES) == condition


def facts(**keys: Any) -> Facts:
    return Facts(Environment(**keys))


def packages(**versions: str) -> dict[str, Any]:
    return {"distributions": tuple(Distribution(name, version) for name, version in versions.items())}


def gpus(*capabilities: str | None, vendor: str = "nvidia") -> dict[str, Any]:
    return {"accelerators": tuple(Accelerator(vendor, None, each) for each in capabilities)}


OLD = FactTest("package", "torch", "<", "2.1")


@pytest.mark.parametrize(
    ("condition", "known", "answer"),
    [
        (OLD, packages(torch="2.0.1+cu118"), True),
        (OLD, packages(torch="2.1.0"), False),
        (OLD, packages(vllm="0.7.1"), None),
        (OLD, {**packages(), "distributions_complete": True}, None),
        (Opposite(OLD), packages(torch="2.0.1"), False),
        (Opposite(OLD), {}, None),
        (FactTest("installed", "peft"), {**packages(), "distributions_complete": True}, False),
        (FactTest("installed", "peft"), packages(peft="0.7.0"), None),
        (Both((OLD, FactTest())), packages(torch="2.0.1"), None),
        (Both((OLD, FactTest())), packages(torch="2.2"), False),
        (Either((OLD, FactTest())), packages(torch="2.0.1"), True),
        (Either((OLD, FactTest())), packages(torch="2.2"), None),
        (CAPABILITY, gpus("7.5"), True),
        (CAPABILITY, gpus("7.5", "9.0"), None),
        (CAPABILITY, gpus("9.0", "9.0"), False),
        (CAPABILITY, gpus(None), None),
        (CAPABILITY, gpus("7.5", vendor="amd"), None),
        (CAPABILITY, {}, None),
        (FactTest("capability", "major", "!=", "10"), gpus("10.3"), False),
        (FactTest("capability", "minor", "<", "5"), gpus("7.0"), True),
        (FactTest("capability", "minor", "<", "5"), gpus("7.5"), False),
        (FactTest("devices", "", ">", "1"), gpus("9.0", "9.0"), True),
        (FactTest("devices", "", ">=", "1"), gpus(), False),
        (FactTest("python", "", ">=", "3.12"), {"python": "3.12.4"}, True),
        (FactTest("python", "", "==", "3.8"), {"python": "3.8.10"}, True),
        (FactTest("python", "", ">=", "3.12"), {}, None),
        (FactTest("os", "", "==", "win32"), {"os": "windows"}, True),
        (FactTest("os", "", "!=", "Linux"), {"os": "linux"}, False),
        (FactTest("variable", "A", "set"), {"variables": {"A": "1"}}, True),
        (FactTest("variable", "A", "=="), {"variables": {"A": None}}, None),
        (FactTest("variable", "A", "unset"), {"variables": {"A": None}}, True),
        (FactTest("variable", "A", "set"), {"variables": {}}, None),
        (FactTest("feature", "zero-3"), {"workload": Workload(features=("zero-3",))}, True),
        (FactTest("feature", "zero-3"), {}, None),
        (FactTest(), {}, None),
    ],
)  # fmt: skip
def test_conditions_are_judged_with_three_values(condition: Condition, known: dict[str, Any], answer: bool | None) -> None:
    assert condition_holds(condition, facts(**known)) is answer


def test_the_facts_that_conditions_ask_for_are_said() -> None:
    condition = condition_of("version.parse(torch.__version__) < version.parse('2.1') or torch.cuda.device_count() > 1", NAMES)
    assert {test.fact for test in fact_tests(condition)} == {"package", "devices"}
    known = {**packages(torch="2.0.1"), **gpus("9.0", "9.0")}
    assert known_in_words([condition], facts(**known)) == ("torch 2.0.1", "2 GPU(s)")
