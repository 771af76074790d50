"""Spellings and neighbour lines that must not hide a finding: exit code 1 never becomes 0."""

from __future__ import annotations

import json

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


FIRST, SECOND = LINES
BOTH = f"{FIRST} {SECOND}"
INSTALLING = {
    "a loop": f"for p in {BOTH}; do pip install $p; done",
    "a loop over lines": f"for p in \\\n  {FIRST} \\\n  {SECOND}\ndo\n  python3 -m pip install --no-cache-dir \"$p\"\ndone",
    "nested loops": "for n in huggingface-hub; do for v in 0.20.0; do pip install $n==$v; done; done; pip install " + FIRST,
    "an array": f"P=({FIRST}\n  '{SECOND}'  # both\n)\npip install \"${{P[@]}}\"",
    "an array that grows": f"P=({FIRST}); P+=({SECOND}); pip install ${{P[*]}}",
    "a text that grows": f"P={FIRST}; P+=' {SECOND}'; pip install $P",
    "the positional parameters": f"set -- {BOTH}; pip install \"$@\"",
    "braces": f"pip install {{{FIRST},{SECOND}}}",
    "quotes with escapes": f"pip install $'{FIRST}' $\"{SECOND}\"",
    "echo": f"echo {FIRST} > r.txt && echo '{SECOND}' >> r.txt && pip install -r r.txt",
    "printf": f"printf '%s\\n' {BOTH} > /tmp/r.txt; pip install -r /tmp/r.txt",
    "printf with its lines": f'printf "{FIRST}\\n{SECOND}\\n" | tee r.txt; pip install -qr r.txt',
    "a here-document": f"cat > r.txt <<EOF\n{FIRST}\n{SECOND}\nEOF\npip install -r r.txt",
    "an indented here-document": f"cat <<-'EOF' | pip install -r /dev/stdin\n\t{FIRST}\n\t{SECOND}\n\tEOF",
    "a here-document for a shell": f"bash -e <<EOF\npip install {BOTH}\nEOF",
    "a script on a pipe": f"echo 'pip install {BOTH}' | bash -s",
    "xargs": f"echo {BOTH} | xargs -n1 pip install",
    "xargs with a place": f"printf '{FIRST}\\n{SECOND}' | xargs -I{{}} pip install {{}}",
    "a substitution": f"X=$(cd / && pip install {BOTH} | tail -1)",
    "backquotes": f"echo `pip install {BOTH}`",
    "su": f"su user -c 'pip install {BOTH}'",
    "a shell with options": f"bash -o pipefail -ec 'pip install {BOTH}'",
    "gosu": f"gosu user pip3.11 install {BOTH}",
    "runuser": f"runuser -u user -- /opt/venv/bin/pip install {BOTH}",
    "uvx": f"uvx --from {FIRST} --with {SECOND} transformers-cli env",
    "uv tool run": f"uv tool run --from {FIRST} --with={SECOND} transformers-cli env",
    "easy_install": f"easy_install {BOTH}",
    "rye": f"rye add {BOTH}",
}  # fmt: skip


@pytest.mark.parametrize("text", INSTALLING.values(), ids=INSTALLING)
@pytest.mark.parametrize("name", ["a.sh", "Dockerfile", "a.ipynb"])
def test_another_way_to_install(name: str, text: str) -> None:
    if name == "Dockerfile":
        text = f"FROM python:3.11\nRUN <<INSTALL\n{text}\nINSTALL\n"
    elif name == "a.ipynb":
        cell = {"cell_type": "code", "source": f"%%bash\n{text}", "metadata": {}, "outputs": []}
        text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]})
    assert RULE in hits(written(name, text.encode()))


IN_AN_IMAGE = {
    "a program in a variable": f'ENV INSTALL="pip install"\nRUN $INSTALL {BOTH}',
    "a file written by an earlier RUN": f"WORKDIR /w\nRUN echo {FIRST} > r.txt\nRUN echo {SECOND} >> r.txt; pip install -r /w/r.txt -r r.txt {FIRST}",
    "a here-document of a RUN": f"RUN cat <<EOF > r.txt && pip install -r r.txt\n{FIRST}\n{SECOND}\nEOF",
    "an environment that is copied": f"RUN python -m venv /v && /v/bin/pip install {BOTH}\nFROM python:3.11\nCOPY --from=0 /v /v",
    "the command of the container": f'CMD ["bash", "-c", "pip install {BOTH} && exec python x.py"]',
    "a script with another name": f"COPY <<EOF /usr/local/bin/setup\n#!/bin/bash\npip install {BOTH}\nEOF\nRUN chmod +x /usr/local/bin/setup && setup",
}  # fmt: skip


