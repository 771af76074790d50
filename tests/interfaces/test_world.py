"""What names mean in a world of releases, and which calls fit."""

from __future__ import annotations

import pytest

from compat.interfaces.needs import Need, verdict_on
from compat.interfaces.release import Meaning, SourceSurface
from compat.interfaces.source.module import read_module
from compat.interfaces.world import World


def release(package: str, files: dict[str, str], opaque: tuple[str, ...] = (), version: str = "1.0") -> SourceSurface:
    """A release made of sources by module; a name that ends in ``/`` is a package."""
    modules = {
        name.rstrip("/"): read_module(source.encode(), name.rstrip("/"), is_package=name.endswith("/"))
        for name, source in files.items()
    }
    return SourceSurface(package, version, modules, modules.__getitem__, opaque)


def kinds(surface: SourceSurface, *names: str) -> list[str]:
    world = World((surface,))
    return [world.find(name).kind for name in names]


def complaints(world: World, name: str, positional: int = 0, *keywords: str) -> list[tuple[str, str]] | None:
    callee = world.callee(world.find(name))
    return None if callee is None else [(each.kind, each.what) for each in world.rejected(*callee, positional, keywords)]


class TestNames:
    def test_own_re_exported_and_missing(self) -> None:
        found = release(
            "trl", {"trl/": "from .core import Trainer as T, gone", "trl.core": "class Trainer:\n    def run(self): ..."}
        )
        assert kinds(found, "trl.T", "trl.T.run", "trl.core.Trainer", "trl.gone", "trl.core.x", "trl.T.x") == [
            "class", "method", "class", "value", "absent", "absent",
        ]  # fmt: skip

    def test_the_first_part_that_is_missing_is_named(self) -> None:
        world = World((release("trl", {"trl/": "", "trl.core": ""}),))
        assert world.find("trl.core.a.b.c") == Meaning("absent", world.surfaces[0], "trl.core", "a")

    def test_a_circle_of_re_exports_is_unknown_or_there(self) -> None:
        found = release("trl", {"trl/": "", "trl.a": "from .b import x", "trl.b": "from .a import x"})
        assert "absent" not in kinds(found, "trl.a.x")

    def test_stars_give_public_names(self) -> None:
        found = release("trl", {"trl/": "from .core import *", "trl.core": "shown = 1\n_hidden = 2"})
        assert kinds(found, "trl.shown", "trl._hidden", "trl.other") == ["value", "absent", "absent"]

    @pytest.mark.parametrize("root", ["from ._C import *", "from numpy import *", "globals().update(x)", "def broken(:"])
    def test_what_cannot_be_seen_is_unknown(self, root: str) -> None:
        assert kinds(release("trl", {"trl/": root}, ("trl._C",)), "trl.anything") == ["unknown"]

    def test_lazy_names_lead_to_their_module(self) -> None:
        root = '_import_structure = {"core": ["Trainer"]}\nsys.modules[__name__] = _LazyModule(__name__, "", _import_structure)'
        found = release("trl", {"trl/": root, "trl.core": "class Trainer:\n    def run(self): ..."})
        assert kinds(found, "trl.Trainer.run", "trl.Nothing") == ["method", "absent"]

    def test_names_that_modules_below_list(self) -> None:
        root = "sys.modules[__name__] = _LazyModule(__name__, f, define_import_structure(f))"
        found = release(
            "transformers", {"transformers/": root, "transformers.bert": "__all__ = ['Bert']\nclass Bert: ...\nclass No: ..."}
        )
        assert kinds(found, "transformers.Bert", "transformers.No") == ["class", "absent"]

    def test_a_missing_module_is_certain_even_where_names_are_not(self) -> None:
        world = World((release("torch", {"torch/": "globals().update(x)", "torch.nn/": ""}),))
        assert world.imported("torch._six", "string_classes").kind == "absent"
        assert world.imported("torch", "_six").kind == "unknown"

    def test_an_old_module_that_is_kept_under_a_name_is_unknown(self) -> None:
        root = "def alias(name):\n    setattr(sys.modules[__name__], name, make(name))\nalias('tokenization_utils')"
        world = World((release("transformers", {"transformers/": root}),))
        assert world.imported("transformers.tokenization_utils", "PreTrainedTokenizer").kind == "unknown"
        assert world.imported("transformers.other", "x").kind == "absent"

    def test_compiled_modules_hold_anything(self) -> None:
        world = World((release("torch", {"torch/": ""}, ("torch._C",)),))
        assert world.imported("torch._C._distributed", "x").kind == "unknown"

    def test_names_of_packages_that_are_not_there_are_unknown(self) -> None:
        assert World(()).find("trl.SFTTrainer").kind == "unknown"

    def test_what_another_package_lacks_is_not_missing_here(self) -> None:
        here = release("trl", {"trl/": "from peft import gone"})
        assert World((here, release("peft", {"peft/": ""}))).imported("trl", "gone").kind == "value"

    def test_a_namespace_package_may_get_parts_from_other_distributions(self) -> None:
        world = World((release("optimum", {"optimum.onnx/": "x = 1", "optimum.utils.y": "z = 1"}),))
        assert world.imported("optimum.intel", "OVModel").kind == "unknown"
        assert world.imported("optimum", "intel").kind == "unknown"
        assert world.imported("optimum.onnx.gone", "z").kind == "absent"
        assert World((release("trl", {"trl/": ""}),)).imported("trl.gone", "z").kind == "absent"

    def test_programs_that_convert_checkpoints_are_in_no_table(self) -> None:
        world = World((release("transformers", {"transformers/": "", "transformers.convert_slow_tokenizer": ""}),))
        assert world.imported("transformers.convert_graph_to_onnx", "x").kind == "absent"
        assert world.imported("transformers.convert_llama_weights_to_hf", "x").kind == "unknown"


