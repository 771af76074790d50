"""The rule linter: examples that do not hold and fixes that lead astray are found."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compat.checks.lint import problems_of
from compat.records import replace
from compat.rules.compiled import Matrix
from compat.rules.loader import rule_of
from compat.rules.rule import FixTemplate

BASE: dict[str, Any] = {
    "id": "drops", "title": "t", "severity": "error", "effect": "crash", "confidence": "reported", "why": "w",
    "evidence": ["https://example.org"], "packages": {"transformers": ">=4.50.0,<4.51.0"},
    "when": {"launcher": ["python"], "accelerators": {"count": ">=2"}},
    "fix": [{"upgrade": {"transformers": ">=4.57.1"}}],
    "example": [
        {"hit": {"packages": {"transformers": "4.50.1"}, "gpus": "A100:2", "launcher": "python"}},
        {"clear": {"packages": {"transformers": "4.49.0"}, "gpus": "A100:2", "launcher": "python"}},
    ],
}  # fmt: skip
OTHER = {**copy.deepcopy(BASE), "id": "other", "packages": {"transformers": ">=4.51.0,<4.57.0"}}
OTHER["example"][0]["hit"]["packages"]["transformers"] = "4.53.0"


def messages(*tables: dict[str, Any]) -> list[str]:
    rules = [rule_of(table) for table in tables]
    return [problem.message for problem in problems_of(rules[:1], among=rules)]


def changed(**keys: Any) -> dict[str, Any]:
    return {**copy.deepcopy(BASE), **keys}


def test_the_shipped_matrix_is_clean(matrix: Matrix) -> None:
    assert problems_of(matrix.rules()) == []


def test_a_good_rule_is_clean() -> None:
    assert messages(BASE, OTHER) == []


@pytest.mark.parametrize(
    ("verdict", "environment", "found"),
    [
        ("hit", {"packages": {"transformers": "4.51.0"}, "gpus": "A100:2", "launcher": "python"}, "clear"),
        ("clear", {"packages": {"transformers": "4.50.0"}, "gpus": "A100:2", "launcher": "python"}, "hit"),
        ("hit", {"packages": {"transformers": "4.50.0"}, "launcher": "python"}, "possible (unknown: accelerators)"),
        ("possible", {"packages": {"transformers": "4.50.0"}, "gpus": "A100:2", "launcher": "python"}, "hit"),
    ],
)
def test_an_example_that_does_not_do_what_it_says(verdict: str, environment: dict[str, Any], found: str) -> None:
    table = changed(example=[*BASE["example"], {verdict: environment}])
    assert messages(table) == [f"example 3 says {verdict}, but it is {found}"]


@pytest.mark.parametrize(
    "fix", [{"upgrade": {"transformers": ">=4.50.2"}}, {"env-var": "CUDA_VISIBLE_DEVICES=0,1"}, {"uninstall": ["accelerate"]}]
)
def test_a_fix_that_does_not_clear_its_rule(fix: dict[str, Any]) -> None:
    (message,) = messages(changed(fix=[fix]))
    assert "does not fix what the rule describes" in message


@pytest.mark.parametrize("specifier", ["==4.51.0", ">=4.51.0", ">=4.55.0,<5", "<4.50.0,>=4.40", ">=4.57.1"])
def test_a_fix_that_leads_into_another_rule(specifier: str) -> None:
    found = messages(changed(fix=[{"upgrade": {"transformers": specifier}}]), OTHER)
    condemned = specifier.startswith(("==4.51", ">=4.51", ">=4.55"))
    assert any("triggers rule other" in message for message in found) == condemned


def test_a_fix_that_leads_into_an_error_for_some_jobs() -> None:
    """A presumed task makes the finding a warning; for the job that trains it is an error."""
    other = {
        **copy.deepcopy(OTHER),
        "presumed_severity": "warning",
        "presume": {"task": "sft"},
        "unless": [{"task": ["serve"]}],
    }
    (message,) = messages(changed(fix=[{"upgrade": {"transformers": "==4.51.0"}}]), other)
    assert "triggers rule other" in message


def test_a_fix_may_rest_on_the_other_conditions_of_a_rule() -> None:
    """Launched otherwise, releases that another rule condemns under plain python are fine."""
    assert messages(changed(fix=[{"launch": "torchrun SCRIPT"}]), OTHER) == []


def test_two_rules_for_one_error() -> None:
    error = {"exception": "ValueError", "message": "^the batch is empty$"}
    twin = {**copy.deepcopy(BASE), "id": "twin", "errors": [error], "packages": {"transformers": "<4.51"}}
    assert messages(changed(errors=[error]), twin) == ["example 1 is reported by rule twin as well"]
    assert messages(changed(errors=[error]), {**twin, "packages": {"transformers": "<4.50"}}) == []
    assert messages(changed(errors=[{**error, "message": "^no batch$"}]), twin) == []


def test_a_pattern_that_matches_anything() -> None:
    (message,) = messages(changed(errors=[{"exception": "RuntimeError", "message": "x*"}]))
    assert "matches anything" in message


def test_a_command_that_leaves_out_a_part_of_the_fix() -> None:
    fix = {"upgrade": {"transformers": ">=4.57.1", "trl": ">=0.24"}, "command": 'pip install "transformers>=4.57.1"'}
    (message,) = messages(changed(fix=[fix]))
    assert message.startswith("fix upgrade is printed without 'trl>=0.24'")


def test_a_rule_that_is_there_twice() -> None:
    errors = [{"exception": "ValueError", "message": "no"}]
    twin = {**changed(errors=errors), "id": "twin", "severity": "warning"}
    assert messages(changed(errors=errors), twin) == ["example 1 is reported by rule twin as well"]
    assert messages(changed(errors=errors), {**twin, "errors": [{"exception": "ValueError", "message": "another"}]}) == []


def test_a_model_that_no_name_is_recognized_as() -> None:
    good = [{"hit": {**BASE["example"][0]["hit"], "model": "Qwen/Qwen2-7B"}}, BASE["example"][1]]
    assert messages(changed(when={**BASE["when"], "model": ["qwen2"]}, example=good)) == []
    assert messages(changed(when={**BASE["when"], "model": ["qwen2", "adept/fuyu-8b"]}, example=good)) == []
    (message,) = messages(changed(when={**BASE["when"], "model": ["qwen2", "qwen-2"]}, example=good))
    assert message == "no model is recognized as 'qwen-2': name a family of MODEL_FAMILIES, or the whole ORGANISATION/MODEL"


def test_variables_of_amd_are_set_on_other_machines_as_well() -> None:
    when = {**BASE["when"], "variables": {"ROCR_VISIBLE_DEVICES": "set"}}
    hit = {**BASE["example"][0]["hit"], "variables": {"ROCR_VISIBLE_DEVICES": "0,1"}}
    (message,) = messages(changed(when=when, example=[{"hit": hit}, BASE["example"][1]]))
    assert message == "ROCR_VISIBLE_DEVICES may be set on any machine (Slurm does): say the vendor of the accelerators"
    table = changed(when={**when, "accelerators": {"count": ">=2", "vendor": ["amd"]}})
    assert messages({**table, "example": [{"hit": {**hit, "gpus": "MI300X:2"}}, BASE["example"][1]]}) == []


def test_conda_has_packages_that_the_index_has_no_wheel_of() -> None:
    hit = {**BASE["example"][0]["hit"], "python": "3.13.1", "sources": {"transformers": "index"}}
    table = changed(effect="install", when={**BASE["when"], "python": ">=3.13"}, example=[{"hit": hit}, BASE["example"][1]])
    (message,) = messages(table)
    assert message == "conda builds its packages for other Pythons than the index has wheels for: exempt the source conda"
    assert messages({**table, "unless": [{"source": {"transformers": ["conda"]}}]}) == []


def test_a_launcher_may_start_one_process_on_a_machine_with_several_gpus() -> None:
    when = {**BASE["when"], "launcher": ["torchrun"]}
    two = {**BASE["example"][0]["hit"], "launcher": "torchrun", "processes": 2}
    table = changed(when=when, example=[{"hit": two}, BASE["example"][1]])
    (message,) = messages(table)
    assert message == "it needs several GPUs and a launcher: say in an example what one process does (processes = 1)"
    one = {**two, "processes": 1}
    assert messages({**table, "example": [*table["example"], {"hit": one}]}) == []
    assert messages({**table, "unless": [{"processes": "<2"}], "example": [*table["example"], {"clear": one}]}) == []


def test_a_server_may_have_a_replica_on_each_gpu() -> None:
    several = {"accelerators": BASE["when"]["accelerators"]}
    table = changed(packages={"vllm": ">=0.8.0,<0.9.0"}, when=several, fix=[{"upgrade": {"vllm": ">=0.9.0"}}])
    for example, version in zip(table["example"], ("0.8.1", "0.9.0"), strict=True):
        next(iter(example.values()))["packages"] = {"vllm": version}
    (message,) = messages(table)
    assert message == "several GPUs may have a replica each: say what it needs of the feature tensor-parallel"
    asked = {**table, "unless": [{"features_absent": ["tensor-parallel"]}], "presume": {"features": ["tensor-parallel"]}}
    assert messages(asked) == []


def test_an_installed_flash_attn_is_used_where_it_is_asked_for() -> None:
    table = changed(
        packages={"transformers": ">=4.50.0,<4.51.0", "flash-attn": "*"}, fix=[{"upgrade": {"transformers": ">=4.57.1"}}]
    )
    table["example"][0]["hit"]["packages"]["flash-attn"] = "2.8.3"
    (message,) = messages(table)
    assert message.startswith("installing flash-attn does not use it")
    asked = copy.deepcopy(table)
    asked["when"]["features"] = ["flash-attention"]
    asked["unless"] = [{"task": ["import", "install", "build"]}]
    asked["example"][0]["hit"]["features"] = ["flash-attention"]
    assert messages(asked) == []
    assert messages({**table, "effect": "install"}) == []
    assert messages({**table, "errors": [{"exception": "ImportError", "message": "undefined symbol"}]}) == []


def test_a_rule_about_a_trainer_of_trl_names_the_jobs_of_tools() -> None:
    table = changed(packages={"trl": ">=0.19.0,<0.20.0"}, when={"task": ["sft"]}, fix=[{"upgrade": {"trl": ">=0.20.0"}}])
    table["example"] = [
        {"hit": {"packages": {"trl": "0.19.0"}, "task": "sft"}}, {"clear": {"packages": {"trl": "0.20.0"}, "task": "sft"}},
    ]  # fmt: skip
    (message,) = messages(table)
    assert message.startswith("tools such as verl train without trl's trainers")
    assert messages({**table, "unless": [{"features": ["own-trainer"]}]}) == []
    assert messages({**table, "unless": [{"features": ["without-trl"]}]}) == []


def test_a_rule_about_a_trainer_that_unsloth_patches_names_the_jobs_of_tools() -> None:
    table = changed(
        packages={"unsloth": "==2025.12.3"}, when={"task": ["sft", "lora"]}, fix=[{"upgrade": {"unsloth": ">=2025.12.4"}}]
    )
    table["example"] = [
        {"hit": {"packages": {"unsloth": "2025.12.3"}, "task": "sft"}}, {"clear": {"packages": {"unsloth": "2025.12.4"}, "task": "sft"}},
    ]  # fmt: skip
    (message,) = messages(table)
    assert message.startswith("unsloth patches trl's trainers")
    assert messages({**table, "unless": [{"features": ["own-trainer"]}]}) == []
    assert messages({**table, "when": {"task": ["sft", "train"]}}) == []  # its models, in every trainer


def test_a_rule_about_the_trainer_of_transformers_names_the_jobs_of_tools() -> None:
    table = changed(why="The Trainer drops the last batch.", presume={"task": "sft"})
    (message,) = messages(table)
    assert message.startswith("tools such as verl train without transformers' Trainer")
    assert messages({**table, "unless": [{"features": ["without-trainer"]}]}) == []
    assert messages({**table, "errors": [{"exception": "ImportError", "message": "no Trainer"}]}) == []


def test_a_rule_about_the_sharding_of_accelerate_names_the_jobs_of_tools() -> None:
    table = changed(
        title="FSDP loses data", packages={"accelerate": ">=1.0.0,<1.1.0"}, fix=[{"upgrade": {"accelerate": ">=1.1.0"}}]
    )
    for example, version in zip(table["example"], ("1.0.1", "1.1.0"), strict=True):
        next(iter(example.values()))["packages"] = {"accelerate": version}
    tools, inference = messages(table)
    assert tools.startswith("tools such as verl train without transformers' Trainer")
    assert inference.startswith("a job that only runs a model")
    exempt = [{"features": ["without-trainer"]}, {"task": ["inference"]}]
    assert messages({**table, "unless": exempt, "presume": {"task": "sft"}}) == []
    assert messages({**table, "unless": exempt[:1], "errors": [{"exception": "ImportError", "message": "too old"}]}) == []


def test_a_rule_about_what_a_run_does_exempts_jobs_without_one() -> None:
    message = "jobs that only import, install, build do not get that far: exempt these tasks"
    assert messages(changed(effect="wrong-result")) == [message]
    assert messages(changed(effect="wrong-result", unless=[{"task": ["import", "install", "build"]}])) == []
    crash = {**BASE["example"][0]["hit"], "features": ["peft"]}
    table = changed(when={**BASE["when"], "any_feature": ["peft", "fsdp"]}, example=[{"hit": crash}, BASE["example"][1]])
    assert messages(table) == [message]
    assert messages({**table, "errors": [{"exception": "ImportError", "message": "no FSDP"}]}) == []
    turing = {"launcher": ["python"], "accelerators": {"count": ">=2", "capability": "==7.5"}}
    gpus = changed(effect="wrong-result", when=turing)
    for example in gpus["example"]:
        next(iter(example.values()))["gpus"] = "T4:2"
    assert messages(gpus) == ["jobs that only import do not get that far: exempt these tasks"]
    remark = {key: value for key, value in changed(effect="wrong-result", severity="info").items() if key != "when"}
    assert messages(remark) == []


def test_an_example_has_the_torch_of_its_vllm() -> None:
    packages = {"transformers": "4.50.1", "vllm": "0.24.0", "torch": "2.12.0"}
    table = changed(example=[{"hit": {**BASE["example"][0]["hit"], "packages": packages}}, BASE["example"][1]])
    assert messages(table) == ["example 1: vllm 0.24.0 requires torch==2.11.0, not 2.12.0"]
    packages["torch"] = "2.11.0"
    assert messages(table) == []


def test_models_are_trained_by_the_trainer_as_well() -> None:
    table = changed(when={**BASE["when"], "task": ["llm-training"], "model": ["llama"]})
    for example in table["example"]:
        next(iter(example.values())).update(task="sft", model="llama")
    assert messages(table) == ["a script with the Trainer trains these models as well: name the task training"]
    table["when"]["task"] = ["training"]
    assert messages(table) == []


def test_a_variable_that_is_presumed_unset_is_no_question() -> None:
    table = changed(unless=[{"variables": {"SAFE": ["1"]}}], presume={"variables_unset": ["SAFE"]}, fix=[{"env-var": "SAFE=1"}])
    assert messages(table) == []
    fixed = {"packages": {"transformers": "4.50.1"}, "gpus": "A100:2", "launcher": "python", "variables": {"SAFE": "1"}}
    assert messages(changed(**{**table, "example": [*table["example"], {"clear": fixed}]})) == []


def test_an_exemption_names_no_variable_that_a_release_ignores() -> None:
    ignored = changed(id="safe-ignored", packages={"transformers": ">=4.50.3"}, when={"variables": {"SAFE": "set"}})
    exempt: dict[str, Any] = {"variables": {"SAFE": ["1"]}}
    table = changed(unless=[exempt], presume={"variables_unset": ["SAFE"]})
    message = "transformers >=4.50.3,<4.51.dev0 ignores SAFE: keep it out of the exemption or the fix"
    assert messages(table, ignored) == [message]
    exempt["packages"] = {"transformers": "<4.50.3"}
    assert messages(table, ignored) == []
    assert message in messages({**table, "fix": [{"env-var": "SAFE=1"}]}, ignored)
    assert message not in messages({**table, "fix": [{"env-var": "SAFE=1", "when": exempt}]}, ignored)


def test_numpy_1_takes_pyarrow_along(matrix: Matrix) -> None:
    """pyarrow 26 refuses numpy 1 at import, and no metadata says so."""
    for rule in matrix.rules():
        for fix in rule.fixes:
            moved = dict((*fix.packages, *fix.along))
            if moved.get("numpy", "").endswith("<2") and fix.kind != "upgrade":
                assert "pyarrow" in moved or "pyarrow" in {each.name for each in rule.packages}, rule.id


def test_what_a_fix_leaves_in_place_is_accepted_by_its_newest_release() -> None:
    fix = {"upgrade": {"trl": ">=0.23,<0.24"}, "along": {"transformers": "<5"}}
    (found,) = (each for each in messages(changed(fix=[fix])) if each.startswith("along"))
    assert found.endswith("but trl 0.23.1 requires >=4.56.1: narrow the range <5")
    fix["along"] = {"transformers": ">=4.56.1,<5"}
    assert not any(each.startswith("along") for each in messages(changed(fix=[fix])))


def test_what_a_fix_moves_along_is_moved_where_it_is_installed() -> None:
    along = {"along": {"trl": "<0.20"}, "upgrade": {"transformers": ">=4.57.1"}}
    other = {**copy.deepcopy(OTHER), "packages": {"transformers": ">=4.57.1", "trl": ">=0.20"}}
    other["example"][0]["hit"]["packages"] = {"transformers": "4.57.1", "trl": "0.21.0"}
    with_trl = {**BASE["example"][0]["hit"], "packages": {"transformers": "4.50.1", "trl": "0.21.0"}}
    example = [{"hit": with_trl}, BASE["example"][1]]
    assert messages(changed(fix=[along], example=example), other) == []
    (message,) = messages(changed(fix=[{"upgrade": along["upgrade"]}], example=example), other)
    assert "triggers rule other" in message


def test_an_exemption_names_a_kind_of_tasks() -> None:
    listed = ["sft", "dpo", "orpo", "kto", "cpo"]

    def found(exemption: dict[str, Any]) -> list[str]:
        return messages(changed(unless=[exemption], presume={"task": "serve"}))

    [message] = found({"task": listed})
    assert message.startswith("it exempts cpo, dpo, kto, orpo, sft: name a kind of tasks")
    assert found({"task": ["offline-training", "inference"]}) == []
    assert found({"task": listed, "packages": {"trl": "<0.12"}}) == []


def test_an_import_that_fails_is_not_exempt_where_it_is_only_imported() -> None:
    def found(title: str, exemption: dict[str, Any]) -> list[str]:
        return messages(changed(title=title, unless=[exemption], presume={"task": "serve"}))

    [message] = found("import transformers fails: no module named 'x'", {"task": ["import", "install", "build"]})
    assert message == "an import fails in a job that only imports, too: do not exempt the task import"
    assert found("import transformers fails: no module named 'x'", {"task": ["install", "build"]}) == []
    assert found("Importing the Trainer fails", {"task": ["import", "install", "build"]}) == []


def test_a_setting_that_fixes_the_job_exempts_it() -> None:
    hit = {**BASE["example"][0]["hit"], "features": ["packing"]}
    exempt = {"unless": [{"task": ["import", "install", "build"]}], "fix": [{"config": "SFTConfig(packing=False)"}]}
    table = changed(**exempt, example=[{"hit": hit}, BASE["example"][1]])
    assert messages(table) == ["SFTConfig(packing=False) does not exempt from the rule: ask for packing"]
    assert messages({**table, "when": {**BASE["when"], "features": ["packing"]}}) == []
    assert messages({**table, "fix": [{"config": "SFTConfig(packing=None)"}]}) == []
    for setting in ('SFTConfig(model_init_kwargs={"use_cache": False})', "model.config.use_cache = False"):
        assert messages({**table, "fix": [{"config": setting}]}) == [
            f"{setting} does not exempt from the rule: ask for no-cache"
        ]


def test_a_fix_does_not_end_at_an_import(matrix: Matrix) -> None:
    """Since trl 0.29 the trainer of ORPO is in trl.experimental, which is a warning: the script may know."""
    rules = matrix.rules()
    (rule,) = (each for each in rules if each.id == "trl-get-batch-samples-hook")
    upgrade = FixTemplate("upgrade", (("trl", ">=0.29.0,<1"),))
    (message,) = {
        each.message for each in problems_of([replace(rule, fixes=(upgrade,))], among=rules) if "moved" in each.message
    }
    assert message == "fix upgrade trl>=0.29.0,<1 triggers rule trl-trainers-moved-to-experimental"
    told = replace(rule, fixes=(replace(upgrade, text="import the trainer from trl.experimental"),))
    assert not any("moved" in each.message for each in problems_of([told], among=rules))
