"""Lines that say what failed without being a Python exception, and exceptions that only pass on another failure.

``FAILURE`` is something that went wrong itself, ``NOTICE`` a warning that often names the cause of a later failure,
``CONSEQUENCE`` what breaks because something else did (a watchdog, a launcher, a dead pipe), ``INTERRUPTED`` a stop.
"""

from __future__ import annotations

import re

from compat.reports.log.frames import RaisedError

FAILURE, NOTICE, CONSEQUENCE, INTERRUPTED = 0, 1, 2, 3

# (weight, a text that must be in the line, a pattern that must match as well)
_Native = tuple[int, str, "re.Pattern[str] | None"]


def _native(weight: int, hint: str, pattern: str = "") -> _Native:
    return weight, hint, re.compile(pattern) if pattern else None


_NATIVE: tuple[_Native, ...] = (
    # consequences first: such a line often quotes the failure it follows from
    _native(CONSEQUENCE, "Watchdog caught collective operation timeout"),
    _native(CONSEQUENCE, "(exitcode: -", r"failed \(exitcode: -\d+\)"),
    _native(CONSEQUENCE, "died with <Signals."),
    _native(
        CONSEQUENCE, "(core dumped)", r"\b(?:Aborted|Segmentation fault|Bus error|Illegal instruction|Floating point exc\w*)"
    ),
    _native(CONSEQUENCE, "Killed", r"^(?:Killed|\S+: line \d+: +\d+ Killed\b.*)$"),
    _native(CONSEQUENCE, "Aborted", r"^Aborted!?$"),
    _native(CONSEQUENCE, "Segmentation fault", r"^Segmentation fault$"),
    _native(CONSEQUENCE, "ncclRemoteError"),
    _native(CONSEQUENCE, "ninja: build stopped"),
    _native(CONSEQUENCE, "error: subprocess-exited-with-error"),
    _native(CONSEQUENCE, "error: metadata-generation-failed"),
    _native(CONSEQUENCE, "did not run successfully", r"^\s*[×x] .* did not run successfully"),
    _native(CONSEQUENCE, "Could not build wheels for"),
    _native(CONSEQUENCE, "Failed building wheel for"),
    _native(CONSEQUENCE, "Failed to build ", r"^(?:ERROR: )?(?:[×x] )?Failed to build "),
    # the loader
    _native(FAILURE, "undefined symbol: "),
    _native(FAILURE, "symbol lookup error"),
    _native(FAILURE, "cannot open shared object file"),
    _native(FAILURE, "' not found", r"version [`'](?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found"),
    _native(FAILURE, "DLL load failed"),
    _native(FAILURE, "Failed to load dynamic shared library"),
    # the device
    _native(FAILURE, "no kernel image is available"),
    _native(FAILURE, "CUDA error", r"CUDA error(?::| \d| \()"),
    _native(FAILURE, "HIP error:"),
    _native(FAILURE, "cudaError", r"\bcudaError[A-Z]\w+"),
    _native(FAILURE, "hipError", r"\bhipError[A-Z]\w+"),
    _native(FAILURE, "Cuda failure"),
    _native(FAILURE, "CUDA out of memory"),
    _native(FAILURE, "_STATUS_", r"\bCU(?:DNN|BLAS|SPARSE|SOLVER)_STATUS_(?!SUCCESS)"),
    _native(FAILURE, "cuDNN version incompatibility"),
    _native(FAILURE, "failed.", r"Assertion [`'].+[`'] failed\."),
    _native(FAILURE, "NVML", r"Failed to initialize NVML"),
    _native(FAILURE, "ncclUnhandledCudaError"),
    _native(FAILURE, "ncclInternalError"),
    _native(FAILURE, "ncclSystemError"),
    _native(FAILURE, "ncclInvalidUsage"),
    _native(FAILURE, "NCCL error"),
    _native(NOTICE, "NCCL WARN"),
    # the process
    _native(FAILURE, "Fatal Python error: "),
    _native(FAILURE, "Segfault encountered"),
    _native(FAILURE, "terminate called"),
    _native(FAILURE, "*** SIG", r"\*\*\* SIG[A-Z]+ "),
    _native(FAILURE, "invalid pointer", r"^(?:free|munmap_chunk|realloc)\(\): invalid pointer"),
    _native(FAILURE, "malloc(): ", r"^malloc\(\): "),
    _native(FAILURE, "double free or corruption"),
    _native(FAILURE, "Out of memory: Killed process"),
    _native(FAILURE, "kill event", r"oom[-_]kill event"),
    _native(FAILURE, "while importing ", r"(?i:exception|error|failed)\b.{0,40} while importing \w+: "),
    # installers and compilers
    _native(FAILURE, "Could not find a version that satisfies"),
    _native(FAILURE, "No matching distribution found for"),
    _native(FAILURE, "ResolutionImpossible"),
    _native(FAILURE, "have conflicting dependencies", r"^ERROR: "),
    _native(FAILURE, "No solution found when resolving"),
    _native(NOTICE, "which is incompatible.", r"requires .+, but you have "),
    _native(FAILURE, "error: command ", r"error: command .+ failed"),
    _native(FAILURE, "nvcc fatal"),
    _native(FAILURE, "ptxas", r"\bptxas (?:fatal|error|\S+; error)"),
    _native(FAILURE, "LLVM ERROR"),
    _native(FAILURE, "CMake Error"),
    _native(FAILURE, "error: ", r"^\S{1,400}?[:(]\d+(?:[:,]\d+)?\)?: (?:fatal )?error: "),
    _native(FAILURE, "cannot find -l"),
    # warnings that people overlook
    _native(NOTICE, "is not compatible with the current PyTorch installation"),
    _native(NOTICE, "current PyTorch install supports"),
    _native(NOTICE, "driver on your system is too old"),
    _native(NOTICE, "was compiled without GPU support"),
    _native(NOTICE, "Could not find the bitsandbytes CUDA binary"),
    _native(NOTICE, "CUDA SETUP: ", r"CUDA SETUP: (?:WARNING|CUDA detection failed|Required library|Problem)"),
    _native(NOTICE, "can't load C++/CUDA extensions"),
    _native(NOTICE, "compiled using NumPy 1.x cannot be run"),
    _native(NOTICE, "Disabling PyTorch because"),
    _native(FAILURE, "rror", r"^(?:error(?:\[E\d+\])?|Error): (?!subprocess-exited|metadata-gen)\S"),
)
HINTS = tuple(dict.fromkeys(hint for _, hint, _ in _NATIVE))
_CHATTER = re.compile(r"NCCL INFO|^\s*File \"")

