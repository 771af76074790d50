"""Launch command options and configuration keys that the installed release does not accept, and the table of options.

Only parsers that reject unknown options are checked, and only options that some release accepts: an option that no release
has is more often one missing from the tables than a misspelling.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TypedDict

from compat.checks.code import fixes_of, lacked_by, releases
from compat.checks.fix_commands import nearest_fixes
from compat.checks.interfaces import releases_in
from compat.errors import InputError
from compat.files import read_table
from compat.interfaces.announced import advised, curated
from compat.interfaces.at_once import place_of
from compat.interfaces.code.needs import Code, CodeFile, CodeNeed, CodeNeeds
from compat.interfaces.code.renamed import taken
from compat.interfaces.needs import Need
from compat.interfaces.source.module import module_of
from compat.interfaces.source.records import Class
from compat.interfaces.table import header_of, path_of, tracked
from compat.interfaces.world import World
from compat.model import Environment, Finding, Fix, Location, Option, Workload
from compat.records import cached, record
from compat.syntax.python import syntax_tree
from compat.versions import key_of
from compat.workload.reading import SCRIPT
from compat.workload.trainers import TRAINERS

_LLAMAFACTORY = ("ModelArguments", "DataArguments", "TrainingArguments", "FinetuningArguments", "GeneratingArguments")
_LAUNCHER = "accelerate launch"
_EVERYWHERE = frozenset(("config", "accelerate_config", "help", "env"))
"""Options and configuration keys that trl's own parser accepts."""
_REFUSALS = {
    "vllm serve": "vLLM's argument parser exits with an error on an unknown option.",
    "sglang serve": "SGLang's argument parser exits with an error on an unknown option.",
    _LAUNCHER: "The argument parser of accelerate launch exits with an error on an unknown option.",
    "accelerate config": "accelerate launch rejects a configuration file with an unknown key.",
}
_OF_CLASSES = "The parser accepts the fields of {classes}, and raises ValueError for anything else."


@record(frozen=True)
class _Parser:
    """The dataclasses whose fields are options, most specific first, and the other accepted options."""

    classes: tuple[str, ...]
    own: frozenset[str] = frozenset()


def judge(environment: Environment) -> Iterator[Finding]:
    """Yield an error for each option that the installed release does not accept and another release does."""
    workload = environment.workload
    assert workload is not None
    installed = releases_in(environment, images=True)
    seen: set[tuple[str, str]] = set()
    programs = open_parsers()
    for option in workload.options or ():
        key = option.parser, option.name.lstrip("-").replace("-", "_")
        if key in seen:
            continue
        seen.add(key)
        if option.parser in programs:
            program = programs[option.parser]
            version = installed.get(program.package)
            if version is not None and program.takes(version, key[1].replace("_", "-")) is False:
                yield _of_program(option, version)
            continue
        parser = classes_of(option.parser, workload)
        if parser is not None:
            launcher = programs[_LAUNCHER].releases_with(key[1].replace("_", "-"))
            if not (option.parser.startswith("trl ") and launcher):  # passed on to accelerate launch
                yield from _of_classes(option, key[1], parser, installed)


def _of_program(option: Option, version: str) -> Finding:
    """The finding for an option of a program in the table of parsers."""
    program = open_parsers()[option.parser]
    name = option.name.lstrip("-").replace("_", "-")
    having = program.releases_with(name)
    fixes = nearest_fixes(program.package, version, having, program.versions, f"accepts {option.name}")
    instead = program.instead(name, version)
    said: tuple[Fix, ...] = ()
    if instead is not None:
        said = (Fix("config", None, None, f"use {instead} instead of --{name}" if instead[0] == "-" else instead),)
    elif having and key_of(having[-1]) < key_of(version):
        said = (Fix("config", None, None, f"leave --{name} out: {program.package} {version} has no such option"),)
    return finding_of(
        option, program.package, version, f"{option.name} is not an option of {option.parser} in {program.package} {version}",
        _REFUSALS[option.parser], (*said, *fixes),
    )  # fmt: skip


def classes_of(parser: str, workload: Workload) -> _Parser | None:
    """The dataclasses that define a parser's options; ``None`` if unknown."""
    name, _, task = parser.partition(" ")
    if parser == "accelerate config":
        return _Parser(("accelerate.commands.config.config_args.ClusterConfig",), frozenset(("dynamo_backend", "fp16")))
    if name == "llamafactory":
        return _Parser(tuple(f"llamafactory.hparams.{each}" for each in _LLAMAFACTORY), frozenset(("config",)))
    if name == "trl" and task in TRAINERS:
        config = f"{TRAINERS[task].removesuffix('Trainer')}Config"
        scripts = f"trl.scripts.{task}.{config.removesuffix('Config')}ScriptArguments"
        others = ("trl.ModelConfig", "trl.ScriptArguments", scripts, "trl.DatasetMixtureConfig")
        return _Parser((f"trl.{config}", *others), _EVERYWHERE)
    if parser == SCRIPT and workload.code and len(workload.code) == 1:
        from compat.workload.script import tree_of

        try:
            found = parser_of(tree_of(workload.code[0]))
        except InputError:
            return None  # reported where the code itself is read
        if found is not None and found.classes:
            return _Parser(found.classes, found.own | {"config", "help", "local_rank"})
    return None


