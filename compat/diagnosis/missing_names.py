"""Names that errors report as missing: where they are defined, the releases that have them, and those that show them.

The tables cannot say that a release lacks a name that others may have from compiled code, or from a base in another
package. An error can: then the releases that show it are those to move to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from compat.checks.code import releases
from compat.checks.fix_commands import by_pip
from compat.interfaces.announced import is_telling
from compat.interfaces.at_once import place_of
from compat.interfaces.homes import public_homes
from compat.interfaces.needs import Need
from compat.interfaces.source.records import Class
from compat.interfaces.table import open_table, tracked
from compat.model import Fix
from compat.records import record, replace
from compat.versions import is_final, is_version, key_of


@record(frozen=True)
class Named:
    """A name (``trl.GRPOConfig``), the releases of ``package`` that have it, and its name in other releases.

    ``lacks``: known releases that certainly lack it, in order; ``leans``: some inherit it from a base in another package;
    ``read``: the releases in the tables, in order.
    ``again``: the first release of a later series that has it again, after one that does not.
    ``doubt`` states what was guessed; ``derived``: the class in the message is assumed to derive from this one.
    ``call``: the name is a call that these releases accept. ``partly``: of some of them it is only not known that they lack it.
    ``older``: all releases in the tables have it, so that a release from before the first of them must lack it.
    ``renamed_before``: ``renamed`` is the name in the releases before; those after do not have it under either.
    ``advice``: what the package says of a name that it removed and that has no other one.
    """

    what: str
    package: str
    specifier: str
    span: str
    why: str
    renamed: str | None
    lacks: tuple[str, ...]
    leans: bool
    read: tuple[str, ...]
    doubt: str = ""
    derived: bool = False
    again: str | None = None
    call: bool = False
    partly: bool = False
    older: bool = False
    renamed_before: bool = False
    advice: str | None = None

    def lacked_by(self, version: str) -> bool:
        """Whether a release lacks the name; a development version counts as the release it precedes.

        A release that the tables do not have may lack what the nearest older or newer one in them lacks; the number of a
        development version among them (``0.0.0.dev7``) says nothing.
        """
        known = version.partition(".dev")[0]
        if not self.unread(version):
            return place_of(self.lacks, known) is not None
        if self.older:
            return key_of(version) < key_of(self.read[0])
        at = sum(key_of(each) < key_of(version) for each in self.read)
        return any(each in self.lacks for each in self.read[max(at - 1, 0) : at + 1])

    def unread(self, version: str) -> bool:
        """Whether a release is in none of the tables: older or newer than all, or a build between two of them."""
        return is_version(version) and ".dev" not in version and place_of(self.read, version) is None

    @property
    def gone(self) -> bool:
        """Whether the newest release no longer has the name."""
        return "<=" in self.specifier

    @property
    def title(self) -> str:
        return f"{self.what} {'works with' if self.call else 'is in'} {self.package} {self.span}"

    def sentence(self) -> str:
        """How the releases are known, as one or two sentences."""
        return f"Its published source says so{f': {self.why}' if self.why else ''}.{self.doubt}"

    def _is_before(self, installed: str | None) -> bool:
        first = next((each for each in self.read if each not in self.lacks), None)
        return installed is not None and first is not None and is_version(installed) and key_of(installed) < key_of(first)

    def fixes(self, installed: str | None) -> Iterator[Fix]:
        """Yield the fixes: the name in other releases, if known, and a release that has this one."""
        kind = "pin"
        if installed is not None:
            kind = "downgrade" if self.gone else "upgrade"
        if self.renamed is not None and (not self.renamed_before or self._is_before(installed)):
            other = ", its name in the other releases" if " " not in self.renamed.partition("(")[0] else " instead"
            yield Fix("config", None, None, f"use {self.renamed}{other}")
        elif self.advice is not None and not self._is_before(installed):
            yield Fix("config", None, None, self.advice)
        has = f"{'accepts' if self.call else 'has'} {self.what}"
        yield by_pip(kind, self.package, self.specifier, has)
        if self.again is not None:
            spec = f">={self.again}"
            yield by_pip("upgrade", self.package, spec, f"{has} again")


LIKELY = (
    "trl", "transformers", "peft", "accelerate", "datasets", "vllm", "sentence_transformers", "diffusers", "unsloth",
    "huggingface_hub", "deepspeed", "tokenizers", "pytorch_lightning",
)  # fmt: skip
"""Modules whose classes and functions appear in errors without the module's name."""
OF_TORCH = (
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.utils", "torch.nn.parallel", "torch.optim", "torch.utils.data",
    "torch.utils.checkpoint", "torch.amp", "torch.distributed", "torch.distributed.fsdp", "torch.distributed.device_mesh",
)  # fmt: skip
"""Modules of torch whose classes and functions appear in errors without the module's name; asked after all others."""
_SHORT = 3
"""Letters of a word that too many names begin with."""
_SHORT_NAMES = {"FSDP": "FullyShardedDataParallel", "DDP": "DistributedDataParallel"}
"""The names under which nearly all code imports these classes."""


