"""Described environments from all nodes, through the scheduler that is there: ``srun`` or Ray. Nothing is installed on them.

compat has to be importable on the nodes by the interpreter that runs here, as on a shared file system; that is what the job
itself needs, too. A node that does not answer in time is left out; which ones are missing is said afterwards.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from compat.errors import InputError, Undecided, printable

if TYPE_CHECKING:
    from compat.api.options import Options

_TIMEOUT = 120


def gather_slurm(folder: str, options: Options) -> None:
    """One task on every node, through ``srun``; the nodes of the current allocation, or those that the options name.

    Raises :class:`InputError` without ``srun`` and :class:`Undecided` where it cannot start anything. Tasks that fail on some
    nodes are reported on standard error; the others have written their files.
    """
    srun = shutil.which("srun")
    if srun is None:
        raise InputError("--slurm: srun is not on PATH")
    seconds = timeout_of(options)
    os.makedirs(folder, exist_ok=True)
    hosts = options.one("nodelist") or os.environ.get("SLURM_JOB_NODELIST")
    command = [srun, "--ntasks-per-node=1", "--overlap", "--kill-on-bad-exit=0", f"--time={max(1, -(-seconds // 60))}"]
    command += [f"--partition={options.one('partition')}"] if options.flag("partition") else []
    command += [f"--nodelist={hosts}"] if hosts else []
    if hosts:
        command.append(f"--nodes={len(_hostnames(hosts))}")
    command += [sys.executable, "-I", "-m", "compat", "facts", "--output", os.path.abspath(folder)]
    print(f"compat: gathering with srun (at most {seconds} s)", file=sys.stderr)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=seconds + 30,
                              check=False)  # fmt: skip
    except subprocess.TimeoutExpired as late:
        text = late.stderr.decode("utf-8", "replace") if isinstance(late.stderr, bytes) else late.stderr or ""
        _said(text)
        print(f"compat: srun did not end within {seconds + 30} s: what was written until then is judged", file=sys.stderr)
        return
    _said(done.stderr)
    if done.returncode and not any(name.endswith(".json") for name in os.listdir(folder)):
        raise Undecided(f"srun ended with exit code {done.returncode} and no node answered")


def _hostnames(hosts: str) -> list[str]:
    from compat.api.fleet import expand

    return expand(hosts)


def _said(text: str) -> None:
    """What srun said, without what compat notes on every node."""
    for line in dict.fromkeys(text.splitlines()):
        if line.strip() and not line.startswith("compat: note:"):
            print(f"compat: srun: {printable(line)}", file=sys.stderr)


def gather_ray(folder: str, options: Options) -> None:
    """One task on every node that Ray knows to be alive, written as each answers.

    Raises :class:`InputError` where ``ray`` is not installed and :class:`Undecided` where there is no cluster.
    """
    try:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
    except ModuleNotFoundError:
        raise InputError("--ray: ray is not installed in this environment") from None
    seconds = timeout_of(options)
    os.makedirs(folder, exist_ok=True)
    try:
        ray.init(address=options.one("address") or "auto", log_to_driver=False, logging_level="ERROR", configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError) as problem:
        reason = str(problem).partition("\n")[0] or type(problem).__name__
        raise Undecided(f"Ray: no cluster was reached ({reason})") from None
    try:
        nodes = {each["NodeID"]: each for each in ray.nodes() if each.get("Alive")}
        task = ray.remote(num_cpus=0, max_retries=0)(facts_here)
        waiting: dict[Any, str] = {}
        for identity in nodes:
            there = NodeAffinitySchedulingStrategy(node_id=identity, soft=False)
            waiting[task.options(scheduling_strategy=there).remote(seconds)] = identity
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
                    address = nodes[identity].get("NodeManagerHostname", identity)
                    print(f"compat: {printable(str(address))} could not be read: {printable(first[:200])}", file=sys.stderr)
        for identity in waiting.values():
            address = nodes[identity].get("NodeManagerHostname", identity)
            print(f"compat: {printable(str(address))} did not answer within {seconds} s", file=sys.stderr)
    finally:
        ray.shutdown()


def facts_here(seconds: int) -> str:
    """What ``compat facts --output`` writes on this node, run by the interpreter of this process."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-I", "-m", "compat", "facts", "--output", folder], capture_output=True, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
        names = os.listdir(folder)
        if not names:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}")
        with open(os.path.join(folder, names[0]), encoding="utf-8") as file:
            return file.read()


def _keep(folder: str, identity: str, text: str) -> None:
    """Writes what a node answered; the name is Ray's, as several nodes of one cluster may run on one host."""
    path = os.path.join(folder, f"{identity[:40]}.json")
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.part", path)


def timeout_of(options: Options) -> int:
    """Seconds that a node may take."""
    text = options.one("timeout") or str(_TIMEOUT)
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 86_400:
        raise InputError(f"--timeout: expected whole seconds, not {text!r}")
    return int(text)
