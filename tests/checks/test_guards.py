"""Conditions on which releases refuse to work, judged before anything is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat.checks import deduplicated, guards
from compat.interfaces.refusals import Refusals
from compat.model import Accelerator, Distribution, Environment, Finding, Workload
from compat.rules.facts import Facts
from scripts import pack_mined

NAMES = frozenset(
    ("peft", "torchao", "torch", "xformers", "unsloth", "accelerate", "transformers", "vllm", "trl", "gptqmodel", "requests")
)


def needing(package: str, releases: str, method: str, least: int) -> dict[str, str]:
    """The row of a quantization method with a minimum compute capability, such as 75."""
    return {
        "package": package, "releases": releases, "module": f"{package}.q.{method}", "function": "Config.get_min_capability",
        "kind": "raise", "error": "ValueError", "reach": f"quantization={method}",
        "condition": f"torch.cuda.get_device_capability() < {divmod(least, 10)}", "message": f"Minimum capability: {least}.",
    }  # fmt: skip


ROWS = [
    {
        "package": "peft", "releases": "0.19.0..0.21.2", "module": "peft.import_utils", "function": "is_torchao_available",
        "kind": "raise", "error": "ImportError", "reach": "task=lora|feature=peft",
        "condition": "(find_spec('torchao') is not None) and (version.parse(metadata.version('torchao')) < version.parse('0.16.0'))",
        "message": "Found an incompatible version of torchao. Found version ¤, but only versions above ¤ are supported",
    },
    {
        "package": "unsloth", "releases": "2024.9..2026.10.9", "module": "unsloth.models._utils", "function": "",
        "kind": "raise", "error": "ImportError", "reach": "import",
        "condition": "Version(torch.__version__) < Version('2.4.0') and Version(xformers_version) > Version('0.0.27')",
        "message": "Unsloth: You have torch = ¤ but xformers = ¤.",
    },
    {
        "package": "transformers", "releases": "4.40.0..4.57.6", "module": "transformers.trainer", "function": "Trainer.__init__",
        "kind": "raise", "error": "ImportError", "reach": "task=sft|task=train",
        "condition": "not (is_accelerate_available() and importlib.metadata.version('accelerate') >= '0.26.0')",
        "message": "Using the `Trainer` with `PyTorch` requires `accelerate>=¤`",
    },
    {
        "package": "trl", "releases": "0.27.0", "module": "trl.import_utils", "function": "is_vllm_available",
        "kind": "warn", "error": "UserWarning", "reach": "feature=vllm",
        "condition": "_vllm_available and not (Version('0.10.2') <= Version(_vllm_version) <= Version('0.12.0'))",
        "message": "TRL currently supports vLLM versions from 0.10.2 to 0.12.0.",
    },
    needing("vllm", "0.3.0..0.9.0", "awq", 75),
    needing("vllm", "0.4.2..0.5.0.post1", "fp8", 89),
    needing("vllm", "0.5.1..0.13.0", "fp8", 80),
    needing("sglang", "0.4.0..0.5.23", "awq", 75),
    {
        "package": "trl", "releases": "0.29.0..1.9.2", "module": "trl.generation.vllm_client", "function": "",
        "kind": "raise", "error": "ModuleNotFoundError", "reach": "trainer=grpotrainer|trainer=rlootrainer",
        "condition": "importlib.util.find_spec('requests') is None", "message": "No module named 'requests'",
    },
]  # fmt: skip


@pytest.fixture(autouse=True)
def _rows(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = Refusals(pack_mined.guards(ROWS, NAMES))
    monkeypatch.setattr(guards, "open_once", lambda: refusals)


def found(*, complete: bool = True, gpu: str | None = None, workload: Workload | None = None, **packages: str) -> list[Finding]:
    environment = Environment(
        distributions=tuple(Distribution(name.replace("_", "-"), version) for name, version in packages.items()),
        distributions_complete=complete, workload=workload,
        accelerators=None if gpu is None else (Accelerator("nvidia", compute_capability=gpu),),
    )  # fmt: skip
    return list(guards.judge(Facts(environment)))


def test_what_is_run_at_import_is_certain() -> None:
    (finding,) = found(unsloth="2025.3.1", torch="2.3.0+cu121", xformers="0.0.28")
    assert (finding.rule, finding.verdict, finding.severity) == ("guard-unsloth-torch", "hit", "error")
    assert finding.packages == {"unsloth": "2025.3.1", "torch": "2.3.0+cu121", "xformers": "0.0.28"}
    assert [(fix.kind, fix.package, fix.spec) for fix in finding.fixes] == [
        ("upgrade", "torch", ">=2.4.0"), ("downgrade", "xformers", "<=0.0.27"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "packages",
    [
        {"unsloth": "2025.3.1", "torch": "2.5.1", "xformers": "0.0.28"},
        {"unsloth": "2025.3.1", "torch": "2.3.0", "xformers": "0.0.26"},
        {"unsloth": "2025.3.1", "torch": "2.3.0"},
        {"unsloth": "2024.8", "torch": "2.3.0", "xformers": "0.0.28"},
        {"unsloth": "2026.11.0", "torch": "2.3.0", "xformers": "0.0.28"},
        {"unsloth": "2025.3.1.dev0", "torch": "2.3.0", "xformers": "0.0.28"},
    ],
)
def test_releases_and_versions_outside_the_row_are_clear(packages: dict[str, Any]) -> None:
    assert found(**packages) == []


def test_a_feature_has_to_be_known() -> None:
    packages = {"peft": "0.19.1", "torchao": "0.9.0"}
    (shown,) = found(**packages, workload=Workload(task="lora"))
    assert (shown.verdict, shown.fixes[0].spec) == ("hit", ">=0.16.0")
    (open_one,) = found(**packages)
    assert (open_one.verdict, open_one.missing, open_one.likelihood) == ("possible", ("workload",), 0.2)
    assert found(**packages, workload=Workload(task="sft", features_complete=True)) == []
    assert found(**packages, workload=Workload(task="install", features=("peft",))) == []
    assert found(**packages, workload=Workload(task="serve", features=("peft",))) == []


def test_a_package_that_is_known_to_be_absent_is_not_available() -> None:
    workload = Workload(task="sft")
    (finding,) = found(transformers="4.50.0", workload=workload)
    assert (finding.packages, finding.fixes[0].package) == ({"transformers": "4.50.0", "accelerate": None}, "accelerate")
    assert found(transformers="4.50.0", accelerate="1.0.0", workload=workload) == []
    assert found(transformers="4.50.0", complete=False, workload=workload) == [], "nobody mentioned accelerate"
    assert found(transformers="4.50.0") == [], "what a feature would want installed is no question without it"


def test_a_warned_range_is_a_warning_with_the_whole_range_as_its_fix() -> None:
    (finding,) = found(trl="0.27.0", vllm="0.13.0", workload=Workload(features=("vllm",)))
    assert finding.why.endswith("if vllm is installed and not (vllm >= 0.10.2 and vllm <= 0.12.0).")
    assert (finding.severity, finding.verdict) == ("warning", "hit")
    assert [(fix.kind, fix.spec) for fix in finding.fixes] == [("downgrade", ">=0.10.2,<=0.12.0")]


def test_a_least_capability_counts_with_its_quantization() -> None:
    workload = Workload(task="serve", quantization="awq")
    (finding,) = found(vllm="0.8.0", gpu="7.0", workload=workload)
    assert (finding.rule, finding.facts) == ("guard-vllm-capability", ("accelerators",))
    assert found(vllm="0.8.0", gpu="7.5", workload=workload) == []
    assert found(vllm="0.8.0", workload=workload) == []
    assert found(vllm="0.8.0", gpu="7.0", workload=Workload(task="serve", quantization="gptq")) == []
    assert found(vllm="0.8.0", gpu="7.0", workload=Workload(task="sft", quantization="awq")) == [], "trained, not served"


def test_a_release_that_supports_the_method_on_this_gpu_is_a_fix() -> None:
    fp8, awq = (Workload(task="serve", quantization=name) for name in ("fp8", "awq"))
    (finding,) = found(vllm="0.5.0", gpu="8.6", workload=fp8)
    assert [(fix.kind, fix.package, fix.spec) for fix in finding.fixes[:1]] == [("upgrade", "vllm", ">=0.5.1")]
    assert found(vllm="0.5.1", gpu="8.6", workload=fp8) == [], "the next release accepts it"
    (finding,) = found(vllm="0.8.0", gpu="7.0", workload=awq)
    assert [fix.package for fix in finding.fixes] == [None], "no release of vllm supports AWQ on Volta"


def test_of_two_engines_neither_is_known_to_serve() -> None:
    serving = Workload(task="serve", quantization="awq")
    (finding,) = found(gpu="7.0", workload=serving, sglang="0.5.0")
    assert finding.verdict == "hit"
    assert found(gpu="7.0", workload=serving, sglang="0.5.0", vllm="0.8.0") == []
    rollout = Workload(task="grpo", quantization="awq", features=("vllm",))
    assert [each.packages for each in found(gpu="7.0", workload=rollout, sglang="0.5.0", vllm="0.8.0")] == [{"vllm": "0.8.0"}]


def test_a_rule_that_says_it_comes_first() -> None:
    (finding,) = found(peft="0.19.1", torchao="0.9.0", workload=Workload(task="lora"))
    rule = Finding("r", "rule", "t", "w", packages={"peft": "0.19.1", "torchao": "0.9.0"})
    assert deduplicated((rule, finding)) == (rule,)
    assert deduplicated((finding,)) == (finding,)


REQUIRED = {"accelerate": "1.12.0", "datasets": "4.4.0", "packaging": "25.0", "transformers": "5.0.0"}
CODE = """from trl import GRPOTrainer
trainer = make(GRPOTrainer)
"""


def test_a_module_that_is_imported_and_not_required_is_missing(tmp_path: Path) -> None:
    (shown,) = found(trl="1.0.0", **REQUIRED, workload=Workload(trainer="grpotrainer"))
    assert (shown.rule, shown.verdict, shown.fixes[0].package) == ("guard-trl-requests", "hit", "requests")
    assert shown.why == (
        "trl.generation.vllm_client imports requests with trainer grpotrainer, but trl does not require it, and it is not installed."
    )
    assert found(trl="1.0.0", **REQUIRED, requests="2.32.0", workload=Workload(trainer="grpotrainer")) == []
    assert found(trl="1.0.0", **REQUIRED, workload=Workload(trainer="sfttrainer")) == []
    script = tmp_path / "train.py"
    script.write_text(CODE)
    (imported,) = found(trl="1.0.0", **REQUIRED, workload=Workload(code=(str(script),)))
    assert imported.verdict == "hit", "importing the name runs the module, whether or not the trainer is constructed"


def test_a_listing_without_a_release_s_requirements_says_nothing_about_others() -> None:
    excerpt = {name: version for name, version in REQUIRED.items() if name != "datasets"}
    assert found(trl="1.0.0", **excerpt, workload=Workload(trainer="grpotrainer")) == []
