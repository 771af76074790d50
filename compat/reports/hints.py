"""Hints in paths, prompts, commands, logs and names of container images: what they say about the computer and the releases.

An image's releases count where nothing else in the text states them. The job is that of a command in the text, or of the
settings that a serving engine logs when it starts; the files that it names are those of another machine, and not looked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence

from compat.errors import InputError
from compat.formats.docker.base_images import known_stack
from compat.model import Workload
from compat.records import replace
from compat.reports.findings import BY_HAND, HINTED, WRITTEN, Findings
from compat.reports.lines import Line
from compat.reports.words import boards_in
from compat.workload.command import CommandReading, read_with

_PATH = re.compile(
    r"[/\\][Pp]ython(?P<version>3\.?\d{1,2})[/\\](?:[Ll]ib[/\\])?(?:site|dist)-packages[/\\]"
    r"|[/\\]lib[/\\]python(?P<version_2>3\.\d{1,2})[/\\]|[/\\]Python(?P<version_3>3\d{1,2})[/\\]Lib[/\\]"
)
"""A path in an interpreter's library, its installed packages included."""
_WHEEL = re.compile(
    r"(?:Using cached|Downloading|Obtaining|Processing) \S{1,300}-cp(?P<python>3\d{1,2})-[\w.]{1,20}-"
    r"(?P<platform>win_amd64|win32|manylinux|linux|macosx)"
)
"""A wheel that pip chose: its tags say for which Python and system."""
_OF_WHEELS = {"win_amd64": "windows", "win32": "windows", "manylinux": "linux", "linux": "linux", "macosx": "darwin"}
_MODULE = re.compile(
    r"\.cpython-(?P<python>3\d{1,2})-(?:(?P<machine>x86_64|aarch64|powerpc64le)-linux-gnu|darwin)\.so"
    r"|\.cp(?P<python_2>3\d{1,2})-win_(?P<windows>amd64|arm64)\.pyd"
)
"""A compiled module of CPython: its name says for which Python and system it is."""
_SHELL = re.compile(r"(?:^|[\s)])(?:PS )?[A-Z]:\\[\w\\ .()-]{0,200}>(?=\s|$|[a-z])")
"""The prompt of a shell on Windows."""
_OF_LINUX = re.compile(
    r"version `GLIBC(?:XX)?_\d|lib[\w+-]{1,40}\.so(?:\.\d{1,3}){0,3}: cannot open shared object file"
    r"|\b(?:x86_64|aarch64)-(?:unknown|pc)-linux-gnu\b"
)
_INDEX = re.compile(
    r"\bpip3? install\b[^\n]{0,200}?\btorch\b[^\n]{0,200}?/whl/(?:nightly/)?(?P<label>cu(?P<cuda>\d{2,3})|cpu)(?![\w.])"
)
_FRAME = re.compile(r"File \"(?P<path>/home/|/root/|/Users/|[A-Z]:[\\/])")
_LINUX = re.compile(r"(?<![\w.:~'\"/])/(?:root/|home/|usr/local/cuda|usr/lib/x86_64-linux-gnu/)")
_WINDOWS = re.compile(r"WindowsPath|(?<![A-Za-z])[A-Z]:\\|/Users/|[Ww]indows|[Mm]ac ?OS|[Dd]arwin")
_SYSTEMS = {"/home/": "linux", "/root/": "linux", "/Users/": "darwin"}


_MOST = 500
"""Maximum number of prose lines searched for computers."""


class _Hints:
    """What the lines of one text hint at; a hint counts only if no other contradicts it."""

    def __init__(self) -> None:
        self.pythons: set[str] = set()
        self.systems: set[str] = set()
        self.machines: set[str] = set()
        self.builds: set[str] = set()

    def of_path(self, match: re.Match[str]) -> None:
        self.pythons.add(_minor(next(filter(None, match.groups()))))

    def of_wheel(self, match: re.Match[str]) -> None:
        self.pythons.add(_minor(match["python"]))
        self.systems.add(_OF_WHEELS[match["platform"]])

    def of_frame(self, match: re.Match[str]) -> None:
        self.systems.add(_SYSTEMS.get(match["path"], "windows"))

    def of_module(self, match: re.Match[str]) -> None:
        self.pythons.add(_minor(match["python"] or match["python_2"]))
        self.systems.add("windows" if match["windows"] else "linux" if match["machine"] else "darwin")
        machine = match["machine"] or {"amd64": "x86_64"}.get(match["windows"], match["windows"])
        if machine:
            self.machines.add(machine)

    def of_shell(self, _: re.Match[str]) -> None:
        self.systems.add("windows")

    def of_index(self, match: re.Match[str]) -> None:
        cuda = match["cuda"]
        self.builds.add(f"{cuda[:-1]}.{cuda[-1]}" if cuda else "cpu")


