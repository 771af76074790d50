"""Every dialect in which people paste a failure; the samples are written for these tests."""

from __future__ import annotations

import json

import pytest

from compat.reports.log.traceback import Frame, RaisedError, decisive, parse_log
from tests.reports.log.samples import PLAIN, PLAIN_FRAMES, PLAIN_MESSAGE, VLLM, assert_plain, best, only, prefixed, summary


class TestPlain:
    def test_frames_code_and_line(self):
        error = only(PLAIN)
        assert_plain(error)
        assert (error.line, error.cause) == (8, None)

    def test_dotted_class_and_message_of_several_lines(self):
        error = only(
            "Traceback (most recent call last):\n"
            '  File "a.py", line 1, in f\n'
            "    g()\n"
            "torch._dynamo.exc.TorchRuntimeError: Failed running call_function:\n"
            "a and b must have same reduction dim, but got [s0, 32000] X [4096, 32000].\n"
            "\n"
            "from user code:\n"
            '   File "b.py", line 5, in forward\n'
            "    return x @ w\n"
            "\n"
            'Set TORCH_LOGS="+dynamo" and TORCHDYNAMO_VERBOSE=1 for more information\n'
            "\n"
            "$ echo done\n"
        )
        assert error.exception == "torch._dynamo.exc.TorchRuntimeError"
        assert error.message.splitlines()[1].startswith("a and b must have same reduction dim")
        assert 'File "b.py", line 5' in error.message
        assert error.message.endswith("for more information")
        assert [frame.file for frame in error.frames] == ["a.py"]

    @pytest.mark.parametrize(
        ("last", "message"),
        [("AssertionError", 'assert "factor" in scaling'), ("AssertionError: no factor", "no factor"), ("KeyError", "")],
    )
    @pytest.mark.parametrize("prefix", ["", "ERROR 02-17 20:51:49 core.py:210] "])
    def test_an_assertion_without_a_message_says_what_was_asserted(self, prefix, last, message):
        lines = (
            "Traceback (most recent call last):",
            '  File "/x/vllm/config.py", line 12, in check',
            '    assert "factor" in scaling',
            "           ^^^^^^^^^^^^^^^^^^^",
            last,
        )
        error = only("".join(f"{prefix}{line}\n" for line in lines))
        assert (error.exception, error.message) == (last.partition(":")[0], message)

    def test_cuda_message_keeps_its_advice(self):
        error = only(
            "Traceback (most recent call last):\n"
            '  File "a.py", line 1, in f\n'
            "RuntimeError: CUDA error: device-side assert triggered\n"
            "CUDA kernel errors might be asynchronously reported at some other API call.\n"
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
            "\n"
            "wandb: Run history:\n"
        )
        assert error.message.endswith("CUDA_LAUNCH_BLOCKING=1")
        assert error.frames == (Frame("a.py", 1, "f", None),)

    def test_repeated_lines_and_long_statements(self):
        error = only(
            "Traceback (most recent call last):\n"
            '  File "a.py", line 3, in f\n'
            "    return f(\n"
            "        n - 1,\n"
            "    )\n"
            "  [Previous line repeated 996 more times]\n"
            "RecursionError: maximum recursion depth exceeded\n"
        )
        assert error.exception == "RecursionError"
        assert error.frames == (Frame("a.py", 3, "f", "return f(\nn - 1,\n)"),)

    def test_colours_of_python_313(self):
        coloured = (
            "Traceback (most recent call last):\n"
            '  File \x1b[35m"a.py"\x1b[0m, line \x1b[35m7\x1b[0m, in \x1b[35mf\x1b[0m\n'
            "    \x1b[31mg\x1b[0m\x1b[1;31m()\x1b[0m\n"
            "    \x1b[31m~\x1b[0m\x1b[1;31m^^\x1b[0m\n"
            "\x1b[1;35mValueError\x1b[0m: \x1b[35mno\x1b[0m\n"
        )
        error = only(coloured)
        assert (error.exception, error.message, error.frames) == ("ValueError", "no", (Frame("a.py", 7, "f", "g()"),))
        assert only(coloured.replace("\x1b", "")) == error  # pasted through a web form
        assert only(coloured.replace("\x1b", "\\x1b")) == error

    def test_class_alone_syntax_error_and_no_frames(self):
        assert summary('Traceback (most recent call last):\n  File "a.py", line 1, in f\n    next(x)\nStopIteration\n') == [
            ("StopIteration", "")
        ]
        error = only("  File \"a.py\", line 3\n    print(\n         ^\nSyntaxError: '(' was never closed\n")
        assert (error.exception, error.frames) == ("SyntaxError", (Frame("a.py", 3, None, "print("),))
        assert summary("Traceback (most recent call last):\nMemoryError\n") == [("MemoryError", "")]

    @pytest.mark.parametrize("name", ["queue.Empty", "socket.timeout", "__main__.main.<locals>.Odd", "zmq.error.Again", "Odd"])
    def test_unusual_class_names(self, name):
        assert summary(f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n{name}: m\n') == [
            (name, "m")
        ]

    def test_windows_line_ends_progress_bars_and_indentation(self):
        assert_plain(only(PLAIN.replace("\n", "\r\n")))
        assert_plain(only("".join(f"    {line}\n" for line in PLAIN.splitlines())))
        assert_plain(only(prefixed("> ")))
        bar = "  0%|          | 0/10 [00:00<?, ?it/s]"
        assert_plain(only(f"{bar}\r{bar}\r{bar}{PLAIN}"))
        assert only(f"{bar}\r{bar}\r{bar}{PLAIN}").line == 8

    def test_indentation_lost(self):
        error = only("\n".join(line.strip() for line in PLAIN.splitlines()))
        assert (error.exception, error.frames) == ("RuntimeError", PLAIN_FRAMES)

    def test_a_form_moved_the_first_frame_to_the_margin(self):
        (error,) = parse_log(
            'File "/opt/x/deepspeed/runtime/engine.py", line 1904, in forward\n'
            "   module._parameters._in_forward = False\n"
            " AttributeError: 'dict' object has no attribute '_in_forward'\n"
        )
        assert (error.exception, error.line) == ("AttributeError", 3)
        assert error.frames[0].code == "module._parameters._in_forward = False"

    def test_a_first_frame_without_its_beginning(self):
        (error,) = parse_log(
            '/x/site-packages/trl/trainer/grpo_trainer.py", line 269, in __init__\n'
            "    super().__init__(\n"
            "TypeError: Trainer.__init__() got an unexpected keyword argument 'processing_class'\n"
        )
        assert error.exception == "TypeError"
        assert error.frames == (Frame("/x/site-packages/trl/trainer/grpo_trainer.py", 269, "__init__", "super().__init__("),)

    def test_shell_prompt_and_log_line_end_the_message(self):
        assert only(PLAIN + "(env) me@host:~/x$ ls\n").message == PLAIN_MESSAGE
        assert only(PLAIN + "INFO 02-13 10:00:00 engine.py:389] bye\nstray output\n").message == PLAIN_MESSAGE


