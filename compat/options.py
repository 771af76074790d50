"""The command line as a table: what the parser accepts, the help prints and the shells complete.

``argparse`` alone would take half of the time a whole check may take, so the parsing is done here.
"""

from __future__ import annotations

from compat.errors import InputError
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@record(frozen=True)
class Option:
    """One option; ``metavar`` is ``None`` for a flag. ``many`` takes every following word up to the next option."""

    name: str
    metavar: str | None
    help: str
    many: bool = False
    choices: tuple[str, ...] = ()


@record(frozen=True)
class Command:
    """One command: its operands as the usage line shows them, how many it takes at most, and its options."""

    name: str
    summary: str
    options: tuple[Option, ...]
    operands: str = ""
    most: int = 0
    words: tuple[str, ...] = ()
    command_after_dashes: bool = False


@record(frozen=True)
class Words:
    """A parsed command line; an option that was not given is not in ``values`` (a flag that was has ``[""]``)."""

    command: Command
    values: Mapping[str, list[str]]
    operands: tuple[str, ...]
    rest: tuple[str, ...] | None

    def one(self, name: str) -> str | None:
        """The value of an option, the last one where it was given more than once."""
        return self.values[name][-1] if self.values.get(name) else None

    def all(self, name: str) -> list[str]:
        """Every value of an option that may be repeated; values joined by commas are taken apart."""
        return [part.strip() for value in self.values.get(name, ()) for part in value.split(",") if part.strip()]

    def flag(self, name: str) -> bool:
        """Whether a flag was given."""
        return name in self.values


_FORMATS = ("text", "json")
_REPORTS = ("text", "json", "github", "sarif", "junit")
REPORT = Option(
    "format", "FORMAT", "how the result is printed: text (default), json,\ngithub (annotations), sarif, junit", choices=_REPORTS
)
SCRIPT = Option("script", "FILE", "your own code: a script, a notebook or a folder\n(may be repeated)")
FORMAT = Option("format", "text|json", "how the result is printed (default: text)", choices=_FORMATS)
FAIL_ON = Option("fail-on", "LEVEL", "exit 1 from this level on: error (default), warning,\ninfo; 'possible' counts open "
                 "questions about errors\ntoo; 'never'", choices=("error", "warning", "info", "possible", "never"))  # fmt: skip
PYTHON = Option("python", "PATH", "an interpreter, an environment or a site-packages\nfolder to read (it is not started)")
ENVIRONMENT = Option("environment", "FILE", "a described environment (JSON, as 'compat facts'\nprints)")
RULES = Option("rules", "FILE", "rules of your own, added to the matrix (may be\nrepeated)")

WORKLOAD = (
    Option("task", "TASK", "sft, grpo, dpo, ppo, orpo, kto, reward, train,\ninference, serve …"),
    Option("trainer", "CLASS", "trainer class, such as SFTTrainer"),
    Option("model", "NAME", "model or architecture, such as mistral"),
    Option("launcher", "NAME", "python, accelerate, torchrun, deepspeed, ray, slurm",
           choices=("python", "accelerate", "torchrun", "deepspeed", "ray", "slurm")),
    Option("processes", "N", "number of processes (world size)"),
    Option("batch-size", "N", "batch size a device"),
    Option("precision", "NAME", "bf16, fp16, fp32 or fp8"),
    Option("quantization", "NAME", "4bit or 8bit"),
    Option("features", "LIST", "what is on: vllm, zero-2, zero-3, fsdp, peft, liger,\ngradient-checkpointing …"),
    Option("without", "LIST", "what is off, in the same words"),
    Option("gpu", "NAME[:N]", "accelerators of the target: 'A100:2', 'RTX 5090',\n'sm_90:8', 'gfx942', 'none'"),
    Option("driver", "VERSION", "driver of the target, such as 550.54.15"),
    Option("cuda-toolkit", "VERSION", "CUDA toolkit of the target, such as 12.4"),
)  # fmt: skip

PLACE = (
    Option("python-version", "VERSION", "Python of the target, such as 3.11"),
    Option("os", "NAME", "linux, windows or darwin", choices=("linux", "windows", "darwin")),
    Option("machine", "NAME", "x86_64, aarch64, arm64 …"),
    Option("glibc", "VERSION", "glibc of the target, such as 2.35"),
)
SELECTION = (
    Option("extras", "LIST", "extras that are installed: names, all or none\n(default: every selection is judged)"),
    Option("groups", "LIST", "dependency groups that are installed, likewise"),
    Option("lock-environment", "NAME", "the environment of a pixi.lock"),
)
DECLARED = (
    Option("target", "LIST", "targets of [tool.compat] in pyproject.toml (default:\nall of them)"),
    Option("config", "FILE", "where [tool.compat] is read, or 'none' (default: the\npyproject.toml of the project)"),
)
ONE_TARGET = (Option("target", "NAME", "the target of [tool.compat] that is meant, where there\nare several"), DECLARED[1])
PASTED = Option(
    "pasted",
    "FILE",
    "pasted text: collect_env, trl env, pip list,\nnvidia-smi …, also inside an issue (-: standard input)",
)
BASELINE = Option("baseline", "FILE", "a report of --format json: only what is new is\nreported")
ALL = Option("all", None, "ask every open question, also the unlikely ones, and\nwhat breaks where nobody said that it is run")
QUIET = Option("quiet", None, "print nothing where no finding holds")

