"""Errors of a package's code against itself or against Python."""

from __future__ import annotations

import pytest

from compat.model import Distribution, Environment
from tests.diagnosis.test_symptoms import between_of

SITE = "/usr/local/lib/python3.11/site-packages"
ARGPARSE = f"""Traceback (most recent call last):
  File "{SITE}/vllm/entrypoints/api_server.py", line 120, in <module>
    parser.add_argument("--port", type=int, default=8000, ge=1024, le=65535)
  File "/usr/lib/python3.11/argparse.py", line 1448, in add_argument
    action = action_class(**kwargs)
TypeError: _StoreAction.__init__() got an unexpected keyword argument 'ge'
"""
UNSET = """Traceback (most recent call last):
  File "{}", line 2300, in _inner_training_loop
    x = num_items
UnboundLocalError: {}
"""
NEW = "cannot access local variable 'num_items' where it is not associated with a value"
OLD = "local variable 'num_items' referenced before assignment"


def with_releases(**versions: str) -> Environment:
    return Environment(distributions=tuple(Distribution(name, version) for name, version in versions.items()))


def test_an_argument_that_python_does_not_take() -> None:
    (finding,) = between_of(ARGPARSE, with_releases(vllm="0.7.3", transformers="4.49.0"))
    assert finding.title == "vllm 0.7.3 passes ge to Python's argparse, which does not take that: a fault of the release"
    assert [(fix.kind, fix.package, fix.spec) for fix in finding.fixes] == [
        ("upgrade", "vllm", ">=0.8.0"),
        ("downgrade", "vllm", "<=0.7.2"),
    ]


@pytest.mark.parametrize("message", [NEW, OLD])
def test_a_variable_that_is_not_set(message: str) -> None:
    (finding,) = between_of(UNSET.format(f"{SITE}/transformers/trainer.py", message), with_releases(transformers="4.49.0"))
    assert finding.title.startswith("transformers 4.49.0 reads the variable num_items before it sets it")
    assert "transformers/trainer.py, line 2300, in _inner_training_loop" in finding.why


def test_the_release_is_not_known() -> None:
    (finding,) = between_of(UNSET.format(f"{SITE}/transformers/trainer.py", NEW))
    assert [(fix.kind, fix.spec) for fix in finding.fixes] == [("pin", None)]


@pytest.mark.parametrize(
    "file", ["/home/user/train.py", "/root/.cache/huggingface/modules/transformers_modules/x/y/modeling.py"]
)
def test_code_of_the_user_or_of_a_model(file: str) -> None:
    assert between_of(UNSET.format(file, NEW), with_releases(transformers="4.49.0")) == []


def test_a_call_of_the_user_is_not_a_fault_of_a_package() -> None:
    assert between_of(ARGPARSE.replace(f"{SITE}/vllm/entrypoints/api_server.py", "/home/user/serve.py")) == []
