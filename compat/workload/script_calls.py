"""Read calls and assignments in a script that define the training: trainers, configurations, loaded models."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from compat.model import Option
from compat.workload.arguments import apply_option, zero_stage
from compat.workload.draft import UNKNOWN, Draft, parse_count, parse_switch, precision_word
from compat.workload.trainers import is_config, trainer_of
from compat.workload.vocabulary import CLASSES_OF_BITSANDBYTES

if TYPE_CHECKING:
    from compat.workload.script_names import Names, Scope, Visit


_TRAINER_KEYWORDS = ("packing", "use_liger", "model_init_kwargs")
_ATTENTION = ("attn_implementation", "use_flash_attention_2")
_SETS_DTYPE = ("torch_dtype", "dtype", "config", "quantization_config", "load_in_4bit", "load_in_8bit")
"""Arguments of ``from_pretrained`` that decide, or may decide, the type of the weights."""
_LOADER_KEYWORDS = (
    "device_map", "load_in_4bit", "load_in_8bit", "use_cache", "fast_inference", "enforce_eager",
    "use_gradient_checkpointing", *_ATTENTION,
)  # fmt: skip
_MODEL_NAMES = ("model_name", "pretrained_model_name_or_path", "model_name_or_path")
_OPTION_OWNERS = ("args", "training_args", "training_arguments", "train_args", "config", "training_config", "cfg", "sft_config",
                  "grpo_config", "dpo_config", "trainer_args")  # fmt: skip
_SETTABLE = ("use_vllm", "gradient_checkpointing", "per_device_train_batch_size", "gradient_accumulation_steps", "bf16", "fp16",
             "packing", "use_liger_kernel", "torch_compile", "deepspeed", "fsdp", "average_tokens_across_devices")  # fmt: skip
_OF_MODELS = ("use_cache", "accepts_loss_kwargs")
_PRECISION = ("bf16", "fp16", "use_cpu", "no_cuda")
_BF16_BY_DEFAULT = tuple(f"trl.{name}Config" for name in ("SFT", "GRPO", "DPO", "Reward"))
"""Configurations of trl that turn bf16 on where they are given none of these arguments."""
_NO_MODEL = ("Tokenizer", "Processor", "Config", "FeatureExtractor", "Peft", "Dataset", "Pipeline")
_REWARDS = ("SequenceClassification", "RewardModel", "TokenClassification")
_EMPTY_WEIGHTS = ("accelerate.init_empty_weights", "accelerate.big_modeling.init_empty_weights")
_PADDINGS = ("longest", "max_length")
"""Values of ``padding`` that make a tokenizer pad several texts."""
_WITH_CHOICES = frozenset((
    "accelerate", "bitsandbytes", "datasets", "diffusers", "llmcompressor", "lmdeploy", "optimum", "peft",
    "sentence_transformers", "sglang", "torchao", "transformers", "trl", "unsloth", "vllm",
))  # fmt: skip
"""Modules whose classes and functions are given strings that not every release accepts."""
_PROMPTS = {
    "PrefixTuningConfig": "prefix-tuning", "PromptTuningConfig": "prompt-tuning", "PromptEncoderConfig": "prompt-tuning",
    "MultitaskPromptTuningConfig": "prompt-tuning",
}  # fmt: skip
"""Configurations of peft that learn a prefix of the cache, or of the prompt."""
_CLASSIFIERS = ("SEQ_CLS", "TOKEN_CLS")
"""Values of peft's ``task_type`` that put a new classification head on the model."""
_LIBRARIES = (
    "transformers", "unsloth", "peft", "trl", "auto_gptq", "gptqmodel", "awq", "optimum", "liger_kernel", "swift", "modelscope",
)  # fmt: skip
_QUANTIZERS = {"awq": "awq", "auto_gptq": "gptq", "gptqmodel": "gptq"}
"""Libraries that quantize a model, or load a quantized one, with the method."""
_QUANTIZING = {"FineGrainedFP8Config": "fp8", "GPTQConfig": "gptq", "AwqConfig": "awq"}
"""Configurations of transformers that quantize a model with the method; that of bitsandbytes says how many bits."""


