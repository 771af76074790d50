"""A Model Context Protocol server: compat's commands as tools for agents and editors.

Each tool call runs a command in a separate process with ``--format json``: the result is the command's own output,
a hanging call ends at its time limit, and stray output cannot corrupt the protocol.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import Tool, ToolAnnotations
from pydantic import Field

from compat import __version__
from compat.errors import printable
from compat.model import normalized

SECONDS = 300
"""Time limit of one call."""
_HALF = str(SECONDS // 2)
"""Time limit of planning: a plan that is not proven to be the best is better than none."""
_INSTRUCTIONS = """\
Checks stacks of torch, transformers, trl, vllm, unsloth, flash-attn and similar packages for known-bad combinations, and plans
the smallest fix. Use `check` before installing or starting a job, `diagnose` on a traceback, log or issue, `fix` for a plan,
`suggest` for a complete set of pins, `rules` for what is known about a package. Verdict "hit" is certain; "possible" depends on
the facts in `missing`: ask for them or pass them.
`exit` 0: no known problems found, 1: findings, 3: undecided.
"""

Gpu: TypeAlias = Annotated[str | None, Field(description="accelerators of the target, such as 'A100:2' or 'RTX 5090'; 'none'")]
Task: TypeAlias = Annotated[str | None, Field(description="sft, grpo, dpo, train, inference, serve …")]
Launcher: TypeAlias = Annotated[
    Literal["python", "accelerate", "torchrun", "deepspeed", "ray", "slurm"] | None,
    Field(description="what starts the processes"),
]
Features: TypeAlias = Annotated[list[str] | None, Field(description="features that are on: vllm, zero-3, fsdp, peft …")]
Command: TypeAlias = Annotated[
    list[str] | None, Field(description="the command about to be started, as a list of arguments; it is read, not run")
]
Python: TypeAlias = Annotated[str | None, Field(description="Python of the target, such as 3.12")]
File: TypeAlias = Annotated[
    str,
    Field(description="lock file, requirements, pyproject.toml, environment.yml, Dockerfile, notebook, script …", min_length=1),
]


class _Strict(MCPServer):
    """A server that refuses arguments it does not know: an answer must not look as if they had been considered."""

    async def list_tools(self) -> list[Tool]:
        """List the tools; their schemas allow no other properties."""
        return [
            tool.model_copy(update={"input_schema": {**tool.input_schema, "additionalProperties": False}})
            for tool in await super().list_tools()
        ]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool with arguments that its schema names."""
        for tool in await self.list_tools():
            known = tool.input_schema["properties"]
            unknown = [each for each in arguments if tool.name == name and each not in known]
            if unknown:
                raise ToolError(printable(f"unknown argument {unknown[0]!r:.80}; expected {', '.join(known)}"))
        return await super().call_tool(name, arguments, context)


