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
        """Definitions of one name; imports of packages that are not tracked are left out, classes say whether they are whole."""
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


WHOLE, SOME, NOTHING = Detail(True, True), Detail(True, False), Detail(False, False)
_LEFT_OUT = {
    "transformers": re.compile(r"\.(dummy_\w+|modeling_(tf|flax)_\w+|sagemaker\b)|^transformers\.(kernels|benchmark)\b"),
    "torch": re.compile(
        r"^torch\.(_inductor|_dynamo\.(polyfills|variables)|testing|onnx\._internal|ao\.ns|_refs|_decomp|package)\b"
    ),
    "vllm": re.compile(r"^vllm\.(third_party|benchmarks|vllm_flash_attn)\b"),
}
_NAMES_ONLY = {
    "transformers": re.compile(r"^transformers\.models\."),
    "torch": re.compile(r"^torch\.(_|ao\.|onnx\.|distributed\.(_|elastic|rpc|checkpoint|pipelining)|fx\.|jit\.|utils\._|sparse|export|nested|mtia|xpu|contrib|masked)"),
    "vllm": re.compile(r"^vllm\.(model_executor\.(layers|models)|v1\.(attention|spec_decode|worker)|attention|distributed|compilation|kernels|lora\.layers)"),
    "diffusers": re.compile(r"^diffusers\.(pipelines|models|schedulers|modular_pipelines)\."),
    "unsloth-zoo": re.compile(r"^unsloth_zoo\.(?!(dataset|training|vision|tokenizer|peft|saving|vllm)_utils$|utils$|rl_replacements$|device_type$)"),
    "unsloth": re.compile(r"^unsloth\.(kernels|registry|utils|dataprep|studio|ollama|import_fixes|_)"),
    "deepspeed": re.compile(r"^deepspeed\.(inference|module_inject|ops|model_implementations|compression|autotuning|nebula|profiling|linear|compile)"),
    "axolotl": re.compile(r"^axolotl\.(integrations|kernels|monkeypatch|cli|loaders|prompt_strategies)"),
    "verl": re.compile(r"^verl\.(models|third_party|workers|experimental|utils|single_controller)"),
    "llamafactory": re.compile(r"^llamafactory\.(webui|api|v1|extras|third_party)"),
    "torchao": re.compile(r"^torchao\.(prototype|kernel|_|experimental|dtypes|swizzle)"),
    "ms-swift": re.compile(r"^swift\.(ui|megatron|model|template|dataset|rlhf_trainers|infer_engine|pipelines|llm\.(model|template|dataset|ui)|hub)"),
    "optimum": re.compile(r"^optimum\.(onnx|onnxruntime|exporters|intel|bettertransformer|commands|utils|fx|gptq|habana|neuron)"),
    "lm-eval": re.compile(r"^lm_eval\.tasks\."),
    "lighteval": re.compile(r"^lighteval\.tasks\."),
    "timm": re.compile(r"^timm\.(layers|models)\."),
    "llmcompressor": re.compile(r"^llmcompressor\.(modifiers|pytorch|transformers)\."),
    "torchvision": re.compile(r"^torchvision\.(models|prototype|transforms|datasets)\."),
    "sglang": re.compile(r"^sglang\.(srt|multimodal_gen|bench|test|jit_kernel)"),
    "xformers": re.compile(r"^xformers\.(benchmarks|triton|_|components|factory|sparse)"),
    "auto-gptq": re.compile(r"^auto_gptq\.(nn_modules|eval_tasks|modeling\._)"),
    "triton": re.compile(r"^triton\.(_|tools|compiler|runtime|backends|experimental|language\.extra)"),
    "numpy": re.compile(r"^numpy\."),
    "liger-kernel": re.compile(r"^liger_kernel\.(ops|megatron)"),
}  # fmt: skip


def detail_of(package: str, module: str) -> Detail:
    left_out, names_only = _LEFT_OUT.get(package), _NAMES_ONLY.get(package)
    if left_out is not None and left_out.search(module):
        return NOTHING
    return SOME if names_only is not None and names_only.search(module) else WHOLE


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
