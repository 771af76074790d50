"""The strings that a module accepts, by the container that holds them."""

from __future__ import annotations

from textwrap import dedent

from hypothesis import given
from hypothesis import strategies as st

from scripts.surface.accepted import accepted_by


def found(source: str) -> set[tuple[str, str]]:
    return accepted_by(dedent(source).encode())


def test_members_of_enumerations() -> None:
    assert found(
        """
        class OptimizerNames(ExplicitEnum):
            ADALOMO = "adalomo"
            COUNT = 3
        class Plain:
            name = "adalomo"
        """
    ) == {("OptimizerNames", "adalomo")}


def test_keys_of_registries() -> None:
    assert found(
        """
        ACT2CLS = {"gelu": GELU, **OTHER}
        METHODS: dict[str, type] = {"awq": Awq}
        METHODS["gptq"] = Gptq
        METHODS.update({"fp8": Fp8})
        NAMES = OrderedDict([("bert", "Bert"), ("gpt2", "GPT2")])
        TYPES = OrderedDict[str, str]([("llama", "Llama")])
        MODES = frozenset({"static"}) | {"dynamic"}
        class Attention:
            _global_mapping = {"sdpa": sdpa}
        """
    ) == {
        ("ACT2CLS", "gelu"), ("METHODS", "awq"), ("METHODS", "gptq"), ("METHODS", "fp8"), ("NAMES", "bert"), ("NAMES", "gpt2"),
        ("MODES", "static"), ("MODES", "dynamic"), ("Attention._global_mapping", "sdpa"), ("TYPES", "llama"),
    }  # fmt: skip


def test_classes_that_sglang_registers() -> None:
    assert found("EntryClass = [LlamaForCausalLM, Phi3ForCausalLM]\n") == {
        ("EntryClass()", "LlamaForCausalLM"), ("EntryClass()", "Phi3ForCausalLM")
    }  # fmt: skip
    assert found("EntryClass = GptOssForCausalLM\n") == {("EntryClass()", "GptOssForCausalLM")}


def test_what_annotations_and_options_allow() -> None:
    assert found(
        """
        LossType = Literal["sigmoid", "ipo"]
        @dataclass
        class DPOConfig:
            loss_type: Optional[Literal["hinge"]] = "hinge"
            optim: str = field(default="x", metadata={"choices": ["adamw"]})
        def serve(kv_cache_dtype: Literal["auto", "fp8"] = "auto"): ...
        parser.add_argument("--tool-call-parser", choices=["hermes"], default="x")
        """
    ) == {
        ("=LossType", "sigmoid"), ("=LossType", "ipo"), ("DPOConfig.loss_type", "hinge"), ("DPOConfig.optim", "adamw"),
        ("=kv_cache_dtype", "auto"), ("=kv_cache_dtype", "fp8"), ("=tool_call_parser", "hermes"),
    }  # fmt: skip


def test_registrations() -> None:
    assert found(
        """
        @ToolParserManager.register_module(["hermes", "mistral"])
        class Hermes: ...
        @register_quantization_config("awq")
        class Awq(Base):
            def __init__(self):
                self.register_buffer("weight", None)
                self.register_module("layer", None)
        """
    ) == {
        ("ToolParserManager.register_module()", "hermes"), ("ToolParserManager.register_module()", "mistral"),
        ("register_quantization_config()", "awq"),
    }  # fmt: skip


def test_comparisons() -> None:
    assert found(
        """
        def loss(self, config):
            if self.loss_type == "sigmoid" or config["peft_type"] in ("LORA", "IA3"):
                supported_backends = ["fa3"]
                local = ["anything"]
            elif len(x) == 3 and name == "told":
                return other.loss_type != "ipo"
            match self.mode_of_cache:
                case "static":
                    assert cache_implementation in ["dynamic"]
        """
    ) == {
        ("=loss_type", "sigmoid"), ("=peft_type", "LORA"), ("=peft_type", "IA3"), ("supported_backends", "fa3"),
        ("=loss_type", "ipo"), ("=cache_implementation", "dynamic"),
    }  # fmt: skip


def test_sentences_and_numbers_are_no_values() -> None:
    assert found('MESSAGES = {"a whole sentence": 1, "": 2, "x": 3, "3d": 4}') == set()


def test_what_is_no_python() -> None:
    assert found("def (") == set()
    assert accepted_by(b"\x00\xff") == set()


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    assert all(container and value for container, value in accepted_by(text.encode("utf-8", "replace")))
