"""Names that are not there, asked for in the tables of published source."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.diagnosis.explanations import between
from compat.diagnosis.frame_packages import modules_of
from compat.diagnosis.missing_names import module_of_name
from compat.diagnosis.named_releases import of_attribute, of_keyword, of_member, of_name
from compat.model import Distribution, Environment, Finding
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.facts import Facts
from tests.diagnosis.test_symptoms import said, trace
from tests.examples import examples


@pytest.mark.parametrize(
    ("error", "other", "specifier"),
    [
        ("ImportError: cannot import name 'LLaMAForCausalLM' from 'transformers' (/v/x.py)", "LlamaForCausalLM", ">=4.28.0"),
        ("AttributeError: module transformers has no attribute LLaMATokenizer", "LlamaTokenizer", ">=4.28.0"),
        (
            "ValueError: Tokenizer class LLaMATokenizer does not exist or is not currently imported.",
            "LlamaTokenizer",
            ">=4.28.0",
        ),
        ("ImportError: cannot import name 'autotokenizer' from 'transformers' (/v/x.py)", "AutoTokenizer", None),
    ],
)
def test_names_in_another_spelling(error: str, other: str, specifier: str | None) -> None:
    (finding,) = said(error)
    assert finding.rule == "symptom-spelling"
    assert finding.title.endswith(f"as {other}")
    assert next((fix.spec for fix in finding.fixes if fix.package), None) == specifier


def test_a_name_in_another_spelling_that_the_installed_release_has() -> None:
    error = "ImportError: cannot import name 'LLaMAForCausalLM' from 'transformers' (/v/x.py)"
    (finding,) = said(error, with_release("transformers", "4.40.0"))
    assert [fix.kind for fix in finding.fixes] == ["config"]


def test_an_import_that_a_program_reports_without_its_class() -> None:
    first, *_ = said(
        "Failed to import llava_llama. Error: cannot import name 'apply_chunking_to_forward' from 'transformers.modeling_utils' "
        "(f:\\Lib\\site-packages\\transformers\\modeling_utils.py)\n"
        "ImportError: cannot import name 'LlavaLlamaForCausalLM' from 'F:\\\\nodes\\\\llava.model' (F:\\nodes\\llava\\model\\__init__.py)\n"
    )
    assert first.title.startswith("transformers.modeling_utils.apply_chunking_to_forward is in transformers up to 4.55.4")


def test_a_method_that_all_releases_in_the_tables_have() -> None:
    (finding,) = said("AttributeError: type object 'Trainer' has no attribute 'get_optimizer_cls_and_kwargs'")
    assert "or earlier on" in finding.title
    assert finding.verdict == "possible"


def with_release(name: str, version: str) -> Environment:
    return Environment(distributions=(Distribution(name, version),))


@pytest.mark.parametrize(
    ("error", "what", "specifier"),
    [
        ("ImportError: cannot import name 'GRPOConfig' from 'trl' (/v/trl/__init__.py)", "trl.GRPOConfig", ">=0.14.0"),
        ("ImportError: cannot import name 'GuidedDecodingParams' from 'vllm.sampling_params' (/v/vllm/x.py)",
         "vllm.sampling_params.GuidedDecodingParams", ">=0.6.3,<=0.11.2"),
        ("ModuleNotFoundError: No module named 'trl.trainer.grpo_trainer'", "trl.trainer.grpo_trainer", ">=0.14.0"),
        # of a module that the tables leave out
        (
            "ModuleNotFoundError: No module named 'vllm.model_executor.layers.quantization.gguf'",
            "vllm.model_executor.layers.quantization.gguf",
            ">=0.5.5,<=0.23.0",
        ),
        ("AttributeError: module 'trl' has no attribute 'GRPOTrainer'", "trl.GRPOTrainer", ">=0.14.0"),
        ("TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'tokenizer'",
         "trl.SFTTrainer(tokenizer=)", ">=0.4.2,<=0.15.2"),
        ("TypeError: SFTTrainer.create_model_card() got an unexpected keyword argument 'finetuned_from'",
         "trl.SFTTrainer.create_model_card(finetuned_from=)", ">=0.4.2,<=0.11.4"),
        ("TypeError: LLM.__init__() got an unexpected keyword argument 'guided_decoding_backend'",
         "vllm.LLM(guided_decoding_backend=)", ">=0.4.1,<=0.11.2"),
        ("TypeError: SFTConfig.__init__() got an unexpected keyword argument 'max_seq_length'",
         "trl.SFTConfig(max_seq_length=)", ">=0.9.2,<=0.19.1"),
        ("TypeError: GRPOConfig.__init__() got an unexpected keyword argument 'evaluation_strategy'",  # its base is transformers'
         "transformers.TrainingArguments(evaluation_strategy=)", "<=4.50.3"),
        ("ValueError: Some specified arguments are not used by the HfArgumentParser: ['--max_seq_length', '2048', '--bf16']",
         "trl.SFTConfig(max_seq_length=)", ">=0.9.2,<=0.19.1"),
        ("ValueError: Unknown arguments from config file: ['--x', '1', '--no_cuda', 'True'].",
         "transformers.TrainingArguments(no_cuda=)", "<=4.57.6"),
        ("ImportError: cannot import name 'BaseSettings' from 'pydantic' (/v/pydantic/__init__.py)",
         "pydantic.BaseSettings", "<=1.10.27"),
        ("ModuleNotFoundError: No module named 'pkg_resources'", "pkg_resources", "<=81.0.0"),
        ("TypeError: LoraConfig.__init__() got an unexpected keyword argument 'trainable_token_indices'",  # a mixin as its base
         "peft.LoraConfig(trainable_token_indices=)", ">=0.15.0"),
        ("AttributeError: 'DynamicCache' object has no attribute 'seen_tokens'",
         "transformers.DynamicCache.seen_tokens", ">=4.36.0,<=4.53.3"),
        ("AttributeError: 'DynamicCacheWithRepeat' object has no attribute 'key_cache'",  # named after its base
         "transformers.DynamicCache.key_cache", ">=4.36.0,<=4.55.4"),
        ("TypeError: DataLoader.__init__() got an unexpected keyword argument 'in_order'",
         "torch.utils.data.DataLoader(in_order=)", ">=2.6.0"),
        ("TypeError: init_process_group() got an unexpected keyword argument 'device_id'",
         "torch.distributed.init_process_group(device_id=)", ">=2.3.0"),
    ],
)  # fmt: skip
def test_what_the_users_code_takes(error: str, what: str, specifier: str) -> None:
    (finding,) = said(f'  File "/home/me/train.py", line 3, in <module>\n    f()\n{error}\n')
    assert finding.title.startswith(f"{what} is in ")
    assert (finding.verdict, fix_of(finding)) == ("possible", specifier)


def fix_of(finding: Finding) -> str | None:
    return next((fix.spec for fix in finding.fixes if fix.package), None)


def test_a_release_that_is_known_not_to_have_it_and_one_that_has_it() -> None:
    error = "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'tokenizer'\n"
    (finding,) = said(error, with_release("trl", "0.19.1"))
    assert finding.verdict == "possible"  # whose SFTTrainer it is, the message does not say
    (finding,) = said(
        f'  File "/v/site-packages/trl/trainer/utils.py", line 3, in f\n    f()\n{error}', with_release("trl", "0.19.1")
    )
    assert finding.verdict == "hit"
    assert [fix.kind for fix in finding.fixes] == ["config", "downgrade"]
    assert "processing_class" in finding.fixes[0].text
    assert said(error, with_release("trl", "0.14.0")) == []  # another release ran
    assert said(error, with_release("trl", "0.0.0.dev7")) == []  # one that nobody has read


def test_whose_class_it_is_may_be_open() -> None:
    """setfit has TrainingArguments too: where no frame shows transformers, that is said."""
    error = "AttributeError: 'TrainingArguments' object has no attribute 'eval_strategy'"
    (finding,) = said(error + "\n")
    assert finding.why.endswith("The message does not say which TrainingArguments it is.")
    (finding,) = said(trace(error, "transformers/trainer.py"))
    assert "does not say" not in finding.why


@pytest.mark.parametrize(
    ("trainer", "keyword", "renamed"),
    [
        ("SFTTrainer", "dataset_text_field", "SFTConfig(dataset_text_field=)"),
        ("SFTTrainer", "max_seq_length", "SFTConfig(max_length=) (max_seq_length= in releases from 0.9.2 to 0.19.1)"),
        ("SFTTrainer", "neftune_noise_alpha", "SFTConfig(neftune_noise_alpha=)"),
        ("DPOTrainer", "beta", "DPOConfig(beta=)"),
        ("SFTTrainer", "tokenizer", "processing_class"),
    ],
)
def test_an_argument_that_moved_to_the_configuration(trainer: str, keyword: str, renamed: str) -> None:
    found = of_keyword(f"{trainer}.__init__", keyword, ())
    assert found is not None
    assert found.renamed == renamed


def test_an_attribute_of_a_trainer_that_no_base_has() -> None:
    """trl's trainers derive from transformers' Trainer, which might have the attribute in some release, and has it in none."""
    found = of_member("GRPOTrainer", "vllm_client", ())
    assert found is not None
    assert (found.package, found.specifier) == ("trl", ">=0.16.0,<=0.27.2")


@pytest.mark.parametrize(
    ("error", "specifier"),
    [
        ("AttributeError: 'LlamaAttention' object has no attribute 'num_heads'", "<=4.47.1"),
        ("AttributeError: 'Qwen2VLForConditionalGeneration' object has no attribute 'visual'", "<=4.57.6"),
        ("TypeError: LlamaRotaryEmbedding.__init__() got an unexpected keyword argument 'config'", ">=4.43.0"),
    ],
)
def test_classes_of_models(error: str, specifier: str) -> None:
    """Their last base is torch's Module, which answers for attributes that are set later."""
    (finding,) = said(error)
    assert (list(finding.packages), finding.fixes[0].spec) == (["transformers"], specifier)


