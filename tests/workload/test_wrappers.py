"""What a shell runs, decided in one place for launch commands, scripts, Dockerfiles and notebooks."""

from __future__ import annotations

import shlex

import pytest

from compat.workload.wrappers import ShellCall, handed_to_shell, reads_script, shell_call, shell_script


@pytest.mark.parametrize(("command", "expected"), [
    ("bash -c 'a b' name x y", ShellCall("a b", None, ("x", "y"))), ("bash -lc a", ShellCall("a")), ("sh -ec a", ShellCall("a")),
    ("bash -o pipefail -c a", ShellCall("a")), ("bash -euo pipefail run.sh x", ShellCall(None, "run.sh", ("x",))),
    ("bash --rcfile c run.sh", ShellCall(None, "run.sh")), ("bash --norc run.sh -c a", ShellCall(None, "run.sh", ("-c", "a"))),
    ("bash", ShellCall()), ("bash -s x", ShellCall()), ("bash -o pipefail", ShellCall()), ("/bin/sh -x -", ShellCall()),
    ("bash - run.sh", ShellCall(None, "run.sh")), ("sh -s - x", ShellCall()), ("bash -e -- run.sh x", ShellCall(None, "run.sh", ("x",))),
    ("su user -c a", ShellCall("a")), ("runuser -u user --command a", ShellCall("a")), ("python -c a", None), ("", None),
])  # fmt: skip
def test_a_shell_runs_a_text_a_script_or_its_input(command: str, expected: ShellCall | None) -> None:
    assert shell_call(shlex.split(command)) == expected


@pytest.mark.parametrize(("command", "text", "from_input", "script"), [
    ("sudo env A=1 bash -c a", "a", False, None), ("srun bash -c a", "a", False, None), ("docker run x bash -c a", None, False, None),
    ("eval a b", "a b", False, None), ("nice bash -s", None, True, None), ("bash -euo pipefail x", None, False, "x"),
    ("source ./env", None, False, "./env"), ("./run.sh 1", None, False, "./run.sh"), ("echo bash -c a", None, False, None),
])  # fmt: skip
def test_commands_in_front_of_a_shell(command: str, text: str | None, from_input: bool, script: str | None) -> None:
    words = shlex.split(command)
    assert (handed_to_shell(words), reads_script(words), shell_script(words)) == (text, from_input, script)
