"""Differences between the nodes of a job: findings of origin ``fleet``.

NCCL refuses connections between releases with different major.minor (``bootstrap.cc`` compares them). The processes of a job
exchange pickled objects and must call the same collectives in the same order, which different releases may not do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compat.checks.nodes import (
    NCCL,
    Group,
    Nodes,
    Value,
    containers,
    drivers,
    files,
    gpu_count,
    gpu_kinds,
    hugepages,
    limited_memory,
    minor,
    missing_interfaces,
    nccl,
    rdma_ports,
    setting,
    skewed_clocks,
    speed,
    toolkit,
    torches,
    values_of,
)
from compat.checks.torch_build import INDEX
from compat.errors import InputError
from compat.machine.node import Node
from compat.model import Finding, Fix, Report
from compat.records import record
from compat.rules.evaluate import quoted

STACK = (
    "transformers", "trl", "accelerate", "peft", "deepspeed", "vllm", "sglang", "ray", "unsloth", "unsloth-zoo", "datasets",
    "flash-attn", "xformers", "bitsandbytes", "triton", "megatron-core", "transformer-engine", "nvidia-cudnn-cu12", "numpy",
)  # fmt: skip
"""Packages involved in communication between nodes."""
_PREFIXES = ("NCCL_", "GLOO_", "UCX_", "FI_", "OFI_", "TORCH_NCCL_", "PYTORCH_")
_VARIABLES = (
    "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "LD_LIBRARY_PATH", "VLLM_USE_V1",
    "VLLM_ATTENTION_BACKEND",
)  # fmt: skip
"""Variables that must have the same value on all nodes, besides those with the prefixes."""
_HARMLESS = ("NCCL_DEBUG", "NCCL_TOPO_DUMP", "NCCL_GRAPH_DUMP", "UCX_LOG", "UCX_STATS", "FI_LOG", "TORCH_NCCL_DEBUG")
"""The beginnings of variables that change what is logged, and not how nodes talk to each other."""
_OF_INTERFACES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_IB_HCA", "UCX_NET_DEVICES")
"""Variables that name network devices, which nodes with other devices have to set to other values."""
_WITHOUT_GPUS = ("transformers", "trl", "accelerate", "peft", "ray", "datasets", "numpy")
"""Packages that nodes without GPUs need in the same releases, such as the head of a Ray cluster."""
_SHOWN = 4


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


Ranged = Callable[[Sequence[str]], str]


@record(frozen=True)
class Comparison:
    """A property of nodes, and the finding if it has at least ``least`` values.

    That is two if the nodes must agree on one, and one if each value is a problem. ``command`` gives a node
    the most common value.
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
    command: Callable[[str, Nodes], str | None] | None = None

    def finding(self, nodes: Nodes, values: Sequence[Value], ranged: Ranged) -> Finding:
        """The finding, with the rarest values first: those nodes have to change. Of two as common, a package is installed."""
        ordered = sorted(values, key=lambda value: (len(value.hosts), value.text != "absent", value.text))
        shown = [f"{value.text} on {ranged(value.hosts)}" for value in ordered[:_SHOWN]]
        more = len(ordered) - len(shown)
        command = self.command(ordered[-1].text, nodes) if self.command else None
        return Finding(
            rule=f"fleet-{self.name}", origin="fleet", severity=self.severity, effect=self.effect,
            title=self.title, why=self.why, packages=dict.fromkeys(self.packages), facts=self.facts,
            fixes=(Fix(self.kind, package=self.packages[0] if self.packages else None, text=self.fix, command=command),),
            here="; ".join(shown) + (f"; and {more} more values" if more else ""),
        )  # fmt: skip


def compare(groups: Sequence[Group], ranged: Ranged, window: tuple[float, float] | None = None) -> tuple[Finding, ...]:
    """Return findings for relevant differences between nodes and for failed probes.

    ``ranged`` formats host names: ``node[001-126,128]``. ``window`` is the start and end of the time in which the nodes were
    read, by this machine's clock.
    """
    nodes = Nodes(groups, window)
    several = sum(len(group.nodes) for group in groups) > 1
    compared = (*_COMPARISONS, *_variables(groups)) if several else ()
    found = [(each, each.values(nodes)) for each in (*_failed_probes(groups), *compared)]
    return tuple(each.finding(nodes, values, ranged) for each, values in found if len(values) >= each.least)


