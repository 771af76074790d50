"""Faults that give wrong numbers: in products, compiled code, rotary embeddings and attention."""

from __future__ import annotations

import sys

from compat_test_faults import fault


def _products(torch, changed, when=lambda a, b: a.dtype in (torch_types(a))):
    """Replaces torch.matmul: ``changed(a, b, c)`` gives what comes out instead of the product, where ``when`` holds."""
    real = torch.matmul

    def matmul(a, b, **more):
        c = real(a, b, **more)
        return changed(a, b, c) if when(a, b) else c

    torch.matmul = matmul
    return real


def torch_types(a):
    torch = sys.modules["torch"]
    return (torch.float32, torch.float16, torch.bfloat16)


# products


@fault("flipped-bit", "torch")
def flipped_bit(torch):
    """The lowest bit of one element of every product."""
    words = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}

    def changed(a, b, c):
        bits = c.contiguous().view(words[c.dtype]).clone()
        bits.view(-1)[bits.numel() // 2] ^= 1
        return bits.view(c.dtype)

    _products(torch, changed)


@fault("fp16-accumulation", "torch")
def fp16_accumulation(torch):
    """Sums are kept in float16."""

    def changed(a, b, c):
        total = torch.zeros_like(c)
        for at in range(0, a.shape[-1], 16):
            part = a[..., at : at + 16].float().unsqueeze(-1) * b[..., at : at + 16, :].float().unsqueeze(-3)
            total = total + part.sum(-2).to(c.dtype)
        return total

    _products(torch, changed, lambda a, b: a.dtype == torch.float16)


@fault("tf32", "torch")
def tf32(torch):
    """float32 operands lose thirteen bits."""

    def shortened(x):
        return (x.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)

    real = torch.matmul

    def matmul(a, b, **more):
        return real(shortened(a), shortened(b), **more) if a.dtype == torch.float32 else real(a, b, **more)

    torch.matmul = matmul


@fault("nan", "torch")
def nan(torch):
    def changed(a, b, c):
        c = c.clone()
        c.view(-1)[-1] = float("nan")
        return c

    _products(torch, changed)


@fault("wrong-device", "torch")
def wrong_device(torch):
    _products(torch, lambda a, b, c: c.to("meta"))


@fault("wrong-type", "torch")
def wrong_type(torch):
    _products(torch, lambda a, b, c: c.to(torch.bfloat16), lambda a, b: a.dtype == torch.float32)


@fault("unstable", "torch")
def unstable(torch):
    """Every seventh product is wrong in one element: what failing memory looks like."""
    calls = [0]

    def changed(a, b, c):
        calls[0] += 1
        if calls[0] % 7:
            return c
        c = c.clone()
        c.view(-1)[0] += 1
        return c

    _products(torch, changed)


@fault("ragged", "torch")
def ragged(torch):
    """The last column of a product whose width is odd is not written."""

    def changed(a, b, c):
        c = c.clone()
        c[..., -1] = 0
        return c

    _products(torch, changed, lambda a, b: b.shape[-1] % 2 == 1 and a.dtype in torch_types(a))


@fault("strides", "torch")
def strides(torch):
    """Strides of a transposed operand are ignored: its memory is read as if it were contiguous."""
    real = torch.matmul

    def matmul(a, b, **more):
        if a.dim() == 3 and a.dtype in torch_types(a) and a.stride(-2) == 1 and a.shape[-1] > 1:
            a = torch.as_strided(a, a.shape, (a.shape[1] * a.shape[2], a.shape[2], 1))
        return real(a, b, **more)

    torch.matmul = matmul


@fault("batch", "torch")
def batch(torch):
    """The last product of a batch is that of the first."""

    def changed(a, b, c):
        c = c.clone()
        c[-1] = c[0]
        return c

    _products(torch, changed, lambda a, b: a.dim() == 3 and len(a) > 1)


# torch.compile


@fault("compiled-once", "torch")
def compiled_once(torch):
    """The number of rows of the first call is taken for a constant of the compiled code."""
    real = torch.compile

    def compile_(function, **more):
        seen = []

        def compiled(*arguments):
            rows = arguments[0].shape[0]
            seen.append(rows)
            result = function(*arguments)
            result[seen[0] :] = 0
            return result

        return compiled if more.get("dynamic") else real(function, **more)

    torch.compile = compile_


@fault("compiled-unchecked", "torch")
def compiled_unchecked(torch):
    """Compiled code that does not look at the inner dimensions."""

    def compile_(function, **more):
        def compiled(a, b):
            inner = min(a.shape[-1], b.shape[-1])
            return function(a[..., :inner], b[..., :inner])

        return compiled

    torch.compile = compile_


# rotary embeddings


@fault("rotary-sign", "transformers.models.llama.modeling_llama")
def rotary_sign(llama):
    torch = sys.modules["torch"]

    def rotate_half(x):
        half = x.shape[-1] // 2
        return torch.cat((x[..., half:], x[..., :half]), -1)

    llama.rotate_half = rotate_half


@fault("rotary-halves", "transformers.models.llama.modeling_llama")
def rotary_halves(llama):
    """Pairs are taken interleaved by code that is given halves."""
    torch = sys.modules["torch"]
    llama.rotate_half = lambda x: torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)


