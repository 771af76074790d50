"""The programs whose parsers are read, and the modules that add to each."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """``modules`` hold the calls of ``add_argument``; where one of them adds the fields of classes, ``classes`` are these."""

    name: str
    package: str
    modules: re.Pattern[str]
    classes: tuple[str, ...] = ()


PROGRAMS = (
    Program("accelerate launch", "accelerate", re.compile(r"accelerate\.commands\.launch$")),
    Program("deepspeed", "deepspeed", re.compile(r"deepspeed\.launcher\.runner$")),
    Program("lm_eval", "lm-eval", re.compile(r"lm_eval\.(__main__|_cli\.\w+)$")),
    Program("lmdeploy", "lmdeploy", re.compile(r"lmdeploy\.cli\.\w+$")),
    Program("sglang serve", "sglang", re.compile(r"sglang\.srt\.server_args$"), ("ServerArgs",)),
    Program("torchrun", "torch", re.compile(r"torch\.distributed\.run$")),
    Program(
        "vllm serve",
        "vllm",
        re.compile(
            r"vllm\.(engine\.(arg_utils|async_llm_engine)|entrypoints\.(\w+\.)*cli_args|entrypoints\.openai\.api_server"
            r"|entrypoints\.(cli\.serve|utils|launcher)|scripts|utils(\.argparse_utils)?)$"
        ),
        ("FrontendArgs", "BaseFrontendArgs"),
    ),
)
