"""Installable selections: masks against one context at a time, and verdicts put together as a person would."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.markers import Marker

from compat.checks.choices import Requested
from compat.checks.contexts import Contexts
from compat.checks.fix_commands import in_project
from compat.checks.questions import LEAST, likelihood
from compat.checks.selections import judged_listing, to_environment
from compat.formats.listing import ROOT, Choice, Entry, Listing
from compat.formats.registry import format_of
from compat.model import Accelerator, Distribution, Environment, Finding, Fix, Workload
from compat.rules.compiled import Matrix, in_memory
from compat.rules.loader import rule_of
from compat.syntax.toml import parse_text
from tests.growth import assert_linear

RULES = """
[[rule]]
id = "old-transformers"
title = "Old"
severity = "error"
effect = "crash"
confidence = "confirmed"
packages = { transformers = "<4.50" }
evidence = ["https://github.com/example/example/issues/1"]
why = "It is old."
[[rule.fix]]
upgrade = { transformers = ">=4.50" }
[[rule.example]]
hit = { packages = { transformers = "4.40.0" } }
[[rule.example]]
clear = { packages = { transformers = "4.50.0" } }

[[rule]]
id = "old-python"
title = "Old Python"
severity = "error"
effect = "crash"
confidence = "confirmed"
packages = { torch = "*" }
evidence = ["https://github.com/example/example/issues/2"]
why = "It is old."
[rule.when]
python = "<3.11"
[[rule.fix]]
config = "another Python"
[[rule.example]]
hit = { packages = { torch = "2.6.0" }, python = "3.10.1" }
[[rule.example]]
clear = { packages = { torch = "2.6.0" }, python = "3.12.1" }
"""
MATRIX: Matrix = in_memory([rule_of(table) for table in parse_text(RULES, "rules.toml")["rule"]])
NEW, OLD = Distribution("transformers", "4.57.1"), Distribution("transformers", "4.40.0")


def lock(*pairs: tuple[Distribution, str | None, int | None], **more: object) -> Listing:
    entries = tuple(Entry(distribution, 10 * (at + 1)) for at, (distribution, _, _) in enumerate(pairs))
    edges = tuple((ROOT, at, marker, choice) for at, (_, marker, choice) in enumerate(pairs))
    return Listing("uv.lock", "uv.lock", entries, edges, complete=True, **more)  # type: ignore[arg-type]


def found(
    listing: Listing, known: Environment | None = None, asked: Requested | None = None
) -> list[tuple[str, str, tuple[str, ...], int | None]]:
    findings, _ = judged_listing(listing, known or Environment(), MATRIX, asked)
    return [(each.rule, each.verdict, each.selections, each.location.line if each.location else None) for each in findings]


def test_one_release_everywhere() -> None:
    assert found(lock((OLD, None, None))) == [("old-transformers", "hit", (), 10)]
    assert found(lock((NEW, None, None))) == []


def test_a_release_for_some_platforms_is_possible_until_the_target_is_known() -> None:
    listing = lock((NEW, "sys_platform == 'linux'", None), (OLD, "sys_platform != 'linux'", None))
    ((rule, verdict, selections, line),) = found(listing)
    assert (rule, verdict, selections, line) == ("old-transformers", "possible", (), 20)
    findings, _ = judged_listing(listing, Environment(), MATRIX)
    assert findings[0].unknown[0] == "os"
    assert found(listing, Environment(os="linux")) == []
    assert found(listing, Environment(os="windows")) == [("old-transformers", "hit", (), 20)]


@pytest.mark.parametrize(
    ("marker", "asked"),
    [
        ("sys_platform == 'linux'", True), ("platform_machine == 'x86_64'", True), ("sys_platform == 'win32'", False),
        ("sys_platform == 'darwin'", False), ("platform_machine == 'aarch64'", False), ("python_version < '3.11'", False),
        ("sys_platform == 'linux' and python_version >= '3.11'", True),
    ],
)  # fmt: skip
def test_a_question_about_a_rare_platform_or_another_interpreter_is_unlikely(marker: str, asked: bool) -> None:
    findings, _ = judged_listing(lock((OLD, marker, None), requires_python=">=3.10"), Environment(), MATRIX)
    assert [each.verdict for each in findings] == ["possible"]
    assert (likelihood(findings[0]) >= LEAST) is asked


def test_an_overridden_requirement_is_a_remark() -> None:
    pins = ((Distribution("vllm", "0.8.5"), None, None), (Distribution("torch", "2.7.0"), None, None))
    for names, severity in (((), "warning"), (("numpy",), "warning"), (("torch",), "info")):
        findings, _ = judged_listing(lock(*pins, overridden=names), Environment(python="3.12"), MATRIX)
        declared = [(each.rule, each.verdict, each.severity) for each in findings if each.origin == "metadata"]
        assert declared == [("requires-vllm-torch", "hit", severity)]


def test_nvidia_devices_are_never_on_a_mac() -> None:
    listing = lock((NEW, "sys_platform != 'darwin'", None), (OLD, "sys_platform == 'darwin'", None))
    assert found(listing)[0][1] == "possible"
    assert found(listing, Environment(accelerators=(Accelerator(vendor="nvidia", compute_capability="9.0"),))) == []


def test_an_extra_that_is_bad_is_bad() -> None:
    listing = lock(
        (NEW, None, 0), (OLD, None, 1), choices=(Choice("extra", "new"), Choice("extra", "old")), conflicts=((0, 1),)
    )
    assert found(listing) == [("old-transformers", "hit", ("extra old",), 20)]
    assert found(listing, asked=Requested(("new",))) == []
    assert found(listing, asked=Requested(("old",))) == [("old-transformers", "hit", (), 20)]


def test_what_the_defaults_install_needs_no_extra() -> None:
    listing = lock((OLD, None, 0), choices=(Choice("group", "dev", default=True), Choice("extra", "x")))
    assert found(listing) == [("old-transformers", "hit", (), 10)]


def test_the_interpreter_is_a_fact_of_the_target() -> None:
    listing = lock((Distribution("torch", "2.6.0"), None, None), requires_python=">=3.10,<3.13")
    findings, _ = judged_listing(listing, Environment(), MATRIX)
    assert [(each.verdict, each.unknown) for each in findings] == [("possible", ("python",))]
    assert found(listing, Environment(python="3.12")) == []
    assert found(listing, Environment(python="3.10.4"))[0][:2] == ("old-python", "hit")
    narrow = lock((Distribution("torch", "2.6.0"), None, None), requires_python="==3.10.*")
    assert found(narrow)[0][:2] == ("old-python", "hit")


@pytest.mark.parametrize(("required", "last"), [("<=3.10", (3, 10, 0)), (">=3.9, <=3.10.4", (3, 10, 4)), ("<3.10", (3, 9, 99))])
def test_the_last_python_of_a_file_may_be_one_patch_release(required: str, last: tuple[int, ...]) -> None:
    listing = lock((NEW, None, None), requires_python=required)
    assert max(place.python for place in Contexts(listing, Environment(), Requested()).platforms) == last
    stated = Contexts(listing, Environment(python=".".join(map(str, last[:2]))), Requested())
    assert (stated.notes, [place.python for place in stated.platforms][-1]) == ([], last)


@pytest.mark.parametrize("required", ["==3.10.12", "==3.7.*", "== 3.10.12"])
def test_the_only_python_of_a_file_is_that_of_an_unstated_target(required: str) -> None:
    listing = lock((Distribution("torch", "2.6.0"), None, None), requires_python=required)
    assert judged_listing(listing, Environment(), MATRIX)[1] == ()
    assert found(listing)[0][:2] == ("old-python", "hit")


def test_a_target_the_lock_is_not_made_for_is_noted() -> None:
    listing = lock((NEW, None, None), requires_python=">=3.12")
    _, notes = judged_listing(listing, Environment(python="3.10"), MATRIX)
    assert notes == ("uv.lock requires Python >=3.12, which the target does not have",)
    only_linux = lock((NEW, None, None), environments=("sys_platform == 'linux'",))
    _, notes = judged_listing(only_linux, Environment(os="windows"), MATRIX)
    assert notes == ("uv.lock does not support the target's platform",)


def test_a_range_is_possible_and_a_range_that_is_bad_throughout_a_hit() -> None:
    assert found(lock((Distribution("transformers", specifier=">=4.40"), None, None)))[0][1] == "possible"
    assert found(lock((Distribution("transformers", specifier=">=4.40,<4.49"), None, None)))[0][1] == "hit"
    assert found(lock((Distribution("transformers", specifier=">=4.51"), None, None))) == []
    assert found(lock((Distribution("transformers"), None, None)))[0][1] == "possible"


def test_conda_may_number_in_its_own_way() -> None:
    odd = lock((Distribution("transformers", "9e"), None, None))
    assert found(odd)[0][1] == "possible"


def test_the_interpreter_of_a_conda_environment() -> None:
    listing = lock((Distribution("torch", "2.6.0"), None, None), (Distribution("python", "3.10.4"), None, None))
    assert found(listing)[0][:2] == ("old-python", "hit")


def test_fixes_are_made_by_the_tool_that_wrote_the_lock() -> None:
    findings, _ = judged_listing(lock((OLD, None, None)), Environment(), MATRIX)
    assert findings[0].fixes[0].command == 'uv add "transformers>=4.50"'


SOURCE = "poetry source add --priority explicit pytorch-cu126 https://index.example/cu126"


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("uv.lock", 'uv add "torch==2.6.0+cu126" --index https://index.example/cu126'),
        ("pixi.lock", 'pixi add --pypi "torch==2.6.0+cu126" --index https://index.example/cu126'),
        ("pixi.toml", 'pixi add --pypi "torch==2.6.0+cu126" --index https://index.example/cu126'),
        ("Pipfile.lock", 'pipenv install "torch==2.6.0+cu126" --index https://index.example/cu126'),
        ("poetry.lock", f'{SOURCE} && poetry add "torch==2.6.0+cu126" --source pytorch-cu126'),
        ("pdm.lock", 'pip install "torch==2.6.0+cu126" --index-url https://index.example/cu126'),
        ("requirements", 'pip install "torch==2.6.0+cu126" --index-url https://index.example/cu126'),
    ],
)
def test_a_build_of_another_index_is_added_in_the_words_of_the_tool(kind: str, command: str) -> None:
    fix = Fix("pin", "torch", "==2.6.0+cu126", "", 'pip install "torch==2.6.0+cu126" --index-url https://index.example/cu126')
    finding = Finding("r", "build", "", "", packages={"torch": "2.6.0"}, fixes=(fix,))
    assert in_project(finding, kind, {}).fixes[0].command == command


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('pip install "torch>=2.8"', 'pixi add "pytorch>=2.8"'),
        ('pip install "torch==2.8+cu128" --index-url https://index.example/cu128', None),
        ("pip install -U torch", None),
        ('pip install --no-build-isolation "torch>=2.8"', None),
        ('pip install "torch>=2.8" "triton>=3"', None),
        ("export A=1", None),
    ],
)
def test_what_conda_installed_is_added_from_conda(before: str, after: str | None) -> None:
    fix = Fix("upgrade", "torch", ">=2.8", "", before)
    finding = Finding("r", "build", "", "", packages={"torch": "2.6.0"}, fixes=(fix,))
    assert in_project(finding, "pixi.lock", {"torch": "pytorch"}).fixes[0].command == (after or before)


def test_described_keeps_everything_and_tells_releases_apart() -> None:
    listing = lock((NEW, "extra == 'extra-4-mine-new'", None), (OLD, "extra == 'extra-4-mine-old'", None))
    listing = Listing(
        listing.file, listing.kind, listing.entries, listing.edges, context=Environment(workload=Workload(task="sft"))
    )
    environment = to_environment(listing)
    assert environment.workload is not None
    assert [(each.version, each.marker) for each in environment.distributions or ()] == [
        ("4.57.1", "extra == 'extra-4-mine-new'"), ("4.40.0", "extra == 'extra-4-mine-old'"),
    ]  # fmt: skip


MARKERS = (None, "sys_platform == 'linux'", "sys_platform != 'linux'", "python_version < '3.11'", "python_version >= '3.11'",
           "platform_machine == 'x86_64' and sys_platform == 'linux'", "extra == 'extra-4-mine-a'", "extra != 'extra-4-mine-a'")  # fmt: skip
PARSED = {text: Marker(text) for text in MARKERS if text is not None}


@st.composite
def listings(draw: st.DrawFn) -> Listing:
    """A graph of four releases of two distributions, a node between (4), and two extras; the first one has a node (5).

    A choice leads to a node that is no release only where the node stands for it, as in real locks.
    """
    nodes = st.integers(0, 5)
    edges = ((ROOT, 5, None, 0), *(
        draw(
            st.lists(
                st.one_of(
                    st.tuples(
                        st.one_of(st.just(ROOT), nodes), st.integers(0, 3), st.sampled_from(MARKERS), st.sampled_from((None, 0, 1))
                    ),
                    st.tuples(st.one_of(st.just(ROOT), nodes), st.sampled_from((4, 5)), st.sampled_from(MARKERS), st.none()),
                ),
                max_size=9,
            )
        )
    ))  # fmt: skip
    releases = (NEW, OLD, Distribution("torch", "2.5.0"), Distribution("torch", "2.6.0"))
    choices = (Choice("extra", "a"), Choice("extra", "b", default=draw(st.booleans())))
    conflicts = ((0, 1),) if draw(st.booleans()) else ()
    entries = tuple(Entry(each, at) for at, each in enumerate(releases))
    return Listing("uv.lock", "uv.lock", entries, edges, choices, conflicts, requires_python=">=3.10,<3.13", complete=True)


def alone(listing: Listing, chosen: frozenset[int], os: str, machine: str, python: str) -> tuple[set[int], bool]:
    """What is installed in one context, found the plain way, and whether uv refuses it."""
    active = set(chosen)
    while True:
        there = walked(listing, chosen, active, os, machine, python)
        if not listing.conflicts or 5 not in there or 0 in active:
            refused = any(active.issuperset(conflict) for conflict in listing.conflicts)
            return {node for node in there if 0 <= node < len(listing.entries)}, refused
        active.add(0)


def walked(listing: Listing, chosen: frozenset[int], active: set[int], os: str, machine: str, python: str) -> set[int]:
    platform = {"linux": "linux", "darwin": "darwin", "windows": "win32"}[os]

    def holds(marker: str | None, child: int) -> bool:
        if marker is None:
            return True
        extra = "extra-4-mine-a" if 0 in active or (child == 5 and listing.conflicts) else ""
        values = {"sys_platform": platform, "platform_machine": machine, "python_version": python, "extra": extra}
        return PARSED[marker].evaluate(values)

    there = {ROOT}
    while True:
        more = {
            child
            for parent, child, marker, choice in listing.edges or ()
            if parent in there and holds(marker, child) and choice in (None, *chosen)
        }
        if more <= there:
            return there
        there |= more


def every_is_refused(listing: Listing, contexts: Contexts) -> bool:
    return all(
        alone(listing, chosen.numbers, place.os, place.machine, ".".join(map(str, place.python[:2])))[1]
        for place in contexts.platforms
        for chosen in contexts.sets
    )


@settings(deadline=None)
@given(listings())
def test_masks_agree_with_one_world_at_a_time(listing: Listing) -> None:
    contexts = Contexts(listing, Environment(), Requested())
    masks = contexts.installed()
    for at, place in enumerate(contexts.platforms):
        for number, chosen in enumerate(contexts.sets):
            bit = at * len(contexts.sets) + number
            mine = {entry for entry, mask in enumerate(masks) if mask >> bit & 1}
            python = ".".join(map(str, place.python[:2]))
            theirs, refused = alone(listing, chosen.numbers, place.os, place.machine, python)
            if contexts.all >> bit & 1:
                assert mine == theirs
                assert not refused or every_is_refused(listing, contexts)
            else:
                assert refused
                assert not mine


@settings(deadline=None)
@given(listings())
def test_a_hit_is_one_in_some_set_of_choices_wherever_it_is_installed(listing: Listing) -> None:
    contexts = Contexts(listing, Environment(), Requested())
    findings, _ = judged_listing(listing, Environment(), MATRIX)
    mine: dict[str, str] = {}
    for each in findings:
        mine[each.rule] = "hit" if "hit" in (each.verdict, mine.get(each.rule)) else "possible"
    theirs: dict[str, str] = {}
    for chosen in contexts.sets:
        seen: dict[str, set[bool]] = {"old-transformers": set(), "old-python": set()}
        for place in contexts.platforms:
            python = ".".join(map(str, place.python[:2]))
            there, refused = alone(listing, chosen.numbers, place.os, place.machine, python)
            if refused and not every_is_refused(listing, contexts):
                continue
            old, new = 1 in there, 0 in there
            torch = there & {2, 3}
            seen["old-python"].add(bool(torch) and python == "3.10")
            seen["old-transformers"].add(old and not new)
            if old and new:
                seen["old-transformers"] |= {True, False}  # both at once: which is unknown
        for rule, answers in seen.items():
            if answers == {True}:
                theirs[rule] = "hit"
            elif True in answers:
                theirs.setdefault(rule, "possible")
    assert mine == theirs


def test_findings_have_the_order_of_every_report() -> None:
    listing = lock((OLD, None, None), (Distribution("torch", "2.6.0"), None, None), requires_python=">=3.10,<3.13")
    findings: tuple[Finding, ...] = judged_listing(listing, Environment(), MATRIX)[0]
    assert [each.rule for each in findings] == ["old-transformers", "old-python"]


def test_a_torch_without_cuda_is_not_taken_to_see_the_gpus() -> None:
    from compat.model import Accelerator, Distribution, Environment
    from compat.rules.facts import seen_by_torch

    gpus = (Accelerator(vendor="nvidia", compute_capability="8.0"),) * 2
    assert seen_by_torch(Environment(distributions=(Distribution("torch", "2.6.0+cpu"),), accelerators=gpus)).accelerators == ()
    for version in ("2.6.0", "2.6.0+cu124", None):
        seen = seen_by_torch(Environment(distributions=(Distribution("torch", version),), accelerators=gpus))
        assert seen.accelerators == gpus


def test_answers_that_are_kept_are_those_that_would_be_given_anew() -> None:
    from compat.model import Distribution, Environment
    from compat.rules.compiled import open_matrix
    from compat.rules.evaluate import Answers, judge

    matrix, answers = open_matrix(), Answers()
    for python in ("3.10", "3.12"):
        for torch in ("2.3.0", "2.6.0+cu124"):
            for transformers in ("4.51.3", "5.0.0"):
                copies = tuple(
                    Distribution(*each) for each in (("torch", torch), ("transformers", transformers), ("trl", "0.17.0"))
                )
                environment = Environment(python=python, distributions=copies)
                assert judge(environment, matrix, answers=answers) == judge(environment, matrix)


def test_answers_depend_on_the_tools_that_decide_what_a_job_is() -> None:
    from compat.model import Distribution, Environment, Workload
    from compat.rules.compiled import open_matrix
    from compat.rules.evaluate import Answers, judge

    matrix, answers = open_matrix(), Answers()
    job = Workload(task="sft", model="llava-hf/llava-1.5-7b-hf", features=("gradient-accumulation",))
    found = []
    for tool in ("datasets", "verl", "unsloth"):
        copies = (Distribution("transformers", "4.51.3"), Distribution(tool, "0.7.0"))
        environment = Environment(distributions=copies, workload=job)
        findings = judge(environment, matrix, answers=answers)
        assert findings == judge(environment, matrix)
        found.append([each.verdict for each in findings if each.rule == "transformers-llava-loss-not-accumulated"])
    assert found == [["hit"], [], ["possible"]]


@pytest.mark.parametrize("clause", [">=2.{}", "!=2.{}", ">=2.{},!=3.{}"])
def test_thousands_of_open_requirements_of_one_package_take_linear_time(clause: str, matrix: Matrix) -> None:
    run = itertools.count()  # nothing is known from the run before

    def judged(lines: list[str]) -> None:
        text = "".join(f"torch{line}.{next(run)}\n" for line in lines).encode()
        (listing,) = format_of("requirements.txt", text).listings("requirements.txt", text)
        judged_listing(listing, Environment(), matrix)

    assert_linear(judged, lambda count: [clause.replace("{}", str(number)) for number in range(count)], 800)


def test_jobs_with_the_same_packages_are_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from compat import check
    from compat.rules import evaluate

    calls: list[str] = []
    judged = evaluate._judged
    monkeypatch.setattr(evaluate, "_judged", lambda rule, facts: (calls.append(rule.id), judged(rule, facts))[1])
    counts = []
    for jobs in (2, 40):
        steps = "    runs-on: x\n    steps:\n    - run: pip install torch==2.6.0 transformers==4.51.3\n"
        (tmp_path / "ci.yml").write_text("on: push\njobs:\n" + "".join(f"  j{number}:\n{steps}" for number in range(jobs)))
        calls.clear()
        check(tmp_path / "ci.yml")
        counts.append(len(calls))
    assert counts[1] <= counts[0]