@pytest.mark.parametrize("text", IN_AN_IMAGE.values(), ids=IN_AN_IMAGE)
def test_another_way_to_install_in_an_image(text: str) -> None:
    assert RULE in hits(written("Dockerfile", f"FROM python:3.11\n{text}\n".encode()))


UNREAD = (
    f"retry pip install {BOTH}", "xargs pip install < r.txt", "cat r.txt | xargs pip install", "parallel pip install ::: a b",
    "python3 <<EOF\nimport os; os.system('pip install a')\nEOF", "python -c \"import os; os.system('pip install a')\"",
)  # fmt: skip


@pytest.mark.parametrize("text", UNREAD)
@pytest.mark.parametrize("before", ["", "FROM python:3.11\nRUN "])
def test_an_install_that_is_not_read_is_named(text: str, before: str) -> None:
    report = check(written("Dockerfile" if before else "a.sh", f"{before}{text}\n".encode()))
    assert report.exit == 3
    assert any("installs was not read" in note for note in report.notes)


@pytest.mark.parametrize(
    "text",
    [
        "echo pip install torch", "apt-get install pip", "grep 'pip install' README", "cat <<EOF\npip install torch\nEOF\n", "which pip || exit 1",
        "docker exec c pip install torch", "python -c 'import pip'", "pip --version", "uv --version", "pip list | grep install",
    ],
)  # fmt: skip
def test_words_that_install_nothing_say_nothing(text: str) -> None:
    report = check(written("a.sh", text.encode()))
    assert report.exit == 0
    assert not any("not read" in note for note in report.notes)


def test_what_another_stage_installs_is_named() -> None:
    text = f"FROM python:3.11 AS b\nRUN pip install --target=/d {BOTH}\nFROM python:3.11\nCOPY --from=b /d /d\n"
    assert "Dockerfile:4: what b installs was not read: only /d is copied" in check(written("Dockerfile", text.encode())).notes


CALLS = {
    "an alias": f"import subprocess as s\ns.run('pip install {BOTH}', shell=True)",
    "an imported function": f"from subprocess import check_call\ncheck_call(['pip', 'install', '{FIRST}', '{SECOND}'])",
    "an imported system": f"from os import system\nsystem('pip install {BOTH}')",
    "pip's own function": f"from pip._internal import main\nmain(['install', '{FIRST}', '{SECOND}'])",
    "a shell in a name": f"shell = get_ipython()\nshell.run_line_magic('pip', 'install {BOTH}')",
}


@pytest.mark.parametrize("code", CALLS.values(), ids=CALLS)
def test_another_call_that_installs(code: str) -> None:
    cell = {"cell_type": "code", "source": code, "metadata": {}, "outputs": []}
    text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]})
    assert RULE in hits(written("a.ipynb", text.encode()))


STEPS = "on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n    - shell: python\n      run: import os; os.system('pip install torch')\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.sh", f"pip install '{BOTH}\n"), ("Dockerfile", f"FROM a\nRUN true\nRUN echo a\\\n && pip install $({BOTH}\n"), ("w.yml", STEPS),
    ],
)  # fmt: skip
def test_what_was_not_read_leaves_the_check_undecided(name: str, text: str) -> None:
    report = check(written(name, text.encode()))
    assert report.exit == 3
    assert any("not read" in note for note in report.notes)


def test_a_workflow_that_a_job_uses_is_a_note_and_undecided_with_strict() -> None:
    path = written("w.yml", b"on: push\njobs:\n  a:\n    uses: ./.github/workflows/b.yml\n")
    assert any("the workflow that the job uses was not read" in note for note in check(path).notes)
    assert [check(path).exit, check(path, strict=True).exit] == [0, 3]


@pytest.mark.parametrize("table", ["pixi.pypi-dependencies", "hatch.envs.default", "flit.metadata", "pixi.dependencies"])
def test_a_table_of_another_tool_is_named(table: str) -> None:
    text = f"[project]\nname = 'a'\nversion = '1'\n[tool.{table}]\ntransformers = '==4.51.3'\n"
    assert any("was not read" in note for note in check(written("pyproject.toml", text.encode())).notes)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", ""), ("requirements.txt", "# torch\n"), ("pyproject.toml", "[project]\nname = 'a'\nversion = '1'\n"), ("a.sh", ""),
        ("Dockerfile", "FROM a\n"), ("Pipfile.lock", '{"_meta": {"pipfile-spec": 6}}'),
    ],
)  # fmt: skip
def test_a_file_without_packages_is_not_silent(name: str, text: str) -> None:
    assert check(written(name, text.encode())).notes
