"""nvidia-smi's three kinds of output, of drivers from 440 to 610, whole and pasted in part."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.machine.nvidia_smi import FIELDS, parse_list, parse_query, parse_table, query_nvidia_smi
from compat.machine.system import Hardware
from compat.model import Accelerator
from tests.growth import assert_linear

A100 = "NVIDIA A100-SXM4-80GB"

TWO_A100 = """\
Mon Nov  3 10:12:01 2025
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   34C    P0             64W /  400W |    1234MiB /  81920MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:0B:00.0 Off |                    0 |
| N/A   33C    P0             61W /  400W |       4MiB /  81920MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A      4242      C   python                                      1224MiB |
+-----------------------------------------------------------------------------------------+
"""

R610 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA GeForce RTX 5070 ...    Off |   00000000:02:00.0  On |                  N/A |
| N/A   51C    P8              7W /   70W |     273MiB /  12227MiB |      2%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""

OLD = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 440.33.01    Driver Version: 440.33.01    CUDA Version: 10.2     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
|===============================+======================+======================|
|   0  Tesla V100-SXM2...  On   | 00000000:00:1B.0 Off |                    0 |
| N/A   42C    P0    41W / 300W |     12MiB / 32510MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
"""

UNIFIED = """\
| NVIDIA-SMI 580.126.09             Driver Version: 580.126.09     CUDA Version: 13.0     |
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   36C    P8              3W /  N/A  | Not Supported          |      0%      Default |
|                                         |                        |                  N/A |
"""

JETSON = """\
| NVIDIA-SMI 540.4.0                Driver Version: 540.4.0      CUDA Version: 12.6     |
|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |
| N/A   N/A  N/A               N/A /  N/A | Not Supported        |     N/A          N/A |
"""

WINDOWS = """\
| NVIDIA-SMI 551.78                 Driver Version: 551.78         CUDA Version: 12.4     |
|   0  NVIDIA GeForce RTX 4090      WDDM  |   00000000:01:00.0  On |                  Off |
|  0%   38C    P8             18W /  450W |    1201MiB /  24564MiB |      3%      Default |
"""

DIVIDED = """\
| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: 12.2     |
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:17:00.0 Off |                    0 |
| N/A   33C    P0              43W / 400W |     25MiB / 40960MiB |     N/A      Default |
|                                         |                      |             Disabled |
|   1  NVIDIA A100-SXM4-40GB          On  | 00000000:31:00.0 Off |                   On |
| N/A   41C    P0              89W / 400W |  24192MiB / 40960MiB |     N/A      Default |
|                                         |                      |              Enabled |
+---------------------------------------------------------------------------------------+
| MIG devices:                                                                          |
+------------------+--------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                   Memory-Usage |        Vol|      Shared           |
|==================+================================+===========+=======================|
|  1    3   0   0  |          14366MiB / 19968MiB   | 28      0 |  2   0    1    0    0 |
|                  |              4MiB / 32767MiB   |           |                       |
|  1    5   0   1  |           9826MiB / 19968MiB   | 28      0 |  2   0    1    0    0 |
"""


def names(found: object) -> list[str | None]:
    accelerators = found.accelerators  # type: ignore[attr-defined]
    assert accelerators is not None
    return [device.name for device in accelerators]


def test_the_table_of_two_devices() -> None:
    found = parse_table(TWO_A100)
    assert (found.driver, found.driver_cuda, found.notes) == ("550.54.15", "12.4", ())
    assert found.accelerators == (Accelerator("nvidia", A100, memory_mib=81920),) * 2


def test_the_table_since_r610() -> None:
    found = parse_table(R610)
    assert (found.driver, found.driver_cuda) == ("610.43.02", "13.3")
    assert found.accelerators == (Accelerator("nvidia", "NVIDIA GeForce RTX 5070 ...", memory_mib=12227),)


@pytest.mark.parametrize(
    ("text", "driver", "cuda", "name", "memory"),
    [
        (OLD, "440.33.01", "10.2", "Tesla V100-SXM2...", 32510),
        (UNIFIED, "580.126.09", "13.0", "NVIDIA GB10", None),
        (JETSON, "540.4.0", "12.6", "Orin (nvgpu)", None),
        (WINDOWS, "551.78", "12.4", "NVIDIA GeForce RTX 4090", 24564),
    ],
)
def test_tables_of_other_systems(text: str, driver: str, cuda: str, name: str, memory: int | None) -> None:
    found = parse_table(text)
    assert (found.driver, found.driver_cuda) == (driver, cuda)
    assert found.accelerators == (Accelerator("nvidia", name, memory_mib=memory),)


