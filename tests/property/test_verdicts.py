"""The three-valued evaluator against brute force: *hit* exactly if every completion hits, *clear* exactly if none does.

The brute force knows nothing of the evaluator: it fills every unknown fact of an environment with each value of a small
universe that has a value on either side of every bound the generated rules use, and decides the rule as written with
packaging's specifiers and plain Python.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Collection
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from compat.formats.described import parse_described
from compat.rules.evaluate import verdict_of
from compat.rules.facts import Facts
from compat.rules.loader import rule_of
from compat.rules.rule import Rule

BOUNDS = ("1.0", "2.0")
VERSIONS = ("0.9", "1.0", "1.0.post1", "1.5", "2.0.dev0", "2.0rc1", "2.0", "2.0.post1", "2.5")
SPECIFIERS = [
    *(f"{op}{bound}" for op in ("<", "<=", ">", ">=", "==", "!=") for bound in BOUNDS), ">=1.0,<2.0", ">1.0,!=2.0", "*", "!",
]  # fmt: skip
NUMBERS = (1, 2, 3)
NUMBER_RANGES = ("<2", ">=2", ">1,<3", "==2", "!=2")
WORDS = {"task": ("sft", "grpo", "serve"), "launcher": ("ray", "torchrun", "slurm")}
DEVICES = (
    {"vendor": "nvidia", "compute_capability": "8.0"},
    {"vendor": "nvidia", "compute_capability": "9.0"},
    {"vendor": "amd", "gfx": "gfx942"},
)
FEATURES = ("vllm", "flash-attention")
VARIABLES = (None, "0", "1")
FACTS = ("a", "b", "task", "launcher", "processes", "accelerators", "vllm", "flash-attention", "SWITCH")


def conditions(rng: random.Random) -> dict[str, Any]:
    """One conjunction over the small universe, in the form of a rule file."""
    table: dict[str, Any] = {}
    for fact in rng.sample(FACTS, rng.randint(1, 3)):
        if fact in ("a", "b"):
            table.setdefault("packages", {})[fact] = rng.choice(SPECIFIERS)
        elif fact in WORDS:
            table[fact] = rng.sample(WORDS[fact], rng.randint(1, 2))
        elif fact == "processes":
            table[fact] = rng.choice(NUMBER_RANGES)
        elif fact == "accelerators":
            table[fact] = {"count": rng.choice((">=1", ">=2", "==1", "<1"))}
            table[fact] |= rng.choice(
                ({}, {"vendor": ["nvidia"]}, {"capability": ">=9.0"}, {"capability": "<9.0"}, {"gfx": ["gfx942"]})
            )
        elif fact in FEATURES:
            table[rng.choice(("features", "any_feature", "features_absent", "features"))] = rng.sample(
                FEATURES, rng.randint(1, 2)
            )
        else:
            table["variables"] = {"SWITCH": rng.choice(("set", "unset", ["0"], ["0", "1"]))}
    return table


def generated_rule(rng: random.Random) -> dict[str, Any]:
    table: dict[str, Any] = {
        "id": "generated", "title": "t", "severity": "error", "effect": "crash", "confidence": "reported", "why": "w",
        "evidence": ["https://example.org"], "fix": [{"config": "c"}],
        "example": [{"hit": {"python": "3.11"}}, {"clear": {"python": "3.11"}}],
        "packages": {name: rng.choice(SPECIFIERS) for name in rng.sample(("a", "b"), rng.randint(1, 2))},
        "unless": [conditions(rng) for _ in range(rng.randint(0, 2))],
    }  # fmt: skip
    if rng.random() < 0.8:
        when = conditions(rng)
        when.pop("packages", None)
        if when:
            table["when"] = when
    return table


def choices(fact: str) -> list[Any]:
    """Everything a fact can be; ``None`` for a package that is not there, or a variable that is not set."""
    if fact in ("a", "b"):
        return [None, *VERSIONS]
    if fact in WORDS:
        return [*WORDS[fact], "(something else)"]
    if fact == "processes":
        return list(NUMBERS)
    if fact == "accelerators":
        return [list(found) for n in range(4) for found in itertools.combinations_with_replacement(DEVICES, n)]
    return [True, False] if fact in FEATURES else list(VARIABLES)


def used(rule: dict[str, Any]) -> list[str]:
    text = repr({key: rule.get(key) for key in ("packages", "when", "unless")})
    return [fact for fact in FACTS if f"'{fact}'" in text]


def holds(rule: dict[str, Any], facts: dict[str, Any], unstated: Collection[str] = ()) -> bool:
    """The rule as written, on facts that are all known; a package or variable that nobody stated exempts from nothing."""
    required = {"packages": rule["packages"], **rule.get("when", {})}
    return conjunction(required, facts) and not any(
        conjunction(table, facts) and not rests_on_unstated(table, unstated) for table in rule["unless"]
    )


def rests_on_unstated(table: dict[str, Any], unstated: Collection[str]) -> bool:
    """Whether an exemption needs a package to be there, or a variable to be set, that nobody mentioned."""
    needed = {name for name, specifier in table.get("packages", {}).items() if specifier != "!"}
    needed |= {name for name, how in table.get("variables", {}).items() if how != "unset"}
    return not needed.isdisjoint(unstated)


def conjunction(table: dict[str, Any], facts: dict[str, Any]) -> bool:
    return all(single(key, wanted, facts) for key, wanted in table.items())


def single(key: str, wanted: Any, facts: dict[str, Any]) -> bool:
    if key == "packages":
        return all(in_range(specifier, facts[name]) for name, specifier in wanted.items())
    if key in WORDS:
        return facts[key] in wanted
    if key == "processes":
        return SpecifierSet(wanted).contains(str(facts[key]))
    if key == "accelerators":
        return SpecifierSet(wanted["count"]).contains(str(sum(matches(device, wanted) for device in facts[key])))
    if key == "variables":
        value, how = facts["SWITCH"], wanted["SWITCH"]
        return (value is not None) == (how == "set") if isinstance(how, str) else value in how
    if key == "features_absent":
        return not any(facts[name] for name in wanted)
    return (all if key == "features" else any)(facts[name] for name in wanted)


@functools.cache
def in_range(specifier: str, version: str | None) -> bool:
    if specifier in ("*", "!"):
        return (version is None) == (specifier == "!")
    return version is not None and SpecifierSet(specifier).contains(version, prereleases=True)


def matches(device: dict[str, str], wanted: dict[str, Any]) -> bool:
    if "vendor" in wanted and device["vendor"] not in wanted["vendor"]:
        return False
    if "gfx" in wanted and device.get("gfx") not in wanted["gfx"]:
        return False
    capability = device.get("compute_capability")
    return "capability" not in wanted or (capability is not None and in_range(wanted["capability"], capability))


def described(known: dict[str, Any]) -> dict[str, Any]:
    """The facts that are known, as a described environment."""
    work: dict[str, Any] = {key: known[key] for key in (*WORDS, "processes") if key in known}
    work["features"] = [name for name in FEATURES if known.get(name) is True]
    work["features_absent"] = [name for name in FEATURES if known.get(name) is False]
    packages = [{"name": name, "version": known[name]} for name in ("a", "b") if known.get(name) is not None]
    document: dict[str, Any] = {"distributions": packages, "workload": work}
    # a package that is known to be absent can only be said of all of them at once
    document["distributions_complete"] = all(name in known for name in ("a", "b"))
    if "accelerators" in known:
        document["accelerators"] = known["accelerators"]
    if "SWITCH" in known:
        document["variables"] = {"SWITCH": known["SWITCH"]}
    return document


def pair(rng: random.Random) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """A rule, what is known, and which of the facts it uses are not."""
    rule = generated_rule(rng)
    facts = used(rule)
    unknown = [fact for fact in facts if rng.random() < 0.5]
    known = {fact: rng.choice(choices(fact)) for fact in FACTS if fact not in unknown}
    for name in ("a", "b"):
        if known.get(name, "") is None and any(other in unknown for other in ("a", "b")):
            known[name] = "1.5"  # absence is only known where the list of packages is complete
    return rule, known, unknown


def brute_force(rule: dict[str, Any], known: dict[str, Any], unknown: list[str]) -> str:
    seen = set()
    for values in itertools.product(*(choices(fact) for fact in unknown)):
        seen.add(holds(rule, {**known, **dict(zip(unknown, values))}, unknown))
        if len(seen) == 2:
            return "possible"
    return "hit" if seen == {True} else "clear"


def loaded(table: dict[str, Any]) -> Rule | None:
    try:
        return rule_of(table)
    except ValueError:
        return None  # a range that no version can lie in is refused by the loader


@pytest.mark.parametrize("seed", range(10))
def test_verdicts_are_those_of_brute_force(seed: int) -> None:
    """10 × 1,000 generated pairs of a rule and an environment."""
    rng = random.Random(seed)
    verdicts = {"hit": 0, "clear": 0, "possible": 0}
    while sum(verdicts.values()) < 1000:
        table, known, unknown = pair(rng)
        rule = loaded(table)
        if rule is None:
            continue
        environment, _ = parse_described(described(known), "generated")
        verdict = verdict_of(rule, Facts(environment))
        expected = brute_force(table, known, unknown)
        assert verdict.word == expected, (table, known, unknown, verdict)
        verdicts[expected] += 1
    assert min(verdicts.values()) > 5, verdicts


@pytest.mark.parametrize("seed", range(3))
def test_a_kind_of_device_without_a_number_is_any_number_of_them(seed: int) -> None:
    """3 × 200 rules that count devices, for environments that know of at least one of a kind."""
    rng = random.Random(200 + seed)
    verdicts = {"hit": 0, "clear": 0, "possible": 0}
    while sum(verdicts.values()) < 200:
        table, known, unknown = pair(rng)
        rule = loaded(table)
        if rule is None or "accelerators" not in used(table) or unknown or not known["accelerators"]:
            continue
        kind, *others = known["accelerators"]
        told = rng.choice((kind, {"vendor": "nvidia"}))  # without a capability it may be either
        environment, _ = parse_described(described({**known, "accelerators": [*others, {**told, "more": True}]}), "generated")
        found = {
            brute_force(table, {**known, "accelerators": [*others, *[each] * number]}, unknown)
            for each in ([kind] if told is kind else DEVICES[:2])
            for number in range(1, 5)
        }
        expected = found.pop() if len(found) == 1 else "possible"
        assert verdict_of(rule, Facts(environment)).word == expected, (table, known, unknown, told)
        verdicts[expected] += 1
    assert min(verdicts.values()) > 5, verdicts


@pytest.mark.parametrize("seed", range(3))
def test_the_missing_facts_are_among_the_unknown_ones(seed: int) -> None:
    """A possible finding names only facts that are unknown; answering those, and what the answers open, decides it.

    An answer can open another question: once a package is known to be there, an exemption that names it counts.
    """
    rng = random.Random(100 + seed)
    checked = 0
    while checked < 200:
        table, known, unknown = pair(rng)
        rule = loaded(table)
        if rule is None:
            continue
        verdict = verdict_of(rule, Facts(parse_described(described(known), "generated")[0]))
        if verdict.word != "possible":
            continue
        answered, rest = dict(known), list(unknown)
        while verdict.word == "possible":
            named = {path.rpartition(".")[2] for path in verdict.unknown}
            assert named
            assert named <= set(rest), (table, known, verdict)
            answered |= {fact: rng.choice([each for each in choices(fact) if each is not None]) for fact in named}
            rest = [fact for fact in rest if fact not in named]
            verdict = verdict_of(rule, Facts(parse_described(described(answered), "generated")[0]))
        assert brute_force(table, answered, rest) == verdict.word, (table, answered, verdict)
        checked += 1