def _of_classes(option: Option, name: str, parser: _Parser, installed: Mapping[str, str]) -> Iterator[Finding]:
    if name in parser.own or name.removeprefix("no_") in parser.own:
        return
    known, packages = releases(), tracked()
    there = []
    for each in parser.classes:
        module, _, last = each.rpartition(".")
        package = packages.get(module.partition(".")[0])
        if package is None or package not in installed:
            return
        world = known.world(package, installed[package])
        kind = "unknown" if world is None else world.imported(module, last).kind
        if kind == "class":
            there.append((package, each))
        elif kind not in ("absent", "never"):
            return
    if not there or there[0][1] != parser.classes[0]:
        return
    wanted = {each: _class_need(each, name) for _, each in there}
    if any(_may_take(package, wanted[each][1], installed) for package, each in there):
        return
    for package, each in there:  # report the class that has the option in another release
        if _in_some_release(package, wanted[each][1].need):
            yield _of_class(option, package, each, wanted[each], installed, [last.rpartition(".")[2] for _, last in there])
            return


def _may_take(package: str, wanted: CodeNeed, installed: Mapping[str, str]) -> bool:
    """Whether a class may accept an option: as a field name, an abbreviation of one, or its ``no_`` form."""
    if lacked_by(releases(), package, installed, wanted.need) is None:
        return True
    name, need = wanted.need.keywords[0], wanted.need
    if name.startswith("no_") and lacked_by(releases(), package, installed, need._replace(keywords=(name[3:],))) is None:
        return True
    fields: set[str] = set()
    while package in installed and (world := releases().world(package, installed[package])) is not None:
        fields |= taken(world, need)
        lean = releases().answer(package, installed[package], need).lean
        if lean is None:
            break
        package, need = lean.package, lean.need
    return any(field.startswith(name) for field in fields)


def _in_some_release(package: str, need: Need) -> bool:
    """Whether some release has the field, in the class itself or in a base class from another package."""
    table, leans = releases().table(package), set()
    for version in reversed(table.versions if table is not None else ()):
        world, answer = releases().world(package, version), releases().answer(package, version, need)
        if answer.met or (world is not None and _has_field(world, need)):
            return True
        if answer.lean is not None:
            leans.add((answer.lean.package, answer.lean.need))
    return any(_in_some_release(other, left) for other, left in leans if other != package)


def _has_field(world: World, need: Need) -> bool:
    owner = world.find(need.target)
    classes = [each.definition for each in world.bases(owner)[0]] if owner.kind == "class" else []
    return any(field == need.keywords[0] for each in classes if isinstance(each, Class) for field, _ in each.fields)


def _class_need(dotted: str, name: str) -> tuple[CodeNeeds, CodeNeed]:
    """The need of a call of the class with this field as keyword argument, derived from generated code."""
    module, _, last = dotted.rpartition(".")
    source = f"from {module} import {last}\n{last}(*_, {name}=0)\n"
    record_ = module_of(syntax_tree(source), source.encode(), "asked")
    wanted = CodeNeeds(Code((CodeFile("", record_, lambda _: ""),)), tracked())
    return wanted, next(each for each in wanted.all if each.need.kind == "call")


def _of_class(
    option: Option,
    package: str,
    dotted: str,
    wanted: tuple[CodeNeeds, CodeNeed],
    installed: Mapping[str, str],
    classes: list[str],
) -> Finding:
    known = releases()
    all_, each = wanted
    at = lacked_by(known, package, installed, each.need) or package
    fixes = tuple(fixes_of(each, package, at, all_, installed, known, nowhere=False, what=f"accepts {option.name}"))
    version = installed[package]
    title = f"{option.name} is not an option of {package} {version}'s {dotted.rpartition('.')[2]}"
    why = _REFUSALS.get(option.parser) or _OF_CLASSES.format(classes=", ".join(classes))
    return finding_of(option, package, version, title, why, fixes)


def finding_of(option: Option, package: str, version: str, title: str, why: str, fixes: tuple[Fix, ...]) -> Finding:
    path, _, line = option.place.rpartition(":")
    location = Location(path, int(line)) if path and line.isdecimal() else None
    return Finding(
        rule=f"option-{package}-{option.name.lstrip('-').replace('_', '-')}", origin="surface",
        title=title, why=why, packages={package: version}, facts=("workload",),
        fixes=fixes, here=f"{option.name}: {option.place}", location=location,
    )  # fmt: skip


# --- The dataclasses that a script passes to the argument parser of transformers or trl, from its syntax tree.


