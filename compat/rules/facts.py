"""The facts of an environment that rule conditions use: one lookup per fact, ``None`` if unknown.

Facts that follow from others are derived here: the devices visible to the job, the task from the trainer, and features that
imply or exclude each other.
"""

from __future__ import annotations

from compat.model import EMPTY, Accelerator, Distribution, Environment, Workload, normalized
from compat.records import cached, replace
from compat.rules.rule import OTHER_TASKS
from compat.versions import Key, contains, is_version, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

TRAINER_TASKS = {
    "sfttrainer": "sft", "grpotrainer": "grpo", "dpotrainer": "dpo", "ppotrainer": "ppo", "orpotrainer": "orpo",
    "ktotrainer": "kto", "rewardtrainer": "reward", "rlootrainer": "rloo", "onlinedpotrainer": "online-dpo",
    "xpotrainer": "xpo", "nashmdtrainer": "nash-md", "cpotrainer": "cpo", "bcotrainer": "bco",
}  # fmt: skip
IMPLIED = {
    "zero-1": ("deepspeed",), "zero-2": ("deepspeed",), "zero-3": ("deepspeed",), "fsdp2": ("fsdp",),
    "8bit-adam": ("bitsandbytes-optimizer",),
}  # fmt: skip
OF_TRAINING = ("deepspeed", "unsloth")
"""Features that a server does not have unless it is said."""
WHILE_TRAINING = (
    "gradient-accumulation", "gradient-checkpointing", "activation-offloading", "optimizer-offload", "zero-1", "zero-2",
    "overlap-comm", "fp32-gradient-accumulation", "8bit-adam", "bitsandbytes-optimizer", "warmup", "deepspeed-auto-warmup",
    "embedding-learning-rate", "resume", "sharded-state-dict", "packing", "neat-packing", "liger-loss", "completion-only-loss",
    "assistant-only-loss", "label-smoothing", "precomputed-reference",
)  # fmt: skip
"""Features that do nothing in a job that does not train, even if it is said to have them."""
SHARDED_RUN = ("zero-3", "fsdp", "fsdp2", "fsdp-offload", "ram-efficient-loading", "context-parallel")
"""Features that, of the jobs that do not train, only one that runs a model in a script of its own can have."""
UNSLOTH = ("unsloth", "unsloth-zoo")
"""The packages without which no job has the feature of the same name."""
_FOR_TRAINING = ("trl", "axolotl", "openrlhf", "torchtune", "autotrain-advanced")
"""Packages that do nothing but train."""
ADAPTER_TASKS = ("lora", "qlora")
"""Tasks that train an adapter of peft."""
OFFLINE_ALIASES = {"HF_HUB_OFFLINE": "TRANSFORMERS_OFFLINE"}
"""A variable and the one that huggingface_hub reads where the first is unset or empty."""
LOCAL_MODEL = "local-model"
"""The feature of a job whose model is a folder."""
OWN_TRAINER = "own-trainer"
"""The feature of a job that a tool runs with a trainer of its own instead of trl's."""
TASKS_WITH_TRL = {
    "axolotl": ("dpo", "orpo", "kto", "cpo", "simpo", "grpo", "reward", "prm"),
    "llamafactory": ("ppo",),
    "ms-swift": ("orpo", "cpo", "simpo", "ppo"),
    "openrlhf": (),
    "verl": (),
}
"""Tool → tasks in which trl's trainers prepare the model or the samples, generate, or compute the loss."""
WITHOUT_TRL = "without-trl"
"""The feature of a job that a tool runs without even importing trl's trainers."""
WITHOUT_TRAINER = "without-trainer"
"""The feature of a job that a tool runs with a loop of its own instead of transformers' Trainer, from which trl's derive."""
_SGLANG_ALONE = key_of("0.4.4.post3")
"""The first SGLang that starts without importing vLLM."""
LOCAL_PATHS = ("/", "./", "../", "~")
"""How the name of a model starts that is a folder and not a repository of the Hub."""
QUANTIZED_CHECKPOINT = "quantized-checkpoint"
"""The feature of a job whose model was quantized before it was saved."""
_NAMED_QUANTIZATIONS = (("-bnb-4bit", "4bit"), ("-gguf", "gguf"), (".gguf", "gguf"))
"""What the names of checkpoints say, and how their weights are quantized then."""
SHARDING = ("zero-1", "zero-2", "zero-3", "fsdp", "fsdp2")
"""Mutually exclusive sharding methods: if one of them is known to be on, the others are off."""

