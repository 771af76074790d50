"""Which of a log's errors everything else follows from."""

from __future__ import annotations

import re

from compat.read.log.native_errors import FAILURE, INTERRUPTED, NOTICE, exception_weight, native_weight
from compat.read.log.traceback_frames import RaisedError

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
