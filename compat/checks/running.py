"""What a script runs in the installed environment: imports that fail there, and errors about packages that it never reaches.

Both are read from the files of the environment, so they hold for every package, known to a table or not. An error about a
package that the script never comes to is in its environment, but not its problem.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from compat.checks.code import code_needs, providers, releases
from compat.checks.fix_commands import by_pip
from compat.interfaces.code.needs import Code
from compat.interfaces.import_statements import Statement
from compat.interfaces.installed import Files, Followed
from compat.interfaces.source.records import AVAILABLE, BRANCH, FUNCTION, GUARDED
from compat.interfaces.table import tracked
from compat.model import Environment, Finding, Fix, normalized
from compat.records import replace
from compat.syntax.python import syntax_tree
from compat.versions import key_of
from compat.workload.wrappers import is_python

_SCRIPT = ""
"""Stands for the script among the importers."""
_REMOVED = {
    (3, 12): ("asynchat", "asyncore", "distutils", "imp", "smtpd"),
    (3, 13): (
        "aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis", "nntplib",
        "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib",
    ),
}  # fmt: skip
"""Modules that a release of Python no longer has."""
_BACK = {"pkg_resources": ("setuptools", "<82", "the last setuptools with pkg_resources"),
         "distutils": ("setuptools", "", "setuptools provides distutils")}  # fmt: skip
"""Missing modules that a release of a distribution provides."""
_IMPORTS = "https://docs.python.org/3/reference/import.html"
_PROTOBUF = "https://protobuf.dev/news/2022-05-06/"
_BY_NAME = {
    "transformers": (
        "integrations",
        "quantizers",
        "modeling_utils",
        "generation.utils",
        "image_utils",
        "tokenization_utils_fast",
    ),
    "diffusers": ("loaders", "quantizers", "models.attention_processor", "pipelines.pipeline_utils"),
}
"""What packages load by the name of a model or its configuration, beyond the model's own module."""
_DYNAMIC = re.compile(r"\b(?:import_module|__import__|subprocess|runpy|os\.system|exec)\b")
_ELSEWHERE = re.compile(r"\b(?:sys\.path|sys\.modules|meta_path|addsitedir)\b")
"""What lets a script import something that is not in the environment's folders."""
_REPORTS = re.compile(r"\breport_to\s*=\s*([^\n)]*)")
_QUOTED = re.compile(r"[\"'](\w+)[\"']")
_REPORTED = {"tensorboard": "tensorboard.compat.proto.event_pb2"}
"""What the callback of transformers for a logger imports, if not the logger itself."""


