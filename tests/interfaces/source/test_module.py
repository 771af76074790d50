"""What a module's source is read as."""

from __future__ import annotations

import pytest

from compat.interfaces.source.module import LARGEST, read_module
from compat.interfaces.source.records import (
    AVAILABLE,
    BRANCH,
    FUNCTION,
    HANDLER,
    TRY,
    TYPES,
    VERSION,
    Class,
    Function,
    Imported,
    Module,
    Signature,
    pack_module,
    unpack_module,
)


def read(source: str, name: str = "mine.part", *, is_package: bool = False) -> Module:
    return read_module(source.encode(), name, is_package=is_package)


def flags_of(source: str) -> dict[str, int]:
    return {f"{each.module}.{each.name}": each.flags for each in read(source).imports}


def signature(source: str) -> Signature:
    (found,) = read(source).definitions.values()
    assert isinstance(found, Function)
    return found.signature


class TestImports:
    @pytest.mark.parametrize(
        ("name", "is_package", "source", "module"),
        [
            ("a.b.c", False, "from . import x", "a.b"),
            ("a.b.c", True, "from . import x", "a.b.c"),
            ("a.b.c", False, "from ..d import x", "a.d"),
            ("a.b.c", True, "from ..d import x", "a.b.d"),
            ("a", False, "from ... import x", ""),
        ],
    )
    def test_relative_ones_are_resolved(self, name: str, is_package: bool, source: str, module: str) -> None:
        assert read(source, name, is_package=is_package).imports[0].module == module

    @pytest.mark.parametrize(
        ("source", "flags"),
        [
            ("from x import y", 0),
            ("try:\n    from x import y\nexcept ImportError:\n    y = None", TRY),
            ("try:\n    from x import y\nexcept ImportError as e:\n    raise RuntimeError from e", 0),
            ("try:\n    from x import y\nexcept ValueError:\n    pass", 0),
            ("try:\n    import z\nexcept ImportError:\n    from x import y", TRY | HANDLER),
            ("import contextlib\nwith contextlib.suppress(ImportError):\n    from x import y", TRY),
            ("if TYPE_CHECKING:\n    from x import y", TYPES),
            ("if is_x_available():\n    from x import y", AVAILABLE),
            ("if is_x_available('2.0'):\n    from x import y", VERSION),
            ("if Version(x.__version__) >= Version('2'):\n    from x import y", VERSION),
            ("if hasattr(x, 'y'):\n    from x import y", VERSION),
            ("if FLAG:\n    from x import y", BRANCH),
            ("if FLAG:\n    pass\nelse:\n    from x import y", BRANCH),
            ("def f():\n    from x import y", FUNCTION),
            ("if __name__ == '__main__':\n    from x import y", FUNCTION),
            ("def f():\n    if x_version < 2:\n        return\n    from x import y", FUNCTION | VERSION),
        ],
    )
    def test_conditions_around_them(self, source: str, flags: int) -> None:
        assert flags_of(source)["x.y"] == flags

    def test_dead_code_imports_nothing(self) -> None:
        assert "x.y" not in flags_of("if False:\n    from x import y")

    @pytest.mark.parametrize(
        ("test", "asks"),
        [("is_peft_available()", ("peft",)), ("_HAS_VLLM", ("vllm",)), ("is_a_available() and has_b()", ("a", "b"))],
    )
    def test_what_is_asked_for(self, test: str, asks: tuple[str, ...]) -> None:
        (found,) = (each for each in read(f"if {test}:\n    from x import y").imports if each.name == "y")
        assert set(found.asks) == set(asks)

    def test_the_other_branch_asks_for_nothing(self) -> None:
        found = read("if is_peft_available():\n    pass\nelse:\n    from x import y").imports[0]
        assert (found.flags, found.asks) == (BRANCH, ())

    def test_after_leaving_without_a_package_it_is_there(self) -> None:
        found = read("def f():\n    if not is_peft_available():\n        raise ImportError\n    from peft import y").imports[0]
        assert (found.flags, found.asks) == (FUNCTION | AVAILABLE, ("peft",))


