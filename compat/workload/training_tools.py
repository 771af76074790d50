"""Command-line tools that bring their own training or serving script: trl, vLLM, SGLang, LLaMA-Factory, axolotl, ms-swift,
torchtune.

How each starts its processes is taken from its source: trl 0.15 and 1.16 (through ``accelerate launch``), LLaMA-Factory
(torchrun if more than one device is visible), axolotl (``accelerate launch``), ms-swift (torchrun where
``NPROC_PER_NODE`` or ``NNODES`` is set) and torchtune 0.6 (torchrun if one of its options is given).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compat.errors import InputError
from compat.workload.arguments import apply_option, parse_words
from compat.workload.draft import UNKNOWN, parse_count, parse_switch, precision_word
from compat.workload.launch import COMMAND
from compat.workload.launchers import ACCELERATE_FLAGS, TORCHRUN_FLAGS, accelerate_options, number, torchrun, torchrun_options
from compat.workload.reading import ProgramReader, Reading, Recipe
from compat.workload.reading import axolotl as axolotl_words
from compat.workload.reading import llamafactory as llamafactory_words
from compat.workload.reading import torchtune as torchtune_words
from compat.workload.trainers import TRAINERS
from compat.workload.wrappers import take_options

_TRL_TASKS = ("sft", "grpo", "dpo", "kto", "reward", "rloo", "distillation", "orpo", "ppo")
_ACCELERATE_VALUES = (
    "num_processes", "num_machines", "mixed_precision", "config_file", "accelerate_config", "gpu_ids", "zero_stage",
    "deepspeed_config_file", "offload_optimizer_device", "fsdp_version", "dynamo_backend",
)  # fmt: skip
_ON = ("1", "true")


def trl(reading: Reading, words: Sequence[str]) -> None:
    """``trl sft|grpo|dpo|… ARGUMENTS``, which goes through ``accelerate launch``, and ``trl vllm-serve``."""
    task = words[0] if words else ""
    reading.draft.on("trl-command", COMMAND)
    if task in ("vllm-serve", "vllm_serve"):
        vllm_server(reading, words[1:])
        reading.draft.record("features.openai-server", value=False, origin=COMMAND)
        return
    if task not in _TRL_TASKS:
        reading.note(f"trl {task}".strip() + " starts no training")
        return
    reading.record("task", task)
    reading.record("trainer", TRAINERS[task])
    reading.draft.on("trl-script", COMMAND)
    pairs, _ = parse_words(words[1:])
    options = {name: value for name, value in pairs if isinstance(value, str) or name in ACCELERATE_FLAGS}
    recipe = reading.recipe(str(options["config"])) if "config" in options else None
    reading.give(f"trl {task}", words[1:], recipe)
    settings = {} if recipe is None else recipe.settings
    launch = {name: str(settings[name]) for name in _ACCELERATE_VALUES if name in settings}
    launch.update(
        {name: str(value) for name, value in options.items() if name in _ACCELERATE_VALUES or name in ACCELERATE_FLAGS}
    )
    accelerate_options(reading, launch)
    reading.options(words[1:])


def trl_script(task: str) -> ProgramReader:
    """``python -m trl.scripts.TASK ARGUMENTS``, under any launcher."""

    def read(reading: Reading, words: list[str]) -> None:
        reading.plainly_unless_launched()
        reading.record("task", task)
        reading.record("trainer", TRAINERS[task])
        reading.draft.on("trl-script", COMMAND)
        named = [value for name, value in parse_words(words)[0] if name == "config" and isinstance(value, str)]
        reading.give(f"trl {task}", words, reading.recipe(named[-1]) if named else None)
        reading.options(words)

    return read


def vllm(reading: Reading, words: Sequence[str]) -> None:
    """``vllm serve MODEL OPTIONS``."""
    if words[:1] == ["serve"]:
        vllm_openai_server(reading, words[1:])
    else:
        reading.note(f"vllm {' '.join(words[:1])}".strip() + " starts no server")


def vllm_openai_server(reading: Reading, words: Sequence[str]) -> None:
    """Read the arguments of ``vllm serve`` or of the module that it starts."""
    vllm_server(reading, words, "vllm serve")
    reading.draft.on("openai-server", COMMAND)


def vllm_server(reading: Reading, words: Sequence[str], parser: str | None = None) -> None:
    """vLLM's server: its model, parallel sizes and data type; also the arguments of ``trl vllm-serve``."""
    options, others = parse_words(words)
    known: dict[str, object] = {}
    recipe = None
    for name, value in options:
        if name == "config" and isinstance(value, str):
            recipe = reading.recipe(value)
            known.update({key.replace("-", "_"): each for key, each in (recipe.settings if recipe else {}).items()})
    if parser is not None:
        reading.give(parser, words, recipe)
    known.update({_SHORT.get(name, name): value for name, value in options})
    model = known.get("model", others[0] if others and known.get("model") is None else None)
    _serves(reading, known, model)
    reading.draft.on("vllm", COMMAND)
    if parser is not None:
        lora = parse_switch(known.get("enable_lora", False))
        reading.draft.feature("vllm-lora", lora, COMMAND)
        reading.draft.feature("vllm-sleep", parse_switch(known.get("enable_sleep_mode", False)), COMMAND)
        reading.draft.feature("vllm-speculative", _speculates(known), COMMAND)
        reading.draft.feature("no-custom-all-reduce", parse_switch(known.get("disable_custom_all_reduce", False)), COMMAND)
        reading.draft.feature("enforce-eager", parse_switch(known.get("enforce_eager", False)), COMMAND)
        reading.draft.feature("vllm-prefix-caching", _switched(known, "enable_prefix_caching"), COMMAND)
        reading.draft.feature("vllm-async-scheduling", _switched(known, "async_scheduling"), COMMAND)
        _features_of(reading, known, _CHOSEN)
        if known.get("data_parallel_size_local") in (None, known.get("data_parallel_size")):
            # by default all engines are on the node of the server, which they then reach without a port
            reading.draft.off("vllm-ray-data-parallel", COMMAND)
    method = known.get("quantization")
    if isinstance(method, str) and method and "$" not in method:
        reading.record("quantization", method.lower())
    if known.get("distributed_executor_backend") != "mp":
        reading.draft.forget("nodes")  # Ray may be installed, and have more
    if known.get("distributed_executor_backend") == "ray":
        reading.draft.forget("launcher")
        reading.record("launcher", "ray")


