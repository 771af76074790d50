"""The job that a text shows: a command that starts it, or the settings that a serving engine logs when it starts.

Both are read like a command after ``--``; the files that it names are those of another machine, and are not looked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from compat.errors import InputError
from compat.model import Workload
from compat.records import replace
from compat.reports.findings import Findings
from compat.reports.lines import Line
from compat.workload.command import CommandReading, read_with

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
_READ = frozenset((
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
        if name in _READ and value not in _UNSET and f"--{name}" not in words:
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
