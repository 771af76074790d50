"""The parent: which devices, what is said where there is none, and how results and exit codes come out. No torch is needed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from compat.api.commands import command_named
from compat.api.probe import probe
from compat.cli import parse
from compat.cli.probe import rendered, requested
from compat.errors import InputError
from compat.model import Accelerator, Environment
from compat.probe.child import work
from compat.probe.child.job import Job
from compat.probe.request import COULD_NOT_RUN, FAILED, PASSED, ProbeReport, ProbeResult, Request, devices_of, exit_code
from compat.probe.session import NoTorch
from compat.rules.facts import visible
from tests.conftest import ROOT
from tests.probe.conftest import needs

H100 = Accelerator(vendor="nvidia", name="NVIDIA H100 80GB HBM3", compute_capability="9.0")
TWO = Environment(accelerators=(H100, H100), driver="550.54.15", machine="x86_64", os="linux")
NONE = Environment(accelerators=())


def request(*words: str) -> Request:
    return requested(parse(command_named("probe"), words))


def child(folder: Path, body: str) -> str:
    """A stand-in for an interpreter: a program that is given start.py and the job file, and writes results into the job's."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\njob = json.load(open(sys.argv[2]))\n"
                    "def say(**event):\n    with open(job['results'], 'a') as f: f.write(json.dumps(event) + '\\n')\n" + body)  # fmt: skip
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def _running(argument: str) -> list[Path]:
    """The processes that were started with an argument."""
    there = [Path(f"/proc/{each}/cmdline") for each in os.listdir("/proc") if each.isdecimal()]
    return [path for path in there if argument.encode() in _content(path)]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


HELLO = "say(event='hello', python='3.11.0', torch='2.13.0', cuda='13.0', hip=None, devices=[])\n"
ONE_PASSES = "say(event='begin', probe='matmul/fp32')\nsay(event='result', probe='matmul/fp32', status='passed', seconds=0.1)\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--quick", "--thorough"), "--quick and --thorough"),
        (("--only", "matmul,rotation"), "'rotation' is not a probe group (matmul, rotary"),
        (("--only", ","), "expected probe groups"),
        (("--device", "gpu0"), "expected all, cpu, cuda or cuda:NUMBER, not 'gpu0'"),
        (("--device", "cuda:one"), "not 'cuda:one'"),
        (("--device", "cpu:0"), "not 'cpu:0'"),
        (("--timeout", "0"), "between 0 and 86400, not '0'"),
        (("--timeout", "nan"), "not 'nan'"),
        (("--trainer", "sft", "--only", "matmul"), "which --only leaves out"),
        (("--trainer", "ppo"), "'ppo' is not one of sft, grpo, dpo"),
        (("--python", "/no/such/python"), "/no/such/python"),
    ],
)
def test_a_call_that_cannot_be_used(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError) as refused:
        request(*words)
    assert said in str(refused.value)


def test_what_a_call_asks_for() -> None:
    asked = request("--only", "rotary/transformers,matmul", "--thorough", "--timeout", "7.5", "--device", "cuda:01")
    assert (asked.groups, asked.depth, asked.limit, asked.device) == (("rotary", "matmul"), "thorough", 7.5, "cuda:1")
    assert request().python == sys.executable


@pytest.mark.parametrize(
    ("device", "environment", "names"),
    [
        ("all", TWO, ("cpu", "cuda:0", "cuda:1")),
        ("cuda", TWO, ("cuda:0", "cuda:1")),
        ("cuda:1", TWO, ("cuda:1",)),
        ("cpu", TWO, ("cpu",)),
        ("all", NONE, ("cpu",)),
        ("cuda:0", NONE, ()),
        ("all", Environment(), ("cpu",)),
        ("all", Environment(accelerators=(H100, H100), variables={"CUDA_VISIBLE_DEVICES": "1"}), ("cpu", "cuda:0")),
        ("all", Environment(accelerators=(H100,), variables={"CUDA_VISIBLE_DEVICES": ""}), ("cpu",)),
    ],
)
def test_which_devices_are_probed(device: str, environment: Environment, names: tuple[str, ...]) -> None:
    found = devices_of(Request("python", device=device), environment, visible(environment))
    assert found.names == names
    assert (found.why_none is not None) == (not found.cuda and device != "cpu")


