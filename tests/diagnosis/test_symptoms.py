"""What a message means where no rule knows it."""

from __future__ import annotations

import pytest

from compat.checks import derived
from compat.diagnosis.symptoms import explained
from compat.model import Accelerator, Distribution, Environment, Finding
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.facts import Facts


def said(text: str, environment: Environment | None = None) -> list[Finding]:
    environment = environment or Environment()
    errors = parse_log(text)
    return list(explained(text, errors, decisive(errors), Facts(environment), derived.judge(environment)))


def trace(error: str, *frames: str) -> str:
    lines = "".join(f'  File "/v/lib/python3.11/site-packages/{frame}", line 1, in f\n    x()\n' for frame in frames)
    return f"Traceback (most recent call last):\n{lines}{error}\n"


@pytest.mark.parametrize(
    ("error", "rule", "packages"),
    [
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "symptom-no-kernel-image", ["vllm"]),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12080).", "symptom-driver-too-old", ["vllm"]),
        ("RuntimeError: Error 804: forward compatibility was attempted on non supported HW", "symptom-forward-compatibility", ["vllm"]),
        ("ImportError: libcudart.so.12: cannot open shared object file: No such file or directory", "symptom-cuda-library-missing", ["vllm", "nvidia-cuda-runtime-cu12"]),
        ("ImportError: /v/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2E", "symptom-undefined-symbol", ["flash-attn", "torch"]),
        ("ImportError: cannot import name 'Gone' from 'transformers' (/v/transformers/__init__.py)", "symptom-interface", ["vllm", "transformers"]),
        ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable.", "symptom-no-compiler", ["vllm"]),
        ("torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')", "symptom-no-compiler", ["vllm"]),
        ("AssertionError: libcuda.so cannot found!", "symptom-libcuda-link", ["vllm"]),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "symptom-out-of-memory", ["vllm"]),
    ],
)  # fmt: skip
def test_messages(error: str, rule: str, packages: list[str]) -> None:
    (finding,) = said(trace(error, "vllm/engine.py"))
    assert (finding.rule, finding.verdict, list(finding.packages)) == (rule, "possible", packages)


@pytest.mark.parametrize(
    ("compiler", "rule"),
    [
        ("/tmp/tmpx/main.c:5:10: fatal error: Python.h: No such file or directory\ncompilation terminated.", "symptom-python-headers"),
        ("/usr/bin/ld: cannot find -lcuda: No such file or directory\ncollect2: error: ld returned 1 exit status", "symptom-libcuda-link"),
    ],
)  # fmt: skip
def test_what_the_compiler_said_stands_before_the_error(compiler: str, rule: str) -> None:
    error = "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpx/main.c', '-lcuda']' returned non-zero exit status 1."
    (finding,) = said(compiler + "\n" + trace(error, "triton/runtime/build.py"))
    assert (finding.rule, list(finding.packages)) == (rule, ["triton"])


def test_what_the_environment_shows_goes_before_what_the_message_says() -> None:
    environment = Environment(
        distributions=(Distribution("torch", "2.6.0+cu124"),), accelerators=(Accelerator("nvidia", "RTX 5090", "12.0"),)
    )
    (finding,) = said(
        trace("RuntimeError: CUDA error: no kernel image is available for execution on the device", "torch/x.py"), environment
    )
    assert (finding.rule, finding.verdict) == ("build-torch-gpu", "hit")
    assert finding.here.startswith("the error on line 4 of the text")


@pytest.mark.parametrize(
    "error",
    [
        "ValueError: the learning rate must be positive",
        "ImportError: cannot import name 'x' from partially initialized module 'vllm' (most likely due to a circular import)",
        "TypeError: f() got an unexpected keyword argument 'x'",
    ],
)
def test_other_errors_get_no_guess(error: str) -> None:
    assert said(trace(error, "vllm/engine.py")) == []