_READ: tuple[tuple[str, re.Pattern[str], Callable[[_Hints, re.Match[str]], None]], ...] = (
    ("ython3", _PATH, _Hints.of_path),
    ("-cp3", _WHEEL, _Hints.of_wheel),
    ('File "', _FRAME, _Hints.of_frame),
    (".cp", _MODULE, _Hints.of_module),
    (":\\", _SHELL, _Hints.of_shell),
    ("/whl/", _INDEX, _Hints.of_index),
)
"""What a line contains, the pattern of the hint, and what it says."""


def read_hints(lines: Sequence[Line], found: Findings) -> None:
    """Infer facts from names in the text, if all agree and nothing else states them."""
    hints = _Hints()
    for line in lines:
        for part, pattern, read in _READ:
            if part in line.text:
                for match in pattern.finditer(line.text):
                    read(hints, match)
    if not hints.systems:
        hints.systems.update(_linux(lines))
    if len(hints.pythons) == 1 and "python" not in found.values:
        version = hints.pythons.pop()
        found.record("python", version, HINTED)
        found.note(f"Python {version} is read from paths in the text")
    for field, values in (("os", hints.systems), ("machine", hints.machines)):
        if len(values) == 1 and field not in found.values:
            found.record(field, values.pop(), HINTED)
    if len(hints.builds) == 1 and not any(
        each.extra or "+" in (each.version or "") for each in found.packages.get("torch", ())
    ):
        found.package("torch", None, HINTED, None, {"cuda": hints.builds.pop()})
    boards = [] if found.devices else boards_in("\n".join(line.text for line in lines[:_MOST] if not line.fenced))
    if len(boards) == 1:
        found.accelerators(boards, BY_HAND, counted=False)


def _linux(lines: Sequence[Line]) -> set[str]:
    if any(_OF_LINUX.search(line.text) for line in lines):
        return {"linux"}
    if any(_WINDOWS.search(line.text) for line in lines):
        return set()
    return {"linux" for line in lines if "/" in line.text and _LINUX.search(line.text)}


def _minor(digits: str) -> str:
    """``3.10`` and Windows' ``310``."""
    return digits if "." in digits else f"{digits[0]}.{digits[1:]}"


_IMAGE = re.compile(
    r"(?<![\w/.:@-])(?:[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}/)?[a-z\d][\w.-]{0,60}/[a-z\d][\w./-]{0,100}:[A-Za-z\d][\w.-]{0,127}"
    r"(?![\w/:])"
)
_MOST_IMAGES = 40
"""Images looked at; a text with more is a list of them."""


def read_images(lines: Sequence[Line], found: Findings) -> None:
    """Record the stack of the image that the text names, if it names one alone: of two, one may be what works."""
    named = (line.text for line in lines if ":" in line.text and "/" in line.text)
    images = {match[0].rstrip(".") for text in named for match in _IMAGE.finditer(text)}
    stacks = {image: known_stack(image) for image in sorted(images)[:_MOST_IMAGES]}
    known = [stack for stack in stacks.values() if stack.distributions or stack.cuda_toolkit]
    if len(known) != 1:
        return
    (stack,) = known
    for each in stack.distributions or ():
        if each.name not in found.packages:
            found.package(each.name, each.version, WRITTEN, each.source, each.extra)
    for field in ("python", "os", "glibc", "cuda_toolkit"):
        if field not in found.values:
            found.record(field, getattr(stack, field), HINTED)


