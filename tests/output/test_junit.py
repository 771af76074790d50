"""JUnit reports: counts, results, and what strict readers (the xUnit plugin of Jenkins, GitLab) take."""

from __future__ import annotations

from xml.etree import ElementTree

from compat.model import Location, Outcome
from compat.output.junit import junit
from tests.output.outcomes import failed, finding, outcome, possible

# element -> its attributes (required ones with a star) and the elements in it
SHAPE = {
    "testsuites": ({"name", "tests*", "failures*", "errors*"}, {"testsuite"}),
    "testsuite": ({"name*", "tests*", "failures*", "errors*", "skipped", "time"}, {"testcase", "system-out"}),
    "testcase": ({"name*", "classname", "time"}, {"failure", "skipped", "error", "system-out"}),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "skipped": ({"message", "type"}, set()),
    "system-out": (set(), set()),
}


def read(*outcomes: Outcome) -> ElementTree.Element:
    """The report, once its shape and its counts are right."""
    root = ElementTree.fromstring(junit(outcomes))
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = SHAPE[element.tag]
        assert element.attrib.keys() <= {name.strip("*") for name in attributes}
        assert {name.strip("*") for name in attributes if name.endswith("*")} <= element.attrib.keys()
        assert {child.tag for child in element} <= children
    for group in (root, *root.iter("testsuite")):
        cases = list(group.iter("testcase"))
        assert group.get("tests") == str(len(cases))
        for label, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if label in group.attrib:
                assert group.get(label) == str(sum(case.find(tag) is not None for case in cases))
    for suite in root.iter("testsuite"):
        names = [case.get("name") for case in suite.iter("testcase")]
        assert len(set(names)) == len(names)  # GitLab keeps one test case of a class and a name
    return root


def test_a_suite_a_file_and_a_case_a_finding() -> None:
    root = read(outcome(finding(), possible(rule="other"), finding(rule="third", severity="info")), failed(), outcome(file="b"))
    assert [suite.get("name") for suite in root] == ["uv.lock", "broken.lock", "b"]
    assert [len(suite.findall("testcase")) for suite in root] == [3, 1, 1]
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "1", "1")
    assert root[0].get("skipped") == "1"
    assert {case.get("classname") for case in root[0]} == {"uv.lock"}


def test_no_outcome_is_an_empty_report() -> None:
    assert len(read()) == 0


def test_a_hit_is_a_failure_with_everything_there_is_to_say() -> None:
    root = read(outcome(finding(location=Location("uv.lock", 12), severity="warning", target="train", selections=("extra a",))))
    case = root[0][0]
    assert case.get("name") == "widget-drops-data (train, extra a)"
    failure = case[0]
    assert (failure.tag, failure.get("type")) == ("failure", "warning")
    assert failure.get("message") == "Every second widget gets no data"
    assert (failure.text or "").split("\n") == [
        "Every second widget gets no data",
        "at: uv.lock:12",
        "The first takes it all.",
        "applies because: widget 1.0, 2 GPUs",
        "in: train, extra a",
        'fix: pip install "widget>=1.1" (the first release that shares)',
        "or: start one process per GPU",
        "see: https://github.com/example/widget/pull/7",
        "rule: widget-drops-data (reproduced)",
    ]


def test_an_open_question_is_skipped_and_says_what_settles_it() -> None:
    skipped = read(outcome(possible()))[0][0][0]
    assert skipped.tag == "skipped"
    assert skipped.get("message") == "undecided: Every second widget gets no data"
    assert "settle: --launcher NAME" in (skipped.text or "")


def test_what_is_merely_worth_knowing_passes() -> None:
    case = read(outcome(finding(severity="info")))[0][0]
    assert [child.tag for child in case] == ["system-out"]
    assert "The first takes it all." in (case[0].text or "")


def test_a_file_without_findings_is_one_case_that_passes() -> None:
    case = read(outcome())[0][0]
    assert case.get("name") == "no known problems found"
    assert len(case) == 0


def test_a_file_that_cannot_be_read_is_an_error() -> None:
    error = read(failed("a.lock", "is not TOML", 3))[0][0][0]
    assert (error.tag, error.get("message"), error.text) == ("error", "is not TOML", "a.lock:3: is not TOML")


def test_notes_are_the_output_of_the_suite() -> None:
    assert read(outcome(notes=("one", "two\nlines")))[0].findtext("system-out") == "note: one\nnote: two lines"


def test_cases_of_one_name_are_told_apart() -> None:
    twice = [finding(rule="installed-twice", origin="metadata", packages={name: "1 and 2"}) for name in ("a", "b")]
    names = [case.get("name") for case in read(outcome(*twice, finding(), finding()))[0]]
    assert names == ["installed-twice (a)", "installed-twice (b)", "widget-drops-data", "widget-drops-data #2"]


def test_what_has_no_name_gets_one() -> None:
    assert read(outcome(finding(), file=None, name=""))[0].get("name") == "installed"


def test_hostile_text_stays_text() -> None:
    evil = "\"/><failure/>]]>&amp;<!--\x00\x1b\ud800\ufffe'\n"
    root = read(outcome(finding(title=evil, why=evil, target=evil), file=evil, notes=(evil,)), failed(evil, evil))
    assert root[0].get("name") == "\"/><failure/>]]>&amp;<!--'\n"
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "1", "1")
    assert junit([outcome(finding(why="20 × “é” 𝔘"))]).isascii()
