"""The nodes of a fleet and their properties that matter to a job: the values of each, and the hosts that have them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from compat.checks.torch_build import label_of, public_version, stack_of
from compat.machine.node import Node
from compat.model import Environment
from compat.records import record
from compat.rules.facts import Facts, visible
from compat.tables.builds import open_code_tables

_SKEW = 900.0
"""Allowed clock skew from the median, in seconds. Kerberos rejects tickets from 300 s, but gathering itself takes minutes."""
_SKEW_WITHIN = 60.0
"""Allowed clock skew in seconds if the time at which the nodes were read is known."""
NCCL = ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11", "nvidia-nccl")


@record(frozen=True)
class Group:
    """Nodes with identical environments."""

    environment: Environment
    nodes: tuple[Node, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(node.host for node in self.nodes)


@record(frozen=True)
class Value:
    """One value of a property that should be the same on all nodes, and the hosts that have it."""

    text: str
    hosts: tuple[str, ...]


class Nodes:
    """The values of a property on all nodes: those that are known, most common first."""

    def __init__(self, groups: Sequence[Group], window: tuple[float, float] | None = None) -> None:
        self.groups = groups
        self.window = window
        self._with_gpus: Nodes | None = None
        self._hosts = [group.hosts for group in groups]
        self._installed = [{each.name: each.version for each in group.environment.distributions or ()} for group in groups]

    def with_gpus(self) -> Nodes:
        """The nodes that GPUs are expected on: those that have some, or all if none has."""
        if self._with_gpus is None:
            groups = [group for group in self.groups if not without_gpus(group)]
            same = not groups or len(groups) == len(self.groups)
            self._with_gpus = self if same else Nodes(groups, self.window)
        return self._with_gpus

    def of_environments(self, key: Callable[[Environment], str | None]) -> list[Value]:
        return values_of((key(group.environment), hosts) for group, hosts in zip(self.groups, self._hosts))

    def of_nodes(self, key: Callable[[Node], str | None]) -> list[Value]:
        return values_of((key(node), (node.host,)) for group in self.groups for node in group.nodes)

    def versions(self, *names: str) -> list[Value]:
        """The version of the first of these packages that is installed; "absent" if a complete list has none."""

        def version(group: Group, installed: Mapping[str, str | None]) -> str | None:
            found = next((installed[name] for name in names if installed.get(name)), None)
            return found or ("absent" if group.environment.distributions_complete else None)

        return values_of(
            (version(group, installed), hosts) for group, hosts, installed in zip(self.groups, self._hosts, self._installed)
        )


def values_of(pairs: Iterable[tuple[str | None, tuple[str, ...]]]) -> list[Value]:
    """The known values with their hosts, most common first."""
    hosts: dict[str, list[str]] = {}
    for text, names in pairs:
        if text is not None:
            hosts.setdefault(text, []).extend(names)
    return sorted((Value(text, tuple(names)) for text, names in hosts.items()), key=lambda value: -len(value.hosts))


# --- The properties.


def minor(version: str | None) -> str | None:
    return version and ".".join(version.split(".")[:2])


def drivers(nodes: Nodes, *, of_one_branch: bool) -> list[Value]:
    found = nodes.of_environments(lambda environment: environment.driver)
    return found if (len({value.text.partition(".")[0] for value in found}) == 1) == of_one_branch else []


def _torch(environment: Environment) -> str | None:
    """The release of torch and the CUDA of its build, if that is known: the default build of an index has no label."""
    copies = [each for each in environment.distributions or () if each.name == "torch"]
    if not copies:
        return "absent" if environment.distributions_complete else None
    version = copies[0].version
    if version is None:
        return None
    cuda = stack_of(Facts(environment), open_code_tables()).flavour.cuda
    label = label_of(cuda) if cuda and cuda[0].isdecimal() else cuda
    return f"{public_version(version)}+{label}" if label else version


def torches(nodes: Nodes) -> list[Value]:
    """The builds of torch on nodes with GPUs; if they are the same, the releases on all nodes."""
    builds = nodes.with_gpus().of_environments(_torch)
    return (
        builds
        if len(builds) > 1
        else values_of((public_version(each.text), each.hosts) for each in nodes.of_environments(_torch))
    )


def without_gpus(group: Group) -> bool:
    """Whether these are nodes without NVIDIA hardware, such as a login node or the head of a cluster.

    A driver, or a container that may not have been given its GPUs, says that there should be some.
    """
    here = group.environment
    outside = all(node.container == "" for node in group.nodes)
    return here.accelerators == () and here.driver is None and here.driver_state is None and outside


def gpu_count(environment: Environment) -> str | None:
    count = visible(environment).accelerators
    return None if count is None else f"{len(count)} GPU{'' if len(count) == 1 else 's'}"


def gpu_kinds(environment: Environment) -> str | None:
    """The distinct GPU models of a node as text; MIG instances are named by their profile and differ from whole GPUs."""
    names = {
        each.name or each.compute_capability or each.gfx or each.vendor or "GPU" for each in environment.accelerators or ()
    }
    return " + ".join(sorted(names)) or None


def toolkit(environment: Environment) -> str | None:
    return minor(environment.cuda_toolkit)


def setting(name: str) -> Callable[[Environment], str | None]:
    def setting(environment: Environment) -> str | None:
        if environment.variables is None:
            return None
        value = environment.variables.get(name)
        return "not set" if value is None else f"{name}={value}"

    return setting


def nccl(nodes: Nodes) -> list[Value]:
    """The releases of NCCL's package; a build of torch that brings its own has none."""
    return values_of((minor(each.text), each.hosts) for each in nodes.versions(*NCCL) if each.text != "absent")


