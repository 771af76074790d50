"""Packaging code followed statement by statement, without running it: what it passes to ``setup()``.

Texts, lists and tables are computed as the code does, files of the project are read, and functions of the code are followed.
Everything else is unknown. Where a condition is undecided, both ways are followed and merged; what only one of them adds
knows the condition.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from compat.formats.requirements.requirement import name_at_start
from compat.model import normalized
from compat.records import record
from compat.syntax.builtins import path_function
from compat.syntax.expressions import Expressions, dotted_name
from compat.syntax.values import (
    File,
    Function,
    Table,
    Text,
    Unknown,
    Value,
    Variables,
    conditional,
    copied,
    has_unknown,
    is_true,
    items_of,
    joined,
    lines_of,
    merged,
    size_of,
    texts_in,
)

_OWNERS = ("setup", "setuptools", "skbuild", "core", "distutils", "numpy")


class _ByName(dict["str | Unknown", "Value"]):
    """A table of requirements by the name of what they require, as packaging code builds it with a regular expression."""

    def get(self, key: str | Unknown, default: Value = None) -> Value:  # type: ignore[override]
        return super().get(normalized(key) if isinstance(key, str) else key, default)


@record(frozen=True)
class _End:
    """How a block ended: by ``return``, ``continue``, ``break`` or ``raise``."""

    how: str
    value: Value = None


class Followed(Expressions):
    """The calls of ``setup()`` that some code reaches; ``read`` returns the text of a file of the project, or ``None``."""

    def __init__(self, tree: ast.Module, name: str, read: Callable[[str], Text | None]) -> None:
        super().__init__({"__file__": Text(name, 1), "__name__": Text("__main__", 1)})
        self.setups: list[Table] = []
        self._read = read
        self._missing = 0
        """How many files were opened and not found."""
        self._yielded: list[list[Value]] = []
        try:
            self._block(tree.body)
        except RecursionError:  # tables inside each other, thousands deep
            self.left = -1
        self.whole = self.left >= 0
        """Whether all of it was followed."""

    # --- Statements: one method for each kind, with its name.

    def _block(self, statements: Sequence[ast.stmt]) -> _End | None:
        """Follow statements; ``None`` if the last one is followed by what comes after the block."""
        for at, each in enumerate(statements):
            self.left -= 1
            if self.left < 0:
                return _End("raise")
            if isinstance(each, ast.Try) and _expects_files(each):
                end = self._opening(each)
            elif isinstance(each, (ast.If, ast.Try)):
                decided = is_true(self.value(each.test)) if isinstance(each, ast.If) else None
                ways = _ways(each)
                if decided is not None:
                    end = self._block(ways[0] if decided else ways[1])
                elif any(map(_jumps, ways)):
                    return self._both([[*way, *statements[at + 1 :]] for way in ways], each.lineno)
                else:
                    end = self._both(ways, each.lineno)
            else:
                follow: Callable[[ast.stmt], _End | None] | None = getattr(self, f"_{type(each).__name__.lower()}", None)
                end = None if follow is None else follow(each)
            if end is not None:
                return end
        return None

    def _opening(self, node: ast.Try) -> _End | None:
        """Follow a ``try`` that only handles missing files: its handler runs if one was not found."""
        before, missing = self._copied(), self._missing
        body, *handlers = _ways(node)
        end = self._block(body)
        if self._missing == missing:
            return end
        self._restore(before)
        return self._both(handlers, node.lineno)

    def _both(self, ways: Sequence[Sequence[ast.stmt]], line: int) -> _End | None:
        """Follow both ways of an undecided condition and merge what they leave; one that raises is not taken."""
        before = self._copied()
        left: list[tuple[list[Variables], _End | None]] = []
        for way in ways:
            self._restore(before)
            before = self._copied()
            end = self._block(way)
            if end is None or end.how != "raise":
                left.append(([dict(frame) for frame in self.frames], end))
        if not left or self.left < 0:
            return _End("raise")
        frames, end = left[0]
        for others, other in left[1:]:
            seen: dict[tuple[int, int], Value] = {}
            frames = [_merged_variables(one, two, line, seen) for one, two in zip(frames, others)]
            end = _merged_ends(end, other, line, seen)
        self._restore(frames)
        return end

    def _restore(self, frames: Sequence[Variables]) -> None:
        for frame, after in zip(self.frames, frames):
            frame.clear()
            frame.update(after)

    def _copied(self) -> list[Variables]:
        seen: dict[int, Value] = {}
        found = [{name: copied(value, seen) for name, value in frame.items()} for frame in self.frames]
        self.left -= sum(map(size_of, seen.values())) + sum(map(len, found)) // 20 + len(seen)
        return found

    def _expr(self, node: ast.Expr) -> _End | None:
        if isinstance(node.value, (ast.Yield, ast.YieldFrom)) and self._yielded:
            found = None if node.value.value is None else self.value(node.value.value)
            self._yielded[-1] += items_of(found, node.lineno) if isinstance(node.value, ast.YieldFrom) else [found]
            return None
        self.value(node.value)
        ends = isinstance(node.value, ast.Call) and dotted_name(node.value.func) in ("sys.exit", "exit", "quit")
        return _End("raise") if ends else None

    def _assign(self, node: ast.Assign) -> None:
        found = self.value(node.value)
        for target in node.targets:
            self.bind(target, found)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.bind(node.target, self.value(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        added, before = self.value(node.value), self.value(node.target)
        if isinstance(before, list) and isinstance(node.op, (ast.Add, ast.BitOr)):
            before += items_of(added, node.lineno)
            self.left -= size_of(before)
        elif isinstance(before, dict) and isinstance(added, dict):
            before.update(added)
        else:
            plus = isinstance(node.op, ast.Add)
            self.bind(node.target, joined([before, added], node.lineno) if plus else Unknown(node.lineno))

    def _functiondef(self, node: ast.FunctionDef) -> None:
        self.frames[-1][node.name] = Function(node, tuple(self.frames))

    def _for(self, node: ast.For) -> _End | None:
        for each in items_of(self.value(node.iter), node.lineno):
            self.bind(node.target, each)
            end = self._both([node.body, []], node.lineno) if isinstance(each, Unknown) else self._block(node.body)
            if end is not None and end.how in ("return", "raise"):
                return end
            if end is not None and end.how == "break":
                break
        return None

    def _while(self, node: ast.While) -> None:
        """What a loop without an end in sight changes is unknown."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and not isinstance(self.named(each.id, 0), (Unknown, Function)):
                self.frames[-1][each.id] = Unknown(node.lineno)

    def _with(self, node: ast.With) -> _End | None:
        for item in node.items:
            found = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, found)
        return self._block(node.body)

    def _return(self, node: ast.Return) -> _End:
        return _End("return", None if node.value is None else self.value(node.value))

    def _continue(self, node: ast.Continue) -> _End:
        return _End("continue")

    def _break(self, node: ast.Break) -> _End:
        return _End("break")

    def _raise(self, node: ast.Raise) -> _End:
        return _End("raise")

    # --- Expressions that only packaging code is followed in.

    def _namedexpr(self, node: ast.NamedExpr) -> Value:
        found = self.value(node.value)
        self.bind(node.target, found)
        return found

    def _dictcomp(self, node: ast.DictComp) -> Value:
        """Return the table of a comprehension; requirements taken apart by a regular expression are a table by name."""
        over = node.generators[0].iter
        inner = over.generators[0].iter if isinstance(over, (ast.GeneratorExp, ast.ListComp)) else over
        if inner is not over and any(isinstance(each, ast.Name) and each.id == "re" for each in ast.walk(over)):
            names = {name_at_start(each.value): each for each in texts_in(self.value(inner))}
            return _ByName((normalized(name), each) for name, each in names.items() if name is not None)
        return super()._dictcomp(node)

    def attribute(self, owner: Value, name: str, line: int) -> Value:
        if isinstance(owner, Text) and name in ("req", "requirement"):  # of what pip's own parser returns
            return owner
        return super().attribute(owner, name, line)

    # --- Calls.

    def _call(self, node: ast.Call) -> Value:
        name = dotted_name(node.func)
        first, _, rest = name.partition(".")
        called = self.named(first, node.lineno) if name else None
        if isinstance(called, Function) and not rest:
            return self.run(called, self.arguments(node.args, node.lineno), self.keywords(node), node.lineno)
        if name.rpartition(".")[2] == "setup" and first in _OWNERS:
            self.setups.append(self.keywords(node))
            return None
        return super()._call(node)

    def function(self, name: str, args: list[Value], options: Table, line: int) -> Value:
        """Return what a function of Python, or of its library, returns."""
        last = name.rpartition(".")[2]
        path = args[0] if args and isinstance(args[0], Text) else None
        if last in ("exists", "isfile") and path is not None:
            return Unknown(line) if self._read(path.value) is None else True
        if last == "open" and path is not None:
            return self._opened(path, line)
        if last == "parse_requirements" and args:
            given = self._opened(path, line) if path is not None and "\n" not in path.value else args[0]
            given = given.content if isinstance(given, File) else given
            return list(lines_of(given)) if isinstance(given, Text) else items_of(given, line)
        if name.startswith(("os.", "path.", "pathlib.")) or last in ("Path", "PurePath", "dirname", "abspath", "join"):
            return path_function(last, args, line)
        if last in ("copy", "deepcopy") and args:
            return copied(args[0], {})
        return super().function(last, args, options, line)

    def method(self, owner: Value, name: str, args: list[Value], options: Table, line: int) -> Value:
        if isinstance(owner, Text) and name in ("read_text", "read_bytes", "open"):
            file = self._opened(owner, line)
            return file.content if isinstance(file, File) and name != "open" else file
        return super().method(owner, name, args, options, line)

    def _opened(self, path: Text, line: int) -> Value:
        content = self._read(path.value)
        self._missing += content is None
        return Unknown(line) if content is None else File(content)

    def run(self, function: Value, args: Sequence[Value], options: Table, line: int) -> Value:
        """Follow a function. One whose result is unknown, but whose argument is a requirements file, returns what it lists."""
        if not isinstance(function, Function) or self.is_too_deep:
            return Unknown(line)
        node = function.node
        local = self._bound(node.args, args, options, line)
        frames = self.frames
        self.frames = [*function.around, local]
        self._yielded.append([])
        try:
            if isinstance(node, ast.Lambda):
                found = self.value(node.body)
            else:
                end = self._block(node.body)
                found = end.value if end is not None and end.how == "return" else None
                if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in _own(node)):
                    found = list(self._yielded[-1])
        finally:
            self.frames = frames
            self._yielded.pop()
        if not has_unknown(found):
            return found
        files = {each.value: each for each in local.values() if isinstance(each, Text) and _lists_requirements(each.value)}
        return Unknown(line, next(iter(files.values()))) if len(files) == 1 else found

    def _bound(self, given: ast.arguments, args: Sequence[Value], options: Table, line: int) -> Variables:
        """Return the variables of a function that is called with some arguments."""
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        local: Variables = dict.fromkeys((*names, *(each.arg for each in given.kwonlyargs)), Unknown(line))
        for name, default in zip(names[len(names) - len(given.defaults) :], given.defaults):
            local[name] = self.value(default)
        for keyword, value in zip(given.kwonlyargs, given.kw_defaults):
            local[keyword.arg] = None if value is None else self.value(value)
        local.update(zip(names, args))
        if given.vararg is not None:
            local[given.vararg.arg] = list(args[len(names) :])
        local.update((name, value) for name, value in options.items() if isinstance(name, str))
        return local


