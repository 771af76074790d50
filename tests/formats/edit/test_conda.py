"""environment.yml: specifications of conda, and the section for pip."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from tests.formats.edit.conftest import COMMIT, VENDOR, Edited

ENVIRONMENT = """\
name: demo
channels: [conda-forge]
dependencies:
  - python=3.11
  - numpy=1.26.4=py311h64a7726_0  # build
  - pytorch::pytorch>=2.1,<2.3
  - "scipy==1.11"
  - pip
  - pip:
      - --extra-index-url https://download.pytorch.org/whl/cu121
      - vllm==0.7.1  # serve
      - -e git+https://github.com/huggingface/trl@abc#egg=trl
prefix: /opt/demo
"""


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (Change("numpy", "1.26.4", "2.0.0"), "numpy=1.26.4=py311h64a7726_0", "numpy=2.0.0"),
        (Change("torch", "2.2", "2.6.0"), "pytorch::pytorch>=2.1,<2.3", "pytorch::pytorch==2.6.0"),
        (Change("scipy", "1.11", "1.12"), "scipy==1.11", "scipy==1.12"), (Change("vllm", "0.7.1", "0.8.0"), "vllm==0.7.1", "vllm==0.8.0"),
        (Change("trl", None, "0.13"), "-e git+https://github.com/huggingface/trl@abc#egg=trl", "trl==0.13"),
        (Change("trl", None, "0.13", COMMIT), "@abc", f"@{'c' * 40}"), (Change("scipy", "1.11", None), '  - "scipy==1.11"\n', ""),
        (Change("vllm", "0.7.1", None), "      - vllm==0.7.1  # serve\n", ""),
        (Change("tokenizers", "0.20", "0.21", why="needed"), "#egg=trl\n", "#egg=trl\n      - tokenizers==0.21  # needed\n"),
    ],
)  # fmt: skip
def test_one_item(edited: Edited, change: Change, old: str, new: str) -> None:
    assert ENVIRONMENT.count(old) == 1
    assert edited("environment.yml", ENVIRONMENT, change) == ENVIRONMENT.replace(old, new)


def test_the_vendors_index(edited: Edited) -> None:
    new = edited("environment.yml", ENVIRONMENT, Change("vllm", "0.7.1", "0.8.0+cu128", VENDOR))
    assert new == ENVIRONMENT.replace("vllm==0.7.1", "vllm==0.8.0+cu128").replace("cu121", "cu128")
    default = Change("vllm", "0.7.1", "0.8.0", default_index="https://download.pytorch.org/whl/cu128")
    assert edited("environment.yml", ENVIRONMENT, default) == new.replace("+cu128", "")
    bare = ENVIRONMENT.replace("      - --extra-index-url https://download.pytorch.org/whl/cu121\n", "")
    assert edited("environment.yml", bare, default) == bare.replace("0.7.1", "0.8.0")


def test_a_pin_in_an_included_file_is_changed_there(edited: Edited) -> None:
    """Its own line would contradict that file; what no file names is added to the environment."""
    text = "dependencies:\n  - python=3.11\n  - pip\n  - pip:\n      - -r requirements.txt\n      - peft==0.13.0\n"
    files = {"requirements.txt": "torch==2.0.1\n-r more.txt\n", "more.txt": "trl==0.13\n"}
    changes = (Change("torch", "2.0.1", "2.8.0"), Change("trl", "0.13", "0.14"), Change("numpy", None, "1.26.4", direct=True))
    assert edited("environment.yml", text, *changes, **files) == f"{text}      - numpy==1.26.4\n"
    assert edited("environment.yml", text, *changes, of="requirements.txt", **files) == "torch==2.8.0\n-r more.txt\n"
    assert edited("environment.yml", text, *changes, of="more.txt", **files) == "trl==0.14\n"


def test_a_section_for_pip_is_made(edited: Edited) -> None:
    text = "dependencies:\r\n- python=3.11\r\n- numpy"
    new = edited("environment.yml", text, Change("trl", None, "0.13"))
    assert new == f"{text}\r\n- pip:\r\n  - trl==0.13"


@pytest.mark.parametrize(
    ("text", "change", "message"),
    [
        (ENVIRONMENT, Change("torch", "2.2", "2.6", COMMIT), "environment.yml:6: torch comes from conda, but"),
        ("dependencies: [numpy]\n", Change("trl", None, "1"), "environment.yml:1: expected one dependency per line"),
        ("dependencies:\n- 'numpy[version=\">1\"]'\n", Change("numpy", "1.2", "2"), "environment.yml:2: expected a conda package such as"),
        ('dependencies:\n- "num\\x70y==1"\n', Change("numpy", "1", "2"), "environment.yml:2: cannot edit numpy as it is written"),
        ("dependencies:\n- pip:\n  - torch==${V}\n", Change("torch", "1", "2"), "environment.yml:3: cannot edit torch as it is written"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_safely(edited: Edited, text: str, change: Change, message: str) -> None:
    with pytest.raises(InputError) as caught:
        edited("environment.yml", text, change)
    assert str(caught.value).startswith(message)
