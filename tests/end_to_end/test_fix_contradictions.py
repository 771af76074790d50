"""``compat fix`` of a file whose requirements contradict each other: in the pins, in what they require, in extras."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.fixing import BAD_TRL, CLEAN, RULE, Run, own, release
from tests.index.server import IndexServer

pytest.importorskip("clingo")


def test_pins_that_contradict_each_other_are_fixed_beside_one_without_a_wheel(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:
    """Its requirements are not resolved."""
    index.add("built", {"1.0": release("2025-01-01", wheel=False, dynamic=True)})
    index.add("numpy", {"1.26.4": release("2025-01-01"), "2.0.1": release("2025-01-01")})
    index.add("old", {"1.0": release("2025-01-01", "numpy<2")})
    (tmp_path / "requirements.txt").write_text("built==1.0\nold==1.0\nnumpy==2.0.1\n")
    done = fix("--write", url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✗ numpy 2.0.1 and old 1.0 cannot be installed together  (unresolvable-pins)" in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "built==1.0\nold==1.0\nnumpy==1.26.4\n"


def shells(index: IndexServer) -> None:
    """Two packages that require different releases of a third one, until one of them follows."""
    index.add("shell", {"0.9": release("2024-01-01"), "0.12": release("2024-06-01")})
    index.add("nlp", {"3.7.2": release("2024-02-01", "shell<0.10"), "3.7.5": release("2024-07-01", "shell<1")})
    index.add("web", {"4.41": release("2024-08-01", "shell>=0.12")})


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml", "setup.py"])
def test_a_conflict_below_the_pins_is_fixed_with_one_of_them(fix: Run, index: IndexServer, tmp_path: Path, name: str) -> None:
    """What it is about is not listed, so that no pin can override it."""
    shells(index)
    texts = {
        "requirements.txt": "nlp==3.7.2\nweb==4.41\n",
        "pyproject.toml": '[project]\nname = "job"\nversion = "1"\ndependencies = ["nlp==3.7.2", "web==4.41"]\n',
        "setup.py": 'from setuptools import setup\nsetup(name="job", install_requires=["nlp==3.7.2", "web==4.41"])\n',
    }
    (tmp_path / name).write_text(texts[name])
    done = fix("--write", url=index.url, subject=[name], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "✗ nlp 3.7.2 and web 4.41 cannot be installed together (unresolvable-pins)" in said
    assert "because nlp 3.7.2 requires shell<0.10, web 4.41 requires shell>=0.12 " in said
    assert "cost 1 package changed checked against the rules, and with uv pip compile" in said
    assert (tmp_path / name).read_text() == texts[name].replace("3.7.2", "3.7.5")
    assert "Nothing to fix" in fix(url=index.url, subject=[name], job=CLEAN).stdout


def test_pins_of_a_project_that_contradict_each_other_are_fixed(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Not if it overrides the requirement on purpose."""
    index.add("numpy", {"1.26.4": release("2025-01-01"), "2.0.1": release("2025-01-01")})
    index.add("old", {"1.0": release("2025-01-01", "numpy<2"), "1.1": release("2025-02-01", "numpy<3")})
    project = '[project]\nname = "job"\nversion = "1"\ndependencies = ["old==1.0", "numpy==2.0.1"]\n'
    (tmp_path / "pyproject.toml").write_text(project + '[tool.uv]\noverride-dependencies = ["numpy==2.0.1"]\n')
    assert "Nothing to fix" in fix(url=index.url, subject=["pyproject.toml"], job=CLEAN).stdout
    (tmp_path / "pyproject.toml").write_text(project)
    done = fix("--write", url=index.url, subject=["pyproject.toml"], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "pyproject.toml").read_text() == project.replace("1.0", "1.1")