def test_an_attribute_that_no_model_has_says_nothing_about_releases() -> None:
    assert of_member("LlamaAttention", "nonsense", ()) is None


def test_a_member_of_an_enumeration_of_the_module_in_the_failing_line() -> None:
    error = "AttributeError: type object 'MODEL_ARCH' has no attribute '{}'\n"
    line = '  File "/opt/ggml/convert.py", line 21, in ArceeModel\n    model_arch = gguf.MODEL_ARCH.{}\n'
    (finding,) = said(line.format("ARCEE") + error.format("ARCEE"), with_release("gguf", "0.16.2"))
    assert (finding.verdict, fix_of(finding)) == ("hit", ">=0.17.1")
    (finding,) = said(line.format("ARCEE") + error.format("ARCEE"), with_release("gguf", "0.18.0"))
    assert (finding.rule, finding.verdict) == ("symptom-another-copy", "possible")
    assert said(line.format("NOPE") + error.format("NOPE"), with_release("gguf", "0.16.2")) == []


def test_a_name_that_came_back_has_a_release_on_each_side() -> None:
    """is_torch_fx_available was removed for a whole series."""
    found = of_name("transformers.utils.import_utils", "is_torch_fx_available")
    assert found is not None
    assert (found.specifier, found.again) == ("<=4.57.6", "5.21.0")
    assert [fix.spec for fix in found.fixes("5.10.1")] == ["<=4.57.6", ">=5.21.0"]


