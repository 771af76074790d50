"""The rotary kernels under test, behind one signature: our own, and the public functions of installed packages."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch

from .bounds import BASE, Tables, checked, halves, joined
from .compiled import compiler
from .job import Job, needed

Apply = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, bool], Tables]
"""Queries, keys ([batch, heads, tokens, d]), cos, sin ([tokens, d/2]) and whether pairs are interleaved → both rotated."""
TablesOf = Callable[[torch.Tensor, int, torch.dtype], Tables]


@dataclass(frozen=True)
class Kernel:
    """An implementation and its capabilities.

    ``load`` imports it and returns its callable; it needs ``module`` to be installed. ``lengths``: it must reject tables of
    another length; ``unchecked``: its releases read past the end of short tables, which only thorough runs report, since no
    other build fixes it; ``longer``: it takes the first rows of tables that are too long, as of a cache. ``own_type``: it
    takes cos and sin of the inputs' type. ``tables`` loads the function that computes its own angles.
    """

    name: str
    load: Callable[[], Apply]
    styles: tuple[str, ...] = ("half",)
    cuda: bool = True
    backward: bool = True
    lengths: bool = True
    unchecked: bool = False
    longer: bool = False
    own_type: bool = True
    tables: Callable[[], TablesOf] | None = None
    module: str = ""

    def check_usable(self, job: Job) -> None:
        """Raise :class:`NotHere` if it needs an accelerator; on the CPU, Triton's interpreter is used instead."""
        if self.cuda and os.environ.get("TRITON_INTERPRET") != "1":
            job.needs_accelerator()


# --- Our own, in eager torch


def tables(positions: torch.Tensor, dim: int, base: float = BASE) -> Tables:
    """Return cos and sin as training frameworks compute them: angles in float32, regardless of the model's type."""
    exponents = torch.arange(0, dim, 2, dtype=torch.float32, device=positions.device) / dim
    angles = positions.float()[:, None] * (1.0 / base**exponents)
    return angles.cos(), angles.sin()


def eager(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> Tables:
    """Rotate queries and keys ([batch, heads, tokens, d]) with float32 arithmetic; the result has the input's type."""
    checked(q, k, cos, sin)
    return _rotated(q, cos, sin, interleaved), _rotated(k, cos, sin, interleaved)


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> torch.Tensor:
    a, b = halves(x.float(), interleaved)
    c, s = cos.float(), sin.float()
    return joined(a * c - b * s, b * c + a * s, interleaved).to(x.dtype)


def _own_tables() -> TablesOf:
    def of_type(positions: torch.Tensor, dim: int, dtype: torch.dtype) -> Tables:
        cos, sin = tables(positions, dim)
        return cos.to(dtype), sin.to(dtype)

    return of_type


def _triton() -> Apply:
    rotate: Apply = importlib.import_module(".triton_kernels", __package__).rotate
    return rotate


# --- Those of other packages


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


BOTH = ("half", "interleaved")
EAGER = Kernel("eager", lambda: eager, styles=BOTH, cuda=False, own_type=False, tables=_own_tables)
TRITON = Kernel("triton", _triton, styles=BOTH, own_type=False, module="triton")
COMPILED = Kernel("compile", lambda: compiler(eager), styles=BOTH, cuda=False, own_type=False)
INSTALLED = (
    Kernel("transformers", _transformers, styles=BOTH, cuda=False, tables=_transformers_tables, module="transformers"),
    Kernel("flash-attn", _flash_attn, styles=BOTH, longer=True, module="flash_attn"),
    Kernel("liger-kernel", _liger, lengths=False, unchecked=True, module="liger_kernel"),
    Kernel("unsloth", _unsloth, longer=True, module="unsloth"),
    # its table is a cache that positions index
    Kernel("vllm", _vllm, styles=BOTH, backward=False, lengths=False, module="vllm"),
)
