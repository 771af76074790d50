"""``python -m benchmarks.clean_probes --runs 1000``: runs of the probes on healthy hardware, each with numbers of its own.

Each run is a process as ``compat probe`` starts it; with ``--in-process`` all runs share one, which spares the import of torch.
Every run that raises anything is printed in full; the last line counts runs, probes and false alarms, and the exit code is 1
where there was one.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial

from compat.model import Environment
from compat.probe.request import FAILED, PASSED, ProbeResult, Request
from compat.probe.session import probe


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--depth", default="quick", choices=("quick", "normal", "thorough"))
    parser.add_argument("--in-process", action="store_true", help="matmul, rotary and attention, all runs in this process")
    parser.add_argument("--only", default="", help="groups, such as matmul,rotary")
    parser.add_argument("--python", default=sys.executable)
    given = parser.parse_args()
    only = tuple(filter(None, given.only.split(",")))
    environment = _environment(given.python) if given.device != "cpu" else Environment(accelerators=())
    began, probes, alarms = time.monotonic(), 0, 0
    results_of = _in_process if given.in_process else partial(_whole, environment)
    for run in range(given.runs):
        request = Request(
            python=given.python, device=given.device, only=only, depth=given.depth, limit=600.0, seed=given.first + run
        )
        for result in results_of(request):
            probes += result.status == PASSED
            if result.status == FAILED:
                alarms += 1
                print(f"run {run}, seed {request.seed}: {result.to_json()}", flush=True)
        if (run + 1) % 50 == 0:
            print(f"{run + 1} runs, {probes} probes passed, {alarms} false alarms", flush=True)
    seconds = time.monotonic() - began
    print(f"{given.runs} {given.depth} runs on {given.device}: {probes} probes passed, {alarms} false alarms, {seconds:.0f} s")
    return 1 if alarms else 0


def _whole(environment: Environment, request: Request) -> tuple[ProbeResult, ...]:
    return probe(request, environment).results


def _in_process(request: Request) -> tuple[ProbeResult, ...]:
    """Run the numeric groups in this process, through the modules that the child process runs."""
    from compat.probe.child import attention, matmul, rotary
    from compat.probe.child.job import Job

    job = Job({"device": request.device, "depth": request.depth, "seed": request.seed, "results": "", "peaks": []})
    found = []
    for group, module in (("matmul", matmul), ("rotary", rotary), ("attention", attention)):
        for name, call in module.probes(job):
            verdict = Job.verdict(call)
            found.append(ProbeResult(f"{group}/{name}", request.device, verdict["status"], verdict["why"], verdict["measured"]))
    return tuple(found)


def _environment(python: str) -> Environment:
    from compat.api.machine import read_machine
    from compat.rules.compiled import open_matrix

    return read_machine(python, open_matrix(())).environment


if __name__ == "__main__":
    sys.exit(main())
