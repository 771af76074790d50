"""The level of detail that the shipped tables keep per module: everything for commonly imported ones, else names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from scripts.surface.compiled import FILLED
from scripts.surface.history import ModuleHistory, PackageHistory
from scripts.surface.packages import AROUND, BESIDE, TRACKED, tops_of

_OF_WHOLE = ("field", "rename", "method", "attribute", "instance", "made", "call")
_TOPS = frozenset(top for package in (*TRACKED, *BESIDE, *AROUND) for top in tops_of(package))


@dataclass(frozen=True)
class Detail:
    """``any``: whether a module is in the table. ``whole``: with signatures, members of classes and what calls them.

    Otherwise only public names are, where ``private`` all, and where ``classes`` only those of classes and values.
    """

    any: bool
    whole: bool
    classes: bool = False
    private: bool = False

    def kept(self, section: str, about: Any, says: dict[Hashable, int], own: tuple[str, ...] = ()) -> dict[Hashable, int]:
        """What of a statement is kept. ``own``, in the module of a package: the top-level modules whose names it passes on."""
        if section == "define":
            return self._definitions(says, own) if self.whole or self.private or not about.startswith("_") else {}
        if section == "lazy":
            return _short(about, says)
        if section in ("star", "open", "wrapper"):
            return says
        return says if self.whole and section in _OF_WHOLE else {}

    def _definitions(self, says: dict[Hashable, int], own: tuple[str, ...]) -> dict[Hashable, int]:
        """Definitions of one name: without imports of packages that are not tracked; classes say whether they are whole."""
        kept: dict[Hashable, int] = defaultdict(int)
        for each, mask in says.items():
            assert isinstance(each, tuple)
            if each[0] == "c":
                kept[(*each, False) if self.whole else ("c", each[1], (), True, True)] |= mask
            elif each[0] == "f" and self.classes:
                return {}
            elif each[0] == "f" and not self.whole:
                kept[("v",)] |= mask
            elif each[0] != "i" or (self.whole and each[1].partition(".")[0] in _TOPS):
                kept[each] |= mask
            elif each[1].partition(".")[0] in own and each[2] is not None:
                kept[("v",)] |= mask
        left_out = sum(mask for each, mask in says.items() if isinstance(each, tuple) and each[0] == "i" and each not in kept)
        if kept and left_out:  # a name defined in one release and imported in another exists in both
            kept[("v",)] |= left_out
        return kept


def _short(name: str, places: dict[Hashable, int]) -> dict[Hashable, int]:
    """Places that end in the name itself are written without it."""
    found: dict[Hashable, int] = defaultdict(int)
    for place, mask in places.items():
        found[str(place).removesuffix(name) if str(place).endswith(f".{name}") else place] |= mask
    return found


def _spell_out(name: str, module: ModuleHistory, when: int, made_by: ModuleHistory | None) -> None:
    """Adds what the module of the getter's maker gives; where that was not read, anything may be there."""
    read = when & (made_by.read if made_by is not None else 0)
    if when & ~read:
        module.statements["open"][None][None] |= when & ~read
    for key, says in (made_by.statements.get("gives", {}) if made_by is not None else {}).items():
        place, _, given = str(key).partition(":")
        if place == name and says[None] & when:
            module.statements["lazy"][given][""] |= says[None] & when


