"""Find the releases that accept an option that a program's parser refuses, by the tables of options and of data classes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from compat.checks.options import open_parsers
from compat.diagnosis.changed_names import field, option
from compat.diagnosis.named import Named
from compat.diagnosis.named_releases import of_flags
from compat.records import replace

_MOST = 4
_LISTED = re.compile(
    r"(?:not used by the (?:HfArgumentParser|TrlParser)|Unknown arguments from config file|remaining_argv): "
    r"[\[{](?P<flags>[^\]}]{1,2000})"
)
_UNRECOGNIZED = re.compile(
    r"(?:(?P<program>[\w./ -]{1,80}): )?error: unrecognized arguments: (?P<flags>[^\n]{1,2000})"
    r"|No such option: (?P<flags_2>--[\w-]{1,80})"
)
_PROGRAMS = (
    ("vllm serve", ("vllm", "api_server")),
    ("sglang serve", ("sglang", "launch_server")),
    ("accelerate launch", ("accelerate",)),
)
"""Programs of the table of options, and words in the names under which their parsers report errors."""
_OF_FIELDS = {"swift": "ms-swift", "llamafactory": "llamafactory", "llamafactory-cli": "llamafactory", "trl": "trl"}
"""Programs whose options are the fields of data classes, and their packages."""


def refused_options(message: str, packages: Collection[str]) -> Iterator[Named]:
    """Yield what is known of the options that a message lists, the first ones; ``packages`` failed or are installed."""
    program, flags = _refused(message)
    words = re.split(r"[\s./]+", program.lower())
    parsers = open_parsers()
    named = [parser for parser, said in _PROGRAMS if any(word in words for word in said)]
    likely = named or [parser for parser, _ in _PROGRAMS if parsers[parser].package in packages]
    owners = {*packages, *(_OF_FIELDS[word] for word in words if word in _OF_FIELDS)}
    if "remaining_argv" in message:
        owners = {"ms-swift"}
    for flag in flags[:_MOST]:
        dashed = flag.replace("_", "-")
        for parser in [] if _LISTED.search(message) else likely:
            known = parsers[parser]
            asked = [version for version in known.versions if known.takes(version, dashed) is not None]
            if (found := option(known.package, f"{parser} --{dashed}", known.releases_with(dashed), asked)) is not None:
                instead = known.instead(dashed)
                yield found if instead is None else replace(found, renamed=f"--{instead}")
        if not named:
            fields = field(flag, owners)
            yield from (fields,) if fields is not None else of_flags([flag]) if program == "" else ()


def _refused(message: str) -> tuple[str, list[str]]:
    """Return the program that reports unknown options, "" if it does not say, and their names without dashes."""
    if match := _LISTED.search(message):
        listed = match["flags"]
        return "", re.findall(r"--(\w+)", listed) or re.findall(r"['\"](\w+)['\"]", listed)
    match = _UNRECOGNIZED.search(message)
    if match is None:
        return "", []
    flags = re.findall(r"(?<!\S)--([A-Za-z][\w-]*)", match["flags"] or match["flags_2"])
    return match["program"] or "?", [flag.replace("-", "_") for flag in flags]
