"""Whatever a rule's fix holds (a package with its versions, a variable, a line of configuration) is in every output."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable

import pytest

from compat.model import Distribution, Environment, Report
from compat.output.github import workflow_commands
from compat.output.junit import junit
from compat.output.plan import shown_plan
from compat.output.sarif import sarif
from compat.output.stream import to_json
from compat.output.terminal import render_text
from compat.repair.plan import Plan
from compat.rules.compiled import Matrix
from compat.rules.evaluate import content_of, fix_of
from compat.rules.facts import Facts
from compat.rules.rule import FixTemplate
from tests.output.outcomes import finding, outcome

FORMATS: dict[str, Callable[[Report], str]] = {
    "terminal": lambda report: render_text(report),
    "json": lambda report: json.dumps(report.to_json(), ensure_ascii=False).replace('\\"', '"'),
    "sarif": lambda report: (
        to_json(sarif([outcome(*report.findings)], "1")).replace('\\"', '"').replace("{{", "{").replace("}}", "}")
    ),
    "junit": lambda report: html.unescape(junit([outcome(*report.findings)])),
    "github": lambda report: workflow_commands([outcome(*report.findings)]).replace("%25", "%"),
    "plan": lambda report: shown_plan(Plan(left=report.findings), report.findings, None, explained=False),
}


def flat(text: str) -> str:
    """Without the breaks of lines and the signs that continue a comment."""
    return re.sub(r"\s+(# )?", " ", text)


@pytest.mark.parametrize("name", FORMATS)
def test_every_fix_of_every_rule_is_printed_in_full(matrix: Matrix, name: str) -> None:
    facts = Facts(Environment())
    for rule in matrix.rules():
        for template in rule.fixes:
            if name == "plan" and template.kind not in ("launch", "config", "env-var", "driver"):
                continue  # a plan moves packages itself
            found = finding(fixes=(fix_of(template, facts),))
            printed = flat(FORMATS[name](Report(Environment(), (found,), file="uv.lock")))
            for part in content_of(template):
                assert part in printed, f"{rule.id}: {part}"


@pytest.mark.parametrize(
    ("template", "text", "command"),
    [
        (
            FixTemplate("config", value="use_vllm=False", text="generate without it"),
            "use_vllm=False (generate without it)",
            None,
        ),
        (FixTemplate("config", value="use_vllm=False", text="set use_vllm=False"), "set use_vllm=False", None),
        (FixTemplate("config", value="use_vllm=False"), "use_vllm=False", None),
        (FixTemplate("env-var", value="USE_TF=0", text="switch it off"), "switch it off", "export USE_TF=0"),
        (
            FixTemplate("pin", packages=(("a", "==1"), ("b", "<2")), text="they match", command='pip install "a==1"'),
            "pin to a==1, b<2 (they match)",
            'pip install "a==1"',
        ),
    ],
)
def test_the_text_states_what_the_command_does_not(template: FixTemplate, text: str, command: str | None) -> None:
    fix = fix_of(template, Facts(Environment()))
    assert (fix.text, fix.command) == (text, command)


@pytest.mark.parametrize(("version", "command"), [
    ("26.0.1", 'pip install "numpy<2" "pyarrow<26"'), ("25.0.1", 'pip install "numpy<2"'), (None, 'pip install "numpy<2"'),
])  # fmt: skip
def test_what_is_moved_along_is_named_where_it_is_installed(version: str | None, command: str) -> None:
    template = FixTemplate("downgrade", packages=(("numpy", "<2"),), along=(("pyarrow", "<26"),))
    there = () if version is None else (Distribution(name="pyarrow", version=version),)
    assert fix_of(template, Facts(Environment(distributions=there))).command == command
