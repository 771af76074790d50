"""Programs that a shell or a subprocess did not find."""

from __future__ import annotations

import pytest

from compat.diagnosis.missing_programs import missing_programs
from compat.model import Distribution, Environment, Finding
from compat.rules.facts import Facts


def said(text: str, *names: str, complete: bool = False) -> list[Finding]:
    copies = tuple(Distribution(name, "1.0") for name in names)
    return missing_programs(text, 3, Facts(Environment(distributions=copies, distributions_complete=complete)))


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("/bin/sh: 1: torchrun: not found", "torchrun"),
        ("bash: accelerate: command not found", "accelerate"),
        ("bash: line 7: accelerate: command not found", "accelerate"),
        ("sudo: deepspeed: command not found", "deepspeed"),
        ("zsh: command not found: vllm", "vllm"),
        ("Command 'llamafactory-cli' not found, did you mean:", "llamafactory-cli"),
        ("'accelerate' is not recognized as an internal or external command,", "accelerate"),
        ("torchrun : The term 'torchrun' is not recognized as the name of a cmdlet", "torchrun"),
        ('exec: "ray": executable file not found in $PATH', "ray"),
        ("/usr/bin/env: ‘swift’: No such file or directory", "swift"),
        ("[Errno 2] No such file or directory: 'ninja'", "ninja"),
        ("error: command 'gcc' failed: No such file or directory", "gcc"),
        ("unable to execute 'x86_64-linux-gnu-gcc': No such file or directory", "x86_64-linux-gnu-gcc"),
        ("'cl' is not recognized as an internal or external command", "cl"),
    ],
)
def test_the_program_of_a_message(text: str, program: str) -> None:
    (finding,) = said(text)
    assert f" {program} " in finding.title
    assert finding.rule == "symptom-missing-program"
    assert finding.fixes


@pytest.mark.parametrize(
    "text",
    [
        "No such file or directory: 'config.json'",
        "bash: my_own_tool: command not found",
        "- Accelerate config: not found",
        "libcudart.so.12 => not found",
        "version `GLIBC_2.34' not found (required by x.so)",
    ],
)
def test_what_is_no_known_program(text: str) -> None:
    assert said(text) == []


def test_the_module_that_does_the_same() -> None:
    (finding,) = said("torchrun: command not found", "torch")
    assert finding.packages == {"torch": "1.0"}
    assert (finding.fixes[0].kind, finding.fixes[0].command) == ("launch", "python -m torch.distributed.run")
    assert not any("pip install" in (fix.command or "") for fix in finding.fixes)


def test_a_distribution_that_is_known_not_to_be_installed() -> None:
    (finding,) = said("accelerate: command not found", "torch", complete=True)
    assert [fix.command for fix in finding.fixes] == ["pip install accelerate"]


def test_one_of_several_distributions_that_install_a_command() -> None:
    (finding,) = said("tune: command not found", "torchtune")
    assert list(finding.packages) == ["torchtune"]
    assert "ray installs a command of this name" in finding.why