class Calls:
    """Collect facts into ``draft``, node by node.

    ``variables`` are the environment variables that the script sets, ``given`` the strings that it passes to libraries.
    """

    def __init__(self, names: Names, draft: Draft, origin: Callable[[int], str]) -> None:
        self._names = names
        self._draft = draft
        self._origin = origin
        self._subclassed: list[tuple[tuple[str, str], str, bool]] = []
        self._trains = False
        self._data_types: list[tuple[object, str, bool]] = []
        self._classifiers: list[tuple[object, str, bool]] = []
        self._inference: list[Callable[[], None]] = []
        self._generates = False
        self._padded: list[_Call] = []
        self._untyped: list[_Call] = []
        self._without_precision: list[_Call] = []
        self._sets_precision = False
        self._engines: set[Scope] = set()
        self.variables: dict[str, str] = {}
        self.given: list[Option] = []

    def read(self, visit: Visit) -> None:
        """Read one node."""
        node = visit.node
        if isinstance(node, ast.Call):
            self._call(_Call(self._names, node, visit, self._origin(node.lineno)))
        elif isinstance(node, ast.ClassDef):
            self._class(node, visit)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assignment(node.targets[0], node.value, visit)
        elif isinstance(node, ast.With):
            self._context(node, visit)

    def finish(self) -> None:
        """Record the facts that depend on the whole script."""
        draft = self._draft
        for call in self._padded if self._generates else ():
            self._on("padded-prompts", call)
        for call in () if self._sets_precision else self._without_precision:
            self._on("default-precision", call)
        for call in self._untyped if self._trains else ():
            self._on("default-dtype", call)
        if not self._trains:
            for name, origin, conditional in self._subclassed:
                self._trainer(name, origin, conditional)
        if draft.get("task") == "reward" or not self._trains:
            for model, origin, conditional in self._classifiers:
                draft.record("model", model, origin, tentative=conditional)
        if not self._trains:
            for record in self._inference:
                record()
            for value, origin, conditional in self._data_types:
                draft.record("precision", precision_word(value) or UNKNOWN, origin, tentative=conditional)

    def _trainer(self, known: tuple[str, str], origin: str, conditional: bool) -> None:
        self._trains = True
        self._draft.record("trainer", known[0], origin, tentative=conditional)
        self._draft.record("task", known[1], origin, tentative=conditional)

    def _class(self, node: ast.ClassDef, visit: Visit) -> None:
        known = trainer_of(self._names.library_class(node.name))
        if known is not None:
            self._subclassed.append((known, self._origin(node.lineno), visit.conditional))
            return
        if not is_config(self._names.library_class(node.name)):
            return
        for line in node.body:  # the defaults of a configuration class defined in the script
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
                value = self._default(line.value, visit)
                apply_option(self._draft, line.target.id, value, self._origin(line.lineno), tentative=visit.conditional)

    def _context(self, node: ast.With, visit: Visit) -> None:
        """``with init_empty_weights(): model = SOMETHING.from_pretrained(NAME)``."""
        entered = (each.context_expr for each in node.items)
        if not any(isinstance(each, ast.Call) and self._names.dotted(each.func) in _EMPTY_WEIGHTS for each in entered):
            return
        for call in (each.func for line in node.body for each in ast.walk(line) if isinstance(each, ast.Call)):
            owner = (self._names.dotted(call) or "").rpartition(".")[0]
            if isinstance(call, ast.Attribute) and call.attr == "from_pretrained" and not owner.endswith(_NO_MODEL):
                self._draft.on("empty-weights", self._origin(call.lineno), tentative=visit.conditional)

    def _default(self, value: ast.expr, visit: Visit) -> object:
        """Return a field's default, including one written as ``field(default=…)``."""
        if isinstance(value, ast.Call):
            given = self._names.keywords(value, visit.scope)
            return given.get("default", UNKNOWN)
        return self._names.value(value, visit.scope)

    def _assignment(self, place: ast.expr, value: ast.expr, visit: Visit) -> None:
        if isinstance(place, ast.Attribute):
            self._sets_precision = self._sets_precision or place.attr in _PRECISION
            owner = place.value
            owner_name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            wanted = place.attr in _SETTABLE and owner_name in _OPTION_OWNERS
            if wanted or (place.attr in _OF_MODELS and owner_name.endswith(("config", "model"))):
                found = self._names.value(value, visit.scope)
                apply_option(self._draft, place.attr, found, self._origin(place.lineno), tentative=visit.conditional)
        elif isinstance(place, ast.Subscript) and self._names.dotted(place.value) == "os.environ":
            name, text = self._names.value(place.slice, visit.scope), self._names.value(value, visit.scope)
            if isinstance(name, str) and isinstance(text, str) and not visit.conditional and not visit.scope:
                self.variables[name] = text

    def _call(self, call: _Call) -> None:
        if call.root in _WITH_CHOICES and not call.conditional:
            strings = ((name, value) for name, value in call.keywords.items() if isinstance(value, str))
            self.given += [Option(call.dotted or "", name, call.origin, value) for name, value in strings]
        known = self._names.library_class(call.dotted)
        trainer = trainer_of(known)
        if trainer is not None:
            self._trainer(trainer, call.origin, call.conditional)
            self._options(call, _TRAINER_KEYWORDS)
            self._trained_model(call, (known or "").startswith("trl."))
        elif is_config(known):
            self._options(call, None)
            if known in _BF16_BY_DEFAULT and call.whole and call.keywords.keys().isdisjoint(_PRECISION):
                self._without_precision.append(call)
        elif call.root in _QUANTIZERS and call.name in ("from_pretrained", "from_quantized", "load"):
            self._quantized(call)
        elif call.name == "from_pretrained":
            self._loaded(call)
        elif call.dotted is not None and call.dotted in _EXACT:
            _EXACT[call.dotted](self, call)
        elif call.root in _ROOTS:
            _ROOTS[call.root](self, call)
        if call.name in _METHODS:
            _METHODS[call.name](self, call)
        if any(each.arg == "padding" for each in call.node.keywords) and call.keywords["padding"] in (True, *_PADDINGS):
            self._padded.append(call)

    def _options(self, call: _Call, wanted: tuple[str, ...] | None) -> None:
        for name, value in call.keywords.items():
            if wanted is None or name in wanted:
                apply_option(self._draft, name, value, call.origin, tentative=call.conditional)

    def _on(self, name: str, call: _Call) -> None:
        self._draft.on(name, call.origin, tentative=call.conditional)

    def _string_model(self, call: _Call, value: object) -> None:
        if isinstance(value, str) and value:
            self._draft.record("model", value, call.origin, tentative=call.conditional)

    def _trained_model(self, call: _Call, by_trl: bool) -> None:
        """The model of a trainer; trl's load one that they are given by its name."""
        stated = [each.value for each in call.node.keywords if each.arg == "model"] or call.node.args[:1]
        value = call.keywords.get("model") or (self._names.value(stated[0], call.scope) if stated else None)
        self._string_model(call, value)
        is_name = any(isinstance(each, ast.Attribute) and each.attr in _MODEL_NAMES for each in stated)
        if by_trl and (is_name or isinstance(value, str)):
            self._on("model-by-name", call)

    def _loaded(self, call: _Call) -> None:
        """``SOMETHING.from_pretrained(NAME, …)``."""
        owner = (call.dotted or "").split(".")[-2:-1] or [""]
        kind = owner[0]
        if call.root == "peft" and "Peft" in kind:
            self._on("peft", call)
        if "Liger" in kind:
            self._on("liger", call)
        if call.root not in _LIBRARIES or any(word in kind for word in _NO_MODEL):
            return
        self._options(call, _LOADER_KEYWORDS)
        if call.root == "transformers" and call.whole and call.keywords.keys().isdisjoint((*_ATTENTION, "config")):
            self._draft.off("flash-attention", call.origin, tentative=call.conditional)  # it only uses it where it is asked for
        if call.root == "transformers" and call.whole and call.keywords.keys().isdisjoint(_SETS_DTYPE):
            self._untyped.append(call)
        name = next((call.keywords[key] for key in _MODEL_NAMES if key in call.keywords), None)
        if name is None and call.node.args:
            name = self._names.value(call.node.args[0], call.scope)
        stated = (name if isinstance(name, str) else UNKNOWN, call.origin, call.conditional)
        if name is not None and any(word in kind for word in _REWARDS):
            self._classifiers.append(stated)
        elif name is not None:
            self._draft.record("model", stated[0], call.origin, tentative=call.conditional)
        if "ForMaskedLM" in kind:
            self._draft.on("masked-lm", call.origin, tentative=call.conditional)
        self._data_type(call)

    def _data_type(self, call: _Call) -> None:
        value = call.keywords.get("torch_dtype", call.keywords.get("dtype"))
        if value is not None:
            self._data_types.append((value, call.origin, call.conditional))

    def _quantized(self, call: _Call) -> None:
        self._draft.record("quantization", _QUANTIZERS[call.root], call.origin, tentative=call.conditional)
        self._inference.append(lambda: self._infers("inference", call))
        self._loaded(call)

    def _quantizing(self, call: _Call) -> None:
        self._draft.record("quantization", _QUANTIZING[call.name], call.origin, tentative=call.conditional)
        if "dequantize" in call.keywords:
            self._draft.feature(
                "dequantized-checkpoint", parse_switch(call.keywords["dequantize"]), call.origin, tentative=call.conditional
            )

    def _vllm(self, call: _Call) -> None:
        if call.name in ("LLM", "AsyncEngineArgs", "EngineArgs"):
            self._inference.append(lambda: self._infers("serve" if call.name == "AsyncEngineArgs" else "inference", call))

    def _pipeline(self, call: _Call) -> None:
        self._inference.append(lambda: self._infers("inference", call))

    def _infers(self, task: str, call: _Call) -> None:
        """Record inference or serving as the task. Only for scripts that train nothing: many test the model they trained."""
        self._draft.record("task", task, call.origin, tentative=call.conditional)
        self._data_type(call)
        if call.root != "vllm":
            self._string_model(call, call.keywords.get("model"))
            return
        self._on("vllm", call)
        if call.whole:
            for feature, name in (("vllm-lora", "enable_lora"), ("enforce-eager", "enforce_eager")):
                switch = parse_switch(call.keywords.get(name, False))
                self._draft.feature(feature, switch, call.origin, tentative=call.conditional)
        first = self._names.value(call.node.args[0], call.scope) if call.node.args else None
        self._string_model(call, call.keywords.get("model", first))
        method = call.keywords.get("quantization")
        if isinstance(method, str):
            self._draft.record("quantization", method.lower(), call.origin, tentative=call.conditional)

    def _peft(self, call: _Call) -> None:
        if call.name == "get_peft_model" or (call.name.endswith("Config") and call.name != "PeftConfig"):
            self._on("peft", call)
            if call.name in _PROMPTS:
                self._on(_PROMPTS[call.name], call)
            if call.name.endswith("Config"):
                self._adapter(call)
        elif call.name == "prepare_model_for_kbit_training":
            self._options(call, ("use_gradient_checkpointing",))

    def _adapter(self, call: _Call) -> None:
        """Read the configuration of an adapter: what is trained beside it, and whether it is for a classifier."""
        self._options(call, ("modules_to_save",))
        if call.whole and "modules_to_save" not in call.keywords:
            self._draft.off("modules-to-save", call.origin, tentative=call.conditional)
        task = next((each.value for each in call.node.keywords if each.arg == "task_type"), None)
        word = task.attr if isinstance(task, ast.Attribute) else call.keywords.get("task_type")
        if isinstance(word, str):
            self._draft.feature("classifier-adapter", word in _CLASSIFIERS, call.origin, tentative=call.conditional)

    def _unsloth(self, call: _Call) -> None:
        if call.name == "get_peft_model":
            self._on("peft", call)
            self._options(call, ("use_gradient_checkpointing",))

    def _liger(self, call: _Call) -> None:
        if call.name.startswith(("apply_liger_kernel", "_apply_liger_kernel")):
            self._on("liger", call)

    def _deepspeed_plugin(self, call: _Call) -> None:
        self._on("deepspeed", call)
        if "zero_stage" in call.keywords:
            zero_stage(self._draft, call.keywords["zero_stage"], call.origin, tentative=call.conditional)
        self._options(call, ("gradient_accumulation_steps",))

    def _fsdp_plugin(self, call: _Call) -> None:
        self._on("fsdp", call)
        self._options(call, ("fsdp_version",))
        if "cpu_ram_efficient_loading" in call.keywords:
            value = call.keywords["cpu_ram_efficient_loading"]
            apply_option(self._draft, "fsdp_cpu_ram_efficient_loading", value, call.origin, tentative=call.conditional)

    def _parallelism(self, call: _Call) -> None:
        if "cp_size" in call.keywords:
            size = call.keywords["cp_size"]
            apply_option(self._draft, "parallelism_config_cp_size", size, call.origin, tentative=call.conditional)

    def _device_map(self, call: _Call) -> None:
        if call.whole and all(each.arg != "max_memory" for each in call.node.keywords):
            self._on("device-map-without-memory", call)

    def _load_dataset(self, call: _Call) -> None:
        path = self._first(call, "path")
        if isinstance(path, str) and path.endswith(".py"):
            self._on("dataset-script", call)

    def _load_from_disk(self, call: _Call) -> None:
        from compat.workload.model_files import has_list_features

        path = self._first(call, "dataset_path")
        newer = has_list_features(path) if isinstance(path, str) else None
        if newer is not None:
            self._draft.feature("data-from-datasets-4", newer, call.origin, tentative=call.conditional)

    def _first(self, call: _Call, name: str) -> object:
        """Return the value of the first argument, which may be passed by keyword."""
        return self._names.value(call.node.args[0], call.scope) if call.node.args else call.keywords.get(name)

    def _prepared(self, call: _Call) -> None:
        """``accelerator.prepare(…)``, which initializes DeepSpeed where that is used."""
        self._engines.add(call.scope)

    def _adds_modules(self, call: _Call) -> None:
        """A call that adds modules to a model. Nodes come in source order: an engine that is known already wraps the model."""
        if call.scope in self._engines:
            self._on("late-modules", call)

    def _deepspeed(self, call: _Call) -> None:
        self._engines.add(call.scope)
        value = call.keywords.get("config", call.keywords.get("config_params"))
        self._on("deepspeed", call)
        if isinstance(value, (dict, str)):
            apply_option(self._draft, "deepspeed", value, call.origin, tentative=call.conditional)

    def _launcher(self, word: str, count: object, call: _Call) -> None:
        self._draft.record("launcher", word, call.origin, tentative=call.conditional)
        if count is not None:
            self._draft.record("processes", parse_count(count), call.origin, tentative=call.conditional)

    def _notebook_launcher(self, call: _Call) -> None:
        self._launcher("accelerate", call.keywords.get("num_processes", UNKNOWN), call)

    def _ray(self, call: _Call) -> None:
        self._launcher("ray", None, call)

    def _ray_workers(self, call: _Call) -> None:
        self._draft.record("processes", parse_count(call.keywords.get("num_workers")), call.origin, tentative=call.conditional)

    def _checkpointing_off(self, call: _Call) -> None:
        self._draft.off("gradient-checkpointing", call.origin, tentative=call.conditional)

    def _request(self, call: _Call) -> None:
        """``client.chat.completions.create(…, extra_body={"guided_json": …})``."""
        body = next((each.value for each in call.node.keywords if each.arg == "extra_body"), None)
        keys = body.keys if isinstance(body, ast.Dict) else ()
        if any(isinstance(key, ast.Constant) and str(key.value).startswith("guided_") for key in keys):
            self._on("guided-request-fields", call)

    def _generate(self, call: _Call) -> None:
        self._generates = True
        if call.keywords.get("use_cache") is False:
            self._on("no-cache", call)