# a crash of the process: it ends whatever was being printed
_ABRUPT = (
    "Fatal Python error: ", "Segfault encountered", "terminate called", "(core dumped)", "ERROR: Could not find a version",
    "ERROR: No matching distribution", "ERROR: ResolutionImpossible", "error: subprocess-exited-with-error", "*** SIG",
)  # fmt: skip

# what people paste without any mark of an error; looked for only where nothing else was found
_PHRASES = re.compile(
    r"\b(?:error|fail(?:ed|ure|s)?|fatal|cannot|can't|could not|couldn't|unable to|refused|illegal|invalid|undefined|missing"
    r"|mismatch\w*|does not exist|not found|no such|not supported|unsupported|unavailable|not compatible|incompatib\w+"
    r"|too old|out of memory|requires?|required|only supports?|only compatible|killed|crash(?:ed|es)?|corrupt\w*|deprecated"
    r"|no module named|no attribute|unexpected keyword)\b",
    re.IGNORECASE,
)


def native_weight(line: str) -> int | None:
    """How a line without an exception class weighs (see above); ``None`` where it reports nothing."""
    if not any(hint in line for hint in HINTS):
        return None
    text = line.strip()
    if _CHATTER.search(text):
        return None
    for weight, hint, pattern in _NATIVE:
        if hint in text and (pattern is None or pattern.search(text)):
            return weight
    return None


def is_abrupt(line: str) -> bool:
    """Whether the line ends the message before it: the process crashed, or another tool began to speak."""
    return any(start in line for start in _ABRUPT)


def sounds_like_failure(line: str) -> bool:
    """Whether a line complains at all: the last resort, for a single pasted sentence."""
    return _PHRASES.search(line) is not None


