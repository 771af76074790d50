"""Batches of GRPO and RLOO that cannot be divided into groups of completions, in the releases of trl that ask for it.

Each prompt is sampled ``num_generations`` times, and the completions of a batch are grouped by prompt. What has to be divisible
differs between the releases: the batch of one step of all processes, or all steps until the next generation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.model import Finding, Fix, Location
from compat.versions import is_version, key_of
from compat.workload.draft import parse_count
from compat.workload.launch import COMMAND
from compat.workload.script import tree_of
from compat.workload.script_names import Names, visits

if TYPE_CHECKING:
    from compat.rules.facts import Facts


_CONFIGS = {"GRPOConfig": ("0.15.0", 8), "RLOOConfig": ("0.22.0", 2)}
"""The configurations, the first release of trl that checks the batch, and the default of ``num_generations``."""
_OF_TASKS = {"grpo": "GRPOConfig", "rloo": "RLOOConfig"}
_ACCUMULATED, _SEVERAL_STEPS = key_of("0.17.0"), key_of("0.18.0")
"""The releases since which the steps of gradient accumulation count, and since which the number of steps can be set."""
_BATCH, _STEPS, _GROUP = "per_device_train_batch_size", "gradient_accumulation_steps", "num_generations"
_PER_GENERATION, _WHOLE = "steps_per_generation", "generation_batch_size"
_NAMES = (_BATCH, _STEPS, _GROUP, _PER_GENERATION, _WHOLE)
_DEFAULT_BATCH = 8
_EVIDENCE = "https://huggingface.co/docs/trl/main/en/grpo_trainer"


def judge(facts: Facts) -> Iterator[Finding]:
    """Yield an error if all numbers are known, from the configuration in the script or the options, and do not divide."""
    work = facts.workload
    processes, config = work.processes, _OF_TASKS.get(work.task or "")
    installed = facts.package("trl")
    version = installed[0].version if isinstance(installed, list) and len(installed) == 1 else None
    if config is None or not processes or version is None or not is_version(version):
        return
    since, default = _CONFIGS[config]
    if key_of(version) < key_of(since):
        return
    found = _numbers(facts, config)
    if found is None:
        return
    numbers, place, line = found
    group = numbers.get(_GROUP, default)
    size, factors = _size(numbers, processes, version)
    if group is None or size is None or group < 2 or size % group == 0:
        return
    yield Finding(
        rule="launch-grpo-batch-not-divisible", origin="surface",
        title=f"A batch of {size} completions cannot be divided into groups of {group} (num_generations)",
        why=f"trl {version} refuses to start: ValueError. The batch is {factors}.",
        packages={"trl": version}, facts=("workload",),
        fixes=tuple(_fixes(numbers, processes, version, size, group)), evidence=(_EVIDENCE,),
        here=f"trl {version}, {processes} process{'es' if processes > 1 else ''}, {_GROUP} {group}"
        + ("" if _GROUP in numbers else " (the default)"),
        location=Location(place, line) if line is not None else None,
    )  # fmt: skip


def _numbers(facts: Facts, config: str) -> tuple[Mapping[str, int | None], str, int | None] | None:
    """Return the stated numbers, each ``None`` if it is only known at run time, and where; ``None`` if not all are known."""
    work = facts.workload
    stated: dict[str, int | None] = {}
    place, line = "", None
    for path in work.code or ():
        calls = _calls(path, config)
        if calls is None or len(calls) + bool(place) > 1:
            return None
        for numbers, number in calls:
            stated, place, line = numbers, path, None if path.endswith(".ipynb") else number
    given = [option for option in work.options or () if option.name.lstrip("-").replace("-", "_") in _NAMES]
    for option in sorted(given, key=lambda each: each.place == COMMAND):  # the command line overrides a file
        count = parse_count(option.value)
        stated[option.name.lstrip("-").replace("-", "_")] = count if isinstance(count, int) else None
    if not place and not (given and any(option.parser.startswith("trl ") for option in given)):
        return None  # a script may get its numbers from anywhere
    return stated, place, line


def _calls(path: str, config: str) -> list[tuple[dict[str, int | None], int]] | None:
    """Return the numbers in each call of a configuration that certainly runs; ``None`` if there are others."""
    try:
        tree = tree_of(path)
    except (InputError, OSError, RecursionError):
        return None
    names = Names(tree)
    found = []
    for visit in visits(tree, names.test):
        if isinstance(visit.node, ast.Attribute) and isinstance(visit.node.ctx, ast.Store) and visit.node.attr in _NAMES:
            return None  # set afterwards
        dotted = names.dotted(visit.node.func) if isinstance(visit.node, ast.Call) else None
        if not isinstance(visit.node, ast.Call) or dotted is None or not _is_of_trl(dotted, config):
            continue
        if visit.conditional or any(each.arg is None for each in visit.node.keywords):
            return None
        given = names.keywords(visit.node, visit.scope)
        numbers: dict[str, int | None] = {}
        for name in _NAMES:
            if name in given and given[name] is not None:
                count = parse_count(given[name])
                numbers[name] = count if isinstance(count, int) else None
        found.append((numbers, visit.node.lineno))
    return found


def _is_of_trl(dotted: str, config: str) -> bool:
    return dotted.startswith("trl.") and dotted.endswith(f".{config}")


def _size(numbers: Mapping[str, int | None], processes: int, version: str) -> tuple[int | None, str]:
    """Return the size of the batch that is divided, with its factors as text; ``None`` if one of them is unknown."""
    key = key_of(version)
    whole = numbers.get(_WHOLE, 0) if key >= _SEVERAL_STEPS else 0
    if whole != 0:
        return whole, _WHOLE
    batch, steps = numbers.get(_BATCH, _DEFAULT_BATCH), 1
    factors = f"{_BATCH} {batch} × {processes} process{'es' if processes > 1 else ''}"
    if key >= _ACCUMULATED:
        name = _PER_GENERATION if _PER_GENERATION in numbers and key >= _SEVERAL_STEPS else _STEPS
        stated = numbers.get(name, 1)
        if stated is None:
            return None, ""
        steps, factors = stated, f"{factors} × {name} {stated}"
    return (None, "") if batch is None else (batch * processes * steps, factors)


def _fixes(numbers: Mapping[str, int | None], processes: int, version: str, size: int, group: int) -> Iterator[Fix]:
    """Yield the nearest larger batch that divides, and the sizes of groups that divide this batch."""
    if _WHOLE not in numbers:
        batch = numbers.get(_BATCH, _DEFAULT_BATCH) or 1
        larger = next(
            each for each in range(batch + 1, batch + group + 1)
            if (_size({**numbers, _BATCH: each}, processes, version)[0] or 0) % group == 0
        )  # fmt: skip
        yield Fix("config", text=f"{_BATCH}={larger}")
        if key_of(version) >= _ACCUMULATED and _PER_GENERATION not in numbers:
            steps = numbers.get(_STEPS, 1) or 1
            more = next(
                (
                    each for each in range(steps + 1, steps + group + 1)
                    if (_size({**numbers, _STEPS: each}, processes, version)[0] or 0) % group == 0
                ), None,
            )  # fmt: skip
            if more is not None:
                yield Fix("config", text=f"{_STEPS}={more}, which needs no more memory")
    smaller = [str(each) for each in range(2, min(size, 64) + 1) if size % each == 0]
    if smaller:
        yield Fix("config", text=f"{_GROUP} as one of {', '.join(smaller)}")