class TestDefinitions:
    def test_the_fallback_does_not_replace_what_is_imported(self) -> None:
        module = read("try:\n    from x import y\nexcept ImportError:\n    y = None")
        assert module.definitions["y"] == Imported(2, "x", "y", TRY)

    def test_classes_have_absolute_bases_fields_and_what_is_set_on_self(self) -> None:
        source = """
from transformers import Trainer
import dataclasses
class Local: ...
@dataclasses.dataclass
class Mine(Trainer, Local, dict):
    size: int = 3
    name: str
    shared = 1
    def __init__(self):
        self.inner = Local()
        self.count = 0
        self.run(1, deep=True)
    def run(self, depth, *, deep): ...
"""
        found = read(source, "m").definitions["Mine"]
        assert isinstance(found, Class)
        assert found.bases == ("transformers.Trainer", "m.Local", "builtins.dict")
        assert found.fields == (("size", True), ("name", False))
        assert set(found.attributes) == {"size", "name", "shared"}
        assert (found.instance, found.made) == (("count", "inner"), {"inner": "m.Local"})
        assert found.decorators == ("dataclass",)
        assert [(each.method, each.positional, each.keywords) for each in found.self_calls] == [("run", 1, ("deep",))]

    @pytest.mark.parametrize("source", ["class A(metaclass=M): ...", "class A:\n    def __getattr__(self, name): ..."])
    def test_attributes_of_dynamic_classes_cannot_be_told(self, source: str) -> None:
        found = read(source).definitions["A"]
        assert isinstance(found, Class)
        assert found.dynamic


class TestSignatures:
    def test_parameters(self) -> None:
        found = signature("def f(a, b, /, c=1, *args, d, e=2, **kw): pass")
        assert found == Signature(("a", "b", "c"), 1, ("d", "e"), ("d",), True, True, (), (), ())

    def test_keys_that_are_popped_are_accepted(self) -> None:
        source = "def f(**kw):\n    a = kw.pop('old', None)\n    if 'other' in kw: pass\n    return g(**kw)"
        assert signature(source).extra == ("old", "other")
        assert signature(source).forwards == ("g",)

    def test_a_decorator_accepts_old_names(self) -> None:
        assert (
            "tokenizer"
            in signature("@deprecate_kwarg('tokenizer', '0.16', 'processing_class')\ndef f(processing_class): ...").extra
        )

    @pytest.mark.parametrize(
        "body", ["return kw", "h(kw)", "for key in kw: pass", "other = kw", "kw.update(x)", "g(**kw)\n    table[0](**kw)"]
    )
    def test_what_else_happens_to_keywords_is_unknown(self, body: str) -> None:
        assert signature(f"def f(**kw):\n    {body}").forwards is None


class TestLazy:
    def test_an_import_structure(self) -> None:
        source = """
_import_structure = {"trainer": ["Trainer"], "utils": []}
if is_torch_available():
    _import_structure["models.bert"] = ["Bert"]
    _import_structure["utils"].append("helper")
    _import_structure["utils"].extend(["a", "b"])
sys.modules[__name__] = _LazyModule(__name__, globals()["__file__"], _import_structure)
"""
        lazy = read(source, "pkg", is_package=True).lazy
        assert {name: lazy[name] for name in ("Trainer", "Bert", "helper", "a", "b")} == {
            "Trainer": "pkg.trainer.Trainer", "Bert": "pkg.models.bert.Bert", "helper": "pkg.utils.helper", "a": "pkg.utils.a",
            "b": "pkg.utils.b",
        }  # fmt: skip

    def test_a_table_of_places(self) -> None:
        source = 'ATTRS = {"LLM": ".entrypoints.llm:LLM"}\ndef __getattr__(name):\n    if name in ATTRS:\n        return load(ATTRS[name])\n    raise AttributeError(name)'  # fmt: skip
        module = read(source, "vllm", is_package=True)
        assert (module.lazy["LLM"], module.open) == ("vllm.entrypoints.llm.LLM", False)

    @pytest.mark.parametrize(
        "source",
        [
            "globals().update(names)",
            "globals()[name] = 1",
            "setattr(sys.modules[__name__], name, 1)",
            "def __getattr__(name):\n    return getattr(_C, name)",
        ],
    )
    def test_names_that_cannot_be_seen(self, source: str) -> None:
        assert read(source).open

    def test_modules_that_keep_an_old_name(self) -> None:
        source = """
if not TYPE_CHECKING:
    def alias(name, target):
        setattr(sys.modules[__name__], name.rsplit(".", 1)[-1], target)
    alias(f"{__name__}.tokenization_utils_fast", 1)
"""
        module = read(source, "transformers", is_package=True)
        assert not module.open
        assert "tokenization_utils_fast" in module.lazy


