"""What the rules cover: every rule is counted once, years and packages are counted as the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.rules.loader import load_file, load_folder
from scripts.coverage import HEAD, PAGE, ROOT, covered, main, table, uploads

DAYS = {"trl": [("0.1", "2023-05-01"), ("0.2", "2024-06-01"), ("0.3", "2025-07-01")]}
RULE = """
[[rule]]
id = "{id}"
title = "It breaks"
severity = "error"
effect = "crash"
confidence = "reproduced"
why = "It does."
packages = {packages}
evidence = ["https://github.com/huggingface/trl/issues/1"]
[[rule.fix]]
env-var = "SAFE=1"
text = "the safe way"
[[rule.example]]
hit = {{ packages = {{ trl = "0.1" }} }}
[[rule.example]]
clear = {{ packages = {{ trl = "9" }} }}
"""


def test_every_rule_is_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out.splitlines()
    rules = load_folder(str(ROOT / "matrix" / "rules"))
    assert printed[-1].startswith(f"| all | {len(rules)} |")
    assert sum(int(line.split("|")[2]) for line in printed[2:-1]) == len(rules)


def test_the_page_in_docs_is_a_table_of_the_program() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(HEAD)
    assert page.removeprefix(HEAD).splitlines()[-1].startswith("| all | ")


@pytest.mark.parametrize(
    ("packages", "year", "newest"),
    [
        ('{ trl = "<=0.2" }', "2024", "2025-07-01"),  # the fixed release is what was read last
        ('{ trl = "<0.2" }', "2023", "2024-06-01"),
        ('{ trl = ">=0.2" }', "undated", ""),
        ('{ trl = "<=0.3" }', "2025", "2025-07-01"),
        ('{ unheard-of = "<2" }', "undated", ""),
    ],
)
def test_a_rule_counts_in_the_year_of_its_newest_bad_release(tmp_path: Path, packages: str, year: str, newest: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(RULE.format(id="a", packages=packages), encoding="utf-8")
    (name, found), *others = covered(tuple(load_file(str(path))), DAYS).items()
    assert not others
    assert (dict(found.years), found.reproduced, found.newest) == ({year: 1}, 1, newest)
    assert f"| {name} | 1 | 1 | 1 | {newest} |" in table({name: found})


def test_days_come_from_the_fact_table() -> None:
    found = uploads(ROOT / "matrix" / "facts" / "releases.csv")
    assert dict(found["transformers"])["4.57.1"] == "2025-10-14"
    assert min(day for days in found.values() for _, day in days) > "2016"
