"""The miner of messages: what it reads in a module, and the tables it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.interfaces.messages import HOLE, Messages, Table
from scripts.messages.extract import modules_of
from scripts.messages.raised import Message, messages_of
from scripts.messages.tables import MOST_PLACES, bounds_of, merged, table_of, write
from scripts.messages.templates import normal
from scripts.messages.truth import says
from scripts.surface.store import Release

MODULE = '''
import warnings
from packaging import version

NEEDS_PEFT = """You need
    peft for this."""


class Loader:
    def load(self, model, kind):
        if not is_peft_available():
            raise ImportError(NEEDS_PEFT)
        if kind == "a":
            return 1
        elif kind in ("b", "c") and model:
            raise ValueError(f"{kind!r} is not a kind of {type(model)}: use 'a'")
        else:
            message = "The kind %s " % kind
            message += "is unknown to {}.".format(model)
            logger.warning("%s of %d kinds is deprecated", kind, 3)
        assert model is not None, "model has to be given"
        try:
            import triton
        except ImportError:
            warnings.warn("triton cannot be imported here", category=DeprecationWarning)
        raise exceptions.KindError(message)


def check(x):
    torch._check(x.dim() == 2, lambda: f"expected a matrix but got {x.dim()} dimensions")
    if len(x) > 3:
        parser.error("too many " + str(len(x)) + " rows in x")
    raise ValueError(x)
'''


def said(source: str) -> dict[str, Message]:
    return {each.template: each for each in messages_of(source.encode())}


def test_every_way_to_write_a_message_is_read() -> None:
    found = said(MODULE)
    assert list(found) == [
        "You need peft for this.",
        f"{HOLE} is not a kind of {HOLE}: use 'a'",
        f"{HOLE} of {HOLE} kinds is deprecated",
        "model has to be given",
        "triton cannot be imported here",
        f"The kind {HOLE} is unknown to {HOLE}.",
        f"expected a matrix but got {HOLE} dimensions",
        f"too many {HOLE} rows in x",
    ]
    assert {each.function for each in found.values()} == {"Loader.load", "check"}


@pytest.mark.parametrize(
    ("template", "kind", "name", "guards"),
    [
        ("You need peft for this.", "raise", "ImportError", ("not is_peft_available()",)),
        (
            f"{HOLE} is not a kind of {HOLE}: use 'a'", "raise", "ValueError",
            ("kind in ('b', 'c') and model", "not (kind == 'a')", "is_peft_available()"),
        ),
        (
            f"{HOLE} of {HOLE} kinds is deprecated", "log", "warning",
            ("not (kind in ('b', 'c') and model)", "not (kind == 'a')", "is_peft_available()"),
        ),
        ("model has to be given", "raise", "AssertionError", ("not (model is not None)", "is_peft_available()")),
        ("triton cannot be imported here", "warn", "DeprecationWarning", ("except ImportError", "is_peft_available()")),
        (f"expected a matrix but got {HOLE} dimensions", "raise", "RuntimeError", ("not (x.dim() == 2)",)),
        (f"too many {HOLE} rows in x", "raise", "SystemExit", ("len(x) > 3",)),
    ],
)  # fmt: skip
def test_a_message_keeps_its_class_and_the_conditions_around_it(
    template: str, kind: str, name: str, guards: tuple[str, ...]
) -> None:
    found = said(MODULE)[template]
    assert (found.kind, found.name, found.guards) == (kind, name, guards)


def test_a_function_of_the_package_that_logs() -> None:
    (message,) = messages_of(b"if not known:\n    hlog_warn(f'No tokenizer found for {language} here')\n")
    assert (message.kind, message.name, message.guards) == ("log", "warning", ("not known",))
    assert messages_of(b"backlog_size('No tokenizer found for it')\n") == []


def test_a_value_that_a_text_shows_with_its_expression() -> None:
    assert says('assert ok, f"{x.shape=} {x.stride()=} of {rows[0]=}"', f"x.shape={HOLE} x.stride()={HOLE} of rows[0]={HOLE}")


def test_braces_of_a_text_that_is_not_formatted_are_part_of_the_message() -> None:
    source = "raise ImportError('No export from {torch.__version__} on, ' f'found {found} in it', '{0}')\n"
    assert list(said(source)) == [f"No export from {{torch.__version__}} on, found {HOLE} in it"]


@pytest.mark.parametrize(
    ("package", "path", "read"),
    [
        ("optimum", "optimum/exporters/onnx/convert.py", True),
        ("transformers", "transformers/onnx/convert.py", False),
        ("litellm", "litellm/llms/huggingface/chat.py", True),
        ("litellm", "litellm/llms/bedrock/chat.py", False),
        ("cuda-pathfinder", "cuda/pathfinder/_dynamic_libs/search.py", True),
    ],
)
def test_modules_for_other_purposes_are_not_read(package: str, path: str, read: bool) -> None:
    release = Release(package, "1.0", "", (), {path: 1})
    assert bool(modules_of(release)) == read


def test_a_variable_that_is_set_to_something_unknown_is_a_hole() -> None:
    source = "def f(x):\n    m = 'one text'\n    m = x.describe()\n    raise ValueError('before it: ' + m)\n"
    assert list(said(source)) == [f"before it: {HOLE}"]


@pytest.mark.parametrize(
    "source", [b"raise (", b"\xff\xfe raise", b"x = 1\n", b"raise ValueError\n", b"raise ValueError('')\n"]
)
def test_what_says_nothing_gives_nothing(source: bytes) -> None:
    assert messages_of(source) == []


def test_a_long_message_is_cut_at_a_word_and_goes_on_in_a_hole() -> None:
    found = normal("word " * 200)
    assert len(found) <= 401
    assert found.endswith(f"word{HOLE}")


@pytest.mark.parametrize(("mask", "bounds"), [(0, []), (0b1, [0, 0]), (0b1101110, [1, 3, 5, 6])])
def test_releases_are_kept_as_runs(mask: int, bounds: list[int]) -> None:
    assert list(bounds_of(mask)) == bounds


def test_a_table_gives_back_what_was_put_in(tmp_path: Path) -> None:
    one = Message("raise", "ValueError", f"no kernel for {HOLE} on this device", "Op.run", ("x < 3", "y"))
    other = Message("log", "error", f"no kernel for {HOLE} on this device", "run", ())
    short = Message("raise", "ValueError", f"bad {HOLE}", "run", ())
    found = {("a.ops", one): 0b0110, ("a.more", one): 0b1000, ("a.ops", other): 0b0001, ("a.ops", short): 0b1111}
    again = Message("raise", "RuntimeError", f"no kernel for {HOLE} at all on this device", "launch", ())
    tables = {
        "a": table_of("a", ["1.0", "1.1", "1.2", "2.0"], found),
        "b": table_of("b", ["0.1"], {("b", again): 0b1}),
    }
    write(tmp_path, tables, tables)
    messages = Messages(str(tmp_path))
    matches = messages.find("RuntimeError: no kernel for rope on this device")
    assert [(m.template.package, m.template.kind, m.template.name) for m in matches] == [
        ("a", "log", "error"), ("a", "raise", "ValueError"),
    ]  # fmt: skip
    places = matches[1].template.places
    assert {(each.module, each.function, each.guards, each.versions) for each in places} == {
        ("a.ops", "Op.run", ("x < 3", "y"), ("1.1", "1.2")), ("a.more", "Op.run", ("x < 3", "y"), ("2.0",)),
    }  # fmt: skip
    assert [m.template.package for m in messages.find("no kernel for rope at all on this device")][:1] == ["b"]
    assert len(messages.table("a")) == 2


SAID = Message("raise", "ValueError", f"no kernel for {HOLE} on this device", "run", ("x < 3",))


def test_a_release_is_added_to_a_table_without_the_others() -> None:
    gone = Message("raise", "ValueError", "no kernel for it on that device", "run", ())
    old = table_of("a", ["1.0", "1.1", "1.2"], {("a.ops", SAID): 0b110, ("a.ops", gone): 0b011})
    new = table_of("a", ["1.2", "2.0"], {("a.more", SAID): 0b10, ("a.ops", SAID): 0b01})
    table = Table(merged(old, new))
    assert table.versions == ("1.0", "1.1", "1.2", "2.0")
    told = {each.text: {place.module: place.versions for place in each.places} for each in table.templates()}
    assert told == {SAID.template: {"a.ops": ("1.1", "1.2"), "a.more": ("2.0",)}, gone.template: {"a.ops": ("1.0", "1.1")}}


def test_what_a_release_is_said_to_have_is_replaced_by_what_it_has() -> None:
    old = table_of("a", ["1.0", "1.1"], {("a.ops", SAID): 0b11})
    (each,) = Table(merged(old, table_of("a", ["1.1"], {}))).templates()
    assert each.versions == each.places[0].versions == ("1.0",)


def test_releases_of_a_message_in_places_that_are_not_kept_stay() -> None:
    places = {(f"a.m{at:02}", SAID): 0b01 for at in range(MOST_PLACES)} | {("a.z", SAID): 0b10}
    old = table_of("a", ["1.0", "1.1"], places | {("a.m00", SAID): 0b01, ("a.m01", SAID): 0b01})
    new = table_of("a", ["1.2"], {("a.new", SAID): 0b1})
    (each,) = Table(merged(old, new)).templates()
    assert each.versions == ("1.0", "1.1", "1.2")
    assert "1.1" not in {version for place in each.places for version in place.versions}
