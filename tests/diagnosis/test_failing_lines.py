"""A line that failed and that later releases of its package do not have."""

from __future__ import annotations

import pytest

from compat.model import Distribution, Environment
from tests.diagnosis.test_symptoms import between_of

SITE = "/usr/local/lib/python3.11/site-packages"
FAILED = f"""Traceback (most recent call last):
  File "/home/user/train.py", line 9, in <module>
    trainer.train()
  File "{SITE}/transformers/trainer.py", line 3318, in training_step
    self.optimizer.train()
  File "{SITE}/accelerate/optimizer.py", line 128, in train
    return self.optimizer.train()
{{}}
"""
ERROR = "TypeError: train() is of another kind here"


def with_releases(**versions: str) -> Environment:
    return Environment(distributions=tuple(Distribution(name, version) for name, version in versions.items()))


def test_the_next_release_without_the_line() -> None:
    (finding,) = between_of(FAILED.format(ERROR), with_releases(accelerate="0.33.0"))
    assert finding.rule == "symptom-changed-line"
    assert finding.title == ("accelerate 0.33.0 fails in a line that 0.34.0 no longer has: train() is of another kind here")
    assert finding.verdict == "possible"
    assert "`return self.optimizer.train()` in train is in accelerate 0.30.0 to 0.33.0" in finding.why
    assert [(fix.kind, fix.package, fix.spec) for fix in finding.fixes] == [
        ("upgrade", "accelerate", ">=0.34.0"),
        ("downgrade", "accelerate", "<=0.29.3"),
    ]


def test_the_release_is_not_known() -> None:
    (finding,) = between_of(FAILED.format(ERROR))
    assert finding.title.startswith("accelerate fails in a line that 0.34.0 no longer has")


def test_a_release_that_does_not_have_the_line() -> None:
    assert between_of(FAILED.format(ERROR), with_releases(accelerate="0.34.0")) == []


@pytest.mark.parametrize(
    "error",
    [
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "KeyboardInterrupt",
        "FileNotFoundError: [Errno 2] No such file or directory: 'a.json'",
        "requests.exceptions.ConnectionError: Connection refused by the host",
    ],
)
def test_errors_of_the_machine_are_not_of_a_release(error: str) -> None:
    found = between_of(FAILED.format(error), with_releases(accelerate="0.33.0"))
    assert [each for each in found if each.rule == "symptom-changed-line"] == []


def test_a_comprehension_belongs_to_its_function() -> None:
    text = FAILED.replace("in train\n", "in train\n    x = [self.optimizer.train() for each in them]\n", 1)
    text = text.replace(
        "    return self.optimizer.train()\n",
        f'  File "{SITE}/accelerate/optimizer.py", line 128, in <listcomp>\n    return self.optimizer.train()\n',
    )
    (finding,) = between_of(text.format(ERROR), with_releases(accelerate="0.33.0"))
    assert "in train is in accelerate" in finding.why


def test_an_import_only_leads_to_the_error() -> None:
    lines = f"""Traceback (most recent call last):
  File "{SITE}/deepspeed/elasticity/elastic_agent.py", line 12, in <module>
    from torch.distributed.elastic.agent.server.api import log, _get_socket_with_port
{{}}
"""
    found = between_of(lines.format("TypeError: an annotation is of another kind"), with_releases(deepspeed="0.14.0"))
    assert [each for each in found if each.rule == "symptom-changed-line"] == []


def test_an_error_without_a_message_has_no_answer() -> None:
    assert between_of(FAILED.format("AssertionError"), with_releases(accelerate="0.33.0")) == []


def test_a_message_that_says_what_to_set_is_no_bug_that_an_upgrade_removes() -> None:
    refused = f"""Traceback (most recent call last):
  File "{SITE}/datasets/load.py", line 134, in resolve_trust_remote_code
    raise ValueError(
ValueError: This needs code from the repository. Please set the option `trust_remote_code=True` to run it.
"""
    (finding,) = between_of(refused, with_releases(datasets="2.20.0"))
    assert finding.rule == "symptom-changed-line"
    assert [(fix.kind, fix.spec) for fix in finding.fixes] == [("config", None)]
    assert "`trust_remote_code=True`" in finding.fixes[0].text