MODEL_FAMILIES = (
    "mistral", "mixtral", "ministral", "llama", "qwen2", "qwen3", "qwen", "gemma", "phi", "falcon", "gpt-oss", "gpt2",
    "deepseek", "granite", "cohere", "bloom", "opt", "t5", "bert", "mamba", "glm", "internlm", "baichuan", "smollm", "olmo",
    "chatglm", "internlm2",
    "gemma-2", "gemma-3", "llava", "phi-1", "phi-2", "qwen2-vl", "qwen2.5-vl", "qwen3-vl", "minicpm", "minicpm-o", "paligemma",
    "phi-3-vision", "phi-3.5-vision", "pixtral", "voxtral", "deepseek-v2", "deepseek-coder-v2", "deepseek-v3", "deepseek-r1",
    "deepseek-r1-distill", "deepseek-r1-0528-qwen3", "llama-3.1", "llama-3.2", "llama-3.3",
    "llama-4", "llama-3.2-11b-vision", "llama-3.2-90b-vision", "mistral-small-3.1",
    "gemma-3n", "gemma-4", "qwen3.5", "qwen3.6", "qwen3.8", "qwen3-next", "deepseek-v4",
    "internvl", "aya-vision", "wan2", "hunyuanvideo", "cogvideox", "stable-diffusion", "sdxl", "whisper", "bart-base",
    "bart-large", "mbart-large",
    "modernbert", "electra", "longformer", "pegasus", "opus-mt", "nllb", "m2m100",
    "falcon-h1", "falcon-mamba", "granite-4.0-h", "nemotron-h", "nemotron-3", "bamba", "zamba2",
)  # fmt: skip
SAME_CLASSES = {"qwen3.6": "qwen3.5", "qwen3.8": "qwen3.5", "phi-3.5-vision": "phi-3-vision"}
"""Families with the classes of an earlier one, of which a rule about that holds."""

_AROUND_OTHERS = ("llava", "internvl")
"""Families whose names often say which language model is inside (llava-v1.6-mistral-7b): their classes are their own."""
_WHOLE_WORDS = ("phi", "opt")
"""Families that also occur within words (dolphin, optimized)."""

ABSENT = "absent"
"""The state of a distribution that is known not to be installed."""