def test_pins_of_one_command_that_contradict_each_other_are_fixed(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """What another command installs later may contradict it: pip installs that all the same."""
    index.add("numpy", {"1.26.4": release("2025-01-01"), "2.0.1": release("2025-01-01")})
    index.add("old", {"1.0": release("2025-01-01", "numpy<2"), "1.1": release("2025-02-01", "numpy<3")})
    text = "FROM python:3.11-slim\nRUN pip install old==1.0\nRUN pip install numpy==2.0.1\n"
    (tmp_path / "Dockerfile").write_text(text)
    assert "Nothing to fix" in fix(url=index.url, subject=["Dockerfile"], job=CLEAN).stdout
    text = "FROM python:3.11-slim\nRUN pip install old==1.0 numpy==2.0.1\n"
    (tmp_path / "Dockerfile").write_text(text)
    done = fix("--write", url=index.url, subject=["Dockerfile"], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "Dockerfile").read_text() == text.replace("1.0", "1.1")


def test_a_plan_whose_file_uv_refuses_is_not_called_checked_with_it(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Of two faults of the pins one has no fix."""
    index.add("numpy", {"1.26.4": release("2025-01-01"), "2.0.1": release("2025-01-01")})
    index.add("accelerate", {"0.32.0": release("2024-07-01", "numpy<2.0.0,>=1.17")})
    (tmp_path / "requirements.txt").write_text("accelerate==0.32.0\nnumpy==2.0.1\ntrl==0.17.0\n")
    done = fix(*own(tmp_path, BAD_TRL), "--keep", "numpy", "accelerate", url=index.url, job=CLEAN)
    assert "with uv pip compile" not in done.stdout
    assert "uv refuses the edited file: " in " ".join(done.stdout.split()) or "conflict with each other" in done.stdout


def test_what_no_release_resolves_ends_with_the_contradiction(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """It is proven whatever torch's own index has, which cannot be reached."""
    shells(index)
    index.add("addons", {"0.1": release("2024-01-01", wheel_tags=["cp38-cp38-manylinux_2_17_x86_64"], sdist=False)})
    index.add("graphics", {"1.0": release("2024-01-01", "addons"), "1.1": release("2024-02-01", "addons")})
    (tmp_path / "requirements.txt").write_text("graphics==1.0\nweb==4.41\ntorch==2.6.0\n")
    done = fix("--write", url=index.url, job=CLEAN)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "  - all versions of graphics require addons\n" in done.stdout
    assert "  - there is no addons for this target\n" in done.stdout
    assert "  checked" not in done.stdout


def test_extras_that_do_not_go_together_are_fixed_one_by_one(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """The project declares no conflict between them; the error of one is fixed all the same."""
    shells(index)
    index.add("nlp", {"3.7.5": release("2024-07-01", "shell<0.10")})
    project = (
        '[project]\nname = "job"\nversion = "1"\ndependencies = ["torch==2.6.0"]\n[project.optional-dependencies]\n'
        'web = ["web==4.41", "trl==0.17.0"]\nnlp = ["nlp==3.7.2", "accelerate==1.6.0"]\n'
    )
    (tmp_path / "pyproject.toml").write_text(project)
    bad = RULE.format(
        name="bad-accelerate", severity="error", packages='accelerate = "<1.11"', hit='accelerate = "1.6.0"',
        clear='accelerate = "1.11.0"', fix='[[rule.fix]]\nupgrade = { accelerate = ">=1.11" }',
    )  # fmt: skip
    done = fix("--write", *own(tmp_path, BAD_TRL, bad), url=index.url, subject=["pyproject.toml"], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "uv cannot resolve every extra and group together, so each extra and group is checked on its own: " in said
    assert "with extra web; the 7 packages that uv resolves today" in said
    assert (tmp_path / "pyproject.toml").read_text() == project.replace("0.17.0", "0.18.0").replace("1.6.0", "1.11.0")


def test_a_contradiction_between_pins_is_fixed_like_an_error(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """What is a warning for an environment that exists keeps a file from being installed."""
    index.add("numpy", {"1.26.4": release("2025-01-01"), "2.0.1": release("2025-01-01")})
    index.add(
        "accelerate", {"0.32.0": release("2024-07-01", "numpy<2.0.0,>=1.17"), "0.34.0": release("2024-09-01", "numpy<3.0")}
    )
    (tmp_path / "requirements.txt").write_text("accelerate==0.32.0\nnumpy==2.0.1\n")
    done = fix("--write", "--brief", url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "installers reject these requirements because they conflict: Because " in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "accelerate==0.34.0\nnumpy==2.0.1\n"


def test_ranges_that_exclude_each_other_move_like_pins(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\ntransformers<4.52  # models\ntrl>=0.20\n")
    done = fix("--write", "--brief", url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "trl 0.24.0 requires transformers>=4.56.1, but 4.51.3 is installed" in done.stdout
    after = "torch==2.6.0\ntransformers<4.58  # models\ntrl>=0.20\n"
    assert (tmp_path / "requirements.txt").read_text() == after
    assert "Nothing to fix" in fix(url=index.url, job=CLEAN).stdout


def test_a_pin_that_is_listed_twice_is_one_package(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("trl==0.17.0\ntrl==0.17.0\ntrl>=0.9\n")
    done = fix("--write", *own(tmp_path, BAD_TRL), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == "trl==0.18.0\ntrl==0.18.0\ntrl>=0.9\n"


def test_of_two_pins_of_one_package_the_one_that_resolves_is_kept(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    index.add("numpy", {"1.26.4": release("2025-01-01"), "2.0.1": release("2025-01-01")})
    index.add("old", {"1.0": release("2025-01-01", "numpy<2")})
    (tmp_path / "requirements.txt").write_text("numpy==2.0.1  # newest\nnumpy==1.26.4\nold==1.0\n")
    done = fix("--write", url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "uv resolves the file only with 1.26.4" in " ".join(done.stdout.split())
    assert (tmp_path / "requirements.txt").read_text() == "numpy==1.26.4\nold==1.0\n"
    assert "Nothing to fix" in fix(url=index.url, job=CLEAN).stdout


def test_two_pins_are_made_one_although_no_index_has_another_package(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    index.add("numpy", {"1.26.4": release("2025-01-01"), "2.0.1": release("2025-01-01")})
    (tmp_path / "requirements.txt").write_text("numpy==1.26.4\nnumpy==2.0.1\nof-the-company==1.0\n")
    done = fix("--write", url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "against the rules; error: No solution found" in done.stdout
    assert "of-the-company was not found" in " ".join(done.stdout.split())
    assert (tmp_path / "requirements.txt").read_text() == "numpy==2.0.1\nof-the-company==1.0\n"


def test_two_pins_in_two_files_become_equal(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    index.add("numpy", {"1.26.4": release("2025-01-01"), "2.0.1": release("2025-01-01")})
    (tmp_path / "base.txt").write_text("numpy==1.26.4\n")
    (tmp_path / "requirements.txt").write_text("-r base.txt\nnumpy==2.0.1\n")
    done = fix(url=index.url, job=CLEAN)  # not in a project directory: base.txt could have any pin
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("compat: undecided: requirements.txt:1: -r base.txt was not read: ")
    done = fix("--write", url=index.url, job=CLEAN, HOME=str(tmp_path / "some" / "home"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "uv resolves the file with either, so the newer one is kept" in " ".join(done.stdout.split())
    assert (tmp_path / "base.txt").read_text() == "numpy==2.0.1\n"
    assert (tmp_path / "requirements.txt").read_text() == "-r base.txt\nnumpy==2.0.1\n"


def test_what_is_wrong_with_the_pin_that_is_kept_is_fixed(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    index.add("trl", {"0.16.0": release("2025-04-04"), "0.17.0": release("2025-04-25"), "0.18.0": release("2025-05-27")})
    (tmp_path / "requirements.txt").write_text("trl==0.16.0\ntrl==0.17.0\n")
    done = fix(*own(tmp_path, BAD_TRL), "--write", url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 change fixes 2 errors" in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "trl==0.18.0\n"


def test_a_pin_and_a_range_that_exclude_it_are_left_to_the_user(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    index.add("numpy", {"1.26.4": release("2025-01-01"), "2.0.1": release("2025-01-01")})
    (tmp_path / "requirements.txt").write_text("numpy==2.0.1\nnumpy<2\n")
    done = fix("--write", url=index.url, job=CLEAN)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "No plan is proposed: keep only one of the two lines" in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "numpy==2.0.1\nnumpy<2\n"


def test_a_file_that_uv_cannot_resolve_is_reported_with_its_reason(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    index.add("needy", {"1.0": release("2025-01-01", "no-such-package>=1")})
    (tmp_path / "requirements.txt").write_text("needy\ntrl\n")
    done = fix(*own(tmp_path, BAD_TRL), url=index.url, job=CLEAN)
    assert "possible" not in done.stdout  # which release of trl it would be is not a fact about the job
    assert done.returncode == 1, done.stdout + done.stderr
    assert "No plan is proposed: uv cannot resolve this file: " in done.stdout
    assert "no-such-package" in done.stdout
    assert "Nothing to fix" not in done.stdout


def test_pins_of_one_of_several_commands_that_contradict_each_other_are_fixed(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:
    """As check reports them: that another command installs something else, too, does not make pip accept them."""
    text = "FROM python:3.11-slim\nRUN pip install accelerate==1.6.0\nRUN pip install trl==0.24.0 transformers==4.51.3\n"
    (tmp_path / "Dockerfile").write_text(text)
    done = fix("--write", url=index.url, subject=["Dockerfile"], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "requires-trl-transformers" in done.stdout
    assert (tmp_path / "Dockerfile").read_text() != text


def test_a_pin_whose_own_pin_is_for_other_pythons_moves_with_the_ranges_in_its_way(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:
    """The rest of the file is resolved without it, and what it would meet there is no error: it was never installed so."""
    index.add("core", {
        "1.0": release("2025-01-01", wheel_tags=["cp310-cp310-manylinux_2_28_x86_64"], sdist=False), "2.0": release("2025-04-01"),
    })  # fmt: skip
    index.add("engine", {"1.0": release("2025-01-01", "core==1.0"), "2.0": release("2025-04-01", "core==2.0", "tool>=2")})
    index.add("tool", {"1.0": release("2025-01-01", "other"), "2.0": release("2025-04-01", "other")})
    index.add("other", {"1.0": release("2025-01-01")})
    met = RULE.format(
        name="bad-pair", severity="error", packages='engine = "<2", other = "*"', hit='engine = "1.0", other = "1.0"',
        clear='engine = "2.0", other = "1.0"', fix='[[rule.fix]]\nupgrade = { engine = ">=2" }',
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("engine==1.0\ntool<2\n")
    done = fix("--write", *own(tmp_path, met), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "engine 1.0 cannot be installed with the other requirements" in done.stdout
    assert "✗ bad-pair" not in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "engine==2.0\ntool<3\n"