def test_before_python_3_10_the_failing_line_or_the_field_names_the_class() -> None:
    (finding,) = said("TypeError: __init__() got an unexpected keyword argument 'evaluation_strategy'")
    assert finding.title.startswith("transformers.TrainingArguments(evaluation_strategy=)")
    line = '  File "/home/me/train.py", line 3, in <module>\n    config = LoraConfig(r=8, eva_config=None)\n'
    (finding,) = said(f"{line}TypeError: __init__() got an unexpected keyword argument 'eva_config'")
    assert finding.title.startswith("peft.LoraConfig(eva_config=)")
    assert said("TypeError: __init__() got an unexpected keyword argument 'config'") == []


def test_what_newer_releases_call_it() -> None:
    """Said too where the newer release leaves it to a base of another package, which does not have it."""
    found = of_keyword("SFTConfig.__init__", "max_seq_length", ())
    assert found is not None
    assert (found.renamed, found.why) == (
        "max_length",
        "not yet in 0.8.6; not accepted by 0.20.0, which calls it max_length",
    )


def test_two_packages_that_do_not_belong_together() -> None:
    error = trace("ModuleNotFoundError: No module named 'triton.common'", "unsloth/__init__.py")
    (finding,) = said(error)
    assert [fix.package for fix in finding.fixes] == ["unsloth", "triton"]
    assert fix_of(finding) is None
    assert "triton.common is in triton from 2.1.0 to 2.3.1" in finding.why
    error = trace("ImportError: cannot import name 'GRPOConfig' from 'trl' (/v/trl/__init__.py)", "swift/llm.py")
    (finding,) = said(error)
    assert [fix.package for fix in finding.fixes] == ["trl", "ms-swift"]  # newer releases have it
    assert fix_of(finding) == ">=0.14.0"


