"""Find the releases that accept an option or a string that an error refuses: a flag, a quantization method, a loss type.

What a string was given for is said by the message (``Unknown quantization method: moe_wna16``) or by the line that failed
(``ROPE_INIT_FUNCTIONS[self.rope_type]``). The name of a container in the table of accepted strings has to agree with it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from compat.checks.given_values import accepted_in, containers_for, name_of, words_of
from compat.checks.options import open_parsers
from compat.diagnosis.changed_names import is_telling, releases_with_field, releases_with_option
from compat.diagnosis.frame_packages import distribution_of_module, modules_of, version_of
from compat.diagnosis.missing_names import Named, module_of_name
from compat.diagnosis.named_releases import of_flags
from compat.diagnosis.python_messages import UNKNOWN_LOCATION
from compat.interfaces.changes import FIELD, Change, changes, values
from compat.records import record, replace

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_MOST_FLAGS = 4
_LISTED = re.compile(
    r"(?:not used by the (?:HfArgumentParser|TrlParser): |Unknown arguments from config file: |remaining_argv: "
    r"|had unknown keys \()[\[{](?P<flags>[^\]}]{1,2000})"
)
_UNRECOGNIZED = re.compile(
    r"(?:(?P<program>[\w./ -]{1,80}): )?error: unrecognized arguments: (?P<flags>[^\n]{1,2000})"
    r"|No such option: (?P<flags_2>--[\w-]{1,80})"
)
_OF_CLASS = re.compile(r"validation errors? for (?P<owner>\w{1,80})")
_EXTRA = re.compile(r"\n(?:\w[\w.-]{0,200}\.)?(?P<key>[A-Za-z_]\w{1,80})\n\s*[Ee]xtra (?:inputs are|fields) not permitted")
_NO_KEY = re.compile(
    r"Key '(?P<key>\w{1,80})' (?:is not in struct|not in '(?P<owner>\w{1,80})')"
    r"|Could not override '(?:[\w/@]{1,80}\.){1,20}(?P<key_2>\w{1,80})'"
)
"""What pydantic's models, OmegaConf and Hydra say of a key of a configuration that they do not have."""
_COMMANDS = (
    ("vllm serve", ("vllm", "api_server")),
    ("sglang serve", ("sglang", "launch_server")),
    ("accelerate launch", ("accelerate",)),
)
"""Programs of the table of options, and words in the names under which their parsers report errors."""
_BY_NAME = (
    ("lm_eval", ("lm_eval", "lm-eval")),
    ("torchrun", ("torchrun",)),
    ("deepspeed", ("deepspeed",)),
    ("lmdeploy", ("lmdeploy",)),
)
"""The same for programs that are meant only if the message names them."""
_PHRASES = {"remaining_argv": "ms-swift", "had unknown keys": "accelerate"}
"""Words in a message that only one package uses, and the package."""
_OF_FIELDS = {"swift": "ms-swift", "llamafactory": "llamafactory", "llamafactory-cli": "llamafactory", "trl": "trl"}
"""Programs whose options are the fields of data classes, and their packages."""


def refused_options(message: str, packages: Collection[str]) -> Iterator[Named]:
    """Yield what is known of the options that a message lists, the first ones; ``packages`` failed or are installed."""
    yield from _refused_keys(message, packages)
    program, flags = _refused_flags(message)
    words = re.split(r"[\s./]+", program.lower())
    parsers = open_parsers()
    named = [parser for parser, marks in (*_COMMANDS, *_BY_NAME) if any(word in words for word in marks)]
    likely = named or [parser for parser, _ in _COMMANDS if parsers[parser].package in packages]
    owners = {*packages, *(_OF_FIELDS[word] for word in words if word in _OF_FIELDS)}
    owners = next(({package} for phrase, package in _PHRASES.items() if phrase in message), owners)
    for flag in flags[:_MOST_FLAGS]:
        dashed = flag.replace("_", "-")
        for parser in [] if _LISTED.search(message) else likely:
            known = parsers[parser]
            asked = [version for version in known.versions if known.takes(version, dashed) is not None]
            if (
                found := releases_with_option(known.package, f"{parser} --{dashed}", known.releases_with(dashed), asked)
            ) is not None:
                instead = known.instead(dashed)
                yield found if instead is None else _with_other_option(found, instead)
        if not named:
            fields = releases_with_field(flag, owners)
            yield from (fields,) if fields is not None else of_flags([flag]) if program == "" else ()


