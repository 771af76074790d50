"""``compat mcp``: a real client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

FOUNDING = {"distributions": [{"name": "trl", "version": "0.14.0"}, {"name": "vllm", "version": "0.6.6.post1"}]}
Calls = Callable[[ClientSession], Awaitable[Any]]


def served(folder: Path, calls: Calls, *words: str) -> Any:
    """What some calls to a fresh server give, started in ``folder``."""

    async def run() -> Any:
        server = StdioServerParameters(command=sys.executable, args=["-m", "compat", "mcp", *words], cwd=str(folder))
        async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            return await calls(session)

    return asyncio.run(asyncio.wait_for(run(), 120))


def test_the_tools_are_listed_with_their_schemas(tmp_path: Path) -> None:
    async def calls(session: ClientSession) -> Any:
        return (await session.list_tools()).tools

    tools = {tool.name: tool for tool in served(tmp_path, calls)}
    assert set(tools) == {"check", "diagnose", "fix", "suggest", "rules"}
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools.values())
    launcher = tools["check"].input_schema["properties"]["launcher"]
    assert "torchrun" in json.dumps(launcher)
    assert tools["fix"].input_schema["required"] == ["path"]
    assert not any(tool.input_schema["additionalProperties"] for tool in tools.values())


def test_an_environment_a_file_and_a_text_are_judged(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("trl==0.14.0\nvllm==0.6.6.post1\n", encoding="utf-8")
    error = "ImportError: cannot import name 'AutoModelForVision2Seq' from 'transformers'\n\nverl==0.7.0\ntransformers==5.0.0\n"
    target = {"gpu": "A100:2", "task": "grpo", "features": ["vllm"]}

    async def calls(session: ClientSession) -> Any:
        return [
            (await session.call_tool(name, arguments)).structured_content
            for name, arguments in (
                ("check", {"environment": FOUNDING, **target}),
                ("check", {"path": "requirements.txt", **target}),
                ("diagnose", {"text": error}),
                ("rules", {"package": "vllm"}),
                ("rules", {"package": "Flash_Attn"}),
                ("rules", {"rule": "trl-grpo-vllm-second-device"}),
            )
        ]

    described, file, diagnosed, about, flash, one = served(tmp_path, calls)
    for report in (described, file):
        assert report["exit"] == 1
        assert "trl-grpo-vllm-second-device" in [each["rule"] for each in report["findings"] if each["verdict"] == "hit"]
    assert diagnosed["findings"][0]["packages"].keys() >= {"verl", "transformers"}
    assert len(about["rules"]) > 10
    assert flash["rules"]
    assert all(any(text.startswith("vllm ") for text in each["with"]) for each in about["rules"])
    assert one["rules"][0]["id"] == "trl-grpo-vllm-second-device"


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("check", {"path": "missing.lock"}, "missing.lock"),
    ("check", {"path": "--rules=/dev/zero"}, "./--rules=/dev/zero"),
    ("check", {"path": "-"}, "./-"),
    ("check", {"path": "a", "environment": {}}, "mutually exclusive"),
    ("check", {"environment": {"python": 3.11}}, "python"),
    ("check", {"environment": FOUNDING, "gpu": "A1000000"}, "A1000000"),
    ("check", {"environment": FOUNDING, "launcher": "horse"}, "launcher"),
    ("fix", {"path": "requirements.txt", "write": True}, "--allow-write"),
    ("rules", {"rule": "no-such-rule"}, "no-such-rule"),
    ("check", {"environment": FOUNDING, "gpus": "A100:2"}, "unknown argument 'gpus'"),
    ("check", {"environment": FOUNDING, "pythonVersion": "3.11"}, "expected path, environment, gpu"),
]


def test_what_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    async def calls(session: ClientSession) -> Any:
        return [await session.call_tool(name, arguments) for name, arguments, _ in REFUSED]

    for answer, (name, arguments, wanted) in zip(served(tmp_path, calls), REFUSED, strict=True):
        assert answer.is_error, (name, arguments)
        assert wanted in answer.content[0].text


def test_fix_is_marked_as_writing_where_it_may_write(tmp_path: Path) -> None:
    async def calls(session: ClientSession) -> Any:
        return {tool.name: tool for tool in (await session.list_tools()).tools}

    tools = served(tmp_path, calls, "--allow-write")
    assert not tools["fix"].annotations.read_only_hint
    assert tools["check"].annotations.read_only_hint