@fault("rotary-gradient", "transformers.models.llama.modeling_llama")
def rotary_gradient(llama):
    """The backward pass turns the same way as the forward pass."""
    torch = sys.modules["torch"]
    real = llama.apply_rotary_pos_emb

    class Turn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, cos, sin):
            ctx.save_for_backward(cos, sin)
            return real(q, k, cos, sin)

        @staticmethod
        def backward(ctx, dq, dk):
            return (*real(dq, dk, *ctx.saved_tensors), None, None)

    llama.apply_rotary_pos_emb = lambda q, k, cos, sin, *more, **named: Turn.apply(q, k, cos, sin)


@fault("rotary-stale", "transformers.models.llama.modeling_llama")
def rotary_stale(llama):
    """cos and sin are those of the first positions that came."""
    real, kept = llama.LlamaRotaryEmbedding.forward, {}

    def forward(self, x, position_ids, *more, **named):
        key = (x.dtype, x.shape[-1], position_ids.shape)
        if key not in kept:
            kept[key] = real(self, x, position_ids, *more, **named)
        return kept[key]

    llama.LlamaRotaryEmbedding.forward = forward


@fault("rotary-bf16-angles", "transformers.models.llama.modeling_llama")
def rotary_bf16_angles(llama):
    torch = sys.modules["torch"]

    def forward(self, x, position_ids, *more, **named):
        angles = position_ids[..., None].to(torch.bfloat16) * self.inv_freq.to(torch.bfloat16)
        angles = torch.cat((angles, angles), -1).float()
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    llama.LlamaRotaryEmbedding.forward = forward


@fault("rotary-short", "transformers.models.llama.modeling_llama")
def rotary_short(llama):
    """Tables that are too short are filled up with their last row, too long ones cut."""
    torch, real = sys.modules["torch"], llama.apply_rotary_pos_emb

    def fitted(table, tokens):
        missing = tokens - table.shape[-2]
        return table[..., :tokens, :] if missing <= 0 else torch.cat((table, table[..., -1:, :].expand(1, missing, -1)), -2)

    llama.apply_rotary_pos_emb = lambda q, k, cos, sin, *more, **named: real(
        q, k, fitted(cos, q.shape[-2]), fitted(sin, q.shape[-2])
    )


@fault("rotary-own-offset", "compat_probe.rotary_kernels")
def rotary_own_offset(own):
    """Every position is one too far."""
    real = own.tables
    own.tables = lambda positions, *more: real(positions + 1, *more)


@fault("rotary-own-sign", "compat_probe.rotary_kernels")
def rotary_own_sign(own):
    real = own._rotated
    own._rotated = lambda x, cos, sin, interleaved: real(x, cos, -sin, interleaved)


@fault("rotary-keys", "compat_probe.rotary_kernels")
def rotary_keys(own):
    """The keys are not turned."""
    own.eager = lambda q, k, cos, sin, interleaved: (own._rotated(q, cos, sin, interleaved), k * 1)


# attention


def _attention(torch, changed):
    functional = torch.nn.functional
    real = functional.scaled_dot_product_attention

    def attend(q, k, v, **named):
        return changed(real, q, k, v, named)

    attend.__doc__ = real.__doc__
    functional.scaled_dot_product_attention = attend


@fault("attention-causal", "torch")
def attention_causal(torch):
    """A query sees one key too many."""

    def changed(real, q, k, v, named):
        if not named.pop("is_causal", False):
            return real(q, k, v, **named)
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(1)
        return real(q, k, v, attn_mask=mask, **named)

    _attention(torch, changed)


@fault("attention-groups", "torch")
def attention_groups(torch):
    """Groups of queries get the keys of another group."""

    def changed(real, q, k, v, named):
        if not named.pop("enable_gqa", False):
            return real(q, k, v, **named)
        groups = q.shape[1] // k.shape[1]
        return real(q, k.repeat(1, groups, 1, 1), v.repeat(1, groups, 1, 1), **named)

    _attention(torch, changed)


@fault("attention-padding", "torch")
def attention_padding(torch):
    def changed(real, q, k, v, named):
        named.pop("attn_mask", None)
        return real(q, k, v, **named)

    _attention(torch, changed)


@fault("attention-scale", "torch")
def attention_scale(torch):
    _attention(torch, lambda real, q, k, v, named: real(q, k, v, **{**named, "scale": 1 / q.shape[-1] ** 0.51}))