def test_a_device_that_is_not_there_beside_others_that_are() -> None:
    with pytest.raises(InputError, match="unknown device cuda:2; this machine has cuda:0 to cuda:1"):
        devices_of(Request("python", device="cuda:2"), TWO, TWO)


def test_devices_that_are_hidden_are_no_accelerator() -> None:
    hidden = Environment(accelerators=(H100,), variables={"CUDA_VISIBLE_DEVICES": "-1"})
    assert (
        devices_of(Request("python"), hidden, visible(hidden)).why_none
        == "no accelerator: 1 there, and CUDA_VISIBLE_DEVICES hides all of them"
    )


def test_exit_codes() -> None:
    passed, failed = ProbeResult("matmul/fp32", "cpu", PASSED), ProbeResult("matmul/bf16", "cpu", FAILED)
    absent, there = ProbeResult("matmul", "cuda", COULD_NOT_RUN), ProbeResult("matmul/fp32", "cuda:0", PASSED)
    assert exit_code((passed, absent), device_required=False) == 0
    assert exit_code((passed, absent), device_required=True) == 3
    assert exit_code((passed, there), device_required=True) == 0
    assert exit_code((passed, failed, absent), device_required=True) == 1


@pytest.mark.parametrize(
    ("words", "required"),
    [((), False), (("--device", "cpu"), False), (("--device", "cuda"), True), (("--device", "cuda:1"), True), (("--require-device",), True)],
)  # fmt: skip
def test_a_named_accelerator_is_required(words: tuple[str, ...], required: bool) -> None:
    assert request(*words).device_required == required


def test_results_before_a_crash_survive_and_what_is_left_is_run(tmp_path: Path) -> None:
    body = HELLO + (
        "if not job['skip']:\n"
        "    say(event='begin', probe='matmul/fp32'); say(event='result', probe='matmul/fp32', status='passed', seconds=0.1)\n"
        "    say(event='begin', probe='matmul/bf16'); print('the last thing I saw', file=sys.stderr); sys.stderr.flush(); os.abort()\n"
        "assert job['skip'] == ['matmul/fp32', 'matmul/bf16']\n"
        "say(event='begin', probe='matmul/fp16'); say(event='result', probe='matmul/fp16', status='passed', seconds=0.1)\n"
        "say(event='end')\n"
    )
    report = probe(Request(child(tmp_path, body), device="cpu", only=("matmul",)), NONE)
    assert [(each.probe, each.status) for each in report.results] == [
        ("matmul/fp32", PASSED), ("matmul/bf16", FAILED), ("matmul/fp16", PASSED),
    ]  # fmt: skip
    crashed = report.results[1]
    assert "SIGABRT" in crashed.why
    assert "the last thing I saw" in crashed.why
    assert crashed.last_words == ("the last thing I saw",)
    assert report.exit == 1


def test_a_child_that_crashes_in_every_probe_is_not_started_for_ever(tmp_path: Path) -> None:
    body = HELLO + "say(event='begin', probe=f'matmul/{len(job[\"skip\"])}'); os.kill(os.getpid(), 9)\n"
    report = probe(Request(child(tmp_path, body), device="cpu", only=("matmul",)), NONE)
    assert {each.status for each in report.results} == {FAILED}
    assert 1 < len(report.results) < 20


def test_a_hang_takes_what_it_started_with_it(tmp_path: Path) -> None:
    mark = f"{tmp_path}-still-there"
    body = HELLO + (
        "import subprocess\nsay(event='begin', probe='matmul/fp32')\n"
        f"subprocess.Popen([{sys.executable!r}, '-c', 'import time; time.sleep(3600)', {str(mark)!r}])\ntime.sleep(3600)\n"
    )
    report = probe(Request(child(tmp_path, body), device="cpu", only=("matmul",), limit=2.0), NONE)
    assert [(each.probe, each.status) for each in report.results] == [("matmul/fp32", FAILED)]
    assert "did not finish within 2 s" in report.results[0].why
    until = time.monotonic() + 60
    while _running(mark) and time.monotonic() < until:
        time.sleep(0.05)  # a killed process is listed until it is reaped
    assert not _running(mark)


