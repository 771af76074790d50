"""What packages do with objects of other packages, from sources to rows."""

from __future__ import annotations

from pathlib import Path

from compat.interfaces.changes import EXTENDS, READS, SETS
from scripts.surface.changes import Row
from scripts.surface.foreign import Class, Package, rows_of, said_in
from scripts.surface.store import Fetched, Release, Store


def test_what_is_set_on_other_objects() -> None:
    said = said_in(
        "def prepare(param, model):\n"
        '    """model.in_a_text = 1"""\n'
        "    param.partition_id = 1\n"
        "    setattr(model, 'prepared_for', 2)\n"
        "    model.layers[0].attention.patched_forward = prepare\n"
        "def fast_forward(self, states):\n"
        "    self.buffers_of_forward = states\n"  # the method of another package's class
        "class Engine:\n"
        "    def __init__(self):\n"
        "        self.own_state = 1\n"
        "        self.module.from_inside = 1\n"
        "        if self.own_state == model.equal_to: ...\n"
    )
    assert said.sets == {"partition_id", "prepared_for", "patched_forward", "buffers_of_forward", "from_inside"}
    assert {"equal_to", "layers", "attention"} <= said.reads
    assert said.classes == (Class("Engine", (), (), frozenset({"own_state"})),)


def test_what_classes_add_to_those_of_other_packages() -> None:
    said = said_in(
        "import torch.nn as nn\n"
        "from transformers import (\n    Trainer,\n    TrainingArguments as Arguments,\n)\n"
        "from .base import Mixin\n"
        "class Config(Arguments):\n    max_length: int = 1\n    def checked_value(self): ...\n"
        "class Layer(nn.Linear, Mixin):\n    def set_adapter(self, name): ...\n"
    )
    assert said.classes == (
        Class("Config", ("Arguments",), (("transformers", "TrainingArguments"),), frozenset({"max_length", "checked_value"})),
        Class("Layer", ("Mixin",), (("torch", "Linear"),), frozenset({"set_adapter"})),
    )


def package(folder: Path, name: str, *releases: dict[str, str]) -> Package:
    """Return a package with a module for each entry in releases ``1.0``, ``2.0`` …"""
    store = Store(folder / name)
    for at, modules in enumerate(releases, 1):
        bodies = {f"{name}/{module}.py": body.encode() for module, body in modules.items()}
        store.keep(Fetched(name, f"{at}.0", "a.whl", None, "2024-01-01", True, 1, 0.1, (), bodies))
    found: list[Release] = sorted(store.releases(name), key=lambda release: release.version)
    return Package(name, found, store)


def told(rows: list[Row], kind: str) -> list[tuple[str, str, str, tuple[int, ...], tuple[int, ...]]]:
    return [(row.term, row.module, row.owner, row.has, row.lacks) for row in rows if row.kind == kind]


def test_rows(tmp_path: Path) -> None:
    sets = "def start(param):\n    param.partition_id = 1\n    param.requires_grad = True\n"
    reads = "def check(param, tokenizer):\n    return param.partition_id, tokenizer.tokens_extended\n"
    args = "from transformers import TrainingArguments\nclass _Base(TrainingArguments):\n    pass\n"
    read = {
        "deepspeed": package(tmp_path, "deepspeed", {"zero": ""}, {"zero": sets}, {"zero": sets}),
        "trl": package(
            tmp_path, "trl", {"use": reads, "args": args}, {"use": "", "args": f"{args}class Sft(_Base):\n    packing: bool\n"}
        ),
        "peft": package(tmp_path, "peft", {"a": "def start(x):\n    x.requires_grad = 1\n"}),
        "unsloth": package(tmp_path, "unsloth", {"a": "def start(x):\n    x.requires_grad = 1\n"}),
    }
    rows = rows_of(read, {"tokens_extended": {"transformers"}})
    # three packages set requires_grad, so it does not tell which one is meant
    assert told(rows["deepspeed"], SETS) == [("partition_id", "deepspeed.zero", "", (1, 2), (0, 0))]
    assert told(rows["trl"], READS) == [
        ("partition_id", "trl.use", "", (0, 0), (1, 1)),
        ("tokens_extended", "trl.use", "", (0, 0), (1, 1)),
    ]
    assert told(rows["trl"], EXTENDS) == [("packing", "trl.args", "Sft(TrainingArguments)", (1, 1), (0, 0))]
    assert not rows["peft"]


def test_a_member_of_an_own_class_is_not_foreign(tmp_path: Path) -> None:
    own = "class Engine:\n    def __init__(self):\n        self.partition_id = 1\ndef start(engine):\n    engine.partition_id = 2\n"
    rows = rows_of({"deepspeed": package(tmp_path, "deepspeed", {"zero": own})}, {})
    assert not rows["deepspeed"]