class TestChains:
    def test_direct_cause_and_context(self):
        errors = parse_log(
            "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    d[k]\nKeyError: 'qwen3'\n\n"
            "During handling of the above exception, another exception occurred:\n\n"
            'Traceback (most recent call last):\n  File "b.py", line 2, in g\n    f()\nValueError: unknown model type\n\n'
            "The above exception was the direct cause of the following exception:\n\n"
            'Traceback (most recent call last):\n  File "c.py", line 3, in h\n    g()\nRuntimeError: failed\n'
        )
        assert [error.exception for error in errors] == ["KeyError", "ValueError", "RuntimeError"]
        assert [error.cause for error in errors] == [None, 0, 1]
        assert decisive(errors) == (0, 1, 2)

    def test_data_parallel_replica(self):
        text = (
            'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    trainer.train()\n'
            "RuntimeError: Caught RuntimeError in replica 1 on device 1.\n"
            "Original Traceback (most recent call last):\n"
            '  File "/torch/nn/parallel/parallel_apply.py", line 9, in _worker\n    output = module(*input)\n'
            "RuntimeError: chunk expects at least a 1-dimensional tensor\n"
        )
        errors = parse_log(text)
        assert [(error.cause, len(error.frames)) for error in errors] == [(1, 1), (None, 1)]
        assert best(text).message == "chunk expects at least a 1-dimensional tensor"

    def test_spawned_process_and_remote_traceback(self):
        inner = 'Traceback (most recent call last):\n  File "w.py", line 5, in work\n    x()\nValueError: inner\n'
        spawned = (
            'Traceback (most recent call last):\n  File "m.py", line 1, in <module>\n    spawn()\n'
            f"torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the following error:\n{inner}"
        )
        assert best(spawned).message == "inner"
        assert parse_log(spawned)[0].cause == 1
        remote = (
            f'concurrent.futures.process._RemoteTraceback: \n"""\n{inner}"""\n\n'
            "The above exception was the direct cause of the following exception:\n\n"
            'Traceback (most recent call last):\n  File "m.py", line 1, in <module>\n    f.result()\nValueError: inner\n'
        )
        errors = parse_log(remote)
        assert [error.cause for error in errors][-1] == len(errors) - 2
        assert [frame.file for frame in best(remote).frames] == ["w.py"]

    @pytest.mark.parametrize(
        ("title", "message"),
        [
            ("# [BUG] AttributeError: 'Linear' object has no attribute 'x'", "'Linear' object has no attribute 'x'"),
            ("it says (ValueError('no kernel'))", "no kernel"),
            ("with RuntimeError(\"no 'kernel'\")", "no 'kernel'"),
        ],
    )
    def test_quotation_marks_in_a_title(self, title: str, message: str):
        assert [error.message for error in parse_log(title)] == [message]

    def test_ray_names_the_error_inside_its_own(self):
        text = (
            'Traceback (most recent call last):\n  File "main.py", line 1, in <module>\n    ray.get(x)\n'
            "ray.exceptions.RayTaskError(OSError): \x1b[36mray::TaskRunner.run()\x1b[39m (pid=42, ip=10.0.0.1)\n"
            '  File "/verl/trainer.py", line 7, in run\n    open(p)\n'
            "OSError: no such model\n"
        )
        errors = parse_log(text)
        assert [error.exception for error in errors] == ["ray.exceptions.RayTaskError(OSError)", "OSError"]
        assert errors[0].cause == 1
        assert errors[1].frames == (Frame("/verl/trainer.py", 7, "run", "open(p)"),)
        assert best(text) == errors[1]

    def test_exception_named_inside_a_message(self):
        text = (
            'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'
            "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n"
            "RuntimeError: Cannot find a working triton installation\n"
        )
        errors = parse_log(text)
        assert "working triton" in errors[0].message
        assert (errors[1].exception, errors[1].message) == ("RuntimeError", "Cannot find a working triton installation")
        assert decisive(errors) == (1, 0)

    def test_exception_group_keeps_the_inner_errors(self):
        errors = parse_log(
            "  + Exception Group Traceback (most recent call last):\n"
            '  |   File "g.py", line 7, in <module>\n'
            '  |     raise ExceptionGroup("both", es)\n'
            "  | ExceptionGroup: both (2 sub-exceptions)\n"
            "  +-+---------------- 1 ----------------\n"
            "    | Traceback (most recent call last):\n"
            '    |   File "g.py", line 5, in a\n'
            "    |     one()\n"
            "    | ValueError: one\n"
            "    +---------------- 2 ----------------\n"
            "    | Traceback (most recent call last):\n"
            '    |   File "g.py", line 6, in b\n'
            "    |     two()\n"
            "    | KeyError: 'two'\n"
            "    +------------------------------------\n"
        )
        assert [error.exception for error in errors] == ["ExceptionGroup", "ValueError", "KeyError"]
        assert errors[0].cause == 1
        assert errors[2].frames == (Frame("g.py", 6, "b", "two()"),)
        assert decisive(errors) == (1, 2, 0)

    def test_ignored_exceptions_come_last(self):
        text = (
            "Exception ignored in: <function A.__del__ at 0x7f0>\n"
            'Traceback (most recent call last):\n  File "a.py", line 2, in __del__\n    x()\nRuntimeError: late\n' + PLAIN
        )
        errors = parse_log(text)
        assert [error.ignored for error in errors] == [True, False]
        assert decisive(errors) == (1, 0)


