"""The cost of a larger matrix: a check with many more rules."""

from __future__ import annotations

import random
from pathlib import Path

from compat.files import sealed
from compat.machine.interpreter import read_installed, target_at
from compat.records import replace
from compat.rules.compiled import packed
from compat.rules.loader import load_folder
from compat.rules.rule import HasPackage, Rule
from compat.versions import ranges_of

ROOT = Path(__file__).resolve().parent.parent


def write_many(ours: Path, many: Path, times: int) -> int:
    """Put ``times`` as many rules into the copy of compat installed in ``many``; returns their number.

    The generated rules concern distributions of the benchmark's own environment, half of them those that the real
    rules concern, in ranges next to the installed release: none can be skipped unevaluated, and none adds output.
    """
    rules = list(load_folder(str(ROOT / "matrix" / "rules")))
    installed = read_installed(target_at(str(ROOT / ".bench" / "stack"))).distributions
    names = [copy.name for copy in installed]
    subjects = [name for name in names if name in {each.name for rule in rules for each in rule.packages}]
    rng = random.Random(1)
    generated = [
        _aside(rules[number % len(rules)], number, rng.choice(subjects if number % 2 else names), rng)
        for number in range(len(rules) * (times - 1))
    ]
    (compiled,) = many.glob("lib/python3*/site-packages/compat/data/rules.bin")
    compiled.write_bytes(sealed(packed([*rules, *generated]), compiled.name))
    return len(rules) + len(generated)


def _aside(rule: Rule, number: int, name: str, rng: random.Random) -> Rule:
    """Return a copy of a rule for nonexistent releases of ``name``."""
    start = rng.randint(9000, 9998)
    condition = HasPackage(name, "in", ranges_of(f">={start}.{rng.randint(0, 9)},<{start + 1}"))
    return replace(rule, id=f"{rule.id}-{number}", packages=(condition, *rule.packages[1:]))