_CHOSEN = {
    "lmcache": ("kv_transfer_config", "lmcache"), "vllm-ray-data-parallel": ("data_parallel_backend", "ray"),
    "fp8-kv-cache": ("kv_cache_dtype", "fp8"), "vllm-tool-server": ("tool_server", ":"),
    "vllm-aiter-triton-mla": ("attention_backend", "rocm_aiter_triton_mla"), "vllm-xformers": ("attention_backend", "xformers"),
}  # fmt: skip
"""Features that one option chooses: its name, and what occurs in its value (a tool server is ``HOST:PORT``, or ``demo``)."""
_CHOSEN_OF_SGLANG = {
    "sglang-nixl": ("disaggregation_transfer_backend", "nixl"), "sglang-flashinfer": ("attention_backend", "flashinfer"),
}  # fmt: skip


def _features_of(reading: Reading, known: Mapping[str, object], chosen: Mapping[str, tuple[str, str]]) -> None:
    for feature, (name, word) in chosen.items():
        values = [value for key, value in known.items() if key.partition(".")[0] == name]
        on = UNKNOWN if UNKNOWN in values else any(word in str(value).lower() for value in values)
        reading.draft.feature(feature, on, COMMAND)


_ACROSS_NODES = ("node_rank", "headless", "dist_init_addr", "data_parallel_")
"""How options begin that a server on several nodes has; the number of replicas alone says nothing of nodes."""


def _speculates(known: Mapping[str, object]) -> object:
    """Whether vLLM drafts tokens with a model or a head: by the JSON of a method, or by one option for each of its keys."""
    values = [value for name, value in known.items() if name.partition(".")[0] in ("speculative_config", "sc")]
    if UNKNOWN in values:
        return UNKNOWN
    return bool(values) and not any(word in str(value) for value in values for word in ("ngram", "suffix"))


def _switched(known: Mapping[str, object], name: str) -> object:
    """Whether a switch is on; without it, the release and the model decide."""
    if f"no_{name}" in known:
        return False
    return parse_switch(known[name]) if name in known else UNKNOWN


_SHORT = {"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size", "q": "quantization",
          "dpl": "data_parallel_size_local",
          "tp_size": "tensor_parallel_size", "pp_size": "pipeline_parallel_size", "dp_size": "data_parallel_size"}  # fmt: skip


def sglang_server(reading: Reading, words: Sequence[str]) -> None:
    """``python -m sglang.launch_server`` and ``sglang serve``."""
    arguments = words[1:] if words[:1] == ["serve"] else words
    reading.give("sglang serve", arguments)
    options, _ = parse_words(arguments)
    known = {_SHORT.get(name, name): value for name, value in options}
    _serves(reading, known, known.get("model_path", known.get("model")))
    reading.draft.off("vllm", COMMAND)
    _features_of(reading, known, _CHOSEN_OF_SGLANG)
    reading.draft.feature("no-custom-all-reduce", parse_switch(known.get("disable_custom_all_reduce", False)), COMMAND)
    reading.draft.feature("sglang-p2p-check", parse_switch(known.get("enable_p2p_check", False)), COMMAND)


