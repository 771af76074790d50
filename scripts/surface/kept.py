"""How much of each module the shipped tables keep: everything of what people import, names of the rest."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from scripts.surface.history import PackageHistory
from scripts.surface.packages import BESIDE, TRACKED, tops_of

_OF_WHOLE = ("field", "rename", "method", "attribute", "instance", "made", "call")
_TOPS = frozenset(top for package in (*TRACKED, *BESIDE) for top in tops_of(package))


@dataclass(frozen=True)
class Detail:
    """``any``: whether a module is in the table. ``whole``: with signatures, members of classes and what calls them."""

    any: bool
    whole: bool

    def kept(self, section: str, about: Any, says: dict[Hashable, int]) -> dict[Hashable, int]:
        """What of a statement is kept."""
        if section == "define":
            return self._definitions(says)
        if section == "lazy":
            return _short(about, says)
        if section in ("star", "open"):
            return says
        return says if self.whole and section in _OF_WHOLE else {}

    def _definitions(self, says: dict[Hashable, int]) -> dict[Hashable, int]:
        """Definitions of one name: without imports of packages that are not tracked; classes say whether they are whole."""
        kept: dict[Hashable, int] = defaultdict(int)
        for each, mask in says.items():
            assert isinstance(each, tuple)
            if each[0] == "c":
                kept[(*each, False) if self.whole else ("c", each[1], (), True, True)] |= mask
            elif each[0] == "f" and not self.whole:
                kept[("v",)] |= mask
            elif each[0] != "i" or each[1].partition(".")[0] in _TOPS:
                kept[each] |= mask
        return kept


def _short(name: str, places: dict[Hashable, int]) -> dict[Hashable, int]:
    """Places that end in the name itself are written without it."""
    found: dict[Hashable, int] = defaultdict(int)
    for place, mask in places.items():
        found[str(place).removesuffix(name) if str(place).endswith(f".{name}") else place] |= mask
    return found


WHOLE, SOME, NOTHING = Detail(any=True, whole=True), Detail(any=True, whole=False), Detail(any=False, whole=False)
_LEFT_OUT = {
    "transformers": r".*\.(dummy_\w+|modeling_(tf|flax)_\w+|sagemaker)$|kernels|benchmark",
    "torch": r"_(?!C$|C/|utils$|jit_internal$|tensor$|six$|dynamo$)\w*\.|testing|onnx\._|ao\.ns|package|distributed\._"
    r"|fx\.experimental|.*\._internal",
    "vllm": "third_party|benchmarks|vllm_flash_attn",
}
"""Modules that nobody imports by name, below the package's own."""
_NAMES_ONLY = {
    "transformers": r"models\.",
    "vllm": r"model_executor\.(layers|models)|v1\.|attention|distributed|compilation|kernels|lora\.layers|multimodal"
    "|transformers_utils",
    "diffusers": r"(pipelines|models|schedulers|modular_pipelines)\.",
    "unsloth": "kernels|registry|utils|dataprep|ollama|import_fixes|_",
    "deepspeed": "inference|module_inject|ops|model_implementations|compression|autotuning|nebula|profiling|linear|compile",
    "axolotl": "integrations|kernels|monkeypatch|cli|loaders|prompt_strategies",
    "verl": "models|third_party|workers|experimental|utils|single_controller",
    "llamafactory": "webui|api|v1|extras|third_party",
    "torchao": "prototype|kernel|_|experimental|dtypes|swizzle",
    "ms-swift": r"ui|megatron|model|template|dataset|rlhf_trainers|infer_engine|pipelines|llm\.(model|template|dataset|ui)|hub",
    "optimum": "onnx|exporters|intel|bettertransformer|commands|utils|fx|gptq|habana|neuron",
    "lm-eval": r"tasks\.",
    "lighteval": r"tasks\.",
    "timm": r"(layers|models)\.",
    "llmcompressor": r"(modifiers|pytorch|transformers)\.",
    "torchvision": r"(models|prototype|transforms|datasets)\.",
    "sglang": "srt|multimodal_gen|bench|test|jit_kernel",
    "xformers": "benchmarks|triton|_|components|factory|sparse",
    "auto-gptq": r"nn_modules|eval_tasks|modeling\._",
    "triton": r"_|tools|compiler|runtime|backends|experimental|language\.extra",
    "numpy": "",
    "liger-kernel": "ops|megatron",
}
"""Modules of which only the names are kept."""
_WHOLE_ONLY = {
    "torch": r"nn\b|optim|utils\.(data|checkpoint)|cuda\b(?!\._)|amp|compiler"
    r"|distributed\.(fsdp|device_mesh|distributed_c10d|algorithms)|serialization",
    "unsloth-zoo": r"(dataset|training|vision|tokenizer|peft|saving|vllm)_utils$|utils$|rl_replacements$|device_type$",
}
"""Packages of which only these modules, and the package itself, are kept whole."""


def _matches(table: dict[str, str], package: str, module: str) -> bool:
    below = module.partition(".")[2]
    return package in table and re.match(table[package], below) is not None


def detail_of(package: str, module: str) -> Detail:
    """How much of a module is kept."""
    if "." not in module:
        return WHOLE
    if _matches(_LEFT_OUT, package, module):
        return NOTHING
    if package in _WHOLE_ONLY:
        return WHOLE if _matches(_WHOLE_ONLY, package, module) else SOME
    return SOME if _matches(_NAMES_ONLY, package, module) else WHOLE


def without_provided(history: PackageHistory) -> None:
    """Spells out the names that a package gives because ``__all__`` of the modules below it lists them."""
    for name, module in history.modules.items():
        listed = module.statements.pop("listed", None)
        if not listed:
            continue
        if name == "transformers.models":
            continue  # the package above it gives the same names
        when = listed[None][None]
        for below, other in history.modules.items():
            if below.startswith(f"{name}."):
                for names, mask in other.statements.get("all", {}).get(None, {}).items():
                    assert isinstance(names, tuple)
                    for each in names:
                        if mask & when:
                            module.statements["lazy"][each][f"{below}.{each}"] |= mask & when
