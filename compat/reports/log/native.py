"""Weights of errors: lines that report a failure without a Python exception, and exceptions that re-raise another failure.

``FAILURE`` is a failure itself, ``NOTICE`` a warning that often names the cause of a later failure, ``CONSEQUENCE`` a failure
that follows from another one (of a watchdog, a launcher, a broken pipe), ``INTERRUPTED`` a stop.
"""

from __future__ import annotations

import re

from compat.reports.log.frames import RaisedError
from compat.reports.words import is_absent

FAILURE, NOTICE, CONSEQUENCE, INTERRUPTED = 0, 1, 2, 3


class _Native:
    """A kind of line: its weight, a text it contains, and an optional pattern it must also match."""

    def __init__(self, weight: int, hint: str, pattern: str = "") -> None:
        self.weight = weight
        self.hint = hint
        self.pattern = re.compile(pattern) if pattern else None


_NATIVE = (
    # consequences first: such a line often quotes the failure it follows from
    _Native(CONSEQUENCE, "Watchdog caught collective operation timeout"),
    _Native(CONSEQUENCE, "(exitcode: -", r"failed \(exitcode: -\d+\)"),
    _Native(CONSEQUENCE, "died with <Signals."),
    _Native(
        CONSEQUENCE, "(core dumped)", r"\b(?:Aborted|Segmentation fault|Bus error|Illegal instruction|Floating point exc\w*)"
    ),
    _Native(CONSEQUENCE, "Killed", r"^(?:Killed|\S+: line \d+: +\d+ Killed\b.*)$"),
    _Native(CONSEQUENCE, "Aborted", r"^Aborted!?$"),
    _Native(CONSEQUENCE, "Segmentation fault", r"^Segmentation fault$"),
    _Native(CONSEQUENCE, "ncclRemoteError"),
    _Native(CONSEQUENCE, "ninja: build stopped"),
    _Native(CONSEQUENCE, "error: subprocess-exited-with-error"),
    _Native(CONSEQUENCE, "error: metadata-generation-failed"),
    _Native(CONSEQUENCE, "did not run successfully", r"^\s*[×x] .* did not run successfully"),
    _Native(CONSEQUENCE, "Could not build wheels for"),
    _Native(CONSEQUENCE, "Failed building wheel for"),
    _Native(CONSEQUENCE, "Failed to build ", r"^(?:ERROR: )?(?:[×x] )?Failed to build "),
    # the loader
    _Native(FAILURE, "undefined symbol: "),
    _Native(FAILURE, "symbol lookup error"),
    _Native(FAILURE, "cannot open shared object file"),
    _Native(FAILURE, "' not found", r"version [`'](?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found"),
    _Native(FAILURE, "DLL load failed"),
    _Native(FAILURE, "Failed to load dynamic shared library"),
    _Native(FAILURE, "error: unrecognized arguments: "),
    # the device
    _Native(FAILURE, "no kernel image is available"),
    _Native(FAILURE, "CUDA error", r"CUDA error(?::| \d| \()"),
    _Native(FAILURE, "HIP error:"),
    _Native(FAILURE, "cudaError", r"\bcudaError[A-Z]\w+"),
    _Native(FAILURE, "hipError", r"\bhipError[A-Z]\w+"),
    _Native(FAILURE, "Cuda failure"),
    _Native(FAILURE, "CUDA out of memory"),
    _Native(FAILURE, "_STATUS_", r"\bCU(?:DNN|BLAS|SPARSE|SOLVER)_STATUS_(?!SUCCESS)"),
    _Native(FAILURE, "cuDNN version incompatibility"),
    _Native(FAILURE, "failed.", r"Assertion [`'].+[`'] failed\."),
    _Native(FAILURE, "NVML", r"Failed to initialize NVML"),
    _Native(FAILURE, "ncclUnhandledCudaError"),
    _Native(FAILURE, "ncclInternalError"),
    _Native(FAILURE, "ncclSystemError"),
    _Native(FAILURE, "ncclInvalidUsage"),
    _Native(FAILURE, "NCCL error"),
    _Native(NOTICE, "NCCL WARN"),
    # the process
    _Native(FAILURE, "Fatal Python error: "),
    _Native(FAILURE, "Segfault encountered"),
    _Native(FAILURE, "terminate called"),
    _Native(FAILURE, "*** SIG", r"\*\*\* SIG[A-Z]+ "),
    _Native(FAILURE, "invalid pointer", r"^(?:free|munmap_chunk|realloc)\(\): invalid pointer"),
    _Native(FAILURE, "malloc(): ", r"^malloc\(\): "),
    _Native(FAILURE, "double free or corruption"),
    _Native(FAILURE, "Out of memory: Killed process"),
    _Native(FAILURE, "kill event", r"oom[-_]kill event"),
    _Native(FAILURE, "while importing ", r"(?i:exception|error|failed)\b.{0,40} while importing \w+: "),
    # a shell, or what starts programs
    _Native(FAILURE, "not found", r"(?:^|: |/)[\w.+-]+: (?:command )?not found$|\bcommand not found: [\w.+-]+$"),
    _Native(FAILURE, "is not recognized as ", r"is not recognized as (?:an internal|the name of a cmdlet)"),
    _Native(FAILURE, "executable file not found in "),
    _Native(FAILURE, "unable to execute '"),
    # installers and compilers
    _Native(FAILURE, "Could not find a version that satisfies"),
    _Native(FAILURE, "No matching distribution found for"),
    _Native(FAILURE, "ResolutionImpossible"),
    _Native(FAILURE, "have conflicting dependencies", r"^ERROR: "),
    _Native(FAILURE, "No solution found when resolving"),
    _Native(NOTICE, "which is incompatible.", r"requires .+, but you have "),
    _Native(NOTICE, " has requirement ", r"has requirement .+, but you(?:'ll)? have "),
    _Native(FAILURE, "error: command ", r"error: command .+ failed"),
    _Native(FAILURE, "nvcc fatal"),
    _Native(FAILURE, "ptxas", r"\bptxas (?:fatal|error|\S+; error)"),
    _Native(FAILURE, "LLVM ERROR"),
    _Native(FAILURE, "CMake Error"),
    _Native(FAILURE, "error: ", r"^\S{1,400}?[:(]\d+(?:[:,]\d+)?\)?: (?:fatal )?error: "),
    _Native(FAILURE, "cannot find -l"),
    _Native(FAILURE, "unsupported Microsoft Visual Studio version"),
    _Native(FAILURE, "Killed signal terminated program"),
    # containers and file formats
    _Native(FAILURE, "unsatisfied condition: "),
    _Native(FAILURE, "requirements not met:"),
    _Native(FAILURE, "built for NVIDIA Driver Release "),
    _Native(FAILURE, "not compatible with this version of TensorRT"),
    _Native(FAILURE, "unknown model architecture: "),
    # warnings that are easily overlooked
    _Native(NOTICE, "is not compatible with the current PyTorch installation"),
    _Native(NOTICE, "current PyTorch install supports"),
    _Native(NOTICE, "driver on your system is too old"),
    _Native(NOTICE, "was compiled without GPU support"),
    _Native(NOTICE, "Could not find the bitsandbytes CUDA binary"),
    _Native(NOTICE, "CUDA SETUP: ", r"CUDA SETUP: (?:WARNING|CUDA detection failed|Required library|Problem)"),
    _Native(NOTICE, "can't load C++/CUDA extensions"),
    _Native(NOTICE, "compiled using NumPy 1.x cannot be run"),
    _Native(NOTICE, "Disabling PyTorch because"),
    _Native(FAILURE, "rror", r"^(?:error(?:\[E\d+\])?|Error): (?!subprocess-exited|metadata-gen)\S"),
)
HINTS = tuple(dict.fromkeys(each.hint for each in _NATIVE))
_CHATTER = re.compile(r"NCCL INFO|^\s*File \"")

