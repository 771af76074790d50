"""``compat init``: add a ``[[tool.compat.target]]`` to pyproject.toml, from this machine and the options."""

from __future__ import annotations

import os
from typing import Any

from compat.api.commands import Options
from compat.api.targets import apply_options, command_of
from compat.checks import named_devices
from compat.errors import InputError
from compat.model import Environment
from compat.output.stream import emit
from compat.records import replace
from compat.rules.compiled import open_matrix

_FILE = "pyproject.toml"


def run(options: Options) -> int:
    """Add one target and show the change; an existing target of that name is left alone (exit code 2)."""
    from compat.api.machine import read_machine

    path = options.operands[0] if options.operands else _FILE
    machine = read_machine(None, open_matrix())
    environment, _ = command_of(machine.environment, options)
    environment, _ = named_devices(apply_options(_elsewhere(environment) if options.flag("gpu") else environment, options))
    table = _target(options.one("target") or "this-machine", environment)
    if options.flag("print"):
        emit(_alone(table))
        return 0
    before, document = _document(path)
    _add(document, table, path)
    after = document.as_string()
    from compat.formats.edit.files import difference, replace_file

    emit(difference(before, after, path))
    replace_file(path, after)
    return 0


def _elsewhere(environment: Environment) -> Environment:
    """Return the environment without facts about this machine: GPUs given by option belong to another machine."""
    return replace(environment, os=None, machine=None, platform=None, glibc=None, driver=None, cuda_toolkit=None)


def _document(path: str) -> tuple[str, Any]:
    import tomlkit

    if not os.path.lexists(path):
        return "", tomlkit.document()
    from compat.syntax.toml import parse_toml

    text, _ = parse_toml(path)  # a single place reports problems with a file
    return text, tomlkit.parse(text)


def _target(name: str, environment: Environment) -> dict[str, object]:
    """Return the known target keys, spelled as on the command line."""
    found: dict[str, object] = {"name": name}
    if environment.accelerators is not None:
        names = [each.name or each.compute_capability or each.gfx or "GPU" for each in environment.accelerators]
        counted = [f"{each}:{names.count(each)}" for each in dict.fromkeys(names)] or ["none"]
        found["gpus"] = counted[0] if len(counted) == 1 else counted
    for key in ("driver", "cuda_toolkit", "python", "os", "machine", "glibc"):
        value = getattr(environment, key)
        if value is not None:
            found[key.replace("_", "-")] = value
    work = environment.workload
    for key in ("task", "trainer", "model", "launcher", "processes", "batch_size", "precision", "quantization", "features"):
        value = getattr(work, key) if work else None
        if value:
            found[key.replace("_", "-")] = list(value) if isinstance(value, tuple) else value
    return found


def _alone(table: dict[str, object]) -> str:
    import tomlkit

    document = tomlkit.document()
    _add(document, table, _FILE)
    return document.as_string().rstrip("\n")


def _add(document: Any, table: dict[str, Any], path: str) -> None:
    """Append ``[[tool.compat.target]]`` and preserve the rest of the file."""
    import tomlkit

    tool = document.setdefault("tool", tomlkit.table(is_super_table=True))
    if not hasattr(tool, "setdefault"):
        raise InputError("expected [tool] to be a table", path)
    compat = tool.setdefault("compat", tomlkit.table(is_super_table=True))
    targets = compat.setdefault("target", tomlkit.aot()) if hasattr(compat, "setdefault") else None
    if not isinstance(targets, list):
        raise InputError("expected [[tool.compat.target]] tables", path)
    if any(each.get("name") == table["name"] for each in targets):
        raise InputError(f"already has a target {table['name']!r}; --target gives this one another name", path)
    added = tomlkit.table()
    for key, value in table.items():
        added[key] = value
    targets.append(added)
