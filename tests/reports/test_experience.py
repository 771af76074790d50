"""Releases of which a report says that they work or that they are the cause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.reports.experiences import experiences_in


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("transformers==4.39.1 is ok, but 4.40.0 failed.", ("transformers", ("4.39.1",), ("4.40.0",))),
        ("Works with vllm 0.5.1, fails with 0.5.2", ("vllm", ("0.5.1",), ("0.5.2",))),
        ("I downgraded transformers to 4.28.1 and it fixed the issue", ("transformers", ("4.28.1",), ())),
        ("After degrading torch 2.8.0 to 2.7.0 I can import it.", ("torch", ("2.7.0",), ("2.8.0",))),
        ("Not able to load after the upgrade from datasets 3.3.2 to 3.4.0", ("datasets", ("3.3.2",), ("3.4.0",))),
        ("Accelerate 1.8.0 breaks it -> Need to downgrade to accelerate 1.7.0", ("accelerate", ("1.7.0",), ("1.8.0",))),
        ("This is due to the breaking changes in huggingface_hub 0.26.0.", ("huggingface-hub", (), ("0.26.0",))),
        ("trl 0.9.6 works. trl 0.12.0 does not work", ("trl", ("0.9.6",), ("0.12.0",))),
        ("It runs fine with Flash Attention 2.5.8", ("flash-attn", ("2.5.8",), ())),
        ("I downgraded PyTorch Lightning from 2.0.1 to 1.9.5", ("pytorch-lightning", ("1.9.5",), ("2.0.1",))),
        ("downgrade torch from 2.8.0 to 2.7.0", ("torch", ("2.7.0",), ("2.8.0",))),
        ("transformers is at 4.51.3 and it works", ("transformers", ("4.51.3",), ())),
        ("torch version 2.6.0 works", ("torch", ("2.6.0",), ())),
        ("Upgrading to peft==0.15.0 (nothing else changed) leads to an OOM error", ("peft", (), ("0.15.0",))),
        ("After upgrading to deepspeed 0.14.3, all gradients are zero.", ("deepspeed", (), ("0.14.3",))),
        ("simply downgrading peft to version 0.14.0 resolves this issue.", ("peft", ("0.14.0",), ())),
        ("Since accelerate 0.30.0 training hangs.", ("accelerate", (), ("0.30.0",))),
        ("The problem only occurs with triton 3.3.0.", ("triton", (), ("3.3.0",))),
        ("I bisected it to accelerate 0.34.0.", ("accelerate", (), ("0.34.0",))),
        ("Training with datasets==3.6.0 runs as expected.", ("datasets", ("3.6.0",), ())),
        ("transformers 4.57.1 works, 5.0.0 does not", ("transformers", ("4.57.1",), ("5.0.0",))),
        ("Works with vllm==0.8.5 but not with vllm==0.9.0.", ("vllm", ("0.8.5",), ("0.9.0",))),
        ("peft's latest version (0.18.0) breaks the import", ("peft", (), ("0.18.0",))),
        ("Since version 5.0.0 of transformers this import fails", ("transformers", (), ("5.0.0",))),
        ("It worked with 2.5.1 of torch, after moving to 2.6.0 it hangs", ("torch", ("2.5.1",), ("2.6.0",))),
        ("This started with accelerate 1.10.0", ("accelerate", (), ("1.10.0",))),
        ("The error goes away with trl 0.19.1", ("trl", ("0.19.1",), ())),
        ("I had to go back to peft 0.14.0 to make it run.", ("peft", ("0.14.0",), ())),
        ("Pin peft <0.15 to repair the merge, a fix", ("peft", ("<0.15",), ())),
        ("Evaluation hangs with Accelerate versions >= 1.8.1", ("accelerate", (), (">=1.8.1",))),
        ("Loading the dataset crashes with pyarrow 15.0.0 and newer", ("pyarrow", (), (">=15.0.0",))),
        ("The import is broken on numpy newer than 1.26", ("numpy", (), (">1.26",))),
        ("It fails with triton older than 3.1", ("triton", (), ("<3.1",))),
        ("For long contexts use ray 2.9.0 due to a bug in ray 2.10.0", ("ray", ("2.9.0",), ("2.10.0",))),
    ],
)
def test_what_a_report_says(text: str, said: tuple[str, tuple[str, ...], tuple[str, ...]]) -> None:
    assert [(each.name, each.works, each.fails) for each in experiences_in(text)] == [said]


@pytest.mark.parametrize(
    "text",
    [
        "I use transformers 4.51.3 on this machine and get an error",  # what ran is not what is at fault
        "the loss does not go down with a learning rate of 0.001",
        "Python 3.12 fails to run",
        "We plan to upgrade to torch 2.6.0 next week.",
        "I upgraded to peft 0.15.0 to fix the error above",
        "Since I use peft 0.15.0, I get this error",
        "I have peft >= 0.15 and the import fails",
        "the build fails and says that it requires cuda-python >= 12.4",
        "Please install peft >= 0.15 and report back",
        "I use peft 0.14.0 due to company policy",
        "The error happens with torch 2.9.0 on my machine",
        "it does not work and says that triton 3.3.0 requires torch 2.7.0",
        "```\ntrl 0.9.6 works, trl 0.12.0 fails\n```",
        "trl 0.9.6 works, trl 0.9.6 fails",
        "my system has torch 2.8.0, which cannot be downgraded due to other projects",
        "torch 2.8.0 is installed and can't be downgraded to the old one",
    ],
)
def test_what_says_nothing(text: str) -> None:
    assert experiences_in(text) == ()


@given(st.text(max_size=400))
def test_any_text_is_read(text: str) -> None:
    experiences_in(text)


def test_what_pip_calls_incompatible_is_nobodys_experience() -> None:
    assert experiences_in("torchdata 0.7.0 requires torch==2.1.0, but you have torch 2.1.1+cu121 which is incompatible.") == ()