class TestLabels:
    @pytest.mark.parametrize(
        ("prefix", "rank"),
        [
            ("[rank0]: ", 0),
            ("[rank12]:", 12),
            ("[default1]:[rank1]: ", 1),
            ("[1,3]<stderr>:", 3),
            ("(RayTrainWorker pid=123, ip=10.0.0.1) ", None),
            ("(RayTrainWorker pid=123) [rank1]: ", 1),
            ("\x1b[1;36m(EngineCore_0 pid=12)\x1b[0;0m ERROR 01-02 12:00:00 [core.py:700] ", None),
            ("(VllmWorker rank=1 pid=7) ERROR 01-02 12:00:00 [multiproc_executor.py:5] ", 1),
            ("ERROR 02-13 10:00:00 engine.py:389] ", None),
            ("E0213 10:00:00.000000 140 torch/distributed/elastic/multiprocessing/api.py:869] ", None),
            ("vllm-1  | ", None),
            ("vllm_server_1   | ERROR 02-13 10:00:00 engine.py:389] ", None),
            ("2025-01-02T12:00:00.123456789Z ", None),
            ("2025-01-02 12:00:00,123 ", None),
            ("2025-01-02T12:00:00.1Z stderr F ", None),
            ("[2025-02-13 10:00:00,123] [ERROR] [engine.py:9:run] ", None),
            ("[2025-01-01 12:00:00 TP0] ", None),
            ("2025-01-01 12:00:00.000 | ERROR    | mod.sub:fn:12 - ", None),
            ("01/02/2025 12:00:00 - ERROR - __main__ - ", None),
            ("Aug 17 18:42:18 box vllm[8052]: (APIServer pid=8052) ", None),
            ("stderr: ", None),
            ("worker-3: [rank3]: ", 3),
            (" 7: ", 7),
            ("> ", None),
        ],
    )
    def test_a_label_before_every_line(self, prefix, rank):
        assert_plain(only(prefixed(prefix)), rank)

    def test_ranks_line_by_line_in_turn(self):
        other = PLAIN.replace("main()", "start()").replace("tensor b (4)", "tensor b (8)")
        lines = []
        for left, right in zip(PLAIN.splitlines(), other.splitlines(), strict=True):
            lines += [
                f"[rank0]: {left}",
                "INFO 01-02 12:00:00 [x.py:1] RuntimeError: none",
                f"[rank1]: {right}",
                "step 3 of 10",
            ]
        errors = parse_log("\n".join(lines))
        assert_plain(errors[0], 0)
        assert (errors[1].rank, errors[1].frames[0].code, errors[1].message[-3:]) == (1, "start()", "(8)")
        assert len(errors) == 2
        assert decisive(errors) == (0,)  # the same failure but for the numbers

    def test_two_processes_without_labels(self):
        lines = PLAIN.splitlines()
        text = "\n".join(line for line in lines for _ in range(2))
        errors = parse_log(text)
        assert_plain(errors[0])
        assert decisive(errors) == (0,)

    def test_header_with_a_logger_and_frames_without(self):
        assert_plain(only("ERROR 02-13 10:00:00 engine.py:389] " + PLAIN))
        assert_plain(only("[2025-01-01 12:00:00 TP0] Scheduler hit an exception: " + PLAIN))
        assert_plain(only("2025-02-13 10:00:00,123 - ERROR - Exception in worker: no, " + PLAIN))

    def test_json_logs(self):
        docker = "".join(json.dumps({"log": line + "\n", "stream": "stderr"}) + "\n" for line in PLAIN.splitlines())
        assert_plain(only(docker))
        assert_plain(only(json.dumps({"level": "error", "exc_info": PLAIN, "logger": "x"})))
        assert_plain(only(f"worker failed: {PLAIN!r} (see above)"))

    def test_markdown(self):
        text = f"### Bug\n\nIt fails:\n\n```python\n{PLAIN}```\n\nI expected RuntimeError to be gone.\n"
        assert_plain(only(text))


