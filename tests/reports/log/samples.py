"""A plain traceback and what several tests of tracebacks ask of one; written for these tests."""

from __future__ import annotations

from compat.reports.log.traceback import Frame, RaisedError, decisive, parse_log

PLAIN = """\
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    main()
    ~~~~^^
  File "/site-packages/trl/trainer/sft_trainer.py", line 40, in compute_loss
    correct = (predictions == labels) & mask
               ^^^^^^^^^^^^^^^^^^^^^
RuntimeError: The size of tensor a (2) must match the size of tensor b (4)
"""
PLAIN_FRAMES = (
    Frame("train.py", 12, "<module>", "main()"),
    Frame("/site-packages/trl/trainer/sft_trainer.py", 40, "compute_loss", "correct = (predictions == labels) & mask"),
)
PLAIN_MESSAGE = "The size of tensor a (2) must match the size of tensor b (4)"


def only(text: str) -> RaisedError:
    errors = parse_log(text)
    assert len(errors) == 1, errors
    return errors[0]


def summary(text: str) -> list[tuple[str | None, str]]:
    return [(error.exception, error.message) for error in parse_log(text)]


def best(text: str) -> RaisedError:
    errors = parse_log(text)
    return errors[decisive(errors)[0]]


def prefixed(prefix: str, text: str = PLAIN) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def assert_plain(error: RaisedError, rank: int | None = None) -> None:
    assert (error.exception, error.message, error.frames) == ("RuntimeError", PLAIN_MESSAGE, PLAIN_FRAMES)
    assert error.rank == rank


VLLM = """\
(APIServer pid=1) INFO 08-13 10:00:00 [api_server.py:1805] vLLM API server version 0.10.1
(EngineCore_0 pid=20) INFO 08-13 10:00:05 [core.py:71] Initializing a V1 LLM engine (v0.10.1) with config: model='m'
(EngineCore_0 pid=20) ERROR 08-13 10:00:09 [core.py:700] EngineCore failed to start.
(EngineCore_0 pid=20) ERROR 08-13 10:00:09 [core.py:700] Traceback (most recent call last):
(EngineCore_0 pid=20) ERROR 08-13 10:00:09 [core.py:700]   File "/site-packages/vllm/v1/engine/core.py", line 691, in run_engine_core
(EngineCore_0 pid=20) ERROR 08-13 10:00:09 [core.py:700]     engine_core = EngineCoreProc(*args, **kwargs)
(EngineCore_0 pid=20) ERROR 08-13 10:00:09 [core.py:700]                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
(EngineCore_0 pid=20) ERROR 08-13 10:00:09 [core.py:700] ImportError: flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
(EngineCore_0 pid=20) Process EngineCore_0:
(EngineCore_0 pid=20) Traceback (most recent call last):
(APIServer pid=1) Traceback (most recent call last):
(EngineCore_0 pid=20)   File "/lib/multiprocessing/process.py", line 314, in _bootstrap
(APIServer pid=1)   File "/bin/vllm", line 8, in <module>
(EngineCore_0 pid=20)     self.run()
(APIServer pid=1)     sys.exit(main())
(EngineCore_0 pid=20) ImportError: flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
