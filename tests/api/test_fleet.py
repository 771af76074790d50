"""``compat fleet``: groups of nodes, what differs between them, and files that somebody else wrote."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.api.fleet import Fleet, expand, judge_fleet, ranged, read_fleet
from compat.api.options import Options
from compat.errors import InputError
from compat.rules.compiled import open_matrix

Run = Callable[..., "subprocess.CompletedProcess[str]"]
A100 = {"vendor": "nvidia", "name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}
STACK = {"torch": "2.6.0", "transformers": "4.57.1", "trl": "0.24.0", "nvidia-nccl-cu12": "2.21.5"}


def node(folder: Path, host: str, facts: dict[str, Any] | None = None, **changes: Any) -> Path:
    """One described node; ``changes`` are keys of the environment, or releases of the stack as ``stack``."""
    stack = {**STACK, **changes.pop("stack", {})}
    document = {
        "schema": "compat/environment/1", "python": "3.11.9", "os": "linux", "machine": "x86_64", "driver": "550.54.15",
        "distributions": [{"name": name, "version": version} for name, version in stack.items() if version],
        "distributions_complete": True, "accelerators": [A100] * 8, "variables": {}, **changes,
        "node": {"host": host, "clock": 1_800_000_000.0, "interfaces": [{"name": "ib0", "kind": "infiniband", "speed": None}],
                 "rdma": [{"device": "mlx5_0:1", "link": "InfiniBand", "active": True, "rate": "200 Gb/sec"}],
                 "memlock": -1, "container": "", "files": "aa", **(facts or {})},
    }  # fmt: skip
    path = folder / f"{host.replace('/', '_')[:60]}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def fleet(folder: Path, **values: str) -> Fleet:
    return judge_fleet(
        str(folder), Options(command="fleet", values={k: [v] for k, v in values.items()}, operands=(), rest=None), open_matrix()
    )


def test_nodes_that_are_alike_are_one_group_without_a_difference(tmp_path: Path) -> None:
    for number in range(4):
        node(tmp_path, f"node{number}")
    read = fleet(tmp_path)
    assert [len(each.group.nodes) for each in read.groups] == [4]
    assert read.differences == ()
    assert read.missing == ()


@pytest.mark.parametrize(
    ("change", "rule", "severity"),
    [
        ({"stack": {"nvidia-nccl-cu12": "2.20.5"}}, "fleet-nccl", "error"),
        ({"stack": {"torch": "2.6.0+cu118"}}, "fleet-torch", "error"),
        ({"stack": {"transformers": "4.57.0"}}, "fleet-package-transformers", "warning"),
        ({"stack": {"vllm": "0.8.5"}}, "fleet-package-vllm", "warning"),
        ({"python": "3.12.3"}, "fleet-python", "error"),
        ({"driver": "535.10"}, "fleet-driver", "warning"),
        ({"driver": "550.90.07"}, "fleet-driver", "info"),
        ({"accelerators": [A100] * 7}, "fleet-gpu-count", "warning"),
        ({"accelerators": [{**A100, "name": "NVIDIA H100"}] * 8}, "fleet-gpu-kind", "warning"),
        ({"variables": {"NCCL_P2P_DISABLE": "1"}}, "fleet-variable-nccl-p2p-disable", "warning"),
        ({"facts": {"rdma": []}}, "fleet-rdma", "warning"),
        ({"facts": {"memlock": 65536}}, "fleet-memlock", "warning"),
        ({"facts": {"container": "image:2"}}, "fleet-container", "warning"),
        ({"facts": {"files": "bb"}}, "fleet-files", "warning"),
        ({"facts": {"clock": 1_800_009_000.0}}, "fleet-clock", "warning"),
    ],
)
def test_what_differs_is_found_and_names_the_odd_node(tmp_path: Path, change: dict[str, Any], rule: str, severity: str) -> None:
    for number in range(3):
        node(tmp_path, f"node{number}")
    node(tmp_path, "node3", **change)
    found = {finding.rule: finding for finding in fleet(tmp_path).differences}
    assert set(found) == {rule}
    assert (found[rule].severity, found[rule].origin) == (severity, "fleet")
    assert "on node3" in found[rule].here
    assert found[rule].fixes


def test_an_unknown_value_is_no_difference(tmp_path: Path) -> None:
    node(tmp_path, "node0")
    node(tmp_path, "node1", driver=None, accelerators=None, variables=None, facts={"files": None, "rdma": None})
    assert fleet(tmp_path).differences == ()


def test_an_interface_that_a_node_does_not_have(tmp_path: Path) -> None:
    for number, name in enumerate(("ib0", "ib0", "eth0")):
        facts = {"interfaces": [{"name": name, "kind": "ethernet", "speed": 1000}]}
        node(tmp_path, f"node{number}", facts, variables={"NCCL_SOCKET_IFNAME": "ib"})
    (finding,) = fleet(tmp_path).differences
    assert finding.rule == "fleet-interface"
    assert finding.here == "NCCL_SOCKET_IFNAME=ib, there is eth0 on node2"


def test_each_distinct_environment_is_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from compat.api import fleet as module

    for number in range(30):
        node(tmp_path, f"node{number:02d}", stack={"trl": "0.24.0" if number else "0.14.0", "vllm": "0.7.1"})
    judged = []
    report = module.machine_report
    monkeypatch.setattr(module, "machine_report", lambda *words: judged.append(1) or report(*words))
    read = fleet(tmp_path, task="grpo", features="vllm")
    assert len(judged) == 2
    odd = next(each for each in read.groups if each.group.hosts == ("node00",))
    assert "trl-grpo-vllm-below-0-7-2" in [finding.rule for finding in odd.report.findings]


def test_nodes_that_did_not_answer_are_named(tmp_path: Path, compat: Run) -> None:
    node(tmp_path, "node01")
    node(tmp_path, "node02.cluster.example")
    assert fleet(tmp_path, expect="node[01-04]").missing == ("node03", "node04")
    done = compat("fleet", tmp_path, "--expect", "node[01,03-04]")
    assert done.returncode == 3
    assert "2 did not answer: node[03-04]" in done.stdout


HOSTILE = "x\n::stop-commands::\x1b[31m" + "y" * 5000


def test_bad_files_are_named_and_the_others_judged(tmp_path: Path, compat: Run) -> None:
    node(tmp_path, "node1")
    node(tmp_path, "a", {"host": HOSTILE})
    (tmp_path / "half.json").write_text('{"schema": "compat/env', encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    (tmp_path / "nobody.json").write_text('{"schema": "compat/environment/1"}', encoding="utf-8")
    (tmp_path / "other.json").write_text('{"schema": "compat/environment/9", "node": {"host": "n"}}', encoding="utf-8")
    (tmp_path / "typed.json").write_text('{"node": {"host": "n", "clock": "now"}}', encoding="utf-8")
    os.mkfifo(tmp_path / "pipe.json")
    groups, problems, _ = read_fleet(str(tmp_path))
    assert sum(len(group.nodes) for group in groups) == 2
    assert len(problems) == 6
    done = compat("fleet", tmp_path)
    assert done.returncode in (1, 2)
    assert "\x1b" not in done.stdout + done.stderr
    assert not [line for line in done.stdout.splitlines() if line.startswith("::")]
    document = json.loads(compat("fleet", tmp_path, "--format", "json").stdout)
    assert document["schema"] == "compat/fleet/1"
    assert len(document["problems"]) == 6


@pytest.mark.parametrize("words", [("fleet",), ("fleet", "missing"), ("fleet", "."), ("fleet", ".", "--expect", "n[9-")])
def test_a_call_that_cannot_be_used(tmp_path: Path, compat: Run, words: tuple[str, ...]) -> None:
    if len(words) > 2:
        node(tmp_path, "node1")
    done = compat(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_machine_writes_itself_as_a_node(tmp_path: Path, compat: Run) -> None:
    done = compat("facts", "--output", tmp_path / "nodes", SLURMD_NODENAME="../gpu/7")
    assert done.returncode == 0
    assert done.stdout == ""
    (path,) = (tmp_path / "nodes").iterdir()
    written = json.loads(path.read_text(encoding="utf-8"))
    assert path.name == "_gpu_7.json"
    assert written["node"]["host"] == "../gpu/7"
    assert written["distributions_complete"] is True
    assert compat("fleet", tmp_path / "nodes").returncode in (0, 1)


def test_srun_is_asked_for_one_task_on_each_node(tmp_path: Path, compat: Run) -> None:
    """A stand-in for srun that starts the task once for each node it is given, one of which fails."""
    program = tmp_path / "bin" / "srun"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nprintf \'%s\\n\' "$@" > "$LOG"\nwhile [ "${1#--}" != "$1" ]; do shift; done\n'
        "for host in n1 n2; do SLURMD_NODENAME=$host \"$@\"; done\necho 'srun: error: n3: task 2: Exited' >&2\nexit 1\n",
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    variables = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "LOG": str(tmp_path / "log")}
    words = ("fleet", tmp_path / "nodes", "--slurm", "--nodelist", "n[1-3]", "--partition", "gpu", "--expect", "n[1-3]")
    done = compat(*words, **variables)
    log = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert {"--ntasks-per-node=1", "--nodelist=n[1-3]", "--nodes=3", "--partition=gpu"} <= set(log)
    assert sorted(path.name for path in (tmp_path / "nodes").iterdir()) == ["n1.json", "n2.json"]
    assert "compat: srun: srun: error: n3: task 2: Exited" in done.stderr
    assert "1 did not answer: n3" in done.stdout
    assert done.returncode in (1, 3)


@given(st.lists(st.from_regex(r"[a-z][a-z-]{0,5}[0-9]{0,4}", fullmatch=True), min_size=1, max_size=40, unique=True))
def test_ranges_of_hosts_are_read_as_they_are_written(hosts: list[str]) -> None:
    assert sorted(expand(ranged(hosts))) == sorted(hosts)


@pytest.mark.parametrize("text", ["n[1-2", "n[a-b]", "n[1-999999999]", "n[1-2]x", "n[]"])
def test_a_range_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--expect"):
        expand(text)
