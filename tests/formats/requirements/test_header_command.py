"""The command in the header of a compiled file is only proposed if a shell splits it into words and does nothing else."""

from __future__ import annotations

import pytest

from compat.formats.requirements.file import is_harmless


@pytest.mark.parametrize(
    "command",
    [
        "uv pip compile requirements.in -o requirements.txt",
        "uv pip compile --upgrade-package 'torch>=2,<3' a.in",
        'pip-compile --extra="dev" --output-file=a.txt a.in',
    ],
)
def test_words_are_proposed(command: str) -> None:
    assert is_harmless(command)


@pytest.mark.parametrize(
    "sign", [">", "<", "~", "!", "[", "$", "`", ";", "&", "|", "(", "\\", "*", "?", "#", "{", "'", '"', "\t"]
)
def test_what_a_shell_acts_on_is_not(sign: str) -> None:
    assert not is_harmless(f"uv pip compile a.in {sign} x")


@pytest.mark.parametrize("sign", ["$", "`", "\\", "\n"])
def test_quotes_do_not_keep_everything(sign: str) -> None:
    assert not is_harmless(f'uv pip compile "{sign}x"')