class Script:
    """What the code of a workload runs in the folders of an environment."""

    def __init__(self, environment: Environment, code: tuple[str, ...]) -> None:
        self.environment = environment
        self.code = code_needs(code).code if code else Code(())
        self._own = [os.path.dirname(os.path.abspath(path)) for path in code[:1]]
        self.files = Files((*self._own, *(environment.folders or ())), _built_in(environment.python))
        self._versions = {copy.name: copy.version for copy in environment.distributions or () if copy.version}
        self.always = Followed(self.files, self._home).follow(self._statements(sure=True))

    def _statements(self, *, sure: bool) -> Iterator[Statement]:
        """What the command imports before it starts the script, what the script imports, and the loggers it names."""
        program = self.environment.workload.program if self.environment.workload is not None else None
        command = self._command(program) if program and not is_python(program) else None
        if command is not None:
            yield Statement(_SCRIPT, program or "", command, None)
        optional = GUARDED | AVAILABLE | BRANCH | FUNCTION
        for file in self.code.files:
            for each in file.module.imports:
                if each.module and not (sure and each.flags & optional):
                    yield Statement(_SCRIPT, file.path, each.module, each.name, file.place(each.line))
            for logger in {name for found in _REPORTS.finditer(_text_of(file.path)) for name in _QUOTED.findall(found[1])}:
                if self.files.find(logger) is not None:
                    yield Statement(_SCRIPT, file.path, _REPORTED.get(logger, logger), None)

    def _command(self, program: str) -> str | None:
        """The module of an installed command."""
        stated = re.compile(rf"^{re.escape(program)}\s*=\s*([\w.]+)", re.MULTILINE)
        for folder in self.files.folders:
            for info in self.files.listed(folder):
                if info.endswith(".dist-info"):
                    text = _text_of(os.path.join(folder, info, "entry_points.txt"))
                    found = stated.search(text, max(0, text.find("[console_scripts]")))
                    if found:
                        return found[1]
        return None

    def _home(self, module: str, name: str) -> str | None:
        package = tracked().get(module.partition(".")[0])
        version = self._versions.get(package or "")
        world = releases().world(package, version) if package and version else None
        meaning = None if world is None else world.imported(module, name)
        return meaning.module if meaning is not None and meaning.kind in ("class", "function", "value", "module") else None

    def comes_to(self, tops: frozenset[str]) -> bool:
        """Whether the script may reach one of these top-level modules, because it is installed or loaded by name."""
        return not self._is_known or not tops.isdisjoint(self._reached)

    def asks_for(self, module: str) -> bool:
        """Whether a module that is not installed is imported at import time by anything that the script may reach."""
        missing = (*self.always.missing, *self._possible.missing)
        return not self._is_known or any(each.module.partition(".")[0] == module for each in missing)

    @property
    def _is_known(self) -> bool:
        return self._possible.complete and not self._possible.unclear and not self.files.hooked

    @cached_property
    def _possible(self) -> Followed:
        by_name = [
            Statement(_SCRIPT, module, module, None)
            for package, parts in _BY_NAME.items() if package in self.always.run
            for part in parts
            for module in (f"{package}.{part}", *self.files.below(f"{package}.{part}")) if self.files.find(module) is not None
        ]  # fmt: skip
        found = Followed(self.files, self._home, but=self.always.dispensable())
        return found.follow((*self._statements(sure=False), *by_name))

    @cached_property
    def _reached(self) -> frozenset[str]:
        return frozenset(module.partition(".")[0] for module in (*self.always.run, *self._possible.run))

    def is_judged_elsewhere(self, each: Statement) -> bool:
        """Whether a table knows what a statement of the script imports, or it may import something outside the environment."""
        top = each.module.partition(".")[0]
        owner = self.owner(top)
        if not each.text or owner is None or top in self.code.tops | self.code.shadowed or self.files.find(top) is None:
            return True
        if any(_ELSEWHERE.search(_text_of(file.path)) for file in self.code.files):
            return True
        world = releases().world(owner, self._versions[owner])
        return world is not None and world.imported(each.module, each.name).kind != "unknown"

    def hiding(self, top: str) -> str | None:
        """The file next to the script that is imported in place of a module of an installed distribution, if there is one."""
        path = self.files.find(top)
        beside = [os.path.join(folder, *file) for folder in self._own for file in ((f"{top}.py",), (top, "__init__.py"))]
        return path if path in beside and any(top in self.tops(name) for name in self._versions) else None

    def starts_others(self) -> bool:
        """Whether the code could not be read, or may import or start something that no statement names."""
        return bool(self.code.problems) or any(_DYNAMIC.search(_text_of(file.path)) for file in self.code.files)

    def has_stand_ins(self, module: str, names: Iterable[str]) -> bool:
        """Whether a module is only loaded for a name, and its package gives another one for it if something is missing."""
        package = module if module in self.always.lazily else ""
        defined = re.compile(rf"^(?:class|def) (?:{'|'.join(map(re.escape, names)) or '(?!)'})\b", re.MULTILINE)
        while package:
            root = self.files.find(package)
            folder = os.path.join(os.path.dirname(root), "utils") if root else ""
            stand_ins = [name for name in self.files.listed(folder) if name.startswith("dummy_")] if folder else []
            if any(defined.search(_text_of(os.path.join(folder, name))) for name in stand_ins):
                return True
            package = package.rpartition(".")[0]
        return False

    def owner(self, module: str) -> str | None:
        """The installed distribution of a module."""
        top = module.partition(".")[0]
        for name in (*providers(top), normalized(top)):
            if name in self._versions:
                return name
        return next((name for name in self._versions if top in self.tops(name)), None)

    def version(self, name: str) -> str | None:
        return self._versions.get(name)

    def versions_of(self, *names: str | None) -> dict[str, str | None]:
        return {name: self._versions.get(name) for name in names if name is not None}

    def below(self, path: str) -> str:
        """A path as it is written in the environment's folders."""
        above = [folder for folder in self.files.folders if path.startswith(folder + os.sep)]
        return os.path.relpath(path, max(above, key=len)) if above else path

    def tops(self, name: str) -> frozenset[str]:
        """The top-level modules of an installed distribution, from its list of files."""
        for folder in self.files.folders:
            for info in self.files.listed(folder):
                if info.endswith(".dist-info") and normalized(info.split("-")[0]) == name:
                    record = _text_of(os.path.join(folder, info, "RECORD"))
                    places = {line.partition(",")[0].partition("/")[0] for line in record.splitlines()}
                    return frozenset(
                        place.partition(".")[0] for place in places if not place.startswith(".") and "dist-info" not in place
                    )
        return frozenset()


