"""Scaled dot-product attention by every backend that claims to be available, flash-attn and xformers, against float64.

With scores s = q·k·scale and probabilities p = softmax(s), o = Σ p·v. Let Δ be the largest error of a score of a row. Every
probability is then off by at most a factor exp(2Δ); rounding p and v·p to a short type and adding up in float32 add the
rest:

    |error of o| ≤ (exp(2Δ) − 1 + 3·u + γ)·Σ p·|v| + 2·u·|o|
    Δ = u_s·max|s| + γ_d·scale·‖q‖·max‖k‖,   γ as in :mod:`bounds`

where u is the unit roundoff of the inputs' type, and u_s as well: kernels may round scores to the inputs' type (torch's own
implementation did so up to 2.4). Kernels scale before or after the product, which Δ covers by its second u_s.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from .bounds import UNIT, compared, gamma, short_name
from .job import Job, NotHere, Probe, Verdict, failed, is_installed, missing, needed, passed

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, bool], torch.Tensor]
"""Queries, keys and values of [batch, heads, tokens, d], and whether it is causal."""

QUICK = ((1, 4, 4, 64, 64, 64, False), (2, 8, 2, 65, 65, 64, True))
NORMAL = (
    *QUICK, (1, 4, 1, 127, 127, 128, True), (2, 4, 2, 33, 200, 64, False), (1, 2, 2, 257, 257, 96, True),
    (1, 6, 3, 1, 300, 128, False), (1, 2, 2, 40, 100, 64, True),
)  # fmt: skip
"""Batch, query heads, key heads, queries, keys, head size, causal."""
BACKENDS = ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION")


def probes(job: Job) -> Iterator[Probe]:
    for name in BACKENDS:
        yield "sdpa-" + name.lower().replace("_attention", ""), partial(backend, job, name)
    yield "sdpa-default", partial(default, job)
    yield "sdpa-padding", partial(padding, job)
    if job.quick:
        return
    # causal masks of flash-attn are aligned to the ends of queries and keys, those of xformers to their beginnings
    packages = (("flash-attn", "flash_attn", _flash_attn, "lower-right"), ("xformers", "xformers", _xformers, "upper-left"))
    for name, module, load, causal_kind in packages:
        there = is_installed(module)
        yield name, partial(package, job, load, causal_kind) if there else partial(missing, name)


def backend(job: Job, name: str) -> Verdict:
    """Test a single torch backend; shapes that it rejects are skipped."""
    there = is_installed("torch.nn.attention")  # from torch 2.3 on
    attention = importlib.import_module("torch.nn.attention") if there else None
    which = getattr(getattr(attention, "SDPBackend", None), name, None)
    if attention is None or which is None:
        raise NotHere(f"this torch has no backend {name}")
    if name in ("EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
        job.needs_accelerator()

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        with attention.sdpa_kernel(which):
            return _sdpa(q, k, v, causal)

    types = (torch.float32, torch.bfloat16) if not job.on_cuda or name == "MATH" else (torch.bfloat16, torch.float16)
    return _checked(job, attend, types, "upper-left", refusable=name != "MATH")


def default(job: Job) -> Verdict:
    """Test the forward pass of torch's default backend, then its float32 gradients against float64.

    Gradients agree within 2⁻¹² of the largest of their tensor, sixty-four times what is usual.
    """
    verdict = _checked(job, _sdpa, (torch.float32, torch.bfloat16), "upper-left")
    if verdict["status"] != "passed":
        return verdict
    generator, worst, bound = torch.Generator().manual_seed(job.seed), 0.0, 2.0**-12
    inputs = [x.requires_grad_() for x in _inputs((1, 4, 2, 37, 37, 64), torch.float32, job, generator)]
    weights = torch.randn(1, 4, 37, 64, generator=generator)
    (_sdpa(inputs[0], inputs[1], inputs[2], causal=True) * weights.to(job.device)).sum().backward()
    exact = [x.detach().double().cpu().requires_grad_() for x in inputs]
    k, v = (x.repeat_interleave(2, 1) for x in exact[1:])
    scores = (exact[0] @ k.transpose(-1, -2) / 8).masked_fill(~masked(37, 37, "upper-left"), float("-inf"))
    ((scores.softmax(-1) @ v) * weights).sum().backward()
    for name, ours, true in zip(("query", "key", "value"), inputs, exact):
        if ours.grad is None or true.grad is None:
            return failed(f"no {name} gradients came back")
        share = float(((ours.grad.double().cpu() - true.grad).abs() / true.grad.abs().max()).max())
        if not share <= bound:
            return failed(f"{name} gradients are off by {share:.3g} of the largest of them", {"error": share}, {"error": bound})
        worst = max(worst, share)
    verdict["measured"]["gradient_error"], verdict["bound"]["gradient_error"] = worst, bound
    return verdict


def padding(job: Job) -> Verdict:
    """Test a batch of sequences of different lengths: masked keys must have no weight."""
    generator, lengths = torch.Generator().manual_seed(job.seed), (7, 33, 20)
    worst = 0.0
    for dtype in (torch.float32, torch.bfloat16):
        q, k, v = _inputs((3, 4, 4, 33, 33, 64), dtype, job, generator)
        keys = torch.arange(33)[None] < torch.tensor(lengths)[:, None]
        mask = (keys[:, None, :] & masked(33, 33, "upper-left"))[:, None]
        result = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(job.device))
        share, why = _compared(result, q, k, v, mask)
        if why:
            return failed(f"{short_name(dtype)}, lengths {lengths}: {why}", {"error_of_bound": share}, {"error_of_bound": 1})
        worst = max(worst, share)
    return passed({"error_of_bound": round(worst, 4)}, {"error_of_bound": 1})


def package(job: Job, load: Callable[[], Attend], causal_kind: str) -> Verdict:
    """Test the attention of an installed package; ``causal_kind`` as in :func:`masked`."""
    job.needs_accelerator()
    return _checked(job, load(), (torch.bfloat16, torch.float16), causal_kind)


def _checked(job: Job, attend: Attend, types: tuple[torch.dtype, ...], causal_kind: str, refusable: bool = False) -> Verdict:
    generator, worst, count, refused = torch.Generator().manual_seed(job.seed), 0.0, 0, ""
    for dtype in types:
        for *shape, causal in QUICK if job.quick else NORMAL:
            q, k, v = _inputs(tuple(shape), dtype, job, generator)
            try:
                result = attend(q, k, v, causal)
            except RuntimeError as problem:
                if refusable and "No available kernel" in str(problem):
                    refused = str(problem).split("\n")[0]
                    continue
                raise
            share, why = _compared(result, q, k, v, masked(shape[3], shape[4], causal_kind if causal else ""))
            worst, count = max(worst, share), count + 1
            if why:
                name = (f"{short_name(dtype)}, {shape[1]} and {shape[2]} heads of {shape[5]}, {shape[3]} queries and "
                        f"{shape[4]} keys{', causal' if causal else ''}")  # fmt: skip
                return failed(f"{name}: {why}", {"error_of_bound": share}, {"error_of_bound": 1})
    if not count:
        raise NotHere(f"torch says: {refused}")
    return passed({"cases": count, "error_of_bound": round(worst, 4)}, {"error_of_bound": 1})


def _compared(result: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> tuple[float, str]:
    """Return the largest error as a fraction of its bound, and a description if it exceeds the bound."""
    exact, bound = attended(q, k, v, mask)
    if tuple(result.shape) != tuple(exact.shape):
        return float("inf"), f"a result of shape {tuple(result.shape)}, not {tuple(exact.shape)}"
    share, wrong = compared(result, exact, bound)
    if wrong is None:
        return share, ""
    values = f"{wrong.got:.6g}; float64 gives {wrong.exact:.6g}, rounding explains {wrong.bound:.2g}"
    return share, f"output{list(wrong.at)} is {values}"


def masked(queries: int, keys: int, causal: str) -> torch.Tensor:
    """Return a mask that is True where a query may attend; causal masks are aligned ``"upper-left"`` or ``"lower-right"``."""
    everything = torch.ones(queries, keys, dtype=torch.bool)
    if not causal:
        return everything
    return everything.tril(0 if causal == "upper-left" else keys - queries)


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output in float64 and the error bound of each element (see the module's docstring).

    Queries, keys and values are [batch, heads, tokens, d]; one key head may serve a group of query heads. ``mask`` is True
    where a query may attend, and broadcasts over batch and heads.
    """
    dtype = q.dtype
    q, k, v = (x.detach().double().cpu() for x in (q, k, v))
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scale = 1 / math.sqrt(q.shape[-1])
    scores = (q @ k.transpose(-1, -2) * scale).masked_fill(~mask, float("-inf"))
    p = scores.softmax(-1)
    out, weight = p @ v, p @ v.abs()
    u, short = UNIT[dtype], UNIT[torch.float32] if dtype != torch.float64 else UNIT[torch.float64]
    largest = scores.masked_fill(~mask, 0).abs().amax(-1, keepdim=True)
    sizes = q.norm(dim=-1, keepdim=True) * k.norm(dim=-1).amax(-1)[..., None, None] * scale
    delta = 2 * u * largest + gamma(q.shape[-1], short) * sizes
    bound = (torch.expm1(2 * delta) + 3 * u + gamma(k.shape[-2], short)) * weight + 2 * u * out.abs() + 1e-30
    return out, bound