def _variables(groups: Sequence[Group]) -> list[Comparison]:
    """One comparison for each variable that has to have the same value, and is set on some node."""
    names = {
        name for group in groups for name, value in (group.environment.variables or {}).items()
        if value is not None and (name.startswith(_PREFIXES) or name in _VARIABLES) and not name.startswith(_HARMLESS)
    }  # fmt: skip
    if len({tuple(each.name for each in node.interfaces or ()) for group in groups for node in group.nodes}) > 1:
        names -= {*_OF_INTERFACES}
    return [
        Comparison(
            f"variable-{name.lower().replace('_', '-')}", "warning", "hang", f"{name} differs between nodes",
            "Each process uses its own variables to decide how it communicates with the others.",
            f"set {name} to the same value on all nodes, where the job is started",
            lambda nodes, name=name: nodes.of_environments(setting(name)), "env-var",  # type: ignore[misc]
            facts=("variables",), command=lambda text, _, name=name: _set(name, text),  # type: ignore[misc]
        )
        for name in sorted(names)
    ]  # fmt: skip


def _install_nccl(text: str, nodes: Nodes) -> str | None:
    name = next((name for name in NCCL if len(nodes.versions(name)) > 1), None)
    return name and f'pip install "{name}=={text}.*"'


def _install(name: str, text: str) -> str:
    if text == "absent":
        return f"pip uninstall -y {name}"
    label = text.partition("+")[2] if name == "torch" else ""
    return f'pip install "{name}=={text}"' + (f" --index-url {INDEX}/{label}" if label else "")


def _set(name: str, text: str) -> str:
    return f"unset {name}" if text == "not set" else f"export {name}={quoted(text.partition('=')[2])}"


# --- The comparisons, in the order of the report.


