"""The rotary kernels of the installed stack, each called by its own public entry, behind one shape of call."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any

import torch

from . import rotary_own
from .job import Job, NotHere
from .rotary_reference import BASE, Tables

Apply = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, bool], Tables]
"""Queries, keys ([batch, heads, tokens, d]), cos, sin ([tokens, d/2]) and whether pairs are interleaved → both turned."""
TablesOf = Callable[[torch.Tensor, int, torch.dtype], Tables]


class Kernel:
    """``load`` imports and returns the call; ``lengths`` says whether it has to refuse tables of another length.

    ``unchecked``: its releases read past the end of short tables; only thorough runs say so, since no other build fixes it.
    ``module`` is what has to be installed for it. ``longer``: tables that are too long are a cache to it, and it takes
    their first rows. ``own_type``: it takes cos and sin of the inputs' type. ``tables``: its own angles.
    """

    def __init__(
        self, name: str, load: Callable[[], Apply], *, styles: tuple[str, ...] = ("half",), cuda: bool = True,
        backward: bool = True, lengths: bool = True, unchecked: bool = False, longer: bool = False, own_type: bool = True,
        tables: Callable[[], TablesOf] | None = None, module: str = "",
    ) -> None:  # fmt: skip
        self.module, self.unchecked = module, unchecked
        self.name, self.load, self.styles, self.cuda, self.backward = name, load, styles, cuda, backward
        self.lengths, self.longer, self.own_type, self.tables = lengths, longer, own_type, tables


def needed(module: str, package: str) -> Any:
    """A module of a package; :class:`NotHere` where the package is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name == module.partition(".")[0]:
            raise NotHere(f"{package} is not installed") from None
        if missing.name is not None and module.startswith(missing.name):
            raise NotHere(f"this {package} has no {module}") from None
        raise


def _full(table: torch.Tensor) -> torch.Tensor:
    return torch.cat((table, table), -1)


def _transformers() -> Apply:
    llama = needed("transformers.models.llama.modeling_llama", "transformers")
    gptj = needed("transformers.models.gptj.modeling_gptj", "transformers")

    def apply(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Tables:
        if interleaved:
            q, k = q.transpose(1, 2), k.transpose(1, 2)
            turn = gptj.apply_rotary_pos_emb
            return turn(q, sin[None], cos[None]).transpose(1, 2), turn(k, sin[None], cos[None]).transpose(1, 2)
        turned: Tables = llama.apply_rotary_pos_emb(q, k, _full(cos)[None], _full(sin)[None])
        return turned

    return apply


def _transformers_tables() -> TablesOf:
    llama = needed("transformers.models.llama.modeling_llama", "transformers")
    configuration = needed("transformers", "transformers").LlamaConfig

    def tables(positions: torch.Tensor, dim: int, dtype: torch.dtype) -> Tables:
        config = configuration(hidden_size=dim * 2, num_attention_heads=2, num_key_value_heads=2, intermediate_size=dim,
                               max_position_embeddings=2**20)  # fmt: skip
        try:
            module = llama.LlamaRotaryEmbedding(config=config)
        except TypeError:  # before 4.43 it took the dimension
            module = llama.LlamaRotaryEmbedding(dim, max_position_embeddings=2**20)
        module = module.to(positions.device)
        x = torch.zeros(1, 2, len(positions), dim, dtype=dtype, device=positions.device)
        cos, sin = module(x, positions[None])
        return cos[0, :, : dim // 2], sin[0, :, : dim // 2]

    return tables


def _flash_attn() -> Apply:
    turn = needed("flash_attn.layers.rotary", "flash-attn").apply_rotary_emb

    def apply(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Tables:
        turned = (turn(x.transpose(1, 2).contiguous(), cos, sin, interleaved=interleaved).transpose(1, 2) for x in (q, k))
        return next(turned), next(turned)

    return apply


def _liger() -> Apply:
    turn = needed("liger_kernel.transformers.rope", "liger-kernel").liger_rotary_pos_emb

    def apply(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Tables:
        turned: Tables = turn(q.clone(), k.clone(), _full(cos)[None], _full(sin)[None])  # it writes into its inputs
        return turned

    return apply


def _unsloth() -> Apply:
    needed("unsloth", "unsloth")
    turn = needed("unsloth.kernels.rope_embedding", "unsloth").fast_rope_embedding

    def apply(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Tables:
        turned: Tables = turn(q.clone(), k.clone(), _full(cos), _full(sin))
        return turned

    return apply


def _vllm() -> Apply:
    turn = needed("vllm._custom_ops", "vllm").rotary_embedding

    def apply(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Tables:
        batch, _, tokens, dim = q.shape
        positions = torch.arange(tokens, device=q.device).repeat(batch)
        flat = [x.transpose(1, 2).reshape(batch * tokens, -1).clone() for x in (q, k)]
        turn(positions, flat[0], flat[1], dim, torch.cat((cos, sin), -1), not interleaved)
        turned = [each.view(batch, tokens, -1, dim).transpose(1, 2) for each in flat]
        return turned[0], turned[1]

    return apply


def _own_triton() -> Apply:
    rotate: Apply = importlib.import_module(".rotary_triton", __package__).rotate
    return rotate


def _compiled() -> Apply:
    from .compiled import compiler

    compiled: Apply = compiler(rotary_own.eager)
    return compiled


def _own_tables() -> TablesOf:
    def tables(positions: torch.Tensor, dim: int, dtype: torch.dtype) -> Tables:
        cos, sin = rotary_own.tables(positions, dim, BASE)
        return cos.to(dtype), sin.to(dtype)

    return tables


BOTH = ("half", "interleaved")
EAGER = Kernel("eager", lambda: rotary_own.eager, styles=BOTH, cuda=False, own_type=False, tables=_own_tables)
TRITON = Kernel("triton", _own_triton, styles=BOTH, own_type=False, module="triton")
COMPILED = Kernel("compile", _compiled, styles=BOTH, cuda=False, own_type=False)
INSTALLED = (
    Kernel("transformers", _transformers, styles=BOTH, cuda=False, tables=_transformers_tables, module="transformers"),
    Kernel("flash-attn", _flash_attn, styles=BOTH, longer=True, module="flash_attn"),
    Kernel("liger-kernel", _liger, lengths=False, unchecked=True, module="liger_kernel"),
    Kernel("unsloth", _unsloth, longer=True, module="unsloth"),
    Kernel(
        "vllm", _vllm, styles=BOTH, backward=False, lengths=False, module="vllm"
    ),  # its table is a cache that positions index
)


def installed(kernel: Kernel) -> bool:
    return not kernel.module or importlib.util.find_spec(kernel.module) is not None


def usable(kernel: Kernel, job: Job) -> None:
    """Raises :class:`NotHere` where a kernel needs an accelerator; Triton's interpreter stands in for one on the CPU."""
    if kernel.cuda and not job.on_cuda and os.environ.get("TRITON_INTERPRET") != "1":
        raise NotHere("no accelerator")
