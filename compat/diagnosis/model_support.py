"""Explain why a library does not know a model: the releases that register it, by their published source.

Where the table of registered models does not decide, the modules do: transformers has one per model type, vLLM and SGLang
one per architecture.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compat.checks.fix_commands import by_pip
from compat.diagnosis.changed_names import releases_with_option
from compat.diagnosis.frame_packages import version_of
from compat.diagnosis.inexact_names import spelled_otherwise
from compat.diagnosis.missing_names import Named
from compat.diagnosis.named_releases import of_name
from compat.interfaces.changes import support
from compat.interfaces.table import open_table
from compat.model import Finding, Fix
from compat.reports.log.frames import RaisedError

if TYPE_CHECKING:
    from compat.rules.facts import Facts


_TYPE = re.compile(r"[Mm]odel type [`'\"]?(?P<type>[\w.-]{2,60})[`'\"]? but Transformers does not recognize")
_KEY = re.compile(r"'(?P<type>[a-z][a-z\d_-]{2,60})'\s*$")
_TOKENIZER = re.compile(r"Tokenizer class (?P<name>\w{3,80}) does not exist or is not currently imported")
_NO_CLASS = re.compile(
    r"Unrecognized configuration class <class '(?P<module>transformers\.models\.\w{1,60})\.\w{1,80}\.(?P<config>\w{1,80})'>"
    r" for this kind of AutoModel: (?P<auto>\w{1,60})"
)
_ARCHITECTURE = re.compile(
    r"[Mm]odel architectures? \[['\"](?P<listed>\w{3,80})['\"][^\]\n]{0,400}\] (?:are|is) not supported"
    r"|[Mm]odel architectures \[['\"](?P<inspected>\w{3,80})['\"][^\]\n]{0,400}\] failed to be inspected"
    r"|['\"]?(?P<named>\w{3,80})['\"]? (?:has no (?:vLLM|SGLang) implementation|is not a registered model in the Transformers)"
)
_HINTS = ("but Transformers does not recognize", "is not currently imported", "Unrecognized configuration class",
          "odel architecture", "implementation", "is not a registered model")  # fmt: skip
"""Each of the messages has one of these."""
_MOST_LINES, _LONGEST = 5000, 2000
_AUTO = "transformers/models/auto/"
_SERVERS = {"vllm": "vllm.model_executor.models", "sglang": "sglang.srt.models"}
"""Where each server keeps its architectures."""
_SHORTEST = 4
"""Letters that the names of a module and an architecture have to share."""
_DOCUMENTATION = {
    "transformers": "https://huggingface.co/docs/transformers/main/en/model_doc/auto",
    "vllm": "https://docs.vllm.ai/en/latest/models/supported_models.html",
    "sglang": "https://docs.sglang.ai/supported_models/generative_models.html",
}


def unknown_model(error: RaisedError, text: str, facts: Facts) -> list[Finding]:
    """Findings for a model type, an architecture or a tokenizer class that the running release does not know."""
    if match := _NO_CLASS.search(error.message):
        return [_no_auto_class(match, error, facts)]
    if match := _TOKENIZER.search(error.message):
        known = of_name("transformers", match["name"])
        if known is None:
            return spelled_otherwise("transformers", match["name"], "in the model's tokenizer_config.json", error, facts)
        return _lacking(known, f"the tokenizer class {match['name']}", error, facts)
    if match := _TYPE.search(error.message):
        return _of_type(match["type"], error, facts, certain=True)
    if error.exception == "KeyError" and (match := _KEY.match(error.message)):
        in_auto = any(_AUTO in frame.file.replace("\\", "/") for frame in error.frames)
        return _of_type(match["type"], error, facts, certain=in_auto) if in_auto or not error.frames else []
    if match := _ARCHITECTURE.search(error.message):
        name = match["listed"] or match["inspected"] or match["named"]
        server = _server(error, text, facts)
        if (known := _registered(server, name)) is not None:
            return [] if match["inspected"] and version_of(server, facts) is None else _lacking(known, name, error, facts)
        module = _module_of(server, name)
        if module is None:
            return [_in_no_release(server, name, error, facts)]
        known = of_name(module, name) or of_name(module, None)
        if known is None or (match["inspected"] and version_of(server, facts) is None):
            return []  # every release has it, or its module fails for another reason
        return _lacking(known, name, error, facts)
    return []


def unknown_model_in(text: str, facts: Facts) -> list[Finding]:
    """The same for the first line of a text that has such a message without its exception class, as in a title."""
    for number, line in enumerate(text.split("\n")[:_MOST_LINES], 1):
        if any(hint in line for hint in _HINTS):
            error = RaisedError(exception=None, message=line[:_LONGEST], frames=(), rank=None, line=number)
            if found := unknown_model(error, text, facts):
                return found
    return []


def _server(error: RaisedError, text: str, facts: Facts) -> str:
    """Return the engine that raised the error: both use vLLM's words."""
    if "vllm" in error.message.lower():
        return "vllm"
    installed = [each for each in _SERVERS if version_of(each, facts) is not None]
    return "sglang" if installed == ["sglang"] or (installed != ["vllm"] and "sglang" in text.lower()) else "vllm"


