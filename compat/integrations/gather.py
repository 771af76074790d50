"""Described environments from all nodes, through the scheduler (``srun`` or Ray). Nothing is installed on the nodes.

The interpreter running here must be able to import compat on the nodes, as on a shared file system, which the job
itself needs too. A node that does not answer in time is left out and reported; an older file of it in the folder is not
used instead.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter

from compat.api.commands import Options
from compat.api.fleet import Gathered, expand_hosts, host_ranges
from compat.errors import InputError, Undecided, complain, on_terminal, printable
from compat.machine.node import KEY
from compat.output.stream import to_json

_TIMEOUT = 120


def gather(folder: str, options: Options) -> Gathered | None:
    """Gather through Slurm or Ray as ``--slurm`` or ``--ray`` requests; ``None`` with neither option.

    Raises :class:`InputError` for conflicting options and :class:`Undecided` if nothing can be started.
    """
    chosen = [name for name in ("slurm", "ray") if options.flag(name)]
    if len(chosen) > 1:
        raise InputError("--slurm and --ray: give one or the other")
    for name, needed in (("partition", "slurm"), ("nodelist", "slurm"), ("address", "ray")):
        if options.flag(name) and needed not in chosen:
            raise InputError(f"--{name} goes with --{needed}")
    if not chosen:
        if options.flag("probe"):
            raise InputError(
                "--probe goes with --slurm or --ray; started otherwise, nodes run 'compat facts --output DIR --probe'"
            )
        return None
    seconds = timeout_of(options)
    began = time.time()
    before = _files(folder)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as problem:
        raise InputError(f"cannot be made: {problem.strerror or problem}", folder) from None
    if chosen == ["slurm"]:
        hosts, silent = gather_slurm(folder, options, seconds)
    else:
        # Ray prints on standard output that a node died, between the lines of the report
        with contextlib.redirect_stdout(sys.stderr or io.StringIO()):
            hosts, silent = gather_ray(folder, options, seconds)
    after = _files(folder)
    old = frozenset(name for name, identity in before.items() if after.get(name) == identity)
    if not after.keys() - old:
        raise Undecided(f"no node answered: {host_ranges((*hosts, *silent)) or chosen[0]}")
    return Gathered(hosts, silent, old, began, time.time())


def _files(folder: str) -> dict[str, tuple[int, int]]:
    """Return the JSON files in the folder, each with an identity that changes when the file is replaced."""
    try:
        with os.scandir(folder) as entries:
            found = {each.name: each.stat(follow_symlinks=False) for each in entries if each.name.endswith(".json")}
    except OSError:
        return {}
    return {name: (status.st_ino, status.st_mtime_ns) for name, status in found.items()}


def _probing(options: Options, seconds: int, address: str, nodes: int) -> list[str]:
    """Return the ``compat facts`` options for probing; two or more nodes rendezvous at a port of ``address``."""
    if not options.flag("probe"):
        return []
    # below the ephemeral port range, and not torchrun's default
    meeting = ["--rendezvous", f"{address}:{random.randint(20_000, 29_000)}", "--nodes", str(nodes)] if nodes > 1 else []
    return ["--probe", "--timeout", str(max(10, seconds - 15)), *meeting]


def gather_slurm(folder: str, options: Options, seconds: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Run one task per node through ``srun``: on the current allocation, ``--nodelist``, or the (default) partition.

    Returns the queried hosts, and those that Slurm reports as unavailable. Raises :class:`InputError` without ``srun``. Tasks
    that fail on some nodes are reported on standard error; the others write their files.
    """
    srun = shutil.which("srun")
    if srun is None:
        raise InputError("--slurm: srun is not on PATH")
    inside = os.environ.get("SLURM_JOB_NODELIST")
    given = options.one("nodelist") or inside
    hosts, silent = tuple(dict.fromkeys(expand_hosts(given, "--nodelist"))) if given else (), []
    addresses: dict[str, str] = {}
    command = [srun, "--ntasks-per-node=1", "--overlap", "--kill-on-bad-exit=0"]
    partition, minutes = options.one("partition"), max(1, -(-(seconds + _GRACE) // 60))
    if not inside:
        place = _place(options, hosts)
        if place is not None:
            partition, states, addresses, limit = place
            minutes = min(minutes, limit or minutes)
            hosts = tuple(name for name, state in states.items() if state in _READY)
            silent = [name for name in states if name not in hosts]
            for name in silent:
                complain(f"compat: {printable(name)} is not asked: its state in Slurm is {printable(states[name])}")
            if not hosts:
                raise Undecided("--slurm: no node is idle or has room")
        command.append(f"--immediate={seconds}")  # do not wait for a node that has become busy
    command += [f"--partition={partition}"] if partition and not inside else []
    command.append(f"--time={minutes}")
    if hosts:
        command += [f"--nodelist={host_ranges(hosts)}", f"--nodes={len(hosts)}"]
    command += [sys.executable, "-I", "-m", "compat", "facts", "--output", os.path.abspath(folder)]
    command += _probing(options, seconds, addresses.get(hosts[0], hosts[0]) if hosts else "", len(hosts))
    where = f"{len(hosts)} node{'' if len(hosts) == 1 else 's'}" if hosts else "the nodes"
    complain(f"compat: gathering with srun from {where} (at most {seconds} s)")
    _run(command, folder, len(hosts), seconds)
    return hosts, tuple(silent)


_GRACE = 10
"""Seconds for what was started in time to end."""


def _run(command: list[str], folder: str, count: int, seconds: int) -> None:
    """Run srun at most so long, and show how many of ``count`` nodes have written their file."""
    before, end = _files(folder), time.monotonic() + seconds
    progress = Progress(count)
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors) as process:
            try:
                while process.poll() is None and time.monotonic() < end:
                    progress.show(sum(before.get(name) != identity for name, identity in _files(folder).items()))
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_EVERY)
            finally:
                progress.clear()
                late = process.poll() is None
                if late:
                    process.terminate()  # srun passes it on, and gives its nodes back
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_GRACE)
                    process.kill()
        errors.seek(0)
        for line in dict.fromkeys(errors.read().decode("utf-8", "replace").splitlines()):
            if line.strip() and not line.startswith("compat: note:"):
                complain(f"compat: srun: {printable(line.removeprefix('srun: '))}")
    if late:
        complain(f"compat: srun did not finish within {seconds} s: using the files written so far")


