"""The facts of one node in a cluster: name and clock, networks, limits, container, and the identity of its files."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Mapping, Sequence

from compat.errors import InputError
from compat.machine.system import filesystem_of, first_text, in_container, path_below
from compat.records import record

KEY = "node"
"""The key of a described environment that holds a node's own facts."""
_VIRTUAL = ("docker", "veth", "virbr", "br-", "cni", "flannel", "cali", "tun", "tap", "kube-ipvs", "dummy")
_CONTAINERS = ("SLURM_CONTAINER", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "PYXIS_IMAGE", "CONTAINER_IMAGE")


@record(frozen=True)
class Interface:
    """A network interface that is up; ``speed`` in Mbit/s, ``None`` if the kernel does not report it."""

    name: str
    kind: str
    speed: int | None = None


@record(frozen=True)
class RdmaPort:
    """A port of an InfiniBand or RoCE device; ``link`` is ``InfiniBand`` or ``Ethernet``, ``rate`` is the kernel's text."""

    device: str
    link: str
    active: bool
    rate: str = ""


@record(frozen=True)
class Probed:
    """One probe that ran on a node, as reported by ``compat probe``; ``status`` is passed, failed or could-not-run."""

    probe: str
    device: str
    status: str
    why: str = ""
    fix: str | None = None


@record(frozen=True)
class Node:
    """One node. ``clock`` is its time in seconds since 1970 when it was read, ``memlock`` the limit in bytes (-1: none).

    ``container`` is the image if a variable names it, and "" outside of a container. ``files`` is a digest of
    every installed RECORD, ``folder`` its location, ``filesystem`` the type of its mount. ``probes`` is ``None`` if none
    were run or they did not finish.
    """

    host: str
    clock: float | None = None
    interfaces: tuple[Interface, ...] | None = None
    rdma: tuple[RdmaPort, ...] | None = None
    memlock: int | None = None
    hugepages: int | None = None
    container: str | None = None
    files: str | None = None
    folder: str | None = None
    filesystem: str | None = None
    probes: tuple[Probed, ...] | None = None

    def to_json(self) -> dict[str, object]:
        """Return plain JSON values; unknown ones are omitted."""
        known = {name: getattr(self, name) for name in _SCALARS if getattr(self, name) is not None}
        if self.interfaces is not None:
            known["interfaces"] = [{"name": each.name, "kind": each.kind, "speed": each.speed} for each in self.interfaces]
        if self.rdma is not None:
            known["rdma"] = [
                {"device": each.device, "link": each.link, "active": each.active, "rate": each.rate} for each in self.rdma
            ]
        if self.probes is not None:
            known["probes"] = [{name: getattr(each, name) for name in _PROBED if getattr(each, name)} for each in self.probes]
        return known


_SCALARS: dict[str, tuple[type, ...]] = {
    "host": (str,), "clock": (int, float), "memlock": (int,), "hugepages": (int,), "container": (str,), "files": (str,),
    "folder": (str,), "filesystem": (str,),
}  # fmt: skip
_PROBED = ("probe", "device", "status", "why", "fix")


def node_of(value: object, file: str) -> Node:
    """Parse a node from JSON; :class:`InputError` if a value has the wrong type or the host name is missing."""

    def refuse(key: str, wanted: str) -> InputError:
        return InputError(f"{KEY}{key}: expected {wanted}", file)

    if not isinstance(value, dict):
        raise refuse("", "an object that names the host, as 'compat facts --output DIR' writes it")
    scalars: dict[str, object] = {}
    for name, types in _SCALARS.items():
        found = value.get(name)
        if found is None:
            continue
        if not isinstance(found, types) or isinstance(found, bool):
            raise refuse(f".{name}", "a text" if types == (str,) else "a number")
        scalars[name] = found
    if not scalars.get("host"):
        raise refuse(".host", "the name of the node")
    interfaces, rdma, probes = value.get("interfaces"), value.get("rdma"), value.get("probes")
    try:
        found_interfaces = None if interfaces is None else tuple(
            Interface(str(each["name"]), str(each["kind"]), None if each.get("speed") is None else int(each["speed"]))
            for each in interfaces
        )  # fmt: skip
        found_rdma = None if rdma is None else tuple(
            RdmaPort(str(each["device"]), str(each["link"]), bool(each["active"]), str(each.get("rate") or "")) for each in rdma
        )  # fmt: skip
        found_probes = None if probes is None else tuple(probed_of(each) for each in probes)
    except (TypeError, KeyError, ValueError, AttributeError):
        raise refuse("", "interfaces, rdma and probes as 'compat facts --output' writes them") from None
    return Node(**scalars, interfaces=found_interfaces, rdma=found_rdma, probes=found_probes)  # type: ignore[arg-type]