class _Call:
    """One call: the callee, its constant keywords, and its line."""

    def __init__(self, names: Names, node: ast.Call, visit: Visit, origin: str) -> None:
        self.node = node
        self.scope = visit.scope
        self.conditional = visit.conditional
        self.origin = origin
        self.dotted = names.dotted(node.func)
        self.name = node.func.attr if isinstance(node.func, ast.Attribute) else (self.dotted or "").rpartition(".")[2]
        self.root = (self.dotted or "").partition(".")[0]
        self._names = names
        self._keywords: dict[str, object] | None = None

    @property
    def whole(self) -> bool:
        """Whether no ``**`` and no second positional argument may hold further options."""
        return all(each.arg is not None for each in self.node.keywords) and len(self.node.args) < 2

    @property
    def keywords(self) -> Mapping[str, object]:
        if self._keywords is None:
            self._keywords = self._names.keywords(self.node, self.scope)
        return self._keywords


def _takes(*options: str) -> Callable[[Calls, _Call], None]:
    return lambda calls, call: calls._options(call, options)


def _turns_on(feature: str) -> Callable[[Calls, _Call], None]:
    return lambda calls, call: calls._on(feature, call)


_EXACT: dict[str, Callable[[Calls, _Call], None]] = {
    "torch.compile": _turns_on("torch-compile"), "transformers.pipeline": Calls._pipeline,
    **{f"bitsandbytes.optim.{name}8bit": _turns_on("8bit-adam") for name in ("Adam", "AdamW", "PagedAdam", "PagedAdamW")},
    **{f"bitsandbytes.optim.{name}": _turns_on("bitsandbytes-optimizer") for name in CLASSES_OF_BITSANDBYTES},
    "transformers.BitsAndBytesConfig": _takes("load_in_4bit", "load_in_8bit"),
    **{f"transformers.{name}": Calls._quantizing for name in _QUANTIZING},
    "accelerate.Accelerator": _takes("mixed_precision", "gradient_accumulation_steps"),
    "accelerate.notebook_launcher": Calls._notebook_launcher,
    "accelerate.launchers.notebook_launcher": Calls._notebook_launcher,
    "accelerate.DeepSpeedPlugin": Calls._deepspeed_plugin, "accelerate.utils.DeepSpeedPlugin": Calls._deepspeed_plugin,
    "accelerate.FullyShardedDataParallelPlugin": Calls._fsdp_plugin,
    "accelerate.utils.FullyShardedDataParallelPlugin": Calls._fsdp_plugin,
    "accelerate.ParallelismConfig": Calls._parallelism, "accelerate.parallelism_config.ParallelismConfig": Calls._parallelism,
    "accelerate.utils.ParallelismConfig": Calls._parallelism, "datasets.load_dataset": Calls._load_dataset,
    "accelerate.infer_auto_device_map": Calls._device_map, "accelerate.utils.infer_auto_device_map": Calls._device_map,
    "datasets.load_from_disk": Calls._load_from_disk, "datasets.Dataset.load_from_disk": Calls._load_from_disk,
    "datasets.DatasetDict.load_from_disk": Calls._load_from_disk,
    "deepspeed.initialize": Calls._deepspeed, "ray.train.torch.TorchTrainer": Calls._ray,
    "ray.train.huggingface.TransformersTrainer": Calls._ray, "ray.train.ScalingConfig": Calls._ray_workers,
    "ray.air.config.ScalingConfig": Calls._ray_workers, "ray.air.ScalingConfig": Calls._ray_workers,
}  # fmt: skip
_ROOTS: dict[str, Callable[[Calls, _Call], None]] = {
    "vllm": Calls._vllm, "peft": Calls._peft, "unsloth": Calls._unsloth, "liger_kernel": Calls._liger,
}  # fmt: skip
_METHODS: dict[str, Callable[[Calls, _Call], None]] = {
    "gradient_checkpointing_enable": _turns_on("gradient-checkpointing"),
    "gradient_checkpointing_disable": Calls._checkpointing_off,
    "train": _takes("resume_from_checkpoint"), "generate": Calls._generate, "prepare": Calls._prepared,
    "create": Calls._request,
    "add_adapter": Calls._adds_modules, "load_adapter": Calls._adds_modules, "get_peft_model": Calls._adds_modules,
}  # fmt: skip
