"""Facts about the target given on the command line, merged over the facts that were read."""

from __future__ import annotations

from compat.errors import InputError
from compat.model import Accelerator, Environment, Finding, Workload, exit_code
from compat.records import replace
from compat.redact import excerpt
from compat.versions import key_of
from compat.workload.vocabulary import VOCABULARY, of_features, recognised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from compat.api.commands import Options


_WORDS = ("task", "trainer", "model", "launcher", "precision", "quantization")
_NUMBERS = ("processes", "batch-size")
_VERSIONS = {"driver": "driver", "cuda-toolkit": "cuda_toolkit", "python-version": "python", "glibc": "glibc"}


def apply_options(environment: Environment, options: Options, origin: str = "the command line") -> Environment:
    """The environment with the facts given in the options, which override those read. ``origin`` names their source."""
    changes: dict[str, Any] = {}
    for name, field in _VERSIONS.items():
        value = options.one(name)
        if value is not None:
            changes[field] = _version(name, value) if name != "python-version" else _python(value)
    for name in ("os", "machine"):
        if options.flag(name):
            changes[name] = options.one(name)
    if options.flag("gpu"):
        changes["accelerators"] = _accelerators(options.values["gpu"])
    workload = stated_workload(options, origin)
    if workload is not None:
        from compat.workload.launch import merge_workloads

        changes["workload"] = merge_workloads(workload, environment.workload or Workload())
    return replace(environment, **changes) if changes else environment


def stated_workload(options: Options, origin: str = "the command line") -> Workload | None:
    """The workload described by the options, ``None`` if they do not describe any."""
    values: dict[str, Any] = {name: _word(name, options.one(name) or "") for name in _WORDS if options.flag(name)}
    values.update({name.replace("-", "_"): _number(name, options.one(name) or "") for name in _NUMBERS if options.flag(name)})
    if options.flag("features"):
        values["features"] = tuple(_word("features", name) for name in options.all("features"))
        for key, word in of_features(values["features"]).items():
            values.setdefault(key, word)
    if options.flag("without"):
        values["features_absent"] = tuple(_word("features", name) for name in options.all("without"))
    if options.flag("script"):
        values["code"] = tuple(options.values["script"])
    if "task" in values and not options.flag("rules") and values["task"] not in _tasks():  # rules of a user may have their own
        known = ", ".join(VOCABULARY["task"])
        raise InputError(f"--task: unknown value {excerpt(values['task'], 40)!r}; expected {known}")
    both = set(values.get("features", ())) & set(values.get("features_absent", ()))
    if both:
        raise InputError(f"--features and --without both name {', '.join(sorted(both))}")
    if not values:
        return None
    workload = _worded(values, origin)
    return _with_code(workload) if workload.code else workload


def unread_code(options: Options) -> tuple[InputError, ...]:
    """What is wrong with the files of ``--script`` that cannot be read."""
    if not options.flag("script"):
        return ()
    from compat.checks.code import code_needs

    return code_needs(tuple(options.values["script"])).code.problems


def _worded(values: dict[str, Any], origin: str) -> Workload:
    named = {
        **dict.fromkeys(values, ""),
        **{f"features.{n}": "" for n in (*values.get("features", ()), *values.get("features_absent", ()))},
    }
    return Workload(**values, origins=dict.fromkeys(named, origin))


def _with_code(workload: Workload) -> Workload:
    """The workload merged with facts from its code, if that is a single script or notebook."""
    import os

    from compat.workload.launch import merge_workloads
    from compat.workload.script import read_script

    paths = workload.code or ()
    if len(paths) != 1 or not os.path.isfile(paths[0]):
        return workload
    try:
        told = read_script(paths[0]).workload
    except InputError:  # reported where the code itself is checked
        return workload
    return merge_workloads(workload, replace(told, script=paths[0]))


def command_of(
    environment: Environment, options: Options, variables: Mapping[str, str] | None = None
) -> tuple[Environment, tuple[str, ...]]:
    """The environment with facts from the command after ``--``, and notes about what could not be inferred from it.

    ``variables`` is the environment the command would be started with (default: that of this process).
    """
    if options.rest is None:
        return environment, ()
    import os

    from compat.workload.command import from_command
    from compat.workload.launch import merge_workloads
    from compat.workload.wrappers import program_name, unwrapped

    launch = from_command(options.rest, os.getcwd(), os.environ if variables is None else variables)
    known = environment.workload or Workload()
    merged = merge_workloads(launch.workload, known)
    if environment.started and (known.launcher or known.processes):  # the command line of a rank does not show its launcher
        origins = {key: each for key, each in known.origins.items() if key in ("launcher", "processes")}
        merged = replace(merged, launcher=known.launcher, processes=known.processes, origins={**merged.origins, **origins})
    if merged.code is None and launch.script is not None and os.path.isfile(launch.script):
        merged = replace(merged, code=(launch.script,))  # checked like --script
    words = unwrapped(options.rest, {})
    changes: dict[str, Any] = {"workload": replace(merged, program=program_name(words[0]) if words else None)}
    if launch.variables:
        changes["variables"] = {**(environment.variables or {}), **launch.variables}
    return replace(environment, **changes), launch.notes


