"""Reports and plans as HTML: whole, accessible, loading nothing, and with every text in it a text."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compat
from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.registry import Commands
from compat.model import Accelerator, Distribution, Environment, Finding, Fix, Location, Outcome, Report, Workload
from compat.output.html.page import DARK, LIGHT, REPORT, element, raw
from compat.output.html.plan import plan_page
from compat.output.html.report import fragment, outcomes_page
from compat.repair.plan import Plan
from tests.conftest import ROOT
from tests.examples import examples

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TAGS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "main",
        "footer",
        "section",
        "h1",
        "h2",
        "h3",
        "p",
        "span",
        "dl",
        "dt",
        "dd",
        "ul",
        "li",
        "article",
        "pre",
        "code",
        "div",
        "figure",
        "figcaption",
        "svg",
        "desc",
        "path",
        "rect",
        "text",
        "g",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "ins",
        "del",
    ]
)
VOID = ("meta", "link", "input", "br")


class Page(HTMLParser):
    """Elements of a page, its text, and whether every element is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, text: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text.append(text.strip())

    def handle_comment(self, text: str) -> None:
        raise AssertionError(f"a comment: {text}")


def report_with(text: str = "It fails", **changes: Any) -> Report:
    """A report in which every field that may hold a text holds this one."""
    given: dict[str, Any] = {
        "rule": text, "origin": "rule", "verdict": "hit", "severity": "error", "effect": "crash", "title": text, "why": text,
        "confidence": "confirmed", "packages": {text: text, "torch": "2.6.0", "torchvision": "0.20.1"}, "here": text,
        "fixes": (Fix("pin", text, text, text, text), Fix("config", None, None, text, None)), "unknown": (text,),
        "evidence": (text, f"https://example.org/{text}"), "location": Location(text, 3), "target": text,
        "selections": (text, f"stage {text}"),
    }  # fmt: skip
    copies = (Distribution(text, text), Distribution("torch", "2.6.0"), Distribution("torchvision", "0.20.1"),
              Distribution("other", "1", requires=(f"torch>={text}", f"{text}==1")))  # fmt: skip
    environment = Environment(
        python=text, os=text, machine=text, glibc=text, distributions=copies, accelerators=(Accelerator(name=text),),
        driver=text, cuda_toolkit=text, variables={"CUDA_VISIBLE_DEVICES": text}, workload=Workload(task=text, model=text),
    )  # fmt: skip
    finding = Finding(**{**given, **changes})
    return Report(
        environment, (finding, Finding(**{**given, **changes, "verdict": "possible"})), (text,), 1, text, ((text, environment),)
    )


HOSTILE = st.text(max_size=60) | st.sampled_from(
    (
        "<script>alert(1)</script>",
        "</style><img src=x onerror=alert(1)>",
        '" onmouseover="alert(1)',
        "javascript:alert(1)",
        "--><b>",
        "]]></svg><iframe src=//example.org>",
        "&lt;b&gt;",
        "' autofocus onfocus='x",
        "\x00\u202e</title>",
    )
)


def assert_harmless(html: str) -> Page:
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag in TAGS, tag
        for name, value in attributes.items():
            assert not name.startswith("on"), name
            if name == "href":
                assert value is not None
                assert value.startswith(("https://", "http://", "#")), value
            assert name not in ("src", "style", "srcdoc", "action", "formaction")
    return page


@settings(max_examples=examples(150), deadline=None)
@given(HOSTILE)
def test_hostile_text_in_every_field_of_a_report_is_text(text: str) -> None:
    report = report_with(text)
    assert_harmless(outcomes_page([Outcome(text, report), Outcome(text, error=InputError(text, text, 1))]))
    assert_harmless(fragment(report))


@settings(max_examples=examples(100), deadline=None)
@given(HOSTILE)
def test_hostile_text_in_every_field_of_a_plan_is_text(text: str) -> None:
    report = report_with(text)
    changes = (
        Change(text, text, text, why=text),
        Change("torch", "2.6.0", "2.7.0", why=text),
        Change("torchvision", None, text),
    )
    plan = Plan(
        changes, {"changed": 1}, policies=(text,), core=(text,), relief=text, unread={text: text}, narrowed={text: text},
        assumed={text: text}, left=report.findings, along=frozenset(("torchvision",)),
    )  # fmt: skip
    page = plan_page(
        plan, report.findings, report.environment, before=report.environment, commands=Commands((text,), (text,), (text,)),
        differences=[f"--- a\n+++ b\n+{text}\n-{text}\n {text}"], target=(text,), notes=(text,), title=text,
    )  # fmt: skip
    assert_harmless(page)


def test_what_is_no_web_address_is_no_link() -> None:
    page = Page(outcomes_page([Outcome("x", report_with(evidence=("javascript:alert(1)", "https://example.org/1")))]))
    assert [each["href"] for tag, each in page.elements if tag == "a" and "rel" in each][:1] == ["https://example.org/1"]
    assert "javascript:alert(1)" in page.text