class TestClasses:
    def test_members_come_from_bases_in_other_packages(self) -> None:
        base = release("transformers", {"transformers/": "class Trainer:\n    def train(self, resume=None): ..."})
        mine = release("trl", {"trl/": "from transformers import Trainer\nclass SFT(Trainer): ..."})
        world = World((base, mine))
        assert world.find("trl.SFT.train").dotted == "transformers.Trainer.train"
        assert world.find("trl.SFT.fit").kind == "absent"
        assert World((mine,)).find("trl.SFT.fit").kind == "unknown"

    def test_fields_of_dataclasses_are_inherited(self) -> None:
        base = release("transformers", {"transformers/": "@dataclass\nclass Args:\n    output_dir: str\n    lr: float = 1"})
        mine = release(
            "trl", {"trl/": "from transformers import Args\n@dataclass\nclass Config(Args):\n    max_length: int = 1"}
        )
        world = World((base, mine))
        assert complaints(world, "trl.Config", 0, "output_dir", "max_length", "lr") == []
        assert complaints(world, "trl.Config", 0, "max_seq_length") == [("keyword", "max_seq_length")]
        assert complaints(World((mine,)), "trl.Config", 0, "max_seq_length") is None

    def test_a_mixin_adds_no_fields_to_a_dataclass(self) -> None:
        source = (
            "from transformers.utils import PushToHubMixin\nfrom elsewhere import Base\n@dataclass\nclass Config(PushToHubMixin):\n"
            "    rank: int = 8\n@dataclass\nclass Other(Base):\n    rank: int = 8\nclass Plain(PushToHubMixin): ..."
        )
        world = World((release("peft", {"peft/": source}),))
        assert complaints(world, "peft.Config", 0, "rank") == []
        assert complaints(world, "peft.Config", 0, "alpha") == [("keyword", "alpha")]
        assert complaints(world, "peft.Other", 0, "alpha") is None
        assert complaints(world, "peft.Plain", 0, "alpha") is None
        assert world.find("peft.Config.push_to_hub").kind == "unknown"

    @pytest.mark.parametrize(
        ("base", "accepted"),
        [
            ("@dataclass_transform()\n@dataclass\nclass Base:\n    dtype: str = ''", None),
            ("@dataclass\nclass Base:\n    dtype: str = ''\n    def __init_subclass__(cls): dataclass(cls)", None),
            ("@dataclass\nclass Base:\n    dtype: str = ''", [("keyword", "hidden_size")]),
        ],
    )
    def test_subclasses_that_a_base_makes_dataclasses(self, base: str, accepted: object) -> None:
        world = World((release("transformers", {"transformers/": f"{base}\nclass Llama(Base):\n    hidden_size: int = 1"}),))
        assert complaints(world, "transformers.Llama", 0, "hidden_size") == accepted

    def test_a_decorator_that_validates_may_accept_anything_and_adds_methods(self) -> None:
        source = "@strict(accept_kwargs=True)\n@dataclass\nclass Base:\n    dtype: str = ''"
        world = World((release("transformers", {"transformers/": source}),))
        assert complaints(world, "transformers.Base", 0, "new") is None
        assert world.find("transformers.Base.validate").kind == "unknown"

    def test_a_diamond_of_bases_is_searched_as_python_does(self) -> None:
        source = (
            "class Root:\n    def scale(self): ...\nclass Left(Root): ...\nclass Right(Root):\n    def scale(self, inplace): ...\n"
            "class Both(Left, Right): ..."
        )
        world = World((release("trl", {"trl/": source}),))
        assert world.find("trl.Both.scale").dotted == "trl.Right.scale"

    def test_calls_of_the_base_that_an_override_does_not_take(self) -> None:
        base = "class Trainer:\n    def train(self):\n        self.loss(1, num_items=2)\n    def loss(self, m, num_items=None): ..."
        world = World((release("transformers", {"transformers/": base}),))
        of = world.find("transformers.Trainer")
        narrow = read_module(b"def loss(self, model): ...", "m").definitions["loss"].signature  # type: ignore[union-attr]
        wide = read_module(b"def loss(self, *args, **kw): ...", "m").definitions["loss"].signature  # type: ignore[union-attr]
        assert [(each.what, line) for each, line in world.override_complaints(of, "loss", narrow)] == [("num_items", 3)]
        assert world.override_complaints(of, "loss", wide) == ()