# lines that end the message before them: the process crashed, or another tool prints
_ABRUPT = (
    "Fatal Python error: ", "Segfault encountered", "terminate called", "(core dumped)", "ERROR: Could not find a version",
    "ERROR: No matching distribution", "ERROR: ResolutionImpossible", "error: subprocess-exited-with-error", "*** SIG",
)  # fmt: skip

# complaints without any marker of an error; searched only if nothing else was found
_PHRASES = re.compile(
    r"\b(?:error|fail(?:ed|ure|s)?|fatal|cannot|can't|could not|couldn't|unable to|refused|illegal|invalid|undefined|missing"
    r"|mismatch\w*|does not exist|not found|no such|not supported|unsupported|unavailable|not compatible|incompatib\w+"
    r"|too old|out of memory|requires?|required|only supports?|only compatible|killed|crash(?:ed|es)?|corrupt\w*|deprecated"
    r"|no module named|no attribute|unexpected keyword|must (?:be|have|match))\b",
    re.IGNORECASE,
)


def native_weight(line: str) -> int | None:
    """Return the weight of a line without an exception class; ``None`` if it reports no failure."""
    if not any(hint in line for hint in HINTS):
        return None
    text = line.strip()
    if _CHATTER.search(text):
        return None
    for each in _NATIVE:
        if each.hint in text and (each.pattern is None or each.pattern.search(text)):
            return each.weight
    return None


