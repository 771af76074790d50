"""What is read of the parsers of programs."""

from __future__ import annotations

from compat.checks.options import Parser
from scripts.flags.options import options_of

_SOURCE = b"""
class Frontend:
    host: str = ""
    api_key: str = ""

def add_cli_args(parser):
    parser.add_argument("model_tag")
    parser.add_argument("--tensor-parallel-size", "-tp", type=int)
    parser.add_argument("--old_name", help="[DEPRECATED] Use `--new-name` instead.")
    for name, kind in [("--one", str), ("--two", int)]:
        parser.add_argument(name, type=kind)
    for key, value in kwargs_of(Frontend).items():
        parser.add_argument(f"--{key}", **value)

class Parser(ArgumentParser):
    def add_argument(self, *args, **kwargs):
        return super().add_argument(*args, **kwargs)
"""


def test_options_of_a_parser() -> None:
    found = options_of(_SOURCE, ("Frontend",))
    assert found.names == {"tensor-parallel-size", "old-name", "one", "two", "host", "api-key"}
    assert found.instead == {"old-name": "new-name"}
    assert not found.open


def test_a_parser_is_open_where_not_every_option_can_be_read() -> None:
    assert options_of(_SOURCE, ()).open
    assert options_of(b"add_cli_args_from_dataclass(parser, ServerArgs)", ()).open
    assert options_of(b"parser.add_argument(name)", ()).open
    assert options_of(b"def broken(", ()).open


def test_an_option_is_lacked_only_by_releases_that_were_read() -> None:
    parser = Parser(
        {"package": "p", "versions": ["1.0", "2.0", "2.5", "3.0"], "instead": {"old": "new"}, "unread": 0b1000,
         "flags": {"old": 0b0001, "older-name": 0b0011, "new": 0b1110}}
    )  # fmt: skip
    assert parser.takes("1.0", "old") is True
    assert parser.takes("2.0", "old") is True  # short for --older-name
    assert parser.takes("1.0", "new") is False
    assert parser.takes("1.0", "no-new") is None
    assert parser.takes("3.0", "old") is None
    assert parser.takes("1.0+cu126", "new.sub") is False
    assert parser.takes("9.0", "new") is None
    assert parser.takes("1.0", "misspelled") is None
    assert parser.releases_with("older-name") == ("1.0", "2.0")
    assert parser.instead("old") == "--new"  # in 2.5, the newest release that is known to lack it