def test_what_no_release_has_says_nothing_about_releases() -> None:
    assert of_name("trl", "Nonsense") is None
    assert of_name("somebody.module", "Nonsense") is None
    assert of_attribute("trl", "nonsense") is None
    assert of_keyword("SFTTrainer.__init__", "nonsense", ()) is None
    assert of_keyword("SFTTrainer.nonsense", "tokenizer", ()) is None
    assert said("ValueError: Some specified arguments are not used by the HfArgumentParser: ['--nonsense', '1']\n") == []
    assert of_keyword("nobodys_function", "tokenizer", ("trl",)) is None
    assert of_keyword("f.<locals>.g", "x", ("trl",)) is None
    assert said("TypeError: main() got an unexpected keyword argument 'x'\n") == []


def test_what_is_not_certain_is_not_said() -> None:
    """Classes that answer for others, bases in other packages, private names, releases that are unknown."""
    assert of_member("PeftModel", "merge_and_unload", ()) is None
    assert of_member("GRPOTrainer", "model_accepts_loss_kwargs", ()) is None  # the Trainer of transformers has it since 4.46
    assert of_member("GenerationConfig", "_eos_token_tensor", ()) is None
    assert of_member("LlamaConfig", "rope_theta", ()) is None
    assert of_member("Nobodys", "name", ("trl",)) is None


def test_what_every_release_has_says_nothing_either() -> None:
    """An environment of its own is broken there: a file that is missing, a module that shadows it."""
    assert of_name("accelerate", "Accelerator") is None


def test_no_end_is_a_prerelease() -> None:
    """``<=5.0.0rc2`` would have pip install the release candidate."""
    found = of_name("transformers", "AutoModelForVision2Seq")
    assert found is not None
    assert (found.specifier, found.span) == ("<=4.57.6", "up to 4.57.6")


@settings(max_examples=examples(100))  # each looks up eight errors in the tables
@given(
    st.from_regex(r"[\w.]{1,24}", fullmatch=True),
    st.from_regex(r"\w{1,12}", fullmatch=True),
    st.sampled_from(["trl", "peft", "x"]),
)
def test_a_message_may_hold_anything(path: str, name: str, module: str) -> None:
    for error in (
        f"TypeError: {path}() got an unexpected keyword argument '{name}'",
        f"AttributeError: '{name}' object has no attribute '{name}'",
        f"AttributeError: module '{module}.{path}' has no attribute '{name}'",
        f"ImportError: cannot import name '{name}' from '{module}.{path}'",
        f"ModuleNotFoundError: No module named '{module}.{path}'",
        f"ValueError: Some specified arguments are not used by the HfArgumentParser: ['--{name}', '{path}']",
        f"ImportError: {module}>={path} is required for a normal functioning of this module, but found {module}=={path}",
        f"ImportError: this requires `{module}>={path}`",
    ):
        for finding in said(f"{error}\n", with_release("trl", "0.19.1")):
            assert finding.title