def threshold_code(findings: tuple[Finding, ...], options: Options) -> int:
    """The exit code according to ``--fail-on``."""
    level = options.one("fail-on") or "error"
    if level == "possible":
        return int(any(finding.severity == "error" for finding in findings))
    return exit_code(findings, level)


def _accelerators(values: list[str]) -> tuple[Accelerator, ...]:
    found: list[Accelerator] = []
    for part in (part.strip() for value in values for part in value.split(",")):
        if part == "none":
            continue
        name, _, count = part.rpartition(":") if ":" in part else (part, "", "1")
        if name == "none":
            raise InputError("--gpu: 'none' takes no count")
        if not name.strip() or not count.isdecimal() or len(count) > 4 or not 0 < int(count) <= 4096:
            raise InputError(f"--gpu: expected NAME or NAME:COUNT, not {excerpt(part, 60)!r}")
        found += [_accelerator(name.strip())] * int(count)
    return tuple(found)


def _accelerator(name: str) -> Accelerator:
    """An accelerator by name or architecture; :class:`InputError` with the nearest known names if it is unknown."""
    lower = name.lower()
    if lower.startswith("sm_") and lower[3:].isdecimal() and len(lower) > 4:
        return Accelerator(vendor="nvidia", compute_capability=f"{lower[3:-1]}.{lower[-1]}")
    if lower.replace(".", "", 1).isdecimal() and "." in lower:
        return Accelerator(vendor="nvidia", compute_capability=lower)
    if lower.startswith("gfx") and lower[3:].isalnum():
        return Accelerator(vendor="amd", gfx=lower)
    from compat.machine.gpu_names import lookup, nearest
    from compat.tables.hardware import open_gpus

    table = open_gpus()
    match = lookup(table, name)
    if match.candidates:
        raise InputError(f"--gpu: {name!r} is ambiguous; pass one of {', '.join(match.candidates)}")
    if match.compute_capability is None and match.gfx is None and match.vendor in (None, "nvidia"):
        near = nearest(table, name)
        hint = f" (nearest: {', '.join(near)})" if near else ""
        raise InputError(f"--gpu: unknown GPU {name!r}{hint}; pass a compute capability such as 'sm_90' instead")
    return Accelerator(vendor=match.vendor, name=name, compute_capability=match.compute_capability,
                       memory_mib=match.memory_mib, gfx=match.gfx)  # fmt: skip


def _tasks() -> tuple[str, ...]:
    from compat.workload.trainers import TASKS

    return (*VOCABULARY["task"], *TASKS.values())


def _word(name: str, value: str) -> str:
    """Normalize spelling variants (``ZeRO-3``, ``zero3``); near misses raise :class:`InputError`, other words are kept."""
    if not value.strip():
        raise InputError(f"--{name}: expected a value, not an empty string")
    word, near = recognised(name, value)
    if near is not None:
        raise InputError(f"--{name}: unknown value {value!r}; did you mean {near}?")
    return word


def _version(name: str, value: str) -> str:
    try:
        key_of(value)
    except ValueError:
        raise InputError(f"--{name}: {value!r} is not a version") from None
    return value


_PYTHONS = ((2, 7, 7), (3, 4, 16))
"""Releases of Python: major, first and last minor version; the last one is in development."""


def _python(value: str) -> str:
    """A version of a Python that exists: the tables say nothing of others, and a typing error must not look like a result."""
    major, minor = (*key_of(_version("python-version", value))[1], 0)[:2]
    if not any(known == major and first <= minor <= last for known, first, last in _PYTHONS) and value != str(major):
        raise InputError(f"--python-version: unknown Python {value!r}; expected 2.7 or 3.4 to 3.16")
    return value


def _number(name: str, value: str) -> int:
    if not value.isascii() or not value.isdecimal() or len(value) > 9 or int(value) < 1:
        raise InputError(f"--{name}: expected a whole number of at least 1, not {value!r}")
    return int(value)