def module_of_name(name: str, modules: Sequence[str], *, anywhere: bool = True) -> str | None:
    """Return the module that has a name: the first one of :func:`modules_of_name`."""
    return next(modules_of_name(name, modules, anywhere=anywhere), None)


def modules_of_name(name: str, modules: Sequence[str], last: Sequence[str] = (), *, anywhere: bool = True) -> Iterator[str]:
    """Yield the modules that have a name: of ``modules``, :data:`LIKELY`, the model that the name begins with, and ``last``.

    A function may also have a name that begins like that of its package. ``anywhere``: if none of these has the name, and no
    frame shows where it is from, the public modules of all packages are searched.
    """
    known, packages = releases(), tracked()
    met = False
    for module in dict.fromkeys((*modules, *LIKELY, *model_modules(name), *_of_its_package(name), *last)):
        top = module.partition(".")[0]
        table = known.table(packages[top]) if top in packages else None
        need = Need("import", module, name)
        # earlier releases are sampled: every twelfth is tried
        if table is not None and any(known.answer(table.package, version, need).met for version in table.versions[::-12]):
            met = True
            yield module
    if anywhere and not met and not modules and is_telling(name):
        yield from public_homes(name)


def model_modules(name: str) -> Iterator[str]:
    """Yield the modules of the model in transformers whose name a class begins with: ``LlamaRotaryEmbedding``."""
    table = releases().table("transformers") if name[:1].isupper() else None
    prefix, word = "transformers.models.", name.lower().replace("_", "")
    kinds = {module[len(prefix) :] for module in (table.modules() if table else ()) if module.startswith(prefix)}
    fitting = [kind for kind in kinds if "." not in kind and len(kind) > 2 and word.startswith(kind.replace("_", ""))]
    if fitting:
        kind = max(fitting, key=len)
        yield from (f"{prefix}{kind}.{part}_{kind}" for part in ("modeling", "configuration", "tokenization", "processing"))


def _of_its_package(name: str) -> Iterator[str]:
    """Yield the modules with a function in the package whose name it begins with: ``liger_fused_linear_cross_entropy``."""
    word, underscore, _ = name.lstrip("_").partition("_")
    tops = [top for top in tracked() if top.partition("_")[0] == word] if underscore and name.islower() else []
    for top in tops if len(word) > _SHORT else ():
        table = open_table(tracked()[top])
        if table is not None:
            yield from (module for module in table.modules() if name in table.names_in(module))


def in_full(function: str) -> str:
    """Return a class or method with the class's full name, where nearly all code imports it under a short one."""
    top, dot, method = function.partition(".")
    return f"{_SHORT_NAMES.get(top, top)}{dot}{method}"


