"""Errors of installations: files and imports that are missing, and requirements that the failing packages violate."""

from __future__ import annotations

import pytest

from compat.checks import derived_findings
from compat.diagnosis.explanations import between
from compat.model import Distribution, Environment, Finding
from compat.reports.log.native import decisive
from compat.reports.log.traceback import parse_log
from compat.rules.facts import Facts
from tests.diagnosis.test_symptoms import said, trace


def left(text: str, environment: Environment | None = None) -> list[Finding]:
    """Return what is said if nothing explains the message itself."""
    environment = environment or Environment()
    errors = parse_log(text)
    return list(between(text, errors, decisive(errors), Facts(environment), derived_findings(environment)))


def test_a_package_that_lacks_one_of_its_own_files() -> None:
    path = "/v/lib/python3.12/site-packages/verl/version/version"
    text = trace(f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'", "verl/__init__.py")
    (finding,) = said(text)
    assert finding.title == "The installation of verl lacks verl/version/version"
    assert [fix.kind for fix in finding.fixes] == ["upgrade", "source-install", "pin"]


@pytest.mark.parametrize(
    "path", ["/home/me/data/verl/version", "/v/lib/python3.12/site-packages/of_nobody/model.json", "/v/site-packages/verl"]
)
def test_other_missing_files_are_no_fault_of_an_installation(path: str) -> None:
    assert said(trace(f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'", "verl/__init__.py")) == []


@pytest.mark.parametrize(
    ("error", "packages"),
    [
        ("ImportError: Can not import sgl_kernel. Please check your installation.", ["sgl-kernel"]),
        ("RuntimeError: Failed to import flash_attn, please install it", ["flash-attn"]),
        ("ImportError: Unable to import `torchao` because of its operators", ["torchao"]),
        ("ImportError: Unable to import `torchao` Tensor objects.", []),
        ("RuntimeError: Failed to import transformers.trainer because of the following error", []),
        ("ImportError: cannot import name, sorry", []),
        ("RuntimeError: Failed to import settings, please check", []),
    ],
)
def test_a_message_in_words_about_an_import(error: str, packages: list[str]) -> None:
    assert [name for finding in left(error) for name in finding.packages] == packages


def test_what_is_known_of_a_package_that_cannot_be_imported() -> None:
    environment = Environment(
        os="linux", distributions=(Distribution("torch", "2.6.0"), Distribution("torchvision", "0.16.0")),
        distributions_complete=True,
    )  # fmt: skip
    (finding,) = left("ImportError: Could not import torchvision. Please reinstall it.", environment)
    assert (finding.rule, finding.verdict) == ("requires-torchvision-torch", "hit")


def with_triton(version: str) -> Environment:
    return Environment(os="linux", distributions=(Distribution("torch", "2.7.1"), Distribution("triton", version)))


def test_a_violated_requirement_of_the_packages_that_failed() -> None:
    error = "torch._inductor.exc.LoweringException: AttributeError: type object 'CompiledKernel' has no attribute 'hook'"
    text = trace(error, "torch/_inductor/kernel/flex_attention.py") + "This breaks torch.compile with triton.\n"
    (finding,) = left(text, with_triton("3.4.0"))
    assert (finding.rule, finding.verdict, finding.severity) == ("requires-torch-triton", "possible", "error")
    assert left(text, with_triton("3.3.1")) == []
    assert left(trace(error, "torch/_inductor/kernel/flex_attention.py"), with_triton("3.4.0")) == []  # nobody speaks of triton
    assert left(trace("ValueError: no such mode", "vllm/worker.py"), with_triton("3.4.0")) == []


@pytest.mark.parametrize("frames", [(), ("transformers/models/x.py",)])
@pytest.mark.parametrize(
    ("name", "owner"), [("flash_attn_func", "flash-attn"), ("selective_scan_fn", "mamba-ssm"), ("unpad_input", "flash-attn")]
)
def test_functions_of_optional_kernels(name: str, owner: str, frames: tuple[str, ...]) -> None:
    error = f"NameError: name '{name}' is not defined"
    (finding,) = left(trace(error, *frames) if frames else error)
    assert finding.rule == "symptom-optional-import"
    assert owner in finding.packages
    assert finding.fixes[0].command == f"pip install --no-build-isolation {owner}"


def test_a_kernel_that_an_older_release_does_not_have() -> None:
    environment = Environment(distributions=(Distribution("flash-attn", "1.0.9"),))
    (finding,) = left("NameError: name 'flash_attn_func' is not defined", environment)
    assert ("flash-attn", ">=2.0.0.post1") in [(fix.package, fix.spec) for fix in finding.fixes]


def test_a_compiled_module_that_was_set_to_none() -> None:
    frame = '  File "/v/site-packages/mamba_ssm/ops/selective_scan_interface.py", line 187, in forward\n'
    code = "    conv1d_out = causal_conv1d_cuda.causal_conv1d_fwd(\n"
    error = "AttributeError: 'NoneType' object has no attribute 'causal_conv1d_fwd'\n"
    (finding,) = left(f"Traceback (most recent call last):\n{frame}{code}{error}")
    assert (finding.rule, list(finding.packages)) == ("symptom-no-extension", ["causal-conv1d"])
    other = "    self.optimizer.causal_conv1d_fwd(\n"
    assert left(f"Traceback (most recent call last):\n{frame}{other}{error}") == []


def test_a_windows_library_without_a_function() -> None:
    message = "ImportError: DLL load failed while importing flash_attn_2_cuda: The specified procedure could not be found."
    (finding,) = said(message)
    assert (finding.rule, list(finding.packages)) == ("symptom-dll-procedure", ["flash-attn"])
    (other,) = said(message.replace("procedure", "module"))
    assert other.rule == "symptom-dll-load"