def server(*, allow_write: bool = False) -> MCPServer:
    """Create the server with its tools; ``allow_write`` lets ``fix`` change files."""
    made = _Strict("compat", version=__version__, instructions=_INSTRUCTIONS, log_level="ERROR")
    reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    asking = ToolAnnotations(read_only_hint=True, open_world_hint=True)

    @made.tool(annotations=reading, structured_output=True)
    def check(
        path: Annotated[
            str | None, Field(description="a file, as for `fix`; by default the installed packages are checked")
        ] = None,
        environment: Annotated[
            dict[str, Any] | None, Field(description="a described environment (schema compat/environment/1) instead of a file")
        ] = None,
        gpu: Gpu = None,
        task: Task = None,
        launcher: Launcher = None,
        features: Features = None,
        python_version: Python = None,
        command: Command = None,
    ) -> dict[str, Any]:
        """Known-bad combinations in a file, a described environment, or what is installed here."""
        if path is not None and environment is not None:
            raise ToolError("path and environment are mutually exclusive")
        options: dict[str, object] = {"gpu": gpu, "task": task, "launcher": launcher, "features": features}
        options["python-version"] = python_version
        if environment is not None:
            options["environment"] = "-"
        elif path is None:
            options["installed"] = True
        described = None if environment is None else json.dumps({"schema": "compat/environment/1", **environment})
        return _answer("check", [] if path is None else [path], options, command, text=described)

    @made.tool(annotations=reading, structured_output=True)
    def diagnose(
        text: Annotated[str, Field(description="a traceback, a log or a whole issue", min_length=1)],
        gpu: Gpu = None,
        task: Task = None,
        launcher: Launcher = None,
        features: Features = None,
    ) -> dict[str, Any]:
        """What the errors in a text mean, judged by the environment that the text describes."""
        options = {"gpu": gpu, "task": task, "launcher": launcher, "features": features}
        return _answer("diagnose", ["-"], options, text=text)

    @made.tool(annotations=ToolAnnotations(read_only_hint=not allow_write, open_world_hint=True), structured_output=True)
    def fix(
        path: File,
        gpu: Gpu = None,
        task: Task = None,
        launcher: Launcher = None,
        features: Features = None,
        python_version: Python = None,
        command: Command = None,
        keep: Annotated[list[str] | None, Field(description="requirements to keep, such as 'torch==2.5.1'")] = None,
        write: Annotated[bool, Field(description="write the plan into the file, if the server allows it")] = False,
    ) -> dict[str, Any]:
        """The smallest set of changes that fixes every error in a file. Reads the package index."""
        if write and not allow_write:
            raise ToolError("this server may not write: it was started without --allow-write")
        options = {
            "gpu": gpu, "task": task, "launcher": launcher, "features": features, "python-version": python_version,
            "keep": keep, "write": write, "time-limit": _HALF,
        }  # fmt: skip
        return _answer("fix", [path], options, command)

    @made.tool(annotations=asking, structured_output=True)
    def suggest(
        packages: Annotated[list[str] | None, Field(description="packages or requirements, such as 'vllm>=0.8'")] = None,
        gpu: Gpu = None,
        task: Task = None,
        python_version: Python = None,
    ) -> dict[str, Any]:
        """A complete set of pins that goes together, for packages or a task on a GPU. Reads the package index."""
        options = {
            "with": packages,
            "gpu": gpu,
            "task": task,
            "python-version": python_version,
            "time-limit": str(SECONDS // 2),
        }
        return _answer("suggest", [], options)

    @made.tool(annotations=reading, structured_output=True)
    def rules(
        package: Annotated[str | None, Field(description="only rules about this package")] = None,
        rule: Annotated[str | None, Field(description="the id of one rule, to show in full")] = None,
    ) -> dict[str, Any]:
        """Curated rules: titles of those about a package, or one rule with its evidence and examples."""
        if rule is not None:
            return {"rules": _run("rules", ["show", rule], {})}
        found = _run("rules", ["list"], {})
        wanted = normalized(package or "")
        named = [each for each in found if package is None or wanted in (text.split()[0] for text in each["with"])]
        return {"rules": [{key: each[key] for key in ("id", "title", "severity", "with")} for each in named]}

    return made


def _answer(
    name: str,
    operands: Sequence[str],
    options: Mapping[str, object],
    command: Sequence[str] | None = None,
    text: str | None = None,
) -> dict[str, Any]:
    answer: dict[str, Any] = _run(name, operands, options, command, text)
    answer.pop("environment", None)  # what the caller said, and of an installed one hundreds of lines
    return answer


def _run(
    name: str,
    operands: Sequence[str],
    options: Mapping[str, object],
    command: Sequence[str] | None = None,
    text: str | None = None,
) -> Any:
    """Run a command and return its JSON; raises :class:`ToolError` with its message for invalid input or no decision."""
    words = [name, "--format=json"]
    for option, value in options.items():
        given = value if isinstance(value, list) else [value]
        words += [f"--{option}" if each is True else f"--{option}={each}" for each in given if each not in (None, False)]
    # operands are never parsed as options, and standard input belongs to this server
    words += [f"./{each}" if each.startswith("-") and text is None else each for each in operands]
    if command:
        words += ["--", *command]
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", "compat", *words], input=(text or "").encode(), capture_output=True, check=False,
            timeout=SECONDS,
        )  # fmt: skip
    except (ValueError, OSError) as problem:  # a NUL character, a lone surrogate, arguments longer than the system takes
        raise ToolError(f"compat {name} cannot be started with these arguments: {printable(str(problem))}") from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"compat {name} took longer than {SECONDS} seconds") from None
    if not done.stdout.strip():
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ToolError(lines[-1] if lines else f"compat {name} ended with exit code {done.returncode}")
    return json.loads(done.stdout)