WHOLE, SOME, NOTHING = Detail(any=True, whole=True), Detail(any=True, whole=False), Detail(any=False, whole=False)
CLASSES = Detail(any=True, whole=False, classes=True)
COMPILED = Detail(any=True, whole=False, private=True)
_LEFT_OUT = {
    "transformers": r".*\.(dummy_\w+|modeling_(tf|flax)_\w+|sagemaker)$|kernels|benchmark",
    "torch": (
        r"_(?!C$|C/|utils$|jit_internal$|tensor$|six$|dynamo$)\w*\.|testing|onnx\._|ao\.ns|package|"
        r"distributed\._|fx\.experimental|.*\._internal"
    ),
    "vllm": (
        r"third_party|benchmarks|vllm_flash_attn|model_executor\.(models|layers)\.|v1\.(attention|worker|"
        r"spec_decode|sample)\.|attention\.|distributed\.|compilation\.|kernels|device_allocator|multimodal\.|"
        r"lora\.(layers|ops)"
    ),
    "deepspeed": r"(inference|module_inject|ops|model_implementations|compile|compression|elasticity|monitor)\.\w",
    "diffusers": r"(pipelines|modular_pipelines)\.\w+\.\w",
    "axolotl": r"(integrations|kernels|monkeypatch|prompt_strategies)\.\w",
    "verl": r"(models|third_party|workers|experimental)\.\w+\.",
    "lm-eval": r"tasks\.",
    "lighteval": r"tasks\.",
    "sglang": r"srt\.\w+\.|multimodal_gen|bench|test|jit_kernel|kernels",
    "ms-swift": r"(ui|megatron|model|template|dataset)\.|llm\.(model|template|dataset|ui)\.",
    "torchao": "prototype|experimental|kernel",
    "triton": r"backends|tools|compiler\.|experimental|language\.extra|runtime\.\w+\.",
    "torchvision": r"(models|prototype|datasets)\.",
    "optimum": r"(onnx\w*|exporters|intel|commands)\.",
    "openai": r"resources|cli|helpers|lib|_(?!client$|exceptions$)\w",
    "setuptools": r"_vendor|_distutils\.|extern",
    "scipy": r"(\w+\.)*_\w+|(\w+\.)+tests",
    "pandas": r"_libs|_testing|tests|compat\.|core\.\w+\.\w+\.",
    "scikit-learn": r"externals|(\w+\.)*_\w+",
    "numba": r"(cuda|cpython|core|np|parfors|roc|stencils|testing|misc|pycc|experimental)\.\w",
    "torchtitan": r"(models|experiments)\.\w+\.",
    "lmdeploy": r"(pytorch|vl|turbomind|lite)\.\w+\.",
    "flashinfer-python": r"(data|cute_dsl|experimental|jit|gemm|fused_moe|aot|prims_ts)\.\w",
    "gptqmodel": r"(nn_modules|models\.definitions|extension|hf_minimax_m2|exllama\w*)\.",
    "megatron-core": r"core\.(models|transformer\.moe|inference|datasets|dist_checkpointing\.\w+)\.\w+\.|core\.extensions",
    "transformer-engine": r"(jax|paddle)\.\w|pytorch\.(ops|tensor|attention|cpp_extensions|triton)\.",
    "flash-linear-attention": r"(ops|models|modules)\.\w+\.",
    "auto-round": r"(modeling|export|experimental|algorithms|data_type)\.\w",
    "ray": r"(rllib|dashboard|autoscaler|tune|serve|data|train|_private|workflow|air|util|core|llm)\.\w",
    "gradio": r"(_simple_templates|components|cli|templates|themes|layouts|media_assets|demo|monitoring_dashboard)\.\w",
    "wandb": (
        "(vendor|sdk|proto|_vendor|integration|apis|automations|filesync|cli|errors|plot|old|sync|docker|"
        r"agents|sklearn|keras|xgboost)\.\w"
    ),
    "fschat": r"(serve|data|model|llm_judge|train)\.\w+\.",
    "langchain-core": r"(_\w+|utils|tracers|document_loaders|beta)\.\w",
    "nltk": r"\w+\.\w",
}
"""Modules that nobody imports by name, below the package's own."""
_FAMILIES = (
    r"llama\w*|mistral\w*|mixtral|qwen\w*|gemma\w*|phi\w*|gpt2|gpt_neox|gpt_oss|opt|bloom|falcon|t5|bert|roberta|whisper|llava\w*"
    r"|mllama|deepseek\w*|glm\w*|granite|olmo\w*|cohere2?|starcoder2|internvl|idefics\d|paligemma|siglip2?|clip|smol\w*|mamba2?"
    r"|bart|modernbert"
)
"""Models whose classes programs outside transformers patch, derive from and take attributes of."""
_NAMES_ONLY = {
    "transformers": rf"models\.(?!(?:{_FAMILIES})\.(?:modeling|configuration|tokenization|processing)_)",
    "diffusers": r"(pipelines|models|schedulers|modular_pipelines)\.",
    "deepspeed": "inference|module_inject|ops|model_implementations|compression|autotuning|nebula|profiling|linear|compile",
    "timm": r"(layers|models)\.",
    "sentence-transformers": r".*\.(evaluation|losses)\.",
}
"""Modules of which only the names are kept."""
_WHOLE_ONLY = {
    "torch": (
        r"nn\b|optim|utils\.(data|checkpoint)|cuda\b(?!\._)|amp|compiler|distributed\.(fsdp|device_mesh|"
        "distributed_c10d)|serialization"
    ),
    "vllm": r"entrypoints\.llm$|sampling_params$|engine\.arg_utils|lora\.request$|outputs$|inputs\b|pooling_params$",
    "unsloth": r"models\.(loader|llama|vision|_utils|rl)$|trainer$|chat_templates$|save$",
    "unsloth-zoo": "(dataset|training|vision|peft)_utils$|utils$",
    "axolotl": r"train$|utils\.(trainer|dict)$|prompters$",
    "verl": r"protocol$|trainer\.main_ppo$",
    "llamafactory": r"train\.tuner$|hparams\.\w+_args$|chat\.chat_model$|launcher$|cli$",
    "ms-swift": r"llm\.(train\.sft|infer\.infer)$|tuners\.base$",
    "lm-eval": r"evaluator$|api\.model$|models\.(huggingface|vllm_causallms)$",
    "lighteval": r"pipeline$|logging\.evaluation_tracker$",
    "torchao": r"quantization\.quant_api$|float8\.\w+$",
    "optimum": r"(pipelines|bettertransformer)\b|gptq\.quantizer$",
    "llmcompressor": r"entrypoints\.\w+$|modifiers\.quantization\b",
    "torchvision": r"transforms\.transforms$",
    "sglang": r"lang\.api$|srt\.entrypoints\.engine$",
    "xformers": r"ops\.fmha$",
    "auto-gptq": r"modeling\._?(base|auto)$",
    "triton": "runtime.autotuner$",
    "numpy": "$^",
    "openai": "_client$|_exceptions$",
    "liger-kernel": r"transformers\.(monkey_patch|auto_model)$",
    "compressed-tensors": r"quantization\.quant_\w+$",
    "xgrammar": "$^",
    "setuptools": "setuptools$",
    "scipy": "$^",
    "pandas": r"core\.(frame|series)$|io\.(parquet|json\._json|excel\._base)$",
    "scikit-learn": r"(model_selection|metrics|ensemble)\._\w+$",
    "numba": "$^",
    "torchtitan": "$^",
    "flashinfer-python": "(decode|prefill|sampling)$",
    "gptqmodel": r"models\.(base|auto)$|quantization\.config$|utils\.backend$",
    "lmdeploy": "(api|messages)$",
    "auto-round": r"autoround$|compressors\.base$",
    "megatron-core": "$^",
    "transformer-engine": r"pytorch\.(fp8|module\.linear)$",
    "flash-linear-attention": "$^",
    "ray": r"_private\.worker$",
    "gradio": "(blocks|interface|chat_interface)$",
    "wandb": "$^",
    "fschat": "$^",
    "nltk": "$^",
    "langchain-core": r"(messages|prompts|runnables)\.\w+$",
    "fastapi": "applications$",
    "starlette": "applications$",
    "lightning": (
        r"pytorch(\.(trainer(\.trainer)?|callbacks(\.\w+)?|strategies(\.\w+)?|loggers(\.\w+)?))?$|fabric(\.(fabric|"
        r"strategies(\.\w+)?))?$"
    ),
    "pytorch-lightning": r"(trainer(\.trainer)?|callbacks(\.\w+)?|strategies(\.\w+)?|loggers(\.\w+)?)$",
}
"""Packages of which only these modules, and the package itself, are kept whole."""