TORCHRUN = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 5, in <module>
[rank1]:     step()
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.10 GiB
[rank0]:[E213 10:00:00.123456789 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 5, in <module>
[rank0]:     step()
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB
W0213 10:00:01.000000 30 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 31 closing signal SIGTERM
E0213 10:00:02.000000 30 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 32) of binary: python
Traceback (most recent call last):
  File "/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 32)
============================================================
"""


class TestDecisive:
    def test_vllm_engine_before_its_server(self):
        errors = parse_log(VLLM)
        order = decisive(errors)
        assert errors[order[0]].message.startswith("flash_attn_2_cuda.so: undefined symbol")
        assert errors[order[0]].frames[0].function == "run_engine_core"
        assert errors[order[-1]].message.startswith("Engine core initialization failed")
        assert len(order) == 2

    def test_rank_before_watchdog_before_launcher(self):
        errors = parse_log(TORCHRUN)
        order = decisive(errors)
        assert (errors[order[0]].exception, errors[order[0]].rank) == ("torch.OutOfMemoryError", 1)
        assert {errors[i].exception for i in order[1:]} == {
            None,
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
        }
        assert "Root Cause (first observed failure)" in errors[-1].message

    @pytest.mark.parametrize(
        "passed_on",
        [
            "subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1.",
            "BrokenPipeError: [Errno 32] Broken pipe",
            "KeyboardInterrupt",
            "SystemExit: 1",
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
        ],
    )
    def test_what_only_follows_comes_last(self, passed_on):
        before = f'Traceback (most recent call last):\n  File "launch.py", line 1, in <module>\n    run()\n{passed_on}\n\n'
        errors = parse_log(before + PLAIN)
        assert len(errors) == 2
        assert decisive(errors) == (1, 0)

    def test_nothing(self):
        assert decisive(()) == ()

    def test_broken_chains_and_circles(self):
        errors = (
            RaisedError("A", "", (), None, 1, cause=1),
            RaisedError("B", "", (), None, 2, cause=0),
            RaisedError("C", "", (), None, 3, 99),
        )
        assert sorted(decisive(errors)) == [0, 1, 2]


FRAME = 'Traceback (most recent call last):\n  File "/app/run.py", line 3, in <module>\n    load()\n'


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("Due to a serious issue in `torch.load`, we", "Due to a serious issue in `torch.load`, we"),
        ("2026-01-02 10:00:00 INFO server stopped on request", ""),
        ("INFO 01-02 the server has been stopped", ""),
    ],
)
def test_a_last_sentence_whose_class_is_cut_off_is_the_message(last: str, message: str) -> None:
    errors = parse_log(f"{FRAME}{last}\n")
    assert [(each.exception, each.message) for each in errors if each.frames] == [(None, message)]


def test_a_sentence_below_cut_frames_in_the_middle_of_a_text_is_no_message() -> None:
    errors = parse_log(f"{FRAME}Here is my second attempt:\n{FRAME}ValueError: x\n")
    assert [each.message for each in errors] == ["", "x"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Error: No module named 'a.b'. Please install a new version", ("ModuleNotFoundError", "No module named 'a.b'")),
        ("Error: loading failed: 'A' object has no attribute 'b'.", ("AttributeError", "'A' object has no attribute 'b'")),
        ("Error: No module named 'a.b' is what it says", (None, "Error: No module named 'a.b' is what it says")),
    ],
)
def test_pythons_own_message_may_end_a_sentence_of_a_program(text: str, found: tuple[str | None, str]) -> None:
    (error,) = parse_log(text)
    assert (error.exception, error.message) == found