DEEP = Option("deep", None, "also ask pip what it sees in the running environment\n(starts pip)")

INDEX = (
    Option("time-limit", "SECONDS", "the best plan found by then"),
    Option("offline", None, "only what the cache holds"),
    Option("before", "DATE", "nothing uploaded after that day"),
    Option("index-url", "URL", "the index (default: what uv's and pip's configuration\nnames)"),
    Option("extra-index-url", "URL", "a further index (may be repeated)"),
    Option("find-links", "PLACE", "a folder or page of files (may be repeated)"),
    Option("torch-index", "URL", "a mirror of torch's own index: a folder with one for\neach CUDA (…/cu128)"),
)

PROBING = (
    Option("device", "NAME", "all (default), cpu, cuda, or one of them: cuda:0"),
    Option("only", "LIST", "groups of probes: matmul, rotary, attention, triton,\nextensions, devices, trainer, health; or "
           "some of a\ngroup: rotary/transformers"),
    Option("quick", None, "the essentials, in one process for each device"),
    Option("thorough", None, "larger shapes, and torch.compile on the CPU too"),
    Option("trainer", "NAME", "the trainer that takes two steps: sft (default), grpo,\ndpo", choices=("sft", "grpo", "dpo")),
    Option("launcher", "NAME", "how its processes are started: python, torchrun,\naccelerate (default: as the devices "
           "need it)", choices=("python", "torchrun", "accelerate")),
    Option("timeout", "SECONDS", "how long one process may take (default: 120; 60 with\n--quick, 600 with --thorough)"),
    Option("require-device", None, "exit 3 where no accelerator could be probed"),
    Option("python", "PATH", "the interpreter or environment whose stack is run\n(default: the active one)"),
    FORMAT,
)  # fmt: skip

COMMANDS = (
    Command("doctor", "read this machine, judge it, say what to do",
            (PYTHON, ENVIRONMENT, *WORKLOAD, DEEP, ALL,
             RULES, FORMAT, FAIL_ON,
             Option("probe", None, "also run the probes on the devices that are there\n('compat probe': starts the "
                    "interpreter)")), operands="[-- COMMAND…]", command_after_dashes=True),
    Command("probe", "run the stack that is installed: whether each device computes right",
            PROBING, most=0),
    Command("check", "judge lock files, requirements, Dockerfiles … and descriptions",
            (Option("environment", "FILE…", "described environments (JSON, as 'compat facts'\nprints)", many=True), PASTED,
             Option("installed", None, "what is installed here, for a declared target: no\nhardware of this machine is read"),
             PYTHON, SCRIPT,
             *DECLARED, *SELECTION, *PLACE, *WORKLOAD, RULES, BASELINE, ALL, QUIET, REPORT, FAIL_ON),
            operands="[FILE…] [-- COMMAND…]", most=100_000, command_after_dashes=True),
    Command("facts", "print this machine, or what a file lists, as described environments",
            (PYTHON, PASTED, *PLACE, *WORKLOAD), operands="[FILE…] [-- COMMAND…]", most=100_000, command_after_dashes=True),
    Command("init", "declare a target in pyproject.toml, as this machine is",
            (Option("target", "NAME", "how the target is called (default: this-machine)"), *PLACE, *WORKLOAD,
             Option("print", None, "print the table instead of writing it")), operands="[pyproject.toml]", most=1),
    Command("fix", "the smallest set of changes that mends every error",
            (PYTHON, ENVIRONMENT, SCRIPT, *ONE_TARGET, *SELECTION,
             Option("keep", "REQ…", "what must hold: 'torch==2.5.1', or 'torch' as it is", many=True),
             Option("prefer", "stay|upgrade", "releases close to what is there (default), or the\nnewest",
                    choices=("stay", "upgrade")),
             Option("any-age", None, "old releases as well: by default none that is more\nthan a year older than what is "
                    "there"),
             Option("pre", None, "pre-releases as well"),
             Option("allow-source", None, "source installs as well: commits that rules name, and\n"
                    "builds for the GPUs that are there"),
             Option("brief", None, "leave out why and the policies (quicker)"),
             Option("explain", None, "also what the next-best plan would cost, and why it\nlost"),
             Option("verify", "uv|install", "who checks the plan besides our own evaluator: uv pip\ncompile (default), "
                    "or also uv pip install --dry-run", choices=("uv", "install")),
             Option("write", None, "write the changes into the file"),
             *INDEX,
             *PLACE, *WORKLOAD, RULES, FORMAT), operands="[FILE] [-- COMMAND…]", most=1, command_after_dashes=True),
    Command("why", "why a package is at its version, and what would move with it",
            (PYTHON, ENVIRONMENT, *ONE_TARGET, *SELECTION, Option("to", "VERSION", "where to (default: its newest release)"),
             Option("any-age", None, "old releases as well"), *INDEX, *PLACE, *WORKLOAD, RULES),
            operands="NAME [FILE] [-- COMMAND…]", most=2, command_after_dashes=True),
    Command("suggest", "a full set of pins from nothing, for a task and a GPU",
            (Option("with", "LIST", "packages, or requirements such as 'vllm>=0.8'"),
             Option("pre", None, "pre-releases as well"), *INDEX, *PLACE, *WORKLOAD, RULES, FORMAT)),
    Command("diagnose", "find the rules whose errors a traceback or log shows",
            (PYTHON, ENVIRONMENT, *WORKLOAD, RULES, FORMAT, FAIL_ON), operands="[FILE|-]", most=1),
    Command("rules", "the matrix: list it, show a rule, check rule files",
            (RULES, FORMAT), operands="[list | show ID… | lint [FILE…]]", most=1000, words=("list", "show", "lint")),
    Command("script", "the releases in which everything that a script uses exists",
            (FORMAT,), operands="FILE…", most=100_000),
    Command("surface", "what breaks between releases, with file and line on both sides",
            (FORMAT,), operands="NAME==VERSION…", most=100),
    Command("completions", "print completions for a shell", (),
            operands="bash|zsh|fish", most=1, words=("bash", "zsh", "fish")),
)  # fmt: skip