def _with_other_option(found: Named, instead: str) -> Named:
    """Add what to pass instead: an option, one with a value, or what to do without any."""
    if instead[0] == "-" and " " not in instead:
        return replace(found, renamed=instead)
    return replace(found, advice=f"use {instead} instead" if instead[0] == "-" else instead)


def _refused_keys(message: str, packages: Collection[str]) -> Iterator[Named]:
    """Yield what is known of the keys of a configuration that a message refuses: fields of its class, or of the packages'."""
    owner, keys = _keys_of(message)
    if re.search(r"\bactor_rollout_ref\.", message):
        packages = {"verl"}
    module = module_of_name(owner, ()) if owner else None
    for key in keys[:_MOST_FLAGS]:
        rows = [each for each in changes().of(key) if each.kind == FIELD]
        own = {each.package for each in rows if each.owner == owner} or packages
        if module is not None:
            own = {distribution_of_module(module)}
        elif not own and is_telling(key):
            own = {each.package for each in rows}
        named = releases_with_field(key, own)
        if named is not None:
            yield named


def _keys_of(message: str) -> tuple[str, list[str]]:
    """Return the class that a message names, "" if none, and the keys that it does not have."""
    if extra := _EXTRA.findall(message):
        match = _OF_CLASS.search(message)
        return match["owner"] if match is not None else "", list(dict.fromkeys(extra))
    match = _NO_KEY.search(message)
    return ("", []) if match is None else (match["owner"] or "", [match["key"] or match["key_2"]])


def _refused_flags(message: str) -> tuple[str, list[str]]:
    """Return the program that reports unknown options, "" if it does not say, and their names without dashes."""
    if match := _LISTED.search(message):
        listed = match["flags"]
        return "", re.findall(r"--(\w+)", listed) or re.findall(r"['\"](\w+)['\"]", listed)
    match = _UNRECOGNIZED.search(message)
    if match is None:
        return "", []
    flags = re.findall(r"(?<!\S)--([A-Za-z][\w-]*)", match["flags"] or match["flags_2"])
    return match["program"] or "?", [flag.replace("-", "_") for flag in flags]


_HEAD = 400
"""Characters of a message that are searched: what follows lists what is accepted."""
_REFUSES = re.compile(
    r"\b(?:unknown|unsupported|unrecognized|invalid|undefined|unexpected|does not support|only possible)\b"
    r"|\bnot (?:a )?(?:valid|supported|recognized|found|known)\b|\b(?:must|should|can only) be (?:one of|either|in)\b",
    re.IGNORECASE,
)
_ACCEPTED = re.compile(
    r"(?:\((?:choose|chose) from|(?:please )?(?:select|choose) (?:one )?(?:of|from)|(?:must|should) be (?:one )?of"
    r"|\b(?:supported|available|valid|possible|allowed|accepted|known|registered) [\w ]{1,40}?(?:are|is)?:|available tasks are"
    r"|the only possible|expected one of).*",
    re.IGNORECASE | re.DOTALL,
)
"""What the release does accept, up to the end of the message."""
_VALUE = r"(?P<value>[A-Za-z][\w.+:/-]{1,39})"
_LITERAL = re.compile(
    r"\n(?P<field>\w[\w.]{0,80})\n\s*Input should be [^\n]{1,1000}\[type=(?:literal_error|enum), input_value='" + _VALUE
)
_OPTION = re.compile(r"argument (?P<option>--[\w-]{2,60})[^:\n]{0,20}: invalid choice: '?" + _VALUE)
_KEY = re.compile(rf"\s*['\"]{_VALUE}['\"]\s*\Z")
_STRING = re.compile(r"[A-Za-z][\w.+:/-]{0,38}\w")
_SET_OFF = re.compile(r"(?:['\"`]|[:=] ?)(?P<value>" + _STRING.pattern + ")")
"""A string that is quoted or follows a colon: in prose and in logs, the other words name nothing."""
_PROGRAMS = {"vllm": "vllm", "api_server": "vllm", "sglang": "sglang", "launch_server": "sglang", "lmdeploy": "lmdeploy"}
"""Names under which the parsers of programs report errors, and their packages."""


@record(frozen=True)
class _Refused:
    """``value`` that was given for something: ``words`` name it, or ``container`` is what it was looked up in.

    ``what``: the value as a user would write it, if the message shows that.
    """

    value: str
    words: frozenset[str]
    what: str | None = None
    container: str | None = None


