"""Files of one's own that hide installed packages, by tracebacks."""

from __future__ import annotations

import pytest

from compat.api.diagnosis import diagnose_text
from compat.model import Environment
from compat.rules.compiled import open_matrix

PATH = "/home/me/env/lib/python3.11/site-packages"
LACKING = "ImportError: cannot import name 'load_dataset' from 'datasets' (/workspace/proj/datasets.py)"
CIRCULAR = """\
Traceback (most recent call last):
  File "/home/me/x/transformers.py", line 1, in <module>
    from transformers import AutoModel
ImportError: cannot import name 'AutoModel' from partially initialized module 'transformers' (most likely due to a circular \
import) (/home/me/x/transformers.py)
"""
NO_PACKAGE = """\
Traceback (most recent call last):
  File "/workspace/train.py", line 1, in <module>
    import torch.nn as nn
ModuleNotFoundError: No module named 'torch.nn'; 'torch' is not a package
"""
BY_PACKAGE = f"""\
Traceback (most recent call last):
  File "/home/me/x/train.py", line 3, in <module>
    from transformers import AutoModel
  File "{PATH}/transformers/tokenization_utils_fast.py", line 26, in <module>
    from tokenizers import AddedToken
  File "/home/me/x/tokenizers.py", line 1, in <module>
    from transformers import AutoTokenizer
ImportError: cannot import name 'AutoTokenizer' from partially initialized module 'transformers' (most likely due to a circular \
import) ({PATH}/transformers/__init__.py)
"""
STANDARD = """\
AttributeError: module 'random' has no attribute 'choice' (consider renaming '/home/me/x/random.py' since it has the same name \
as the standard library module named 'random' and prevents importing that standard library module)
"""


def found(text: str) -> list[tuple[str, str]]:
    return [
        (each.rule, each.title) for each in diagnose_text(text, Environment(), open_matrix()).findings if each.verdict == "hit"
    ]


@pytest.mark.parametrize(
    ("text", "rule", "title"),
    [
        (LACKING, "symptom-hidden-datasets", "/workspace/proj/datasets.py hides the installed datasets"),
        (CIRCULAR, "symptom-hidden-transformers", "/home/me/x/transformers.py hides the installed transformers"),
        (NO_PACKAGE, "symptom-hidden-torch", "A file torch.py hides the installed torch"),
        (BY_PACKAGE, "symptom-hidden-tokenizers", "/home/me/x/tokenizers.py hides the installed tokenizers"),
        (STANDARD, "symptom-hidden-random", "/home/me/x/random.py hides the module random of Python"),
        (LACKING.replace("/workspace/proj/", "C:\\work\\"), "symptom-hidden-datasets", None),
    ],
)
def test_an_own_file_is_named(text: str, rule: str, title: str | None) -> None:
    ((said, written),) = found(text)
    assert said == rule
    assert title is None or written == title


@pytest.mark.parametrize(
    "text",
    [
        LACKING.replace("/workspace/proj/datasets.py", f"{PATH}/datasets/__init__.py"),
        LACKING.replace("/workspace/proj/datasets.py", "/workspace/datasets/src/datasets/__init__.py"),
        LACKING.replace("'datasets'", "'my_own'").replace("datasets.py", "my_own.py"),
        # a script with the name of a package, which another program starts
        (
            f'Traceback (most recent call last):\n  File "{PATH}/accelerate/commands/launch.py", line 1, in main\n    run(args)\n'
            '  File "/home/me/evaluate.py", line 1, in <module>\n    from peft import Nothing\n'
            f"ImportError: cannot import name 'Nothing' from 'peft' ({PATH}/peft/__init__.py)\n"
        ),
    ],
    ids=["installed", "checkout", "own module", "script"],
)
def test_installed_packages_checkouts_and_scripts_hide_nothing(text: str) -> None:
    assert not any(rule.startswith("symptom-hidden") for rule, _ in found(text))
