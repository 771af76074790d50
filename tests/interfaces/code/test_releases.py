from __future__ import annotations

from pathlib import Path

import pytest

from compat.checks.code import code_needs, judge_code, releases
from tests.interfaces.code.made_up import allowed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from lib import helper", {"lib": ("0.1", "0.2")}),
        ("from lib import Special\nSpecial(1, tokenizer=2)", {"lib": ("0.1", "0.2")}),
        ("from lib import Special\nSpecial(1, processing=2)", {"lib": ("0.3",)}),
        ("import lib\nlib.Special(1, processing=2)", {"lib": ("0.3",)}),
        ("from lib import Special\nSpecial(1, 2, 3, 4)", {"lib": ("0.1", "0.2", "0.3")}),  # in no release: says nothing
        ("from lib import Special\nkeys = {}\nSpecial(1, **keys)", {"lib": ("0.1", "0.2", "0.3")}),
    ],
)
def test_the_releases_with_all_that_is_used(tmp_path: Path, text: str, expected: dict[str, tuple[str, ...]]) -> None:
    assert allowed(tmp_path, text) == expected


def test_what_a_class_inherits_narrows_the_other_package(tmp_path: Path) -> None:
    found = allowed(tmp_path, "from lib import Config\nConfig(eval='steps', max_seq=3)")
    assert found == {"lib": ("0.1", "0.2"), "base": ("2.0", "3.0")}


def test_an_override_that_a_base_of_another_package_calls_otherwise(tmp_path: Path) -> None:
    text = "from lib import Special\nclass Mine(Special):\n    def compute_loss(self, model, inputs): pass"
    assert allowed(tmp_path, text)["base"] == ("1.0", "2.0")
    text = text.replace("inputs)", "inputs, items=None)")
    assert "base" not in allowed(tmp_path, text)  # every release of it will do


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    from lib import helper\nexcept ImportError:\n    helper = None",
        "import lib\nif hasattr(lib, 'helper'):\n    lib.helper()",
        "import lib\nlib.helper = print\nlib.helper()",
        "from lib import Special\ndef f(it: Special):\n    it.of_a_subclass()\n    it.compute_loss(other=1)",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lib import helper",
    ],
)
def test_what_is_guarded_or_set_by_the_code_says_nothing(tmp_path: Path, text: str) -> None:
    assert allowed(tmp_path, text).get("lib", ("0.1", "0.2", "0.3")) == ("0.1", "0.2", "0.3")


def test_a_framework_that_patches_leaves_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from compat.interfaces.code import needs

    monkeypatch.setitem(needs.PATCHERS, "unsloth", frozenset(("lib",)))
    text = "import unsloth\nfrom lib import Special, helper\nSpecial(1, processing=2)"
    assert allowed(tmp_path, text) == {"lib": ("0.1", "0.2")}
    assert allowed(tmp_path, text.removeprefix("import unsloth\n")) == {"lib": ()}


def test_a_module_beside_the_code_is_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text("", encoding="utf-8")
    assert allowed(tmp_path, "from lib import helper") == {}


def test_a_requirement_that_the_code_states(tmp_path: Path) -> None:
    text = (
        "from lib import Special\nfrom transformers.utils.versions import require_version\nrequire_version('lib>=0.2,<0.3')\n"
    )
    assert allowed(tmp_path, text) == {"lib": ("0.2",)}


def test_fields_that_are_read_of_parsed_arguments(tmp_path: Path) -> None:
    text = "from base import HfArgumentParser\nfrom lib import Config\n"
    text += "parser = HfArgumentParser((Config,))\n(config,) = parser.parse_args_into_dataclasses()\nprint(config.max_length)\n"
    assert allowed(tmp_path, text)["lib"] == ("0.3",)
    assert allowed(tmp_path, text.replace("print(", "config.max_length = 1\nprint("))["lib"] == ("0.1", "0.2", "0.3")


@pytest.mark.parametrize(
    ("version", "missing"), [("4.57.6", []), ("5.20.2", ["transformers.PreTrainedTokenizerBase.encode_plus"])]
)
def test_a_method_that_tokenizers_no_longer_have(tmp_path: Path, version: str, missing: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from transformers import AutoTokenizer\nt = AutoTokenizer.from_pretrained('x')\n"
        "t.encode_plus('a')\nt.prepare_for_model([1])\nt.of_a_subclass()\n"
    )
    wanted = code_needs((str(script),))
    assert [each.what for each in wanted.all if releases().answer("transformers", version, each.need).met is False] == missing


def test_a_method_that_is_gone_is_reported_once_whatever_is_passed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("from transformers import DynamicCache\nc = DynamicCache()\nc.get_usable_length(3, layer_idx=1)\n")
    found = list(judge_code((str(script),), {"transformers": "5.20.2"}))
    assert [each.title for each in found] == ["transformers.DynamicCache.get_usable_length is not in transformers 5.20.2"]


def _titles(tmp_path: Path, text: str, **installed: str) -> list[str]:
    script = tmp_path / "script.py"
    script.write_text(text)
    return [each.title for each in judge_code((str(script),), installed)]


_PPO = "from trl import PPOTrainer\n"


@pytest.mark.parametrize(
    ("text", "version", "titles"),
    [
        ("PPOTrainer(a, b, None, c)", "0.11.4", []),
        ("PPOTrainer(a, b, None, c)", "0.18.0", ["trl.PPOTrainer() is called without what trl 0.18.0 requires"]),
        ("PPOTrainer(a, b, None, *more)", "0.18.0", []),
        ("PPOTrainer(a, b, **more)", "0.18.0", []),
        ("try:\n    PPOTrainer(a, b)\nexcept TypeError: ...", "0.18.0", []),
        # one finding for a call: what it passes is not accepted
        ("PPOTrainer(config=a, model=b)", "0.18.0", ["trl.PPOTrainer(config=) is not accepted by trl 0.18.0"]),
    ],
)
def test_arguments_that_another_release_does_not_require(tmp_path: Path, text: str, version: str, titles: list[str]) -> None:
    assert _titles(tmp_path, _PPO + text, trl=version) == titles


def test_arguments_that_every_release_requires_say_nothing_about_the_release(tmp_path: Path) -> None:
    assert _titles(tmp_path, "from peft import get_peft_model\nget_peft_model(model)\n", peft="0.15.0") == []