class TestCalls:
    @pytest.mark.parametrize(
        ("source", "positional", "keywords", "expected"),
        [
            ("def f(a, *, b): ...", 1, ("b",), []),
            ("def f(a, *, b): ...", 2, (), [("positional", "2")]),
            ("def f(a): ...", 0, ("x",), [("keyword", "x")]),
            ("def f(a, **kw): use(kw)", 0, ("x",), []),
            ("def f(a, **kw): return g(**kw)\ndef g(b): ...", 0, ("x", "b"), [("keyword", "x")]),
            ("def f(a, **kw): return unknown(**kw)", 0, ("x",), []),
            ("@deprecate_kwarg('x', '1')\ndef f(a): ...", 0, ("x",), []),
            ("@overload\ndef f(a): ...", 0, ("x",), []),
            ("class f:\n    def __init__(self, a): ...", 1, (), []),
            ("class f:\n    def __init__(self, a): ...", 2, (), [("positional", "2")]),
            ("class f:\n    def __init__(self, **kw): super().__init__(**kw)", 0, ("x",), []),
            ("class b:\n    def __init__(self, y): ...\nclass f(b):\n    def __init__(self, **kw): super().__init__(**kw)", 0, ("x",), [("keyword", "x")]),
            ("class f(metaclass=M):\n    def __init__(self, a): ...", 9, ("x",), None),
        ],
    )  # fmt: skip
    def test_whether_they_fit(
        self, source: str, positional: int, keywords: tuple[str, ...], expected: list[tuple[str, str]] | None
    ) -> None:
        assert complaints(World((release("trl", {"trl/": source}),)), "trl.f", positional, *keywords) == expected

    @pytest.mark.parametrize(
        ("source", "positional", "keywords", "missing"),
        [
            ("def f(a, b, c=1): ...", 1, (), "b"),
            ("def f(a, b, *, c, d=1): ...", 0, ("b",), "a, c"),
            ("def f(a, b): ...", 1, ("b",), None),
            ("class f:\n    def __init__(self, a, b): ...", 1, (), "b"),
            ("@dataclass\nclass f:\n    a: int\n    b: int = 1", 0, (), None),  # not decided
            ("@click.command()\ndef f(a): ...", 0, (), None),
            ("@deprecate_kwarg('old', '1', new_name='a')\ndef f(a): ...", 0, ("old",), None),
            ("@deprecate_kwarg('old', '1', new_name='a')\ndef f(a): ...", 0, (), "a"),
        ],
    )
    def test_what_they_leave_out(self, source: str, positional: int, keywords: tuple[str, ...], missing: str | None) -> None:
        need = Need("complete", "trl.f", None, (), positional, keywords)
        verdict = verdict_on(World((release("trl", {"trl/": source}),)), need)
        assert (verdict.missing if verdict.met is False else None) == missing