def test_a_module_without_a_file_is_explained_by_a_release_without_the_name() -> None:
    text = "ImportError: cannot import name 'LlamaForCausalLM' from 'transformers' (unknown location)\n"
    (finding,) = said(text, with_release("transformers", "4.26.0"))
    assert (finding.verdict, fix_of(finding)) == ("hit", ">=4.28.0")
    assert said(text, Environment()) == []
    (finding,) = said(text, with_release("transformers", "4.40.0"))
    assert (finding.rule, finding.verdict) == ("symptom-another-copy", "possible")


def test_a_development_version_lacks_what_its_release_lacks() -> None:
    text = "ImportError: cannot import name 'TextEnvironment' from 'trl' (/v/trl/__init__.py)\n"
    (finding,) = said(text, with_release("trl", "0.24.0.dev0"))
    assert finding.verdict == "hit"


@pytest.mark.parametrize("name", ["MyGRPOConfig", "GRPOSpecialConfig", "XGRPOConfig"])
def test_a_class_whose_name_says_what_it_is_derived_from(name: str) -> None:
    text = f"TypeError: {name}.__init__() got an unexpected keyword argument 'loss_type'\n"
    (finding,) = said(text, with_release("trl", "0.15.2"))
    assert (finding.verdict, list(finding.packages)) == ("possible", ["trl"])
    assert f"{name} is assumed to derive from GRPOConfig because of its name." in finding.why


@pytest.mark.parametrize(("version", "verdicts"), [("4.4.2", ["possible"]), ("4.27.1", ["hit"]), ("4.40.0", ["possible"])])
def test_a_release_older_than_the_tables_lacks_what_their_oldest_lacks(version: str, verdicts: list[str]) -> None:
    error = "ImportError: cannot import name 'LlamaForCausalLM' from 'transformers' (/v/transformers/__init__.py)\n"
    found = said(error, with_release("transformers", version))
    assert [each.verdict for each in found] == verdicts
    assert ("another-copy" in found[0].rule) == (version == "4.40.0")


@pytest.mark.parametrize(("version", "verdicts"), [("1.6.5.post0", []), ("1.7.0", ["possible"]), ("2.0.0a1", ["possible"])])
def test_a_release_between_those_that_were_read_may_lack_what_one_beside_it_lacks(version: str, verdicts: list[str]) -> None:
    error = "TypeError: Trainer.__init__() got an unexpected keyword argument 'weights_summary'\n"
    assert [each.verdict for each in said(error, with_release("pytorch-lightning", version))] == verdicts


@pytest.mark.parametrize(
    ("error", "package"),
    [
        ("TypeError: Trainer.__init__() got an unexpected keyword argument 'gpus'", "pytorch-lightning"),
        ("TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'", "transformers"),
        ("TypeError: Trainer.fit() got an unexpected keyword argument 'train_dataloader'", "pytorch-lightning"),
    ],
)
def test_a_class_of_two_packages_is_the_one_that_had_the_argument(error: str, package: str) -> None:
    (finding,) = said(error + "\n")
    assert (list(finding.packages), finding.verdict) == ([package], "possible")


def test_a_compiled_module_names_its_distribution() -> None:
    text = "ModuleNotFoundError: No module named 'flash_attn_2_cuda'"
    errors = parse_log(text)
    (finding,) = between("", errors, decisive(errors), Facts(Environment()), ())
    assert (finding.rule, list(finding.packages)) == ("symptom-no-extension", ["flash-attn"])
    assert "--no-build-isolation" in str(finding.fixes[0].command)