def missing_interfaces(nodes: Nodes, variable: str) -> list[Value]:
    """The nodes without an interface that the variable names: a prefix for NCCL, a whole name for Gloo."""
    missing = []
    for group in nodes.groups:
        chosen = (group.environment.variables or {}).get(variable) or ""
        for node in group.nodes if chosen and chosen[0] != "^" else ():
            exact, names = chosen[0] == "=" or variable[0] == "G", [part for part in chosen.lstrip("=").split(",") if part]
            have = [each.name for each in node.interfaces or ()]
            if node.interfaces is not None and not any(
                each == name if exact else each.startswith(name) for name in names for each in have
            ):
                missing.append((f"{variable}={chosen}, there is {', '.join(have) or 'none'}", (node.host,)))
    return values_of(missing)


def speed(node: Node) -> str | None:
    """The speed of the fastest link of a node; ``None`` if the kernel reports no speed."""
    speeds = [each.speed for each in node.interfaces or () if each.speed and each.kind in ("ethernet", "infiniband")]
    return f"{max(speeds) / 1000:g} Gbit/s" if speeds else None


def rdma_ports(node: Node) -> str | None:
    if node.rdma is None:
        return None
    up = sorted(each.link + (f" {each.rate}" if each.rate else "") for each in node.rdma if each.active)
    return ", ".join(f"{up.count(text)} × {text}" for text in dict.fromkeys(up)) or "none"


def limited_memory(node: Node) -> str | None:
    limited = node.memlock is not None and node.memlock >= 0 and rdma_ports(node) not in (None, "none")
    return f"{(node.memlock or 0) // 1024} KiB" if limited else None


def containers(nodes: Nodes) -> list[Value]:
    return [Value(each.text or "no container", each.hosts) for each in nodes.of_nodes(lambda node: node.container)]


def hugepages(node: Node) -> str | None:
    return None if node.hugepages is None else f"{node.hugepages} huge pages"


def files(nodes: Nodes) -> list[Value]:
    """The digests of the installed files, of those nodes on which the same releases are installed with different files."""
    alike: dict[object, list[tuple[str | None, tuple[str, ...]]]] = {}
    for group in nodes.groups:
        installed = tuple((each.name, each.version) for each in group.environment.distributions or ())
        alike.setdefault((installed, group.environment.python, group.environment.machine), []).extend(
            (node.files, (node.host,)) for node in group.nodes
        )
    apart = [found for found in map(values_of, alike.values()) if len(found) > 1]
    return [Value(f"files {value.text[:8]}", value.hosts) for found in apart for value in found]


def skewed_clocks(nodes: Nodes, *, windowed: bool) -> list[Value]:
    """The clocks outside the window; without a window, those far from the median."""
    clocks = [node.clock for group in nodes.groups for node in group.nodes if node.clock is not None]
    if windowed != (nodes.window is not None) or (not windowed and len(clocks) < 3):
        return []
    # gathered files are written one after the other, so small differences are expected
    first, last = nodes.window or (statistics.median(clocks),) * 2
    allowed = _SKEW_WITHIN if windowed else _SKEW

    def skew(node: Node) -> str | None:
        away = 0.0 if node.clock is None else min(node.clock - first, 0.0) + max(node.clock - last, 0.0)
        return f"{away:+.0f} s" if abs(away) > allowed else None

    return nodes.of_nodes(skew)
