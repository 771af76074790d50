"""Native failures, bounds, and the recorded tracebacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.reports.log.traceback import Frame, decisive, parse_log
from tests.reports.log.samples import PLAIN, PLAIN_MESSAGE, assert_plain, best, only, summary

CASES = Path(__file__).parents[3].parent / "shared" / "cases" / "cases.jsonl"


class TestNative:
    @pytest.mark.parametrize(
        "line",
        [
            "python: symbol lookup error: /x/libtorch.so: undefined symbol: _ZN3c105ErrorC2Ev",
            "/lib/libc.so.6: version `GLIBC_2.32' not found (required by flash_attn_2_cuda.so)",
            "CUDA error: no kernel image is available for execution on the device",
            "../aten/src/ATen/native/cuda/Indexing.cu:1308: indexSelect: block: [0,0,0], thread: [1,0,0] Assertion `i < n` failed.",
            "cudaErrorLaunchFailure: unspecified launch failure",
            "box:12:34 [0] misc/cudawrap.cc:33 NCCL WARN Cuda failure 'out of memory'",
            "Last error: ncclUnhandledCudaError: Call to CUDA function failed.",
            "terminate called after throwing an instance of 'c10::Error'",
            "ERROR: Could not find a version that satisfies the requirement vllm==99 (from versions: none)",
            "ERROR: ResolutionImpossible: for help visit a page",
            "error: command '/usr/local/cuda/bin/nvcc' failed with exit code 1",
            "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
            "csrc/x.cu:12:3: fatal error: cuda_runtime.h: No such file or directory",
            "error: fp8e4nv data type is not supported on CUDA arch < 89",
            "NVIDIA H100 PCIe with CUDA capability sm_90 is not compatible with the current PyTorch installation.",
            "The installed version of bitsandbytes was compiled without GPU support.",
            "Disabling PyTorch because PyTorch >= 2.4 is required but found 2.3.0",
            "x.sh: line 3:   123 Killed                  python train.py",
        ],
    )
    def test_lines_without_a_class(self, line):
        text = "loading\n" * 300 + f"{line}\nmore output\n"
        error = only(text)
        assert (error.exception, error.message, error.line) == (None, line, 301)

    def test_native_inside_an_exception_keeps_its_class(self):
        assert summary("ImportError: libcudart.so.12: cannot open shared object file: No such file or directory") == [
            ("ImportError", "libcudart.so.12: cannot open shared object file: No such file or directory")
        ]
        assert summary("RuntimeError: CUDA error: device-side assert triggered") == [
            ("RuntimeError", "CUDA error: device-side assert triggered")
        ]

    def test_fatal_python_error_has_its_frames_outermost_first(self):
        error = parse_log(
            "Fatal Python error: Segmentation fault\n\n"
            "Current thread 0x00007f0 (most recent call first):\n"
            '  File "/site-packages/torch/_ops.py", line 519 in inner\n'
            '  File "train.py", line 2 in <module>\n\n'
            "Thread 0x00007f1 (most recent call first):\n"
            '  File "/lib/threading.py", line 1 in wait\n\n'
            "Extension modules: numpy.core._multiarray_umath, torch._C (total: 2)\n"
            "Segmentation fault (core dumped)\n"
        )[0]
        assert error.message == "Fatal Python error: Segmentation fault"
        assert error.frames == (
            Frame("train.py", 2, "<module>", None),
            Frame("/site-packages/torch/_ops.py", 519, "inner", None),
        )

    def test_terminate_takes_its_reason_and_its_stack(self):
        error = only(
            "terminate called after throwing an instance of 'c10::Error'\n"
            "  what():  CUDA error: an illegal memory access was encountered\n"
            "CUDA kernel errors might be asynchronously reported\n"
            "Exception raised from c10_cuda_check_implementation at ../c10/cuda/CUDAException.cpp:43 (most recent call first):\n"
            "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f2 in /torch/lib/libc10.so)\n"
            "frame #1: <unknown function> + 0x23a21 (0x7eb in /torch/lib/libc10_cuda.so)\n"
        )
        assert "illegal memory access" in error.message
        assert "frame #0" not in error.message
        assert [frame.file for frame in error.frames] == ["/torch/lib/libc10_cuda.so", "/torch/lib/libc10.so"]

    def test_watchdog_with_a_cuda_error_is_a_failure(self):
        text = (
            "[rank1]:[E410 01:50:33.889423318 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog "
            "thread terminated with exception: CUDA error: unspecified launch failure\n"
        )
        assert (only(text).rank, only(text).exception) == (1, None)

    def test_the_same_assertion_a_thousand_times(self):
        lines = "".join(f"x.cu:1: f: block: [{i},0,0], thread: [3,0,0] Assertion `i < n` failed.\n" for i in range(1000))
        errors = parse_log(lines + PLAIN)
        assert len(errors) < 10
        assert best(lines + PLAIN).exception == "RuntimeError"

    def test_build_that_failed_in_a_child(self):
        text = (
            "  error: subprocess-exited-with-error\n\n"
            "  × Getting requirements to build wheel did not run successfully.\n"
            "  │ exit code: 1\n"
            "  ╰─> [20 lines of output]\n"
            "      Traceback (most recent call last):\n"
            '        File "<string>", line 22, in <module>\n'
            "      ModuleNotFoundError: No module named 'torch'\n"
            "      [end of output]\n\n"
            "  note: This error originates from a subprocess, and is likely not a problem with pip.\n"
            "ERROR: Failed to build 'flash-attn' when getting requirements to build wheel\n"
        )
        error = best(text)
        assert (error.exception, error.message) == ("ModuleNotFoundError", "No module named 'torch'")
        assert error.frames == (Frame("<string>", 22, "<module>", None),)

    def test_the_batch_system_is_not_part_of_the_message(self):
        text = (
            PLAIN
            + "srun: error: node1: task 0: Exited with exit code 1\nslurmstepd: error: Detected 1 oom_kill event in StepId=1.0\n"
        )
        assert summary(text) == [
            ("RuntimeError", PLAIN_MESSAGE),
            (None, "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0"),
        ]

    def test_pip_conflict(self):
        errors = parse_log(
            "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.\n"
            "torchvision 0.20.1 requires torch==2.5.1, but you have torch 2.6.0 which is incompatible.\n"
        )
        assert any("requires torch==2.5.1" in error.message for error in errors)


class TestBounds:
    def test_first_and_last_of_many(self):
        text = "".join(
            f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: {"x" * i}\n\n' for i in range(1, 260)
        )
        errors = parse_log(text)
        assert len(errors) == 200
        assert (errors[0].message, errors[-1].message) == ("x", "x" * 259)

    def test_few_of_those_that_repeat(self):
        errors = parse_log(PLAIN * 500)
        assert 1 <= len(errors) < 10
        assert_plain(errors[0])

    def test_endless_frames_and_messages(self):
        text = (
            "Traceback (most recent call last):\n"
            + '  File "a.py", line 1, in f\n    f()\n' * 5000
            + "ValueError: x\n"
            + "more\n" * 5000
        )
        error = only(text)
        assert len(error.frames) == 400
        assert len(error.message) < 11_000


@pytest.mark.skipif(not CASES.exists(), reason="the recorded cases are not part of the repository")
def test_every_recorded_traceback_holds_an_error():
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    texts = {case["id"]: case["traceback"] for case in cases if case.get("traceback")}
    assert texts
    assert [name for name, text in texts.items() if not decisive(parse_log(text))] == []
