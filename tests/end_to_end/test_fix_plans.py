"""What a plan of ``compat fix`` is made for, and what it may not do; its indexes and selections."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.fixing import (
    BAD_TRL,
    CLEAN,
    JOB,
    LINES,
    PACKAGES,
    PLAN,
    RULE,
    Run,
    own,
    planned,
    release,
)
from tests.index.server import IndexServer

pytest.importorskip("clingo")


def target_of(done: subprocess.CompletedProcess[str]) -> str:
    return "; ".join(json.loads(done.stdout)["plan"]["target"])


def test_the_python_is_the_newest_that_the_pins_have_wheels_for(fix: Run, tmp_path: Path) -> None:
    """Never the oldest that the file admits; what stands beside the file is believed first."""
    compiled = {"wheel_tags": ("cp311-cp311-manylinux_2_28_x86_64", "cp310-cp310-manylinux_2_28_x86_64")}
    packages = {**PACKAGES, "xformers": {"1.0": release("2025-01-01", **compiled)}}
    (tmp_path / "requirements.txt").write_text(f"{LINES}xformers==1.0\n")
    with IndexServer(packages) as server:
        inferred = fix("--format", "json", url=server.url, job=JOB[:-2])
        (tmp_path / ".python-version").write_text("3.10\n")
        stated = fix("--format", "json", url=server.url, job=JOB[:-2])
    assert target_of(inferred).startswith("Python 3.11 (the newest that the pins have wheels for)"), inferred.stderr
    assert target_of(stated).startswith("Python 3.10 (.python-version)")
    assert planned(inferred) == planned(stated) == PLAN


def test_where_nothing_tells_the_python_it_is_a_usual_one(fix: Run, index: IndexServer) -> None:
    done = fix(url=index.url, job=JOB[:-2])
    assert "target Python 3.12 (assumed); Linux x86_64 (assumed); glibc 2.35 (assumed); CUDA (A100)" in " ".join(
        done.stdout.split()
    )


def test_what_the_user_takes_from_a_repository_stays(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    lines = LINES.replace("accelerate==1.6.0", "accelerate @ git+https://git.example/accelerate@0b62b43")
    (tmp_path / "requirements.txt").write_text(lines)
    done = fix("--write", url=index.url)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = lines.replace("4.51.3", "4.57.1").replace("0.21.1", "0.22.1")
    assert (tmp_path / "requirements.txt").read_text() == expected


def test_a_plan_that_lowers_nothing_is_not_proposed(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """The only other accelerate has an error of its own: nothing is written, and the reason is printed."""
    old = RULE.format(
        name="old-accelerate", severity="error", packages='accelerate = "<1.11"', hit='accelerate = "1.6.0"',
        clear='accelerate = "1.11.0"', fix='[[rule.fix]]\nupgrade = { accelerate = ">=1.11" }',
    )  # fmt: skip
    new = RULE.format(
        name="new-accelerate", severity="error", packages='accelerate = ">=1.11"', hit='accelerate = "1.11.0"',
        clear='accelerate = "1.6.0"', fix='[[rule.fix]]\ndowngrade = { accelerate = "<1.11" }',
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("accelerate==1.6.0\ntorch==2.6.0\n")
    done = fix("--write", *own(tmp_path, old, new), url=index.url, job=CLEAN)
    assert done.returncode == 1, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == "accelerate==1.6.0\ntorch==2.6.0\n"
    assert "conflict with each other" in done.stdout or "No plan is proposed: " in done.stdout


def test_the_fix_that_a_rule_recommends_comes_before_a_smaller_change(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Moving trl alone would do; the rule says to move transformers, which takes tokenizers along."""
    pair = RULE.format(
        name="pair", severity="error", packages='transformers = "<4.57", trl = "<0.18"', fix="",
        hit='transformers = "4.51.3", trl = "0.17.0"', clear='transformers = "4.57.1", trl = "0.17.0"',
    )  # fmt: skip
    recommended = pair.replace("[[rule.example]]", '[[rule.fix]]\nupgrade = { transformers = ">=4.57" }\n[[rule.example]]', 1)
    other = pair.replace("[[rule.example]]", '[[rule.fix]]\nupgrade = { trl = ">=0.18" }\n[[rule.example]]', 1)
    assert planned(fix("--format", "json", *own(tmp_path, recommended), url=index.url, job=CLEAN)) == PLAN
    changed = planned(fix("--format", "json", *own(tmp_path, other), url=index.url, job=CLEAN))
    assert changed == {"trl": ("0.17.0", "0.18.0")}


