"""Curated rules over candidates: a rule forbids exactly the releases that it covers, where it can hold at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat.model import Accelerator, Distribution, Environment, Finding, Fix, Source, Workload
from compat.records import replace
from compat.repair.candidates import Release
from compat.repair.problem import Problem
from compat.repair.relaxation import ABSENT, Forbidden
from compat.repair.rules import advised, forbidden, forbidden_by_wheels, recommended
from compat.repair.target import Need, Target
from compat.rules.compiled import in_memory
from compat.rules.loader import load_file

RULE = """
[[rule]]
id = "a-rule"
title = "It breaks"
severity = "error"
effect = "crash"
confidence = "reported"
packages = { trl = ">=0.14.0,<0.16.0" }
evidence = ["https://index.example/1"]
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
KNOWN = {
    "trl": tuple(Release("trl", version) for version in ("0.13.0", "0.14.0", "0.15.2", "0.16.0")),
    "peft": tuple(Release("peft", version) for version in ("0.14.0", "0.15.0")),
}
ALL = frozenset(("0.14.0", "0.15.2"))


def environment(*, complete: bool = True, launcher: str | None = "python", **packages: str) -> Environment:
    return Environment(
        python="3.11", os="linux", distributions=tuple(Distribution(name, version) for name, version in packages.items()),
        distributions_complete=complete, workload=Workload(launcher=launcher), accelerators=(Accelerator(name="Tesla T4"),),
    )  # fmt: skip


def found(
    folder: Path, changes: dict[str, str] | None = None, known: dict[str, Any] | None = None,
    here: Environment | None = None,
) -> list[Forbidden]:  # fmt: skip
    text = RULE
    for before, after in (changes or {}).items():
        assert before in text
        text = text.replace(before, after)
    path = folder / "rules.toml"
    path.write_text(text, encoding="utf-8")
    here = here or environment(trl="0.15.2")
    current = {each.name: Release(each.name, each.version or "") for each in here.distributions or ()}
    return list(forbidden(in_memory(load_file(str(path))), here, current, KNOWN if known is None else known))


def test_the_releases_that_a_rule_covers_are_forbidden_and_no_others(tmp_path: Path) -> None:
    (one,) = found(tmp_path)
    assert one.together == (("trl", ALL),)
    assert (one.statement.text, one.level, one.unless) == ("It breaks (a-rule)", "errors left", ())


def test_severities_are_levels(tmp_path: Path) -> None:
    assert found(tmp_path, {'"error"': '"warning"'})[0].level == "warnings left"
    assert found(tmp_path, {'"error"': '"info"'}) == []


@pytest.mark.parametrize("launcher", ["torchrun", None])
def test_a_rule_that_does_not_or_might_hold_here_forbids_nothing(tmp_path: Path, launcher: str | None) -> None:
    assert found(tmp_path, here=environment(trl="0.15.2", launcher=launcher)) == []


def test_several_packages_must_meet(tmp_path: Path) -> None:
    both = {'packages = { trl = ">=0.14.0,<0.16.0" }': 'packages = { trl = "<0.16.0", peft = ">=0.15" }'}
    (one,) = found(tmp_path, both, here=environment(trl="0.13.0", peft="0.14.0"))
    assert dict(one.together) == {"trl": ALL | {"0.13.0"}, "peft": frozenset({"0.15.0"})}
    assert found(tmp_path, both, {"trl": KNOWN["trl"], "peft": KNOWN["peft"][:1]}) == []
    assert found(tmp_path, both, {"trl": KNOWN["trl"]}) == []


UNLESS = {"[[rule.fix]]": '[[rule.unless]]\npackages = { peft = ">=0.15" }\n[[rule.fix]]'}


def test_an_exemption_by_packages(tmp_path: Path) -> None:
    (one,) = found(tmp_path, UNLESS, here=environment(trl="0.15.2", peft="0.14.0"))
    assert one.unless == ((("peft", frozenset({"0.15.0"})),),)
    (alone,) = found(tmp_path, UNLESS, {"trl": KNOWN["trl"]})
    assert alone.unless == ()  # everything is listed, and it is not there


def test_what_is_not_listed_may_spare_where_not_everything_is(tmp_path: Path) -> None:
    (one,) = found(tmp_path, UNLESS, {"trl": KNOWN["trl"]}, environment(trl="0.15.2", complete=False))
    assert one.unless == ((("peft", frozenset({ABSENT})),),)


