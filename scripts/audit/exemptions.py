"""``python -m scripts.audit.exemptions [RULE…]``: exemptions of a rule that no example shows.

An exemption is shown by an example that the rule would be about without it. Those that are not have often been copied from a
neighboring rule and are wrong there: a tool is exempt that runs the faulty code after all. The common ones (tasks that do not
train, tools with a trainer of their own) are only printed with ``--all``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from compat.checks.lint_fixes import environment_of
from compat.records import replace
from compat.rules.evaluate import verdict_of
from compat.rules.facts import OWN_TRAINER, WITHOUT_TRAINER, WITHOUT_TRL, Facts
from compat.rules.loader import load_folder
from compat.rules.rule import Condition, HasFeature, IsOneOf, Rule, in_words
from scripts.audit.evidence import ROOT


def unshown(rule: Rule) -> Iterator[tuple[Condition, ...]]:
    """Yield the exemptions without which the rule says the same of all its examples."""
    environments = [environment_of(each) for each in rule.examples if each.verdict != "hit"]
    for number, exemption in enumerate(rule.unless):
        without = replace(rule, unless=rule.unless[:number] + rule.unless[number + 1 :])
        if all(verdict_of(without, Facts(each)).word == verdict_of(rule, Facts(each)).word for each in environments):
            yield exemption


def is_common(exemption: Sequence[Condition]) -> bool:
    """Whether an exemption only names tasks, or tools with a trainer of their own."""
    names = (OWN_TRAINER, WITHOUT_TRAINER, WITHOUT_TRL)
    return all(
        (isinstance(each, IsOneOf) and each.path == "workload.task") or (isinstance(each, HasFeature) and each.name in names)
        for each in exemption
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.audit.exemptions", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="only these (default: all)")
    parser.add_argument("--all", action="store_true", help="the common ones as well")
    words = parser.parse_args(arguments)
    for rule in load_folder(str(ROOT / "matrix" / "rules")):
        for exemption in unshown(rule) if not words.rules or rule.id in words.rules else ():
            if words.all or not is_common(exemption):
                print(f"{rule.file}: {rule.id}: {' and '.join(in_words(each) for each in exemption)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
