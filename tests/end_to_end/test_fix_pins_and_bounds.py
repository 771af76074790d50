"""``compat fix`` of a file that lists only part of what gets installed: which packages it pins, and which bounds move."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.fixing import BAD_TRL, CLEAN, PACKAGES, RULE, Run, own, release
from tests.index.server import IndexServer

pytest.importorskip("clingo")


def test_an_open_range_is_limited_where_an_installer_would_take_a_release_with_an_error_for_the_edited_file(
    fix: Run, index: IndexServer, tmp_path: Path
) -> None:  # fmt: skip
    """gamma 1.2 requires the beta of the plan, and is worse than gamma 1.1, which is installed today."""
    index.add("gamma", {"1.1": release("2025-03-01"), "1.2": release("2025-04-01", "beta<3")})
    index.add("beta", {"2.0": release("2025-01-01"), "3.0": release("2025-03-01")})
    rules = "".join(
        RULE.format(name=name, severity="error", packages=packages, hit=hit, clear=clear, fix=f"[[rule.fix]]\n{fixed}")
        for name, packages, hit, clear, fixed in (
            ("bad-beta", 'beta = ">=3"', 'beta = "3.0"', 'beta = "2.0"', 'downgrade = { beta = "<3" }'),
            ("bad-gamma", 'gamma = ">=1.2"', 'gamma = "1.2"', 'gamma = "1.1"', 'downgrade = { gamma = "<1.2" }'),
        )
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("beta\ngamma<2\n")
    done = fix("--write", *own(tmp_path, rules), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "  gamma  1.1 (kept by <1.2)\n      because bad-gamma (bad-gamma)\n" in done.stdout
    assert "1 package changed" in done.stdout
    assert (tmp_path / "requirements.txt").read_text().splitlines() == ["beta<3", "gamma<1.2"]
    assert 'undo      uv pip install "beta==3.0"\n' in done.stdout


def test_a_release_without_a_wheel_to_which_uv_went_back_is_not_kept(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """gamma 1.1 would be compiled; that it is taken today is no reason to leave out the releases with wheels."""
    index.add(
        "gamma",
        {"1.1": release("2025-03-01", wheel=False), "1.2": release("2025-04-01", "beta<3"), "2.0": release("2025-05-01")},
    )
    index.add("beta", {"2.0": release("2025-01-01"), "3.0": release("2025-03-01")})
    rules = "".join(
        RULE.format(name=name, severity="error", packages=packages, hit=hit, clear=clear, fix=f"[[rule.fix]]\n{fixed}")
        for name, packages, hit, clear, fixed in (
            ("bad-beta", 'beta = ">=3"', 'beta = "3.0"', 'beta = "2.0"', 'downgrade = { beta = "<3" }'),
            ("bad-gamma", 'gamma = "==1.2"', 'gamma = "1.2"', 'gamma = "2.0"', 'upgrade = { gamma = ">=2" }'),
        )
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("beta\ngamma<2\n")
    done = fix("--write", *own(tmp_path, rules), url=index.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text().splitlines() == ["beta<3", "gamma<3"]


def test_a_range_is_not_left_for_a_release_from_years_before(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """It has no requirements, and thus no conflict; the one after it would, but the project never worked with it."""
    index.add("composer", {"0.3": release("2022-01-01"), "0.30": release("2025-03-01", "torch<2.6.1")})
    bad = RULE.format(
        name="bad-torch", severity="error", packages='torch = "<2.7"', hit='torch = "2.6.0"', clear='torch = "2.7.0"',
        fix='[[rule.fix]]\nupgrade = { torch = ">=2.7" }',
    )  # fmt: skip
    (tmp_path / "requirements.txt").write_text("composer>=0.30,<0.31\ntorch\n")
    done = fix("--write", *own(tmp_path, bad), url=index.url, job=CLEAN)
    assert done.returncode == 3, done.stdout + done.stderr  # torch's own index has other builds
    assert "  - composer 0.30 requires torch<2.6.1\n" in done.stdout


def test_what_the_installer_moves_by_itself_is_not_pinned(fix: Run, tmp_path: Path) -> None:
    """trl 0.18 needs an older release of a package that no line lists: uv takes it, however old it is."""
    packages = {
        "trl": {
            "0.17.0": release("2025-04-25", "helper>=1"),
            "0.18.0": release("2025-05-27", "helper<2", "extra-helper"),
        },
        "helper": {"1.0": release("2020-01-01"), "2.0": release("2025-04-01")},
        "extra-helper": {"1.0": release("2025-05-01")},
    }
    (tmp_path / "requirements.txt").write_text("trl==0.17.0\n")
    with IndexServer(packages) as server:
        done = fix("--write", *own(tmp_path, BAD_TRL), url=server.url, job=CLEAN)
        asked = fix("--format", "json", "--keep", "trl==0.17.0", *own(tmp_path, BAD_TRL), url=server.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 change fixes 1 error. No smaller change fixes them." in done.stdout
    assert "also      helper 1.0, extra-helper 1.0" in done.stdout
    assert "cost      1 package changed, 1 package added" in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "trl==0.18.0\n"
    assert asked.returncode == 1  # the pin that is kept forbids the fix


def test_a_bound_that_brings_another_release_along_says_what_that_is_for(fix: Run, tmp_path: Path) -> None:
    """The error is about base, and the bound on follower, whose release requires the base that has none."""
    rules = "\n".join(
        RULE.format(name=name, severity="error", packages=packages, hit=hit, clear=clear, fix=f"[[rule.fix]]\ndowngrade = {{ {fix} }}")
        for name, packages, hit, clear, fix in (
            ("bad-base", 'base = ">=2"', 'base = "2.0"', 'base = "1.0"', 'base = "<2"'),
            ("not-beside", 'follower = ">=2", base = "<2"', 'follower = "2.0", base = "1.0"', 'follower = "1.0", base = "1.0"', 'follower = "<2"'),
        )
    )  # fmt: skip
    packages = {
        "base": {"1.0": release("2025-04-01"), "2.0": release("2025-05-01")},
        "follower": {"1.0": release("2025-04-01", "base==1.0"), "2.0": release("2025-05-01")},
    }
    (tmp_path / "requirements.txt").write_text("base\nfollower\n")
    with IndexServer(packages) as server:
        done = fix("--write", *own(tmp_path, rules), url=server.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "requirements.txt").read_text() == "base\nfollower<2\n"
    assert "because bad-base (bad-base)" in done.stdout


def test_an_unlisted_package_is_pinned_only_where_uv_would_choose_a_bad_release(fix: Run, tmp_path: Path) -> None:
    """Both errors are about unlisted packages; once trl moves, uv resolves one of them to a good release by itself."""
    bad = "\n".join(
        RULE.format(
            name=f"bad-{name}", severity="error", packages=f'{name} = ">=2"', hit=f'{name} = "2.0"', clear=f'{name} = "1.0"',
            fix=f'[[rule.fix]]\ndowngrade = {{ {name} = "<2" }}',
        )
        for name in ("capped", "free")
    )  # fmt: skip
    packages = {
        "trl": {
            "0.17.0": release("2025-04-25", "capped", "free"),
            "0.18.0": release("2025-05-27", "capped<2", "free"),
        },
        **{name: {"1.0": release("2025-04-01"), "2.0": release("2025-05-01")} for name in ("capped", "free")},
    }
    (tmp_path / "requirements.txt").write_text("trl==0.17.0\n")
    with IndexServer(packages) as server:
        done = fix("--write", *own(tmp_path, BAD_TRL + bad), url=server.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "requirements.txt").read_text().splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["trl==0.18.0", "free<2"]
    assert "because bad-free (bad-free)" in done.stdout


def test_each_pin_of_an_unlisted_package_is_one_that_the_written_file_needs(fix: Run, tmp_path: Path) -> None:
    """array 1 is for trl, and arrow's pin for array 1; frames is left to uv, which takes the release that array 1 allows."""
    rules = [
        RULE.format(
            name=f"bad-{name}", severity="error", packages=f'{name} = "{bad}", array = "{array}"',
            hit=f'{name} = "{hit}", array = "{there}"', clear=f'{name} = "{hit}", array = "{clear}"',
            fix=f"[[rule.fix]]\npin = {{ {fixed} }}",
        )
        for name, bad, array, hit, there, clear, fixed in (
            ("trl", "<0.18", ">=2", "0.17.0", "2.0", "1.0", 'array = "<2"'),
            ("arrow", ">=2", "<2", "2.0", "1.0", "2.0", 'arrow = "<2"'),
        )
    ]  # fmt: skip
    both = {"1.0": release("2025-04-01"), "2.0": release("2025-05-01")}
    packages = {
        "trl": {"0.17.0": release("2025-04-25", "array", "arrow", "frames")}, "array": both, "arrow": both,
        "frames": {"1.0": release("2025-04-01", "array"), "2.0": release("2025-05-01", "array>=2")},
    }  # fmt: skip
    (tmp_path / "requirements.txt").write_text("trl==0.17.0\n")
    with IndexServer(packages) as server:
        done = fix("--write", *own(tmp_path, *rules), url=server.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 changes fix 1 error." in done.stdout
    assert "also      frames 1.0\n" in done.stdout
    lines = (tmp_path / "requirements.txt").read_text().splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["trl==0.17.0", "array<2", "arrow<2"]


def test_a_pin_that_brings_an_error_with_it_is_no_reason_to_pin_everything(fix: Run, tmp_path: Path) -> None:
    """With core 1, uv takes an old frames; arrow, whose move a rule recommends, is pinned already and does not help."""
    rules = [
        RULE.format(
            name=f"bad-{name}", severity="error", packages=f'{one} = "{bad}", {two} = "{worse}"',
            hit=f'{one} = "{hit}", {two} = "{there}"', clear=f'{one} = "{hit}", {two} = "{clear}"',
            fix=f"[[rule.fix]]\npin = {{ {fixed} }}",
        )
        for name, one, bad, hit, two, worse, there, clear, fixed in (
            ("array", "trl", "<0.18", "0.17.0", "array", ">=2", "2.0", "1.0", 'array = "<2"'),
            ("arrow", "trl", "<0.18", "0.17.0", "arrow", ">=3", "3.0", "2.0", 'arrow = "<3"'),
            ("core", "trl", "<0.18", "0.17.0", "core", ">=2", "2.0", "1.0", 'core = "<2"'),
            ("frames", "arrow", ">=1", "2.0", "frames", "<1", "0.9", "1.0", 'frames = ">=1"'),
        )
    ]  # fmt: skip
    plain = release("2025-04-01")
    packages = {
        "trl": {"0.17.0": release("2025-04-25", "array", "arrow", "files", "frames")},
        "array": {each: release("2025-04-01", f"core=={each}") for each in ("1.0", "2.0")},
        "arrow": {"2.0": plain, "3.0": plain}, "files": {"1.0": plain, "2.0": plain}, "core": {"1.0": plain, "2.0": plain},
        "frames": {"0.9": plain, "1.0": release("2025-04-01", "files<2"), "2.0": release("2025-04-01", "array>=2")},
    }  # fmt: skip
    (tmp_path / "requirements.txt").write_text("trl==0.17.0\n")
    with IndexServer(packages) as server:
        done = fix("--write", *own(tmp_path, *rules), url=server.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "requirements.txt").read_text().splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["trl==0.17.0", "arrow<3", "core<2", "frames<2"]


def test_a_range_that_the_file_states_moves_like_a_pin(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """If no release in the range is good; another one in the range is preferred, however many steps that takes."""
    index.add("trl", {"0.15.0": release("2025-02-13"), "0.16.0": release("2025-03-25")})
    one = BAD_TRL.replace('trl = "<0.18"', 'trl = "<0.18,>=0.16"').replace(">=0.18", "!=0.17.0,!=0.16.0")
    for rule, expected in ((BAD_TRL, "<0.19"), (one, "<0.16")):
        (tmp_path / "requirements.txt").write_text("accelerate\ntrl<0.18  # why\n")
        done = fix("--write", "--brief", *own(tmp_path, rule), url=index.url, job=CLEAN)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "requirements.txt").read_text() == f"accelerate\ntrl{expected}  # why\n"


def test_what_the_file_leaves_open_stays_open_where_uv_takes_a_good_release(fix: Run, tmp_path: Path) -> None:
    """The newer trl takes an older transformers, and that an older tokenizers: uv chooses both by itself."""
    packages = {
        "trl": {"0.17.0": release("2025-04-25", "transformers"), "0.18.0": release("2025-05-27", "transformers<4.57")},
        "transformers": {
            "4.55.0": release("2025-08-05", "tokenizers<0.22"), "4.57.1": release("2025-10-14", "tokenizers>=0.22"),
        },
        "tokenizers": {"0.21.1": release("2025-03-13"), "0.22.1": release("2025-09-19")},
    }  # fmt: skip
    (tmp_path / "requirements.txt").write_text("tokenizers\ntransformers>=4.50\ntrl==0.17.0\n")
    with IndexServer(packages) as server:
        done = fix("--write", "--brief", *own(tmp_path, BAD_TRL), url=server.url, job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "also      tokenizers 0.21.1, transformers 4.55.0" in done.stdout
    assert (tmp_path / "requirements.txt").read_text() == "tokenizers\ntransformers>=4.50\ntrl==0.18.0\n"


POETRY = '[tool.poetry]\nname = "job"\nversion = "1"\n\n[tool.poetry.dependencies]\npython = ">=3.11,<3.13"\ntrl = "0.18.0"\n'


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("requirements.txt", "trl==0.18.0\ntransformers>=4\n", "trl==0.18.0\ntransformers>=4,<4.57.3\n"),
        ("pyproject.toml", f'{POETRY}transformers = "*"\n', f'{POETRY}transformers = "<4.57.3"\n'),
        ("pyproject.toml", f'{POETRY}transformers = "^4.50"\n', f'{POETRY}transformers = "^4.50,<4.57.3"\n'),
        ("Pipfile", '[packages]\ntrl = "*"\ntransformers = "*"\n', '[packages]\ntrl = "*"\ntransformers = "<4.57.3"\n'),
        (
            "setup.cfg",
            "[options]\ninstall_requires =\n    transformers>=4\n",
            "[options]\ninstall_requires =\n    transformers>=4,<4.57.3\n",
        ),
        (
            "Dockerfile",
            "FROM python:3.11\nRUN pip install transformers\n",
            'FROM python:3.11\nRUN pip install "transformers<4.57.3"\n',
        ),
        ("setup.sh", "pip install 'transformers>=4' trl\n", "pip install 'transformers>=4,<4.57.3' trl\n"),
    ],
)
def test_what_a_file_leaves_open_gets_a_bound_in_each_notation(
    fix: Run, index: IndexServer, tmp_path: Path, name: str, before: str, after: str
) -> None:  # fmt: skip
    bad = RULE.format(
        name="bad-transformers", severity="error", packages='transformers = ">=4.57.3"', hit='transformers = "4.57.3"',
        clear='transformers = "4.57.1"', fix='[[rule.fix]]\ndowngrade = { transformers = "<4.57.3" }',
    )  # fmt: skip
    (tmp_path / name).write_text(before)
    done = fix("--write", "--brief", *own(tmp_path, bad), url=index.url, subject=[name], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / name).read_text() == after