@pytest.mark.parametrize(("launcher", "count"), [("python", 0), ("torchrun", 1)])
def test_an_exemption_by_what_is_no_package(tmp_path: Path, launcher: str, count: int) -> None:
    exemption = {"[[rule.fix]]": f'[[rule.unless]]\nlauncher = ["{launcher}"]\n[[rule.fix]]'}
    assert len(found(tmp_path, exemption)) == count


MISSING = {
    'packages = { trl = ">=0.14.0,<0.16.0" }\nevidence': 'packages = { trl = ">=0.14.0,<0.16.0", peft = "!" }\nevidence',
    'clear = { packages = { trl = "0.16.0" }': 'clear = { packages = { trl = "0.15.0", peft = "0.14.0" }',
}


def test_something_that_must_not_be_missing(tmp_path: Path) -> None:
    (one,) = found(tmp_path, MISSING)
    assert dict(one.together) == {"trl": ALL, "peft": frozenset({ABSENT})}
    assert found(tmp_path, MISSING, here=environment(trl="0.15.2", complete=False)) == []  # it may be there
    (there,) = found(tmp_path, MISSING, here=environment(trl="0.15.2", peft="0.14.0", complete=False))
    assert dict(there.together)["peft"] == frozenset({ABSENT})  # it may be removed


def test_adding_what_is_missing_is_a_recommended_fix(tmp_path: Path) -> None:
    """Only if its absence is at fault: a rule about trl alone makes nobody install peft."""
    pinning = RULE.replace('upgrade = { trl = ">=0.16.0" }', 'pin = { peft = ">=0.14" }')
    here = environment(trl="0.15.2")
    problem = Problem(here, Target(here), {"trl": Release("trl", "0.15.2")})
    finding = Finding("a-rule", "rule", "It breaks", "", confidence="reported", packages={"trl": "0.15.2"})
    for changes, expected in ((MISSING, [((Need("peft", ">=0.14", ()),),)]), ({}, [])):
        text = pinning
        for before, after in changes.items():
            text = text.replace(before, after)
        (tmp_path / "rules.toml").write_text(text)
        matrix = in_memory(load_file(str(tmp_path / "rules.toml")))
        assert [each.alternatives for each in recommended(matrix, problem, [finding])] == expected


def test_a_finding_from_source_is_fixed_as_the_rules_recommend_that_the_job_may_meet(tmp_path: Path) -> None:
    rule = RULE.replace('trl = ">=0.14.0,<0.16.0" }', 'trl = ">=0.14.0,<0.16.0", peft = "*" }').replace(
        'launcher = ["python"]', 'task = ["dpo"]'
    )
    (tmp_path / "rules.toml").write_text(rule)
    matrix = in_memory(load_file(str(tmp_path / "rules.toml")))
    packages = {"trl": "0.15.2", "peft": "0.14.0"}
    here = environment(**packages)
    problem = Problem(here, Target(here), {name: Release(name, version) for name, version in packages.items()})
    finding = Finding("surface-trl-peft", "surface", "It fails", "", packages=packages)
    (one,) = recommended(matrix, problem, [finding])
    assert one.alternatives == ((Need("trl", ">=0.16.0", ()),),)
    known = replace(problem, environment=replace(here, workload=Workload(task="sft")))
    assert list(recommended(matrix, known, [finding])) == []


def test_sources_spare_what_is_installed_from_them_and_no_release(tmp_path: Path) -> None:
    exemption = {"[[rule.fix]]": '[[rule.unless]]\nsource = { trl = ["vcs"] }\n[[rule.fix]]'}
    own = Source("vcs", {"url": "https://git.example/trl", "commit": "abc"})
    here = environment()
    here = replace(here, distributions=(Distribution("trl", "0.15.2", source=own),))
    (spared,) = found(tmp_path, exemption, here=here, known={"trl": (*KNOWN["trl"][:2], Release("trl", "0.15.2", source=own))})
    assert spared.together == (("trl", ALL),)
    assert spared.unless == ((("trl", frozenset({"0.15.2"})),),)
    (no_release,) = found(tmp_path, exemption)
    assert no_release.unless == ()


