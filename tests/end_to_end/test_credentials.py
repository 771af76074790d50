"""A canary in every place of every format where an address or a value stands is printed by no command in no format."""

from __future__ import annotations

import ast
import importlib
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import compat
from compat.api.commands import REPORT, REPORTS
from compat.checks.requirements import Requires
from compat.cli import main
from compat.formats.described import parse_described
from compat.formats.edit.changes import Change
from compat.model import Source
from compat.output.graph import Graph, Node, dot, picture
from compat.output.markdown import markdown
from compat.output.plan import shown_pins, shown_plan
from compat.output.stream import emit, to_json
from compat.output.terminal import render_text
from compat.records import replace
from compat.redact import HIDDEN, redacted, without_credentials
from compat.repair.plan import Plan
from compat.repair.verify import Verified
from scripts.golden_inputs import SEED_NAMES
from tests.examples import THOROUGH, examples
from tests.fuzz.readers import READERS
from tests.fuzz.seeds import seeds_of
from tests.property.test_escaping import hostile

CANARY = "q7Zx91fLm3Wb"
"""It contains no word that makes a text suspicious by itself, such as ``token``."""
ADDRESSES = (
    f"https://bob:{CANARY}@pkgs.example/simple", f"https://{CANARY}@pkgs.example/simple", f"https://bob:p/{CANARY}@pkgs.example/simple",
    f"https://conda.example/t/{CANARY}/channel", f"https://pkgs.example/a-1.0-py3-none-any.whl?token={CANARY}",
    f"https://pkgs.example/a-1.0-py3-none-any.whl?a=1&X-Amz-Signature={CANARY}&b=2", f"https://pkgs.example/x?sig={CANARY}#egg=a",
    f"https://pkgs.example/x?api_key={CANARY}", f"https://pkgs.example/x?password={CANARY}", f"https://pkgs.example/x?pass={CANARY}",
    f"https://pkgs.example/x?X-JFrog-Art-Api={CANARY}", f"https://pkgs.example/x?jwt={CANARY}",
)  # fmt: skip
FORMATS = tuple(form for form in REPORT.choices if form != "html")
PLACES = {
    "uv.lock": (
        'version = 1\n[[package]]\nname = "torch"\nversion = "2.6.0"\nsource = {{ registry = "{0}" }}\n',
        'version = 1\n[[package]]\nname = "torch"\nversion = "2.6.0"\nsource = {{ url = "{0}" }}\n',
        'version = 1\n[[package]]\nname = "torch"\nversion = "2.6.0"\nsource = {{ git = "{0}" }}\n',
        'version = 1\n[[package]]\nname = "torch"\nversion = "{0}"\nsource = {{ registry = "x" }}\n',
    ),
    "poetry.lock": ('[[package]]\nname = "torch"\nversion = "2.6.0"\n[package.source]\ntype = "git"\nurl = "{0}"\n[metadata]\nlock-version = "2.1"\npython-versions = "*"\n',),
    "pylock.toml": ('lock-version = "1.0"\ncreated-by = "x"\n[[packages]]\nname = "torch"\nversion = "2.6.0"\nindex = "{0}"\n',),
    "Pipfile.lock": ('{{"_meta": {{"sources": [{{"name": "a", "url": "{0}", "verify_ssl": true}}]}}, "default": {{"torch": {{"version": "==2.6.0", "index": "a"}}}}}}',),
    "requirements.txt": (
        "-r {0}\n", "-c {0}\n", "-e {0}\n", "--index-url {0}\ntorch==2.6.0\n", "--extra-index-url {0}\ntorch==2.6.0\n", "-f {0}\ntorch\n",
        "torch @ {0}\n", "torch === {0}\n", "torch '{0}\n", "{0}\n", "torch==2.6.0 # {0}\n", "torch=={0}\n", "git+{0}\n",
    ),
    "pyproject.toml": (
        '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch @ {0}"]\n', '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch === {0}"]\n',
        '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch"]\n[tool.uv.sources]\ntorch = {{ git = "{0}" }}\n',
        '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch"]\n[[tool.uv.index]]\nname = "i"\nurl = "{0}"\n',
    ),
    "environment.yml": (
        "channels:\n  - {0}\ndependencies:\n  - python=3.11\n", "dependencies:\n  - pip:\n      - -r {0}\n", "dependencies:\n  - pip:\n      - torch @ {0}\n",
        "dependencies:\n  - {0}::torch=2.6\n",
    ),
    "conda-lock.yml": ("version: 1\npackage:\n- name: torch\n  version: 2.6.0\n  manager: conda\n  platform: linux-64\n  url: {0}\n  dependencies: {{}}\n  hash: {{}}\n",),
    "Dockerfile": (
        "FROM python:3.11\nENV PIP_INDEX_URL={0}\nRUN pip install torch==2.6.0\n", "FROM python:3.11\nENV PIP_EXTRA_INDEX_URL={0}\nRUN pip install torch\n",
        "FROM python:3.11\nRUN pip install -r {0}\n", "FROM python:3.11\nRUN pip install --index-url {0} torch\n", "FROM {0}\nRUN pip install torch\n",
    ),
    "run.sh": ("pip install -r {0}\n", "pip install -i {0} torch==2.6.0\n", "export PIP_INDEX_URL={0}\npip install torch\n", "pip install torch @ {0}\n"),
    "compose.yaml": ("services:\n  a:\n    image: {0}\n", "services:\n  a:\n    image: x\n    command: vllm serve m --api-key q7Zx91fLm3Wb\n    environment:\n      A: {0}\n"),
    "a.ipynb": (
        ('{{"cells": [{{"cell_type": "code", "source": ["!HF_TOKEN=q7Zx91fLm3Wb python train.py --hub_token q7Zx91fLm3Wb\\n", "!pip install -i {0} torch"], "metadata": {{}}, "outputs": []}}],'
        ' "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}'),
    ),
    "env.json": (
        '{{"schema": "compat/environment/1", "distributions": [{{"name": "torch", "version": "2.6.0", "source": {{"kind": "url", "url": "{0}"}}}}]}}',
        '{{"schema": "compat/environment/1", "variables": {{"PIP_INDEX_URL": "{0}", "HF_TOKEN": "q7Zx91fLm3Wb"}}}}',
        '{{"schema": "compat/environment/1", "python": "{0}"}}', '{{"schema": "compat/environment/1", "distributions": [{{"name": "torch", "version": "{0}"}}]}}',
    ),
}  # fmt: skip


