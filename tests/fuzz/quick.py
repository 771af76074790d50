"""Some hundreds of inputs for each reader named, in one process: ``python -m tests.fuzz.quick uv conda``.

The seeds, every bomb in its smallest size and a few random inputs; the test suite runs it. Exit code 1 where one fails.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.mutations import maker
from tests.fuzz.readers import READERS, default_name
from tests.fuzz.trials import Trials

RANDOM = 150
"""Random inputs for each reader."""


def failures(reader: str) -> list[str]:
    """What failed, as a text for each input."""
    found: list[str] = []
    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix="compat-fuzz-") as folder:
        trials = Trials(reader, Path(folder))
        inputs = maker(READERS[reader], reader, seed=0)
        numbers = [*range(inputs.small()), *range(inputs.fixed(), inputs.fixed() + RANDOM)]
        taken = 0
        for number in numbers:
            name = default_name(READERS[reader], random.Random(number), trials.project)
            good, failure = trials.tried(name, inputs.made(number))
            taken += good
            if failure is not None:
                found.append(f"{reader}, input {number} ({failure.content[:200]!r}): {failure.key}\n{failure.trace}")
    if not taken:
        found.append(f"{reader}: not one of {len(numbers)} inputs was read")
    print(f"{reader}: {len(numbers)} inputs, {taken} read, {time.process_time() - began:.1f} s", flush=True)
    return found


if __name__ == "__main__":
    problems = [problem for reader in sys.argv[1:] for problem in failures(reader)]
    print(*problems, sep="\n")
    sys.exit(bool(problems))