_EVERY = 0.3


class Progress:
    """A line on the terminal that says how many nodes have answered; nothing where standard error is not a terminal."""

    def __init__(self, count: int) -> None:
        self._of = f" of {count}" if count else ""
        self._shown = ""
        self._terminal = on_terminal()
        self._began = time.monotonic()

    def show(self, answered: int) -> None:
        text = f"compat: {answered}{self._of} nodes have answered ({time.monotonic() - self._began:.0f} s)"
        if self._terminal and text != self._shown:
            complain(f"\r{text}\x1b[K", end="")
            self._shown = text

    def clear(self) -> None:
        if self._shown:
            complain("\r\x1b[K", end="")


_READY = ("idle", "mix", "mixed")


def _place(options: Options, wanted: tuple[str, ...]) -> tuple[str, dict[str, str], dict[str, str], int | None] | None:
    """The partition to use, states and addresses of its nodes (those ``wanted``, else all), and its time limit in minutes.

    That is the one asked for, else the default one, or the first that has every node. ``None`` if ``sinfo`` tells nothing, and
    :class:`InputError` if no partition has all of the nodes.
    """
    sinfo = shutil.which("sinfo")
    if sinfo is None:
        return None
    command = [sinfo, "--noheader", "--Node", "--format=%N %t %P %l %o"]
    command += [f"--partition={options.one('partition')}"] if options.flag("partition") else []
    try:
        jobs = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found: dict[str, dict[str, str]] = {}
    limits: dict[str, int | None] = {}
    addresses: dict[str, str] = {}
    default = None
    for name, state, partition, limit, address in (line.split() for line in jobs.splitlines() if len(line.split()) == 5):
        addresses[name] = address
        default = partition[:-1] if partition.endswith("*") else default
        found.setdefault(partition.rstrip("*"), {})[name] = state
        limits[partition.rstrip("*")] = _minutes(limit)
    if not found:
        return None
    order = sorted(found, key=lambda partition: partition != default)
    fitting = [partition for partition in order if found[partition].keys() >= set(wanted)]
    if not fitting:
        raise InputError(f"--nodelist: no partition of Slurm has all of {host_ranges(wanted)}")
    states = found[fitting[0]]
    return fitting[0], {name: states[name] for name in wanted or states}, addresses, limits[fitting[0]]


def _minutes(limit: str) -> int | None:
    """``1-00:00:00``, ``2:30:00`` and ``10:00`` in whole minutes; ``None`` for ``infinite``."""
    days, _, clock = limit.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdecimal() for part in (*parts, days or "0")):
        return None
    hours, minutes, _ = map(int, ["0", "0", *parts][-3:])
    return max(1, (int(days or 0) * 24 + hours) * 60 + minutes)


