"""Rule files: what is wrong with one is a line that names file and rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.rules.compiled import Matrix, in_memory, named_distributions, open_matrix
from compat.rules.loader import load_file, load_folder
from compat.rules.rule import in_words
from tests.conftest import RULES

GOOD = """
[[rule]]
id = "a-rule"
title = "It breaks"
severity = "error"
effect = "crash"
confidence = "reported"
packages = { trl = ">=0.14.0,<0.16.0" }
evidence = ["https://example.org/1"]
why = "Because."
[rule.when]
launcher = ["python"]
[[rule.fix]]
upgrade = { trl = ">=0.16.0" }
[[rule.example]]
hit = { packages = { trl = "0.15.0" }, launcher = "python" }
[[rule.example]]
clear = { packages = { trl = "0.16.0" }, launcher = "python" }
"""


def written(folder: Path, text: str) -> str:
    path = folder / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    (rule,) = load_file(written(tmp_path, GOOD))
    assert (rule.id, rule.file, rule.line) == ("a-rule", "rules.toml", 2)
    assert [example.verdict for example in rule.examples] == ["hit", "clear"]


def test_any_holds_if_one_of_its_conditions_does(tmp_path: Path) -> None:
    text = GOOD.replace('launcher = ["python"]', 'any = { launcher = ["ray"], any_feature = ["peft", "fsdp"] }')
    (rule,) = load_file(written(tmp_path, text))
    assert [in_words(each) for each in rule.when] == ["launcher is ray or peft or fsdp"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("upgrade = {", 'version = "1.0"\nupgrade = {', "fix.version: expected the version of the commit of a source-install"),
        ('upgrade = { trl = ">=0.16.0" }', 'source-install = { trl = "git+https://e@abc" }\nversion = "x"', "fix.version"),
        ('">=0.14.0,<0.16.0"', '">=0.14.0,<0.16.x"', "packages.trl: '>=0.14.0,<0.16.x' is not a set of version specifiers"),
        ('">=0.14.0,<0.16.0"', '">=0.16.0,<0.14.0"', "packages.trl: no version matches"),
        ('">=0.14.0,<0.16.0"', '"==0.15.0+cu124"', "local version labels"),
        ('">=0.14.0,<0.16.0"', "3", "packages.trl: expected a specifier set"),
        ('severity = "error"', 'severity = "fatal"', "severity 'fatal' is not one of error, warning, info"),
        ('effect = "crash"\n', "", "effect is missing"),
        ('evidence = ["https://example.org/1"]', "evidence = []", "evidence: expected a list of words"),
        ('evidence = ["https://example.org/1"]', 'evidence = ["see the thread"]', "is not an https address"),
        ('evidence = ["https://example.org/1"]\n', "", "evidence is missing"),
        ('id = "a-rule"', 'id = "A Rule"', "is not lower-case words"),
        ('why = "Because."', 'why = " "', "why: expected a string"),
        ('why = "Because."', 'why = "Because."\nwho = "me"', "unknown key 'who'"),
        ('launcher = ["python"]', 'launcher = "python"', "launcher: expected a list of words"),
        ('launcher = ["python"]', 'launcher = ["pyhton"]', "launcher: 'pyhton' is not one of"),
        ('launcher = ["python"]', 'gpus = ["T4"]', "unknown condition 'gpus'"),
        ('launcher = ["python"]', "processes = 2", "processes: expected a range such as '>=2'"),
        ('launcher = ["python"]', "accelerators = { capabilty = '>=9' }", "accelerators: unknown key 'capabilty'"),
        ('launcher = ["python"]', 'variables = { A = "maybe" }', "variables.A: expected a list of words"),
        ('launcher = ["python"]', 'code = { trl = { detector = "d" } }', "code.trl: file is missing"),
        (
            "[rule.when]\nlauncher",
            "[rule.presume]\nprocesses = '2'\n[rule.when]\nlauncher",
            "presume.processes: '2' has the wrong type",
        ),
        (
            'severity = "error"',
            'severity = "error"\npresumed_severity = "warning"',
            "presumed_severity: expected another severity",
        ),
        ('upgrade = { trl = ">=0.16.0" }', 'text = "hope"', "fix: expected exactly one of"),
        ('upgrade = { trl = ">=0.16.0" }', 'upgrade = { trl = "newest" }', "is not a set of version specifiers"),
        ('clear = { packages = { trl = "0.16.0" }', 'clean = { packages = { trl = "0.16.0" }', "unknown key 'clean'"),
        (
            'clear = { packages = { trl = "0.16.0" }',
            'hit = { packages = { trl = "0.15.0" }',
            "at least one 'hit' and one 'clear' example",
        ),
        ('clear = { packages = { trl = "0.16.0" }', 'clear = { package = { trl = "0.16.0" }', "unknown key 'package'"),
        ("[[rule.fix]]", "[[rule.errors]]\nmessage = 'a(b'\n[[rule.fix]]", "'a(b' is not a regular expression"),
        ("[[rule.fix]]", "[[rule.errors]]\nmessage = 'ab'\nrelation = 'b == a + 1'\n[[rule.fix]]", "errors.relation"),
    ],
)
def test_what_is_wrong_names_file_and_rule(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in GOOD
    path = written(tmp_path, GOOD.replace(before, after))
    with pytest.raises(InputError) as caught:
        load_file(path)
    text = str(caught.value)
    assert text.startswith(f"{path}:2: rule ")
    assert message in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[[rule]]\nid = \n", 2, "is not TOML"),
        ("[[rules]]\n", 1, "unknown key 'rules'"),
        ("", None, "expected at least one"),
        ("rule = 3\n", None, "expected at least one"),
    ],
)
def test_what_is_no_rule_file_is_one_line(tmp_path: Path, text: str, line: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_file(written(tmp_path, text))
    assert caught.value.line == line


def test_ids_are_unique_across_files(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD)
    (tmp_path / "b.toml").write_text(GOOD)
    with pytest.raises(InputError, match=r"the id is already used in a\.toml"):
        load_folder(str(tmp_path))


def test_a_file_that_is_not_utf_8_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"# \xff")
    with pytest.raises(InputError, match="is not UTF-8"):
        load_folder(str(tmp_path))


def test_compiling_loses_nothing() -> None:
    rules = load_folder(str(RULES))
    assert in_memory(rules).rules() == list(rules)


def test_only_rules_about_what_is_installed_are_opened(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    from compat.versions import key_of

    asked = {"unsloth": key_of("2025.2.15"), "left-pad": key_of("1.3")}
    opened = {rule.id: named_distributions(rule) for rule in map(matrix.rule, matrix.concerned(asked))}
    assert "unsloth-grpo-mistral-logits" in opened
    assert "unsloth-imported-late" not in opened  # another range
    assert all("unsloth" in names for names in opened.values())
    assert matrix.concerned({"left-pad": key_of("1.3")}) == []
    both = {matrix.rule(number).id for number in matrix.concerned({"trl": None})}
    assert {"trl-grpo-vllm-second-device", "trl-sft-gather-for-metrics-int"} <= both


def test_the_header_allows_the_versions_that_the_rules_do(matrix: Matrix) -> None:
    """At every bound of torch, between them, and for an unknown version."""
    from compat.versions import contains

    asked = [(number, each) for number, rule in enumerate(matrix.rules()) for each in rule.packages if each.name == "torch"]
    ends = {end for _, each in asked for low, _, high, _ in each.ranges for end in (low, high) if end is not None}
    between = {(*end[:5], end[5] - 1) for end in ends} | {(*end[:3], end[3] + 1, *end[4:]) for end in ends}
    assert len(ends) > 20
    for key in (None, *sorted(ends | between)):
        allowing = {
            number for number, each in asked
            if each.how == "present" or (each.how == "in" and (key is None or contains(each.ranges, key)))
        }  # fmt: skip
        left = set(matrix.concerned({"torch": key}))
        assert allowing - left <= {number for number, each in asked if each.how == "absent"}
        assert not left & ({number for number, _ in asked} - allowing)


def test_rules_that_need_what_is_not_installed_do_not_concern_a_complete_environment(matrix: Matrix) -> None:
    numbers = matrix.concerned({"trl": None})
    complete = matrix.concerned({"trl": None}, complete=True)
    assert 0 < len(complete) < len(numbers)
    alone = {
        number for number in numbers if {each.name for each in matrix.rule(number).packages if each.how != "absent"} == {"trl"}
    }
    assert set(complete) == alone


def test_a_matrix_with_more_rules_is_that_of_all(tmp_path: Path, matrix: Matrix) -> None:
    path = written(tmp_path, GOOD.replace("a-rule", "one-more"))
    extended, whole = open_matrix((path,)), in_memory([*matrix.rules(), *load_file(path)], matrix.newest)
    assert extended.rules() == whole.rules()
    assert (extended.variables, extended.detectors, extended.names) == (whole.variables, whole.detectors, whole.names)
    assert extended.concerned({"trl": None}) == whole.concerned({"trl": None})
    assert extended.among({"trl"}) == whole.among({"trl"})
    assert extended.named("one-more") == extended.rules()[-1]
    assert extended.named("none-of-this-name") is None


def test_the_id_of_a_shipped_rule_is_taken(tmp_path: Path, matrix: Matrix) -> None:
    with pytest.raises(InputError, match="the id is already used"):
        open_matrix((written(tmp_path, GOOD.replace("a-rule", matrix.rule(0).id)),))


def test_only_rules_that_need_nothing_else_are_among_some_packages(matrix: Matrix) -> None:
    names = {"trl", "vllm"}
    found = [matrix.rule(number) for number in matrix.among(names)]
    assert found == [
        rule for rule in matrix.rules() if all(each.name in names for each in rule.packages if each.how != "absent")
    ]
