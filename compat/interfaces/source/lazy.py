"""Modules that provide names lazily: which names, and from where."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compat.interfaces.source.scopes import dotted_name, identifiers, strings, text_of, walk

_MARKS = frozenset(("_LazyModule", "_import_structure", "define_import_structure", "_attach", "attach", "lazy_loader"))
_SIGNS = (
    *(mark.encode() for mark in _MARKS),
    b"__getattr__",
    b"globals()",
    b"vars()",
    b"locals()",
    b"sys.modules[__name__]",
)


class Lazy:
    """Maps ``names`` to dotted places (``""`` unknown); ``listed``, ``open`` and ``getter`` as in :class:`records.Module`."""

    def __init__(self, module: str, *, is_package: bool = False) -> None:
        self.module, self._is_package = module, is_package
        self.names: dict[str, str] = {}
        self.listed = self.open = False
        self.getter = ""

    def read(self, tree: ast.Module, source: bytes) -> None:
        """Read the lazy names; ``source`` is searched first because nearly all modules have none."""
        if not any(sign in source for sign in _SIGNS):
            return
        if self._opens(tree):
            self.open = True
        marks = {node.id for node in walk(tree) if isinstance(node, ast.Name)} & _MARKS
        getter = next((each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "__getattr__"), None)
        self.getter = self._made_getter(tree, getter)
        self._told_to_getter(tree)
        if not marks and getter is None:
            self._conditional_getter(tree)
            return
        self.listed = "define_import_structure" in marks
        if getter is not None and not self.getter and not _is_closed(getter):
            self.open = True
        for node in walk(tree):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        self._entry(key.value, value)
            elif isinstance(node, (ast.Assign, ast.AugAssign)):
                self._assignment(node)
            elif isinstance(node, ast.Call):
                self._addition(node)
        for name in identifiers(tree):
            self.names.setdefault(name, "")

    def _made_getter(self, tree: ast.Module, getter: ast.FunctionDef | None) -> str:
        """Return the module of the function that creates this module's ``__getattr__``, by ``f(__name__)``; "" if unknown."""
        if getter is None:
            wanted = {"__getattr__"}
        else:
            wanted = {
                node.value.func.id
                for node in walk(getter)
                if isinstance(node, ast.Return) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
            }
        maker = next((made for target, made in _made_for_this(tree) if target in wanted), None)
        if maker is None:
            if getter is None and any(_assigns(each, "__getattr__") for each in tree.body):
                self.open = True
            return ""
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and any((each.asname or each.name) == maker for each in node.names):
                parts = self.module.split(".")
                above = len(parts) - node.level + self._is_package
                return ".".join((*(parts[:above] if node.level else ()), *filter(None, [node.module])))
        self.open = True
        return ""

    def _told_to_getter(self, tree: ast.Module) -> None:
        """Read ``__getattr__ = f(__name__, rename={"Old": …})`` (transformers 5.23): the keys of its tables are names."""
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _assigns(node, "__getattr__"):
                for table in (keyword.value for keyword in node.value.keywords):
                    for key in table.keys if isinstance(table, ast.Dict) else (None,):
                        name = text_of(key) if key is not None else None
                        if name:
                            self.names[name] = ""
                        else:
                            self.open = True

    def _conditional_getter(self, tree: ast.Module) -> None:
        """Read a conditional ``__getattr__`` (numpy): add the names it compares with, except those it rejects."""
        for each in tree.body:
            for node in walk(each) if isinstance(each, (ast.If, ast.Try)) else ():
                if isinstance(node, ast.FunctionDef) and node.name == "__getattr__" and node.args.args:
                    self.open = self.open or not _is_closed(node)
                    for test in walk(node):
                        if isinstance(test, ast.If) and not isinstance(test.body[0], ast.Raise):
                            self.names.update(dict.fromkeys(identifiers(test.test), ""))

    def _opens(self, tree: ast.Module) -> bool:
        """Return whether unknown names enter the namespace: ``globals().update``, ``globals()[name] = …``, ``setattr``.

        Names cached by a ``__getattr__`` are ignored, since it provides them anyway; those of a loop over strings are added.
        """
        looped: set[int] = set()
        for node in _outside_getters(tree):
            texts = _looped(node)
            if texts:
                self.names.update(dict.fromkeys(texts, ""))
                looped.update(map(id, walk(node)))
            if id(node) in looped:
                continue
            if isinstance(node, ast.Call):
                called = node.func
                if isinstance(called, ast.Attribute) and called.attr == "update" and _is_globals(called.value):
                    return True
                if (
                    dotted_name(called) == "setattr"
                    and node.args
                    and _is_this_module(node.args[0])
                    and not self._aliases(tree, node)
                ):
                    return True
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Subscript) and _is_globals(target.value):
                        return True
                    if isinstance(target, ast.Subscript) and _is_this_module(target) and not _lazy_class(node.value):
                        return True
        return False

    def _aliases(self, tree: ast.Module, node: ast.Call) -> bool:
        """Return whether a function called only with literal strings sets the names: modules that keep an old name."""
        inside = next((each for each in walk(tree) if isinstance(each, ast.FunctionDef) and node in walk(each)), None)
        if inside is None:
            return False
        calls = [each for each in walk(tree) if isinstance(each, ast.Call) and dotted_name(each.func) == inside.name]
        texts = [text_of(call.args[0]) if call.args else None for call in calls]
        for text in texts:
            if text is not None:
                self.names.setdefault(text.rpartition(".")[2], "")
        return bool(texts) and None not in texts

    def _entry(self, key: str, value: ast.expr) -> None:
        """Read ``{"trainer": ["Trainer"]}`` and ``{"Trainer": ".trainer:Trainer"}``."""
        if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
            parts = [each.value for each in value.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if isinstance(value, ast.Tuple) and len(parts) == 2 and parts[0].startswith("."):
                self._put(key, f"{self.module}{parts[0]}.{parts[1]}")
                return
            for name in parts:
                if name.isidentifier() and all(part.isidentifier() for part in key.split(".")):
                    self._put(name, f"{self.module}.{key}.{name}")
        elif isinstance(value, ast.Constant) and isinstance(value.value, str) and key.isidentifier():
            text = value.value
            if text.startswith(".") and ":" in text:
                module, _, name = text.partition(":")
                self._put(key, f"{self.module}{module}.{name}")
            elif text.startswith("."):
                self._put(key, f"{self.module}{text}.{key}")

    def _put(self, name: str, place: str) -> None:
        # dummies may come before or after the real object: the real place wins
        if "dummy_" not in place or not self.names.get(name):
            if "dummy_" not in self.names.get(name, "dummy_"):
                return
            self.names[name] = place

    def _assignment(self, node: ast.Assign | ast.AugAssign) -> None:
        """Read ``_import_structure["trainer"] = ["Trainer"]`` and ``+=``."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Constant)
                and isinstance(target.slice.value, str)
            ):
                self._entry(target.slice.value, node.value)

    def _addition(self, node: ast.Call) -> None:
        """Read ``_import_structure["trainer"].append("Trainer")`` and ``extend``."""
        called = node.func
        if not (
            isinstance(called, ast.Attribute)
            and called.attr in ("append", "extend")
            and isinstance(called.value, ast.Subscript)
        ):
            return
        key = called.value.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            for name in (text for argument in node.args for text in strings(argument)):
                self._entry(key.value, ast.List([ast.Constant(name)]))


def _outside_getters(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every node of a module, outer ones first, skipping each ``__getattr__``."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if not (isinstance(node, ast.FunctionDef) and node.name == "__getattr__"):
            yield node
            waiting += ast.iter_child_nodes(node)


def _looped(node: ast.AST) -> list[str]:
    """Return the strings of ``for name in ("a", "b"): globals()[name] = …``."""
    if not (isinstance(node, ast.For) and isinstance(node.target, ast.Name) and isinstance(node.iter, (ast.List, ast.Tuple))):
        return []
    sets = any(
        isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store) and _is_globals(each.value)
        and isinstance(each.slice, ast.Name) and each.slice.id == node.target.id
        for each in walk(node)
    )  # fmt: skip
    texts = [text_of(each) for each in node.iter.elts]
    return [text for text in texts if text] if sets and None not in texts else []


def _made_for_this(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (name, f) for each top-level ``name = f(__name__)``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            arguments = node.value.args
            if len(arguments) == 1 and isinstance(arguments[0], ast.Name) and arguments[0].id == "__name__":
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        yield target.id, node.value.func.id


def _assigns(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(each, ast.Name) and each.id == name for each in node.targets)


def given_to_others(tree: ast.Module, source: bytes) -> tuple[str, ...]:
    """Return the ``"module:name"`` keys of top-level tables, provided to other modules by a ``__getattr__`` created here."""
    if b"__getattr__" not in source and b"getattr" not in source:
        return ()
    found: dict[str, None] = {}
    for node in tree.body:
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(value, ast.Dict):
            found.update((text, None) for key in value.keys if key is not None and (text := text_of(key)))
        elif isinstance(value, ast.DictComp) and len(value.generators) == 1:
            (loop,), key = value.generators, value.key
            texts = [text_of(each) for each in loop.iter.elts] if isinstance(loop.iter, (ast.Tuple, ast.List)) else []
            if isinstance(key, ast.JoinedStr) and sum(isinstance(part, ast.FormattedValue) for part in key.values) == 1:
                pattern = text_of(key) or ""
                found.update((pattern.replace("…", text), None) for text in texts if text)
    return tuple(key for key in found if key.count(":") == 1 and _is_dotted(key.replace(":", ".")))


def _is_globals(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted_name(node.func) in ("globals", "vars", "locals")


def _is_this_module(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Subscript) and dotted_name(node.value) == "sys.modules"
        and isinstance(node.slice, ast.Name) and node.slice.id == "__name__"
    )  # fmt: skip


def _lazy_class(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and "azy" in (dotted_name(node.func) or "")


def _is_closed(getter: ast.FunctionDef) -> bool:
    """Return whether a ``__getattr__`` provides only the names it spells out and raises for all others."""
    last = getter.body[-1]
    if not isinstance(last, ast.Raise):
        return False
    parameter = getter.args.args[0].arg if getter.args.args else ""
    for node in walk(getter):
        if isinstance(node, ast.Call) and dotted_name(node.func) == "getattr" and len(node.args) > 1:
            asked = node.args[1]
            if isinstance(asked, ast.Name) and asked.id == parameter and not _of_imported(node.args[0]):
                return False
    return True


def _of_imported(node: ast.AST) -> bool:
    """Return whether the object read is an imported module: ``getattr(import_module(…), name)`` after a table lookup."""
    return isinstance(node, (ast.Call, ast.Name)) and "mod" in (
        dotted_name(node.func if isinstance(node, ast.Call) else node) or ""
    )


# --- Modules that exist without a file, provided by a finder in ``sys.meta_path`` or an entry in ``sys.modules``.


_FINDERS_SIGNS = (b"sys.meta_path", b"sys.modules[")


def aliases_in(tree: ast.Module, source: bytes, module: str) -> tuple[str, ...]:
    """Return the dotted names in its own package that a module may make importable: all that its strings spell out."""
    if not any(sign in source for sign in _FINDERS_SIGNS) or not any(_puts_modules(node) for node in walk(tree)):
        return ()
    top = module.partition(".")[0]
    return tuple(sorted({text for text in strings(tree) if text.startswith(f"{top}.") and _is_dotted(text)}))


def _puts_modules(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return dotted_name(node) == "sys.meta_path"
    return (
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and dotted_name(node.value) == "sys.modules"
        and not (isinstance(node.slice, ast.Name) and node.slice.id == "__name__")
    )  # fmt: skip


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))
