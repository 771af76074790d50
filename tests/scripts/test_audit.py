"""The audit of bounds: which releases stand on both sides, and what their source shows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from compat.index.metadata import File, Metadata
from compat.index.metadata import Requirement as Needed
from compat.model import Distribution, Environment, Report
from compat.records import replace
from compat.rules.compiled import evidence_of, in_memory, open_matrix
from compat.rules.evaluate import judge
from compat.rules.loader import load_file
from compat.rules.rule import FixTemplate, HasPackage, Rule
from compat.versions import ranges_of
from scripts import pack_mined
from scripts.audit import companions, corners, evidence, fixes
from scripts.audit.bounds import Bound, bounds_of
from scripts.audit.evidence import FOLDER, Evidence
from scripts.audit.marks import Mark, Marks
from scripts.audit.marks import read as read_marks
from scripts.audit.reading import Reader
from scripts.audit.sources import Sources
from scripts.surface.store import Fetched, Store

RULE = """
[[rule]]
id = "b-needs-a-name"
title = "b cannot be imported"
severity = "error"
effect = "crash"
confidence = "confirmed"
why = "It asks a for what is gone."
packages = {{ {packages} }}
evidence = ["https://example.org"]
[[rule.errors]]
message = {message}
[[rule.fix]]
upgrade = {{ b = ">=9" }}
[[rule.example]]
hit = {{ packages = {{ a = "2.0", b = "1.0" }} }}
[[rule.example]]
clear = {{ packages = {{ a = "1.0", b = "1.0" }} }}
"""
GONE = "\"cannot import name 'thing' from 'a.parts'\""


@pytest.fixture
def rule(tmp_path: Path) -> Rule:
    return rule_of(tmp_path, 'a = ">=2.0", b = "<1.2"')


def rule_of(folder: Path, packages: str, message: str = GONE) -> Rule:
    path = folder / "rules.toml"
    path.write_text(RULE.format(packages=packages, message=message), encoding="utf-8")
    return load_file(str(path))[0]


def reader(folder: Path, releases: dict[tuple[str, str], dict[str, str]]) -> Reader:
    store = Store(folder)
    for (package, version), files in releases.items():
        members = {path: text.encode() for path, text in files.items()}
        store.keep(Fetched(package, version, "f", None, None, True, 0, 0.0, (), members))
    return Reader(Sources(store, offline=True))


@pytest.mark.parametrize(
    ("packages", "versions", "found"),
    [
        ('a = ">=2.0,<3"', ["1.9", "2.0", "2.5", "3.0"], [(">=2", "2.0", "1.9"), ("<3.dev0", "2.5", "3.0")]),
        ('a = ">=2.0"', ["2.0", "1.10", "1.9"], [(">=2", "2.0", "1.10")]),
        ('a = ">=2.0"', ["2.0"], [(">=2", "2.0", "")]),
        ('a = "==2.0"', ["1.9", "2.0", "2.1"], [("==2", "2.0", "1.9"), ("==2", "2.0", "2.1")]),
        ('a = ">=2.0"', ["1.9", "2.0rc1", "2.0"], [(">=2", "2.0", "1.9")]),
        ('a = ">=2.0rc1"', ["1.9", "2.0rc0", "2.0rc1", "2.0"], [(">=2rc1", "2.0rc1", "2.0rc0")]),
        ('a = "<2"', ["2.0", "3.0"], []),
        ('a = "*"', ["2.0", "3.0"], []),
    ],
)
def test_a_bound_has_a_release_on_either_side(
    packages: str, versions: list[str], found: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    bounds = bounds_of(rule_of(tmp_path, packages), lambda package: versions)
    assert [(bound.bound, bound.inside, bound.outside) for bound in bounds] == found


def test_a_name_that_one_side_lacks_or_asks_for_is_evidence(rule: Rule, tmp_path: Path) -> None:
    here = reader(tmp_path, {
        ("a", "1.0"): {"a/parts.py": "def thing(): ..."}, ("a", "2.0"): {"a/parts.py": "def other(): ..."},
        ("b", "1.1"): {"b/__init__.py": "from a.parts import (\n    thing,\n)"}, ("b", "1.2"): {"b/__init__.py": "import a"},
    })  # fmt: skip
    assert here.seen(rule, Bound(rule.id, "a", ">=2", "2.0", "1.0")) == "a.parts:thing is not in 2.0 and is in 1.0"
    assert here.seen(rule, Bound(rule.id, "b", "<1.2", "1.1", "1.2")) == "a.parts:thing is imported by 1.1 and not by 1.2"


def test_where_both_sides_are_alike_nothing_is_seen(rule: Rule, tmp_path: Path) -> None:
    here = reader(tmp_path, {
        ("a", "1.0"): {"a/parts.py": "def other(): ..."}, ("a", "2.0"): {"a/parts.py": "def other(): ..."},
        ("a", "3.0"): {"a/parts.py": "from a.more import *"},
    })  # fmt: skip
    assert here.seen(rule, Bound(rule.id, "a", ">=2", "2.0", "1.0")) == ""
    assert here.seen(rule, Bound(rule.id, "a", ">=2", "2.0", "3.0")) == "", "what a star brings is not known"
    assert here.seen(rule, Bound(rule.id, "a", ">=2", "2.0", "0.5")) == "", "a release that cannot be had shows nothing"


def test_a_message_that_only_one_side_can_raise_is_evidence(tmp_path: Path) -> None:
    rule = rule_of(tmp_path, 'a = ">=2.0", b = "<1.2"', message="'^Either a part or a whole must be given: \\d+'")
    here = reader(tmp_path, {
        ("a", "1.0"): {"a/x.py": "pass"}, ("a", "2.0"): {"a/x.py": "raise ValueError(f'Either a part or a whole must be given: {n}')"},
    })  # fmt: skip
    seen = here.seen(rule, Bound(rule.id, "a", ">=2", "2.0", "1.0"))
    assert seen == "'Either a part or a whole must be given' is in 2.0 and not in 1.0"


def test_a_program_shows_the_bound_whose_two_sides_it_ran_with(rule: Rule) -> None:
    program = {"rule": rule.id, "bad": {"a": "2.0", "b": "1.1"}, "good": [{"a": "2.0", "b": "1.2"}, {"a": "1.0", "b": "1.2"}]}
    assert "fails with 1.1" in evidence.reproduced(rule, Bound(rule.id, "b", "<1.2", "1.1", "1.2"), [program])
    assert not evidence.reproduced(rule, Bound(rule.id, "b", "<1.2", "1.1", "1.3"), [program]), "not the neighbour"
    assert not evidence.reproduced(rule, Bound(rule.id, "a", ">=2", "2.0", "1.0"), [program]), "b was changed as well"


def test_rows_outlive_a_round_trip_and_only_those_that_still_hold_are_compiled(rule: Rule, tmp_path: Path) -> None:
    rows = [
        Evidence(rule.id, "a", ">=2", "2.0", "1.0", "read", 'a, "quoted"', "2026-01-01"),
        Evidence(rule.id, "b", "<1.3", "1.2", "1.3", "static", "of an older range", "2026-01-01"),
    ]
    evidence.write(tmp_path / "x.csv", rows)
    assert evidence.read(tmp_path / "x.csv") == rows
    compiled = pack_mined.evidence([rule], [vars(row) for row in rows])
    assert b"quoted" in compiled
    assert b"older range" not in compiled


def test_rules_show_prints_what_the_audit_kept() -> None:
    kept = [row for path in FOLDER.glob("*.csv") for row in evidence.read(path)]
    found = evidence_of("peft-hybrid-cache-transformers-5")
    assert {each.package for each in found} == {"peft", "transformers"}
    assert {row.how for row in kept} <= {"static", "mined", "metadata", "ran", "read", "open", "unchecked"}
    assert all(row.seen for row in kept if row.how != "unchecked")
    assert evidence_of("no-such-rule") == ()


def test_a_fix_is_followed_to_the_packages_that_it_brings_along(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(rule, id="c-is-broken", packages=(HasPackage("c", "in", ranges_of(">=3")), *rule.packages[1:]), unless=())
    matrix = in_memory([rule, replace(other, packages=(other.packages[0], HasPackage("b", "in", ranges_of(">=9"))))])
    environment = Environment(distributions=(Distribution(name="a", version="2.0"), Distribution(name="b", version="1.0")))
    fix = FixTemplate("upgrade", packages=(("b", ">=9"),))
    asked: list[list[str]] = []

    def resolved(wanted: list[str], *_: object) -> tuple[dict[str, str] | None, str]:
        asked.append(wanted)
        return ({"a": "2.0", "b": "9.1", "c": "3.0"}, "") if "b>=9" in wanted else ({"a": "2.0", "b": "1.0", "c": "3.0"}, "")

    monkeypatch.setattr(fixes, "_resolved", resolved)
    monkeypatch.setattr(fixes, "check", lambda after: Report(after, findings=judge(after, matrix)))
    found = fixes.followed(rule, fix, environment)
    assert (found.result, found.seen, found.python) == (fixes.LEADS, "c-is-broken", "3.11")
    assert asked[0] == ["b>=9", "a==2.0"]
    monkeypatch.setattr(fixes, "_resolved", lambda *_: (None, "no solution"))
    assert (fixes.followed(rule, fix, environment).result) == fixes.IMPOSSIBLE


def test_a_fix_is_tried_at_the_ends_of_a_range(rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = replace(rule, id="b-9-needs-a-below-5", unless=(), packages=(
        HasPackage("a", "in", ranges_of(">=5")), HasPackage("b", "in", ranges_of(">=9")),
    ))  # fmt: skip
    matrix = in_memory([rule, newer])
    monkeypatch.setattr(corners, "check", lambda after: Report(after, findings=judge(after, matrix)))
    store = Store(tmp_path)
    for package, version in (("a", "2.0"), ("a", "6.0"), ("b", "1.0"), ("b", "9.1")):
        store.keep(Fetched(package, version, "f", None, None, True, 0, 0.0, (), {}))
    found = corners.Corners(Sources(store, offline=True))
    fix = FixTemplate("upgrade", packages=(("b", ">=9"),))
    assert [(beside, error.rule) for beside, error in found.errors(rule, fix)] == [({"a": "6.0"}, "b-9-needs-a-below-5")]
    below_5 = replace(fix, when=(HasPackage("a", "in", ranges_of("<5")),))
    assert not list(found.errors(rule, below_5))


def test_a_fix_is_tried_with_every_series_inside_a_range(rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = replace(rule, id="b-9-and-a-3", unless=(), packages=(
        HasPackage("a", "in", ranges_of("==3.*")), HasPackage("b", "in", ranges_of(">=9")),
    ))  # fmt: skip
    matrix = in_memory([rule, newer])
    monkeypatch.setattr(corners, "check", lambda after: Report(after, findings=judge(after, matrix)))
    store = Store(tmp_path)
    for package, version in (("a", "2.0"), ("a", "3.1.0"), ("a", "3.1.1"), ("a", "6.0"), ("b", "1.0"), ("b", "9.1")):
        store.keep(Fetched(package, version, "f", None, None, True, 0, 0.0, (), {}))
    found = corners.Corners(Sources(store, offline=True))
    fix = FixTemplate("upgrade", packages=(("b", ">=9"),))
    assert [(beside, error.rule) for beside, error in found.errors(rule, fix)] == [({"a": "3.1.1"}, "b-9-and-a-3")]


def test_a_fix_is_tried_beside_a_package_that_the_rule_does_not_name(
    rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = replace(rule, id="b-9-needs-c-2", unless=(), packages=(
        HasPackage("c", "in", ranges_of("<2")), HasPackage("b", "in", ranges_of(">=9")),
    ))  # fmt: skip
    matrix = in_memory([rule, newer])
    monkeypatch.setattr(corners, "check", lambda after: Report(after, findings=judge(after, matrix)))
    store = Store(tmp_path)
    for package, version in (("a", "2.0"), ("b", "1.0"), ("b", "9.1"), ("c", "1.4.0"), ("c", "1.4.1"), ("c", "2.0")):
        store.keep(Fetched(package, version, "f", None, None, True, 0, 0.0, (), {}))
    found = corners.Corners(Sources(store, offline=True))
    fix = FixTemplate("upgrade", packages=(("b", ">=9"),))
    assert [(beside, error.rule) for beside, error in found.errors_beside(rule, fix, "c")] == [
        ({"c": "1.4.1"}, "b-9-needs-c-2")
    ]
    since_2 = replace(fix, when=(HasPackage("c", "in", ranges_of(">=2")),))
    assert not list(found.errors_beside(rule, since_2, "c"))
    assert not list(found.errors_beside(rule, fix, "a"))


def test_a_fix_is_tried_among_the_releases_of_its_time(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = replace(rule, id="b-9-needs-transformers-5", unless=(), packages=(
        HasPackage("transformers", "in", ranges_of("<5")), HasPackage("b", "in", ranges_of(">=9")),
    ))  # fmt: skip
    matrix = in_memory([rule, newer])
    monkeypatch.setattr(companions, "check", lambda after: Report(after, findings=judge(after, matrix)))
    days = {
        ("a", "2.0"): "2024-05-01", ("b", "1.0"): "2024-05-01", ("b", "9.1"): "2026-05-01", ("b", "8.0"): "2025-05-01",
        ("transformers", "4.41.0"): "2024-04-30", ("transformers", "5.0.0"): "2026-01-01",
    }  # fmt: skip
    rows = ({"package": name, "version": version, "uploaded": day, "yanked": ""} for (name, version), day in days.items())
    releases = companions.Releases(iter(rows))
    assert [(fix.packages, each.rule) for fix, each in companions.breaks(rule, releases)] == [
        ((("b", ">=9"),), "b-9-needs-transformers-5")
    ]
    bounded = replace(rule, fixes=(FixTemplate("upgrade", packages=(("b", ">=8,<9"),)),))
    assert not list(companions.breaks(bounded, releases))


def test_what_has_no_wheel_is_resolved_by_what_it_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    class OneSource:
        def files(self, name: str) -> list[File]:
            rest = None, 1, None, None, None, "sdist", None, ""
            return [File(name, "", f"{name}-{version}.tar.gz", version, *rest) for version in ("1.0", "2.0")]

        def metadata(self, file: File) -> Metadata:
            needed = Needed("c", ">=3"), Needed("d", marker="python_version < '3.9'")
            return Metadata(needed, None, (), "sdist")

    monkeypatch.setattr(fixes, "_index", OneSource)
    built: dict[str, str] = {}
    assert fixes._without_wheel(fixes.Requirement("b<2"), "3.11", built) == ["c>=3"]
    assert built == {"b": "1.0"}


def test_what_comes_along_without_a_wheel_is_resolved_by_what_it_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def uv(_: list[str], **given: object) -> subprocess.CompletedProcess[str]:
        asked.append(str(given["input"]))
        if "device" not in asked[-1]:
            told = "error: No solution found\n  Because device-smi>=0.5 has no usable wheels\n  and you require it"
            return subprocess.CompletedProcess([], 1, "", told)
        return subprocess.CompletedProcess([], 0, "b==9.0\ndevice==3.0\n", "")

    def of_source(wanted: Requirement, _: str, built: dict[str, str]) -> list[str]:
        assert str(wanted) == "device-smi>=0.5"
        built["device-smi"] = "0.6"
        return ["device>=3"]

    monkeypatch.setattr(fixes, "_without_wheel", lambda wanted, *_: [str(wanted)])
    monkeypatch.setattr(fixes, "_of_source", of_source)
    monkeypatch.setattr("scripts.audit.fixes.subprocess.run", uv)
    assert fixes._resolved(["b>=9"], "3.11", "linux") == ({"b": "9.0", "device": "3.0", "device-smi": "0.6"}, "")
    assert asked == ["b>=9", "b>=9\ndevice>=3"]


def test_a_mark_shows_the_bound_that_one_release_has_and_its_neighbour_has_not(rule: Rule, tmp_path: Path) -> None:
    old, new = {"a/parts.py": "thing = 1\n"}, {"a/parts.py": "other = 1\n"}
    sources = reader(tmp_path, {("a", "1.0"): old, ("a", "2.0"): new})._sources
    bound = Bound(rule.id, "a", ">=2", "2.0", "1.0")
    marks = Marks([Mark(rule.id, "a", "a/parts.py", "1"), Mark(rule.id, "a", "parts.py", "thing = 1")], sources)
    assert marks.seen(bound) == "'thing = 1' is in parts.py of 1.0 and not of 2.0"
    assert Marks([Mark("another", "a", "parts.py", "thing = 1")], sources).seen(bound) == ""


def test_every_mark_is_about_a_rule_and_one_of_its_packages() -> None:
    packages = {(rule.id, each.name) for rule in open_matrix().rules() for each in rule.packages}
    assert all((mark.rule, mark.package) in packages for mark in read_marks())


def test_what_only_reports_show_is_no_error() -> None:
    assert [rule.id for rule in open_matrix().rules() if (rule.severity, rule.confidence) == ("error", "reported")] == []