def with_module(function: str, modules: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Split the module off a function that is named with it (``torch.load``); it is then the first of ``modules``."""
    *parts, last = function.split(".")
    if not parts or parts[0] not in tracked():
        return function, modules
    at = next((number for number, part in enumerate(parts) if not part.islower()), len(parts))
    return ".".join((*parts[at:], last)), (".".join(parts[:at]), *modules)


CONFIGURATIONS = ("PreTrainedConfig", "PretrainedConfig")
"""The names of the base class of transformers' configurations, from 5.0 on and before."""
_LOOP = "generation_defaults"
"""What the names of the method end with that lists the defaults of generation for that class."""


def shown_in(module: str, name: str) -> Named | None:
    """Look up a name in a module that takes names from compiled code: the releases whose source or stubs show it.

    Others may have it as well, but the error says that one of them does not. ``None`` unless they are all newer or all older.
    """
    package = tracked()[module.partition(".")[0]]
    need = Need("import", module, name)
    return where_shown(package, f"{module}.{name}", partial(_answers, package, need))


def of_inherited(module: str, owner: str, name: str) -> Named | None:
    """Look up a member of a class or of its known bases, although a base in another package may have it as well."""
    package, known = tracked()[module.partition(".")[0]], releases()

    def has(version: str) -> bool:
        world = known.world(package, version)
        found = None if world is None else world.imported(module, owner)
        classes = world.bases(found)[0] if world is not None and found is not None and found.kind == "class" else []
        return any(has_member(each.definition, name) for each in classes if isinstance(each.definition, Class))

    return where_shown(package, f"{owner}.{name}", has)


def of_configuration(name: str) -> Named | None:
    """Look up an attribute that transformers' base class gives the configuration of every model, under both names of the base.

    From 4.37 to 4.57, a loop sets the defaults of generation: those that the base had set itself before.
    """
    package, known = "transformers", releases()
    table = known.table(package)

    def classes(version: str, *names: str) -> list[Class]:
        world = known.world(package, version)
        found = (world.imported(package, each).definition for each in names) if world is not None else ()
        return [each for each in found if isinstance(each, Class)]

    def own(version: str) -> bool:
        return any(has_member(each, name) for each in classes(version, *CONFIGURATIONS))

    def has(version: str) -> bool:
        by_loop = any(method.endswith(_LOOP) for each in classes(version, *CONFIGURATIONS) for method in each.methods)
        generates = by_loop and table is not None and own(table.versions[0])
        return own(version) or (generates and any(has_member(each, name) for each in classes(version, "GenerationConfig")))

    found = where_shown(package, f"{CONFIGURATIONS[-1]}.{name}", has)
    return None if found is None else replace(found, partly=False)


def has_member(made: Class, member: str) -> bool:
    return member in (*made.methods, *made.attributes, *made.instance, *dict(made.fields))


def where_shown(package: str, what: str, shows: Callable[[str], bool]) -> Named | None:
    """Return the releases that show a name; the others do not, or may have it from elsewhere.

    ``None`` unless it came or went once: the newest and the oldest release are asked, and those between them by halves.
    """
    table = releases().table(package)
    versions = [each for each in (table.versions if table is not None else ()) if is_final(key_of(each))]
    if not versions or (new := shows(versions[-1])) == shows(versions[0]):
        return None
    at = bisect_left(versions, 1, key=lambda version: shows(version) == new)
    older, newer = versions[at - 1], versions[at]
    specifier, span = (f">={newer}", f"at least from {newer} on") if new else (f"<={older}", f"at least up to {older}")
    why = f"{older if new else newer} does not show it"
    lacks = tuple(versions[:at] if new else versions[at:])
    return Named(what, package, specifier, span, why, None, lacks, leans=False, read=tuple(versions), partly=True)


def of_imported(function: str, keyword: str, modules: Sequence[str]) -> Named | None:
    """Look up a function by the modules that call it, which need not be public: the releases in which it takes an argument.

    Any argument counts as taken where the function does nothing with those that it does not name.
    """
    for module in modules:
        package, known = tracked()[module.partition(".")[0]], releases()
        table = known.table(package)
        worlds = (known.world(package, version) for version in (table.versions[::-3] if table is not None else ()))
        places = (world.imported(module, function) for world in worlds if world is not None)
        found = next((place for place in places if place.kind == "function" and place.name), None)
        if found is None:
            continue
        need = Need("call", f"{found.module}.{found.name}", keywords=(keyword,))
        named = where_shown(package, f"{function}({keyword}=)", partial(_answers, package, need))
        if named is not None:
            return named
    return None


def _answers(package: str, need: Need, version: str) -> bool:
    return releases().answer(package, version, need).met is True


def of_older(function: str, keyword: str, modules: Sequence[str]) -> Named | None:
    """Look up an argument that all releases in the tables take: the release that refused it is from before them."""
    function, modules = with_module(in_full(function), modules)
    top, _, method = function.partition(".")
    for module in modules_of_name(top, modules, OF_TORCH):
        what = f"{module}.{top}{f'.{method}' if method not in ('', '__init__') else ''}({keyword}=)"
        doubt = " All releases that were analyzed take it, so the one that was running is older, or it is another copy."
        found = _older_than_all(module, what, doubt, lambda of, release, path: _takes(of, release, path, function, keyword))
        if found is not None:
            return found
    return None


def of_older_method(owner: str, name: str, modules: Sequence[str]) -> Named | None:
    """Look up a method that a class has in all releases in the tables: the release without it is from before them."""
    doubt = " All releases that were analyzed have it, so the one that was running is older, or it is another class."
    for module in modules_of_name(owner, modules):
        what = f"{owner}.{name}"
        found = _older_than_all(module, what, doubt, lambda of, release, path: _has_method(of, release, path, owner, name))
        if found is not None:
            return found
    return None


def of_older_name(module: str, name: str) -> Named | None:
    """Look up a name that a module has in all releases in the tables: the one without it is from before them, or damaged."""
    if module.partition(".")[0] not in tracked():
        return None
    need = Need("import", module, name)
    doubt = " All releases that were analyzed have it, so the one that was running is older, or it is another copy."
    return _older_than_all(module, f"{module}.{name}", doubt, lambda of, release, _: _answers(of, need, release))


def _older_than_all(module: str, what: str, doubt: str, has: Callable[[str, str, str], bool]) -> Named | None:
    """The releases of a module's package if all of them have it (package, version, module); ``doubt`` says what that means."""
    package = tracked()[module.partition(".")[0]]
    table = releases().table(package)
    versions = table.versions if table is not None else ()
    if not versions or not all(has(package, version, module) for version in versions):
        return None
    span = f"from {versions[0]} or earlier on"
    return Named(what, package, f">={versions[0]}", span, "", None, (), leans=False, read=versions, doubt=doubt, older=True)


def _has_method(package: str, version: str, module: str, owner: str, name: str) -> bool:
    world = releases().world(package, version)
    found = None if world is None else world.imported(module, owner)
    return world is not None and found is not None and found.kind == "class" and world.member(found, name).kind == "method"


def _takes(package: str, version: str, module: str, function: str, keyword: str) -> bool:
    """Whether a release names the argument in the signature of a function, a class or a method of it."""
    top, _, method = function.partition(".")
    world = releases().world(package, version)
    found = None if world is None else world.imported(module, top)
    if world is None or found is None:
        return False
    if method not in ("", "__init__"):
        found = world.member(found, method) if found.kind == "class" else None
    callee = None if found is None else world.callee(found)
    return callee is not None and keyword in (*callee[0].positional, *callee[0].keyword_only)