def test_warnings_are_fixed_on_request(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    rule = RULE.format(
        name="slow", severity="warning", packages='trl = "<0.18"', hit='trl = "0.17.0"', clear='trl = "0.18.0"',
        fix='[[rule.fix]]\nupgrade = { trl = ">=0.18" }',
    )  # fmt: skip
    left = fix(*own(tmp_path, rule), url=index.url, job=CLEAN).stdout
    assert "Nothing to fix: no known error applies here.\n  warning   slow (slow)\n" in left
    assert left.splitlines()[-1] == "1 warning is left: --level warning also fixes what releases can fix."
    assert (
        "warning" not in fix("--level", "warning", *own(tmp_path, rule), url=index.url, job=CLEAN).stdout.partition("policy")[2]
    )
    done = fix("--level", "warning", "--format", "json", *own(tmp_path, rule), url=index.url, job=CLEAN)
    assert planned(done) == {"trl": ("0.17.0", "0.18.0")}
    assert done.returncode == 0


OLD_TORCH = RULE.format(
    name="old-torch", severity="error", packages='torch = "<2.7"', hit='torch = "2.6.0"', clear='torch = "2.7.0"',
    fix='[[rule.fix]]\nupgrade = { torch = ">=2.7" }',
)  # fmt: skip


def test_an_extension_is_compiled_again_when_torch_moves(fix: Run, tmp_path: Path) -> None:
    packages = {**PACKAGES, "flash-attn": {"2.7.4.post1": release("2025-01-29", "torch")}}
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\nflash-attn==2.7.4.post1\n")
    with IndexServer(packages) as server:
        done = fix(*own(tmp_path, OLD_TORCH), url=server.url, job=CLEAN)
        plan = json.loads(fix("--format", "json", *own(tmp_path, OLD_TORCH), url=server.url, job=CLEAN).stdout)["plan"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rebuild   flash-attn 2.7.4.post1: it is compiled against torch 2.6.0" in done.stdout
    again = (
        'uv pip install --no-build-isolation --reinstall-package flash-attn --no-binary flash-attn "flash-attn==2.7.4.post1"'
    )
    again = f'TORCH_CUDA_ARCH_LIST="8.0" {again}'
    assert plan["commands"] == ["uv pip install -r requirements.txt", again]
    assert [each["name"] for each in plan["changes"]] == ["torch"]
    assert plan["actions"] == [
        {
            "kind": "source-install",
            "text": "rebuild flash-attn 2.7.4.post1: it is compiled against torch 2.6.0",
            "command": None,
        }
    ]


def test_an_error_that_depends_on_the_job_is_named_with_the_option_that_settles_it(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:
    """It is not fixed as long as nobody says what the job does, and a plan must not be taken for the end of it."""
    rule = RULE.format(
        name="bad-grpo", severity="error", packages='trl = "<0.18"', hit='trl = "0.17.0"', clear='trl = "0.18.0"',
        fix='[[rule.fix]]\nupgrade = { trl = ">=0.18" }\n[rule.when]\ntask = ["grpo"]',
    ).replace('hit = { packages = { trl = "0.17.0" } }', 'hit = { packages = { trl = "0.17.0" }, task = "grpo" }')  # fmt: skip
    done = fix(*own(tmp_path, rule), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "Nothing to fix: no known error applies here.\n  possible  bad-grpo (bad-grpo)\n            settle with --task TASK"
        in done.stdout
    )
    assert done.stdout.endswith("\n1 question is left, as it depends on what is not known. Settle with --task TASK.\n")
    settled = fix(*own(tmp_path, rule), url=index.url, job=(*CLEAN, "--task", "sft")).stdout
    assert "possible" not in settled
    assert "left" not in settled
    done = fix("--format", "json", *own(tmp_path, rule), url=index.url, job=(*CLEAN, "--task", "grpo"))
    assert planned(done) == {"trl": ("0.17.0", "0.18.0")}


def test_what_is_compiled_again_anyway_moves_to_a_release_without_a_warning(fix: Run, tmp_path: Path) -> None:
    """Alone, the warning is no reason to change a package."""
    rules = [
        RULE.format(
            name=f"old-{name}", severity=severity, packages=f'{name} = "<{bound}"', hit=f'{name} = "{old}"',
            clear=f'{name} = "{bound}"', fix=f'[[rule.fix]]\nupgrade = {{ {name} = ">={bound}" }}',
        )
        for name, severity, old, bound in (("torch", "error", "2.6.0", "2.7.0"), ("flash-attn", "warning", "2.6.3", "2.8.1"))
    ]  # fmt: skip
    releases = {each: release("2025-01-29", "torch") for each in ("2.6.3", "2.8.0", "2.8.1", "2.8.3")}
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\nflash-attn==2.6.3\n")
    with IndexServer({**PACKAGES, "flash-attn": releases}) as server:
        assert "Nothing to fix" in fix(*own(tmp_path, rules[1]), url=server.url, job=CLEAN).stdout
        done = fix("--write", *own(tmp_path, *rules), url=server.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == "torch==2.7.0\nflash-attn==2.8.1\n"


def test_a_wheel_by_its_address_gives_way_to_a_release_that_is_compiled(fix: Run, tmp_path: Path) -> None:
    """It was compiled for the old torch; what takes its place needs the new one to be there first, and no isolation."""
    wheel = "flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    packages = {**PACKAGES, "flash-attn": {"2.8.3": release("2025-08-14", "torch", wheel=False)}}
    (tmp_path / "requirements.txt").write_text(f"torch==2.6.0\nhttps://github.com/Dao-AILab/flash-attention/{wheel}\n")
    with IndexServer(packages) as server:
        done = fix("--write", *own(tmp_path, OLD_TORCH), url=server.url, job=("--gpu", "A100:1"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "because flash-attn is compiled for another torch: 2.6, not 2.7.0 (build-flash-attn-torch)" in " ".join(
        done.stdout.split()
    )
    assert "  build     flash-attn 2.8.3: its setup.py downloads the wheel for the installed torch\n" in done.stdout
    assert '  apply     uv pip install "torch==2.7.0"\n  apply     TORCH_CUDA_ARCH_LIST="8.0" uv pip install ' in done.stdout
    assert "--no-build-isolation-package flash-attn" in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "torch==2.7.0\nflash-attn==2.8.3\n"


def test_a_wheel_of_its_authors_gives_way_to_theirs_for_the_new_torch(fix: Run, tmp_path: Path) -> None:
    """Nothing is compiled, as an image without nvcc could not; what is named without an address stays."""
    wheel = "https://github.com/Dao-AILab/flash-attention/releases/download/v{0}/flash_attn-{0}+cu12torch{1}-cp311-cp311-linux_x86_64.whl"
    before, after = wheel.format("2.7.4.post1", "2.6cxx11abiFALSE"), wheel.format("2.8.3", "2.7cxx11abiTRUE")
    text = "FROM python:3.11\nRUN pip install torch=={}\nRUN pip install {} || pip install flash-attn\n"
    packages = {**PACKAGES, "flash-attn": {"2.8.3": release("2025-08-14", "torch", wheel=False)}}
    (tmp_path / "Dockerfile").write_text(text.format("2.6.0", before))
    with IndexServer(packages) as server:
        done = fix("--write", *own(tmp_path, OLD_TORCH), url=server.url, subject=["Dockerfile"], job=("--gpu", "A100:1"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "  build  " not in done.stdout
    assert (tmp_path / "Dockerfile").read_text() == text.format("2.7.0", after)


def test_of_releases_that_fix_an_error_one_without_a_warning_is_taken(fix: Run, tmp_path: Path) -> None:
    """The warning is there before, and alone it is no reason to move; what moves anyway heeds it."""
    warning = RULE.format(
        name="accelerate-wants-trl-0-19", severity="warning", packages='accelerate = "*", trl = "!=0.19.0"',
        hit='accelerate = "1.6.0", trl = "0.18.0"', clear='accelerate = "1.6.0", trl = "0.19.0"',
        fix='[[rule.fix]]\npin = { trl = "==0.19.0" }',
    )  # fmt: skip
    trl = {f"0.{minor}.0": release(f"2025-0{minor - 13}-25") for minor in (17, 18, 19)}
    (tmp_path / "requirements.txt").write_text("trl==0.17.0\naccelerate==1.6.0\n")
    with IndexServer({**PACKAGES, "trl": trl}) as server:
        done = fix("--write", *own(tmp_path, BAD_TRL + warning), url=server.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == "trl==0.19.0\naccelerate==1.6.0\n"


# Indexes that only some packages come from, and packages that only a build could tell about

OWN_INDEX = """\
[project]
name = "job"
version = "1"
requires-python = "==3.11.*"
dependencies = ["torch==2.6.0", "transformers==4.51.3", "trl==0.17.0", "accelerate==1.6.0", "old>=1"]

[tool.uv.sources]
torch = { index = "vendor" }

[[tool.uv.index]]
name = "vendor"
url = "http://127.0.0.1:9/simple"
explicit = true
"""


def test_an_index_of_the_project_that_is_down_is_no_contradiction(fix: Run, tmp_path: Path) -> None:
    """Started from another folder: the project's own configuration counts, and the ordinary index has the release."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "pyproject.toml").write_text(OWN_INDEX)
    built = {"old": {"1.0": release("2020-01-01", wheel=False, dynamic=True)}}
    with IndexServer({**PACKAGES, **built}) as server:
        done = fix("--format", "json", url=server.url, subject=("job/pyproject.toml",))
    plan = json.loads(done.stdout)["plan"]
    assert done.returncode == 0, done.stderr
    assert planned(done)["transformers"] == PLAN["transformers"]
    assert plan["core"] is None
    assert plan["verified"]["uv"] is True
    assert any("old: no wheel" in note for note in json.loads(done.stdout)["notes"])


def test_what_moves_to_the_ordinary_index_leaves_the_one_that_is_down(fix: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(OWN_INDEX.replace(', "old>=1"', ""))
    with IndexServer(PACKAGES) as server:
        done = fix("--write", "--keep", "torch==2.7.0", url=server.url, subject=("pyproject.toml",))
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "pyproject.toml").read_text()
    assert '"torch==2.7.0"' in written
    assert 'torch = { index = "vendor" }' not in written


CONFLICTING = """\
[project]
name = "job"
version = "1"
requires-python = "==3.11.*"
dependencies = ["torch==2.6.0"]

[project.optional-dependencies]
one = ["accelerate==1.6.0"]
two = ["trl==0.17.0", "transformers==4.55.0"]

[tool.uv]
conflicts = [[{ extra = "one" }, { extra = "two" }]]
"""


def bad(name: str, version: str, good: str) -> str:
    return RULE.format(
        name=f"bad-{name}", severity="error", packages=f'{name} = "<{good}"', hit=f'{name} = "{version}"',
        clear=f'{name} = "{good}"', fix=f'[[rule.fix]]\nupgrade = {{ {name} = ">={good}" }}',
    )  # fmt: skip


def test_one_plan_fixes_every_selection(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Two extras that cannot be installed together, each with an error of its own."""
    (tmp_path / "pyproject.toml").write_text(CONFLICTING)
    rules = own(tmp_path, bad("accelerate", "1.6.0", "1.11.0"), bad("trl", "0.17.0", "0.18.0"))
    options = {"url": index.url, "job": CLEAN, "subject": ("pyproject.toml",)}
    done = fix("--write", "--format", "json", *rules, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert planned(done) == {"accelerate": ("1.6.0", "1.11.0"), "trl": ("0.17.0", "0.18.0")}
    assert {each["rule"] for each in json.loads(done.stdout)["findings"]} == {"bad-accelerate", "bad-trl"}
    assert [each["reasons"] for each in json.loads(done.stdout)["plan"]["changes"]] == [
        ["bad-accelerate (bad-accelerate)"], ["bad-trl (bad-trl)"],
    ]  # fmt: skip
    expected = CONFLICTING.replace("accelerate==1.6.0", "accelerate==1.11.0").replace("trl==0.17.0", "trl==0.18.0")
    assert (tmp_path / "pyproject.toml").read_text() == expected
    assert "Nothing to fix" in fix(*rules, **options).stdout


def test_extras_and_groups_that_leave_something_open_are_named(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """They are not resolved with the selection that is planned for, unless they are requested."""
    text = CONFLICTING.replace("==1.6.0", "").partition("[tool.uv]")[0] + '[dependency-groups]\nlate = ["trl"]\n'
    (tmp_path / "pyproject.toml").write_text(text.replace('["torch==2.6.0"]', '["torch==2.6.0", "transformers"]'))
    bad_torch, options = bad("torch", "2.6.0", "2.7.0"), {"url": index.url, "job": CLEAN, "subject": ("pyproject.toml",)}
    done = fix("--format", "json", *own(tmp_path, bad_torch), **options)
    assert planned(done).keys() == {"torch"}
    note = "not resolved, and only checked as listed, unless named (--extras, --groups): extra one, group late"
    assert note in json.loads(done.stdout)["notes"]
    done = fix("--format", "json", "--extras", "one", *own(tmp_path, bad_torch), **options)
    assert not any("not resolved" in each for each in json.loads(done.stdout)["notes"])


def test_what_one_selection_needs_and_cannot_have_is_left(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(CONFLICTING)
    rules = own(tmp_path, bad("accelerate", "1.6.0", "1.11.0"), bad("trl", "0.17.0", "9"))
    done = fix("--format", "json", *rules, url=index.url, job=CLEAN, subject=("pyproject.toml",))
    plan = json.loads(done.stdout)["plan"]
    assert done.returncode == 1, done.stdout + done.stderr
    assert planned(done) == {"accelerate": ("1.6.0", "1.11.0")}
    assert plan["left"] == ["bad-trl"]


ENGINES = {
    "engine": {"1.0": release("2025-02-01", "torch==2.6.0"), "2.0": release("2025-06-01", "torch==2.7.0")},
    "server": {"1.0": release("2025-02-01", "torch==2.6.0"), "1.1": release("2025-03-01", "torch==2.6.0")},
}  # fmt: skip
APART = """\
[project]
name = "job"
version = "1"
requires-python = "==3.11.*"
dependencies = ["trl==0.17.0"]

[project.optional-dependencies]
one = ["engine==1.0", "torch==2.6.0"]
two = ["server==1.0", "torch==2.6.0"]

[tool.uv]
conflicts = [[{ extra = "one" }, { extra = "two" }]]
"""


@pytest.mark.parametrize("own_error", [False, True])
def test_extras_that_exclude_each_other_are_planned_for_one_by_one(fix: Run, tmp_path: Path, *, own_error: bool) -> None:
    """The torch of one moves, and that of the other cannot."""
    (tmp_path / "pyproject.toml").write_text(APART)
    broken = [bad("engine", "1.0", "2.0"), *([bad("server", "1.0", "1.1")] if own_error else ())]
    expected = APART.replace('"engine==1.0", "torch==2.6.0"', '"engine==2.0", "torch==2.7.0"')
    with IndexServer({**PACKAGES, **ENGINES}) as server:
        options = {"url": server.url, "job": CLEAN, "subject": ("pyproject.toml",)}
        done = fix("--write", "--format", "json", *own(tmp_path, *broken), **options)
        named = fix("--extras", "one", *own(tmp_path, *broken), **options).stdout
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "pyproject.toml").read_text() == (
        expected.replace("server==1.0", "server==1.1") if own_error else expected
    )
    plans = [each["name"] for each in json.loads(done.stdout).get("plans", ())]
    assert plans == (["extra one", "extra two"] if own_error else [])
    assert "Nothing to fix" in named


def test_what_an_extra_needs_in_addition_is_added_to_it_if_others_exclude_it(fix: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(APART)
    plugin = {"1.0": release("2025-01-01"), "2.0": release("2025-05-01")}
    newer = release("2025-06-01", "torch==2.7.0", "plugin")
    engines = {**ENGINES, "engine": {**ENGINES["engine"], "2.0": newer}, "plugin": plugin}
    old = RULE.format(
        name="bad-plugin", severity="error", packages='plugin = ">=2"', hit='plugin = "2.0"', clear='plugin = "1.0"',
        fix='[[rule.fix]]\ndowngrade = { plugin = "<2" }',
    )  # fmt: skip
    with IndexServer({**PACKAGES, **engines}) as server:
        rules = own(tmp_path, bad("engine", "1.0", "2.0"), old)
        done = fix("--write", *rules, url=server.url, job=CLEAN, subject=("pyproject.toml",))
    assert done.returncode == 0, done.stdout + done.stderr
    written = (tmp_path / "pyproject.toml").read_text()
    assert 'one = ["engine==2.0", "torch==2.7.0", "plugin<2"]' in written
    assert "constraint-dependencies" not in written


def test_what_only_an_extra_pins_is_bounded_where_the_project_brings_it_along(fix: Run, tmp_path: Path) -> None:
    """Without the extra, the newest torch gets installed; the extra keeps its own."""
    project = APART.replace("trl==0.17.0", "accelerate==1.6.0").replace('two = ["server==1.0", "torch==2.6.0"]\n', "")
    (tmp_path / "pyproject.toml").write_text(project[: project.index("[tool.uv]")])
    new = RULE.format(
        name="bad-torch", severity="error", packages='torch = ">=2.8"', hit='torch = "2.8.0"', clear='torch = "2.7.0"',
        fix='[[rule.fix]]\ndowngrade = { torch = "<2.8" }',
    )  # fmt: skip
    torch = {**PACKAGES["torch"], "2.8.0": release("2025-08-06")}
    with IndexServer({**PACKAGES, **ENGINES, "torch": torch}) as server:
        done = fix("--write", *own(tmp_path, new), url=server.url, job=CLEAN, subject=("pyproject.toml",))
    assert done.returncode == 0, done.stdout + done.stderr
    written = (tmp_path / "pyproject.toml").read_text()
    assert 'one = ["engine==1.0", "torch==2.6.0"]' in written
    assert '"torch<2.8"' in written


def test_what_an_excluded_extra_pins_stays(fix: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(APART)
    with IndexServer({**PACKAGES, **ENGINES}) as server:
        done = fix("--write", "--extras", "one", *own(tmp_path, bad("engine", "1.0", "2.0")), url=server.url, job=CLEAN,
                   subject=("pyproject.toml",))  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'two = ["server==1.0", "torch==2.6.0"]' in (tmp_path / "pyproject.toml").read_text()


UNSLOTH = {
    "unsloth": {
        "2025.2.12": release("2025-02-10"), "2025.2.14": release("2025-02-15"), "2025.2.15": release("2025-02-20"),
        "2025.3.1": release("2025-03-03"),
    },
    "unsloth-zoo": {"2025.2.7": release("2025-02-15"), "2025.3.6": release("2025-03-07")},
    "trl": {"0.15.2": release("2025-02-25")},
}  # fmt: skip
MISTRAL = ("--task", "grpo", "--model", "mistral", "--gpu", "A100:1", "--python-version", "3.11")
COMMIT = "455517aae97fc152aa59aae3e328c22c25a89151"


def test_a_commit_that_a_rule_recommends_is_the_fix_where_no_release_is(fix: Run, tmp_path: Path) -> None:
    """It is pure Python: nothing is compiled for a GPU, and the build is isolated."""
    (tmp_path / "requirements.txt").write_text("unsloth==2025.2.14\nunsloth-zoo==2025.2.7\ntrl==0.15.2\n")
    with IndexServer(UNSLOTH) as server:
        releases = fix("--format", "json", url=server.url, job=MISTRAL)
        kept = ("--keep", "unsloth>=2025.2.14,<2025.3")
        commit = fix("--format", "json", *kept, url=server.url, job=MISTRAL)
        asked = fix("--format", "json", "--allow-source", *kept, url=server.url, job=MISTRAL)
    assert planned(releases)["unsloth"] == ("2025.2.14", "2025.3.1"), releases.stderr
    for done in (commit, asked):
        plan = json.loads(done.stdout)["plan"]
        (change,) = plan["changes"]
        assert (change["name"], change["to"], change["commit"]) == ("unsloth", "2025.2.15", COMMIT), done.stderr
        assert plan["left"] == []
        assert plan["cost"] == {"changed": 1, "source": 1, "steps": plan["cost"]["steps"]}
        assert "TORCH_CUDA_ARCH_LIST" not in " ".join(plan["commands"])
        assert "no-build-isolation" not in " ".join(plan["commands"])


def test_a_release_may_need_an_old_one_of_a_package_that_only_it_requires(fix: Run, tmp_path: Path) -> None:
    """The age of what nobody asked for is no reason to propose nothing; a direct requirement does not go back years."""
    needs = {"0.18.0": "tokenizers==0.1", "0.17.0": "tokenizers>=0.21"}
    packages = {
        "trl": {version: release("2025-05-27", each) for version, each in needs.items()},
        "tokenizers": {"0.1": release("2022-01-01"), "0.21.1": release("2025-03-13")},
    }
    (tmp_path / "requirements.txt").write_text("tokenizers==0.21.1\n    # via trl\ntrl==0.17.0\n    # via -r requirements.in\n")
    with IndexServer(packages) as server:
        done = fix("--format", "json", *own(tmp_path, BAD_TRL), url=server.url, job=CLEAN)
        (tmp_path / "requirements.txt").write_text("tokenizers==0.21.1\ntrl==0.17.0\n")
        direct = fix(*own(tmp_path, BAD_TRL), url=server.url, job=CLEAN)
    assert planned(done) == {"tokenizers": ("0.21.1", "0.1"), "trl": ("0.17.0", "0.18.0")}, done.stdout + done.stderr
    assert direct.returncode == 1, direct.stdout
    assert "--any-age" in direct.stdout


def test_the_diffs_of_two_files_are_apart(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "base.txt").write_text("transformers==4.51.3\n")
    (tmp_path / "job" / "requirements.txt").write_text(LINES.replace("transformers==4.51.3  # models", "-r base.txt"))
    done = fix(url=index.url, subject=["job/requirements.txt"])
    assert {"--- job/base.txt", "--- job/requirements.txt"} <= set(done.stdout.splitlines()), done.stdout + done.stderr


def test_a_project_that_admits_a_python_without_a_release_is_named_after_the_plan(fix: Run, tmp_path: Path) -> None:
    """What is written cannot be locked: the new transformers is for newer Pythons than the project admits."""
    newer = release("2025-10-14", "tokenizers<=0.23,>=0.22") | {"requires_python": ">=3.10"}
    packages = {**PACKAGES, "transformers": {**PACKAGES["transformers"], "4.57.1": newer}}
    pins = ", ".join(f'"{line.partition(" ")[0]}"' for line in LINES.splitlines()[1:])
    text = f'[project]\nname = "job"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = [{pins}]\n'
    (tmp_path / "requirements.txt").unlink()
    (tmp_path / "pyproject.toml").write_text(text)
    with IndexServer(packages) as server:
        done = fix("--write", url=server.url, subject=("pyproject.toml",))
    assert '"transformers==4.57.1"' in (tmp_path / "pyproject.toml").read_text(), done.stdout + done.stderr
    shown = " ".join(done.stdout.split())
    assert (
        "warning requires-python admits Python 3.9, for which there is no transformers==4.57.1 (requires-python-too-wide)"
        in shown
    )
    assert 'set requires-python = ">=3.10"' in shown
    assert done.stdout.endswith("1 warning is left.\n")


@pytest.mark.parametrize(
    ("advice", "expected"),
    [
        ('launch = "another trainer"', {"alpha": ("1.0", "1.1")}),
        ('downgrade = { beta = ">=2.0,<3.0" }', {"beta": ("4.1", "2.0")}),
    ],
)
def test_a_release_from_years_ago_does_not_save_the_change_of_a_pin(
    fix: Run, tmp_path: Path, advice: str, expected: dict[str, tuple[str, str]]
) -> None:  # fmt: skip
    """beta is open, so that an old one would cost nothing but its distance, unless a rule advises it."""
    packages = {
        "alpha": {"1.0": release("2025-04-25", "beta"), "1.1": release("2025-05-27", "beta")},
        "beta": {"2.0": release("2022-06-08"), "4.0": release("2025-10-14"), "4.1": release("2025-11-25")},
    }
    rule = RULE.format(
        name="pair", severity="error", packages='alpha = "<1.1", beta = ">=3"', fix=f"[[rule.fix]]\n{advice}",
        hit='alpha = "1.0", beta = "4.0"', clear='alpha = "1.1", beta = "4.0"',
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("alpha==1.0\n")
    with IndexServer(packages) as server:
        done = fix("--format", "json", *own(tmp_path, rule), url=server.url, job=CLEAN)
    assert planned(done) == expected, done.stdout + done.stderr


def test_another_major_version_of_a_transitive_package_moves_before_that_of_a_direct_one(fix: Run, tmp_path: Path) -> None:
    packages = {
        "alpha": {"1.0": release("2025-04-25", "beta"), "2.0": release("2025-05-27", "beta")},
        "beta": {"3.0": release("2025-10-14"), "4.0": release("2025-11-25")},
    }
    rule = RULE.format(
        name="pair", severity="error", packages='alpha = "<2", beta = ">=4"', fix='[[rule.fix]]\nlaunch = "another trainer"',
        hit='alpha = "1.0", beta = "4.0"', clear='alpha = "2.0", beta = "4.0"',
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("alpha==1.0\n    # via -r requirements.in\nbeta==4.0\n    # via alpha\n")
    with IndexServer(packages) as server:
        done = fix("--format", "json", *own(tmp_path, rule), url=server.url, job=CLEAN)
    assert planned(done) == {"beta": ("4.0", "3.0")}, done.stdout + done.stderr
