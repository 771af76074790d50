"""Whatever a file looks like: what is read back is the old listing with the changes in it, and the rest is byte for byte
as it was."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.errors import InputError
from compat.formats.edit.changes import Change, inverse
from compat.formats.edit.dispatch import edits_for
from compat.formats.registry import format_of
from compat.formats.requirements.lines import logical_lines
from compat.formats.specifiers import ADMIT, EXACT, RANGE, admits, changed
from compat.syntax.shell import quoted, simple_commands
from compat.versions import key_of
from tests.examples import examples

NAMES = ("torch", "vllm", "trl", "flash-attn", "numpy", "ruamel-yaml")
SPELLED = {"flash-attn": ("flash_attn", "Flash-Attn"), "ruamel-yaml": ("ruamel.yaml",)}
VERSION = st.sampled_from(["1", "2.0", "2.5.1", "2.5.1+cu121", "2.6.0rc1", "1.0.post1", "2024.1.2", "0.2.dev0"])
CLAUSE = st.tuples(st.sampled_from(["==", ">=", "<=", "<", ">", "!=", "~="]), st.sampled_from(["1.0", "2.0", "2.5.1", "3.1.4"]))
MARKER = st.sampled_from(["", " ; python_version > '3.8'", "; sys_platform == 'linux'"])
EXTRAS = st.sampled_from(["", "[all]", "[a, b]"])
BLANK = st.sampled_from(["", " "])
ENDS = st.sampled_from(["\n", "\r\n"])


@st.composite
def requirement(draw: st.DrawFn, name: str, *, pinned: bool) -> str:
    spelled = draw(st.sampled_from((name, *SPELLED.get(name, ()))))
    if pinned:
        clauses = f"=={draw(BLANK)}{draw(VERSION)}"
    else:
        clauses = ",".join(operator + version for operator, version in draw(st.lists(CLAUSE, max_size=2)))
    return f"{spelled}{draw(EXTRAS)}{draw(BLANK)}{clauses}{draw(MARKER)}"


@st.composite
def requirements(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    """A requirements file, and the versions of what it pins."""
    end = draw(ENDS)
    lines: list[str] = []
    pins: dict[str, str] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1)):
        lines += draw(
            st.lists(
                st.sampled_from(["", "# a == comment", "--pre", "   # indented", "-i https://index.example/simple"]), max_size=2
            )
        )
        text = draw(requirement(name, pinned=draw(st.booleans())))
        found = re.fullmatch(r"[\w.-]+(?:\[[^]]*\])? ?== ?([^\s;,]+)\s*(?:;.*)?", text)
        if found is not None:
            pins[name] = found[1]
        if draw(st.booleans()) and ";" in text:
            text = text.replace(";", f"\\{end}    ;", 1)
        lines.append(text + draw(st.sampled_from(["", "  # why", "\t"])))
    return end.join(lines) + draw(st.sampled_from(["", end])), pins


@contextlib.contextmanager
def project(name: str, text: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        yield path


def written(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def listed(path: str, content: bytes) -> list[tuple[Any, ...]]:
    found = []
    for listing in format_of(path, content).listings(path, content):
        for entry in listing.entries:
            each = entry.distribution
            found.append(
                (each.name, each.version, each.specifier, each.marker, tuple(each.extra.get("extras", ())), entry.line)
            )
    return sorted(found, key=str)


def check_one_pin(path: str, name: str, before: str, after: str) -> None:
    """One pin changes: the listing, the other lines, and the way back."""
    with open(path, "rb") as file:
        original = file.read()
    assert all(edit.after == edit.before for edit in format_of(path, original).edit(path, original, ()))
    change = Change(name, before, after)
    (edit,) = edits_for(path, [change])
    assert edit.before == original
    expected = [(n, after if n == name and v == before else v, *rest) for n, v, *rest in listed(path, original)]
    assert listed(path, edit.after) == sorted(expected, key=str)
    old, new = original.split(b"\n"), edit.after.split(b"\n")
    assert len(old) == len(new)
    assert sum(one != other for one, other in zip(old, new)) == 1
    written(path, edit.after)
    (back,) = edits_for(path, [inverse(change)])
    assert back.after == original


@settings(max_examples=examples(200), deadline=None)
@given(requirements(), st.data())
def test_requirements(file: tuple[str, dict[str, str]], data: st.DataObject) -> None:
    text, pins = file
    if not pins:
        return
    name = data.draw(st.sampled_from(sorted(pins)))
    after = data.draw(VERSION.filter(lambda version: version != pins[name]))
    with project("requirements.txt", text) as path:
        check_one_pin(path, name, pins[name], after)


DOCKERFILES = (
    "FROM x\nRUN pip install {0} {1}\n", "FROM x\nRUN apt-get update && \\\n  pip install -q \\\n    {0} \\\n# no\n    {1} && true\n",
    "FROM x\nRUN <<EOF\nuv pip install {0} {1} # end\nEOF\n", "FROM x AS a\nRUN pip install {0}\nFROM y\nRUN python3 -m pip install -U {1} --no-cache-dir\n",
    'FROM x\nRUN bash -c "pip install {0} {1}"\n', "ARG A=1\nFROM x\nENV B=2 \\\n  C=3\nRUN --mount=type=cache,target=/x pip install {0} {1}; echo $A\n",
)  # fmt: skip
SCRIPTS = (
    "pip install {0} {1}\n",
    "#!/bin/sh\nif true; then\n  uv pip install {0} \\\n    {1}\nfi\n",
    "pip install {0}; cd x && pip3 install {1} || exit\n",
)
TABLES = (
    '[project]\nname = "a"\ndependencies = [\n  "{0}", # one\n  "{1}",\n]\n', '[project]\nname="a"\ndependencies=["{0}","{1}"]\n',
    '[project]\nname="a"\n[project.optional-dependencies]\nx = ["{0}"]\n\n[dependency-groups]\ndev = [\n    "{1}"\n]\n',
    '[project]\nname="a"\ndependencies=["{0}"]\n[tool.uv]\ndev-dependencies=[ "{1}" ] # dev\n',
)  # fmt: skip
ENVIRONMENTS = (
    "dependencies:\n  - python\n  - pip:\n    - {0}  # x\n    - {1}\n",
    "name: a\ndependencies:\n- pip\n- pip:\n  - '{0}'\n  - \"{1}\"\nprefix: x\n",
)
INLINE = (
    '# /// script\n# dependencies = [\n#   "{0}",\n#   "{1}", # why\n# ]\n# ///\nimport torch\n',
    '#!/usr/bin/env -S uv run\n# /// script\n# requires-python = ">=3.10"\n# dependencies = ["{0}", "{1}"]\n# ///\n',
    'import modal\nimage = modal.Image.debian_slim().pip_install("{0}", "{1}")  # base\n',
    'import ray\nray.init(runtime_env={{"pip": ["{0}", "{1}"]}})\n',
)
WORKFLOWS = (
    "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pip install {0} {1}\n",
    "on: push\njobs:\n  a:\n    steps:\n      - name: x # y\n        run: |\n          pip install {0}\n          pip install {1}\n",
)
MANIFESTS = (
    "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: x\n    command: [sh, -c, 'pip install {0} {1}']\n",
    (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: x\n    args:\n    - bash\n    - -c\n    - |\n      pip install {0}\n"
        "      pip install {1} && python a.py\n"
    ),
    (
        "apiVersion: ray.io/v1\nkind: RayJob\nspec:\n  runtimeEnvYAML: |\n    pip:\n      - {0}\n      - {1}\n  rayClusterSpec:\n"
        "    headGroupSpec:\n      template:\n        spec:\n          containers:\n          - image: x\n"
    ),
)
TASKS = (
    "resources:\n  accelerators: H100:8\nsetup: |\n  pip install {0}\n  pip install {1}  # b\nrun: python a.py\n",
    "type: task\ncommands:\n  - pip install {0} {1}\n  - python a.py\nresources:\n  gpu: H100\n",
)
DEVCONTAINERS = (
    '{{\n  // x\n  "image": "x",\n  "postCreateCommand": "pip install {0} {1}",\n}}\n',
    '{{"image": "x", "onCreateCommand": {{"a": "pip install {0}", "b": "pip install {1}"}}}}\n',
)
TEMPLATES = [(name, each) for name, all_ in (("Dockerfile", DOCKERFILES), ("a.sh", SCRIPTS), ("pyproject.toml", TABLES),
                                             ("environment.yml", ENVIRONMENTS), ("a.py", INLINE),
                                             ("ci.yml", WORKFLOWS), ("pod.yaml", MANIFESTS), ("task.yaml", TASKS),
                                             ("devcontainer.json", DEVCONTAINERS)) for each in all_]  # fmt: skip


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from(TEMPLATES), st.permutations(NAMES), VERSION, VERSION, VERSION, EXTRAS, ENDS, st.sampled_from(["", "\ufeff"])
)
def test_other_files(
    template: tuple[str, str], names: list[str], before: str, after: str, other: str, extras: str, end: str, mark: str
) -> None:
    if before == after or (extras and '"pip' in template[1]):
        return
    extras = extras.replace(" ", "")
    if extras and template[0] in ("ci.yml", "pod.yaml", "task.yaml", "devcontainer.json"):
        return
    quote = "'" if extras and template[0] in ("Dockerfile", "a.sh") and "bash -c" not in template[1] else ""
    text = template[1].format(f"{quote}{names[0]}{extras}=={before}{quote}", f"{names[1]}=={other}")
    mark = "" if template[0] == "pyproject.toml" else mark  # which TOML does not allow
    with project(template[0], mark + text.replace("\n", end)) as path:
        check_one_pin(path, names[0], before, after)


@settings(max_examples=examples(200), deadline=None)
@given(st.text("ab=1 \\\n\r#-\t;@\x0b\u2028'\"", max_size=60))
def test_every_letter_of_a_line_has_its_place(text: str) -> None:
    for line in logical_lines(text):
        joined = "".join(piece for piece, _ in line.pieces)
        assert joined[line.lead :].startswith(line.text)
        assert all(text[place:].startswith(piece) for piece, place in line.pieces if piece.strip())
        assert 0 <= line.start < line.end <= len(text)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(CLAUSE, max_size=3), VERSION, VERSION, st.sampled_from([EXACT, RANGE, ADMIT]))
def test_clauses(clauses: list[tuple[str, str]], before: str, after: str, how: str) -> None:
    text = ",".join(operator + version for operator, version in clauses)
    new = changed(text, before, after, how)
    assert admits(new, after)
    if how == EXACT:
        assert admits(new, after)
        assert new == f"=={after}"
    elif how == RANGE and key_of(before) != key_of(after):
        assert not admits(new, before)
    assert changed(new, before, after, how) == new


@settings(max_examples=examples(200), deadline=None)
@given(st.text("ab=<>,[]'\"$ \\&|;#!", min_size=1, max_size=20), st.sampled_from(["x", "'x'", '"x"']))
def test_a_word_is_one_word_again(text: str, old: str) -> None:
    if ("'" in text and '"' in text) or "\\" in text or "$" in text:
        return
    (command,) = simple_commands(f"pip {quoted(text, old)}\n")
    assert [word.value for word in command.words] == ["pip", text]


@settings(max_examples=examples(200), deadline=None)
@given(st.text("pi nstal=1.\\\n\"'`$(){}<>&|;#EOF", max_size=80))
def test_shell_text_of_any_kind(text: str) -> None:
    at = 0
    for command in simple_commands(text):
        for word in command.words:
            assert at <= word.start < word.end <= len(text)
            at = word.end


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from([*TEMPLATES, ("requirements.txt", "{0}\n{1} # x\n"), ("requirements.txt", "{0} --hash=sha256:aa\n{1}\n")]),
    st.lists(st.tuples(st.integers(0, 200), st.text("\n\\\"'[]{}=,#; -$@", max_size=3)), max_size=3),
)
def test_a_broken_file_is_refused_or_whole(template: tuple[str, str], noise: list[tuple[int, str]]) -> None:
    text = template[1].format("torch==2.5.1", "vllm==0.7")
    for at, letters in noise:
        text = text[:at] + letters + text[at:]
    with project(template[0], text) as path:
        try:
            edits = edits_for(path, [Change("torch", "2.5.1", "2.6.0", hashes=("sha256:bb",))])
        except InputError as problem:
            assert "\n" not in str(problem)
            return
        for edit in edits:
            found = [each[1] for each in listed(path, edit.after) if each[0] == "torch"]
            # what a script installs under a condition has no certain version
            assert "2.6.0" in found or (None in found and b"2.6.0" in edit.after) or not found


def test_the_generators_give_what_they_should() -> None:
    """The properties would say nothing of files without a pin."""
    with project("requirements.txt", "torch==1\n") as path:
        check_one_pin(path, "torch", "1", "2.0")
        with pytest.raises(ValueError, match="unpack"):
            check_one_pin(path, "vllm", "1", "1")
