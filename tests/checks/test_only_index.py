"""Requirements that torch's index, as the only one, does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks.unresolvable import not_in_only_index
from compat.formats.registry import read_listings
from compat.model import Finding

CU118 = "https://download.pytorch.org/whl/cu118"


def found(folder: Path, name: str, text: str) -> list[Finding]:
    (folder / name).write_text(text)
    return [finding for listing in read_listings(str(folder / name)) for finding in not_in_only_index(listing)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", f"--index-url {CU118}\ntorch==2.5.1\ntransformers==4.46.3\npeft==0.13.2\n"),
        ("Dockerfile", f"FROM python:3.11\nRUN pip install torch==2.5.1 transformers peft -i {CU118}\n"),
        ("install.sh", f"uv pip install --default-index {CU118} torch==2.5.1 transformers==4.46.3 peft\n"),
    ],
)
def test_libraries_that_torchs_index_does_not_have(name: str, text: str, tmp_path: Path) -> None:
    (finding,) = found(tmp_path, name, text)
    assert finding.title == f"{CU118} is the only index, and does not have transformers, peft"
    assert (finding.severity, finding.effect) == ("error", "install")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", f"--index-url {CU118}\ntorch==2.5.1\ntorchvision==0.20.1\nnumpy==1.26.4\n"),
        ("requirements.txt", f"--extra-index-url {CU118}\ntorch==2.5.1\ntransformers==4.46.3\n"),
        ("requirements.txt", f"--index-url {CU118}\n--extra-index-url https://index.example/simple\ntransformers==4.46.3\n"),
        ("requirements.txt", "--index-url https://index.example/simple\ntorch==2.5.1\ntransformers==4.46.3\n"),
        ("install.sh", f"pip install torch==2.5.1 --index-url {CU118}\npip install transformers==4.46.3\n"),
        (
            "Dockerfile",
            f"FROM python:3.11\nENV PIP_EXTRA_INDEX_URL=https://index.example\nRUN pip install transformers -i {CU118}\n",
        ),
    ],
)
def test_another_index_and_what_torchs_index_has_are_fine(name: str, text: str, tmp_path: Path) -> None:
    assert not found(tmp_path, name, text)
