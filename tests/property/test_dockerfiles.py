"""Any text at all as a Dockerfile or as an install command: an answer or an error that names the place, nothing else."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compat.errors import InputError
from compat.formats.docker.dockerfile import read_dockerfile
from compat.formats.docker.stage import substituted
from compat.formats.installs.command import install_of
from compat.model import EMPTY
from compat.versions import key_of
from tests.examples import examples

PIECES = [
    "FROM a\n", "FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel AS b\n", "FROM b\n", "RUN ", "pip install ", "torch==2.6.0 ",
    "uv sync ", "conda install ", "-r ", "-e ", "--index-url ", "COPY --from=b ", "/opt/venv ", ". ", "ENV ", "ARG ", "A", "=",
    "$A", "${A", ":-", "}", "\\\n", "\n", "<<EOF", "EOF\n", "&& ", "'", '"', "`", "$(", ")", "[", "]", "CMD ", "accelerate launch ",
    "t.py", "ONBUILD ", "{{", "{%", "\0", "\ud800", "\u2028", "\r\n", "# escape=`\n", "WORKDIR ", "../", "bash -c ", "xargs ", "@",
]  # fmt: skip
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))


@given(texts, st.booleans())
@settings(max_examples=examples(400), deadline=None)
def test_any_text_is_read_or_refused(text: str, begun: bool) -> None:
    text = f"FROM a\nRUN {text}" if begun else text
    try:
        listings = read_dockerfile("/nonexistent/Dockerfile", text)
    except InputError as problem:
        assert problem.line is None or 1 <= problem.line <= text.count("\n") + 1
        return
    assert listings
    for listing in listings:
        for entry in listing.entries:
            assert entry.line is not None
            assert 1 <= entry.line <= text.count("\n") + 1
            if entry.distribution.version is not None:
                key_of(entry.distribution.version)
        for line in (*listing.notes, *listing.unread):
            assert line.isprintable()


@given(
    st.lists(st.one_of(st.text(), st.sampled_from(PIECES).map(str.strip)), max_size=8),
    st.sampled_from(["pip", "uv pip", "conda"]),
)
@settings(max_examples=examples(300), deadline=None)
def test_any_words_are_an_install_command_or_not(words: list[str], program: str) -> None:
    for each in (words, [*program.split(), "install", *words]):
        found = install_of(each)
        for distribution in found.requirements if found is not None else ():
            assert distribution.name


@given(st.text(alphabet="ab$A{}:-+\\'\" "))
def test_a_word_without_variables_that_are_known_keeps_them(text: str) -> None:
    once = substituted(text, EMPTY)
    assert substituted(text, {"UNUSED": "x"}) == once
    if not set("$\\'\"") & set(text):
        assert once == text
