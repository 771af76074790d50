"""Gathering through a real Ray cluster on this machine, with a node that is killed and one that hangs.

About a minute, so only where it is asked for: ``COMPAT_TEST_RAY=1 python -m pytest tests/integrations/test_gather_ray.py``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if not os.environ.get("COMPAT_TEST_RAY"):
    pytest.skip("takes a minute (COMPAT_TEST_RAY=1)", allow_module_level=True)
cluster_utils = pytest.importorskip("ray.cluster_utils", reason="ray is not installed")


@pytest.fixture
def cluster() -> Iterator[Any]:
    made = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "node_name": "head"})
    for number in (1, 2):
        made.add_node(num_cpus=1, node_name=f"worker{number}")
    yield made
    made.shutdown()


def gathered(cluster: Any, folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "compat", "fleet", str(folder), "--ray", "--address", cluster.address, *words]
    done = subprocess.run(
        [*command, "--format", "json", "--fail-on", "never"], capture_output=True, text=True, timeout=240, check=False
    )
    return done.returncode, json.loads(done.stdout)


def test_every_node_answers_and_joins_the_others(cluster: Any, tmp_path: Path) -> None:
    code, read = gathered(cluster, tmp_path, "--probe", "--timeout", "200")
    assert (code, read["nodes"], read["missing"]) == (0, 3, [])
    assert "collectives between the nodes passed: gloo, 3 nodes, 3 processes" in read["probes"]


def test_a_node_that_hangs_is_named_and_not_waited_for(cluster: Any, tmp_path: Path) -> None:
    process = next(iter(cluster.worker_nodes)).all_processes["raylet"][0].process.pid
    os.kill(process, signal.SIGSTOP)
    try:
        code, read = gathered(cluster, tmp_path, "--timeout", "20")
    finally:
        os.kill(process, signal.SIGCONT)
    assert (code, read["nodes"], len(read["missing"])) == (3, 2, 1)
    assert read["missing"][0].startswith("worker")


def test_a_node_that_is_killed_meanwhile_is_named(cluster: Any, tmp_path: Path) -> None:
    lost = next(iter(cluster.worker_nodes))
    threading.Timer(3.0, lambda: cluster.remove_node(lost, allow_graceful=False)).start()
    code, read = gathered(cluster, tmp_path, "--timeout", "20")
    assert read["nodes"] + len(read["missing"]) in (2, 3)  # 2: it was gone before Ray was asked
    assert code == (3 if read["missing"] else 0)


def test_nodes_that_share_a_host_have_the_names_that_ray_gives_them(cluster: Any, tmp_path: Path) -> None:
    gathered(cluster, tmp_path, "--timeout", "60")
    hosts = {json.loads(path.read_text())["node"]["host"] for path in tmp_path.glob("*.json")}
    assert hosts == {"head", "worker1", "worker2"}


def test_an_address_where_no_cluster_answers_is_not_waited_for(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "compat", "fleet", str(tmp_path), "--ray", "--address", "127.0.0.1:1", "--timeout", "8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (3, "compat: undecided: Ray: no cluster was reached at 127.0.0.1:1 within 8 s\n")
