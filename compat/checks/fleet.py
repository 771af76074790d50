"""Differences between the nodes of a job: findings of origin ``fleet``.

NCCL refuses connections between releases with different major.minor (``bootstrap.cc`` compares them). The processes of a job
exchange pickled objects and must call the same collectives in the same order, which different releases may not do.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from compat.errors import InputError
from compat.machine.node import Node
from compat.model import Environment, Finding, Fix, Report
from compat.records import record

_STACK = (
    "transformers", "trl", "accelerate", "peft", "deepspeed", "vllm", "sglang", "ray", "unsloth", "unsloth-zoo", "datasets",
    "flash-attn", "xformers", "bitsandbytes", "triton", "megatron-core", "transformer-engine", "nvidia-cudnn-cu12", "numpy",
)  # fmt: skip
"""Packages involved in communication between nodes."""
_VARIABLES = (
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_PLUGIN",
    "NCCL_BUFFSIZE", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_IB_GID_INDEX",
    "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "GLOO_SOCKET_IFNAME", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "PYTORCH_CUDA_ALLOC_CONF", "CUDA_DEVICE_MAX_CONNECTIONS", "LD_LIBRARY_PATH", "VLLM_USE_V1", "VLLM_ATTENTION_BACKEND",
)  # fmt: skip
"""Variables that must have the same value on all nodes."""
_SKEW = 900.0
"""Allowed clock skew from the median, in seconds. Kerberos rejects tickets from 300 s, but gathering itself takes minutes."""
_SKEW_WITHIN = 60.0
"""Allowed clock skew in seconds if the time at which the nodes were read is known."""
_NCCL = ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11", "nvidia-nccl")
_SHOWN = 4


@record(frozen=True)
class Group:
    """Nodes with identical environments."""

    environment: Environment
    nodes: tuple[Node, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(node.host for node in self.nodes)


@record(frozen=True)
class Judged:
    """The nodes of one group and the report on their environment."""

    group: Group
    report: Report


@record(frozen=True)
class Fleet:
    """All nodes that answered. ``differences`` are between nodes, ``missing`` are expected hosts without a result.

    ``undecided`` are hosts whose requested probes did not run.
    """

    groups: tuple[Judged, ...]
    differences: tuple[Finding, ...]
    problems: tuple[InputError, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    undecided: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        return sum(len(each.group.nodes) for each in self.groups)

    def findings(self) -> tuple[Finding, ...]:
        """All findings: differences between nodes first, then those of each group."""
        return (*self.differences, *(finding for each in self.groups for finding in each.report.findings))


@record(frozen=True)
class Value:
    """One value of a property that should be the same on all nodes, and the hosts that have it."""

    text: str
    hosts: tuple[str, ...]


Ranged = Callable[[Sequence[str]], str]


class Nodes:
    """The values of a property on all nodes: those that are known, most common first."""

    def __init__(self, groups: Sequence[Group], window: tuple[float, float] | None = None) -> None:
        self.groups = groups
        self.window = window

    def of_environments(self, key: Callable[[Environment], str | None]) -> list[Value]:
        return values_of((key(group.environment), group.hosts) for group in self.groups)

    def of_nodes(self, key: Callable[[Node], str | None]) -> list[Value]:
        return values_of((key(node), (node.host,)) for group in self.groups for node in group.nodes)

    def versions(self, *names: str) -> list[Value]:
        """The version of the first of these packages that is installed; "absent" if a complete list has none."""

        def version(environment: Environment) -> str | None:
            installed = {each.name: each.version for each in environment.distributions or ()}
            found = next((installed[name] for name in names if installed.get(name)), None)
            return found or ("absent" if environment.distributions_complete else None)

        return self.of_environments(version)


def values_of(pairs: Iterable[tuple[str | None, tuple[str, ...]]]) -> list[Value]:
    """The known values with their hosts, most common first."""
    hosts: dict[str, list[str]] = {}
    for text, names in pairs:
        if text is not None:
            hosts.setdefault(text, []).extend(names)
    return sorted((Value(text, tuple(names)) for text, names in hosts.items()), key=lambda value: -len(value.hosts))


@record(frozen=True)
class Comparison:
    """A property of nodes, and the finding if it has at least ``least`` values.

    That is two if the nodes must agree on one, and one if each value is a problem.
    """

    name: str
    severity: str
    effect: str
    title: str
    why: str
    fix: str
    values: Callable[[Nodes], list[Value]]
    kind: str = "config"
    packages: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    least: int = 2

    def finding(self, values: Sequence[Value], ranged: Ranged) -> Finding:
        """The finding, with the rarest values first: those nodes have to change."""
        ordered = sorted(values, key=lambda value: (len(value.hosts), value.text))
        shown = [f"{value.text} on {ranged(value.hosts)}" for value in ordered[:_SHOWN]]
        more = len(ordered) - len(shown)
        return Finding(
            rule=f"fleet-{self.name}", origin="fleet", verdict="hit", severity=self.severity, effect=self.effect,
            title=self.title, why=self.why, confidence="confirmed", packages=dict.fromkeys(self.packages), facts=self.facts,
            fixes=(Fix(self.kind, text=self.fix),), here="; ".join(shown) + (f"; and {more} more values" if more else ""),
        )  # fmt: skip


def compare(groups: Sequence[Group], ranged: Ranged, window: tuple[float, float] | None = None) -> tuple[Finding, ...]:
    """Return findings for relevant differences between nodes and for failed probes.

    ``ranged`` formats host names: ``node[001-126,128]``. ``window`` is the start and end of the time in which the nodes were
    read, by this machine's clock.
    """
    nodes = Nodes(groups, window)
    several = sum(len(group.nodes) for group in groups) > 1
    found = [(each, each.values(nodes)) for each in (*_failed_probes(groups), *(_COMPARISONS if several else ()))]
    return tuple(each.finding(values, ranged) for each, values in found if len(values) >= each.least)


# --- The properties.


def _minor(version: str | None) -> str | None:
    return version and ".".join(version.split(".")[:2])


def _drivers(nodes: Nodes, *, of_one_branch: bool) -> list[Value]:
    found = nodes.of_environments(lambda environment: environment.driver)
    return found if (len({value.text.partition(".")[0] for value in found}) == 1) == of_one_branch else []


def _gpu_count(environment: Environment) -> str | None:
    return None if environment.accelerators is None else f"{len(environment.accelerators)} GPUs"


def _gpu_kinds(environment: Environment) -> str | None:
    """The distinct GPU models of a node as text; MIG instances are named by their profile and differ from whole GPUs."""
    names = {
        each.name or each.compute_capability or each.gfx or each.vendor or "GPU" for each in environment.accelerators or ()
    }
    return " + ".join(sorted(names)) or None


def _setting(name: str) -> Callable[[Environment], str | None]:
    def setting(environment: Environment) -> str | None:
        if environment.variables is None:
            return None
        value = environment.variables.get(name)
        return "not set" if value is None else f"{name}={value}"

    return setting


def _missing_interfaces(nodes: Nodes) -> list[Value]:
    missing = []
    for group in nodes.groups:
        chosen = (group.environment.variables or {}).get("NCCL_SOCKET_IFNAME") or ""
        for node in group.nodes if chosen and chosen[0] != "^" else ():
            exact, names = chosen[0] == "=", [part for part in chosen.lstrip("=").split(",") if part]
            have = [each.name for each in node.interfaces or ()]
            if node.interfaces is not None and not any(
                each == name if exact else each.startswith(name) for name in names for each in have
            ):
                missing.append((f"NCCL_SOCKET_IFNAME={chosen}, there is {', '.join(have) or 'none'}", (node.host,)))
    return values_of(missing)


def _speed(node: Node) -> str | None:
    """The speed of the fastest link of a node; ``None`` if the kernel reports no speed."""
    speeds = [each.speed for each in node.interfaces or () if each.speed and each.kind in ("ethernet", "infiniband")]
    return f"{max(speeds) / 1000:g} Gbit/s" if speeds else None


def _rdma_ports(node: Node) -> str | None:
    if node.rdma is None:
        return None
    up = sorted(each.link + (f" {each.rate}" if each.rate else "") for each in node.rdma if each.active)
    return ", ".join(f"{up.count(text)} × {text}" for text in dict.fromkeys(up)) or "none"


def _limited_memory(node: Node) -> str | None:
    limited = node.memlock is not None and node.memlock >= 0 and _rdma_ports(node) not in (None, "none")
    return f"{(node.memlock or 0) // 1024} KiB" if limited else None


def _containers(nodes: Nodes) -> list[Value]:
    return [Value(each.text or "no container", each.hosts) for each in nodes.of_nodes(lambda node: node.container)]


def _files(nodes: Nodes) -> list[Value]:
    """The digests of the installed files, if the same releases are installed everywhere."""
    installed = {tuple((each.name, each.version) for each in group.environment.distributions or ()) for group in nodes.groups}
    found = nodes.of_nodes(lambda node: node.files) if len(installed) == 1 else []
    return [Value(f"files {value.text[:8]}", value.hosts) for value in found]


def _skewed_clocks(nodes: Nodes, *, windowed: bool) -> list[Value]:
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


# --- The comparisons, in the order of the report.


_ONE_LOCK_FILE = "install the same environment on all nodes from one lock file"
_DIFFERENT_DRIVERS = (
    "crash", "Nodes have different NVIDIA drivers",
    "A build for a CUDA release that the older driver does not support fails on some nodes only.",
    "install the same driver on all nodes",
)  # fmt: skip
_CLOCKS_WHY = "Tokens and TLS certificates are rejected, and logs of different nodes cannot be put in order."
_CLOCKS_FIX = "synchronize the clocks (chrony), then gather again"
_COMPARISONS = (
    Comparison(
        "nccl", "error", "hang", "Nodes have different releases of NCCL",
        "NCCL compares major.minor when processes connect, and fails or hangs if they differ.", _ONE_LOCK_FILE,
        lambda nodes: values_of((_minor(value.text), value.hosts) for value in nodes.versions(*_NCCL)), "pin",
        packages=("nvidia-nccl-cu12",),
    ),
    Comparison(
        "torch", "error", "crash", "Nodes have different releases or builds of torch",
        "All processes of a job must run the same collectives in the same order and exchange pickled state. Another torch "
        "may not, and it comes with another CUDA and NCCL.", _ONE_LOCK_FILE,
        lambda nodes: nodes.versions("torch"), "pin", packages=("torch",),
    ),
    Comparison(
        "python", "error", "crash", "Nodes run different releases of Python",
        "Functions and objects pickled by one minor release of Python may not load in another; Ray refuses to connect.",
        "use the same Python on all nodes",
        lambda nodes: nodes.of_environments(lambda environment: _minor(environment.python)), facts=("python",),
    ),
    *(
        Comparison(
            f"package-{name}", "warning", "crash", f"Nodes have different releases of {name}",
            "Processes may not understand what another release sends; the job fails or hangs when they communicate.",
            _ONE_LOCK_FILE, lambda nodes, name=name: nodes.versions(name), "pin", packages=(name,),  # type: ignore[misc]
        )
        for name in _STACK
    ),
    Comparison("driver", "warning", *_DIFFERENT_DRIVERS, lambda nodes: _drivers(nodes, of_one_branch=False), "driver",
               facts=("driver",)),
    Comparison("driver", "info", *_DIFFERENT_DRIVERS, lambda nodes: _drivers(nodes, of_one_branch=True), "driver",
               facts=("driver",)),
    Comparison(
        "gpu-count", "warning", "hang", "Nodes have different numbers of GPUs",
        "A launcher that starts the same number of processes on every node leaves GPUs idle, or fails where there are "
        "fewer. A GPU that fell off the bus looks like this, too.",
        "drain the nodes with fewer GPUs, or start by node (--nproc-per-node auto)",
        lambda nodes: nodes.of_environments(_gpu_count), "launch", facts=("accelerators",),
    ),
    Comparison(
        "gpu-kind", "warning", "slow", "Nodes have different GPUs",
        "Each step takes as long as the slowest device, the smallest memory is the limit, and every wheel needs code for "
        "each architecture.", "request a single GPU type from the scheduler",
        lambda nodes: nodes.of_environments(_gpu_kinds), "launch", facts=("accelerators",),
    ),
    *(
        Comparison(
            f"variable-{name.lower().replace('_', '-')}", "warning", "hang", f"{name} differs between nodes",
            "Each process decides by its own variables how it talks to the others.",
            f"set {name} to the same value on all nodes, where the job is started",
            lambda nodes, name=name: nodes.of_environments(_setting(name)), "env-var",  # type: ignore[misc]
            facts=("variables",),
        )
        for name in _VARIABLES
    ),
    Comparison(
        "interface", "error", "crash", "NCCL_SOCKET_IFNAME names an interface that some nodes do not have",
        "NCCL finds no interface on those nodes, and the job fails with 'Bootstrap : no socket interface found'.",
        "use a prefix that all nodes have, or exclude interfaces with ^docker,lo", _missing_interfaces, "env-var",
        facts=("variables",), least=1,
    ),
    Comparison(
        "network", "warning", "slow", "Nodes have networks of different speeds",
        "Collectives run at the speed of the slowest link. A bad cable or port can reduce the speed of a link.",
        "check the links of the slower nodes (ethtool), or drain them", lambda nodes: nodes.of_nodes(_speed), "driver",
    ),
    Comparison(
        "rdma", "warning", "slow", "Nodes have different active InfiniBand or RoCE ports",
        "NCCL falls back to sockets where a port is down, and the whole job runs at the speed of that node.",
        "bring the ports up, or drain the nodes", lambda nodes: nodes.of_nodes(_rdma_ports), "driver",
    ),
    Comparison(
        "memlock", "warning", "crash", "Locked memory is limited on nodes with InfiniBand or RoCE",
        "Registering buffers with the device fails ('ibv_reg_mr failed'): ulimit -l must be unlimited.",
        "set 'memlock unlimited' in limits.conf, or LimitMEMLOCK=infinity for slurmd and containerd",
        lambda nodes: nodes.of_nodes(_limited_memory), least=1,
    ),
    Comparison("container", "warning", "crash", "Nodes run different container images", "Their contents may differ.",
               "start the same image on all nodes", _containers, "launch"),
    Comparison(
        "files", "warning", "wrong-result", "The same releases are installed with different files",
        "The RECORD of a distribution differs between nodes: a different build, a local change, or an incomplete update.",
        "reinstall the environment on the nodes that differ, or share one read-only", _files,
    ),
    Comparison("clock", "warning", "hang", "Clocks are far apart", _CLOCKS_WHY, _CLOCKS_FIX,
               lambda nodes: _skewed_clocks(nodes, windowed=True), least=1),
    Comparison("clock", "warning", "hang", "Clocks are far apart, or some files were written at another time", _CLOCKS_WHY,
               _CLOCKS_FIX, lambda nodes: _skewed_clocks(nodes, windowed=False), least=1),
)  # fmt: skip


# --- Probes that failed on some nodes.


_BETWEEN = {"nodes/names": "Nodes cannot reach each other by name", "nodes/collectives": "Collectives between the nodes fail"}
"""Probes that need several nodes, and the title of the finding if one fails."""


def _failed_probes(groups: Sequence[Group]) -> list[Comparison]:
    """One comparison for each probe that failed, with each reason and the nodes that reported it."""
    failed: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    fixes: dict[str, str] = {}
    for node in (node for group in groups for node in group.nodes):
        for each in node.probes or ():
            if each.status == "failed":
                why = each.why if each.probe in _BETWEEN else f"{each.device}: {each.why}"
                failed.setdefault(each.probe, []).append((why, (node.host,)))
                fixes[each.probe] = fixes.get(each.probe) or each.fix or ""
    found = []
    for name, reasons in failed.items():
        effect, why, fix = (
            ("hang", "A job on these nodes would fail or hang in the same way.",
             "check the node that gives a reason of its own first: the others wait for it")
            if name in _BETWEEN else
            ("wrong-result", "This device computes wrong results, or does not compute at all.",
             "drain the nodes, and run 'compat probe' on one of them")
        )  # fmt: skip
        values = values_of(reasons)
        found.append(Comparison(
            f"probe-{name.replace('/', '-')}", "error", effect, _BETWEEN.get(name, f"The probe {name} fails"), why,
            fixes[name] or fix, lambda _, values=values: values, "driver", least=1,  # type: ignore[misc]
        ))  # fmt: skip
    return found


def not_probed(node: Node) -> bool:
    """Whether the probes of a node did not finish or could not start."""
    return node.probes is None or any(
        each.status == "could-not-run" and each.probe in ("torch/import", "nodes/collectives") for each in node.probes
    )
