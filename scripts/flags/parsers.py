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
    Program("sglang serve", "sglang", re.compile(r"sglang\.srt\.server_args$"), ("ServerArgs",)),
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