def test_no_credentials_in_a_page() -> None:
    text = "https://bob:hunter2secret@index.example/simple?token=abcdefgh1234 hf_abcdefghijklmnopqrstuvwx"
    for html in (
        outcomes_page([Outcome(text, report_with(text, evidence=(text,)))]),
        fragment(report_with(text, evidence=(text,))),
    ):
        assert "hunter2secret" not in html
        assert "abcdefgh1234" not in html
        assert "hf_abc" not in html


def test_a_style_sheet_cannot_end_its_element() -> None:
    with pytest.raises(ValueError, match="must not hold"):
        raw("a{}</style>")
    assert element("p", "a<b", title='"') == '<p title="&quot;">a&lt;b</p>'


def test_the_page_of_a_real_report(compat: Run) -> None:
    done = compat("check", "--environment", "docs/examples/sft.json", "--format", "html", cwd=ROOT)
    page = assert_harmless(done.stdout)
    assert done.returncode == 1
    assert done.stdout.startswith('<!doctype html>\n<html lang="en">')
    tags = [tag for tag, _ in page.elements]
    assert tags.count("h1") == tags.count("main") == 1
    policy = next(each["content"] for tag, each in page.elements if each.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    text = " ".join(page.text)
    assert "Only the first GPU receives data" in text
    assert 'class="badge">error</span> ' in done.stdout, "a screen reader would read both words as one"
    assert 'pip install "transformers>=4.57.1,<5"' in text
    assert "2 errors." in text


def test_the_picture_shows_violated_requirements_in_words_too(compat: Run) -> None:
    stack = (
        '{"distributions": [{"name": "torch", "version": "2.6.0"}, {"name": "torchvision", "version": "0.20.1"}],'
        ' "os": "linux", "python": "3.11.9"}'
    )
    done = compat("check", "--environment", "-", "--format", "html", stdin=stack)
    page = Page(done.stdout)
    drawn = next(each for tag, each in page.elements if tag == "svg")
    assert drawn["role"] == "img"
    assert "torchvision requires torch==2.5.1 (violated)" in (drawn["aria-label"] or "")
    assert "torchvision requires torch==2.5.1 (violated)" in page.text
    assert any(tag == "path" and each["class"] == "edge broken" for tag, each in page.elements)


def test_several_things_are_sections_of_one_page(compat: Run) -> None:
    done = compat("check", "--environment", "docs/examples/sft.json", "missing.json", "--format", "html", cwd=ROOT)
    text = " ".join(Page(done.stdout).text)
    assert done.returncode == 2
    assert "docs/examples/sft.json" in text
    assert "missing.json: cannot be read" in text


def test_diagnose_and_doctor_have_pages(compat: Run) -> None:
    error = "RuntimeError: Dataset scripts are no longer supported, but found superb.py\n"
    done = compat("diagnose", "-", "--format", "html", stdin=error)
    assert "settle" in Page(done.stdout).text
    done = compat("doctor", "--environment", "docs/examples/sft.json", "--format", "html", cwd=ROOT)
    assert "2 errors." in Page(done.stdout).text


def test_a_notebook_displays_the_result_of_check() -> None:
    report = compat.check(
        {"distributions": [{"name": "torch", "version": "2.6.0"}, {"name": "torchvision", "version": "0.20.1"}]}
    )
    page = assert_harmless(report._repr_html_())  # type: ignore[attr-defined]
    assert "torchvision 0.20.1 requires torch==2.5.1, but 2.6.0 is installed" in page.text
    assert page.elements[0] == ("div", {"class": "compat"})


def test_everything_else_displays_the_text_of_the_command() -> None:
    report = compat.check(
        {"distributions": [{"name": "torchvision", "version": "0.20.1"}, {"name": "torch", "version": "2.6.0"}]}
    )
    assert str(report) == repr(report)
    assert "torchvision 0.20.1 requires torch==2.5.1, but 2.6.0 is installed" in str(report)
    assert "DisplayedReport" not in str(report)


def test_a_notebook_displays_this_machine() -> None:
    report = compat.doctor(gpu="RTX 5090", driver="470.57.02")
    assert report.environment.driver == "470.57.02"
    assert "RTX 5090" in report._repr_html_()  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="not-a-folder"):
        compat.doctor(python="not-a-folder")


def test_a_name_at_the_head_of_a_row_is_not_cut_into_pieces() -> None:
    """``anywhere`` of the page shrinks a column to single letters; ``break-word`` leaves it as wide as its longest word."""
    assert ".compat th { overflow-wrap: break-word; }" in REPORT


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_every_colour_can_be_read(colours: dict[str, str]) -> None:
    """The contrast that WCAG 2 asks for (AA): 4.5 for text."""
    for name, colour in colours.items():
        if name not in ("bg", "panel", "line"):
            for ground in ("bg", "panel"):
                assert _contrast(colour, colours[ground]) >= 4.5, (name, ground)


def _contrast(first: str, second: str) -> float:
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    values = (int(part, 16) / 255 for part in re.findall("..", colour[1:]))
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