def _merged_variables(one: Variables, two: Variables, line: int, seen: dict[tuple[int, int], Value]) -> Variables:
    left: Table = dict(one.items())
    right: Table = dict(two.items())
    found = merged(left, right, line, seen)
    assert isinstance(found, dict)
    return {name: value for name, value in found.items() if isinstance(name, str)}


def _merged_ends(one: _End | None, two: _End | None, line: int, seen: dict[tuple[int, int], Value]) -> _End | None:
    if one is not None and two is not None and one.how == two.how:
        return _End(one.how, merged(one.value, two.value, line, seen))
    returned = next((each for each in (one, two) if each is not None and each.how == "return"), None)
    return None if returned is None else _End("return", conditional(returned.value, line))


def _ways(node: ast.If | ast.Try) -> list[list[ast.stmt]]:
    """Return the branches of a condition or a ``try``."""
    if isinstance(node, ast.If):
        return [node.body, node.orelse]
    return [[*node.body, *node.orelse, *node.finalbody], *([*each.body, *node.finalbody] for each in node.handlers[:3])]


def _expects_files(node: ast.Try) -> bool:
    """Whether a ``try`` only handles files that do not exist."""
    caught = [ast.unparse(each.type) if each.type is not None else "" for each in node.handlers]
    return bool(caught) and all(each in ("FileNotFoundError", "OSError", "IOError", "EnvironmentError") for each in caught)


def _jumps(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements may leave the function or the loop around them."""
    inside = (each for outer in statements for each in (outer, *_own(outer)))
    return any(isinstance(each, (ast.Return, ast.Continue, ast.Break)) for each in inside)


def _own(node: ast.AST) -> list[ast.AST]:
    """Return the nodes inside a node, without those of functions inside it."""
    found: list[ast.AST] = []
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        each = waiting.pop()
        found.append(each)
        if not isinstance(each, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(each)
    return found


def _lists_requirements(path: str) -> bool:
    return path.endswith((".txt", ".in", ".pip"))
