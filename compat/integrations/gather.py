"""Described environments from all nodes, through the scheduler (``srun`` or Ray). Nothing is installed on the nodes.

The interpreter running here must be able to import compat on the nodes, as on a shared file system, which the job
itself needs too. A node that does not answer in time is left out and reported; an older file of it in the folder is not
used instead.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from compat.api.fleet import Gathered, expand, ranged
from compat.errors import InputError, Undecided, printable

if TYPE_CHECKING:
    from compat.api.commands import Options

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
        with contextlib.redirect_stdout(sys.stderr):  # Ray prints there that a node died, between the lines of the report
            hosts, silent = gather_ray(folder, options, seconds)
    after = _files(folder)
    old = frozenset(name for name, identity in before.items() if after.get(name) == identity)
    if not after.keys() - old:
        raise Undecided(f"no node answered ({', '.join(silent[:5]) or chosen[0]})")
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
    hosts, silent = tuple(expand(given, "--nodelist")) if given else (), []
    command = [srun, "--ntasks-per-node=1", "--overlap", "--kill-on-bad-exit=0", f"--time={max(1, -(-seconds // 60))}"]
    command += [f"--partition={options.one('partition')}"] if options.flag("partition") else []
    if not inside:
        states = _states(options)
        if states:
            hosts = tuple(name for name, state in states.items() if state in _READY)
            silent = [name for name in states if name not in hosts]
            for name in silent:
                print(
                    f"compat: {printable(name)} is not asked: its state in Slurm is {printable(states[name])}", file=sys.stderr
                )
            if not hosts:
                raise Undecided("--slurm: no node is idle or has room")
        command.append(f"--immediate={seconds}")  # do not wait for a node that has become busy
    if hosts:
        command += [f"--nodelist={ranged(hosts)}", f"--nodes={len(hosts)}"]
    command += [sys.executable, "-I", "-m", "compat", "facts", "--output", os.path.abspath(folder)]
    command += _probing(options, seconds, hosts[0] if hosts else "", len(hosts))
    print(f"compat: gathering with srun from {len(hosts) or 1} nodes (at most {seconds} s)", file=sys.stderr)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=seconds + 30,
                              check=False)  # fmt: skip
        _said(done.stderr)
    except subprocess.TimeoutExpired as late:
        _said(late.stderr.decode("utf-8", "replace") if isinstance(late.stderr, bytes) else late.stderr or "")
        print(f"compat: srun did not finish within {seconds + 30} s: using the files written so far", file=sys.stderr)
    return hosts, tuple(silent)


_READY = ("idle", "mix", "mixed")


def _states(options: Options) -> dict[str, str]:
    """Return the nodes of ``--nodelist`` and ``--partition`` with their ``sinfo`` states; empty if it reports none."""
    sinfo = shutil.which("sinfo")
    if sinfo is None:
        return {}
    command = [sinfo, "--noheader", "--Node", "--format=%N %t"]
    command += [f"--partition={options.one('partition')}"] if options.flag("partition") else []
    command += [f"--nodes={options.one('nodelist')}"] if options.flag("nodelist") else []
    try:
        said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    rows = [line.split() for line in said.splitlines()]
    return {row[0]: row[1] for row in rows if len(row) == 2}


def _said(text: str) -> None:
    """Print srun's messages once each, without compat's own notes from the nodes."""
    for line in dict.fromkeys(text.splitlines()):
        if line.strip() and not line.startswith("compat: note:"):
            print(f"compat: srun: {printable(line)}", file=sys.stderr)


def gather_ray(folder: str, options: Options, seconds: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Run one task on every node that Ray reports alive, writing each answer as it arrives. Returns the names of the others.

    Raises :class:`InputError` if ``ray`` is not installed and :class:`Undecided` without a cluster.
    """
    try:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
    except ModuleNotFoundError:
        raise InputError("--ray: ray is not installed in this environment") from None
    try:
        ray.init(address=options.one("address") or "auto", log_to_driver=False, logging_level="ERROR", configure_logging=False)
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
        task = ray.remote(num_cpus=0, max_retries=0)(facts_here)
        waiting: dict[object, str] = {}
        for identity in nodes:
            there = NodeAffinitySchedulingStrategy(node_id=identity, soft=False)
            waiting[task.options(scheduling_strategy=there).remote(seconds, probing)] = identity
        end = time.monotonic() + seconds
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=max(0.0, end - time.monotonic()))
            if not ready:
                break
            for each in ready:
                identity = waiting.pop(each)
                try:
                    _keep(folder, identity, ray.get(each))
                except Exception as problem:
                    first = (str(problem).strip().splitlines() or [type(problem).__name__])[-1]
                    silent.append(names[identity])
                    print(f"compat: {printable(names[identity])} could not be read: {printable(first[:200])}", file=sys.stderr)
        for identity in waiting.values():
            silent.append(names[identity])
            print(f"compat: {printable(names[identity])} did not answer within {seconds} s", file=sys.stderr)
    finally:
        ray.shutdown()
    return (), tuple(silent)


def facts_here(seconds: int, probing: list[str]) -> str:
    """Run ``compat facts --output`` on this node with the current interpreter, and return the text of the file."""
    import tempfile

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


def _keep(folder: str, identity: str, text: str) -> None:
    """Write a node's answer under Ray's name for the node, since several nodes of a cluster may share a host."""
    path = os.path.join(folder, f"{identity[:40]}.json")
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.part", path)


def timeout_of(options: Options) -> int:
    """Return the time limit per node in whole seconds; raises :class:`InputError` for an invalid ``--timeout``."""
    text = options.one("timeout") or str(_TIMEOUT)
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 86_400:
        raise InputError(f"--timeout: expected whole seconds, not {text!r}")
    return int(text)