class Facts:
    """The facts of one environment; ``presume`` (a rule's defaults) fills in unknown facts.

    ``given`` overrides facts by their root ("workload.task", "distributions.trl", "workload.features", "accelerators",
    "variables.NAME"); this is used to try possible values of unknown facts.
    """

    def __init__(
        self,
        environment: Environment,
        presume: tuple[tuple[str, Any], ...] = (),
        given: Mapping[str, Any] = EMPTY,
        packages: _Packages | None = None,
    ) -> None:
        self.environment = environment
        self.workload = environment.workload or Workload()
        self._presumed = dict(presume)
        self._given = given
        self._packages = _by_name(environment) if packages is None else packages
        self._derived: dict[str | None, dict[str, bool]] = {}  # the features with each task

    def presuming(self, presume: tuple[tuple[str, object], ...]) -> Facts:
        """The same facts with a rule's defaults filled in for unknown ones."""
        if not presume:
            return self
        facts = Facts(self.environment, presume, self._given, self._packages)
        facts._derived = self._derived
        return facts

    def completed(self, given: Mapping[str, object]) -> Facts:
        """The same facts with values for some of the unknown ones."""
        return Facts(self.environment, tuple(self._presumed.items()), {**self._given, **given}, self._packages)

    def with_releases(self, releases: Mapping[str, str]) -> Facts:
        """The facts of the environment with these releases in the place of its own, of an environment without duplicates."""
        moved = {name: Distribution(name, version) for name, version in releases.items()}
        packages = _Packages(self._packages)
        packages.update((name, [copy]) for name, copy in moved.items())
        return Facts(with_distributions(self.environment, moved), packages=packages)

    def keys(self) -> dict[str, Key | None]:
        """The version keys of the installed distributions, by name; ``None`` for an unknown version or several copies."""
        return {
            name: key_of(copies[0].version) if len(copies) == 1 and copies[0].version is not None else None
            for name, copies in self._packages.items()
        }

    def pins(self) -> dict[str, str]:
        """The versions of the distributions of which they are known, by name."""
        return {copy.name: copy.version for copies in self._packages.values() for copy in copies if copy.version is not None}

    @property
    def related(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """A cache of :mod:`compat.rules.unknown`, kept with the distributions: the pins that a distribution is related to."""
        return self._packages.related

    def value(self, path: str) -> Any:
        """A scalar fact by its path in the described environment, strings in lower case; ``None`` if unknown."""
        if path in self._given:
            return self._given[path]
        if path.startswith("workload."):
            name = path[9:]
            value = getattr(self.workload, name)
            if value is None and name == "task" and self.workload.trainer:
                value = TRAINER_TASKS.get(self.workload.trainer.lower())
            if value is None and name == "quantization":
                value = self._named_quantization()
            if value is None and name == "processes" and self.workload.launcher == "python":
                value = 1  # plain python starts one process, regardless of the GPUs
            if value == "accelerate" and name == "launcher" and self.workload.processes == 1:
                value = "python"  # with one process, accelerate runs the script directly
            if value is None and not self._without_reported(name):
                value = self._presumed.get(name)
        else:
            value = getattr(self.environment, path)
        return value.lower() if isinstance(value, str) else value

    def is_presumed(self, path: str) -> bool:
        """Whether a scalar fact is unknown and takes a rule's default."""
        name = path.removeprefix("workload.")
        if name is path or name not in self._presumed:
            return False
        if name == "features":
            return not self.workload.features_complete and any(each not in self._features for each in self._presumed[name])
        known = path in self._given or getattr(self.workload, name) is not None
        known = known or (name == "task" and (self.workload.trainer or "").lower() in TRAINER_TASKS)
        known = known or (name == "quantization" and self._named_quantization() is not None)
        return not known and not self._without_reported(name)

    def _named_quantization(self) -> str | None:
        name = (self.workload.model or "").lower()
        return next((method for sign, method in _NAMED_QUANTIZATIONS if sign in name), None)

    def _without_reported(self, name: str) -> bool:
        """Whether a default must not be used: a script that was read shows the trainer and whether it imports unsloth."""
        return name in ("task", "unsloth") and self.workload.script is not None

    def package(self, name: str) -> list[Distribution] | str | None:
        """A distribution's copies; :data:`ABSENT` if it is known not to be installed, ``None`` if that is unknown."""
        if self._given and f"distributions.{name}" in self._given:
            given: list[Distribution] | str = self._given[f"distributions.{name}"]
            return given
        found = self._packages.get(name)
        if found:
            return found
        if self.environment.distributions_complete or name in self._presumed.get("absent", ()):
            return ABSENT
        return None

    @property
    def has_trainers(self) -> bool:
        """Whether a package is installed that does nothing but train, which says what an unknown job does."""
        return any(isinstance(self.package(name), list) for name in _FOR_TRAINING)

    def accelerators(self) -> tuple[Accelerator, ...] | None:
        """The devices visible to the job; ``None`` if unknown."""
        if "accelerators" in self._given:
            given: tuple[Accelerator, ...] = self._given["accelerators"]
            return given
        return self.environment.accelerators

    @property
    def tools(self) -> frozenset[str] | None:
        """The packages here that decide features of the job, or its task; ``None`` if it is unknown which there are."""
        return frozenset(self._packages.keys() & {*UNSLOTH, *TASKS_WITH_TRL, *_FOR_TRAINING}) if self._packages else None

    def feature(self, name: str) -> bool | None:
        """Whether the workload has a feature; ``None`` if unknown."""
        known = self._features.get(name)
        if known is None and self.workload.features_complete:
            return False
        if known is None and name in self._presumed.get("features", ()) and not self._without_reported(name):
            return True
        if known is None and name in self._presumed.get("features_absent", ()):
            return False
        return known

    @property
    def generates_with_vllm(self) -> bool:
        """Whether vLLM is known to run the model, loaded by itself: unsloth loads it first, also for vLLM."""
        return self.feature("vllm") is True and self.feature("unsloth") is False

    @property
    def serves_without_vllm(self) -> bool:
        """Whether the job is known to be the server of another engine, and not of an SGLang that imports parts of vLLM."""
        if self.value("workload.task") != "serve" or "vllm" not in (self.workload.features_absent or ()):
            return False
        found = self.package("sglang")
        versions = [copy.version for copy in found if copy.version] if isinstance(found, list) else []
        return all(key_of(version) >= _SGLANG_ALONE for version in versions)

    @property
    def _features(self) -> dict[str, bool]:
        task = self.value("workload.task")
        if task not in self._derived:
            self._derived[task] = self._derived_features(task)
        return self._derived[task]

    def _derived_features(self, task: str | None) -> dict[str, bool]:
        answers: Mapping[str, bool] = self._given.get("workload.features", EMPTY)
        known = dict.fromkeys(self.workload.features_absent or (), False)
        on = {*(self.workload.features or ()), *(name for name, answer in answers.items() if answer)}
        known.update({name: False for name, answer in answers.items() if not answer})
        if self._packages and self._packages.keys().isdisjoint(UNSLOTH):
            known["unsloth"] = False  # a package that is not mentioned exempts nothing
        if self.workload.model:
            known[LOCAL_MODEL] = self.workload.model.startswith(LOCAL_PATHS)
            if self._named_quantization():
                on.add(QUANTIZED_CHECKPOINT)
        # a script that was read shows its trainer
        tools = [tasks for name, tasks in TASKS_WITH_TRL.items() if name in self._packages and self.workload.trainer is None]
        known.setdefault(OWN_TRAINER, any(task not in tasks for tasks in tools))
        known.setdefault(WITHOUT_TRL, () in tools)
        known.setdefault(WITHOUT_TRAINER, () in tools)
        if task in ADAPTER_TASKS:
            on.add("peft")
        if task == "serve":
            known.update(dict.fromkeys(OF_TRAINING, False))
        if not on.isdisjoint(SHARDING):
            known.update(dict.fromkeys(SHARDING, False))
        known.update(dict.fromkeys(on, True))
        known.update({name: True for feature in on for name in IMPLIED.get(feature, ())})
        if task in OTHER_TASKS:
            known.update(dict.fromkeys(WHILE_TRAINING, False))
        if task in OTHER_TASKS and task != "inference":
            known.update(dict.fromkeys(SHARDED_RUN, False))
        return known

    def variable(self, name: str) -> tuple[bool, str | None]:
        """Return (whether the variable is known, its value or ``None`` if it is not set)."""
        if self._given and f"variables.{name}" in self._given:
            return True, self._given[f"variables.{name}"]
        variables = self.environment.variables
        if variables is not None and not variables.get(name) and name in OFFLINE_ALIASES:
            name = OFFLINE_ALIASES[name]
        if variables is None or name not in variables:
            return name in self._presumed.get("variables_unset", ()), None
        return True, variables[name]


class _Packages(dict[str, "list[Distribution]"]):
    """The copies of each distribution, by name."""

    def __init__(self, copies: Mapping[str, list[Distribution]] = EMPTY) -> None:
        super().__init__(copies)
        self.related: dict[str, tuple[tuple[str, str], ...]] = {}


def _by_name(environment: Environment) -> _Packages:
    found = _Packages()
    for distribution in environment.distributions or ():
        if distribution.source is not None and distribution.source.kind in ("conda", "url"):
            distribution = comparable(distribution)
        copies = found.setdefault(distribution.name, [])
        if not copies or copies[0] != distribution:  # a repeated entry is no second copy, about which nothing could be said
            copies.append(distribution)
    return found


def with_distributions(environment: Environment, moved: Mapping[str, Distribution]) -> Environment:
    """The environment with one copy of each distribution: those of ``moved`` in the place of its own."""
    copies = {copy.name: copy for copy in environment.distributions or ()}
    return replace(environment, distributions=tuple({**copies, **moved}.values()))


def comparable(distribution: Distribution) -> Distribution:
    """The distribution with a comparable version or none: taken from a wheel's URL, dropped if it is not a valid version.

    Conda uses its own version scheme for some packages. If a specifier is given in addition to a version, the specifier counts.
    """
    version, source = distribution.version, distribution.source
    if version is not None:
        if distribution.specifier is None and is_version(version):
            return distribution
        return replace(distribution, version=None)
    if source is not None and source.kind == "url" and distribution.specifier is None:
        told = version_of_wheel(source.details.get("url"), distribution.name)
        return distribution if told is None else replace(distribution, version=told)
    pinned = _pinned(distribution.specifier) if source is None or source.kind in ("index", "nightly") else None
    return distribution if pinned is None else replace(distribution, version=pinned, specifier=None)


def _pinned(specifier: str | None) -> str | None:
    """The only version that a set of clauses admits, from its ``==``; ``None`` if there may be others, or none at all."""
    if specifier is None or "," not in specifier or "==" not in specifier:
        return None
    clauses = [clause.strip() for clause in specifier.split(",")]
    version = next((clause.strip("= ") for clause in clauses if clause.startswith("==") and clause[-1] != "*"), None)
    if version is None or not is_version(version):
        return None
    try:
        return version if contains(ranges_of(specifier), key_of(version)) else None
    except ValueError:
        return None


def version_of_wheel(address: object, name: str) -> str | None:
    """The version in the file name of a wheel of this distribution; ``None`` if the URL is not one."""
    if not isinstance(address, str) or ".whl" not in address:
        return None
    file = address.partition("#")[0].partition("?")[0].rpartition("/")[2].replace("%2B", "+").replace("%2b", "+")
    parts = file.removesuffix(".whl").split("-")
    fits = file.endswith(".whl") and len(parts) in (5, 6) and normalized(parts[0]) == name and is_version(parts[1])
    return parts[1] if fits else None


def visible(environment: Environment) -> Environment:
    """The environment with only the accelerators visible to the job (``CUDA_VISIBLE_DEVICES`` and AMD's equivalents)."""
    if not environment.accelerators or not environment.variables:
        return environment
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        chosen = environment.variables.get(name)
        vendor = "amd" if name[0] in "HR" else None
        if chosen is None or (vendor and any(a.vendor != vendor for a in environment.accelerators)):
            continue
        return replace(environment, accelerators=_chosen(environment, chosen))
    return environment


def seen_by_torch(environment: Environment) -> Environment:
    """The environment, without GPUs if torch is a CPU-only build: such a build cannot use them."""
    if not environment.accelerators:
        return environment
    copies = [copy for copy in environment.distributions or () if copy.name == "torch"]
    without = [(copy.version or "").partition("+")[2].partition(".")[0] == "cpu" for copy in copies]
    return replace(environment, accelerators=()) if copies and all(without) else environment


def has_more(device: Accelerator) -> bool:
    """Whether a device represents an unknown number (at least one) of identical devices."""
    return device.extra.get("more") is True


def cuda_facts(environment: Environment, newest: str | None) -> Iterator[str]:
    """Yield the driver, which supports CUDA up to ``newest``, and the toolkit: ``driver 535.171.04 (CUDA up to 12.2)``."""
    if environment.driver:
        yield f"driver {environment.driver}" + (f" (CUDA up to {newest})" if newest else "")
    if environment.cuda_toolkit:
        yield f"CUDA toolkit {environment.cuda_toolkit}"


def device_counts(devices: Sequence[Accelerator], names: Sequence[str]) -> list[str]:
    """Return ``2 × NAME`` for each name of the devices, in order."""
    least = {name for device, name in zip(devices, names) if has_more(device)}
    counts: dict[str, int] = {}  # not a Counter: collections is not loaded at start-up
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return [f"{'at least ' if name in least else ''}{count} × {name}" for name, count in counts.items()]


def _chosen(environment: Environment, chosen: str) -> tuple[Accelerator, ...] | None:
    """The devices in the list, up to the first invalid entry as in CUDA; ``None`` if it is unknown which ones they are."""
    devices = environment.accelerators or ()
    open_kind = next((at for at, device in enumerate(devices) if has_more(device)), None)
    devices = tuple(_single(device) for device in devices)
    found: list[Accelerator] = []
    for part in chosen.split(","):
        word = part.strip()
        number = int(word) if word.isascii() and word.isdecimal() and len(word) < 10 else None
        if number is not None and open_kind is not None and number > open_kind:
            # another device of that kind, no device, or one listed after it
            return _with_more(found) if found and open_kind == len(devices) - 1 else None
        if number is not None and number < len(devices):
            found.append(devices[number])
            continue
        matching = [d for d in devices if word and str(d.extra.get("uuid", "")).startswith(word)]
        if len(matching) != 1:
            # a device with an unknown id still counts as one device
            if word.startswith(("GPU-", "MIG-")) and not any("uuid" in d.extra for d in devices):
                found.append(devices[min(len(found), len(devices) - 1)])
                continue
            break
        found.append(matching[0])
    return tuple(found)


def _single(device: Accelerator) -> Accelerator:
    """The device without the mark that there may be more of its kind."""
    return replace(device, extra={key: value for key, value in device.extra.items() if key != "more"})


def _with_more(devices: list[Accelerator]) -> tuple[Accelerator, ...]:
    last = devices[-1]
    return (*devices[:-1], replace(last, extra={**last.extra, "more": True}))


@cached
def family_of(model: str) -> str | None:
    """The architecture family recognized from a model name; ``None`` if it cannot be recognized."""
    name = model.lower().rstrip("/").rpartition("/")[2]  # the organisation may have the name of another family
    if name == model.lower() and name.replace("_", "").isalnum():
        named = [each for each in MODEL_FAMILIES if _is_type(each, name.replace("_", ""))]
        if named:
            return max(named, key=len)
    found = [each for each in MODEL_FAMILIES if _is_in(each, name)]
    found = [each for each in found if each in _AROUND_OTHERS] or found
    return max(found, key=len) if found else (name if name == model.lower() and name.isalnum() else None)


def _is_in(family: str, name: str) -> bool:
    """Whether a name holds that of the family, and its number is not one of parameters: gemma-2b is no gemma-2."""
    _, found, rest = name.partition(family)
    return bool(found) and not _is_size(family, rest) and (family not in _WHOLE_WORDS or _is_word(family, name))


def _is_type(family: str, kind: str) -> bool:
    """Whether a model type without underscores is of the family: ``qwen25vl`` of qwen2.5-vl, ``gemma3text`` of gemma-3."""
    start = family.replace("-", "").replace(".", "")
    rest = kind[len(start) :]
    apart = family not in _WHOLE_WORDS or not rest[:1].isalpha()
    return kind.startswith(start) and apart and not _is_size(family, rest)


def _is_size(family: str, rest: str) -> bool:
    """Whether what follows a family makes its number one of parameters: gemma-2 and ``b-it``, llama-4 and ``05b``."""
    unit = rest.lstrip("0123456789")
    return family[-1:].isdecimal() and unit[:1] == "b" and not unit[1:2].isalpha()


def _is_word(family: str, name: str) -> bool:
    """Whether the family is a word of the name, with a number or not."""
    words = name.replace("_", "-").replace(".", "-").split("-")
    return any(word.startswith(family) and not word[len(family) :][:1].isalpha() for word in words)


def number_key(value: int) -> Key:
    """The version key of a number, so that the same ranges work for versions and numbers."""
    return key_of(str(value))