def _tried(name: str) -> Iterator[tuple[str, list[str]]]:
    """Texts and commands: every place with every address and with every command, and over the places every address with
    every command; all of them together in a thorough run."""
    commands = [*(["check", name, "--format", form] for form in FORMATS), ["facts", name]]
    for shift, place in enumerate(PLACES[name]):
        for number, address in enumerate(ADDRESSES):
            for words in commands if THOROUGH else [commands[(shift + number) % len(commands)]]:
                yield place.format(address), words


@pytest.mark.parametrize("name", PLACES)
def test_no_command_prints_a_credential(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    leaks = []
    for text, words in _tried(name):
        Path(name).write_text(text)
        main(words)
        out, err = capsys.readouterr()
        if CANARY in out or CANARY in err:
            leaks.append((words, text, next(line for line in (out + err).splitlines() if CANARY in line)))
    assert leaks == []


# --- The same in every place of the seeds of the fuzzer, which has one for every reader: the formats to come are among them.

_WORD = re.compile(r"""[^\s"'\[\]{}(),;=]*\w[^\s"'\[\]{}(),;=]*""")
_VALUE = re.compile(r"""(?m)"([^"\n]+)"|'([^'\n]+)'|[:=] *([^\n"'{\[][^\n]*)$""")
_LONG = CANARY * 12
"""Longer than what errors quote: cut off before its ``@`` it would look like anything."""
_SECRETS = (
    *ADDRESSES, f"https://bob:{_LONG}@pkgs.example/simple", f"https://{_LONG}@pkgs.example/simple", f"//bob:{CANARY}@pkgs.example/x",
    f"https:/bob:{CANARY}@pkgs.example/x", f"bob:{CANARY}@pkgs.example/simple", f"git+ssh://bob:{CANARY}@git.example/o/n",
    f"https://pkgs.example/#token={CANARY}", f"hf_{CANARY * 3}", f"ghp_{CANARY * 3}",
)  # fmt: skip
_NAME_OF = {**SEED_NAMES, "log": "train.log", "baseline": "report.json"}
_TRIED = 10
"""Places of each reader; every one of them took minutes."""


def _commands(reader: str, name: str) -> list[list[str]]:
    reports = [["--format", form] for form in (*FORMATS, "html")]
    if reader == "log":
        return [["diagnose", name, "--format", form] for form in ("text", "json", "markdown", "html")]
    if reader == "pasted":
        return [["check", "--pasted", name, *form] for form in reports]
    if reader == "baseline":
        Path("one.txt").write_text("torch==2.6.0\n")
        return [["check", "one.txt", "--baseline", name, *form] for form in reports]
    if reader == "project_config":
        Path("one.txt").write_text("torch==2.6.0\n")
        return [["check", "one.txt", *form] for form in reports]
    return [*(["check", name, *form] for form in reports), ["check", name, "--all"], ["facts", name]]


def test_every_reader_of_the_fuzzer_is_tried() -> None:
    assert _NAME_OF.keys() | {"kind_of"} == READERS.keys()


@pytest.mark.parametrize("reader", _NAME_OF)
def test_no_place_of_any_format_prints_a_credential(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = _NAME_OF[reader]
    commands = _commands(reader, name)
    chance = random.Random(f"places of {reader}")
    texts = [content.decode("utf-8", "replace") for content in seeds_of(reader)]
    places = [
        (text, *found.span(found.lastindex or 0)) for text in texts for kind in (_WORD, _VALUE) for found in kind.finditer(text)
    ]
    leaks = []
    for text, start, end in chance.sample(places, min(_TRIED, len(places))):
        secret = chance.choice(_SECRETS)
        Path(name).write_text(f"{text[:start]}{secret}{text[end:]}")
        words = chance.choice(commands)
        assert main(words) in (0, 1, 2, 3)
        out, err = capsys.readouterr()
        if CANARY in out or CANARY in err:
            leaks.append(
                (words, secret, text[max(0, start - 40) : start], next(x for x in (out + err).splitlines() if CANARY in x))
            )
    assert leaks == []


def test_messages_cut_no_text_that_may_hold_a_credential() -> None:
    """In a message the beginning of what a file says is ``excerpt(text, 60)``, never ``text[:60]``."""
    root = Path(compat.__file__).parent
    found = []
    for room in ("api", "formats", "index", "repair", "syntax", "workload"):
        for path in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                value = node.value if isinstance(node, ast.FormattedValue) else None
                if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) and _cuts(value.slice):
                    if path.name == "files.py" and room == "formats" and ast.unparse(value) == "name[:100]":
                        continue  # the name of a temporary file
                    found.append(f"{path.relative_to(root)}:{node.lineno}: {ast.unparse(value)}")
    assert found == []


def _cuts(piece: ast.Slice) -> bool:
    """Whether it is the beginning of something, and of more than a handful of characters."""
    most = piece.upper.value if isinstance(piece.upper, ast.Constant) else 0
    return piece.lower is None and isinstance(most, int) and most >= 20


@pytest.mark.parametrize("form", ["text", "json"])
def test_diagnose_echoes_no_credential(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for said in (
        *ADDRESSES,
        f"Authorization: Bearer {CANARY}",
        f"bearer {CANARY}",
        "token hf_" + CANARY * 4,
        "ghp_" + CANARY * 4,
    ):
        log = tmp_path / "a.log"
        log.write_text(
            f'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g("{said}")\nOSError: 401 for url: {said}\n'
        )
        main(["diagnose", str(log), "--format", form])
        out, err = capsys.readouterr()
        assert CANARY not in out + err


@pytest.mark.parametrize("sign", ["'", "`", "|", "<", " ", "\u00a0"])
def test_a_password_with_signs_that_end_an_address_elsewhere(
    sign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"https://bob:{sign}{CANARY}@pkgs.example/simple"
    for key in ("registry", "url", "git"):
        Path("uv.lock").write_text(
            f'version = 1\n[[package]]\nname = "torch"\nversion = "2.6.0"\nsource = {{ {key} = "{url}" }}\n'
        )
        main(["check", "uv.lock", "--format", "json"])
    if sign == "<":  # ends an address in a text
        return
    Path("requirements.txt").write_text(f"--index-url {url}\ntorch==2.6.0\n")
    main(["check", "requirements.txt", "--format", "json"])
    out, err = capsys.readouterr()
    assert CANARY not in out + err


def test_what_looks_like_a_credential_and_is_none_is_kept() -> None:
    for text in (
        "git+https://github.com/o/n@main", "git+ssh://git@github.com/o/n@v1", "nvcr.io/nvidia/pytorch:24.05@sha256:abc", "uses: actions/checkout@v4",
        "torch @ https://pkgs.example/torch.whl", "basic information", "tokenizer.pad_token=tokenizer.eos_token", "--max-new-token 5", "--pad-token x",
        "import hf_transfer", "https://localhost:8080/a@b", "https://${USER}:${PASSWORD}@h/x", "HF_TOKEN=$HF_TOKEN", "--hub_token $HF_TOKEN", "C:\\x: a@b",
        "pip install --index-url https://pkgs.example/simple torch==2.6.0", "unexpected keyword argument 'token'", "https://h/x?token=",
    ):  # fmt: skip
        assert redacted(text) == text


@pytest.mark.parametrize("user", ["", "ci", "me,you"])
@pytest.mark.parametrize("password", ["///", "//x", "//x//", "//https:"])
def test_a_password_that_begins_like_a_scheme(user: str, password: str) -> None:
    assert CANARY not in redacted(f"see https://{user}:{password}{CANARY}@pkgs.example/simple, please")


@settings(max_examples=examples(300), deadline=None)
@given(
    st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=30),
    st.text(st.sampled_from("abcXYZ019.-_~!*+,;%"), max_size=12),
    st.text(st.sampled_from("abcXYZ019.-_~/+"), max_size=8),
)
def test_a_password_never_stays(around: str, user: str, password: str) -> None:
    assume(not password.partition("/")[0].isdecimal())  # host:8080/path@revision
    url = f"https://{user}:{password}{CANARY}@pkgs.example/simple"
    assert CANARY not in redacted(f"{around} {url} {around}")
    assert CANARY not in without_credentials(url)
    assert redacted(redacted(url)) == redacted(url)
    assert CANARY not in json.dumps(Source("index", {"url": url}).to_json())


def test_a_described_environment_keeps_what_it_says() -> None:
    document = {
        "schema": "compat/environment/1",
        "distributions": [{"name": "a", "version": "1", "source": {"kind": "url", "url": "https://h/a.whl"}}],
    }
    assert parse_described(document, "x")[0].to_json() == document
    assert HIDDEN not in json.dumps(parse_described(document, "x")[0].to_json())


def _outputs(text: str) -> Iterator[tuple[str, str]]:
    """Every output format, of a report in which every field holds the text."""
    outcomes = hostile(text)
    report = outcomes[0].report
    assert report is not None
    yield "text", render_text(report, text, text, at_length=True)
    yield "json", to_json(report.to_json())
    for name, (_, module, function) in REPORTS.items():
        yield name, getattr(importlib.import_module(module), function)(outcomes)
    yield "markdown", markdown(report)
    graph = Graph((Node(text, text), Node("a", "1")), (Requires(text, "a", f"=={text}", met=False),))
    yield "dot", dot(graph)
    yield "picture", str(picture(graph, text))
    plan = Plan(
        changes=(Change(text, text, text, why=text, source=Source("index", {"url": text})),), left=report.findings,
        unread={text: text}, narrowed={text: text}, assumed={text: text}, policies=(text,), verified=Verified(rules=True, uv=True),
    )  # fmt: skip
    for each in (plan, replace(plan, core=(text,)), replace(plan, refused=text)):
        yield "plan", shown_plan(each, report.findings, None, target=[text], notes=[text])
        yield "pins", shown_pins(each, [text])


@pytest.mark.parametrize("columns", ["40", "100"])
@pytest.mark.parametrize("secret", [*_SECRETS, f"Authorization: Bearer {CANARY}1", f"curl -u bob:{CANARY} x"])
def test_no_output_prints_a_credential_that_a_finding_holds(
    secret: str, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escaping and wrapping change the text before it is printed: a credential has to be taken out before both."""
    monkeypatch.setenv("COLUMNS", columns)
    leaks = []
    for text in (secret, f"words before {secret} and after", f"{'word ' * 12}{secret}"):
        for name, printed in _outputs(text):
            emit(printed, utf_8=name == "github")
            out = capsys.readouterr().out
            if CANARY in re.sub(r"\s|\\", "", out):
                leaks.append((name, next((line for line in out.splitlines() if CANARY[:6] in line), "")[:200]))
    assert leaks == []
