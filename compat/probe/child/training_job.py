"""What tests with several processes share: how the processes of a job are started, and a tiny language model that they train.

The processes are started as torchrun starts its ranks, or by a launcher. The model and its tokenizer train in a second on any
machine, without downloads.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from .job import Job

if TYPE_CHECKING:
    import torch
    import transformers

Event = dict[str, Any]
"""A line of JSON that a rank appended to the results."""

START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start.py")


class RankFailed(Exception):
    """A rank failed or exceeded the time limit; the message has its last lines."""


def free_port() -> int:
    """Return a port that is currently free on the loopback interface."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def write_job(job: Job, module: str, values: dict[str, object]) -> str:
    """Write a job file for ranks that run ``rank_main`` of a module here; its results go next to this job's."""
    folder = os.path.dirname(job.results)
    path = os.path.join(folder, f"{module}-{len(os.listdir(folder))}.json")
    content = {**job.values, "rank": module, "results": path + ".results", **values}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)
    return path


def rank_variables(rank: int, world: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }  # fmt: skip


def run_ranks(path: str, world: int, limit: float, variables: dict[str, str] | None = None) -> list[Event]:
    """Run ``world`` ranks of a job file and return their results by rank; raises :class:`RankFailed` for the first failure."""
    port, started = free_port(), []
    for rank in range(world):
        output = open(f"{path}.{rank}.stderr", "wb")  # noqa: SIM115
        environment = {**os.environ, **rank_variables(rank, world, port), **(variables or {})}
        started.append(subprocess.Popen([sys.executable, START, path], env=environment, stdout=output, stderr=output))
        output.close()
    _wait(started, path, limit)
    return events_by_rank(path)


def run_launcher(command: list[str], path: str, limit: float, variables: dict[str, str] | None = None) -> list[Event]:
    """Run ``python``, ``torchrun`` or ``accelerate launch`` on a job file, outside any rank; returns the results by rank."""
    ours = {name: value for name, value in os.environ.items() if name not in rank_variables(0, 1, 0) or name.startswith("OMP")}
    with open(f"{path}.0.stderr", "wb") as output:
        started = subprocess.Popen([*command, START, path], env={**ours, **(variables or {})}, stdout=output, stderr=output)
    _wait([started], path, limit)
    return events_by_rank(path)


def _wait(started: list[subprocess.Popen[bytes]], path: str, limit: float) -> None:
    """Wait for all ranks; the first failure or the time limit ends the others."""
    until = time.monotonic() + limit
    try:
        while True:
            codes = [process.poll() for process in started]
            bad = next((rank for rank, code in enumerate(codes) if code not in (None, 0)), None)
            if bad is not None:
                how = f"exit code {codes[bad]}" if (codes[bad] or 0) > 0 else f"signal {-(codes[bad] or 0)}"
                raise RankFailed(f"rank {bad} of {len(started)} ended with {how}: {_last_words(path, bad)}")
            if all(code == 0 for code in codes):
                return
            if time.monotonic() > until:
                waiting = [rank for rank, code in enumerate(codes) if code is None]
                names = f"rank{'s' * (len(waiting) > 1)} {', '.join(map(str, waiting))}"
                raise RankFailed(f"{names} did not finish within {limit:.0f} s: {_last_words(path, waiting[0])}")
            time.sleep(0.02)
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()


def _last_words(path: str, rank: int) -> str:
    try:
        with open(f"{path}.{rank}.stderr", encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file.read()[-20_000:].split("\n") if line.strip()]
    except OSError:
        lines = []
    errors = [line for line in lines if "Error" in line and not line.startswith(("File", "raise", "[W"))]
    return (errors or lines or ["it printed nothing"])[-1][:400]


def events_by_rank(path: str) -> list[Event]:
    """Return the lines that a job's ranks appended to its results, ordered by rank."""
    try:
        with open(path + ".results", encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
    except OSError:
        return []
    return sorted(events, key=lambda event: event.get("rank", 0))


WORDS = 200
SPECIAL = {"<pad>": 0, "<eos>": 1, "<unk>": 2}
_TEMPLATE = "{% for message in messages %}{{ message['content'] }} <eos> {% endfor %}"


def model() -> transformers.LlamaForCausalLM:
    """Return a one-layer Llama with random weights and no dropout."""
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=256, pad_token_id=SPECIAL["<pad>"], eos_token_id=SPECIAL["<eos>"],
        bos_token_id=SPECIAL["<eos>"], attention_dropout=0.0, use_cache=False,
    )  # fmt: skip
    transformers.set_seed(17)
    return transformers.LlamaForCausalLM(config)


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Return a tokenizer with one token per word: w0 to w199."""
    import tokenizers
    import transformers

    vocabulary = {**SPECIAL, **{f"w{number}": number + len(SPECIAL) for number in range(WORDS)}}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", bos_token="<eos>", unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"], model_max_length=256,
    )  # fmt: skip
    made.chat_template = _TEMPLATE
    return made


def text(row: int) -> str:
    """Return the text of a row: a unique first word, then words derived from it."""
    return " ".join([f"w{row}", *(f"w{100 + (7 * row + column * column) % 100}" for column in range(11))])


def rows_in(input_ids: torch.Tensor) -> list[int]:
    """Identify the rows in a batch of token ids by the first row-marking word of each (generated words come later)."""
    first, last = len(SPECIAL), len(SPECIAL) + 100
    found = (next((token - first for token in line if first <= token < last), None) for line in input_ids.tolist())
    return sorted({row for row in found if row is not None})