@pytest.mark.parametrize(
    ("error", "installed", "title", "why"),
    [
        ("module 'torch' has no attribute 'uint64'", "2.1.0", "torch.uint64 is in torch from 2.3.0 on", "not yet in 2.2.2"),
        ("module 'torch' has no attribute 'accelerator'", "2.5.1", "torch.accelerator is in torch from 2.6.0 on",
            "not yet in 2.5.1"),
        ("module 'torch.nn' has no attribute 'RMSNorm'", "2.3.0", "torch.nn.RMSNorm is in torch at least from 2.4.0 on",
            "does not show it"),
    ],
)  # fmt: skip
def test_names_of_a_module_that_takes_others_from_compiled_code(error: str, installed: str, title: str, why: str) -> None:
    (finding,) = said(f"AttributeError: {error}", with_release("torch", installed))
    assert (finding.verdict, finding.title) == ("hit", title)
    assert why in finding.why


@pytest.mark.parametrize("name", ["Linear", "NoSuchLayerAnywhere"])
def test_names_that_every_release_shows_or_none_are_no_question_of_releases(name: str) -> None:
    assert of_attribute("torch.nn", name) is None


FSDP = """  File "/v/lib/python3.9/site-packages/transformers/trainer.py", line 1469, in _wrap_model
    self.model = model = FSDP(
TypeError: {}__init__() got an unexpected keyword argument 'forward_prefetch'
"""


@pytest.mark.parametrize("name", ["", "FullyShardedDataParallel."])
def test_an_argument_that_all_known_releases_take_was_refused_by_an_older_one(name: str) -> None:
    """Also where Python does not name the class and the line has the name under which it was imported."""
    (finding,) = said(FSDP.format(name))
    assert finding.title.startswith("transformers calls ")
    assert "All releases that were analyzed take it" in finding.why
    assert [fix.spec for fix in finding.fixes if fix.package == "torch"] == [">=1.13.1"]
    assert [each.packages["torch"] for each in said(FSDP.format(name), with_release("torch", "1.12.1"))] == ["1.12.1"]
    assert not any("analyzed take it" in each.why for each in said(FSDP.format(name), with_release("torch", "2.6.0")))


def test_a_member_that_a_known_class_never_had_is_not_looked_for_in_others() -> None:
    assert said("AttributeError: 'DynamicCache' object has no attribute 'cache_position'\n") == []


def test_a_class_without_the_method_is_another_of_its_name() -> None:
    assert (
        said("TypeError: Pipeline.from_pretrained() got an unexpected keyword argument 'use_auth_token'\n") == []
    )  # pyannote's
    errors = parse_log("TypeError: Pipeline.from_pretrained() got an unexpected keyword argument 'use_auth_token'\n")
    assert between("", errors, decisive(errors), Facts(Environment()), ()) == ()


def test_the_line_that_asks_torch_for_an_attribute_is_the_one_before_its_getter() -> None:
    error = "AttributeError: 'LlamaRMSNorm' object has no attribute 'eps'"
    frames = ("unsloth/models/_utils.py", "torch/nn/modules/module.py")
    asking = [package_of_frames(trace(error, *frames).replace(", in f", f", in {name}")) for name in ("f", "__getattr__")]
    assert asking == [["torch", "unsloth"], ["unsloth"]]


def package_of_frames(text: str) -> list[str]:
    (error,) = parse_log(text)
    return modules_of(error)


@pytest.mark.parametrize("text", ["No package metadata was found for bitsandbytes", "bitsandbytes"])
def test_a_distribution_without_metadata(text: str) -> None:
    for environment, there in ((Environment(), False), (with_release("bitsandbytes", "0.45.0"), True)):
        errors = parse_log(f"importlib.metadata.PackageNotFoundError: {text}\n")
        (finding,) = between("", errors, decisive(errors), Facts(environment), ())
        assert (finding.rule, finding.fixes[0].command) == ("symptom-no-metadata", "pip install bitsandbytes")
        assert ("0.45.0 is listed as installed" in finding.why) is there


