"""Which module's import runs which: the graph over all packages, cut down to what leads to a row about an import."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable

from compat.interfaces.at_once import ENTRIES, SERVERS
from compat.interfaces.imports import Eager
from compat.interfaces.source.records import AVAILABLE, Import
from scripts.surface.collect import PACKAGE_OF, passed_over
from scripts.surface.mined import Mined
from scripts.surface.packages import tops_of

_SELDOM = re.compile(
    r"^(transformers\.models\.|diffusers\.(models|pipelines|modular_pipelines)\.|torch\.|torchvision\.|torchao\.prototype"
    r"|vllm\.(model_executor|models|v1|attention|distributed|compilation|platforms|lora|multimodal|entrypoints|transformers_utils"
    r"|tool_parsers|reasoning|kernels|renderers)\.|swift\.(megatron|template|model|dataset|ui)\.|deepspeed\.(ops|inference)\.)"
)
_STARTS = frozenset(entry for table in (ENTRIES, SERVERS) for entries in table.values() for entry in entries)
Asks = tuple[str, ...]
Edges = dict[tuple[str, str, Asks], int]
"""(from, to, what has to be installed) → the releases of the package that "from" is of. A node is ``module``, or
``module:name`` for what importing a name of it runs."""


def edges_of(mined: Mined, package: str) -> Edges:
    """The imports in a package's own modules that run when the module is imported."""
    found: Edges = defaultdict(int)
    own = frozenset(tops_of(package))
    for at, release in enumerate(mined.releases(package)):
        surface = mined.surface(release)
        eager = Eager(surface)
        for name in surface.names:
            module = surface.module(name) if not passed_over(name) and name.partition(".")[0] in own else None
            for each in module.imports if module is not None else ():
                if not each.flags & ~AVAILABLE:
                    for target in _targets(eager, each, package):
                        if target != name:
                            found[name, target, each.asks] |= 1 << at
    return dict(found)


def _targets(eager: Eager, imported: Import, package: str) -> Iterable[str]:
    of = PACKAGE_OF.get(imported.module.partition(".")[0])
    if of == package:
        return [target for target in eager.loaded(imported) if eager.holds(target) == "source"]
    if of is None:
        return ()
    return (node_of(imported.module, imported.name),)


def node_of(module: str, name: str | None) -> str:
    return f"{module}:{name}" if name and name != "*" else module


def entries_of(mined: Mined, package: str, nodes: Iterable[str]) -> Edges:
    """What importing a name from outside runs in each release."""
    found: Edges = defaultdict(int)
    wanted = [(node, *node.split(":")) for node in nodes if ":" in node]
    for at, release in enumerate(mined.releases(package)):
        surface = mined.surface(release)
        eager = Eager(surface)
        for node, module, name in wanted:
            for target in eager.loaded(Import(module, name, 0, 0)):
                if surface.holds(target) == "source":
                    found[node, target, ()] |= 1 << at
    return dict(found)


def leading_to(edges: dict[str, Edges], goals: Iterable[str]) -> set[str]:
    """The nodes from which a goal can be reached, in any release."""
    back: dict[str, set[str]] = defaultdict(set)
    for found in edges.values():
        for start, end, _ in found:
            back[end].add(start)
    return closure(goals, lambda node: back.get(node, ()))


def closure(starts: Iterable[str], after: Callable[[str], Iterable[str]]) -> set[str]:
    """These names, those that ``after`` returns for them, and so on."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += after(name)
    return found


def public_nodes(mined: Mined, package: str) -> set[str]:
    """The names that a package loads from its modules only when they are used: code imports any of them."""
    found = set()
    for release in mined.releases(package):
        surface = mined.surface(release)
        for top in tops_of(package):
            record = surface.module(top) if surface.holds(top) == "source" else None
            found |= {node_of(top, name) for name in record.lazy} if record is not None else set()
    return found


def shortened(edges: Edges, goals: Container[str]) -> Edges:
    """The edges worth shipping: without the modules that are thousands and that only their own package imports.

    What is imported through them is kept as an edge of its own, as far as it is a goal, or goes on from there.
    """
    through: dict[str, list[tuple[str, Asks, int]]] = defaultdict(list)
    for (start, end, asks), mask in edges.items():
        through[start].append((end, asks, mask))
    found: Edges = defaultdict(int)
    for start in through:
        if _is_seldom(start):
            continue
        seen: Edges = defaultdict(int)
        waiting: list[tuple[str, Asks, int]] = [(start, (), -1)]
        while waiting:
            node, asks, mask = waiting.pop()
            for end, more, when in through[node]:
                edge = start, end, asks if set(more) <= set(asks) else tuple(sorted({*asks, *more}))
                new = mask & when & ~seen[edge] & ~seen[start, end, ()]
                if not new or end == start:
                    continue
                seen[edge] |= new
                if _is_seldom(end) and end in through:
                    waiting.append((end, edge[2], new))
                if not _is_seldom(end) or end in goals:
                    found[edge] |= new
    return dict(found)


def _is_seldom(node: str) -> bool:
    return node not in _STARTS and _SELDOM.search(node) is not None
