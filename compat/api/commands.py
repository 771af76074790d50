"""The commands and their options as one table, for the parser, the library calls, the help texts and the completions."""

from __future__ import annotations

from compat.errors import InputError
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@record(frozen=True)
class Option:
    """One option; ``metavar`` is ``None`` for a flag. ``many`` consumes every following argument up to the next option.

    ``about`` is its help, or a function that returns it, where making it imports what most commands do not need.
    """

    name: str
    metavar: str | None
    about: str | Callable[[], str]
    many: bool = False
    choices: tuple[str, ...] = ()

    @property
    def help(self) -> str:
        return self.about if isinstance(self.about, str) else self.about()


@record(frozen=True)
class Command:
    """One command: its operands as shown in the usage line, their maximum number (``most``), and its options.

    ``program``: the first operand starts the command line of a program, whose arguments are not options of compat.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    operands: str = ""
    most: int = 0
    words: tuple[str, ...] = ()
    command_after_dashes: bool = False
    program: bool = False


_FORMATS = ("text", "json")
REPORTS = {
    "github": ("annotations", "compat.output.github", "workflow_commands"),
    "sarif": ("", "compat.output.sarif", "sarif_text"),
    "junit": ("", "compat.output.junit", "junit"),
    "html": ("a page", "compat.output.html.report", "outcomes_page"),
}
"""Formats of ``compat check`` besides text and JSON: a word about each for the help, its module, and its function there."""
_REPORTS = ", ".join(f"{name} ({about})" if about else name for name, (about, _, _) in REPORTS.items())
REPORT = Option("format", "FORMAT", f"output format: text (default), json, {_REPORTS}", choices=(*_FORMATS, *REPORTS))
SCRIPT = Option("script", "FILE", "your own code: a script, a notebook or a folder (may be repeated)")
_REPLIES = Option(
    "format", "FORMAT", "output format: text (default), json, markdown (a reply to an issue), html (a page)",
    choices=(*_FORMATS, "markdown", "html"),
)  # fmt: skip
_FLEET = Option(
    "format", "FORMAT", "output format: text (default), json, markdown (a comment), html (a page)",
    choices=(*_FORMATS, "markdown", "html"),
)  # fmt: skip
PAGE = Option("format", "FORMAT", "output format: text (default), json, html (a page)", choices=(*_FORMATS, "html"))
_GRAPH = Option(
    "format", "FORMAT", "output format: text (default), html (a page with a graph), dot (for Graphviz)",
    choices=("text", "html", "dot"),
)  # fmt: skip
FORMAT = Option("format", "text|json", "output format (default: text)", choices=_FORMATS)
FAIL_ON = Option(
    "fail-on", "LEVEL",
    "lowest severity that makes the exit code 1: error (default), warning, info, possible (also undecided errors) or never",
    choices=("error", "warning", "info", "possible", "never"),
)  # fmt: skip
PYTHON = Option("python", "PATH", "the interpreter, virtual environment or site-packages folder to read (never started)")
ENVIRONMENT = Option("environment", "FILE", "an environment description (JSON, as 'compat facts' prints it)")
RULES = Option("rules", "FILE", "additional rule file (may be repeated)")

WORKLOAD = (
    Option("task", "TASK", "sft, grpo, dpo, ppo, orpo, kto, reward, train, inference, serve …"),
    Option("trainer", "CLASS", "trainer class, such as SFTTrainer"),
    Option("model", "NAME", "model or architecture, such as mistral"),
    Option("launcher", "NAME", "python, accelerate, torchrun, deepspeed, ray, slurm",
           choices=("python", "accelerate", "torchrun", "deepspeed", "ray", "slurm")),
    Option("processes", "N", "number of processes (world size)"),
    Option("batch-size", "N", "per-device batch size"),
    Option("precision", "NAME", "bf16, fp16, fp32 or fp8"),
    Option("quantization", "NAME", "4bit or 8bit"),
    Option("features", "LIST", "features that are on: vllm, zero-2, zero-3, fsdp, peft, liger, gradient-checkpointing …"),
    Option("without", "LIST", "features that are off (same names as --features)"),
    Option("gpu", "NAME[:N]", "accelerators of the target: 'A100:2', 'RTX 5090', 'sm_90:8', 'gfx942', 'none'"),
    Option("driver", "VERSION", "driver of the target, such as 550.54.15"),
    Option("cuda-toolkit", "VERSION", "CUDA toolkit of the target, such as 12.4"),
)  # fmt: skip

_WORKLOAD_AND_MODEL = tuple(
    Option("model", "NAME|PATH", "model or architecture, such as mistral; or its folder (config.json, safetensors): also "
           "estimate its memory")
    if option.name == "model" else option for option in WORKLOAD
)  # fmt: skip

PLACE = (
    Option("python-version", "VERSION", "Python of the target, such as 3.11"),
    Option("os", "NAME", "linux, windows or darwin", choices=("linux", "windows", "darwin")),
    Option("machine", "NAME", "x86_64, aarch64, arm64 …"),
    Option("glibc", "VERSION", "glibc of the target, such as 2.35"),
)
SELECTION = (
    Option("extras", "LIST", "installed extras: names, all or none (default: check every combination)"),
    Option("groups", "LIST", "installed dependency groups: names, all or none"),
    Option("lock-environment", "NAME", "which environment of a pixi.lock"),
)
DECLARED = (
    Option("target", "LIST", "targets declared under [tool.compat] in pyproject.toml (default: all)"),
    Option("config", "FILE", "file with [tool.compat], or 'none' (default: the project's pyproject.toml)"),
)
ONE_TARGET = (Option("target", "NAME", "target declared under [tool.compat], if there are several"), DECLARED[1])
PASTED = Option(
    "pasted", "FILE", "pasted text: collect_env, trl env, pip list, nvidia-smi …, or an issue with them (-: standard input)",
)  # fmt: skip
BASELINE = Option("baseline", "FILE", "report only what is not in this earlier report (--format json)")
ALL = Option("all", None, "show every undecided finding, including unlikely ones and code paths not known to run")
QUIET = Option("quiet", None, "print nothing if there are no findings")
STRICT = Option("strict", None, "exit 3 if it is unknown what gets installed (dynamic dependencies, missing files)")

DEEP = Option("deep", None, "also compare with pip's view of the running environment (starts pip)")

INDEX = (
    Option("time-limit", "SECONDS", "stop after SECONDS and print the best plan so far"),
    Option("offline", None, "use only what is cached"),
    Option("before", "DATE", "ignore releases uploaded after DATE"),
    Option("index-url", "URL", "the index (default: the one configured for uv or pip)"),
    Option("extra-index-url", "URL", "an additional index (may be repeated)"),
    Option("find-links", "PLACE", "a folder or page with wheels (may be repeated)"),
    Option("torch-index", "URL", "a mirror of torch's own index, with one folder for each CUDA release (…/cu128)"),
)


def _probe_groups() -> str:
    from compat.probe.request import NAMES

    return f"probe groups: {', '.join(NAMES)}; or part of a group: rotary/transformers"


PROBING = (
    Option("device", "NAME", "all (default), cpu, cuda, or one of them: cuda:0"),
    Option("only", "LIST", _probe_groups),
    Option("quick", None, "only the essentials, in one process per device"),
    Option("thorough", None, "larger shapes, and torch.compile also on the CPU"),
    Option("trainer", "NAME", "run two steps of this trainer: sft (default), grpo, dpo", choices=("sft", "grpo", "dpo")),
    Option("launcher", "NAME", "how to start the processes: python, torchrun, accelerate (default: depends on the devices)",
           choices=("python", "torchrun", "accelerate")),
    Option("timeout", "SECONDS", "time limit for each process (default: 120; 60 with --quick, 600 with --thorough)"),
    Option("require-device", None, "exit 3 if no accelerator could be probed"),
    Option("python", "PATH", "the interpreter or environment to run (default: the active one)"),
    FORMAT,
)  # fmt: skip

COMMANDS = (
    Command("doctor", "check this machine and suggest fixes",
            (PYTHON, ENVIRONMENT, *_WORKLOAD_AND_MODEL, DEEP, ALL,
             RULES, PAGE, FAIL_ON,
             Option("probe", None, "also run 'compat probe' on the devices of this machine (starts the interpreter)")),
            operands="[-- COMMAND…]", command_after_dashes=True),
    Command("check", "check lock files, requirements, Dockerfiles and environment descriptions",
            (Option("environment", "FILE…", "environment descriptions (JSON, as 'compat facts' prints them)", many=True),
             PASTED,
             Option("installed", None,
                    "check what is installed here for a declared target, without reading the hardware of this machine"),
             PYTHON, SCRIPT,
             *DECLARED, *SELECTION, *PLACE, *WORKLOAD, RULES, BASELINE, ALL, QUIET, STRICT, REPORT, FAIL_ON),
            operands="[FILE|FOLDER…] [-- COMMAND…]", most=100_000, command_after_dashes=True),
    Command("fix", "find the smallest set of changes that fixes every error",
            (PYTHON, ENVIRONMENT, SCRIPT, *ONE_TARGET, *SELECTION,
             Option("level", "error|warning", "fix only errors (default), or also warnings", choices=("error", "warning")),
             Option("keep", "REQ…",
                    "requirements to keep: 'torch==2.5.1', or just 'torch' for its current version", many=True),
             Option("prefer", "stay|upgrade", "stay close to the current releases (default), or prefer the newest",
                    choices=("stay", "upgrade")),
             Option("any-age", None, "also consider releases more than a year older than the current ones"),
             Option("pre", None, "also consider pre-releases"),
             Option("allow-source", None, "consider source installs: commits that rules "
                    "recommend, and builds for the GPUs of the target"),
             Option("brief", None, "leave out reasons and policies (faster)"),
             Option("explain", None, "also show the cost of the next-best plan, and why it lost"),
             Option("verify", "uv|install", "check the plan with uv pip compile (default), or also "
                    "with uv pip install --dry-run", choices=("uv", "install")),
             Option("write", None, "write the changes into the file"),
             *INDEX,
             *PLACE, *WORKLOAD, RULES, PAGE), operands="[FILE] [-- COMMAND…]", most=1, command_after_dashes=True),
    Command("diagnose", "explain a traceback, a log or an issue",
            (PYTHON, ENVIRONMENT, *WORKLOAD, RULES, _REPLIES, FAIL_ON), operands="[FILE|-]", most=1),
    Command("probe", "check that each device computes correctly with the installed stack",
            PROBING, most=0),
    Command("suggest", "propose a complete set of compatible pins for a task and GPU",
            (Option("with", "LIST", "packages, or requirements such as 'vllm>=0.8'"),
             Option("list", None,
                    "list tested combinations: for a task and GPU, the newest that resolves and has no findings"),
             Option("pre", None, "also consider pre-releases"), *INDEX, *PLACE, *WORKLOAD, RULES, FORMAT)),
    Command("why", "explain why a package is at its version, and what would change with it",
            (PYTHON, ENVIRONMENT, *ONE_TARGET, *SELECTION,
             Option("to", "VERSION", "the version to move to (default: the newest)"),
             Option("any-age", None, "also consider old releases"), *INDEX, *PLACE, *WORKLOAD, RULES, _GRAPH),
            operands="NAME [FILE] [-- COMMAND…]", most=2, command_after_dashes=True),
    Command("facts", "print this machine or a file as an environment description (JSON)",
            (PYTHON, PASTED,
             Option("output", "DIR", "write this machine's facts to DIR/HOST.json, for 'compat fleet'"),
             Option("probe", None, "with --output: also run the quick probes"),
             Option("rendezvous", "HOST:PORT", "with --probe: rendezvous address of the nodes, for collectives"),
             Option("nodes", "N", "with --rendezvous: number of nodes"),
             Option("timeout", "SECONDS", "with --probe: time limit for the probes (default: 120)"),
             Option("format", "json", "output format: json, which is the only one", choices=("json",)),
             *PLACE, *WORKLOAD), operands="[FILE…] [-- COMMAND…]", most=100_000, command_after_dashes=True),
    Command("script", "find the releases that have everything a script uses",
            (FORMAT,), operands="FILE…", most=100_000),
    Command("surface", "show what breaks between releases, with file and line on both sides",
            (FORMAT,), operands="NAME==VERSION…", most=100),
    Command("rules", "list rules, show one, or check rule files",
            (RULES, FORMAT), operands="[list | show ID… | lint [FILE…]]", most=1000, words=("list", "show", "lint")),
    Command("init", "declare a target in pyproject.toml",
            (Option("target", "NAME", "name of the target (default: this-machine)"), *PLACE, *WORKLOAD,
             Option("print", None, "print the table instead of writing it")), operands="[pyproject.toml]", most=1),
    Command("run", "check a Python program and this machine, then run the program",
            (Option("fail-on", "LEVEL", "do not start the program if there are findings of at "
                    "least this level: error or warning (default: print findings and start)", choices=("error", "warning")),
             *WORKLOAD, RULES), operands="SCRIPT|-m MODULE [ARGUMENTS…]", program=True),
    Command("fleet", "compare the nodes of a cluster, and check every distinct environment",
            (Option("expect", "HOSTS", "nodes that must answer: 'node[001-128]' (exit 3 if one does not)"),
             Option("slurm", None, "gather the facts with srun first: one task per node"),
             Option("partition", "NAME", "partition for --slurm"),
             Option("nodelist", "HOSTS", "nodes for --slurm"),
             Option("ray", None, "gather the facts with Ray first: one task per node"),
             Option("address", "ADDRESS", "cluster for --ray (default: auto)"),
             Option("timeout", "SECONDS", "time limit for a node to answer (default: 120)"),
             Option("probe", None, "with --slurm or --ray: also run the quick probes, and collectives between the nodes"),
             *WORKLOAD, RULES, _FLEET, FAIL_ON),
            operands="DIR [-- COMMAND…]", most=1, command_after_dashes=True),
    Command("mcp", "serve check, diagnose, fix, suggest and rules to agents (MCP)",
            (Option("allow-write", None, "allow 'fix' to write files (default: it only plans)"),)),
    Command("completions", "print shell completions", (),
            operands="bash|zsh|fish", most=1, words=("bash", "zsh", "fish")),
)  # fmt: skip


def command_named(name: str) -> Command:
    """A command by name; :class:`InputError` with the nearest name if it is unknown."""
    for command in COMMANDS:
        if command.name == name:
            return command
    raise InputError(f"unknown command {name!r}{nearest(name, [command.name for command in COMMANDS])}")


def option_named(command: Command, name: str) -> Option:
    for option in command.options:
        if option.name == name:
            return option
    near = nearest(f"--{name}", [f"--{option.name}" for option in command.options])
    raise InputError(f"unknown option '--{name}' for 'compat {command.name}'{near}")


def checked(option: Option, value: str) -> str:
    if option.choices and value not in option.choices:
        raise InputError(f"--{option.name}: {value!r} is not one of {', '.join(option.choices)}")
    return value


def nearest(word: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


@record(frozen=True)
class Options:
    """A parsed command line.

    ``values`` maps each option that was passed to its values; for a flag, ``[""]``. ``rest`` is the command after ``--``.
    """

    command: str
    values: Mapping[str, list[str]]
    operands: tuple[str, ...]
    rest: tuple[str, ...] | None

    def one(self, name: str) -> str | None:
        """The value of an option; the last one if it was passed more than once."""
        return self.values[name][-1] if self.values.get(name) else None

    def all(self, name: str) -> list[str]:
        """All values of a repeatable option; comma-separated values are split."""
        return [part.strip() for value in self.values.get(name, ()) for part in value.split(",") if part.strip()]

    def flag(self, name: str) -> bool:
        """Whether an option was passed."""
        return name in self.values