def test_a_range_in_a_dockerfile_moves_with_what_needs_it(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Over an image whose packages are unknown, as well: not the years-old release that the range still admits."""
    (tmp_path / "Dockerfile").write_text('FROM company/base:1\nRUN pip install trl==0.17.0 "transformers<4.50"\n')
    index.add("transformers", {**PACKAGES["transformers"], "4.46.0": release("2024-10-25")})
    done = fix("--write", "--brief", *own(tmp_path, BAD_TRL), url=index.url, subject=["Dockerfile"], job=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "trl==0.18.0" in (tmp_path / "Dockerfile").read_text()
    assert '"transformers<4.5' in (tmp_path / "Dockerfile").read_text()


def test_a_pin_without_a_file_for_the_python_moves(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """uv refuses the file, as no installer has a wheel of the pin for this Python: the nearest release that has one."""

    def tags(*pythons: int) -> list[str]:
        return [f"cp{each}-cp{each}-manylinux_2_28_x86_64" for each in pythons]

    fast = {
        "1.0": release("2025-01-01", wheel_tags=tags(310), sdist=False),
        "1.1": release("2025-02-01", wheel_tags=tags(310, 311), sdist=False),
        "2.0": release("2025-03-01", wheel_tags=tags(311), sdist=False),
    }
    index.add("fast", fast)
    index.add("over", {"1.0": release("2025-01-01", "fast==1.0"), "1.1": release("2025-02-01", "fast==1.1")})
    (tmp_path / "requirements.txt").write_text("fast==1.0\nover==1.0\ntrl==0.18.0\n")
    done = fix("--write", url=index.url, job=("--python-version", "3.11"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fast 1.0 has no wheel for Python 3.11 on this platform (wheels-fast)" in " ".join(done.stdout.split())
    assert (tmp_path / "requirements.txt").read_text() == "fast==1.1\nover==1.1\ntrl==0.18.0\n"


def test_a_pin_whose_source_is_older_than_the_python_moves(fix: Run, index: IndexServer, tmp_path: Path) -> None:
    """Its wheels end before this Python, and its source was uploaded before it was released: a build of it hardly works."""

    def tags(*pythons: int) -> list[str]:
        return [f"cp{each}-cp{each}-manylinux_2_28_x86_64" for each in pythons]

    fast = {
        "1.0": release("2023-04-22", wheel_tags=tags(310, 311)),
        "1.1": release("2023-09-16", wheel_tags=tags(310, 311, 312)),
        "2.0": release("2024-10-20", wheel_tags=tags(312, 313)),
    }
    index.add("fast", fast)
    index.add("slow", {"1.0": release("2024-11-22", wheel_tags=tags(311))})  # a source that is newer than this Python may build
    index.add("pure", {"1.0": release("2021-05-07", wheel_tags=["py2-none-any"])})  # its source is no more compiled than that
    (tmp_path / "requirements.txt").write_text("fast==1.0\npure==1.0\nslow==1.0\ntrl==0.18.0\n")
    done = fix("--write", "--any-age", url=index.url, job=("--python-version", "3.13"))
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "fast 1.0 has no wheel for Python 3.13 on this platform (wheels-fast)" in said
    assert "(wheels-slow)" not in said
    assert (tmp_path / "requirements.txt").read_text() == "fast==2.0\npure==1.0\nslow==1.0\ntrl==0.18.0\n"


@pytest.mark.parametrize("other", ["", "--extra-index-url https://index.example/simple\n"])
def test_a_pin_that_the_index_does_not_have_moves(fix: Run, index: IndexServer, tmp_path: Path, other: str) -> None:
    """Unless the file names an index that is not queried, which may have it."""
    index.add("fast", {"1.1": release("2025-02-01"), "2.0": release("2025-03-01")})
    (tmp_path / "requirements.txt").write_text(f"{other}fast==1.0\ntrl==0.18.0\n")
    done = fix("--write", url=index.url, job=("--python-version", "3.11"))
    assert done.returncode == 0, done.stdout + done.stderr
    if other:
        assert "fast==1.0" in (tmp_path / "requirements.txt").read_text()
        return
    assert "fast 1.0 is not on the index (wheels-fast)" in " ".join(done.stdout.split())
    assert (tmp_path / "requirements.txt").read_text() == "fast==1.1\ntrl==0.18.0\n"


PINNED = {
    "pyproject.toml": '[project]\nname = "job"\nversion = "1"\ndependencies = ["torch==2.3.0"]\n[project.optional-dependencies]\nserve = ["vllm=={}"]\n',
    "setup.cfg": "[options]\ninstall_requires =\n    torch==2.3.0\n[options.extras_require]\nserve =\n    vllm=={}\n",
    "pixi.toml": '[workspace]\nname = "job"\nchannels = ["conda-forge"]\nplatforms = ["linux-64"]\n[dependencies]\npython = "3.11.*"\n[pypi-dependencies]\ntorch = "==2.3.0"\n[feature.serve.pypi-dependencies]\nvllm = "=={}"\n[environments]\nserve = ["serve"]\n',
}  # fmt: skip


@pytest.mark.parametrize("name", PINNED)
def test_what_an_extra_pins_for_the_old_release_moves_along(fix: Run, index: IndexServer, tmp_path: Path, name: str) -> None:
    """It has no error of its own, and was consistent before."""
    index.add("torch", {"2.3.0": release("2024-04-24"), "2.8.0": release("2025-08-06")})
    index.add("vllm", {"0.4.3": release("2024-06-01", "torch==2.3.0"), "0.10.2": release("2025-09-13", "torch==2.8.0")})
    (tmp_path / name).write_text(PINNED[name].format("0.4.3"))
    job = ("--gpu", "B200", "--python-version", "3.11", "--torch-index", "http://127.0.0.1:9")
    done = fix("--write", "--any-age", url=index.url, subject=[name], job=job)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / name).read_text() == PINNED[name].format("0.10.2").replace("2.3.0", "2.8.0")