def gather_ray(folder: str, options: Options, seconds: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Run one task on every node that Ray reports alive, writing each answer as it arrives. Returns the names of the others.

    Raises :class:`InputError` if ``ray`` is not installed and :class:`Undecided` without a cluster.
    """
    try:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
    except ModuleNotFoundError:
        raise InputError("--ray: ray is not installed in this environment") from None
    address = options.one("address") or os.environ.get("RAY_ADDRESS") or "auto"
    if address != "auto":
        _try_address(address, seconds)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    except Exception as problem:  # Ray also raises plain ones if the node it attaches to is shutting down
        reason = str(problem).partition("\n")[0] or type(problem).__name__
        raise Undecided(f"Ray: no cluster was reached ({reason})") from None
    silent = []
    try:
        nodes = {each["NodeID"]: each for each in ray.nodes() if each.get("Alive")}
        probing = _probing(options, seconds, next((str(each["NodeManagerAddress"]) for each in nodes.values()), ""), len(nodes))
        names = {
            identity: str(each.get("NodeName") or each.get("NodeManagerHostname") or identity)
            for identity, each in nodes.items()
        }
        hosts = Counter(each.get("NodeManagerHostname") for each in nodes.values())
        task = ray.remote(num_cpus=0, max_retries=0)(facts_here)
        waiting: dict[object, str] = {}
        for identity in nodes:
            there = NodeAffinitySchedulingStrategy(node_id=identity, soft=False)
            waiting[task.options(scheduling_strategy=there).remote(seconds, probing)] = identity
        end, progress = time.monotonic() + seconds, Progress(len(nodes))
        while waiting:
            progress.show(len(nodes) - len(waiting))
            left = end - time.monotonic()
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=max(0.0, min(left, 1.0)))
            if not ready and left > 0:
                continue
            progress.clear()
            if not ready:
                break
            for each in ready:
                identity = waiting.pop(each)
                try:
                    shared = hosts[nodes[identity].get("NodeManagerHostname")] > 1
                    _keep(folder, identity, ray.get(each), names[identity] if shared else None)
                except Exception as problem:
                    first = (str(problem).strip().splitlines() or [type(problem).__name__])[-1]
                    silent.append(names[identity])
                    complain(f"compat: {printable(names[identity])} could not be read: {printable(first[:200])}")
        for identity in waiting.values():
            silent.append(names[identity])
            complain(f"compat: {printable(names[identity])} did not answer within {seconds} s")
    finally:
        ray.shutdown()
    return (), tuple(silent)


def _try_address(address: str, seconds: int) -> None:
    """Connect in another process, as ``ray.init`` keeps trying and cannot be interrupted; :class:`Undecided` if it fails."""
    connecting = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='CRITICAL')"
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", connecting, address], capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise Undecided(f"Ray: no cluster was reached at {printable(address)} within {seconds} s") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise Undecided(f"Ray: no cluster was reached at {printable(address)} ({printable(reason[:200])})")


def facts_here(seconds: int, probing: list[str]) -> str:
    """Run ``compat facts --output`` on this node with the current interpreter, and return the text of the file."""
    # Ray hides a node's devices from tasks that do not request any
    variables = {name: value for name, value in os.environ.items() if value or not name.endswith("VISIBLE_DEVICES")}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-I", "-m", "compat", "facts", "--output", folder, *probing], capture_output=True, text=True,
            timeout=seconds, check=False, env=variables,
        )  # fmt: skip
        names = os.listdir(folder)
        if not names:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}")
        with open(os.path.join(folder, names[0]), encoding="utf-8") as file:
            return file.read()


def _keep(folder: str, identity: str, text: str, name: str | None) -> None:
    """Write a node's answer under Ray's identity of it. ``name`` is what Ray calls it, if several nodes share the host."""
    path = os.path.join(folder, f"{identity[:40]}.json")
    if name is not None:
        described = json.loads(text)
        described[KEY]["host"] = name
        text = to_json(described)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.part", path)


def timeout_of(options: Options) -> int:
    """Return the time limit per node in whole seconds; raises :class:`InputError` for an invalid ``--timeout``."""
    text = options.one("timeout") or str(_TIMEOUT)
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= 86_400:
        raise InputError(f"--timeout: expected whole seconds, not {text!r}")
    return int(text)