def _text_of(path: str) -> str:
    """The text of a file, "" if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


_scripts: list[tuple[Environment, Script]] = []


def script_of(environment: Environment) -> Script | None:
    """What the workload's code runs, read once; ``None`` if there is no code, or no folder to look into."""
    workload = environment.workload
    if workload is None or environment.folders is None or not environment.distributions_complete:
        return None
    if not workload.code and not workload.program:
        return None
    if not _scripts or _scripts[0][0].folders != environment.folders or _scripts[0][0].workload != environment.workload:
        _scripts[:] = [(environment, Script(environment, workload.code or ()))]
    return _scripts[0][1]


def judge(environment: Environment) -> Iterator[Finding]:
    """Yield errors for modules and names that something the script always imports is missing, in the order they are met."""
    script = script_of(environment)
    if script is None:
        return
    seen = {f"missing-{copy.name}" for copy in environment.distributions or () if script.version(copy.name) is None}  # planned
    for each in script.always.missing:
        hidden = script.hiding(each.module.partition(".")[0]) is not None
        if (each.importer == _SCRIPT and not hidden and script.is_judged_elsewhere(each)) or not _certain(script, each):
            continue
        finding = _missing(script, each)
        if finding.rule not in seen:
            seen.add(finding.rule)
            yield finding
    yield from _old_protobuf(script)


@functools.cache  # the environment is checked with other releases, too
def _certain(script: Script, each: Statement) -> bool:
    """Whether a parser, too, finds the whole chain of imports unguarded, and nothing else provides the module."""
    if script.files.hooked and script.files.find(each.module.partition(".")[0]) is None:
        return False
    if each.module.partition(".")[0] == "distutils" and script.files.find("_distutils_hack") is not None:
        return False  # setuptools provides it
    chain = script.always.chain(each)
    if not all(step.importer == _SCRIPT or _at_margin(step) for step in chain):
        return False
    names = [step.name for step in chain if step.name]
    if script.files.find(each.module) is None and any(script.has_stand_ins(step.importer, names) for step in chain):
        return False
    return not script.always.registers(each.module, each.importer)


def _at_margin(step: Statement) -> bool:
    last = step.module.rpartition(".")[2]
    modules, names = _margin(step.path)
    return (step.name is None and step.module in modules) or not names.isdisjoint(((last, step.name), ("", step.name)))


@functools.cache
def _margin(path: str) -> tuple[frozenset[str], frozenset[tuple[str, str | None]]]:
    """What a file imports unconditionally, up to a ``raise``: modules, and names with the last part of their module's name."""
    modules: set[str] = set()
    names: set[tuple[str, str | None]] = set()
    try:
        body = syntax_tree(_text_of(path)).body
    except (SyntaxError, ValueError, RecursionError):
        return frozenset(), frozenset()
    for node in _always(body):
        if isinstance(node, ast.Raise):
            break
        if isinstance(node, ast.Import):
            modules.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(((node.module or "").rpartition(".")[2], each.name) for each in node.names)
    return frozenset(modules), frozenset(names)