def _matches(table: dict[str, str], package: str, module: str) -> bool:
    below = module.partition(".")[2]
    return package in table and re.match(table[package], below) is not None


def detail_of(package: str, module: str) -> Detail:
    """Return how much of a module is kept."""
    if "." not in module:
        return WHOLE
    if module in FILLED.get(package, ()):
        return COMPILED
    if _matches(_LEFT_OUT, package, module):
        return NOTHING
    if package in _WHOLE_ONLY:
        return WHOLE if _matches(_WHOLE_ONLY, package, module) else SOME
    if not _matches(_NAMES_ONLY, package, module):
        return WHOLE
    return CLASSES if package in ("transformers", "diffusers") else SOME


def without_provided(history: PackageHistory) -> None:
    """List the names that a package provides through its other modules explicitly.

    ``__all__`` of the modules below it lists them, or a function of another module makes its ``__getattr__``.
    """
    for name, module in history.modules.items():
        for made_by, says in module.statements.pop("getter", {}).items():
            _spell_out(name, module, says[None], history.modules.get(str(made_by)))
    for module in history.modules.values():
        module.statements.pop("gives", None)
    for name, module in history.modules.items():
        listed = module.statements.pop("listed", None)
        if not listed:
            continue
        if name == "transformers.models":
            continue  # its parent package provides the same names
        when = listed[None][None]
        for below, other in history.modules.items():
            if below.startswith(f"{name}."):
                for names, mask in other.statements.get("all", {}).get(None, {}).items():
                    assert isinstance(names, tuple)
                    for each in names:
                        if mask & when:
                            module.statements["lazy"][each][f"{below}.{each}"] |= mask & when