def lmdeploy(reading: Reading, words: Sequence[str]) -> None:
    """``lmdeploy serve api_server MODEL OPTIONS``."""
    if words[:2] != ["serve", "api_server"]:
        reading.note(f"lmdeploy {' '.join(words[:2])}".strip() + " starts no server of the API")
        return
    options, others = parse_words(words[2:])
    _serves(reading, {_SHORT.get(name, name): value for name, value in options}, others[0] if others else None)
    reading.draft.off("vllm", COMMAND)


def llama_cpp_server(reading: Reading, words: Sequence[str]) -> None:
    """``python -m llama_cpp.server``, whose ``--model`` is a file, of a repository if it names one."""
    known = dict(parse_words(words)[0])
    _serves(reading, known, known.get("hf_model_repo_id", known.get("model")))
    reading.draft.off("vllm", COMMAND)


def _serves(reading: Reading, known: Mapping[str, object], model: object) -> None:
    reading.record("task", "serve")
    if isinstance(model, str) and "$" not in model:
        reading.record("model", model)
    count = 1
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        size = number(reading, {name: str(known[name])}, name) if known.get(name, UNKNOWN) is not UNKNOWN else None
        count *= size or (0 if name in known else 1)
        if size or name not in known:
            if name == "tensor_parallel_size":
                reading.draft.feature("tensor-parallel", (size or 1) > 1, COMMAND)
            elif name == "pipeline_parallel_size":
                reading.draft.feature("pipeline-parallel", (size or 1) > 1, COMMAND)
    spread = "nnodes" in known or any(name.startswith(_ACROSS_NODES) and name != "data_parallel_size" for name in known)
    nodes = number(reading, {"nnodes": str(known["nnodes"])}, "nnodes") if "nnodes" in known else None if spread else 1
    reading.launched("python", count or None, nodes)
    precision = precision_word(known.get("dtype"))
    if precision is not None:
        reading.record("precision", precision)


def llamafactory(reading: Reading, words: Sequence[str]) -> None:
    """``llamafactory-cli train RECIPE [KEY=VALUE …]`` and its servers."""
    job = words[0] if words else ""
    if job == "api":
        reading.record("task", "serve")
    elif job in ("chat", "webchat"):
        reading.record("task", "inference")
    elif job != "train":
        reading.note(f"llamafactory-cli {job}".strip() + " starts no training")
        return
    if job != "train":
        reading.launched("python", 1)
    elif (reading.variable("USE_RAY") or "").lower() in _ON:
        reading.launched("ray", None)
    else:
        reading.launched("torchrun", _torchrun_count(reading))
        if (reading.variable("FORCE_TORCHRUN") or "").lower() not in _ON:
            reading.note("llamafactory-cli starts torchrun where it sees several devices, one plain process where it sees one")
    recipe = _recipe_and_overrides(reading, words[1:], llamafactory_words)
    if job == "train":
        reading.give("llamafactory train", words[1:], recipe)


def _torchrun_count(reading: Reading) -> int | None:
    each, nodes = parse_count(reading.variable("NPROC_PER_NODE")), parse_count(reading.variable("NNODES") or "1")
    return None if each is UNKNOWN or nodes is UNKNOWN else int(each * nodes) or None


def axolotl(reading: Reading, words: Sequence[str]) -> None:
    """``axolotl train RECIPE [OPTIONS] [-- LAUNCHER OPTIONS]``."""
    job = words[0] if words else ""
    if job not in ("train", "inference", "evaluate"):
        reading.note(f"axolotl {job}".strip() + " starts no training")
        return
    rest = list(words[1:])
    behind = rest[rest.index("--") + 1 :] if "--" in rest else []
    rest = rest[: rest.index("--")] if "--" in rest else rest
    options, _ = parse_words(rest)
    given = dict(options)
    launcher = given.get("launcher", "python" if "no_accelerate" in given else "accelerate")
    if launcher == "torchrun":
        torchrun(reading, [*behind, "-m", _INSIDE])
    elif launcher == "accelerate":
        launch = dict(take_options(behind, flags=ACCELERATE_FLAGS)[0])
        launch.update({name: value for name, value in given.items() if name == "num_processes" and isinstance(value, str)})
        accelerate_options(reading, launch)
    else:
        reading.launched("python", 1)
    if job == "train":
        axolotl_train(reading, [word for word in rest if word not in ("--accelerate", "--no-accelerate")])
    else:
        reading.record("task", "inference")