def command_named(name: str) -> Command:
    """A command by name; :class:`InputError` with the nearest names where there is none."""
    for command in COMMANDS:
        if command.name == name:
            return command
    raise InputError(f"unknown command {name!r}{_nearest(name, [command.name for command in COMMANDS])}")


def parse(command: Command, words: Sequence[str]) -> Words:
    """The words behind a command's name; :class:`InputError` for anything the command does not take."""
    values: dict[str, list[str]] = {}
    operands: list[str] = []
    rest: tuple[str, ...] | None = None
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word == "--":
            rest = tuple(words[position:])
            break
        if not word.startswith("--"):
            if word.startswith("-") and word != "-":
                raise InputError(f"unknown option {word!r} for 'compat {command.name}'")
            operands.append(word)
            continue
        name, equals, given = word[2:].partition("=")
        option = _option(command, name)
        taken = values.setdefault(name, [])
        if option.metavar is None:
            if equals:
                raise InputError(f"--{name} takes no value")
            taken.append("")
        elif equals:
            taken.append(_checked(option, given))
        else:
            count = _following(words, position) if option.many else int(position < len(words) and words[position] != "--")
            if not count:
                raise InputError(f"--{name} needs a value ({option.metavar})")
            taken += [_checked(option, each) for each in words[position : position + count]]
            position += count
    _check_operands(command, operands, rest)
    return Words(command=command, values=values, operands=tuple(operands), rest=rest)


def _check_operands(command: Command, operands: list[str], rest: tuple[str, ...] | None) -> None:
    if len(operands) > command.most:
        hint = "; the command to be read goes behind '--'" if command.command_after_dashes else ""
        raise InputError(f"'compat {command.name}' does not take {operands[command.most]!r}{hint}")
    if rest is not None and not command.command_after_dashes:
        raise InputError(f"'compat {command.name}' takes no command behind '--'")
    if rest is not None and not rest:
        raise InputError("expected a command behind '--'")


def _following(words: Sequence[str], position: int) -> int:
    count = 0
    while position + count < len(words) and not words[position + count].startswith("--"):
        count += 1
    return count


def _option(command: Command, name: str) -> Option:
    for option in command.options:
        if option.name == name:
            return option
    near = _nearest(f"--{name}", [f"--{option.name}" for option in command.options])
    raise InputError(f"unknown option '--{name}' for 'compat {command.name}'{near}")


def _checked(option: Option, value: str) -> str:
    if option.choices and value not in option.choices:
        raise InputError(f"--{option.name}: {value!r} is not one of {', '.join(option.choices)}")
    return value


def _nearest(word: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]}?" if near else ""
