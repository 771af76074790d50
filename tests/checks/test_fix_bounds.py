"""What goes along with a fix, and bounds for what an installer moves beside it."""

from __future__ import annotations

import pytest

from compat.checks.advice import accompanied, bounded
from compat.formats.described import environment_of
from compat.model import Environment, Fix

OLD = {"datasets": "4.3.0", "transformers": "4.57.1", "tokenizers": "0.22.1", "huggingface-hub": "0.34.4"}


def installed(packages: dict[str, str]) -> Environment:
    return environment_of({"distributions": [{"name": name, "version": version} for name, version in packages.items()]})[0]


def command_of(asked: str, packages: dict[str, str], kind: str = "upgrade") -> str | None:
    return bounded(Fix(kind, "", command=f"pip install {asked}"), installed(packages)).command


def test_what_moves_is_bounded_by_what_the_installer_does_not_look_at() -> None:
    """datasets 5.2 requires huggingface-hub 1.31, of which pip takes the newest; transformers 4 refuses that."""
    assert command_of('"datasets>=4.4.0"', OLD) == 'pip install "datasets>=4.4.0" "huggingface-hub<1.0"'


@pytest.mark.parametrize(
    ("asked", "packages"),
    [
        ('"datasets>=4.4.0,<5"', OLD),  # accepts what is installed
        ('"datasets>=4.4.0"', {**OLD, "transformers": "5.24.0", "tokenizers": "0.23.2", "huggingface-hub": "1.33.0"}),
        ('"datasets>=4.4.0" "huggingface-hub<1"', OLD),
        ('"trl>=0.29.0"', {**OLD, "trl": "0.24.0"}),  # requires transformers: the installer looks at what that requires
        ('"datasets>=5.2.0"', OLD),  # no release of it goes with transformers 4
        ('"datasets>=99"', OLD),
        ('"torch==2.10.0+cu129"', OLD),
    ],
)
def test_a_command_without_side_effects_is_left_alone(asked: str, packages: dict[str, str]) -> None:
    assert command_of(asked, packages) == f"pip install {asked}"


def test_only_fixes_that_install_releases_have_bounds() -> None:
    assert command_of('"datasets>=4.4.0"', OLD, kind="config") == 'pip install "datasets>=4.4.0"'


SERVING = {"torch": "2.5.1", "torchvision": "0.20.1", "vllm": "0.7.2"}


def along(asked: str, packages: dict[str, str], kind: str = "upgrade") -> str | None:
    return accompanied(Fix(kind, "", command=f"pip install {asked}"), installed(packages)).command


def test_what_refuses_the_new_release_moves_along() -> None:
    """vllm 0.7.2 and torchvision 0.20.1 pin torch 2.5.1; 0.10.2 and 0.23.0 are the first releases for 2.8.0."""
    command = along('"torch>=2.8.0"', SERVING)
    assert command is not None
    assert set(command.split('"')[1::2]) == {"torch>=2.8.0", "torchvision>=0.23.0", "vllm>=0.10.2"}


def test_what_has_no_such_release_follows_what_requires_it() -> None:
    """vllm-flash-attn ended with torch 2.4; vllm 0.10.2 no longer requires it."""
    packages = {"torch": "2.3.0", "vllm": "0.5.1", "vllm-flash-attn": "2.5.9"}
    assert along('"torch>=2.8.0"', packages) == 'pip install "torch>=2.8.0" "vllm>=0.10.2"'
    assert along('"torch>=2.8.0"', {"torch": "2.3.0", "vllm-flash-attn": "2.5.9"}) == 'pip install "torch>=2.8.0"'


def test_an_older_release_of_what_refuses_is_an_upper_bound() -> None:
    packages = {"transformers": "4.57.1", "vllm": "0.11.0"}
    assert (
        along('"transformers>=4.51.3,<4.52"', packages, "downgrade") == 'pip install "transformers>=4.51.3,<4.52" "vllm<=0.9.2"'
    )


@pytest.mark.parametrize(
    ("asked", "packages"),
    [
        ('"torch>=2.8.0" "vllm>=0.10.2"', {"torch": "2.5.1", "vllm": "0.7.2"}),  # already part of the fix
        ('"torch>=2.8.0"', {"torch": "2.6.0", "vllm": "0.7.2"}),  # refuses what is installed, too: an error of its own
        ('"transformers>=4.48.0"', {"transformers": "4.47.0", **SERVING}),
        ('"torch>=99"', SERVING),  # no vllm goes with it
        ('"torch==2.7.1+cu128"', SERVING),  # its requirements are those of the release
    ],
)
def test_a_fix_that_goes_with_the_others_stays_as_it_is(asked: str, packages: dict[str, str]) -> None:
    assert along(asked, packages) == f"pip install {asked}"