def _inputs(shape: tuple[int, ...], dtype: torch.dtype, job: Job, generator: torch.Generator) -> list[torch.Tensor]:
    batch, q_heads, k_heads, queries, keys, dim = shape
    sizes = ((q_heads, queries), (k_heads, keys), (k_heads, keys))
    return [torch.randn(batch, heads, tokens, dim, generator=generator).to(dtype).to(job.device) for heads, tokens in sizes]


def _sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    attend = torch.nn.functional.scaled_dot_product_attention
    groups = q.shape[1] // k.shape[1]
    grouped = {}
    if groups > 1 and "enable_gqa" in (attend.__doc__ or ""):
        grouped["enable_gqa"] = True
    elif groups > 1:  # before torch 2.5
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    result: torch.Tensor = attend(q, k, v, is_causal=causal, **grouped)
    return result


def _flash_attn() -> Attend:
    attend = getattr(needed("flash_attn", "flash-attn"), "flash_attn_func", None)
    if attend is None:
        raise NotHere("this flash-attn has no flash_attn_func")
    if "causal" not in inspect.signature(attend).parameters:
        raise NotHere("this flash-attn has another interface")

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        result: torch.Tensor = attend(*(x.transpose(1, 2).contiguous() for x in (q, k, v)), causal=causal)
        return result.transpose(1, 2)

    return call


def _xformers() -> Attend:
    operations = needed("xformers.ops", "xformers")

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        groups = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        mask = operations.LowerTriangularMask() if causal else None
        result: torch.Tensor = operations.memory_efficient_attention(
            *(x.transpose(1, 2).contiguous() for x in (q, k, v)), attn_bias=mask
        )
        return result.transpose(1, 2)

    return call