def test_a_line_that_was_cut_short_is_no_result(tmp_path: Path) -> None:
    body = (
        HELLO
        + ONE_PASSES
        + "open(job['results'], 'a').write('{\"event\": \"result\", \"pro'); sys.stdout.flush(); os._exit(0)\n"
    )
    report = probe(Request(child(tmp_path, body), device="cpu", only=("matmul",)), NONE)
    assert report.results[0].status == PASSED
    assert (report.results[1].probe, report.results[1].status) == ("matmul/process", FAILED)


def test_an_interpreter_without_torch(tmp_path: Path) -> None:
    body = "say(event='torch', status='missing'); sys.exit(93)\n"
    with pytest.raises(NoTorch, match=r"no torch in .*python.*-m pip install torch"):
        probe(Request(child(tmp_path, body), device="cpu", only=("matmul",)), NONE)


def test_a_torch_that_lacks_a_library_says_which(tmp_path: Path) -> None:
    body = "say(event='torch', status='broken', why='ImportError: libcudart.so.12: cannot open shared object file'); sys.exit(94)\n"
    report = probe(Request(child(tmp_path, body), device="cpu"), NONE)
    (result,) = report.results
    assert (result.probe, result.status, report.exit) == ("torch/import", FAILED, 1)
    assert "libcudart.so.12" in result.why
    assert result.fix is not None
    assert result.fix.endswith('-m pip install --force-reinstall --no-deps "torch"')


def test_a_torch_for_cpu_only_with_a_gpu_is_one_finding_with_the_pin_that_fixes_it(tmp_path: Path) -> None:
    body = (
        "say(event='hello', python='3.11.0', torch='2.13.0+cpu', cuda=None, hip=None, devices=[])\n"
        "if job['device'] != 'cpu':\n"
        "    say(event='result', probe='torch/device', status='could-not-run', why='CPU only', cpu_only=True); sys.exit(95)\n"
        + ONE_PASSES + "say(event='end')\n"
    )  # fmt: skip
    report = probe(Request(child(tmp_path, body), only=("matmul",)), TWO)
    assert [(each.probe, each.device, each.status) for each in report.results] == [
        ("matmul/fp32", "cpu", PASSED), ("torch/build", "cuda", FAILED),
    ]  # fmt: skip
    finding = report.results[-1]
    assert finding.why == (
        "torch 2.13.0+cpu is a CPU-only build, but this machine has NVIDIA H100 80GB HBM3: nothing in this stack runs on the GPU"
    )
    assert finding.fix is not None
    assert finding.fix.startswith('pip install "torch==2.13.0+cu1')
    assert report.exit == 1


def test_every_device_has_a_process_of_its_own_and_devices_together_come_last(tmp_path: Path) -> None:
    body = HELLO + (
        "group = job['groups'][0]\nsay(event='begin', probe=group + '/x')\n"
        "say(event='result', probe=group + '/x', status='passed', seconds=0.0, measured={'devices': job['devices']})\nsay(event='end')\n"
    )
    report = probe(Request(child(tmp_path, body), only=("matmul", "devices")), TWO)
    assert [(each.device, each.probe, each.measured["devices"]) for each in report.results] == [
        ("cpu", "matmul/x", 0), ("cuda:0", "matmul/x", 0), ("cuda:1", "matmul/x", 0), ("cuda:1", "devices/x", 2),
    ]  # fmt: skip


def test_a_probe_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown probe 'matmul/fp63'"):
        probe(Request(child(tmp_path, HELLO + ONE_PASSES.replace("matmul", "rotary") + "say(event='end')\n"), device="cpu",
                      only=("matmul/fp63", "rotary")), NONE)  # fmt: skip