def test_a_distribution_that_has_another_name_on_this_system_is_not_installed_under_the_first() -> None:
    errors = parse_log("importlib.metadata.PackageNotFoundError: No package metadata was found for triton\n")
    (finding,) = between("", errors, decisive(errors), Facts(Environment(os="windows")), ())
    assert "triton-windows provides the module" in finding.why
    assert all("install triton" not in (fix.command or "") for fix in finding.fixes)


def test_a_private_function_by_the_module_that_calls_it() -> None:
    """It takes any argument since 4.48; the function is in another module, which later releases of this one do not import."""
    error = "TypeError: _flash_attention_forward() got an unexpected keyword argument 'num_items_in_batch'"
    text = trace(error, "transformers/models/llama/modeling_llama.py")
    (finding,) = said(text, Environment(distributions=(Distribution("transformers", "4.46.1"),)))
    assert (finding.verdict, finding.fixes[0].spec) == ("hit", ">=4.48.0")
    (finding,) = said(f"{error}\n")  # without frames, by the public module that has the function
    assert (finding.verdict, finding.fixes[0].spec) == ("possible", ">=4.48.0")


def test_a_function_that_is_named_after_its_package() -> None:
    assert module_of_name("liger_fused_linear_cross_entropy", ()) == "liger_kernel.transformers.functional"
    assert module_of_name("fused_linear_cross_entropy", ()) is None


def test_a_name_that_all_known_releases_have_is_not_looked_up_elsewhere() -> None:
    """transformers.models.auto had it too, up to 4.51; the message is of a release before all that were analyzed, or a copy."""
    (finding,) = said(
        "ImportError: cannot import name 'AutoModelForCausalLM' from 'transformers' (/v/transformers/__init__.py)"
    )
    assert [(fix.package, fix.spec) for fix in finding.fixes] == [("transformers", ">=4.26.0")]
    assert "All releases that were analyzed have it" in finding.why


def test_names_that_torch_has_and_no_other_package_uses() -> None:
    (finding,) = said("AttributeError: module 'torch.library' has no attribute 'wrap_triton'", with_release("torch", "2.5.1"))
    assert (finding.verdict, finding.fixes[0].spec) == ("hit", ">=2.6.0")
    (finding,) = said("TypeError: TransformerConfig.__init__() got an unexpected keyword argument 'moe_router_dtype'")
    assert (finding.fixes[0].package, finding.fixes[0].spec) == ("megatron-core", ">=0.12.0")


def test_an_argument_of_the_only_trainer_that_ever_took_it() -> None:
    (finding,) = said("TypeError: LogitsTrainer.__init__() got an unexpected keyword argument 'dataset_text_field'")
    assert (finding.verdict, finding.fixes[-1].package, finding.fixes[-1].spec) == ("possible", "trl", ">=0.4.2,<=0.12.2")
    assert "LogitsTrainer is assumed to derive from SFTTrainer because of this argument." in finding.why
    assert said("TypeError: LogitsTrainer.__init__() got an unexpected keyword argument 'teacher_temperature'") == []


def test_the_name_in_older_releases_is_no_fix_for_a_newer_one() -> None:
    """transformers has HybridCache at the top from 4.44.0 to 4.57.6; only before, it is in cache_utils alone."""
    error = "ImportError: cannot import name 'HybridCache' from 'transformers'\n"
    (gone,) = said(error, Environment(distributions=(Distribution("transformers", "5.2.0"),)))
    assert [fix.kind for fix in gone.fixes] == ["downgrade"]
    (not_yet,) = said(error, Environment(distributions=(Distribution("transformers", "4.43.4"),)))
    assert not_yet.fixes[0].text == "use transformers.cache_utils.HybridCache, its name in the other releases"
