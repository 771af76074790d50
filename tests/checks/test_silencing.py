"""Spellings and neighbour lines that must not hide a finding: exit code 1 never becomes 0."""

from __future__ import annotations

import pytest

from compat.api.public import check

RULE = "requires-transformers-huggingface-hub"
LINES = ("transformers==4.51.3", "huggingface-hub==0.20.0")


def hits(path: str) -> set[str]:
    return {finding.rule for finding in check(path).findings if finding.verdict == "hit"}


@pytest.fixture(autouse=True)
def _folder(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))


def written(name: str, content: bytes) -> str:
    with open(name, "wb") as file:
        file.write(content)
    return name


@pytest.mark.parametrize(
    "line",
    [
        "{0}==={1}", "{0}=={1}.0", "{0}==v{1}", "{0}==0!{1}", "{0}[]=={1}", "{0} (=={1})", "\t{0} \t== {1} # {0}>9", "{0}=={1},>=0",
        "{0}>=0, =={1}", "{0}=={1},!=99", '{0}=={1} ; python_version >= "3"', "{0}=={1} \\\n  --hash=sha256:" + "0" * 64, "{0} \\\r\n =={1}",
    ],
)  # fmt: skip
def test_another_spelling(line: str) -> None:
    both = (line.format(*each.split("==")) for each in LINES)
    assert RULE in hits(written("requirements.txt", "\n".join(both).encode()))


@pytest.mark.parametrize("spelled", [str.upper, lambda text: text.replace("-", "_"), lambda text: text.replace("-", ".")])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_another_writing(spelled: object, ending: str, encoding: str) -> None:
    text = ending.join((LINES[0], spelled(LINES[1])))  # type: ignore[operator]
    assert RULE in hits(written("requirements.txt", text.encode(encoding)))


@pytest.mark.parametrize(
    "line",
    [
        "-r missing.txt", "-c missing.txt", "-c requirements.txt", "-e .", "-e git+https://git.example/a/{0}", "git+https://git.example/a/b",
        "--no-index", "--require-hashes", "# compat: ignore", "{0}", "{0}>=0", "{0}[zzz]", '{0} ; sys_platform == "win32"',
        '{0}==9 ; python_version < "3"', "{0} @ git+https://git.example/x/y", "{0} @ https://files.example/y.zip",
        "{0} @ https://files.example/huggingface_hub-99-py3-none-any.whl", '{0}==1 ; extra == "x"', "{0}-extra==1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("first", [True, False])
def test_a_hostile_neighbour(line: str, first: bool) -> None:
    more = line.format("huggingface-hub")
    lines = (more, *LINES) if first else (*LINES, more)
    assert RULE in hits(written("requirements.txt", "\n".join(lines).encode()))


def test_pip_replaces_what_conda_installed() -> None:
    text = "dependencies:\n- huggingface_hub=0.31\n- pip:\n  - transformers==4.51.3\n  - huggingface-hub==0.20.0\n"
    assert RULE in hits(written("environment.yml", text.encode()))


NAMED = [each.split("==") for each in LINES]
FORMATS = {
    "pylock.toml": 'lock-version = "1.0"\ncreated-by = "x"\n'
    + "".join(f'[[packages]]\nname = "{name}"\nversion = "{version}"\n' for name, version in NAMED),
    "uv.lock": "version = 1\n[[package]]\nname = 'app'\nversion = '0'\nsource = {virtual = '.'}\ndependencies = ["
    + ", ".join(f"{{name = '{name}'}}" for name, _ in NAMED) + "]\n"
    + "".join(f"[[package]]\nname = '{name}'\nversion = '{version}'\nsource = {{registry = 'https://index.example/simple'}}\n"
              for name, version in NAMED),
    "Dockerfile": f"FROM python:3.11\nRUN pip install {' '.join(LINES)}\n",
    "environment.yml": f"dependencies:\n- pip:\n  - {LINES[0]}\n  - {LINES[1]}\n",
    "a.sh": f"pip install {LINES[0]} \\\n  '{LINES[1]}'\n",
    "devcontainer.json": f'{{"image": "python:3.11", "postCreateCommand": "pip install {" ".join(LINES)}"}}',
    "facts.json": '{"schema": "compat/environment/1", "distributions": ['
    + ", ".join(f'{{"name": "{name}", "version": "{version}"}}' for name, version in NAMED) + "]}",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_finding(name: str) -> None:
    assert RULE in hits(written(name, FORMATS[name].encode()))


def test_two_installed_versions_are_said() -> None:
    text = FORMATS["facts.json"].replace("]}", ', {"name": "huggingface-hub", "version": "0.31.0"}]}')
    assert "installed-twice" in hits(written("facts.json", text.encode()))
