"""``compat fleet``: groups of nodes, what differs between them, and files that somebody else wrote."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.api.commands import Options
from compat.api.fleet import Fleet, expand_hosts, host_ranges, judge_fleet, read_fleet
from compat.checks import check_environment
from compat.checks.fleet import compare
from compat.errors import InputError
from compat.output.fleet import fleet_text
from compat.rules.compiled import open_matrix
from compat.rules.evaluate import Answers

Run = Callable[..., "subprocess.CompletedProcess[str]"]
A100 = {"vendor": "nvidia", "name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}
STACK = {"torch": "2.6.0", "transformers": "4.57.1", "trl": "0.24.0", "nvidia-nccl-cu12": "2.21.5"}


def node(folder: Path, host: str, facts: dict[str, Any] | None = None, **changes: Any) -> Path:
    """One described node; ``changes`` are keys of the environment, or releases of the stack as ``stack``."""
    stack = {**STACK, **changes.pop("stack", {})}
    document = {
        "schema": "compat/environment/1", "python": "3.11.9", "os": "linux", "machine": "x86_64", "driver": "550.54.15", "cuda_toolkit": "12.4",
        "distributions": [{"name": name, "version": version} for name, version in stack.items() if version],
        "distributions_complete": True, "accelerators": [A100] * 8, "variables": {}, **changes,
        "node": {"host": host, "clock": 1_800_000_000.0, "interfaces": [{"name": "ib0", "kind": "infiniband", "speed": 200_000}],
                 "rdma": [{"device": "mlx5_0:1", "link": "InfiniBand", "active": True, "rate": "200 Gb/sec"}],
                 "memlock": -1, "hugepages": 0, "container": "", "files": "aa", **(facts or {})},
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


def test_the_summary_claims_nothing_about_nodes_that_were_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    assert fleet_text(fleet(tmp_path), host_ranges).splitlines()[-1] == "  No node could be read."
    node(tmp_path, "node1")
    assert fleet_text(fleet(tmp_path), host_ranges).splitlines()[-1] == "  No known problems found in what could be read."
    node(tmp_path, "node2")
    assert fleet_text(fleet(tmp_path), host_ranges).splitlines()[-1].endswith("in what could be read, and the nodes are alike.")


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
        ({"facts": {"interfaces": [{"name": "ib0", "kind": "infiniband", "speed": 1000}]}}, "fleet-network", "warning"),
        ({"facts": {"memlock": 65536}}, "fleet-memlock", "warning"),
        ({"facts": {"container": "image:2"}}, "fleet-container", "warning"),
        ({"facts": {"files": "bb"}}, "fleet-files", "warning"),
        ({"facts": {"clock": 1_800_009_000.0}}, "fleet-clock", "warning"),
        ({"facts": {"hugepages": 1024}}, "fleet-hugepages", "info"),
        ({"stack": {"torch": "2.6.0+cpu"}}, "fleet-torch", "error"),
        ({"cuda_toolkit": "11.8"}, "fleet-toolkit", "info"),
        ({"variables": {"UCX_TLS": "tcp"}}, "fleet-variable-ucx-tls", "warning"),
        ({"variables": {"NCCL_SOCKET_IFNAME": "ib0"}}, "fleet-variable-nccl-socket-ifname", "warning"),
        ({"variables": {"CUDA_VISIBLE_DEVICES": "0,1"}}, "fleet-gpu-count", "warning"),
        ({"accelerators": [{**A100, "name": "NVIDIA A100-SXM4-80GB MIG 1g.10gb"}] * 8}, "fleet-gpu-kind", "warning"),
        ({"accelerators": []}, "fleet-gpu-count", "warning"),
        ({"accelerators": [], "driver": None, "facts": {"container": "image:1"}}, "fleet-gpu-count", "warning"),
    ],
)
def test_what_differs_is_found_and_names_the_odd_node(tmp_path: Path, change: dict[str, Any], rule: str, severity: str) -> None:
    for number in range(3):
        node(tmp_path, f"node{number}")
    node(tmp_path, "node3", **change)
    found = {finding.rule: finding for finding in fleet(tmp_path).differences}
    found.pop("fleet-container", None) if rule != "fleet-container" else None
    assert set(found) == {rule}
    assert (found[rule].severity, found[rule].origin) == (severity, "fleet")
    assert "on node3" in found[rule].here
    assert found[rule].fixes


@pytest.mark.parametrize(
    "change",
    [
        {"stack": {"torch": "2.6.0+cu124"}},  # the default build of the index, by its label
        {"variables": {"NCCL_DEBUG": "INFO", "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}},
        {"accelerators": [], "driver": None},  # a login node with the shared environment
        {"accelerators": [], "driver": None, "stack": {"torch": "2.6.0+cpu", "nvidia-nccl-cu12": None, "triton": None},
         "facts": {"rdma": [], "interfaces": [{"name": "eth0", "kind": "ethernet", "speed": 1000}], "hugepages": 8}},
        {"variables": {"NCCL_SOCKET_IFNAME": "eth"}, "facts": {"interfaces": [{"name": "eth0", "kind": "ethernet", "speed": 200_000}]}},
        {"stack": {"einops": "0.8.0"}, "facts": {"files": "bb"}},  # another environment has other files
        {"stack": {"nvidia-nccl-cu12": "2.21.6"}},
        {"python": "3.11.2"},
        {"glibc": "2.28", "platform": "wsl"},
        {"facts": {"clock": 1_800_000_500.0}},
    ],
)  # fmt: skip
def test_a_set_of_nodes_that_works_together_has_no_difference(tmp_path: Path, change: dict[str, Any]) -> None:
    for number in range(3):
        node(tmp_path, f"gpu{number}")
    node(tmp_path, "login", **change)
    assert fleet(tmp_path).differences == ()


@pytest.mark.parametrize(
    ("change", "command"),
    [
        ({"stack": {"torch": "2.5.1"}},
         'pip install "torch==2.6.0+cu124" --index-url https://download.pytorch.org/whl/cu124'),
        ({"stack": {"nvidia-nccl-cu12": "2.20.5"}}, 'pip install "nvidia-nccl-cu12==2.21.*"'),
        ({"stack": {"trl": "0.14.0"}}, 'pip install "trl==0.24.0"'),
        ({"stack": {"vllm": "0.8.5"}}, "pip uninstall -y vllm"),
        ({"variables": {"NCCL_ALGO": "Ring"}}, "unset NCCL_ALGO"),
        ({"facts": {"memlock": 65536}}, "ulimit -l unlimited"),
    ],
)  # fmt: skip
def test_the_command_gives_the_odd_node_what_the_others_have(tmp_path: Path, change: dict[str, Any], command: str) -> None:
    for number in range(3):
        node(tmp_path, f"node{number}")
    node(tmp_path, "node3", **change)
    (finding,) = fleet(tmp_path).differences
    assert [fix.command for fix in finding.fixes] == [command]


def test_a_package_that_every_second_node_lacks_is_installed(tmp_path: Path) -> None:
    node(tmp_path, "a", stack={"vllm": "0.8.5"})
    node(tmp_path, "b")
    (finding,) = fleet(tmp_path).differences
    assert (finding.here, finding.fixes[0].command) == ("absent on b; 0.8.5 on a", 'pip install "vllm==0.8.5"')


def test_nodes_of_two_architectures(tmp_path: Path) -> None:
    for number in range(3):
        node(tmp_path, f"node{number}")
    node(
        tmp_path, "gh200", machine="aarch64", accelerators=[{"vendor": "nvidia", "name": "GH200", "compute_capability": "9.0"}]
    )
    found = {finding.rule: finding.here for finding in fleet(tmp_path).differences}
    assert found["fleet-machine"] == "aarch64 on gh200; x86_64 on node[0-2]"
    assert found["fleet-torch"] == "2.6.0+cpu on gh200; 2.6.0+cu124 on node[0-2]"  # the index has no other for it
    assert found["fleet-gpu-kind"].startswith("GH200 on gh200")


def test_files_are_compared_where_the_same_releases_are_installed(tmp_path: Path) -> None:
    for number in range(4):
        node(tmp_path, f"a{number}", {"files": "broken" if number == 3 else "aa"})
        node(tmp_path, f"b{number}", {"files": "bb"}, stack={"einops": "0.8.0"})
    (finding,) = fleet(tmp_path).differences
    assert (finding.rule, finding.here) == ("fleet-files", "files broken on a3; files aa on a[0-2]")


def test_one_screen_shows_any_number_of_nodes_with_what_is_odd_first(tmp_path: Path) -> None:
    for number in range(300):  # every one another driver, with an error, and other releases
        stack = {"einops": f"0.{number}", "torch": "2.6.0" if number % 3 else "2.7.0"}
        node(tmp_path, f"node{number:04d}", driver=f"520.{number}", stack=stack)
    for number in range(300, 340):
        node(tmp_path, f"node{number:04d}")
    lines = fleet_text(fleet(tmp_path), host_ranges).splitlines()
    assert len(lines) < 140
    assert max(map(len, lines)) < 160
    assert lines[0] == "  340 nodes in 301 groups of the same environment"
    assert lines[2].split() == ["group", "1", "40", "nodes:", "node[0300-0339]"]
    assert lines[6] == "  group 2   1 node: node0000"
    assert lines[7].strip() == "driver 520.0 instead of 550.54.15, torch 2.7.0 instead of 2.6.0,"
    signs = [line.strip()[0] for line in lines if line.startswith(("  ✗ ", "  ! ", "  · "))]
    assert signs == sorted(signs, key="✗!·".index)


def test_an_interface_of_gloo_is_named_in_full(tmp_path: Path) -> None:
    for number, name in enumerate(("ib0", "ib00")):
        facts = {"interfaces": [{"name": name, "kind": "ethernet", "speed": 1000}]}
        node(tmp_path, f"node{number}", facts, variables={"GLOO_SOCKET_IFNAME": "ib0"})
    (finding,) = fleet(tmp_path).differences
    assert (finding.rule, finding.here) == ("fleet-gloo-interface", "GLOO_SOCKET_IFNAME=ib0, there is ib00 on node1")


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
    monkeypatch.setattr(module, "machine_report", lambda *words, **more: judged.append(1) or report(*words, **more))
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
    launched = {"RANK": "3", "LOCAL_RANK": "0", "WORLD_SIZE": "4"}
    done = compat("facts", "--output", tmp_path / "nodes", SLURMD_NODENAME="../gpu/7", UCX_TLS="tcp", **launched)
    assert done.returncode == 0
    assert done.stdout == ""
    (path,) = (tmp_path / "nodes").iterdir()
    written = json.loads(path.read_text(encoding="utf-8"))
    assert path.name == "_gpu_7.json"
    assert written["node"]["host"] == "../gpu/7"
    assert written["distributions_complete"] is True
    assert written["variables"]["UCX_TLS"] == "tcp"
    assert launched.keys().isdisjoint(written["variables"])  # otherwise each node would be an environment of its own
    assert compat("fleet", tmp_path / "nodes").returncode in (0, 1)


def slurm(folder: Path) -> dict[str, str]:
    """Stand-ins: sinfo knows of four nodes, one of them drained; srun starts the task on two of the others, and one fails."""
    programs = {
        "sinfo": "printf 'n9 idle small 1:00:00 n9\\n%s' \"$(for each in n1=idle n2=idle n3=mix n4=drain; do "
        'printf "${each%=*} ${each#*=} gpu* 1:00 10.0.0.${each#n}\\n"; done)"',
        "srun": 'printf \'%s\\n\' "$@" > "$LOG"\nwhile [ "${1#--}" != "$1" ]; do shift; done\n'
        'for host in n1 n2; do SLURM_NTASKS=3 SLURMD_NODENAME=$host "$@" || true; done\n'
        "echo 'srun: error: n3: task 2: Exited' >&2\nexit 1",
    }
    (folder / "bin").mkdir()
    for name, text in programs.items():
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "LOG": str(folder / "log"), "SLURM_JOB_NODELIST": ""}


def test_srun_is_asked_for_one_task_on_each_node_that_is_there(tmp_path: Path, compat: Run) -> None:
    variables = slurm(tmp_path)
    (tmp_path / "nodes").mkdir()
    node(tmp_path / "nodes", "n3", driver="470.1")  # what it said last week
    done = compat("fleet", tmp_path / "nodes", "--slurm", "--format", "json", **variables)
    log = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert {"--ntasks-per-node=1", "--nodelist=n[1-3]", "--nodes=3", "--partition=gpu", "--immediate=120", "--time=1"} <= set(
        log
    )
    assert "compat: srun: error: n3: task 2: Exited" in done.stderr
    assert "n4 is not asked: its state in Slurm is drain" in done.stderr
    read = json.loads(done.stdout)
    assert [each["hosts"] for each in read["groups"]] == [["n1", "n2"]]
    assert "workload" not in read["groups"][0]["environment"]  # srun starts the gathering, not the job
    assert read["missing"] == ["n3", "n4"]
    assert any("n3.json" in note for note in read["notes"])
    assert done.returncode in (1, 3)


def test_a_task_that_hangs_is_stopped_at_the_limit(tmp_path: Path, compat: Run) -> None:
    variables = slurm(tmp_path)
    srun = tmp_path / "bin" / "srun"
    text = srun.read_text(encoding="utf-8").replace("exit 1", "trap 'echo given back >&2; exit 1' TERM; sleep 60 & wait")
    srun.write_text(text, encoding="utf-8")
    began = time.monotonic()
    done = compat("fleet", tmp_path / "nodes", "--slurm", "--timeout", "4", **variables)
    assert time.monotonic() - began < 30
    assert done.returncode in (1, 3)
    assert "compat: srun: given back" in done.stderr
    assert "srun did not finish within 4 s" in done.stderr
    assert "2 did not answer: n[3-4]" in done.stdout


def test_nodes_of_another_partition_than_the_default_one(tmp_path: Path, compat: Run) -> None:
    variables = slurm(tmp_path)
    done = compat("fleet", tmp_path / "nodes", "--slurm", "--nodelist", "n9", **variables)
    log = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert {"--partition=small", "--nodelist=n9"} <= set(log)
    assert "gathering with srun from 1 node (at most 120 s)" in done.stderr
    done = compat("fleet", tmp_path / "nodes", "--slurm", "--nodelist", "n[1,9]", **variables)
    assert (done.returncode, done.stderr) == (2, "compat: --nodelist: no partition of Slurm has all of n[1,9]\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--probe",), "--probe goes with --slurm or --ray"),
        (("--nodelist", "n1"), "--nodelist goes with --slurm"),
        (("--slurm", "--ray"), "give one or the other"),
        (("--slurm", "--nodelist", "n[1-"), "--nodelist: expected hosts"),
        (("--slurm", "--timeout", "soon"), "--timeout: expected whole seconds"),
    ],
)
def test_options_of_a_gathering_that_do_not_go_together(tmp_path: Path, compat: Run, words: tuple[str, ...], said: str) -> None:
    done = compat("fleet", tmp_path / "nodes", *words, **slurm(tmp_path))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert said in done.stderr


def probe(name: str, status: str = "passed", why: str = "", device: str = "cuda:0") -> dict[str, str]:
    return {"probe": name, "device": device, "status": status, "why": why}


def test_a_failed_probe_is_an_error_that_names_nodes_and_reasons(tmp_path: Path, compat: Run) -> None:
    good = [probe("nodes/collectives", why="nccl, 3 nodes, 24 processes"), probe("matmul/bf16")]
    node(tmp_path, "node0", {"probes": good})
    node(tmp_path, "node1", {"probes": [*good, probe("matmul/bf16", "failed", "element 3 is 7, not 8", "cuda:5")]})
    waits = [probe("nodes/collectives", "failed", "Connection closed by peer")]
    node(tmp_path, "node2", {"probes": waits})
    found = {finding.rule: finding for finding in fleet(tmp_path).differences}
    assert set(found) == {"fleet-probe-matmul-bf16", "fleet-probe-nodes-collectives"}
    assert found["fleet-probe-matmul-bf16"].here == "cuda:5: element 3 is 7, not 8 on node1"
    done = compat("fleet", tmp_path)
    assert done.returncode == 1
    assert "3 nodes: 4 passed, 2 failed, 0 could not run" in done.stdout
    assert "collectives between the nodes passed: nccl, 3 nodes, 24 processes" in done.stdout


@pytest.mark.parametrize("probes", [None, [probe("torch/import", "could-not-run", "no torch in /usr/bin/python")]])
def test_a_node_that_was_not_probed_leaves_it_undecided(tmp_path: Path, compat: Run, probes: list[Any] | None) -> None:
    node(tmp_path, "node1", {"probes": [probe("matmul/bf16")]})
    node(tmp_path, "node2", {"probes": probes})
    done = compat("fleet", tmp_path, "--fail-on", "never")
    assert done.returncode == 3
    assert "1 with incomplete probes: node2" in done.stdout


def test_clocks_are_held_against_the_time_of_the_gathering(tmp_path: Path) -> None:
    for number, clock in enumerate((1000.0, 1005.0, 1130.0)):
        node(tmp_path, f"node{number}", {"clock": clock})
    groups, _, _ = read_fleet(str(tmp_path))
    assert compare(groups, host_ranges) == ()
    (finding,) = compare(groups, host_ranges, (1000.0, 1010.0))
    assert (finding.rule, finding.here) == ("fleet-clock", "+120 s on node2")


@pytest.mark.parametrize(("form", "start"), [("markdown", "**1 error, 1 info.**"), ("html", "<!doctype html>")])
def test_other_forms_have_the_same_in_them_and_nothing_of_a_name_is_markup(
    tmp_path: Path, compat: Run, form: str, start: str
) -> None:
    node(tmp_path, "node1")
    node(tmp_path, "a|b<script>`x`", stack={"torch": "2.5.0"})
    done = compat("fleet", tmp_path, "--format", form)
    assert done.stdout.startswith(start)
    for text in ("2 nodes in 2 groups", "fleet-torch", "install the same environment on all nodes"):
        assert text in done.stdout
    assert "<script>" not in done.stdout.replace("\\<script\\>", "")
    assert done.returncode == 1


def test_the_job_that_is_about_to_start_is_judged_on_every_node(tmp_path: Path, compat: Run) -> None:
    node(tmp_path, "node1", stack={"trl": "0.14.0", "vllm": "0.7.1"})
    (tmp_path / "train.py").write_text(
        "from trl import GRPOConfig, GRPOTrainer\nGRPOTrainer(args=GRPOConfig(use_vllm=True))\n", encoding="utf-8"
    )
    done = compat("fleet", tmp_path, "--", "torchrun", "--nproc-per-node", "8", tmp_path / "train.py")
    assert "trl-grpo-vllm-below-0-7-2" in done.stdout
    assert "GRPOTrainer, torchrun, 8 processes" in " ".join(done.stdout.split())


@given(st.lists(st.from_regex(r"[a-z][a-z-]{0,5}[0-9]{0,4}", fullmatch=True), min_size=1, max_size=40, unique=True))
def test_ranges_of_hosts_are_read_as_they_are_written(hosts: list[str]) -> None:
    assert sorted(expand_hosts(host_ranges(hosts))) == sorted(hosts)


@pytest.mark.parametrize("text", ["n[1-2", "n[a-b]", "n[1-999999999]", "n[1-2]x", "n[]"])
def test_a_range_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--expect"):
        expand_hosts(text)


STACKS: list[dict[str, Any]] = [
    {},
    {"driver": "535.10"},
    {"python": "3.12.3"},
    {"machine": "aarch64"},
    {"accelerators": [{"vendor": "nvidia", "name": "NVIDIA RTX 5090", "compute_capability": "12.0"}]},
    {"accelerators": []},
    {"variables": {"NCCL_P2P_DISABLE": "1", "VLLM_USE_V1": "1"}},
    {"workload": {"task": "grpo", "features": ["vllm"]}},
    {"workload": {"task": "serve"}, "stack": {"vllm": "0.7.1"}},
    {"stack": {"vllm": "0.7.1", "trl": "0.14.0", "unsloth": "2025.1.5"}},
    {"stack": {"vllm": "0.7.1", "trl": "0.14.0", "unsloth": "2025.1.5", "transformers": "4.45.0"}},
    {"stack": {"numpy": "2.2.0", "xformers": "0.0.28.post3", "bitsandbytes": "0.45.0", "deepspeed": "0.16.2"}},
    {"stack": {"torch": "2.6.0+cu118", "nvidia-nccl-cu12": None, "peft": "0.10.0"}},
]


def test_environments_that_share_results_have_the_findings_of_each_alone(tmp_path: Path) -> None:
    for number, change in enumerate(STACKS):
        for more, other in enumerate(STACKS[:9]):
            stack = {**other.get("stack", {}), **change.get("stack", {})}
            node(tmp_path, f"n{number:02d}{more:02d}", **{**other, **change, "stack": stack})
    groups, _, _ = read_fleet(str(tmp_path))
    answers, matrix = Answers(), open_matrix()
    together = [check_environment(group.environment, matrix, answers)[1] for group in groups]
    assert together == [check_environment(group.environment, matrix)[1] for group in groups]
    assert len(together) > 60
    assert sum(map(len, together)) > 300


def test_the_order_of_fixes_is_tried_once_for_a_finding_of_many_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from compat.checks import advice

    for number in range(40):
        node(tmp_path, f"n{number:02d}", stack={"vllm": "0.7.1", "trl": "0.14.0", "einops": f"0.{number}"})
    tried = []
    about = advice.errors_about
    monkeypatch.setattr(advice, "errors_about", lambda *words: tried.append(1) or about(*words))
    alone = tmp_path / "alone"
    alone.mkdir()
    node(alone, "n00", stack={"vllm": "0.7.1", "trl": "0.14.0", "einops": "0.0"})
    (one,) = fleet(alone).groups
    count = len(tried)
    assert count > 0
    read = fleet(tmp_path)
    assert len(read.groups) == 40
    assert len(tried) == 2 * count
    assert all(each.report.findings == one.report.findings for each in read.groups)