def test_mig_instances_take_the_place_of_their_device() -> None:
    found = parse_table(DIVIDED)
    assert found.accelerators is not None
    assert [(device.memory_mib, device.extra.get("mig")) for device in found.accelerators] == [
        (40960, None), (19968, True), (19968, True),
    ]  # fmt: skip
    assert any("MIG" in note for note in found.notes)


def test_a_broken_device_hides_no_other() -> None:
    broken = TWO_A100.replace("|   0  NVIDIA A100-SXM4-80GB          On", "|   0  ERR!                           On")
    found = parse_table(broken)
    assert names(found) == [A100]
    assert "device 0" in found.notes[0]


def test_a_table_pasted_with_quotes_and_collapsed_spaces() -> None:
    quoted = "".join(f"> {line}\n" for line in TWO_A100.splitlines())
    assert parse_table(quoted).accelerators == parse_table(TWO_A100).accelerators
    collapsed = "\n".join(" ".join(line.split()) for line in TWO_A100.splitlines())
    assert parse_table(collapsed).accelerators == parse_table(TWO_A100).accelerators


def test_the_table_without_its_header_has_no_driver() -> None:
    found = parse_table("\n".join(TWO_A100.splitlines()[8:]))
    assert found.driver is None
    assert names(found) == [A100, A100]


@pytest.mark.parametrize("driver", ["N/A", "ERR!"])
def test_a_driver_that_does_not_say_its_version(driver: str) -> None:
    found = parse_table(f"| NVIDIA-SMI 540   Driver Version: {driver}   CUDA Version: {driver} |")
    assert (found.driver, found.driver_cuda, found.accelerators) == (None, None, None)


QUERY = """\
index, name, compute_cap, memory.total [MiB], driver_version, uuid
0, NVIDIA A100-SXM4-80GB, 8.0, 81920 MiB, 550.54.15, GPU-6b1f
1, NVIDIA GB10, 12.1, [N/A], 550.54.15, [Unknown Error]
"""


def test_the_query_with_its_header() -> None:
    found = parse_query(QUERY)
    assert found.driver == "550.54.15"
    assert found.accelerators == (
        Accelerator("nvidia", A100, "8.0", 81920, extra={"uuid": "GPU-6b1f"}),
        Accelerator("nvidia", "NVIDIA GB10", "12.1", None),
    )


def test_the_query_without_its_header_as_asked_and_as_pasted() -> None:
    rows = "".join(QUERY.splitlines(keepends=True)[1:])
    assert parse_query(rows, FIELDS) == parse_query(QUERY)
    assert parse_query(rows).accelerators == parse_query(QUERY).accelerators


def test_columns_in_any_order_and_without_units() -> None:
    text = "driver_version, memory.total [MiB], name\n535.129.03, 24564, NVIDIA GeForce RTX 4090\n"
    found = parse_query(text)
    assert found.driver == "535.129.03"
    assert found.accelerators == (Accelerator("nvidia", "NVIDIA GeForce RTX 4090", memory_mib=24564),)
    assert names(parse_query("name\nTesla T4\n")) == ["Tesla T4"]


def test_a_device_that_answers_nothing_hides_no_other() -> None:
    text = QUERY + "2, [Unknown Error], [Unknown Error], [Unknown Error], 550.54.15, [GPU requires reset]\n"
    found = parse_query(text)
    assert found.accelerators == parse_query(QUERY).accelerators
    assert "device 2" in found.notes[0]


def test_a_driver_that_does_not_know_the_field_gives_no_device() -> None:
    found = parse_query('Field "compute_cap" is not a valid field to query.\n', FIELDS)
    assert (found.accelerators, found.driver_state, found.notes) == (None, None, ())


@pytest.mark.parametrize("prose", ["Epoch 1, loss 8.0", "Hello, world", "a, 8.0", "", "0, 1, 2", "driver 550.54.15, CUDA 12.4"])
def test_prose_with_commas_is_no_query(prose: str) -> None:
    assert parse_query(prose).accelerators is None


LIST = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5b)
  MIG 3g.20gb     Device  0: (UUID: MIG-c7)
  MIG 1g.5gb      Device  1: (UUID: MIG-d8)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-0a1b)
