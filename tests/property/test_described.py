"""Whatever JSON is given as a described environment: an environment that writes back what it read, or one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.errors import InputError
from compat.formats.described import parse_described
from compat.model import LAUNCHERS, SYSTEMS
from compat.syntax.json import line_of, parse_json
from compat.workload.vocabulary import recognised

KEYS = ("python", "os", "distributions", "accelerators", "driver", "variables", "workload", "name", "version", "source", "kind",
        "features", "processes", "distributions_complete", "compute_capability", "other")  # fmt: skip
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["1.0", "x", "8.0", "index"])
)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
)
version_texts = st.sampled_from(["1.0", "2.6.0+cu124", "0.16.0.dev0", "2025.2.15", "580"])


def _is_plain(key: str, word: str) -> bool:
    """Whether a word is neither another spelling of a known one nor near to one."""
    return recognised(key, word) == (word, None)


@st.composite
def valid(draw: st.DrawFn) -> dict[str, Any]:
    words = st.text("abcdef-", min_size=1, max_size=6)
    source = st.sampled_from(["index", "vcs", "conda"]) | st.fixed_dictionaries(
        {"kind": st.sampled_from(["vcs", "url"]), "url": words}
    )
    distribution = st.fixed_dictionaries(
        {"name": st.text("abc", min_size=1)}, optional={"version": version_texts, "source": source}
    )
    accelerator = st.fixed_dictionaries(
        {},
        optional={"name": words, "compute_capability": st.sampled_from(["8.0", "12.1"]), "memory_mib": st.integers(0, 10**6)},
    )
    workload = st.fixed_dictionaries(
        {"task": words.filter(lambda word: _is_plain("task", word))},
        optional={
            "launcher": st.sampled_from(LAUNCHERS),
            "processes": st.integers(0, 9),
            "features": st.lists(words.filter(lambda word: _is_plain("features", word))),
            "features_complete": st.just(True),
        },
    )
    return {"schema": "compat/environment/1", **draw(st.fixed_dictionaries({}, optional={
        "python": version_texts, "os": st.sampled_from(SYSTEMS), "glibc": version_texts, "driver": version_texts,
        "distributions": st.lists(distribution, max_size=4), "distributions_complete": st.just(True),
        "accelerators": st.lists(accelerator, max_size=3), "variables": st.dictionaries(words, words | st.none()), "workload": workload,
    }))}  # fmt: skip


@given(valid())
def test_a_valid_description_round_trips(document: dict[str, Any]) -> None:
    environment, notes = parse_described(document, "generated")
    assert notes == ()
    assert environment.to_json() == document
    assert parse_described(environment.to_json(), "again")[0] == environment


@given(documents)
def test_anything_else_is_one_line(document: Any) -> None:
    try:
        environment, _ = parse_described(document, "generated")
    except InputError as problem:
        assert "\n" not in str(problem)
    else:
        assert parse_described(environment.to_json(), "again")[0] == environment


@given(documents)
def test_the_quick_scanner_reads_what_json_reads(document: Any) -> None:
    for text in (json.dumps(document), json.dumps(document, indent=2), " \n" + json.dumps(document) + "\t"):
        assert parse_json(text, "x") == json.loads(text)


@given(st.text(alphabet='{}[]",:0123456789.-+eE truefalsn\\u\n', max_size=30))
def test_the_quick_scanner_refuses_what_json_refuses(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=lambda word: 1 / 0)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(InputError):
            parse_json(text, "x")
    else:
        assert parse_json(text, "x") == expected


def test_lines_of_values_are_found(tmp_path: Path) -> None:
    text = '{\n"a": [1,\n {"b": {"c"\n: "x"}}],\n"d": "}]"}'
    assert line_of(text, ("a", 0)) == 2
    assert line_of(text, ("a", 1, "b", "c")) == 4
    assert line_of(text, ("d",)) == 5
    assert line_of(text, ("a", 7)) is None
    assert line_of(text, ("nothing",)) is None