def is_abrupt(line: str) -> bool:
    """Whether the line ends the preceding message."""
    return any(start in line for start in _ABRUPT)


def sounds_like_failure(line: str) -> bool:
    """Whether a line reports a problem at all; used for text without any recognizable error."""
    return _PHRASES.search(line) is not None and not _describes(line.strip())


def _describes(line: str) -> bool:
    """Whether a line is part of a description of the machine or of a package: what it lacks is not an error."""
    if line.startswith("|") and line.endswith("|"):  # nvidia-smi
        return True
    name, colon, value = line.partition(":")
    if name in ("Requires", "Required-by"):  # pip show
        return True
    named = name.startswith(("- ", "* ")) or " " in name.rstrip()  # "nvcc: not found" is what a shell says
    return bool(colon) and named and is_absent(value) and _PHRASES.search(name) is None


# exceptions that re-raise the failure of another process, without their modules
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
    r"|\A\w{1,60}(?:Failed|Error|Exception)\.__init__\(\) missing \d{1,2} required positional"
)


def exception_weight(exception: str, message: str) -> int:
    """Return the weight of an exception: ``FAILURE``, unless it re-raises another failure or is an interruption."""
    name = exception.partition("(")[0].rpartition(".")[2]
    if name in _INTERRUPTS:
        return INTERRUPTED
    if name in _CONSEQUENCES or _PASSED_ON.search(message[:2000]):
        return CONSEQUENCE
    return FAILURE


def passes_on(exception: str | None, message: str) -> bool:
    """Whether an exception only re-raises another failure, whose traceback may follow in its message."""
    return exception is not None and exception_weight(exception, message) == CONSEQUENCE


# --- Ranking the errors of a log


VARYING = re.compile(r"0x[0-9a-f]+|\d+")
"""What differs between the messages of two ranks."""


def decisive(errors: tuple[RaisedError, ...]) -> tuple[int, ...]:
    """Return the indices of the errors, most decisive first; of equal ones (as of several ranks) only one.

    Failures come before notices, these before consequences, and stops come last; within each the earlier one comes first,
    tracebacks before bare lines. An error comes after its cause, unless that cause weighs less.
    """
    weights = [_weight(error) for error in errors]
    stands_for = _representatives(errors)
    kept = sorted(
        set(stands_for), key=lambda i: (weights[i], not errors[i].frames and weights[i] == FAILURE, errors[i].line, i)
    )
    ordered: dict[int, None] = {}
    for index in kept:
        # the error and its chain of causes, up to the first cause that weighs less than the error it caused
        chain = [index]
        while (cause := errors[chain[-1]].cause) is not None and 0 <= cause < len(errors):
            cause = stands_for[cause]
            if cause in chain or weights[cause] > weights[chain[-1]]:
                break
            chain.append(cause)
        for one in reversed(chain):
            ordered[one] = None
    return tuple(ordered)


def _weight(error: RaisedError) -> int:
    if error.ignored:
        return INTERRUPTED
    if error.exception is not None:
        weight = exception_weight(error.exception, error.message)
        return max(weight, NOTICE) if error.warned else weight
    known = native_weight(error.message.partition("\n")[0])
    return NOTICE if known is None else max(known, NOTICE) if error.warned else known


def _representatives(errors: tuple[RaisedError, ...]) -> list[int]:
    """Return for each error the index of the first equal one that has frames, else of the first equal one."""
    groups: dict[tuple[str | None, str], list[int]] = {}
    for index, error in enumerate(errors):
        groups.setdefault(_kind(error, index), []).append(index)
    result = [0] * len(errors)
    for group in groups.values():
        chosen = next((i for i in group if errors[i].frames and not errors[i].ignored), group[0])
        for index in group:
            result[index] = chosen
    return result


def _kind(error: RaisedError, index: int) -> tuple[str | None, str]:
    """Return the key of equal errors: class without module, message without numbers; bare frames are unique."""
    if error.exception is None and not error.message:
        return None, str(index)
    name = error.exception and error.exception.rpartition(".")[2]
    return name, VARYING.sub("0", error.message.partition("\n")[0])
