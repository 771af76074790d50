"""``python -m scripts.surface.runtime_truth``: the tables against what Python says of the installed releases.

Every module of the packages is imported by the given interpreter, which reports the names of each module and the parameters
of each class and function (``inspect.signature``). The tables may call none of them absent or not accepted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from compat.interfaces.needs import Need, verdict_on
from compat.interfaces.world import World
from scripts.surface.opened import table_in
from scripts.surface.tables import FOLDER

_INSPECT = """
import importlib, inspect, json, os, pkgutil, sys, warnings
warnings.simplefilter("ignore")
output = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
def ignored(name): pass
def parameters(value):
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return []
    try:
        found = [each for each in inspect.signature(value).parameters.values() if each.kind in (1, 3)]
        return [each.name for each in found if "__" not in each.name]
    except Exception:
        return []
for package in sys.argv[1:]:
    top = importlib.import_module(package)
    names = [package]
    if hasattr(top, "__path__"):
        names += [each.name for each in pkgutil.walk_packages(top.__path__, package + ".", onerror=ignored)]
    for name in names:
        if any(part in ("__main__", "tests", "testing", "cli", "commands") for part in name.split(".")):
            continue
        try:
            module = importlib.import_module(name)
        except BaseException:
            continue
        for key, value in list(vars(module).items()):
            if key.startswith("_"):
                continue
            own = (inspect.isclass(value) or inspect.isfunction(value)) and getattr(value, "__module__", "") == name
            output.write(json.dumps([name, key, None, parameters(value) if own else []]) + "\\n")
            for member in dir(value) if own and inspect.isclass(value) else ():
                if not member.startswith("_"):
                    found = parameters(getattr(value, member, None))
                    output.write(json.dumps([name, key, member, found[1:]]) + "\\n")
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.runtime_truth", description=__doc__)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--python", required=True, metavar="FILE", help="an interpreter that has the packages")
    words = parser.parse_args(arguments)
    world = World(tuple(_installed(words.python)))
    counts: Counter[str] = Counter()
    for package in words.packages:
        for wrong in compared(world, words.python, package.replace("-", "_"), counts):
            print(wrong)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return int(counts["wrong"] > 0)


def _installed(python: str) -> Iterator[Any]:
    """Yield the tables' releases of what the interpreter has."""
    code = (
        "import importlib.metadata as m, json; print(json.dumps([(d.metadata['Name'], d.version) for d in m.distributions()]))"
    )
    found = json.loads(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout)
    for name, version in found:
        package = name.lower().replace("_", "-")
        table = table_in(FOLDER / f"{package}.bin")
        if table is not None and version in table.versions:
            yield table.surface(version)


def compared(world: World, python: str, top: str, counts: Counter[str]) -> Iterator[str]:
    """Yield what the tables deny and the interpreter has."""
    run = subprocess.run([python, "-c", _INSPECT, top], check=False, capture_output=True, text=True)
    for line in run.stdout.splitlines():
        module, name, member, parameters = json.loads(line)
        dotted = f"{module}.{name}"
        exists = Need("import", module, name) if member is None else Need("method", dotted, member)
        counts["names"] += 1
        found = verdict_on(world, exists)
        if found.met is False and found.kind == "name":
            counts["wrong"] += 1
            yield f"{dotted}{'' if member is None else f'.{member}'} exists"
        for parameter in parameters:
            counts["parameters"] += 1
            accepts = Need("call", dotted) if member is None else exists
            verdict = verdict_on(world, accepts._replace(keywords=(parameter,)))
            if verdict.met is False and verdict.missing == parameter:
                counts["wrong"] += 1
                yield f"{dotted}{'' if member is None else f'.{member}'}({parameter}=) is accepted"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