_PARSERS = ("transformers.HfArgumentParser", "trl.TrlParser", "trl.commands.cli_utils.TrlParser")
_TOLERANT = frozenset(("parse_known_args", "parse_known_intermixed_args"))
"""Methods that return unknown options instead of rejecting them."""


@record(frozen=True)
class ScriptParser:
    """``classes`` are dotted names of dataclasses in packages, ``own`` the options that the script defines itself."""

    classes: tuple[str, ...]
    own: frozenset[str]


def parser_of(tree: ast.Module) -> ScriptParser | None:
    """The options that a script's parser accepts; ``None`` without exactly one parser, or if not all options are known."""
    imported = dict(_imported(tree))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    parsers = [call for call in calls if imported.get(_name(call.func)) in _PARSERS]
    if len(parsers) != 1 or any(_tolerates(call) for call in calls):
        return None
    given = parsers[0].args[0] if parsers[0].args else next((each.value for each in parsers[0].keywords if each.arg), None)
    listed = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
    outside: list[str] = []
    own = {_text(call.args[0]) for call in calls if _name(call.func) == "add_argument" and call.args}
    for each in listed:
        if not isinstance(each, ast.Name) or not _resolve(each.id, imported, classes, outside, own, set()):
            return None
    return ScriptParser(tuple(outside), frozenset(name.lstrip("-") for name in own))


def _resolve(
    name: str, imported: dict[str, str], classes: dict[str, ast.ClassDef], outside: list[str], own: set[str], seen: set[str]
) -> bool:
    """Add the fields of a class in the script, or the name of an imported class; return whether it was resolved."""
    if name in imported:
        outside.append(imported[name])
        return True
    node = classes.get(name)
    if node is None or name in seen:
        return False
    own |= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)}
    return all(
        isinstance(base, ast.Name)
        and (base.id == "object" or _resolve(base.id, imported, classes, outside, own, {*seen, name}))
        for base in node.bases
    )


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)


def _tolerates(call: ast.Call) -> bool:
    rest = any(each.arg == "return_remaining_strings" for each in call.keywords)
    return rest or _name(call.func) in _TOLERANT


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


# --- The command-line options that programs accept in each release; ``scripts/flags`` extracts them from published source.


MAGIC = b"surfflag"


class _Content(TypedDict):
    """A parser in the file: its options and the options without a parser, as sets of releases; replacements of options."""

    package: str
    versions: list[str]
    flags: dict[str, int]
    instead: dict[str, str]
    unread: int


class Parser:
    """The options of one program in every known release of its package; :attr:`versions` oldest first."""

    def __init__(self, content: _Content) -> None:
        self.package = content["package"]
        self.versions = tuple(content["versions"])
        self._flags = content["flags"]
        self._instead = content["instead"]
        self._unread = content["unread"]

    def takes(self, version: str, name: str) -> bool | None:
        """Return whether a release accepts an option; ``None`` if unknown, or if no release has the option.

        Names omit the leading dashes and use ``-`` for ``_``. An option may be abbreviated, as :mod:`argparse` allows,
        negated (``no-``), and followed by a dot and a key.
        """
        at = place_of(self.versions, version)
        name = name.partition(".")[0]
        if at is None or self._unread >> at & 1 or name not in self._flags:
            return None
        now = (each for each, mask in self._flags.items() if mask >> at & 1)
        return any(each.startswith(name) or name.removeprefix("no-") == each for each in now)

    def releases_with(self, name: str) -> tuple[str, ...]:
        """Return the releases that accept an option."""
        mask = self._flags.get(name, 0)
        return tuple(version for at, version in enumerate(self.versions) if mask >> at & 1)

    def instead(self, name: str, version: str | None = None) -> str | None:
        """Return what to pass instead of a removed option in a release, or else in the newest one that is known to lack it.

        It is what the curated table says, the package's warnings, or the option's help text, and an option that the release
        accepts.
        """
        if version is None:
            version = next((each for each in reversed(self.versions) if self.takes(each, name) is False), None)
        if version is None:
            return None
        advice = advised(self.package, name.replace("-", "_"))
        stated = advice.written if advice is not None else None
        known = curated(self.package, f"--{name}")
        for text in (known, None if stated is None else self._as_option(stated), self._of_help(name)):
            if text is not None and (text[0] != "-" or self.takes(version, text.split()[0].partition("=")[0].lstrip("-"))):
                return text
        return None

    def _as_option(self, name: str) -> str:
        """An option, given as such or as the field of its name: ``eplb_config.window_size``."""
        option, dot, key = name.partition(".")
        return name if name.startswith("--") else f"--{option.replace('_', '-')}{dot}{key}"

    def _of_help(self, name: str) -> str | None:
        return f"--{self._instead[name]}" if name in self._instead else None


@cached
def open_parsers() -> dict[str, Parser]:
    """Return the parsers of the shipped table by program; the table is opened once."""
    content, _ = header_of(read_table(path_of("flags")), MAGIC)
    return {name: Parser(each) for name, each in content.items()}