def test_the_fix_of_a_finding_about_builds_is_recommended_as_that_of_a_rule() -> None:
    """torch could move as well; bitsandbytes is what the finding says."""
    fixes = (Fix("env-var", text="BNB_CUDA_VERSION=126"), Fix("upgrade", "bitsandbytes", ">=0.45.3"), Fix("pin", "apex", "==1"))
    found = Finding(
        rule="build-bitsandbytes-cuda", origin="build", verdict="hit", severity="error", effect="crash", title="No library",
        why="", confidence="confirmed", packages={"bitsandbytes": "0.45.2", "torch": "2.7.0+cu128"}, fixes=fixes,
    )  # fmt: skip
    (one,) = recommended(in_memory(()), installed("bitsandbytes", "torch"), (found,))
    assert one.alternatives == ((Need("bitsandbytes", ">=0.45.3", ()),),)


def installed(*names: str, unpinned: frozenset[str] = frozenset()) -> Problem:
    environment = Environment(python="3.11")
    return Problem(environment, Target(environment), {name: Release(name, "1.0") for name in names}, unpinned=unpinned)


def test_what_fixes_one_finding_may_fix_another_and_an_unpinned_package_may_go_further_back(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    rules = (("a", 'downgrade = { torchao = "<0.18,>=0.17" }'), ("b", 'upgrade = { torch = ">=2.3" }'))
    own = (RULE.replace("a-rule", name).replace('upgrade = { trl = ">=0.16.0" }', fix) for name, fix in rules)
    file.write_text("".join(own))
    packages = {"torchao": "1.0", "torch": "1.0"}
    findings = [
        Finding(
            rule=name, origin="rule", verdict="hit", severity="error", effect="crash", title="", why="", confidence="confirmed",
            packages=packages,
        )
        for name, _ in rules
    ]  # fmt: skip
    matrix = in_memory(load_file(str(file)))
    back, forward, further = (
        (Need("torchao", "<0.18,>=0.17", ()),),
        (Need("torch", ">=2.3", ()),),
        (Need("torchao", "<0.18", ()),),
    )
    of = {each.statement: each.alternatives for each in recommended(matrix, installed(*packages), findings)}
    assert of == {"a": (back, forward), "b": (forward, back)}
    problem = installed(*packages, unpinned=frozenset({"torchao"}))
    of = {each.statement: each.alternatives for each in recommended(matrix, problem, findings)}
    assert of == {"a": (back, further, forward), "b": (forward, back, further)}


def test_what_is_recommended_says_which_other_package_moves_for_an_error_of_its_own() -> None:
    pair, alone = (
        Finding(
            rule=rule, origin="build", verdict="hit", severity="error", effect="crash", title="", why="", confidence="confirmed",
            packages=dict.fromkeys(names, "1.0"), fixes=(Fix("upgrade", names[0], ">=2"),),
        )
        for rule, names in (("pair", ("bitsandbytes", "torch")), ("alone", ("torch",)))
    )  # fmt: skip
    problem = installed("torch", "bitsandbytes")
    assert [each.moving for each in recommended(in_memory(()), problem, (pair,))] == [frozenset()]
    assert [each.moving for each in recommended(in_memory(()), problem, (pair, alone))] == [frozenset({"torch"})]
    mismatch = replace(pair, rule="mismatch", packages={"torch": "1.0", "xformers": "1.0"})  # one of them moves, too
    assert [each.moving for each in recommended(in_memory(()), problem, (pair, mismatch))] == [frozenset({"torch"})]


def test_an_old_release_is_only_advised_where_no_fix_is_newer(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    forward, back = 'upgrade = { deepspeed = ">=0.14.4" }', 'downgrade = { torch = "<2.4" }'
    own = (
        RULE.replace("a-rule", name).replace('upgrade = { trl = ">=0.16.0" }', fixes)
        for name, fixes in (("both", f"{forward}\n[[rule.fix]]\n{back}"), ("older", back))
    )
    file.write_text("".join(own))
    findings = {
        name: Finding(
            rule=name, origin="rule", verdict="hit", severity="error", effect="crash", title="", why="", confidence="confirmed",
            packages={"deepspeed": "0.9.1", "torch": "2.15.0"},
        )
        for name in ("both", "older")
    }  # fmt: skip
    matrix, problem = in_memory(load_file(str(file))), installed("deepspeed", "torch")
    assert [need.text for need in advised(matrix, problem, (findings["both"],))] == ["deepspeed>=0.14.4"]
    assert [need.text for need in advised(matrix, problem, (findings["older"],))] == ["torch<2.4"]


def test_going_back_with_what_a_file_leaves_open_is_advised_where_it_is_the_first_fix(tmp_path: Path) -> None:
    """A pinned transformers with the newest peft: peft is what went too far, unless transformers moves anyway."""
    file = tmp_path / "rules.toml"
    fixes = 'downgrade = { peft = "==0.13.2" }\n[[rule.fix]]\nupgrade = { transformers = ">=4.44.0" }'
    file.write_text(RULE.replace('upgrade = { trl = ">=0.16.0" }', fixes))
    pair = Finding(
        rule="a-rule", origin="rule", verdict="hit", severity="error", effect="crash", title="", why="", confidence="confirmed",
        packages={"peft": "0.21.2", "transformers": "4.41.0"},
    )  # fmt: skip
    own = replace(pair, rule="alone", packages={"transformers": "4.41.0"})
    matrix, names = in_memory(load_file(str(file))), ("peft", "transformers")
    loose = installed(*names, unpinned=frozenset({"peft"}))
    assert [need.text for need in advised(matrix, loose, (pair,))] == ["peft==0.13.2", "transformers>=4.44.0"]
    assert [need.text for need in advised(matrix, loose, (pair, own))] == ["transformers>=4.44.0"]
    assert [need.text for need in advised(matrix, installed(*names), (pair,))] == ["transformers>=4.44.0"]


def test_nothing_is_recommended_for_what_follows_torch() -> None:
    """Which release of torchaudio is right depends on that of torch, which moves for other reasons."""
    fix = Fix("upgrade", "torch", ">=2.11", "")
    pair, three = (
        Finding(
            rule="a", origin="build", verdict="hit", severity="error", effect="crash", title="", why="", confidence="confirmed",
            packages=dict.fromkeys(names, "1.0"), fixes=(replace(fix, package="torchaudio", spec="<2.11"),),
        )
        for names in (("torch", "torchaudio"), ("torch", "torchaudio", "numpy"))
    )  # fmt: skip
    problem = installed("torch", "torchaudio", "numpy")
    assert not list(recommended(in_memory(()), problem, (pair,)))
    assert [each.alternatives for each in recommended(in_memory(()), problem, (three,))] == [
        ((Need("torchaudio", "<2.11", ()),),)
    ]


def test_an_extension_without_a_published_wheel_for_a_torch_is_a_warning() -> None:
    """Releases with the same wheels share a clause; one that nobody has recorded, and a local build, are not known to have none."""
    known = {
        "torch": tuple(Release("torch", version) for version in ("2.4.0", "2.7.0", "2.7.1")),
        "flash-attn": (
            *(Release("flash-attn", version) for version in ("2.6.3", "2.8.1", "2.8.2", "2.9.0")),
            Release("flash-attn", "2.8.0", source=Source("index", {"build": True})),
        ),
    }
    published = {"flash-attn": {"2.6.3": ("2.3", "2.4"), "2.8.0": ("2.7",), "2.8.1": ("2.7",), "2.8.2": ("2.7",)}}
    old, new = forbidden_by_wheels(published, known)
    assert dict(old.together) == {"flash-attn": {"2.6.3"}, "torch": {"2.7.0", "2.7.1"}}
    assert dict(new.together) == {"flash-attn": {"2.8.1", "2.8.2"}, "torch": {"2.4.0"}}
    assert {old.level, new.level} == {"warnings left"}
    assert old.statement.text == "flash-attn 2.6.3 is only published as a wheel for torch 2.3 to 2.4"
    assert list(forbidden_by_wheels(published, {"flash-attn": known["flash-attn"]})) == []


def test_a_later_post_release_has_no_more_wheels_and_what_is_named_by_address_is_not_compiled() -> None:
    known = {
        "torch": (Release("torch", "2.8.0"), Release("torch", "2.9.1")),
        "flash-attn": tuple(Release("flash-attn", each) for each in ("2.7.0", "2.8.3", "2.8.3.post2")),
    }
    (one,) = forbidden_by_wheels({"flash-attn": {"2.8.3": ("2.7", "2.8")}}, known)
    assert dict(one.together) == {"flash-attn": frozenset({"2.8.3", "2.8.3.post2"}), "torch": frozenset({"2.9.1"})}
    assert (one.level, one.weight) == ("warnings left", 1)
    found = list(forbidden_by_wheels({"flash-attn": {"2.8.3": ("2.7", "2.8")}}, known, ("flash-attn",)))
    assert [dict(each.together)["flash-attn"] for each in found] == [
        frozenset({"2.7.0"}), frozenset({"2.8.3", "2.8.3.post2"}),
    ]  # fmt: skip
    assert {each.level for each in found} == {"changes"}