def _always(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module that are not under a condition; of a ``try`` only if its handlers raise."""
    for node in body:
        if isinstance(node, ast.Try) and node.handlers and all(isinstance(each.body[0], ast.Raise) for each in node.handlers):
            yield from _always(node.body)
        else:
            yield node


def _missing(script: Script, each: Statement) -> Finding:
    owner = script.owner(each.importer) if each.importer != _SCRIPT else None
    absent = script.files.find(each.module) is None
    error, said = ("ImportError", f"cannot import name '{each.name}' from '{each.module}'")
    if absent:
        error, said = "ModuleNotFoundError", f"No module named '{each.module}'"
    steps = dict.fromkeys(
        os.path.basename(step.path) if step.importer == _SCRIPT else step.importer for step in script.always.chain(each)
    )
    place = each.text if each.importer == _SCRIPT else f"{script.below(each.path)}:{each.line}"
    finding = Finding(
        rule="", origin="surface", title="",
        why=f"{place} always runs with this script ({' → '.join(steps)}): {error}: {said}.",
        packages=script.versions_of(owner), facts=("workload",), evidence=(_IMPORTS,),
    )  # fmt: skip
    by = f"{owner} {script.version(owner)}" if owner is not None else each.importer or os.path.basename(each.path)
    if script.files.find(each.module.partition(".")[0]) is None:
        return _without_module(script, finding, by, each.module.partition(".")[0])
    of = script.owner(each.module)
    hiding = script.hiding(each.module.partition(".")[0])
    if hiding is not None:
        return _hidden(script, finding, hiding, of)
    what = each.module if absent or each.name is None else f"{each.module}.{each.name}"
    packages = script.versions_of(owner, of)
    return replace(
        finding, rule=f"surface-{owner or by}-{of or each.module}-installed", packages=packages,
        title=f"{by} imports {what}, which {_with_version(of or each.module, packages)} does not have", here=_listed(packages),
    )  # fmt: skip


def _hidden(script: Script, finding: Finding, path: str, of: str | None) -> Finding:
    """The finding that a file next to the script is imported instead of an installed package."""
    packages = script.versions_of(of)
    folder, file = os.path.split(path)
    file = f"{os.path.basename(folder)}/" if file == "__init__.py" else file
    return replace(
        finding, rule=f"hidden-{of}", packages=packages, here=_listed(packages),
        title=f"{file} next to the script hides the installed {_with_version(of or '', packages)}",
        why=f"{finding.why} Python looks in the folder of the script first, so packages that need {of} get this file as well.",
        fixes=(Fix("config", text=f"rename {file}, which is in {folder}"),),
    )  # fmt: skip


def _without_module(script: Script, finding: Finding, by: str, top: str) -> Finding:
    """The finding that nothing provides a top-level module."""
    owner = next(iter(finding.packages), None)
    removed = next((python for python, names in _REMOVED.items() if top in names), None)
    known = providers(top)
    name = (*known, normalized(top))[0]
    fixes: tuple[Fix, ...]
    what, fixes = "which is not installed", (by_pip("pin", name, None, f"{name} provides {top}"),)
    if top in _BACK:
        name, spec, text = _BACK[top]
        what = f"which {_with_version(name, script.versions_of(name))} does not have"
        fixes = (
            Fix(
                "downgrade" if spec else "pin",
                name,
                spec or None,
                text,
                f'pip install "{name}{spec}"' if spec else f"pip install {name}",
            ),
        )
    elif removed is not None:
        what, fixes = f"which Python {removed[0]}.{removed[1]} removed", ()
    elif not known:
        fixes = ()
    packages = {**script.versions_of(owner), **({} if removed and not fixes else {name: script.version(name)})}
    return replace(
        finding, rule=f"missing-{name}", title=f"{by} imports {top}, {what}", packages=packages, fixes=fixes,
        here=_listed(packages),
    )  # fmt: skip


def _old_protobuf(script: Script) -> Iterator[Finding]:
    """Code generated by a protoc before 3.19 with a protobuf that rejects it."""
    version = script.version("protobuf")
    chosen = (script.environment.variables or {}).get("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION")
    if version is None or key_of(version) < key_of("4") or chosen == "python":
        return
    for module in script.always.old_protobuf():
        owner = script.owner(module)
        packages = script.versions_of(owner, "protobuf")
        yield Finding(
            rule=f"generated-{owner or module}-protobuf", origin="surface",
            title=f"{_with_version(owner or module, packages)} has code that protobuf {version} refuses to load",
            why=f"{module}, which this script imports, was generated by a protoc before 3.19. protobuf 4 raises TypeError: "
            "Descriptors cannot be created directly.",
            packages=packages, facts=("workload",),
            fixes=(by_pip("downgrade", "protobuf", "<4", "a protobuf that loads it"),),
            evidence=(_PROTOBUF,), here=_listed(packages),
        )  # fmt: skip
        return


def _listed(packages: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages.items() if version)


def _with_version(name: str, packages: Mapping[str, str | None]) -> str:
    return f"{name} {packages[name]}" if packages.get(name) else name


def without_repeats(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings without those of :func:`judge` that another error is about as well."""
    own = [each for each in findings if each.evidence in ((_IMPORTS,), (_PROTOBUF,))]
    others = [each for each in findings if each not in own and each.verdict == "hit" and each.severity == "error"]
    return tuple(each for each in findings if each not in own or not any(_covers(other, each) for other in others))


def _covers(other: Finding, finding: Finding) -> bool:
    """Whether another error is about the same packages, or names those that it does not list."""
    said = f"{other.rule} {other.title} {other.why}"
    about = [name for name, version in finding.packages.items() if version is not None]
    return all(name in other.packages or (name not in about and name in said) for name in finding.packages)


def _built_in(python: str | None) -> frozenset[str]:
    """The modules of the standard library of a Python."""
    here = tuple(int(part) for part in (python or "0.0").split(".")[:2] if part.isdecimal())
    gone = {name for since, names in _REMOVED.items() if here >= since for name in names}
    all_of_them = {name for names in _REMOVED.values() for name in names}
    return (sys.stdlib_module_names | all_of_them | {"__main__"}) - gone