def test_the_text_shows_number_last_words_and_fix() -> None:
    results = (
        ProbeResult("matmul/fp32", "cpu", PASSED, seconds=1.0),
        ProbeResult(
            "matmul/bf16",
            "cpu",
            FAILED,
            "element [1, 2] is 3; exact arithmetic gives 4",
            last_words=("boom \x1b[0m",),
            fix="pip x",
        ),
        ProbeResult("rotary/vllm", "cpu", COULD_NOT_RUN, "vllm is not installed"),
        ProbeResult("triton/run", "cpu", COULD_NOT_RUN, "no accelerator"),
    )
    text = rendered(ProbeReport(results, "python", {}, 2.0, 1), ".venv")
    for words in ("✓ matmul", "✗ matmul/bf16", "element [1, 2] is 3", "│ boom \\x1b[0m", "fix       pip x", "not installed: vllm",
                  "no accelerator: triton/run", "1 passed, 1 failed, 2 could not run"):  # fmt: skip
        assert words in text
    assert "\x1b" not in text


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_who_ends_the_command_ends_its_children(tmp_path: Path, ending: signal.Signals) -> None:
    """An interrupt is answered at once, and leaves nothing behind; nor does a parent that is killed."""
    needs("torch")
    faults = Path(__file__).parent / "faults"
    variables = {
        **os.environ,
        "PYTHONPATH": f"{faults}{os.pathsep}{ROOT}",
        "COMPAT_TEST_FAULT": "import-hangs",
        "TMPDIR": str(tmp_path),
    }
    command = [
        sys.executable,
        "-m",
        "compat",
        "probe",
        "--only",
        "matmul",
        "--device",
        "cpu",
        "--timeout",
        "3000",
        "--python",
        sys.executable,
    ]
    running = subprocess.Popen(command, env=variables, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not any(b"libtorch" in _content(path.with_name("maps")) for path in children_in(tmp_path)):
        assert running.poll() is None
        time.sleep(0.1)
    running.send_signal(ending)
    running.communicate()
    assert running.returncode == (130 if ending == signal.SIGINT else -9)
    while children_in(tmp_path):  # killed, and on their way out
        time.sleep(0.1)


def children_in(folder: Path) -> list[Path]:
    """Processes whose command line names a job in the folder."""
    found = [Path(f"/proc/{each}/cmdline") for each in os.listdir("/proc") if each.isdecimal()]
    return [path for path in found if str(folder).encode() in _content(path) and b"start.py" in _content(path)]


def test_the_device_under_test_is_the_current_one(tmp_path: Path) -> None:
    """Triton's kernels, and those of many packages, start on the current device: on cuda:0, and they fail for cuda:1's data."""
    chosen: list[int] = []
    cuda = SimpleNamespace(init=lambda: None, device_count=lambda: 2, set_device=chosen.append)
    stand_in = SimpleNamespace(
        version=SimpleNamespace(cuda="12.8"),
        cuda=cuda,
        device=torch_device,
        zeros=lambda *_, **__: SimpleNamespace(cpu=lambda: None),
    )
    results = str(tmp_path / "results")
    assert work._device_is_there(stand_in, Job({"device": "cuda:1", "results": results}))
    assert chosen == [1]
    assert not work._device_is_there(stand_in, Job({"device": "cuda:2", "results": results}))
    assert chosen == [1]


def torch_device(name: str) -> SimpleNamespace:
    return SimpleNamespace(index=int(name.partition(":")[2]))


def test_a_probe_that_is_called_otherwise_is_refused(tmp_path: Path) -> None:
    """Also where it was all that was asked for: nothing that was run is no success."""
    python = child(tmp_path, "say(event='hello', torch='2.13.0', devices=[])\nsay(event='end')\n")
    with pytest.raises(InputError, match="unknown probe 'rotary/nonsense'"):
        probe(Request(python=python, device="cpu", only=("rotary/nonsense",), limit=60.0), NONE)