"""


def test_the_list_with_mig_instances() -> None:
    found = parse_list(LIST)
    assert found.accelerators is not None
    assert [(device.name, dict(device.extra)) for device in found.accelerators] == [
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", {"mig": True, "uuid": "MIG-c7"}),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", {"mig": True, "uuid": "MIG-d8"}),
        ("NVIDIA A100-SXM4-40GB", {"uuid": "GPU-0a1b"}),
    ]


def test_the_list_in_a_bug_report() -> None:
    text = "GPU models and configuration: \nGPU 0: NVIDIA GeForce RTX 3090\nGPU 1: NVIDIA GeForce RTX 3090\n\nNvidia driver version: 535\n"
    assert names(parse_list(text)) == ["NVIDIA GeForce RTX 3090"] * 2
    assert parse_list("no GPU 0: here and there").accelerators is None


FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is ..."
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.90\n"


@pytest.mark.parametrize("parse", [parse_query, parse_table, parse_list])
def test_what_it_says_in_words(parse: type) -> None:
    assert parse(FAILED).driver_state == "not-loaded"
    assert parse(MISMATCH).driver_state == "mismatched"
    assert parse("No devices were found\n").accelerators == ()
    lost = parse("Unable to determine the device handle for GPU0000:65:00.0: Unknown Error\n")
    assert lost.accelerators is None
    assert lost.notes == ("NVIDIA device 0000:65:00.0 has no handle and is ignored: Unknown Error.",)


PIECES = st.sampled_from(
    [*TWO_A100.splitlines(), *DIVIDED.splitlines(), *QUERY.splitlines(), *LIST.splitlines(), FAILED, MISMATCH]
)


@given(st.lists(PIECES | st.text(max_size=60)))
def test_any_lines_give_a_reading_and_no_error(lines: list[str]) -> None:
    text = "\n".join(lines)
    for parse in (parse_query, parse_table, parse_list):
        for device in parse(text).accelerators or ():
            assert device.vendor == "nvidia"
            assert device.name or device.compute_capability
            assert device.memory_mib is None or device.memory_mib > 0


@pytest.mark.parametrize(
    ("parse", "before", "piece", "after"),
    [(parse_table, "", "| 1 ", ""), (parse_query, "", "| 1 ", ", 8.0"), (parse_list, "GPU 0: ", " ", "x(")],
)
def test_one_endless_line_takes_linear_time(parse: Callable[[str], Hardware], before: str, piece: str, after: str) -> None:
    def text(length: int) -> str:
        return before + piece * (length // len(piece)) + after

    assert parse(text(1000)).accelerators is None
    assert_linear(parse, text, 800_000)


def program(folder: Path, script: str) -> str:
    file = folder / "nvidia-smi"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
class TestAsking:
    def test_devices_come_from_the_query_and_cuda_from_the_table(self, tmp_path: Path) -> None:
        rows = "".join(QUERY.splitlines(keepends=True)[1:])
        (tmp_path / "query").write_text(rows)
        (tmp_path / "table").write_text(TWO_A100)
        script = f'case "$1" in --query-gpu=*) cat {tmp_path}/query;; *) cat {tmp_path}/table;; esac'
        found = query_nvidia_smi(program(tmp_path, script))
        assert (found.driver, found.driver_cuda) == ("550.54.15", "12.4")
        assert names(found) == [A100, "NVIDIA GB10"]

    def test_a_driver_before_r510_is_asked_without_the_capability(self, tmp_path: Path) -> None:
        script = (
            'case "$1" in *compute_cap*) echo "Field \\"compute_cap\\" is not a valid field to query."; exit 2;;\n'
            '--query-gpu=*) echo "0, Tesla V100-SXM2-32GB, 32510 MiB, 440.33.01, GPU-77";;\n*) exit 6;; esac'
        )
        found = query_nvidia_smi(program(tmp_path, script))
        assert found.accelerators == (Accelerator("nvidia", "Tesla V100-SXM2-32GB", None, 32510, extra={"uuid": "GPU-77"}),)
        assert found.driver == "440.33.01"

    def test_a_failure_is_read_and_not_asked_again(self, tmp_path: Path) -> None:
        found = query_nvidia_smi(program(tmp_path, f'echo x >> {tmp_path}/calls; echo "{MISMATCH}"; exit 18'))
        assert found.driver_state == "mismatched"
        assert (tmp_path / "calls").read_text() == "x\n"

    def test_one_that_hangs_is_given_up(self, tmp_path: Path) -> None:
        found = query_nvidia_smi(program(tmp_path, f"sleep 60; touch {tmp_path}/ended"), seconds=0.2)
        assert not (tmp_path / "ended").exists()
        assert found.accelerators is None
        assert found.notes == ("nvidia-smi did not respond within 0.2 seconds.",)

    def test_one_that_cannot_be_started(self, tmp_path: Path) -> None:
        found = query_nvidia_smi(str(tmp_path / "absent"))
        assert found.accelerators is None
        assert "cannot be started" in found.notes[0]

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "bytes").write_bytes(b"0, Tesla \xff T4, 7.5, 15360 MiB, 550.54.15, GPU-1\n")
        assert names(query_nvidia_smi(program(tmp_path, f"cat {tmp_path}/bytes"))) == ["Tesla \ufffd T4"]


def test_importing_the_parser_starts_nothing_heavy() -> None:
    import subprocess

    code = "import sys, compat.machine.nvidia_smi; print('subprocess' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