_ONE_LOCK_FILE = "install the same environment on all nodes from one lock file"
_DIFFERENT_DRIVERS = (
    "crash", "Nodes have different NVIDIA drivers",
    "A build for a CUDA release that the older driver does not support fails on some nodes only.",
    "install the same driver on all nodes",
)  # fmt: skip
_CLOCKS_WHY = "Tokens and TLS certificates are rejected, and logs of different nodes cannot be put in order."
_CLOCKS_FIX = "synchronize the clocks (chrony), then gather again"
_STEP: Callable[[str, Nodes], str | None] = lambda *_: "sudo chronyc makestep"  # noqa: E731
_COMPARISONS = (
    Comparison(
        "nccl", "error", "hang", "Nodes have different releases of NCCL",
        "NCCL compares major.minor when processes connect, and fails or hangs if they differ.", _ONE_LOCK_FILE,
        nccl, "pin", packages=("nvidia-nccl-cu12",), command=_install_nccl,
    ),
    Comparison(
        "torch", "error", "crash", "Nodes have different releases or builds of torch",
        "All processes of a job must run the same collectives in the same order and exchange pickled state. Another torch "
        "may not, and it comes with another CUDA and NCCL.", _ONE_LOCK_FILE,
        torches, "pin", packages=("torch",), command=lambda text, _: _install("torch", text),
    ),
    Comparison(
        "python", "error", "crash", "Nodes run different releases of Python",
        "Functions and objects pickled by one minor release of Python may not load in another; Ray refuses to connect.",
        "use the same Python on all nodes",
        lambda nodes: nodes.of_environments(lambda environment: minor(environment.python)), facts=("python",),
    ),
    *(
        Comparison(
            f"package-{name}", "warning", "crash", f"Nodes have different releases of {name}",
            "Processes may not understand what another release sends; the job fails or hangs when they communicate.",
            _ONE_LOCK_FILE,
            lambda nodes, name=name: (nodes if name in _WITHOUT_GPUS else nodes.with_gpus()).versions(name),  # type: ignore[misc]
            "pin", packages=(name,), command=lambda text, _, name=name: _install(name, text),  # type: ignore[misc]
        )
        for name in STACK
    ),
    Comparison(
        "machine", "warning", "crash", "Nodes have different processor architectures",
        "A compiled wheel only works on one of them. A shared environment works on those nodes only, and not every "
        "package has wheels "
        "for both.", "request a single architecture from the scheduler, or install an environment for each",
        lambda nodes: nodes.of_environments(lambda environment: environment.machine), "launch", facts=("machine",),
    ),
    Comparison(
        "toolkit", "info", "crash", "Nodes have different CUDA toolkits",
        "DeepSpeed, FlashInfer and others compile kernels when they run, with the toolkit of the node: on some nodes that can "
        "fail, or produce different kernels.", "install the same toolkit on all nodes, or set CUDA_HOME to one that all have",
        lambda nodes: nodes.with_gpus().of_environments(toolkit), "driver", facts=("cuda_toolkit",),
    ),
    Comparison("driver", "warning", *_DIFFERENT_DRIVERS, lambda nodes: drivers(nodes, of_one_branch=False), "driver",
               facts=("driver",)),
    Comparison("driver", "info", *_DIFFERENT_DRIVERS, lambda nodes: drivers(nodes, of_one_branch=True), "driver",
               facts=("driver",)),
    Comparison(
        "gpu-count", "warning", "hang", "Nodes have different numbers of GPUs",
        "A launcher that starts the same number of processes on every node leaves GPUs idle, or fails where there are "
        "fewer. A GPU that fell off the bus also looks like this.",
        "drain the nodes with fewer GPUs, or start by node (--nproc-per-node auto)",
        lambda nodes: nodes.with_gpus().of_environments(gpu_count), "launch", facts=("accelerators",),
    ),
    Comparison(
        "gpu-kind", "warning", "slow", "Nodes have different GPUs",
        "Each step takes as long as the slowest device, the smallest memory is the limit, and every wheel needs code for "
        "each architecture.", "request a single GPU type from the scheduler",
        lambda nodes: nodes.of_environments(gpu_kinds), "launch", facts=("accelerators",),
    ),
    Comparison(
        "interface", "error", "crash", "NCCL_SOCKET_IFNAME names an interface that some nodes do not have",
        "NCCL finds no interface on those nodes, and the job fails with 'Bootstrap : no socket interface found'.",
        "use a prefix that all nodes have, or exclude interfaces with ^docker,lo",
        lambda nodes: missing_interfaces(nodes, "NCCL_SOCKET_IFNAME"), "env-var", facts=("variables",), least=1,
    ),
    Comparison(
        "gloo-interface", "error", "crash", "GLOO_SOCKET_IFNAME names an interface that some nodes do not have",
        "Gloo finds no address on those nodes, and the job fails with 'Unable to find address for'.",
        "name an interface that the node has, or unset the variable",
        lambda nodes: missing_interfaces(nodes, "GLOO_SOCKET_IFNAME"), "env-var", facts=("variables",), least=1,
    ),
    Comparison(
        "network", "warning", "slow", "Nodes have networks of different speeds",
        "Collectives run at the speed of the slowest link. A bad cable or port can reduce the speed of a link.",
        "check the links of the slower nodes (ethtool), or drain them", lambda nodes: nodes.with_gpus().of_nodes(speed),
        "driver",
    ),
    Comparison(
        "rdma", "warning", "slow", "Nodes have different active InfiniBand or RoCE ports",
        "NCCL falls back to sockets where a port is down, and the whole job runs at the speed of that node.",
        "bring the ports up, or drain the nodes", lambda nodes: nodes.with_gpus().of_nodes(rdma_ports), "driver",
    ),
    Comparison(
        "memlock", "warning", "crash", "Locked memory is limited on nodes with InfiniBand or RoCE",
        "Registering buffers with the device fails ('ibv_reg_mr failed'): ulimit -l must be unlimited.",
        "set 'memlock unlimited' in limits.conf, or LimitMEMLOCK=infinity for slurmd and containerd",
        lambda nodes: nodes.of_nodes(limited_memory), least=1, command=lambda *_: "ulimit -l unlimited",
    ),
    Comparison(
        "hugepages", "info", "memory", "Nodes reserve different numbers of huge pages",
        "Reserved pages are not available as ordinary memory, and EFA, UCX and DPDK use them if there are some.",
        "set vm.nr_hugepages to the same number on all nodes", lambda nodes: nodes.with_gpus().of_nodes(hugepages),
        command=lambda text, _: f"sudo sysctl vm.nr_hugepages={text.split()[0]}",
    ),
    Comparison("container", "warning", "crash", "Nodes run different container images", "Their contents may differ.",
               "start the same image on all nodes", containers, "launch"),
    Comparison(
        "files", "warning", "wrong-result", "The same releases are installed with different files",
        "The RECORD of a distribution differs between nodes: a different build, a local change, or an incomplete update.",
        "reinstall the environment on the nodes that differ, or share one read-only", files,
    ),
    Comparison("clock", "warning", "hang", "Clocks are far apart", _CLOCKS_WHY, _CLOCKS_FIX,
               lambda nodes: skewed_clocks(nodes, windowed=True), least=1, command=_STEP),
    Comparison("clock", "warning", "hang", "Clocks are far apart, or some files were written at another time", _CLOCKS_WHY,
               _CLOCKS_FIX, lambda nodes: skewed_clocks(nodes, windowed=False), least=1, command=_STEP),
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
             "first check the node that gives its own reason: the others wait for it")
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
