"""Options that a program's parser refuses, and the releases that accept them."""

from __future__ import annotations

import pytest

from compat.model import Distribution, Environment
from tests.diagnosis.test_named_releases import fix_of, with_release
from tests.diagnosis.test_symptoms import said

REASONING = "usage: vllm serve [model_tag] [options]\nvllm: error: unrecognized arguments: --enable-reasoning"


@pytest.mark.parametrize(
    ("error", "package", "specifier"),
    [
        (REASONING, "vllm", ">=0.7.1,<=0.9.2"),
        ("api_server.py: error: unrecognized arguments: --foo --enable-reasoning", "vllm", ">=0.7.1,<=0.9.2"),
        ("launch_server.py: error: unrecognized arguments: --disable-flashinfer", "sglang", ">=0.1.18,<=0.4.1.post1"),
        ("lm_eval: error: unrecognized arguments: --log_samples --confirm_run_unsafe_code", "lm-eval", ">=0.4.8"),
        ("torchrun: error: unrecognized arguments: --local-ranks-filter 0", "torch", ">=2.3.0"),
        ("ValueError: remaining_argv: ['--train_type', 'lora']", "ms-swift", ">=3.0.0,<=4.0.4"),
    ],
)
def test_the_releases_that_accept_an_option(error: str, package: str, specifier: str) -> None:
    (finding,) = said(error + "\n")
    assert (finding.verdict, list(finding.packages), fix_of(finding)) == ("possible", [package], specifier)


def test_the_installed_release_decides_and_the_help_text_names_another_option() -> None:
    (finding,) = said(REASONING, with_release("vllm", "0.10.2"))
    assert finding.title == "vllm serve --enable-reasoning is in vllm from 0.7.1 to 0.9.2"
    assert (finding.verdict, finding.fixes[0].text) == ("hit", "use --reasoning-parser, its name in the other releases")


def test_the_package_that_failed_owns_the_option() -> None:
    error = "ValueError: Some keys are not used by the HfArgumentParser: ['enable_thinking']"
    (finding,) = said(error, with_release("llamafactory", "0.9.2"))
    assert (finding.verdict, list(finding.packages), fix_of(finding)) == ("hit", ["llamafactory"], ">=0.9.3")


@pytest.mark.parametrize(
    "error",
    [
        "train.py: error: unrecognized arguments: --enable-reasoning",  # of a program that nobody knows
        "vllm: error: unrecognized arguments: --no-such-option-anywhere",
        "vllm: error: unrecognized arguments: -x",
        "ValueError: remaining_argv: []",
    ],
)
def test_other_options_are_not_explained(error: str) -> None:
    assert said(error + "\n", Environment(distributions=(Distribution("torch", "2.6.0"),))) == []


EXTRA = "\n{}\n  Extra inputs are not permitted [type=extra_forbidden, input_value=1, input_type=int]"
ACCELERATE = "ValueError: The config file at config.yaml had unknown keys (['parallelism_config']), please try upgrading"


@pytest.mark.parametrize(
    ("error", "package", "specifier"),
    [
        ("ValidationError: 1 validation error for AxolotlInputConfig" + EXTRA.format("trl.vllm_lora_sync"), "axolotl", ">=0.16.0"),
        (
            "ValidationError: 1 validation error for DeepSpeedZeroConfig" + EXTRA.format("zero_quantized_nontrainable_weights"),
            "deepspeed", ">=0.10.2",
        ),
        ("ConfigAttributeError: Key 'calculate_sum_pi_squared' is not in struct\n full_key: actor_rollout_ref.actor.x", "verl", ">=0.7.1"),
        ("Could not override 'actor_rollout_ref.actor.calculate_sum_pi_squared'.", "verl", ">=0.7.1"),
        (ACCELERATE, "accelerate", ">=1.10.0"),
    ],
)  # fmt: skip
def test_the_releases_that_have_a_key_of_a_configuration(error: str, package: str, specifier: str) -> None:
    (finding,) = said(error + "\n")
    assert (finding.verdict, list(finding.packages), fix_of(finding)) == ("possible", [package], specifier)


def test_a_key_that_the_installed_release_lacks() -> None:
    error = "omegaconf.errors.ConfigKeyError: Key 'calculate_sum_pi_squared' not in 'ActorConfig'"
    (finding,) = said(error, with_release("verl", "0.7.0"))
    assert (finding.verdict, fix_of(finding)) == ("hit", ">=0.7.1")


def test_a_short_key_of_an_unknown_class_is_not_explained() -> None:
    assert said("ValidationError: 1 validation error for Settings" + EXTRA.format("use_dora")) == []