# exceptions that pass on the failure of another process, by the last part of their class
_CONSEQUENCES = frozenset({
    "ActorDiedError", "BrokenPipeError", "BrokenProcessPool", "CalledProcessError", "CancelledError", "ChildFailedError",
    "ConnectionAbortedError", "ConnectionResetError", "ContextTerminated", "EngineDeadError", "EngineGenerateError",
    "ExceptionGroup", "BaseExceptionGroup", "IncompleteReadError", "MQEngineDeadError", "ProcessExitedException",
    "ProcessRaisedException", "RayActorError", "RayTaskError", "RemoteTraceback", "_RemoteTraceback", "TrialError",
    "TuneError", "WorkerCrashedError",
})  # fmt: skip
_INTERRUPTS = frozenset({"KeyboardInterrupt", "SystemExit", "SignalException", "GeneratorExit", "Exit"})
_PASSED_ON = re.compile(
    r"\ACaught \w+ in (?:replica|DataLoader worker|pin memory thread)"
    r"|Engine core initialization failed|Engine process failed to start|EngineCore encountered an issue"
    r"|(?i:(?:see|check|refer to) (?:the )?(?:\w+ )?(?:root cause|stack ?trace|error|logs?|traceback)s? (?:above|below|for))"
    r"|DataLoader worker \(pid.{0,40}\) (?:exited unexpectedly|is killed by signal)"
    r"|Watchdog caught collective operation timeout|Background loop (?:is not running|has errored already)"
    r"|unhandled system error|remote process exited|ncclRemoteError|Connection (?:closed|reset) by (?:remote )?peer|Broken pipe"
    r"|store->get\(.{0,80}\) got error|wait timeout after|Timed? ?out waiting for"
    r"|An error occurred while generating the dataset|look up to see its traceback"
)


def exception_weight(exception: str, message: str) -> int:
    """How an exception weighs: ``FAILURE`` unless it only passes on what happened elsewhere, or was a stop."""
    name = exception.partition("(")[0].rpartition(".")[2]
    if name in _INTERRUPTS:
        return INTERRUPTED
    if name in _CONSEQUENCES or _PASSED_ON.search(message[:2000]):
        return CONSEQUENCE
    return FAILURE


def passes_on(exception: str | None, message: str) -> bool:
    """Whether the traceback that follows this exception's message is the failure it passes on."""
    return exception is not None and exception_weight(exception, message) == CONSEQUENCE


# --- Which of a log's errors everything else follows from.


_VARYING = re.compile(r"0x[0-9a-f]+|\d+")


def decisive(errors: tuple[RaisedError, ...]) -> tuple[int, ...]:
    """The indices of the errors, the most decisive first; of errors that say the same (as several ranks do) only one.

    Failures come before warnings, these before what only follows from another failure (a watchdog, a launcher, a dead
    pipe), and stops come last; within each the one that came first, tracebacks before bare lines. An error stands
    behind the one that caused it, unless that one only passes on what happened elsewhere.
    """
    weights = [_weight(error) for error in errors]
    stands_for = _folded(errors)
    kept = sorted(
        set(stands_for), key=lambda i: (weights[i], not errors[i].frames and weights[i] == FAILURE, errors[i].line, i)
    )
    ordered: dict[int, None] = {}
    for index in kept:
        for one in reversed(_with_causes(index, errors, weights, stands_for)):
            ordered[one] = None
    return tuple(ordered)


def _with_causes(index: int, errors: tuple[RaisedError, ...], weights: list[int], stands_for: list[int]) -> list[int]:
    """The error, its cause, the cause's cause …, as far as each weighs at least as much as what it caused."""
    chain = [index]
    while (cause := errors[chain[-1]].cause) is not None and 0 <= cause < len(errors):
        cause = stands_for[cause]
        if cause in chain or weights[cause] > weights[chain[-1]]:
            break
        chain.append(cause)
    return chain


def _weight(error: RaisedError) -> int:
    if error.ignored:
        return INTERRUPTED
    if error.exception is not None:
        return exception_weight(error.exception, error.message)
    weight = native_weight(error.message.partition("\n")[0])
    return NOTICE if weight is None else weight


def _folded(errors: tuple[RaisedError, ...]) -> list[int]:
    """For each error the index of the one that stands for all that say the same: the first that has frames."""
    groups: dict[tuple[str | None, str], list[int]] = {}
    for index, error in enumerate(errors):
        groups.setdefault(_says(error, index), []).append(index)
    result = [0] * len(errors)
    for group in groups.values():
        chosen = next((i for i in group if errors[i].frames and not errors[i].ignored), group[0])
        for index in group:
            result[index] = chosen
    return result


def _says(error: RaisedError, index: int) -> tuple[str | None, str]:
    """Class without its module and message without its numbers; frames under no exception are like nothing else."""
    if error.exception is None and not error.message:
        return None, str(index)
    name = error.exception and error.exception.rpartition(".")[2]
    return name, _VARYING.sub("0", error.message.partition("\n")[0])