_LOGGED = {
    "vllm": re.compile(r"\b(?:args: Namespace\(|non-default args: \{)(?P<settings>[^\n]{1,8000})"),
    "engine": re.compile(
        r"\bInitializing an? (?:V\d )?LLM engine (?:\(v[^)\n]{1,40}\) )?with config: (?P<settings>[^\n]{1,8000})"
    ),
    "sglang": re.compile(r"\bserver_args=ServerArgs\((?P<settings>[^\n]{1,8000})"),
}
_SETTING = re.compile(
    r"(?<![\w.])['\"]?(?P<name>[a-z_]{2,40})['\"]?\s?[=:]\s?(?:'(?P<one>[^'\n]{0,300})'|\"(?P<two>[^\"\n]{0,300})\"|(?P<bare>[\w./-]{1,80}))"
)
_RELEVANT = frozenset((
    "model", "model_path", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "tp_size", "pp_size",
    "dp_size", "quantization", "dtype", "kv_cache_dtype", "enable_lora", "enforce_eager", "distributed_executor_backend",
    "attention_backend",
))  # fmt: skip
"""The settings that decide which code runs."""
_UNSET = frozenset(("None", "auto", "False", ""))
_PROGRAMS = (
    r"vllm serve|python[\d.]* -m (?:vllm|sglang)\.|sglang serve|torchrun|accelerate launch|deepspeed|llamafactory-cli|"
    r"trl (?:sft|dpo|grpo|kto|reward|rloo|vllm-serve)|swift (?:sft|pt|rlhf|deploy|infer)|axolotl train"
)
_PROMPT = r"[ \t>]{0,8}(?:[$%>#] |\([^)\n]{1,40}\) [^\n$#]{0,60}[$#] )?"
_COMMAND = re.compile(rf"{_PROMPT}(?P<command>(?:[A-Z][A-Z0-9_]{{1,60}}=\S{{1,200}} ){{0,12}}(?:{_PROGRAMS})[^\n]{{0,4000}})")
_MOST_LINES = 60
"""Maximum number of lines that a command is continued over."""


def read_launches(lines: Sequence[Line], found: Findings) -> None:
    """Record the job of the commands and engine logs in a text, if all of them show the same one."""
    jobs = [*_of_logs(lines), *_of_commands(lines)]
    if len({repr(replace(each, origins={})) for each in jobs}) == 1:
        found.workloads.append(jobs[0])


def _of_logs(lines: Sequence[Line]) -> Iterator[Workload]:
    """Yield the job of each engine; one that logs its settings as a server does so again as an engine, and counts once."""
    servers: list[Workload] = []
    engines: list[Workload] = []
    for line in lines:
        for program, pattern in _LOGGED.items():
            match = pattern.search(line.text)
            if match is not None and (job := _of_settings(program, match["settings"], line.number)) is not None:
                (engines if program == "engine" else servers).append(job)
    yield from servers or engines


def _of_settings(program: str, settings: str, number: int) -> Workload | None:
    words: list[str] = []
    for match in _SETTING.finditer(settings):
        name = match["name"]
        value = next((each for each in (match["one"], match["two"], match["bare"]) if each is not None), "")
        if name in _RELEVANT and value not in _UNSET and f"--{name}" not in words:
            words += [f"--{name}"] if value == "True" else [f"--{name}", value.removeprefix("torch.")]
    if not words:
        return None
    if program == "sglang":
        return _job(["python", "-m", "sglang.launch_server", *words], number)
    job = _job(["vllm", "serve", *words], number)
    if job is None or program == "vllm":
        return job
    # the engine alone may be part of a training: neither the task nor the processes are those of a server
    features = tuple(name for name in job.features or () if name != "openai-server")
    return replace(job, task=None, launcher=None, processes=None, features=features, features_absent=None)


def _of_commands(lines: Sequence[Line]) -> Iterator[Workload]:
    at = 0
    while at < len(lines):
        match = _COMMAND.match(lines[at].text)
        number, at = lines[at].number, at + 1
        if match is None:
            continue
        text = match["command"].rstrip()
        for _ in range(_MOST_LINES):
            if not text.endswith("\\") or at >= len(lines):
                break
            text, at = f"{text[:-1]} {lines[at].text.strip().removeprefix('> ')}", at + 1
        if (job := _job(["bash", "-c", text.rstrip("\\")], number)) is not None:
            yield job


class _Elsewhere(CommandReading):
    """Reads a command of another machine, whose files are not there."""

    def __init__(self) -> None:
        super().__init__(os.devnull, {})
        self.lenient = True

    def path(self, name: str) -> str:
        return os.path.join(os.devnull, os.path.basename(name))


def _job(words: Sequence[str], number: int) -> Workload | None:
    try:
        job = read_with(_Elsewhere(), list(words)).workload
    except InputError:
        return None
    if job.task is None and job.model is None and job.launcher is None:
        return None
    origins = dict.fromkeys(job.origins, f"line {number}")
    return replace(job, options=None, script=None, program=None, code=None, origins=origins)
