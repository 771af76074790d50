"""``[tool.compat]``: where it is found, what it says, and one line for everything that is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.project.config import ProjectConfig, find_config, read_config
from tests.growth import assert_linear

GOOD = """[project]
name = "x"

[[tool.compat.target]]
name = "train"
gpus = "H100:8"
driver = "550"
task = "grpo"
launcher = "accelerate"
processes = 8
features = ["vllm", "zero-3"]
extras = []
variables = { NCCL_P2P_DISABLE = "1" }

[[tool.compat.target]]
name = "serve"
gpus = ["L4:2", "T4"]
command = "vllm serve m"

[[tool.compat.ignore]]
rule = "some-rule"
reason = "patched in our fork"
until = 2027-03-01

[[tool.compat.ignore]]
rule = "other-rule"
reason = "not used"
target = "serve"
until = "2027-01-31"
"""


def write(folder: Path, text: str) -> str:
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_targets_speak_the_words_of_the_command_line(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, GOOD))
    train, serve = config.targets
    assert train.name == "train"
    assert train.line == 4
    assert train.values == {
        "gpu": ["H100:8"], "driver": ["550"], "task": ["grpo"], "launcher": ["accelerate"], "processes": ["8"],
        "features": ["vllm", "zero-3"], "extras": ["none"],
    }  # fmt: skip
    assert train.variables == {"NCCL_P2P_DISABLE": "1"}
    assert serve.values == {"gpu": ["L4:2", "T4"]}
    assert serve.command == "vllm serve m"


def test_ignores_have_reason_and_date(tmp_path: Path) -> None:
    one, two = read_config(write(tmp_path, GOOD)).ignores
    assert (one.rule, one.reason, one.until, one.target, one.line) == (
        "some-rule",
        "patched in our fork",
        "2027-03-01",
        None,
        20,
    )
    assert (two.until, two.target) == ("2027-01-31", "serve")


def test_the_nearest_project_above_a_file_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    write(tmp_path, GOOD)
    write(tmp_path / "a", "[project]\nname = 'no-config'\n")
    assert [target.name for target in find_config(str(inner / "uv.lock")).targets] == ["train", "serve"]
    assert find_config(str(inner)).file is not None
    (tmp_path / "a" / ".git").mkdir()
    assert find_config(str(inner)) == ProjectConfig()


def test_a_file_that_never_says_compat_is_not_parsed(tmp_path: Path) -> None:
    write(tmp_path, "this is no TOML")
    assert find_config(str(tmp_path)).targets == ()


@pytest.mark.parametrize(
    ("change", "line", "expected"),
    [
        (('gpus = "H100:8"', 'gpu = "H100:8"'), 6, "a target does not know 'gpu'; did you mean gpus?"),
        (('gpus = "H100:8"', "gpus = 8"), 6, "gpus: expected a string or a list of strings, not 8"),
        (("processes = 8", "processes = true"), 10, "processes: expected a number"),
        (('task = "grpo"', "task = []"), 8, "task: expected a string"),
        (('name = "train"', 'name = "serve"'), 4, "two targets are called 'serve'"),
        (('name = "train"\n', ""), 4, "a target needs a name"),
        (('reason = "not used"\n', ""), 25, "an ignore needs a reason"),
        (('until = "2027-01-31"', 'until = "soon"'), 29, "until: expected a date"),
        (('target = "serve"', 'target = "swerve"'), 28, "unknown target 'swerve'"),
        (("[[tool.compat.ignore]]", "[[tool.compat.ignored]]"), None, "[tool.compat] does not know 'ignored'; did you mean ignore?"),
        (("variables = {", "variables = 5 # {"), 13, "variables: expected a table of strings"),
        (("[[tool.compat.target]]", "[tool.compat.target]"), None, ""),
        (("[project]", "<<<<<<< HEAD\n[project]"), 1, "has an unresolved merge conflict"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, change: tuple[str, str], line: int | None, expected: str) -> None:
    assert change[0] in GOOD
    path = write(tmp_path, GOOD.replace(change[0], change[1], 1))
    with pytest.raises(InputError) as caught:
        read_config(path)
    assert caught.value.message.startswith(expected)
    if line is not None:
        assert caught.value.line == line


def test_a_file_without_the_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a \[tool.compat\] table"):
        read_config(write(tmp_path, "[tool.ruff]\n"))
    with pytest.raises(InputError, match="cannot be read"):
        read_config(str(tmp_path / "nothing.toml"))


def test_thousands_of_targets_take_linear_time(tmp_path: Path) -> None:
    def read(text: str) -> None:
        (tmp_path / "pyproject.toml").write_text(text)
        read_config(str(tmp_path / "pyproject.toml"))

    assert_linear(read, lambda count: "".join(f"[[tool.compat.target]]\nname = 'a{n}'\n" for n in range(count)), 4000)