def probed_of(value: Mapping[str, object]) -> Probed:
    """Parse a probe from the JSON of ``compat probe``; :class:`KeyError` if a key is missing."""
    return Probed(
        str(value["probe"]), str(value["device"]), str(value["status"]), str(value.get("why") or ""),
        None if value.get("fix") is None else str(value["fix"]),
    )  # fmt: skip


def read_node(folders: Sequence[str], variables: Mapping[str, str], root: str = "/") -> Node:
    """Read this node; ``folders`` is the interpreter's path, of which the first ``site-packages`` is identified."""
    folder = next((each for each in folders if each.rstrip(os.sep).endswith("-packages")), None)
    mounts = first_text(path_below(root, "/proc/self/mountinfo"))
    container = next((variables[name] for name in _CONTAINERS if variables.get(name)), None)
    return Node(
        host=variables.get("SLURMD_NODENAME") or platform.node() or "unknown",
        clock=time.time(),
        interfaces=_interfaces(root),
        rdma=_rdma(root),
        memlock=_memlock(),
        hugepages=_hugepages(root),
        container=container if container or in_container(root) is not False else "",
        files=None if folder is None else _identity(folder),
        folder=folder,
        filesystem=None if folder is None else filesystem_of(os.path.realpath(folder), mounts),
    )


def _names(path: str) -> list[str] | None:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return None


def _interfaces(root: str) -> tuple[Interface, ...] | None:
    """Return interfaces that are up (``/sys/class/net``); ``type`` is the kernel's ARPHRD number: 1 Ethernet, 32 InfiniBand."""
    base = path_below(root, "/sys/class/net")
    names = _names(base)
    if names is None:
        return None
    found = []
    for name in names:
        if first_text(f"{base}/{name}/operstate").strip() not in ("up", "unknown"):
            continue
        number = first_text(f"{base}/{name}/type").strip()
        kind = {"32": "infiniband", "772": "loopback"}.get(number, "ethernet")
        speed = first_text(f"{base}/{name}/speed").strip()
        kind = "virtual" if name.startswith(_VIRTUAL) else kind
        found.append(Interface(name, kind, int(speed) if speed.isdecimal() else None))
    return tuple(found)


def _rdma(root: str) -> tuple[RdmaPort, ...]:
    base = path_below(root, "/sys/class/infiniband")
    found = []
    for device in _names(base) or ():
        for port in _names(f"{base}/{device}/ports") or ():
            at = f"{base}/{device}/ports/{port}"
            active = "ACTIVE" in first_text(f"{at}/state")
            link, rate = first_text(f"{at}/link_layer").strip(), first_text(f"{at}/rate").strip()
            found.append(RdmaPort(f"{device}:{port}", link or "unknown", active, rate))
    return tuple(found)


def _memlock() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return -1 if soft == resource.RLIM_INFINITY else soft


def _hugepages(root: str) -> int | None:
    for line in first_text(path_below(root, "/proc/meminfo")).splitlines():
        name, _, value = line.partition(":")
        if name == "HugePages_Total" and value.strip().isdecimal():
            return int(value)
    return None


def _identity(folder: str) -> str | None:
    """Return a digest of the installed files: the RECORD of every distribution contains their digests."""
    digest = hashlib.sha256()
    for name in _names(folder) or ():
        if name.endswith(".dist-info"):
            try:
                with open(f"{folder}/{name}/RECORD", "rb") as file:
                    content = b"\n".join(sorted(line for line in file.read().splitlines() if b".pyc," not in line))
            except OSError:
                content = b""
            digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()[:32]
