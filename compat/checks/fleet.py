"""Differences between the nodes of a job: findings of origin ``fleet``.

NCCL refuses connections between releases with different major.minor (``bootstrap.cc`` compares them). The processes of a job
exchange pickled objects and must call the same collectives in the same order, which different releases may not do.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from compat.machine.node import Node
from compat.model import Environment, Finding, Fix
from compat.records import record

_STACK = (
    "transformers", "trl", "accelerate", "peft", "deepspeed", "vllm", "sglang", "ray", "unsloth", "unsloth-zoo", "datasets",
    "flash-attn", "xformers", "bitsandbytes", "triton", "megatron-core", "transformer-engine", "nvidia-cudnn-cu12", "numpy",
)  # fmt: skip
"""Packages involved in communication between nodes."""
_ALIKE = (
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_PLUGIN",
    "NCCL_BUFFSIZE", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_IB_GID_INDEX",
    "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "GLOO_SOCKET_IFNAME", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "PYTORCH_CUDA_ALLOC_CONF", "CUDA_DEVICE_MAX_CONNECTIONS", "LD_LIBRARY_PATH", "VLLM_USE_V1", "VLLM_ATTENTION_BACKEND",
)  # fmt: skip
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
class Value:
    """One value of a property that should be the same on all nodes, and the hosts that have it."""

    text: str
    hosts: tuple[str, ...]


Ranged = Callable[[Sequence[str]], str]


def compare(groups: Sequence[Group], ranged: Ranged, window: tuple[float, float] | None = None) -> tuple[Finding, ...]:
    """Return findings for relevant differences between nodes and for failed probes.

    ``ranged`` formats host names: ``node[001-126,128]``. ``window`` is the start and end of the time in which the nodes were
    read, by this machine's clock.
    """
    found = _probes(groups)
    if sum(len(group.nodes) for group in groups) > 1:
        found += [*_versions(groups), *_hardware(groups), *_variables(groups), *_network(groups), *_shared(groups)]
        found += _clocks(groups, window)
    return tuple(each(ranged) for each in found)


Told = Callable[[Ranged], Finding]


def _differs(
    name: str, severity: str, effect: str, title: str, why: str, values: Sequence[Value], fix: str, kind: str = "config",
    packages: Mapping[str, str | None] | None = None, facts: tuple[str, ...] = (),
) -> Told:  # fmt: skip
    def finding(ranged: Ranged) -> Finding:
        # the rarest values first: those nodes have to change
        ordered = sorted(values, key=lambda value: (len(value.hosts), value.text))
        shown = [f"{value.text} on {ranged(value.hosts)}" for value in ordered[:_SHOWN]]
        more = len(ordered) - len(shown)
        here = "; ".join(shown) + (f"; and {more} more values" if more else "")
        return Finding(
            rule=f"fleet-{name}", origin="fleet", verdict="hit", severity=severity, effect=effect, title=title, why=why,
            confidence="confirmed", packages=packages or {}, facts=facts, fixes=(Fix(kind, text=fix),), here=here,
        )  # fmt: skip

    return finding


def _values(said: Iterable[tuple[str | None, tuple[str, ...]]]) -> list[Value]:
    """The known values with their hosts, most common first."""
    hosts: dict[str, list[str]] = {}
    for text, names in said:
        if text is not None:
            hosts.setdefault(text, []).extend(names)
    return sorted((Value(text, tuple(names)) for text, names in hosts.items()), key=lambda value: -len(value.hosts))


def _of_environments(groups: Sequence[Group], key: Callable[[Environment], str | None]) -> list[Value]:
    return _values((key(group.environment), group.hosts) for group in groups)


def _of_nodes(groups: Sequence[Group], key: Callable[[Node], str | None]) -> list[Value]:
    return _values((key(node), (node.host,)) for group in groups for node in group.nodes)


def _minor(version: str | None) -> str | None:
    return version and ".".join(version.split(".")[:2])


def _versions(groups: Sequence[Group]) -> list[Told]:
    found: list[Told] = []
    installed = [{each.name: each.version for each in group.environment.distributions or ()} for group in groups]
    complete = any(group.environment.distributions_complete for group in groups)

    def of(*names: str) -> list[Value]:
        """Per group, the version of the first of these packages that is installed; "absent" if a complete list has none."""
        said = []
        for group, versions in zip(groups, installed):
            version = next((versions[name] for name in names if versions.get(name)), None)
            absent = "absent" if complete and group.environment.distributions_complete else None
            said.append((version or absent, group.hosts))
        return _values(said)

    nccl = _values((_minor(value.text), value.hosts) for value in of(*_NCCL))
    if len(nccl) > 1:
        found.append(_differs(
            "nccl", "error", "hang", "Nodes have different releases of NCCL",
            "NCCL compares major.minor when processes connect, and fails or hangs if they differ.", nccl,
            "install the same environment on all nodes from one lock file", "pin", {"nvidia-nccl-cu12": None},
        ))  # fmt: skip
    torch = of("torch")
    if len(torch) > 1:
        found.append(_differs(
            "torch", "error", "crash", "Nodes have different releases or builds of torch",
            "All processes of a job must run the same collectives in the same order and exchange pickled state. Another torch "
            "may not, and it comes with another CUDA and NCCL.", torch,
            "install the same environment on all nodes from one lock file", "pin", {"torch": None},
        ))  # fmt: skip
    python = _of_environments(groups, lambda environment: _minor(environment.python))
    if len(python) > 1:
        found.append(_differs(
            "python", "error", "crash", "Nodes run different releases of Python",
            "Functions and objects pickled by one minor release of Python may not load in another; Ray refuses to connect.",
            python, "use the same Python on all nodes", facts=("python",),
        ))  # fmt: skip
    for name in _STACK:
        values = of(name)
        if len(values) > 1:
            found.append(_differs(
                f"package-{name}", "warning", "crash", f"Nodes have different releases of {name}",
                "Processes may not understand what another release sends; the job fails or hangs when they communicate.",
                values, "install the same environment on all nodes from one lock file", "pin", {name: None},
            ))  # fmt: skip
    return found


def _hardware(groups: Sequence[Group]) -> list[Told]:
    found: list[Told] = []
    driver = _of_environments(groups, lambda environment: environment.driver)
    if len(driver) > 1:
        branches = {value.text.partition(".")[0] for value in driver}
        found.append(_differs(
            "driver", "warning" if len(branches) > 1 else "info", "crash", "Nodes have different NVIDIA drivers",
            "A build for a CUDA release that the older driver does not support fails on some nodes only.", driver,
            "install the same driver on all nodes", "driver", facts=("driver",),
        ))  # fmt: skip
    counts = _of_environments(groups, _count)
    if len(counts) > 1:
        found.append(_differs(
            "gpu-count", "warning", "hang", "Nodes have different numbers of GPUs",
            "A launcher that starts the same number of processes on every node leaves GPUs idle, or fails where there are "
            "fewer. A GPU that fell off the bus looks like this, too.", counts,
            "drain the nodes with fewer GPUs, or start by node (--nproc-per-node auto)", "launch", facts=("accelerators",),
        ))  # fmt: skip
    kinds = _of_environments(groups, _kinds)
    if len(kinds) > 1:
        found.append(_differs(
            "gpu-kind", "warning", "slow", "Nodes have different GPUs",
            "Each step takes as long as the slowest device, the smallest memory is the limit, and every wheel needs code for "
            "each architecture.", kinds, "request a single GPU type from the scheduler", "launch", facts=("accelerators",),
        ))  # fmt: skip
    return found


def _count(environment: Environment) -> str | None:
    return None if environment.accelerators is None else f"{len(environment.accelerators)} GPUs"


def _kinds(environment: Environment) -> str | None:
    """The distinct GPU models of a node as text; MIG instances are named by their profile and differ from whole GPUs."""
    names = {
        each.name or each.compute_capability or each.gfx or each.vendor or "GPU" for each in environment.accelerators or ()
    }
    return " + ".join(sorted(names)) or None


def _variables(groups: Sequence[Group]) -> list[Told]:
    found: list[Told] = []
    for name in _ALIKE:
        values = _values((_set_to(group.environment, name), group.hosts) for group in groups)
        if len(values) > 1:
            found.append(_differs(
                f"variable-{name.lower().replace('_', '-')}", "warning", "hang", f"{name} differs between nodes",
                "Each process decides by its own variables how it talks to the others.", values,
                f"set {name} to the same value on all nodes, where the job is started", "env-var", facts=("variables",),
            ))  # fmt: skip
    return found


def _set_to(environment: Environment, name: str) -> str | None:
    if environment.variables is None:
        return None
    value = environment.variables.get(name)
    return "not set" if value is None else f"{name}={value}"


def _network(groups: Sequence[Group]) -> list[Told]:
    found: list[Told] = []
    missing = []
    for group in groups:
        chosen = (group.environment.variables or {}).get("NCCL_SOCKET_IFNAME") or ""
        for node in group.nodes if chosen and chosen[0] != "^" else ():
            exact, names = chosen[0] == "=", [part for part in chosen.lstrip("=").split(",") if part]
            have = [each.name for each in node.interfaces or ()]
            if node.interfaces is not None and not any(
                each == name if exact else each.startswith(name) for name in names for each in have
            ):
                missing.append((f"NCCL_SOCKET_IFNAME={chosen}, there is {', '.join(have) or 'none'}", (node.host,)))
    if missing:
        found.append(_differs(
            "interface", "error", "crash", "NCCL_SOCKET_IFNAME names an interface that some nodes do not have",
            "NCCL finds no interface on those nodes, and the job fails with 'Bootstrap : no socket interface found'.",
            _values(missing),
            "use a prefix that all nodes have, or exclude interfaces with ^docker,lo", "env-var", facts=("variables",),
        ))  # fmt: skip
    speeds = _of_nodes(groups, _speed)
    if len(speeds) > 1:
        found.append(_differs(
            "network", "warning", "slow", "Nodes have networks of different speeds",
            "Collectives run at the speed of the slowest link. A bad cable or port can reduce the speed of a link.", speeds,
            "check the links of the slower nodes (ethtool), or drain them", "driver",
        ))  # fmt: skip
    rdma = _of_nodes(groups, _ports)
    if len(rdma) > 1:
        found.append(_differs(
            "rdma", "warning", "slow", "Nodes have different active InfiniBand or RoCE ports",
            "NCCL falls back to sockets where a port is down, and the whole job runs at the speed of that node.", rdma,
            "bring the ports up, or drain the nodes", "driver",
        ))  # fmt: skip
    locked = _of_nodes(groups, _locked)
    if locked:
        found.append(_differs(
            "memlock", "warning", "crash", "Locked memory is limited on nodes with InfiniBand or RoCE",
            "Registering buffers with the device fails ('ibv_reg_mr failed'): ulimit -l must be unlimited.",
            locked,
            "set 'memlock unlimited' in limits.conf, or LimitMEMLOCK=infinity for slurmd and containerd",
        ))  # fmt: skip
    return found


def _speed(node: Node) -> str | None:
    """The speed of the fastest link of a node; ``None`` if the kernel reports no speed."""
    speeds = [each.speed for each in node.interfaces or () if each.speed and each.kind in ("ethernet", "infiniband")]
    return f"{max(speeds) / 1000:g} Gbit/s" if speeds else None


def _ports(node: Node) -> str | None:
    if node.rdma is None:
        return None
    up = sorted(each.link + (f" {each.rate}" if each.rate else "") for each in node.rdma if each.active)
    return ", ".join(f"{up.count(text)} × {text}" for text in dict.fromkeys(up)) or "none"


def _locked(node: Node) -> str | None:
    limited = node.memlock is not None and node.memlock >= 0 and _ports(node) not in (None, "none")
    return f"{(node.memlock or 0) // 1024} KiB" if limited else None


def _shared(groups: Sequence[Group]) -> list[Told]:
    found: list[Told] = []
    container = _of_nodes(groups, lambda node: node.container)
    if len(container) > 1:
        found.append(_differs(
            "container", "warning", "crash", "Nodes run different container images", "Their contents may differ.",
            [Value(value.text or "no container", value.hosts) for value in container], "start the same image on all nodes",
            "launch",
        ))  # fmt: skip
    files = _of_nodes(groups, lambda node: node.files)
    installed = {tuple((each.name, each.version) for each in group.environment.distributions or ()) for group in groups}
    if len(files) > 1 and len(installed) == 1:
        found.append(_differs(
            "files", "warning", "wrong-result", "The same releases are installed with different files",
            "The RECORD of a distribution differs between nodes: a different build, a local change, or an incomplete update.",
            [Value(f"files {value.text[:8]}", value.hosts) for value in files],
            "reinstall the environment on the nodes that differ, or share one read-only",
        ))  # fmt: skip
    return found


def _clocks(groups: Sequence[Group], window: tuple[float, float] | None) -> list[Told]:
    """A finding for clocks outside ``window``; without a window, for those far from the median."""
    clocks = [node.clock for group in groups for node in group.nodes if node.clock is not None]
    if window is None and len(clocks) < 3:
        return []
    # gathered files are written one after the other, so small differences are expected
    first, last = window or (statistics.median(clocks),) * 2
    least = _SKEW if window is None else _SKEW_WITHIN

    def off(node: Node) -> str | None:
        away = 0.0 if node.clock is None else min(node.clock - first, 0.0) + max(node.clock - last, 0.0)
        return f"{away:+.0f} s" if abs(away) > least else None

    found = _of_nodes(groups, off)
    return [_differs(
        "clock", "warning", "hang", "Clocks are far apart" + ("" if window else ", or some files were written at another time"),
        "Tokens and TLS certificates are rejected, and logs of different nodes cannot be put in order.",
        found, "synchronize the clocks (chrony), then gather again",
    )] if found else []  # fmt: skip


_BETWEEN = {"nodes/names": "Nodes cannot reach each other by name", "nodes/collectives": "Collectives between the nodes fail"}
"""Probes that need several nodes, and the title of the finding if one fails."""


def _probes(groups: Sequence[Group]) -> list[Told]:
    """One finding for each probe that failed, with each reason and the nodes that reported it."""
    failed: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    fixes: dict[str, str] = {}
    for node in (node for group in groups for node in group.nodes):
        for each in node.probes or ():
            if each.status == "failed":
                why = each.why if each.probe in _BETWEEN else f"{each.device}: {each.why}"
                failed.setdefault(each.probe, []).append((why, (node.host,)))
                fixes[each.probe] = fixes.get(each.probe) or each.fix or ""
    found = []
    for name, said in failed.items():
        effect, why, fix = (
            ("hang", "A job on these nodes would fail or hang in the same way.",
             "check the node that gives a reason of its own first: the others wait for it")
            if name in _BETWEEN else
            ("wrong-result", "This device computes wrong results, or does not compute at all.",
             "drain the nodes, and run 'compat probe' on one of them")
        )  # fmt: skip
        title = _BETWEEN.get(name, f"The probe {name} fails")
        rule = f"probe-{name.replace('/', '-')}"
        found.append(_differs(rule, "error", effect, title, why, _values(said), fixes[name] or fix, "driver"))
    return found


def not_probed(node: Node) -> bool:
    """Whether the probes of a node did not finish or could not start."""
    return node.probes is None or any(
        each.status == "could-not-run" and each.probe in ("torch/import", "nodes/collectives") for each in node.probes
    )