def refused_values(error: RaisedError, facts: Facts) -> Iterator[Named]:
    """Yield what is known of the first string in a message that the release refuses and other releases accept."""
    involved = [*map(distribution_of_module, modules_of(error)), *_programs(error.message)]
    installed = {each.name for each in facts.environment.distributions or ()}
    for refused in _refused(error):
        one = _of_one_package(list(_fitting(refused, error)), involved, installed)
        if (known := _lacked(refused, one, facts)) is not None:
            yield known
            return


def releases_with_value(error: RaisedError, package: str, facts: Facts) -> Named | None:
    """Return which releases of the package that raised an error accept the string that it refuses; ``None`` if not known."""
    found = (
        _lacked(refused, [each for each in _fitting(refused, error) if each.package == package], facts)
        for refused in _refused(error)
    )
    return next(filter(None, found), None)


def _lacked(refused: _Refused, found: Sequence[Change], facts: Facts) -> Named | None:
    """Return the releases that accept a string in containers of one package, unless the installed one is among them."""
    known = _named(refused, found) if found else None
    version = None if known is None else version_of(known.package, facts)
    return known if known is not None and (version is None or known.lacked_by(version)) else None


def _refused(error: RaisedError) -> Iterator[_Refused]:
    message = error.message
    if match := _LITERAL.search(message):
        name, value = match["field"].rpartition(".")[2], match["value"]
        yield _Refused(value, words_of(name), f"{name}={value!r}")
    elif match := _OPTION.search(message):
        yield _Refused(match["value"], words_of(match["option"]), f"{match['option']} {match['value']}")
    elif (match := _KEY.match(message)) and (error.exception or "KeyError").endswith("KeyError"):
        for name in re.findall(r"([A-Za-z_]\w{2,80})\s*\[", error.code) or [""]:
            what = f"{name}[{match['value']!r}]" if name else None
            yield _Refused(match["value"], words_of(name), what, name)
    elif _REFUSES.search(text := message.replace(UNKNOWN_LOCATION, "")):
        head = _ACCEPTED.sub("", text[:_HEAD])
        strings = _STRING if error.exception else _SET_OFF
        for value in dict.fromkeys(match[match.lastindex or 0] for match in strings.finditer(head)):
            yield _Refused(value, words_of(head) - words_of(value))


def _fitting(refused: _Refused, error: RaisedError) -> list[Change]:
    """Return the containers of the string that agree with what the message names; for a key, first those of that name.

    Of a key whose container no line shows, those in the module that failed.
    """
    if refused.container is not None:
        found = values().of(refused.value)
        if same := [each for each in found if refused.container == name_of(each)]:
            return same
        if not refused.container:
            path = error.frames[-1].file.replace("\\", "/").removesuffix(".py") if error.frames else ""
            return [each for each in found if each.module and path.endswith(each.module.replace(".", "/"))]
    return containers_for(refused.value, refused.words)


def _programs(message: str) -> Iterator[str]:
    program = re.match(r"\s*([\w./ -]{1,80}): error:", message)
    for word in re.split(r"[\s./]+", program[1].lower()) if program is not None else ():
        if word in _PROGRAMS:
            yield _PROGRAMS[word]


def _of_one_package(found: Sequence[Change], involved: Sequence[str], installed: Collection[str]) -> list[Change]:
    """Return the containers of one package: of the failing code, or the only one, or the only installed one."""
    packages = list(dict.fromkeys(each.package for each in found))
    named = [each for each in involved if each in packages]
    here = named[:1] or (packages if len(packages) == 1 else [each for each in packages if each in installed])
    return [each for each in found if each.package == here[0]] if len(here) == 1 else []


def _named(refused: _Refused, found: Sequence[Change]) -> Named | None:
    """Return the releases that accept a string in one of the containers."""
    known = accepted_in(refused.value, found)
    return releases_with_option(known.package, refused.what or _what(refused.value, found), known.accepting, known.known)


def _what(value: str, found: Sequence[Change]) -> str:
    """Return the value with what it is given for: an argument if one is compared with it, else what holds it."""
    name = min((each.owner for each in found), key=lambda owner: (owner[0] != "=", owner.islower(), owner))
    if name[0] == "=":
        return f"{name[1:]}={value!r}"
    if name.endswith("()"):
        return f"{value!r} of {name.removesuffix('()').partition('.')[0]}"
    if name.rpartition(".")[2].islower():
        return f"{name.rpartition('.')[2].strip('_')} {value!r}"
    return f"{name}[{value!r}]" if name.isupper() else f"{name}({value!r})"
