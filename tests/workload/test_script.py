"""Training scripts read as syntax trees: trainers, configurations, constants, branches and the order of imports."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from compat.errors import InputError
from compat.workload.script import ScriptFacts, read_script


def read(script: Path, text: str) -> ScriptFacts:
    script.write_text(dedent(text))
    return read_script(script.name)


def test_a_typical_grpo_script(script: Path) -> None:
    found = read(script, '''
        """A docstring."""
        from datasets import load_dataset
        from trl import GRPOConfig, GRPOTrainer

        MODEL = "mistralai/Mistral-7B-Instruct-v0.3"

        def reward_length(completions, **kwargs):
            return [-len(c) for c in completions]

        def main():
            args = GRPOConfig(
                output_dir=f"out/{MODEL}",
                use_vllm=True,
                per_device_train_batch_size=2 * 4,
                gradient_accumulation_steps=4,
                bf16=True,
                gradient_checkpointing=True,
                use_liger_kernel=False,
            )
            trainer = GRPOTrainer(model=MODEL, reward_funcs=reward_length, args=args, train_dataset=load_dataset("x"))
            trainer.train(resume_from_checkpoint=True)

        if __name__ == "__main__":
            main()
    ''')  # fmt: skip
    work = found.workload
    assert (work.task, work.trainer, work.model) == ("grpo", "GRPOTrainer", "mistralai/Mistral-7B-Instruct-v0.3")
    assert (work.batch_size, work.precision, work.launcher, work.processes) == (8, "bf16", None, None)
    assert set(work.features or ()) == {"vllm", "gradient-accumulation", "gradient-checkpointing", "resume", "model-by-name"}
    assert work.features_absent == ("liger", "unsloth")
    assert work.origins["task"] == "train.py:21"
    assert work.origins["features.vllm"] == "train.py:12"
    assert found.imports == (("datasets", 3), ("trl", 4))
    assert found.notes == ()


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("from trl.experimental.orpo import ORPOTrainer", {"trl-experimental"}),
        ("from ray.serve.llm import LLMConfig, build_openai_app", {"ray-serve-llm"}),
        ("from ray.serve import deployment", set()),
        (
            "try:\n    from trl import ORPOTrainer\nexcept ImportError:\n    from trl.experimental.orpo import ORPOTrainer",
            {"trl-experimental"},
        ),
        ("from trl import ORPOTrainer", set()),
        ("from trl import SFTTrainer\nSFTTrainer('Qwen/Qwen3-0.6B', train_dataset=data)", {"model-by-name"}),
        ("from trl import DPOTrainer\nDPOTrainer(model=args.model_name_or_path)", {"model-by-name"}),
        ("from trl import SFTTrainer\nSFTTrainer(model=model)", set()),
        ("from transformers import Trainer\nTrainer(model='Qwen/Qwen3-0.6B')", set()),
        ("from datasets import load_dataset\nload_dataset('data/squad.py')", {"dataset-script"}),
        ("from datasets import load_dataset\nload_dataset(path='squad', trust_remote_code=True)", set()),
        ("from accelerate.utils import ParallelismConfig\nParallelismConfig(cp_size=4)", {"context-parallel"}),
        (
            "from accelerate import FullyShardedDataParallelPlugin as P\nP(cpu_ram_efficient_loading=True)",
            {"fsdp", "ram-efficient-loading"},
        ),
        (
            "from unsloth import UnslothTrainingArguments as A\nA(embedding_learning_rate=5e-6, bf16=True)",
            {"unsloth", "embedding-learning-rate"},
        ),
        ("from unsloth import UnslothTrainingArguments as A\nA(embedding_learning_rate=None, bf16=True)", {"unsloth"}),
        ("from peft import LoraConfig\nLoraConfig(r=8, modules_to_save=['lm_head'])", {"peft", "modules-to-save"}),
        ("from peft import LoraConfig\nLoraConfig(r=8, modules_to_save=None)", {"peft"}),
        ("from peft import LoraConfig\nLoraConfig(r=8, task_type='SEQ_CLS')", {"peft", "classifier-adapter"}),
        ("from peft import LoraConfig, TaskType\nLoraConfig(task_type=TaskType.TOKEN_CLS)", {"peft", "classifier-adapter"}),
        ("from peft import LoraConfig, TaskType\nLoraConfig(task_type=TaskType.CAUSAL_LM)", {"peft"}),
        ("from transformers import AutoModelForMaskedLM as M\nM.from_pretrained('answerdotai/ModernBERT-base')", {"masked-lm"}),
        ("from transformers import AutoModelForCausalLM as M\nM.from_pretrained('Qwen/Qwen3-0.6B')", set()),
        ("batch = tokenizer(texts, padding=True)\nmodel.generate(**batch)", {"padded-prompts"}),
        ("batch = tokenizer(texts, padding='max_length')\nmodel.forward(**batch)", set()),
        ("batch = tokenizer(texts, padding=False)\nmodel.generate(**batch)", set()),
    ],
)
def test_features_that_few_rules_ask_for(text: str, on: set[str], script: Path) -> None:
    assert set(read(script, text).workload.features or ()) == on


@pytest.mark.parametrize(
    ("call", "verdict"),
    [
        ("'m', attn_implementation='flash_attention_2'", True),
        ("'m', attn_implementation='kernels-community/flash-attn'", True),
        ("'m', use_flash_attention_2=True", True),
        ("'m', attn_implementation='sdpa'", False),
        ("'m'", False),  # FlashAttention is no default of transformers
        ("'m', config=config", None),
        ("'m', **options", None),
        ("'m', attn_implementation=attention", None),
    ],
)
def test_flash_attention_is_used_where_it_is_asked_for(call: str, verdict: bool | None, script: Path) -> None:
    work = read(script, f"from transformers import AutoModel\nAutoModel.from_pretrained({call})").workload
    feature = "flash-attention"
    assert (feature in (work.features or ()), feature in (work.features_absent or ())) == (verdict is True, verdict is False)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("from vllm import LLM\nLLM('m', enable_lora=True)", True),
        ("from vllm import LLM\nLLM('m')", False),
        ("from vllm import LLM\nLLM('m', **options)", None),
        ("from unsloth import FastLanguageModel as F\nF.from_pretrained('m', fast_inference=True)", True),
        ("from unsloth import FastLanguageModel as F\nF.from_pretrained('m', fast_inference=False)", False),
    ],
)
def test_adapters_that_vllm_applies(text: str, verdict: bool | None, script: Path) -> None:
    work = read(script, text).workload
    feature = "vllm-lora"
    assert (feature in (work.features or ()), feature in (work.features_absent or ())) == (verdict is True, verdict is False)


@pytest.mark.parametrize(("call", "verdict"), [
    ("vllm.LLM('m', enforce_eager=True)", True), ("vllm.LLM('m')", False), ("vllm.LLM('m', **options)", None),
    ("unsloth.FastLanguageModel.from_pretrained('m', fast_inference=True, enforce_eager=True)", True),
    ("unsloth.FastLanguageModel.from_pretrained('m', fast_inference=True)", None),
])  # fmt: skip
def test_whether_vllm_compiles(call: str, verdict: bool | None, script: Path) -> None:
    work = read(script, f"import unsloth, vllm\n{call}").workload
    feature = "enforce-eager"
    assert (feature in (work.features or ()), feature in (work.features_absent or ())) == (verdict is True, verdict is False)


@pytest.mark.parametrize(("imports", "use"), [
    ("from trl import SFTTrainer", "SFTTrainer()"), ("import trl", "trl.SFTTrainer()"), ("import trl as t", "t.SFTTrainer()"),
    ("from trl import SFTTrainer as T", "T()"), ("import trl.trainer.sft_trainer", "trl.trainer.sft_trainer.SFTTrainer()"),
    ("from trl.trainer import sft_trainer as s", "s.SFTTrainer()"), ("from trl import *", "SFTTrainer()"),
    ("from trl import SFTTrainer", "class Mine(SFTTrainer): pass\nMine()"), ("import trl", "class Mine(trl.SFTTrainer): pass"),
    ("from trl import SFTTrainer", "class A(SFTTrainer): pass\nclass B(A): pass\nB()"), ("from unsloth import UnslothTrainer", "UnslothTrainer()"),
    ("from trl import SFTTrainer", "if config.fast:\n    SFTTrainer()"), ("from trl import SFTTrainer", "try:\n    SFTTrainer()\nexcept OSError: pass"),
    ("try:\n    from trl.a import SFTTrainer\nexcept ImportError:\n    from trl import SFTTrainer", "SFTTrainer()"),
])  # fmt: skip
def test_names_are_followed_through_imports_and_classes(imports: str, use: str, script: Path) -> None:
    work = read(script, f"{imports}\n{use}\n").workload
    assert (work.task, work.trainer) == ("sft", "SFTTrainer")


@pytest.mark.parametrize(("line", "task"), [
    ("from trl import DPOTrainer as X", "dpo"), ("from trl.experimental.ppo import PPOTrainer as X", "ppo"), ("from trl import ORPOTrainer as X", "orpo"),
    ("from trl import KTOTrainer as X", "kto"), ("from trl import RewardTrainer as X", "reward"), ("from trl import RLOOTrainer as X", "rloo"),
    ("from trl import OnlineDPOTrainer as X", "online-dpo"), ("from trl import XPOTrainer as X", "xpo"), ("from trl import NashMDTrainer as X", "nash-md"),
    ("from trl.experimental.sdpo import SDPOTrainer as X", "sdpo"), ("from transformers import Trainer as X", "train"),
    ("from sentence_transformers import SentenceTransformerTrainer as X", "train"), ("from setfit import Trainer as X", "train"),
    ("from transformers import Seq2SeqTrainer as X", "train"), ("from open_r1.trainers import GRPOTrainer as X", "grpo"),
    ("from lightning import Trainer as X", None), ("from mylib import Trainer as X", None), ("from trl import SFTConfig as X", None),
    ("from mylib import OddTrainer as X", None),
])  # fmt: skip
def test_the_task_follows_from_the_trainer(line: str, task: str | None, script: Path) -> None:
    assert read(script, f"{line}\nX()\n").workload.task == task


@pytest.mark.parametrize("text", [
    "from trl import SFTTrainer", "SFTTrainer()", "class SFTTrainer: pass\nSFTTrainer()", "from trl import SFTTrainer\nif False:\n    SFTTrainer()",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from trl import SFTTrainer\n    x = SFTTrainer()",
    "from trl import SFTTrainer\nRUN = False\nif RUN:\n    SFTTrainer()", "from trl import SFTTrainer\nif not True:\n    SFTTrainer()",
    "'from trl import SFTTrainer; SFTTrainer()'", "",
])  # fmt: skip
def test_what_is_not_used_is_no_trainer(text: str, script: Path) -> None:
    assert read(script, text).workload.trainer is None


def test_two_trainers_stay_unknown_and_are_told(script: Path) -> None:
    found = read(script, "from trl import SFTTrainer, GRPOTrainer\nSFTTrainer()\nGRPOTrainer()\n")
    assert (found.workload.task, found.workload.trainer) == (None, None)
    assert found.notes == ("trainer stays unknown: SFTTrainer (train.py:2) and GRPOTrainer (train.py:3)",)


CONFIG = "from trl import SFTConfig\n"


@pytest.mark.parametrize(("text", "expected"), [
    ("SFTConfig(packing=True)", True), ("SFTConfig(packing=False)", False), ("SFTConfig(packing=args.packing)", None), ("SFTConfig()", None),
    ("P = True\nSFTConfig(packing=P)", True), ("P = True\nP = False\nSFTConfig(packing=P)", None), ("Q = True\nP = Q\nSFTConfig(packing=P)", True),
    ("P = True\nP = load()\nSFTConfig(packing=P)", None), ("for P in (True, False):\n    SFTConfig(packing=P)", None),
    ("def f(P=True):\n    SFTConfig(packing=P)", None), ("P = True\ndef f():\n    SFTConfig(packing=P)", True),
    ("def g(P): pass\nP = True\nSFTConfig(packing=P)", True), ("def f():\n    P = True\n    SFTConfig(packing=P)\nP = False", True),
    ("P = True\ndef f():\n    global P\n    P = False\nSFTConfig(packing=P)", None), ("P = True\ndef f():\n    P = load()\nSFTConfig(packing=P)", True),
    ("K = {'packing': True}\nSFTConfig(**K)", True), ("K = dict(packing=True)\nSFTConfig(**K)", True), ("SFTConfig(**{'packing': True, **more})", True),
    ("K = {'packing': True}\nK['packing'] = False\nSFTConfig(**K)", None), ("K = {'packing': True}\nK.update(x)\nSFTConfig(**K)", None),
    ("K = {'p': True}\nSFTConfig(packing=K['p'])", True), ("class C:\n    P = True\nSFTConfig(packing=C.P)", True),
    ("class C:\n    P = True\nC.P = False\nSFTConfig(packing=C.P)", None), ("SFTConfig(packing=True if x else False)", None),
    ("SFTConfig(packing=True if x else True)", True), ("SFTConfig(packing=True if True else x)", True), ("SFTConfig(packing=not False)", True),
    ("if x:\n    SFTConfig(packing=True)", None), ("if x:\n    SFTConfig(packing=True)\nelse:\n    SFTConfig()", None),
    ("if x:\n    a = SFTConfig(packing=True)\nelse:\n    a = SFTConfig(packing=False)", None), ("x and SFTConfig(packing=True)", None),
    ("SFTConfig(packing=True)\nif x:\n    SFTConfig(packing=False)", None), ("SFTConfig(packing=True)\nif x:\n    SFTConfig(packing=True)", True),
    ("if True:\n    SFTConfig(packing=True)\nelse:\n    SFTConfig(packing=False)", True), ("while True:\n    SFTConfig(packing=True)", True),
    ("match x:\n    case 1:\n        SFTConfig(packing=True)", None), ("try:\n    y()\nexcept E:\n    SFTConfig(packing=True)", None),
    ("@dataclass\nclass C(SFTConfig):\n    packing: bool = True", True), ("class C(SFTConfig):\n    packing: bool = field(default=True)", True),
    ("class C(SFTConfig): pass\nC(packing=True)", True), ("args = SFTConfig()\nargs.packing = True", True), ("args.packing = compute()", None),
    ("other.packing = True", None), ("f(packing=True)", None), ("lambda: SFTConfig(packing=True)", True), ("SFTConfig(packing=(P := True))", None),
])  # fmt: skip
def test_constants_are_followed_and_nothing_else(text: str, expected: bool | None, script: Path) -> None:
    work = read(script, CONFIG + text + "\n").workload
    found = True if "packing" in (work.features or ()) else False if "packing" in (work.features_absent or ()) else None
    assert found is expected


@pytest.mark.parametrize(("text", "key", "expected"), [
    ("from transformers import AutoModelForCausalLM as M\nM.from_pretrained('mistralai/Mistral-7B')", "model", "mistralai/Mistral-7B"),
    ("from transformers import AutoModelForCausalLM as M\nM.from_pretrained(args.model)", "model", None),
    ("from transformers import AutoModelForCausalLM as M\nN = 'Qwen'\nM.from_pretrained(f'{N}/Qwen3-4B')", "model", "Qwen/Qwen3-4B"),
    ("from transformers import AutoTokenizer as M\nM.from_pretrained('mistralai/Mistral-7B')", "model", None),
    ("from transformers import AutoModelForCausalLM as M\nM.from_pretrained('a/b')\nM.from_pretrained('c/d')", "model", None),
    ("from unsloth import FastLanguageModel as M\nM.from_pretrained(model_name='unsloth/mistral-7b', load_in_4bit=True)", "quantization", "4bit"),
    ("from transformers import BitsAndBytesConfig\nBitsAndBytesConfig(load_in_8bit=True)", "quantization", "8bit"),
    ("from transformers import BitsAndBytesConfig\nBitsAndBytesConfig(load_in_4bit=args.q)", "quantization", None),
    ("from transformers import FineGrainedFP8Config\nFineGrainedFP8Config()", "quantization", "fp8"),
    ("import transformers as t\nt.GPTQConfig(bits=4)", "quantization", "gptq"),
    ("from trl import GRPOTrainer\nGRPOTrainer(model='Qwen/Qwen3-4B')", "model", "Qwen/Qwen3-4B"), ("from trl import GRPOTrainer\nGRPOTrainer(model=model)", "model", None),
    ("from transformers import TrainingArguments\nTrainingArguments(fp16=True)", "precision", "fp16"),
    ("from transformers import TrainingArguments\nTrainingArguments(fp16=not ok(), bf16=ok())", "precision", None),
    ("from accelerate import Accelerator\nAccelerator(mixed_precision='bf16')", "precision", "bf16"),
    ("from vllm import LLM\nLLM(model='Qwen/Qwen3-4B', dtype='half')", "task", "inference"), ("from vllm import LLM\nLLM('a/b', dtype='half')", "precision", "fp16"),
    ("from vllm import LLM\nLLM('a/b')", "model", "a/b"), ("from vllm import AsyncEngineArgs\nAsyncEngineArgs(model='a/b')", "task", "serve"),
    ("from vllm import LLM\nfrom trl import SFTTrainer\nSFTTrainer()\nLLM('a/b')", "task", "sft"),
    ("from transformers import pipeline\npipeline('text-generation', model='a/b')", "task", "inference"),
    ("import torch\nfrom transformers import AutoModelForCausalLM as M\nM.from_pretrained('a/b', torch_dtype=torch.bfloat16)", "precision", "bf16"),
    ("import torch\nfrom trl import SFTTrainer\nfrom transformers import AutoModel as M\nM.from_pretrained('a/b', dtype=torch.bfloat16)\nSFTTrainer()", "precision", None),
    ("from accelerate import notebook_launcher\nnotebook_launcher(f, num_processes=2)", "processes", 2),
    ("from accelerate import notebook_launcher\nnotebook_launcher(f)", "launcher", "accelerate"),
    ("from transformers import AutoModelForSequenceClassification as M\nfrom trl import PPOTrainer\nM.from_pretrained('r/m')\nPPOTrainer()", "model", None),
    ("from transformers import AutoModelForSequenceClassification as M\nfrom trl import RewardTrainer\nM.from_pretrained('r/m')\nRewardTrainer()", "model", "r/m"),
])  # fmt: skip
def test_values(text: str, key: str, expected: object, script: Path) -> None:
    assert getattr(read(script, text).workload, key) == expected


@pytest.mark.parametrize(("text", "on", "off"), [
    ("from unsloth import FastLanguageModel as M\nM.from_pretrained('a', fast_inference=True)", {"vllm", "vllm-lora", "unsloth"}, {"unsloth-imported-late"}),
    ("from unsloth import FastLanguageModel as M\nM.get_peft_model(m, use_gradient_checkpointing='unsloth')",
     {"peft", "gradient-checkpointing", "unsloth"}, {"unsloth-imported-late"}),
    ("from peft import LoraConfig\nLoraConfig(r=8)", {"peft"}, {"modules-to-save"}), ("from peft import LoraConfig\nif x:\n    LoraConfig(r=8)", set(), set()),
    ("import peft\npeft.get_peft_model(m, c)", {"peft"}, set()), ("from peft import PeftModel\nPeftModel.from_pretrained(m, 'x')", {"peft"}, set()),
    ("from peft import prepare_model_for_kbit_training as p\np(m, use_gradient_checkpointing=False)", set(), {"gradient-checkpointing"}),
    ("model.gradient_checkpointing_enable()", {"gradient-checkpointing"}, set()),
    ("if args.gc:\n    model.gradient_checkpointing_enable()", set(), set()), ("model.gradient_checkpointing_disable()", set(), {"gradient-checkpointing"}),
    ("model.config.use_cache = False", {"no-cache"}, set()), ("model.config.use_cache = True", set(), {"no-cache"}), ("x.use_cache = False", set(), set()),
    ("model.accepts_loss_kwargs = False", {"no-loss-kwargs"}, set()), ("args.average_tokens_across_devices = False", {"no-token-average"}, set()),
    ("from transformers import AutoModel\nAutoModel.from_pretrained('a', use_cache=False)", {"no-cache"}, {"flash-attention"}),
    ("model.generate(x, use_cache=False)", {"no-cache"}, set()), ("model.generate(x, use_cache=True)", set(), set()),
    ("import bitsandbytes as bnb\nbnb.optim.AdamW8bit(parameters)", {"8bit-adam"}, set()),
    ("import bitsandbytes as bnb\nbnb.optim.PagedAdamW32bit(parameters)", {"bitsandbytes-optimizer"}, set()),
    ("import torch\nmodel = torch.compile(model)", {"torch-compile"}, set()), ("from trl import SFTTrainer\nSFTTrainer(packing=True)", {"packing"}, set()),
    ("from liger_kernel.transformers import apply_liger_kernel_to_llama as a\na()", {"liger"}, set()),
    ("from liger_kernel.transformers import AutoLigerKernelForCausalLM as A\nA.from_pretrained('x')", {"liger"}, set()),
    ("from trl import DPOConfig\nDPOConfig(bf16=True, fsdp='full_shard', fsdp_config={'fsdp_version': 2})", {"fsdp", "fsdp2"}, set()),
    ("from trl import DPOConfig\nDPOConfig(bf16=True, deepspeed={'zero_optimization': {'stage': 3, 'offload_optimizer': {'device': 'cpu'}}})",
     {"deepspeed", "zero-3", "optimizer-offload"}, {"zero-1", "zero-2", "deepspeed-auto-buckets"}),
    ("from trl import DPOConfig\nDPOConfig(bf16=True, deepspeed={'zero_optimization': {'stage': stage}})", {"deepspeed"}, set()),
    ("from accelerate import DeepSpeedPlugin\nDeepSpeedPlugin(zero_stage=2)", {"deepspeed", "zero-2"}, {"zero-1", "zero-3"}),
    ("from accelerate import FullyShardedDataParallelPlugin as P\nP(fsdp_version=2)", {"fsdp", "fsdp2"}, set()),
    ("import deepspeed\ndeepspeed.initialize(model=m, config='ds.json')", {"deepspeed"}, set()),
    ("trainer.train(resume_from_checkpoint=args.resume)", set(), set()), ("trainer.train(resume_from_checkpoint=False)", set(), {"resume"}),
])  # fmt: skip
def test_features(text: str, on: set[str], off: set[str], script: Path) -> None:
    work = read(script, text).workload
    assert (set(work.features or ()), set(work.features_absent or ()) - {"unsloth"}) == (on, off)


@pytest.mark.parametrize(("text", "late"), [
    ("from unsloth import FastLanguageModel\nfrom trl import SFTTrainer", False), ("import os\nimport torch\nimport unsloth\nimport transformers", False),
    ("from trl import SFTTrainer\nfrom unsloth import FastLanguageModel", True), ("import transformers, unsloth", True), ("import unsloth, peft", False),
    ("def f():\n    import unsloth\nimport trl", True), ("def f():\n    import trl\nimport unsloth", False), ("from my_module import x\nimport unsloth", None),
    ("if x:\n    import unsloth", None), ("if x:\n    import trl\nimport unsloth", None), ("try:\n    import unsloth\nexcept ImportError:\n    raise\nimport trl", False),
    ("if False:\n    import trl\nimport unsloth", False), ("import trl", None), ("from transformers.utils import logging\nimport unsloth", True),
])  # fmt: skip
def test_unsloth_has_to_come_first(text: str, late: bool | None, script: Path) -> None:
    work = read(script, text).workload
    answers = {"unsloth-imported-late": True} if "unsloth-imported-late" in (work.features or ()) else {}
    answers |= {"unsloth-imported-late": False} if "unsloth-imported-late" in (work.features_absent or ()) else {}
    assert answers.get("unsloth-imported-late") is late


def test_where_unsloth_came_too_late(script: Path) -> None:
    work = read(script, "import os\nfrom trl import SFTTrainer\nimport unsloth\n").workload
    assert work.origins["features.unsloth-imported-late"] == "train.py:2"
    assert work.origins["features.unsloth"] == "train.py:3"


def test_imports_in_order(script: Path) -> None:
    found = read(
        script, "import os, trl.trainer as t\nfrom .mine import x\ndef f():\n    from peft import y\nif False:\n    import z\n"
    )
    assert found.imports == (("os", 1), ("trl.trainer", 1), (".mine", 2), ("peft", 4))


def test_variables_that_are_always_set(script: Path) -> None:
    found = read(script, """
        import os
        DEVICES = "0,1"
        os.environ["CUDA_VISIBLE_DEVICES"] = DEVICES
        os.environ["PORT"] = str(port())
        if x:
            os.environ["A"] = "1"
        def f():
            os.environ["B"] = "1"
    """)  # fmt: skip
    assert found.variables == {"CUDA_VISIBLE_DEVICES": "0,1"}


def test_a_deepspeed_file_is_named_and_not_followed(script: Path) -> None:
    found = read(script, "from trl import SFTConfig\nSFTConfig(bf16=True, deepspeed='ds.json')\n")
    assert found.configs == ("ds.json",)
    assert found.workload.features == ("deepspeed",)


@pytest.mark.parametrize(("content", "message"), [
    (b"x = 1\nprint 'two'\n", "train.py:2: is not Python 3."), (b"def f(:\n", "train.py:1: is not Python 3."), (b"x = (\n", "train.py:1: is not Python 3."),
    (b"x = 1\ny = '\xff'\n", "is not Python 3."), (b"x = '\x00'\n", "null bytes"), (b"(" * 5000, "train.py:"), (b"x = " + b"-" * 50000 + b"1", "nested too deeply"),
    (b"#" * (4 * 1024 * 1024 + 1), "train.py: is larger than 4 MiB"), (b"# coding: nonsense\n", "is not Python 3."),
    (b"#" * (1024 * 1024 + 1), "train.py: has more than 1024 KiB of code"), (b"f(a)\n" * 30_000, "train.py: has too much code: more than 100000 syntax nodes"),
    (b"if x:\n\ty\n        z\n", "train.py:3: is not Python 3."),
])  # fmt: skip
def test_scripts_that_cannot_be_read(content: bytes, message: str, script: Path) -> None:
    script.write_bytes(content)
    with pytest.raises(InputError) as problem:
        read_script("train.py")
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_no_file(script: Path) -> None:
    for path, message in (
        ("none.py", "none.py: cannot be read: No such file"),
        (".", "not a regular file"),
        ("a\0b.py", "NUL"),
    ):
        with pytest.raises(InputError, match=message):
            read_script(path)


def test_a_script_in_another_encoding(script: Path) -> None:
    script.write_bytes(
        "# -*- coding: latin-1 -*-\nfrom trl import SFTTrainer\nSFTTrainer(model='caf\xe9/x')\n".encode("latin-1")
    )
    assert read_script("train.py").workload.model == "caf\xe9/x"


def test_reading_runs_nothing(script: Path) -> None:
    found = read(script, "open('ran', 'w')\nimport antigravity\nraise SystemExit(1)\n")
    assert found.imports == (("antigravity", 2),)
    assert not Path("ran").exists()


@pytest.mark.parametrize("text", [
    "a = b\nb = a\nfrom trl import SFTConfig\nSFTConfig(packing=a)\n", "class A(A): pass\nA()\n", "class A(B): pass\nclass B(A): pass\nA()\n",
    "x = 'a' * 10**9\n", "from trl import SFTConfig\nx = 9 ** 9 ** 9\nSFTConfig(per_device_train_batch_size=1 << 99)\n",
    "".join(f"x{n} = x{n + 1} + x{n + 1}\n" for n in range(200)) + "from trl import SFTConfig\nSFTConfig(deepspeed=x0)\n",
    "".join(f"x{n % 5} = [x{(n + 1) % 5}] * 3\n" for n in range(100)) + "from trl import SFTConfig\nSFTConfig(fsdp=[x0, x1, x2])\n",
    "a = a if a else b\nif a:\n    pass\n", "import a.b.c as a\na.b.c.d.e()\n", "x." * 300 + "y()\n",
])  # fmt: skip
def test_odd_scripts_are_read_to_their_end(text: str, script: Path) -> None:
    assert read(script, text).workload.trainer is None


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ('SFTConfig(output_dir="x")', True),
        ("GRPOConfig()", True),
        ('SFTConfig(output_dir="x", bf16=False)', False),
        ("SFTConfig(fp16=True)", False),
        ("SFTConfig(use_cpu=True)", False),
        ("SFTConfig(**options)", False),  # what they are is not known
        ('SFTConfig("x", 1)', False),
        ("args = SFTConfig()\nargs.bf16 = False", False),
        ('ModelConfig(model_name_or_path="x")', False),
        ('TrainingArguments(output_dir="x")', False),  # transformers' own default is fp32
    ],
)
def test_a_configuration_of_trl_without_a_precision(script: Path, text: str, on: bool) -> None:
    imports = "from trl import GRPOConfig, ModelConfig, SFTConfig\nfrom transformers import TrainingArguments\nfrom other import options\n"
    script.write_text(f"{imports}{text}\n")
    assert ("default-precision" in (read_script(script.name).workload.features or ())) is on


@pytest.mark.parametrize(
    ("text", "late"),
    [
        ("engine, *_ = deepspeed.initialize(model=model)\nmodel.add_adapter('second', config)", True),
        ("model = accelerator.prepare(model)\nmodel.load_adapter('folder')", True),
        ("model.add_adapter('first', config)\nengine, *_ = deepspeed.initialize(model=model)", False),
        ("def start():\n    return deepspeed.initialize(model=model)\nmodel.add_adapter('first', config)", False),
        ("model.add_adapter('first', config)", False),
    ],
)
def test_modules_that_are_added_after_the_engine_wraps_the_model(script: Path, text: str, late: bool) -> None:
    script.write_text(f"import deepspeed\n{text}\n")
    assert ("late-modules" in (read_script(script.name).workload.features or ())) is late


@pytest.mark.parametrize(
    ("call", "inside"),
    [
        ("AutoModelForCausalLM.from_pretrained(name)", True),
        ("AutoModelForCausalLM.from_config(config)", False),
        ("AutoTokenizer.from_pretrained(name)", False),
    ],
)
def test_models_loaded_without_weights(script: Path, call: str, inside: bool) -> None:
    imports = "from accelerate import init_empty_weights\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n"
    found = read(script, f"{imports}with init_empty_weights():\n    thing = {call}\n")
    assert ("empty-weights" in (found.workload.features or ())) is inside


@pytest.mark.parametrize(
    ("configuration", "feature"),
    [
        ("PrefixTuningConfig", "prefix-tuning"),
        ("PromptTuningConfig", "prompt-tuning"),
        ("PromptEncoderConfig", "prompt-tuning"),
        ("MultitaskPromptTuningConfig", "prompt-tuning"),
    ],
)
def test_learned_prompts(script: Path, configuration: str, feature: str) -> None:
    found = read(script, f"from peft import {configuration}, get_peft_model\n{configuration}(num_virtual_tokens=2)\n")
    assert set(found.workload.features or ()) == {"peft", feature}


@pytest.mark.parametrize(
    ("arguments", "without"),
    [("model", True), ("model, max_memory=memory", False), ("model, memory", False), ("model, **more", False)],
)
def test_device_maps_that_are_computed_without_the_memory(script: Path, arguments: str, without: bool) -> None:
    found = read(script, f"from accelerate import infer_auto_device_map\nplan = infer_auto_device_map({arguments})\n")
    assert ("device-map-without-memory" in (found.workload.features or ())) is without


@pytest.mark.parametrize(
    ("code", "on", "off"),
    [
        ("import torch\nfrom trl import SFTTrainer\n", False, True),
        ("from trl import SFTTrainer\nfrom unsloth import FastLanguageModel\n", True, False),
        ("from trl import SFTTrainer\nimport ours\n", False, False),
        ("from trl import SFTTrainer\nfrom .model import load\n", False, False),
        ("import sys, trl\nif sys.argv[1:]:\n    import unsloth\n", False, False),
    ],
)
def test_whether_a_script_uses_unsloth(code: str, on: bool, off: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(code)
    workload = read_script(str(tmp_path / "train.py")).workload
    assert ("unsloth" in (workload.features or ())) is on
    assert ("unsloth" in (workload.features_absent or ())) is off


@pytest.mark.parametrize(
    ("arguments", "on"),
    [
        ('"x"', True),
        ('"x", device_map="auto"', True),
        ('"x", dtype="auto"', False),
        ('"x", torch_dtype=torch.bfloat16', False),
        ('"x", quantization_config=config', False),
        ('"x", **options', False),  # what they are is not known
    ],
)
def test_a_model_that_is_trained_and_loaded_without_a_type(script: Path, arguments: str, on: bool) -> None:
    loaded = (
        f"from transformers import AutoModelForCausalLM, Trainer\nmodel = AutoModelForCausalLM.from_pretrained({arguments})\n"
    )
    assert "default-dtype" not in (read(script, loaded).workload.features or ())
    assert ("default-dtype" in (read(script, f"{loaded}Trainer(model).train()\n").workload.features or ())) is on


@pytest.mark.parametrize(
    ("body", "on"),
    [
        ('{"guided_json": schema, "top_k": 5}', True),
        ('{"guided_choice": ["a", "b"]}', True),
        ('{"structured_outputs": {"json": schema}}', False),
        ("fields", False),
        ("{**fields}", False),
    ],
)
def test_a_request_with_fields_of_guided_decoding(script: Path, body: str, on: bool) -> None:
    text = f"from openai import OpenAI\nOpenAI().chat.completions.create(model='x', messages=[], extra_body={body})\n"
    assert ("guided-request-fields" in (read(script, text).workload.features or ())) is on
