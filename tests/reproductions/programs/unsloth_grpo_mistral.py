"""Unsloth's GRPO loss on a Mistral model: the loss multiplies what the model's forward returns with the head's weights.

Shows "a and b must have same reduction dim, but got [s17, 320] X [48, 320]": between 2025.2.13 and 2025.2.15 the loss
expected hidden states (48 wide here), and the forward that Unsloth gives to Mistral returned logits (320 wide here).

Unsloth cannot be imported without a GPU, so its functions are taken out of the released source, one by one.
Real: MistralForCausalLM_fast_forward, and the compute_loss and _get_per_token_logps that Unsloth gives GRPOTrainer, all from
unsloth; what these call for the loss, from unsloth_zoo; torch.compile; the decoder of a transformers Mistral model.
Emulated: xformers' causal mask (the decoder makes its own); the trainer, of which only what these functions touch exists.
Needs a C++ compiler where the loss gets as far as being compiled.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import os
import types
import typing
from collections import defaultdict
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import torch
from outcome import report
from transformers import MistralConfig, MistralForCausalLM
from transformers.modeling_outputs import CausalLMOutputWithPast

HIDDEN, VOCABULARY = 48, 320
TEXTS, PROMPT, COMPLETION = 2, 5, 7  # rows, tokens, tokens


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    torch.manual_seed(0)
    model = mistral()
    trainer = trainer_around(model)
    prompt = torch.randint(3, VOCABULARY, (TEXTS, PROMPT))
    completion = torch.randint(3, VOCABULARY, (TEXTS, COMPLETION))
    reference = trainer._get_per_token_logps(model, torch.cat([prompt, completion], dim=1), None, COMPLETION)
    inputs = {
        "prompt_ids": prompt,
        "prompt_mask": torch.ones_like(prompt),
        "completion_ids": completion,
        "completion_mask": torch.ones_like(completion),
        "ref_per_token_logps": None if reference is None else reference.detach(),
        "advantages": torch.randn(TEXTS),
    }
    seen: dict[str, Any] = {"hidden": HIDDEN, "vocabulary": VOCABULARY}
    try:
        loss = trainer.compute_loss(model, inputs)
        loss.backward()
    except Exception as error:
        report("error", error, returned=model.returned, **seen)
    else:
        report("ok", returned=model.returned, loss=float(loss), **seen)


def mistral() -> MistralForCausalLM:
    """A tiny model with Unsloth's forward; `returned` is how wide the last thing was that it returned as logits."""
    model = MistralForCausalLM(
        MistralConfig(
            vocab_size=VOCABULARY,
            hidden_size=HIDDEN,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_key_value_heads=2,
            sliding_window=None,
            torch_dtype="float32",
        )
    )
    decoder = model.model.forward
    model.model.forward = lambda *args, causal_mask, **kwargs: decoder(*args, **kwargs)
    fast_forward = unsloth_function(
        "mistral.py",
        "MistralForCausalLM_fast_forward",
        CausalLMOutputWithPast=CausalLMOutputWithPast,
        BlockDiagonalCausalMask=object,
        xformers=types.SimpleNamespace(attn_bias=types.SimpleNamespace(LowerTriangularMask=object)),
        HAS_CUT_CROSS_ENTROPY=False,
        _get_dtype=lambda name: getattr(torch, name) if isinstance(name, str) else name,
    )

    def forward(*args: object, **kwargs: object) -> CausalLMOutputWithPast:
        output = fast_forward(model, *args, **kwargs)
        model.returned = output.logits.shape[-1]
        return output

    model.forward = forward
    model.disable_adapter = contextlib.nullcontext  # as a model with an adapter has
    return model


def trainer_around(model: MistralForCausalLM) -> types.SimpleNamespace:
    """As much of a GRPOTrainer as Unsloth's functions touch, with these functions as its methods."""
    trainer = types.SimpleNamespace(
        model=model,
        beta=0.04,
        args=types.SimpleNamespace(unsloth_num_chunks=TEXTS),
        accelerator=types.SimpleNamespace(unwrap_model=lambda model, **_: model, scaler=None),
        control=types.SimpleNamespace(should_evaluate=False),
        _metrics=defaultdict(list),
        _autocast_dtype=torch.bfloat16,
    )
    replacements = zoo_replacements()
    for method in ("_get_per_token_logps", "compute_loss"):
        function = unsloth_function("rl_replacements.py", f"grpo_trainer_{method}.{method}", **replacements)
        setattr(trainer, method, types.MethodType(function, trainer))
    return trainer


def zoo_replacements() -> dict[str, Any]:
    """What unsloth_zoo offers for the loss, by name; its module needs little but torch and is run from its file."""
    loader = SourceFileLoader("zoo", str(installed("unsloth_zoo") / "rl_replacements.py"))
    module = types.ModuleType(loader.name)
    loader.exec_module(module)
    replacements: dict[str, Any] = module.RL_REPLACEMENTS
    return replacements


def unsloth_function(module: str, name: str, **names: object) -> Callable[..., Any]:
    """The function `name` ("outer.inner" for a nested one) of unsloth/models/`module`; it sees torch, os, typing and `names`."""
    path = installed("unsloth") / "models" / module
    body = ast.parse(path.read_text()).body
    found: list[ast.FunctionDef] = []
    for part in name.split("."):
        found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == part]
        if len(found) != 1:
            raise SystemExit(f"{path} defines {name} {len(found)} times")
        body = found[0].body
    scope: dict[str, Any] = {**vars(typing), "torch": torch, "os": os, **names}
    exec(compile(ast.Module([*found], []), str(path), "exec"), scope)
    function: Callable[..., Any] = scope[found[0].name]
    return function


def installed(package: str) -> Path:
    """The folder of a package, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0])


if __name__ == "__main__":
    main()