def _registered(package: str, model: str) -> Named | None:
    """Return the releases that register a model; ``None`` if all or none do."""
    found = support(package, model)
    return None if found is None else releases_with_option(package, model, found.having, found.known)


def _of_type(kind: str, error: RaisedError, facts: Facts, *, certain: bool) -> list[Finding]:
    """``certain``: the message is about a model type; the key of another error only counts if releases differ in it."""
    module = kind.replace("-", "_").replace(".", "_")
    known = _registered("transformers", kind) or of_name(f"transformers.models.{module}", None)
    if known is not None:
        return _lacking(known, f"the model type {kind}", error, facts)
    table = open_table("transformers")
    if not certain or table is None or f"transformers.models.{module}" in table.modules():
        return []  # every release has it, so another one is at fault
    return [_in_no_release("transformers", kind, error, facts)]


def _module_of(server: str, architecture: str) -> str | None:
    """The module that is named like an architecture, or like the longest beginning of its name (``InternVLChatModel``)."""
    table, prefix = open_table(server), f"{_SERVERS[server]}."
    stem = architecture.lower().replace("_", "").partition("for")[0].removesuffix("model")
    fitting = [
        (len(short), name)
        for name in (table.modules() if table is not None else ())
        if name.startswith(prefix) and len(short := name.removeprefix(prefix).replace("_", "")) >= _SHORTEST
        and stem.startswith(short)
    ]  # fmt: skip
    return max(fitting)[1] if fitting else None


def _lacking(known: Named, what: str, error: RaisedError, facts: Facts) -> list[Finding]:
    version = version_of(known.package, facts)
    if version is not None and not known.lacked_by(version):
        return []  # this release has it: another one was running, or the error is about something else
    return [
        _finding(
            known.package,
            f"{known.package} has {what} {known.span}",
            "Model code is part of the library. A release without it cannot load the model, wherever its files"
            " come from, unless they bring their own code (trust_remote_code).",
            tuple(known.fixes(version)),
            error,
            facts,
            verdict="hit" if version is not None and not known.unread(version) else "possible",
        )
    ]


def _in_no_release(package: str, name: str, error: RaisedError, facts: Facts) -> Finding:
    table = open_table(package)
    newest = f" up to {table.versions[-1]}" if table is not None else ""
    source = f"https://github.com/{'huggingface/transformers' if package == 'transformers' else 'vllm-project/vllm'}"
    own = Fix("config", None, None, "trust_remote_code=True, if the model's repository contains code (review it first)")
    upgrade = by_pip("upgrade", package, None, f"a later release of {package}")
    checkout = Fix(
        "source-install", package, None, f"{package} from source, where a new model appears first",
        f'pip install "{package} @ git+{source}"',
    )  # fmt: skip
    return _finding(
        package,
        f"No release of {package}{newest} has the model {name}",
        f"The published source of {package} has no module for it{newest}. The model is newer, or has its own code.",
        (own, upgrade, checkout) if package == "transformers" else (upgrade, own),
        error,
        facts,
    )


def _no_auto_class(match: re.Match[str], error: RaisedError, facts: Facts) -> Finding:
    table, config = open_table("transformers"), match["config"]
    stem = config.removesuffix("Config")
    classes = sorted(name for name in (table.names_in(match["module"]) if table else ()) if name.startswith(f"{stem}For"))
    general = next((name for name in classes if name.endswith("ForConditionalGeneration")), None)
    use = general or next(iter(classes), None)
    fixes = [by_pip("upgrade", "transformers", None, "a later release may register it")]
    if use is not None:
        fixes.insert(0, Fix("config", None, None, f"from transformers import {use} (the class of this model)"))
    return _finding(
        "transformers",
        f"transformers registers no {match['auto']} for {config}",
        f"{match['auto']} only loads the types that this release lists for it. A model of text and images, for instance, has"
        " its own class, and code written for text models does not fit it."
        + (f" Classes of {stem}: {', '.join(classes[:6])}." if classes else ""),
        tuple(fixes),
        error,
        facts,
    )


def _finding(
    package: str, title: str, why: str, fixes: tuple[Fix, ...], error: RaisedError, facts: Facts, *, verdict: str = "possible"
) -> Finding:
    return Finding(
        rule="symptom-unknown-model",
        origin="surface",
        verdict=verdict,
        title=title,
        why=why,
        packages={package: version_of(package, facts)},
        fixes=fixes,
        evidence=(_DOCUMENTATION[package],),
        here=f"the error on line {error.line} of the text",
    )
