"""Programs that start a training script: python, torchrun, accelerate, deepspeed, srun, mpirun and ray.

Options are those of torch 2.13 (``distributed/run.py``), accelerate 1.4 and 1.15 (``commands/launch.py``), DeepSpeed
(``launcher/runner.py``), Slurm and Ray.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.model import Option
from compat.workload.arguments import apply_option
from compat.workload.draft import UNKNOWN, Draft, parse_count
from compat.workload.launch import COMMAND
from compat.workload.reading import ProgramReader, Reading
from compat.workload.wrappers import is_python, program_name, take_options

if TYPE_CHECKING:
    from compat.workload.launch_config import LaunchConfig


TORCHRUN_FLAGS = frozenset((
    "standalone", "m", "module", "no_python", "run_path", "use_env", "virtual_local_rank", "h", "help",
))  # fmt: skip
ACCELERATE_FLAGS = frozenset((
    "h", "help", "q", "quiet", "cpu", "multi_gpu", "tpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "use_tp",
    "use_parallelism_config", "use_xpu", "ipex", "same_network", "enable_cpu_affinity", "dynamo_use_fullgraph",
    "dynamo_use_dynamic", "dynamo_use_regional_compilation", "m", "module", "no_python", "tpu_cluster", "no_tpu_cluster",
    "tpu_use_sudo", "downcast_bf16", "fp8_use_autocast_during_eval", "debug",
))  # fmt: skip
_DEEPSPEED_FLAGS = frozenset((
    "module", "no_python", "no_local_rank", "no_ssh", "no_ssh_check", "force_multi", "save_pid", "elastic_training",
    "bind_cores_to_rank", "h", "help",
))  # fmt: skip
_SRUN_FLAGS = frozenset((
    "l", "label", "u", "unbuffered", "v", "verbose", "Q", "quiet", "s", "oversubscribe", "overlap", "O", "overcommit",
    "k", "no_kill", "X", "disable_status", "E", "preserve_env", "H", "hold", "I", "immediate", "exclusive", "exact",
    "pty", "multi_prog", "contiguous", "container_writable", "container_mount_home", "no_container_mount_home",
    "no_container_entrypoint", "container_remap_root", "spread_job", "use_min_nodes", "wait_all_nodes", "h", "help",
))  # fmt: skip
_MPI_FLAGS = frozenset(
    ("allow_run_as_root", "oversubscribe", "tag_output", "v", "verbose", "display_map", "h", "help", "prefix")
)


def python(reading: Reading, words: Sequence[str]) -> None:
    """``python [OPTIONS] SCRIPT|-m MODULE|-c TEXT ARGUMENTS``."""
    rest = list(words)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word.startswith("--"):
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter in "XWmc":
                value = word[at:] or (rest.pop(0) if rest else "")
                if letter == "m":
                    module(reading, value, rest)
                    return
                if letter == "c":
                    reading.plainly()
                    reading.note("the code after python -c was not read")
                    return
                break
    if not rest or rest[0] == "-":
        reading.note("the command starts python without a script")
        return
    reading.run_script(rest)


def module(reading: Reading, name: str, words: Sequence[str]) -> None:
    """``-m MODULE ARGUMENTS``: a launcher, a tool, something that runs a script, or a module in the folder."""
    reader = reading.modules.get(name)
    if reader is not None:
        reader(reading, list(words))
    elif name in _RUNNERS:
        _, rest = take_options(words, valued=_RUNNERS[name])
        python(reading, rest[1:] if name == "coverage" and rest[:1] == ["run"] else rest)
    else:
        parts = name.split(".")
        for tail in (f"{parts[-1]}.py", os.path.join(parts[-1], "__main__.py")):
            path = os.path.join(*parts[:-1], tail)
            if all(part.isidentifier() for part in parts) and os.path.isfile(reading.path(path)):
                reading.run_script([path, *words])
                return
        reading.plainly_unless_launched()
        reading.note(f"the module {name} is not in {reading.directory or '.'} and was not read")
        reading.options(words)


_RUNNERS: dict[str, frozenset[str]] = {
    "pdb": frozenset(("c", "command")), "cProfile": frozenset(("o", "s", "outfile", "sort")), "trace": frozenset(),
    "debugpy": frozenset(("listen", "connect", "log_to")), "coverage": frozenset(), "viztracer": frozenset("o"),
    "memory_profiler": frozenset("o"), "scalene": frozenset(("outfile",)), "torch.utils.bottleneck": frozenset(),
}  # fmt: skip
"""Modules that run a script → their options that take a value."""


def target(reading: Reading, words: Sequence[str], options: Mapping[str, str], launcher: str) -> None:
    """Read what a launcher starts: a script, with ``--module`` a module, with ``--no_python`` any program."""
    if not words:
        raise InputError(f"the command names no script for {launcher} to start")
    if "no_python" in options:
        reading.start(words)
    elif "module" in options or "m" in options:
        module(reading, words[0], words[1:])
    else:
        reading.run_script(words)


def number(reading: Reading, options: Mapping[str, str], *names: str) -> int | None:
    """Return a count from the options; ``None`` if it is not given or computed at run time."""
    for name in names:
        text = options.get(name)
        if text is None:
            continue
        value = parse_count(text)
        if value is not UNKNOWN:
            return int(value)
        if not any(sign in text for sign in "${<"):
            raise InputError(f"--{name}: expected a whole number, not {text!r}")
        reading.note(f"--{name} {text} is only known when the command runs")
    return None


def torchrun(reading: Reading, words: Sequence[str]) -> None:
    """``torchrun``, ``python -m torch.distributed.run`` and ``…launch``."""
    found, rest = take_options(words, flags=TORCHRUN_FLAGS)
    options = dict(found)
    filled, rest = _behind_variables(
        reading, rest, TORCHRUN_FLAGS, lambda word: word == "-m" or word.endswith(".py"), "torchrun"
    )
    if filled and "nproc_per_node" not in options:
        reading.launched("torchrun", None)
    else:
        torchrun_options(reading, options)
    if filled and rest[0] == "-m":
        options["m"] = ""
        rest = rest[1:]
    target(reading, rest, options, "torchrun")


def torchrun_options(reading: Reading, options: Mapping[str, str]) -> None:
    """Read the number of processes from the options of ``torchrun``."""
    each = options.get("nproc_per_node") or reading.variable("PET_NPROC_PER_NODE") or "1"
    nodes = options.get("nnodes") or reading.variable("PET_NNODES") or "1"
    least, _, most = nodes.partition(":")
    fixed = not most or least == most
    count = machines = None
    if each not in ("auto", "gpu", "cpu", "xpu"):
        per_node = number(reading, {"nproc_per_node": each}, "nproc_per_node")
        machines = number(reading, {"nnodes": least}, "nnodes")
        count = per_node * machines if per_node and machines and fixed else None
    reading.launched("torchrun", count, machines if fixed else None)


def accelerate(reading: Reading, words: Sequence[str]) -> None:
    """``accelerate launch``."""
    if words[:1] != ["launch"]:
        reading.note("the accelerate command starts no job")
        return
    accelerate_launch(reading, words[1:])


def accelerate_launch(reading: Reading, words: Sequence[str]) -> None:
    """Read the arguments of ``accelerate launch``."""
    found, rest = take_options(words, flags=ACCELERATE_FLAGS)
    options = dict(found)
    reading.give("accelerate launch", (f"--{name}" for name, _ in found if len(name) > 1))
    accelerate_options(reading, options)
    target(reading, rest, options, "accelerate launch")


def accelerate_options(reading: Reading, options: Mapping[str, str]) -> None:
    """Read the options of ``accelerate launch`` and the configuration file that supplies the missing ones."""
    given = next((kind for flag, kind in _PARADIGMS.items() if flag in options), None)
    config = _configuration(reading, options, given)
    count = number(reading, options, "num_processes")
    if count is None and config is not None and config.processes not in (None, UNKNOWN):
        count = config.processes
    several = given is not None or (config.several if config is not None else count != 1)
    if "cpu" in options:
        several = False
    elif not several:
        reading.note("accelerate launch starts one plain process: several visible GPUs would be used through nn.DataParallel")
    machines = number(reading, options, "num_machines")
    if machines is None and "num_machines" not in options:
        unread = "config_file" in options and config is None
        machines = None if unread else 1 if config is None else config.machines
    reading.launched("accelerate", count if several else 1, machines if several else None)
    if given in ("DEEPSPEED", "FSDP"):
        reading.draft.on(given.lower(), COMMAND)
    _accelerate_settings(reading, options, given or (config.distributed if config is not None else None))
    devices = options.get("gpu_ids") or (config.gpu_ids if config is not None else None)
    if devices and devices != "all" and "$" not in devices:
        reading.assigned["CUDA_VISIBLE_DEVICES"] = devices
    if config is not None:
        reading.given += [Option("accelerate config", key, place) for key, place in config.keys]
        if "mixed_precision" in options:
            config.draft.forget("precision")
        reading.defaults.append(config.draft)


def _accelerate_settings(reading: Reading, options: Mapping[str, str], kind: str | None) -> None:
    from compat.workload.launch_config import plugin_facts

    draft = reading.draft
    apply_option(draft, "mixed_precision", options.get("mixed_precision"), COMMAND)
    if kind == "DEEPSPEED":
        plugin_facts(draft, options, lambda key: COMMAND)
    elif kind == "FSDP":
        for name in (
            "fsdp_version",
            "fsdp_cpu_ram_efficient_loading",
            "fsdp_offload_params",
            "fsdp_state_dict_type",
            "fsdp_transformer_layer_cls_to_wrap",
        ):
            apply_option(draft, name, options.get(name), COMMAND)
        if "use_fsdp" in options:
            unasked = Draft()
            apply_option(
                unasked, "fsdp_cpu_ram_efficient_loading", value=True, origin=COMMAND
            )  # accelerate launch's own default
            reading.defaults.append(unasked)
    apply_option(draft, "parallelism_config_cp_size", options.get("parallelism_config_cp_size"), COMMAND)
    if options.get("dynamo_backend", "no").lower() != "no":
        draft.on("torch-compile", COMMAND)


_PARADIGMS = {
    "use_deepspeed": "DEEPSPEED", "use_fsdp": "FSDP", "use_megatron_lm": "MEGATRON_LM", "multi_gpu": "MULTI_GPU", "tpu": "XLA",
}  # fmt: skip


def _configuration(reading: Reading, options: Mapping[str, str], given: str | None) -> LaunchConfig | None:
    """Return the named configuration file, or else the user's default one at accelerate's default location."""
    from compat.workload.launch_config import built_in, read_accelerate

    name = options.get("accelerate_config")
    if name is not None and not os.path.isfile(reading.path(name)):
        config = built_in(name)
        if config is None:
            raise InputError(f"--accelerate_config: {name!r} is neither a file nor a configuration that trl ships")
        return config
    name = name or options.get("config_file")
    if name is not None:
        if any(sign in name for sign in "${<") and not os.path.isfile(reading.path(name)):
            reading.note(f"--config_file {name} was not read: its name is only known at run time")
            return None
        return read_accelerate(reading.path(name), given)
    home = reading.variable("HOME") or os.path.expanduser("~")
    cache = reading.variable("HF_HOME") or os.path.join(reading.variable("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    if cache.startswith("~/"):
        cache = os.path.join(home, cache[2:])
    path = os.path.join(reading.path(cache), "accelerate", "default_config.yaml")
    if "cpu" in options or not os.path.isfile(path):
        return None
    reading.note(f"accelerate takes its defaults from {path}")
    return read_accelerate(path, given)


def deepspeed(reading: Reading, words: Sequence[str]) -> None:
    """``deepspeed [OPTIONS] SCRIPT ARGUMENTS``."""
    found, rest = take_options(words, flags=_DEEPSPEED_FLAGS)
    options = dict(found)
    count = number(reading, options, "num_gpus", "num_accelerators")
    nodes = number(reading, options, "num_nodes")
    processes = count * (nodes or 1) if count else None
    if nodes is None and options.keys().isdisjoint(_HOSTS):
        nodes = 1
    chosen = options.get("include", options.get("i"))
    if chosen and "$" not in chosen:
        slots = [[s for s in node.partition(":")[2].split(",") if s] for node in chosen.split("@")]
        if all(slots):
            processes, nodes = sum(len(each) for each in slots), None
        if len(slots) == 1 and slots[0]:
            reading.assigned["CUDA_VISIBLE_DEVICES"] = ",".join(slots[0])
    reading.launched("deepspeed", processes, nodes)
    target(reading, rest, options, "deepspeed")


_HOSTS = ("num_nodes", "hostfile", "H", "include", "i", "exclude", "e")
"""Options of ``deepspeed`` that say on which nodes it starts processes."""


def srun(reading: Reading, words: Sequence[str]) -> None:
    """``srun [OPTIONS] PROGRAM``: one process per task."""
    found, rest = take_options(words, flags=_SRUN_FLAGS)
    filled, rest = _behind_variables(reading, rest, _SRUN_FLAGS, lambda word: _is_known(reading, word), "srun")
    tasks = None if filled else slurm_tasks(found, {**reading.inherited, **reading.assigned})
    for name, value in found:
        if name == "export":
            pairs = (item.partition("=") for item in value.split(",") if "=" in item)
            reading.assigned.update({key: text for key, _, text in pairs})
    if tasks != 1:
        reading.around = ("slurm", tasks)
    else:
        reading.note("srun starts a single task: one plain process")
    if not rest:
        raise InputError("the command names no program for srun to start")
    reading.start(rest)


def _is_known(reading: Reading, word: str) -> bool:
    name = program_name(word)
    return name in reading.programs or is_python(name)


def _behind_variables(
    reading: Reading, words: Sequence[str], flags: Collection[str], starts: Callable[[str], bool], launcher: str
) -> tuple[bool, list[str]]:
    """Return whether variables hold further options of a launcher, and the words after them.

    A variable may also be the program itself: it counts as options only if the next word is one that ``starts`` accepts.
    """
    rest, filled = list(words), list[str]()
    while rest and (_VARIABLE.fullmatch(rest[0]) or (filled and rest[0].startswith("-") and not starts(rest[0]))):
        if rest[0].startswith("-"):
            rest = take_options(rest, flags=flags)[1]
        else:
            filled.append(rest.pop(0))
    if not filled or not rest or not starts(rest[0]):
        return False, list(words)
    for each in filled:
        reading.note(f"{each} is taken for options of {launcher}: its value is only known at run time")
    return True, rest


_VARIABLE = re.compile(r"\$(?:\w+|\{\w+(?:\[[@*]\])?\})")


def slurm_tasks(options: Sequence[tuple[str, str]], variables: Mapping[str, str]) -> int | None:
    """Return the number of tasks set by Slurm's options or the job's variables; ``None`` if unset."""
    found = {_SLURM.get(name, name): parse_count(value.partition("-")[0]) for name, value in options}
    nodes = found.get("nodes", parse_count(variables.get("SLURM_NNODES", "1")))
    if found.get("ntasks", UNKNOWN) is not UNKNOWN:
        return int(found["ntasks"])
    each = found.get("ntasks_per_node", UNKNOWN)
    if each is not UNKNOWN and nodes is not UNKNOWN:
        return int(each * nodes)
    known = parse_count(variables.get("SLURM_NTASKS"))
    return None if known is UNKNOWN else int(known)


_SLURM = {"n": "ntasks", "N": "nodes"}


def mpirun(reading: Reading, words: Sequence[str]) -> None:
    """``mpirun -np N PROGRAM`` and similar programs, for which compat has no launcher name."""
    found, rest = take_options(words, flags=_MPI_FLAGS)
    reading.around = (None, number(reading, dict(found), "np", "n", "c"))
    if not rest:
        raise InputError("the command names no program for mpirun to start")
    reading.start(rest)


def ray(reading: Reading, words: Sequence[str]) -> None:
    """``ray job submit [OPTIONS] -- PROGRAM`` and ``ray submit CLUSTER SCRIPT``."""
    reading.around = ("ray", None)
    if words[:2] == ["job", "submit"]:
        behind = list(words[words.index("--") + 1 :]) if "--" in words else None
        if behind is None:
            behind = take_options(words[2:], flags=frozenset(("no_wait", "verbose", "v")))[1]
        if not behind:
            raise InputError("the command names no program for ray job submit to start")
        reading.start(behind)
    elif words[:1] == ["submit"]:
        _, rest = take_options(words[1:], flags=frozenset(("start", "stop", "screen", "tmux", "v", "verbose")))
        target(reading, rest[1:], {}, "ray submit")
    else:
        reading.note("the ray command starts no job")


def papermill(reading: Reading, words: Sequence[str]) -> None:
    """``papermill NOTEBOOK`` and ``jupyter nbconvert --execute NOTEBOOK``."""
    found = [word for word in words if word.endswith(".ipynb")]
    if found:
        reading.run_script(found[:1])
    else:
        reading.note("the command runs no notebook")


PROGRAMS: dict[str, ProgramReader] = {
    "python": python,     "torchrun": torchrun, "accelerate": accelerate, "accelerate-launch": accelerate_launch,
    "deepspeed": deepspeed, "ds": deepspeed, "srun": srun, "mpirun": mpirun, "mpiexec": mpirun, "horovodrun": mpirun,
    "ray": ray, "papermill": papermill, "jupyter": papermill,
}  # fmt: skip
MODULES: dict[str, ProgramReader] = {
    "torch.distributed.run": torchrun, "torch.distributed.launch": torchrun,
    "accelerate.commands.launch": accelerate_launch, "accelerate.commands.accelerate_cli": accelerate,
    "accelerate": accelerate, "deepspeed": deepspeed, "deepspeed.launcher.runner": deepspeed, "papermill": papermill,
}  # fmt: skip
