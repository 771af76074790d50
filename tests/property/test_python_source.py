"""Whatever bytes are read as a module, a record comes out, and it survives being packed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compat.interfaces.source.module import read_module
from compat.interfaces.source.records import pack_module, unpack_module

LINES = [
    "import a.b", "from . import c", "from ..x import *", "if TYPE_CHECKING:", "try:", "except ImportError:", "else:", "finally:",
    "    from x import y", "    pass", "class A(B, metaclass=M):", "    def f(self, a, *, b=1, **kw):", "        return g(**kw)",
    "        self.x = Y()", "        super().f(a, **kw)", "def __getattr__(name):", "    raise AttributeError(name)",
    "_import_structure = {'a': ['b'], 'c': 1}", "globals().update(x)", "x = [y.z for y in w if (q := y)]", "lambda a, *b: a.c(b)",
    "with suppress(ImportError):", "for i, (j, *k) in x.y: pass", "while False: import no", "del a", "async def f(): await x.y(1)",
    "@deprecate_kwarg('old', '1.0', 'new')", "def g(old): warnings.warn('`old` is deprecated, use `new`')", "print 'two'", "x.y += 1",
    "match x:", "    case A(b=c): d.e(c)", "__all__ = ['A']", "__all__ += b", "a.b.c = d.e['f'](g=h)", "\\", "'''", "\t x",
]  # fmt: skip


@given(st.binary(max_size=300))
def test_any_bytes(source: bytes) -> None:
    check(source)


@given(st.text(max_size=200))
def test_any_text(source: str) -> None:
    check(source.encode("utf-8", "surrogatepass"))


@given(st.lists(st.sampled_from(LINES), max_size=14), st.sampled_from(["\n", "\r\n", "\n    ", "\n\n"]))
def test_any_lines(lines: list[str], between: str) -> None:
    check(between.join(lines).encode())


@given(st.lists(st.sampled_from(LINES[:24]), max_size=10))
def test_lines_made_to_parse(lines: list[str]) -> None:
    """Blocks are given a body, so that more of the combinations parse."""
    source = "\n".join(
        f"{line}\n{' ' * (len(line) - len(line.lstrip()) + 4)}pass" if line.endswith(":") else line for line in lines
    )
    check(source.encode())


def check(source: bytes) -> None:
    module = read_module(source, "pkg.module")
    assert unpack_module(pack_module(module)) == module
    assert module.problem is None or not (module.definitions or module.imports or module.calls)