class TestRenames:
    @pytest.mark.parametrize(
        ("source", "rename"),
        [
            (
                "@deprecate_kwarg('tokenizer', '0.16.0', 'processing_class')\ndef f(): ...",
                ("f", "tokenizer", "processing_class", "0.16.0"),
            ),
            (
                "def f(x=None):\n    warnings.warn('`max_seq_length` is deprecated and will be removed in version 0.20.0. Use `max_length` instead.')",
                ("f", "max_seq_length", "max_length", "0.20.0"),
            ),
            (
                "class C:\n    def __post_init__(self):\n        warnings.warn(f'`evaluation_strategy` is deprecated; use `eval_strategy`')",
                ("C", "evaluation_strategy", "eval_strategy", None),
            ),
        ],
    )
    def test_what_messages_and_decorators_say(self, source: str, rename: tuple[str, str, str | None, str | None]) -> None:
        (found,) = read(source).renames
        assert (found.owner, found.old, found.new, found.until) == rename


class TestUses:
    def test_calls_of_what_is_imported_named_and_made(self) -> None:
        source = """
import trl
from transformers import AutoModel as M
def main(args: trl.Config, other):
    trainer = trl.SFTTrainer(M, tokenizer=1, **extra)
    trainer.train(resume=True)
    args.validate(1)
    other.call(x=1)
"""
        found = {(each.kind, each.target, each.of): each for each in read(source).calls}
        assert found["name", "trl.SFTTrainer", ""].keywords == ("tokenizer",)
        assert found["name", "trl.SFTTrainer", ""].double_star
        assert found["made", "train", "trl.SFTTrainer"].keywords == ("resume",)
        assert found["typed", "validate", "trl.Config"].positional == 1
        assert not any(each.target == "call" for each in found.values())

    def test_keys_of_a_dictionary_that_is_passed_on(self) -> None:
        source = "import x\nkw = {'a': 1}\nkw['b'] = 2\nx.f(**kw)"
        assert {each.keywords for each in read(source).calls} == {(), ("a",), ("b",)}

    def test_a_parameter_hides_an_import(self) -> None:
        assert not read("import x\ndef f(x):\n    x.y(1)\n    return x.z").calls

    def test_what_is_assigned_to_is_a_patch(self) -> None:
        module = read("import trl\ntrl.SFTTrainer.train = f\nsetattr(trl.DPOTrainer, 'log', g)")
        assert {each.target for each in module.uses if each.stored} == {"trl.SFTTrainer.train", "trl.DPOTrainer.log"}

    def test_the_own_package_is_no_other(self) -> None:
        assert not read("from mine.other import f\nf(1)\nimport mine\nmine.x.y(2)").calls


@pytest.mark.parametrize(
    "source",
    [b"print 'python 2'", b"\x00", b"def f(:", b"\xff\xfe", b"(" * 5000, b"a = " + b"-" * 100_000 + b"1", b"x" * (LARGEST + 1)],
    ids=["python 2", "null", "broken", "no text", "brackets", "signs", "too large"],
)  # fmt: skip
def test_what_cannot_be_parsed_is_unknown(source: bytes) -> None:
    module = read_module(source, "m")
    assert module.problem
    assert not module.definitions


def test_packing_keeps_everything() -> None:
    with open(__file__, "rb") as file:
        module = read_module(file.read(), "m")
    assert module.calls
    assert unpack_module(pack_module(module)) == module
    assert unpack_module(pack_module(module), uses=False).definitions == module.definitions


def test_decorators_and_aliases_survive_packing() -> None:
    source = (
        "import sys\nsys.modules['mine.old'] = sys.modules['mine.new']\n"
        "def taking(fn):\n    def inner(**kwargs):\n        kwargs.pop('gone', None)\n        return fn(**kwargs)\n    return inner\n"
        "def hiding(fn):\n    def inner(**kwargs):\n        return fn(**changed(kwargs))\n    return inner\n"
    )
    found = read(source)
    assert found.wrappers == {"taking": ("gone",), "hiding": None}
    assert found.aliases == ("mine.new", "mine.old")
    assert unpack_module(pack_module(found)) == found


def test_names_that_a_module_registers_are_attributes_of_its_objects() -> None:
    source = (
        "class Rotary(Module):\n"
        "    def __init__(self):\n"
        "        self.register_buffer('cos_cached', f(), persistent=False)\n"
        "        self.register_parameter(name(), None)\n"
        "        self.add_module('inner', Linear())\n"
        "        other.register_buffer('elsewhere', 1)\n"
    )
    found = read_module(source.encode(), "m").definitions["Rotary"]
    assert isinstance(found, Class)
    assert found.instance == ("cos_cached", "inner")