_INSIDE = "axolotl.cli.train"


def axolotl_train(reading: Reading, words: Sequence[str]) -> None:
    """Read the arguments of axolotl's own training module."""
    reading.plainly_unless_launched()
    _recipe_and_overrides(reading, words, axolotl_words)


def swift(reading: Reading, words: Sequence[str]) -> None:
    """``swift sft|pt|rlhf|infer|deploy ARGUMENTS`` (ms-swift)."""
    job = words[0] if words else ""
    task = {"sft": "sft", "pt": "pretrain", "infer": "inference", "deploy": "serve"}.get(job)
    options = dict(parse_words(words[1:])[0])
    if job == "rlhf" and isinstance(options.get("rlhf_type"), str):
        kind = str(options["rlhf_type"])
        task = {"rm": "reward", "simpo": "cpo"}.get(kind, kind)
    if task is None:
        reading.note(f"swift {job}".strip() + " starts no training")
        return
    reading.record("task", task)
    if reading.variable("NPROC_PER_NODE") is None and reading.variable("NNODES") is None:
        reading.launched("python", 1)
    else:
        reading.launched("torchrun", _torchrun_count(reading))
    reading.options(words[1:])
    reading.draft.forget("model")  # --model_name is what the model calls itself
    if "model" in options:
        apply_option(reading.draft, "model", options["model"], COMMAND)


def torchtune(reading: Reading, words: Sequence[str]) -> None:
    """``tune run [TORCHRUN OPTIONS] RECIPE --config NAME [KEY=VALUE …]``."""
    if words[:1] != ["run"]:
        reading.note(f"tune {' '.join(words[:1])}".strip() + " starts no training")
        return
    found, rest = take_options(words[1:], flags=TORCHRUN_FLAGS)
    if not rest:
        raise InputError("the command names no recipe for tune run to start")
    if found:
        torchrun_options(reading, dict(found))
    else:
        reading.launched("python", 1)
    recipe, *arguments = rest
    task = next((task for word, task in _TUNE_TASKS.items() if word in recipe), None)
    if task is not None:
        reading.record("task", task)
    if "lora" in recipe:
        reading.draft.on("peft", COMMAND)
    options, others = parse_words(arguments)
    config = dict(options).get("config")
    if isinstance(config, str) and config.endswith((".yaml", ".yml")):
        reading.recipe(config, torchtune_words, needed=False)
    for word in others:
        name, equals, value = word.partition("=")
        if not equals or "$" in value:
            continue
        if name == "batch_size":
            apply_option(reading.draft, "per_device_train_batch_size", value, COMMAND)
        elif name == "dtype" and (precision := precision_word(value)) is not None:
            reading.record("precision", precision)


_TUNE_TASKS = {"dpo": "dpo", "ppo": "ppo", "grpo": "grpo", "generate": "inference", "finetune": "sft"}


def _recipe_and_overrides(reading: Reading, words: Sequence[str], dialect: Callable[[Recipe], None]) -> Recipe | None:
    """A recipe file first, then options or ``KEY=VALUE`` words that override it."""
    recipe = None
    others = reading.options(words)
    for word in others:
        name, equals, value = word.partition("=")
        if equals and name.replace("_", "a").isalnum():
            apply_option(reading.draft, name, value, COMMAND)
        elif word.endswith((".yaml", ".yml", ".json")):
            recipe = reading.recipe(word, dialect)
    return recipe


PROGRAMS: dict[str, ProgramReader] = {
    "trl": trl, "vllm": vllm, "sglang": sglang_server, "llamafactory-cli": llamafactory, "lmf": llamafactory,
    "axolotl": axolotl, "swift": swift, "tune": torchtune, "lmdeploy": lmdeploy,
}  # fmt: skip
MODULES: dict[str, ProgramReader] = {
    "trl": trl, "trl.cli": trl, "trl.cli.main": trl, "vllm.entrypoints.openai.api_server": vllm_openai_server,
    "vllm.entrypoints.api_server": vllm_server, "vllm.entrypoints.cli.main": vllm, "trl.scripts.vllm_serve": vllm_server,
    "sglang.launch_server": sglang_server, "llamafactory.cli": llamafactory, _INSIDE: axolotl_train,
    "swift.cli.main": swift, "lmdeploy": lmdeploy, "llama_cpp.server": llama_cpp_server,
    **{f"trl.scripts.{task}": trl_script(task) for task in _TRL_TASKS},
}  # fmt: skip
