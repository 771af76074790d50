"""What the words of a report mean: versions, names of distributions, "not installed"; nothing here knows a format."""

from __future__ import annotations

import re
from typing import NamedTuple

from compat import versions
from compat.model import normalized
from compat.reports.log.lines import without_escapes

_CALLED = {
    "pytorch": "torch", "hf-hub": "huggingface-hub", "hugging-face-hub": "huggingface-hub", "pil": "pillow", "zmq": "pyzmq",
    "multipart": "python-multipart", "flashattention": "flash-attn", "flash-attention": "flash-attn",
    "flash-attention-2": "flash-attn", "flashattention-2": "flash-attn", "fa2": "flash-attn", "bnb": "bitsandbytes",
    "swift": "ms-swift", "llama-factory": "llamafactory", "transformer": "transformers", "liger": "liger-kernel",
    "pytorch-lightning": "pytorch-lightning", "hf-datasets": "datasets", "hf-transformers": "transformers",
    "hf-accelerate": "accelerate", "torch-vision": "torchvision", "torch-audio": "torchaudio", "sgl-kernel": "sgl-kernel",
    "te": "transformer-engine", "transformerengine": "transformer-engine", "openai-triton": "triton",
}  # fmt: skip
_KNOWN = frozenset({
    "accelerate", "aiohttp", "aiter", "anthropic", "apex", "auto-gptq", "autoawq", "axolotl", "bitsandbytes",
    "compressed-tensors", "cupy-cuda12x", "cut-cross-entropy", "datasets", "decord", "decord2", "deepspeed", "diffusers",
    "einops", "fairscale", "fastapi", "flash-attn", "flash-attn-3", "flashinfer", "flashinfer-cubin",
    "flashinfer-jit-cache", "flashinfer-python", "flax", "fsspec", "gguf", "gptqmodel", "gradio", "hf-transfer", "hf-xet",
    "huggingface-hub", "hqq", "jax", "jaxlib", "kernels", "lerobot", "liger-kernel", "lightning", "litellm", "llama-cpp-python",
    "llamafactory", "llguidance", "llm-blender", "llmcompressor", "lmdeploy", "lm-eval", "mamba-ssm", "math-verify",
    "megatron-core", "mistral-common", "mlx", "mlx-lm", "modelscope", "ms-swift", "nemo-toolkit", "ninja", "numba", "numpy",
    "nvidia-nccl-cu12", "onnx", "onnxruntime", "openai", "open-clip-torch", "openrlhf", "optimum", "optimum-quanto", "orjson",
    "outlines", "pandas", "peft", "pillow", "protobuf", "psutil", "pyarrow", "pydantic", "python-multipart",
    "pytorch-lightning", "pytorch-triton", "pytorch-triton-rocm", "pyzmq", "qwen-vl-utils", "ray", "safetensors", "scipy",
    "sentence-transformers", "sentencepiece", "setfit", "sgl-kernel", "sglang", "tensorboard", "tensorflow", "tf-keras",
    "tiktoken", "timm", "tokenizers", "torch", "torch-npu", "torchao", "torchaudio", "torchdata", "torchtune", "torchvision",
    "transformer-engine", "transformers", "triton", "triton-windows", "trl", "unsloth", "unsloth-zoo", "uvicorn", "uvloop",
    "verl", "vllm", "vllm-ascend", "vllm-flash-attn", "wandb", "xformers", "xfuser", "xgrammar",
})  # fmt: skip
_ABSENT = frozenset({
    "", "n/a", "na", "none", "null", "nan", "false", "no", "not installed", "not found", "could not collect", "unknown",
    "not available", "unavailable", "not set", "module not found", "no cuda", "not applicable", "-", "?", "<fill in>",
    "no response", "_no response_", "not used",
})  # fmt: skip
_VERSION = re.compile(r"v?(\d[\w.!+-]{0,79})")
_SERIES = re.compile(r"v?(\d{1,5}(?:\.\d{1,5})*)\.[xX*](?![\w.])")
_RANGE = re.compile(r"(?:[<>~!=]=|[<>])\s?\d[\w.+-]{0,40}(?:\s?,\s?(?:[<>~!=]=|[<>])\s?\d[\w.+-]{0,40}){0,5}")
_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,80}[A-Za-z0-9])?")


def distribution_of(words: str) -> str | None:
    """The distribution that a report's words name ("PyTorch", "`huggingface_hub`"); ``None`` for any other words."""
    if len(words) > 60:
        return None
    name = normalized(words.strip("`*_\"' ").replace(" ", "-"))
    name = _CALLED.get(name, name)
    return name if name in _KNOWN else None


def is_name(word: str) -> bool:
    """Whether a word may be the name of a distribution."""
    return _NAME.fullmatch(word) is not None


def is_absent(text: str) -> bool:
    """Whether a value says that there is nothing, or that it is unknown."""
    return text.strip("`*_\"'. ").lower() in _ABSENT or text.startswith(("<", "e.g.", "[e.g.", "i.e.", "eg."))


def is_tool(name: str) -> bool:
    """Whether what is pinned like a distribution (``cuda==12.4``) is none."""
    return name in ("cuda", "python", "cudnn", "nvcc", "gcc", "gpu", "driver", "cuda-driver", "nvidia-driver", "os", "ubuntu")


def is_version(text: str) -> bool:
    """Whether a text is a version (PEP 440)."""
    if not text or len(text) > 80 or not text.isascii():
        return False
    return versions.is_version(text)


def version_at(text: str) -> str | None:
    """The version that a text begins with (``"2.6.0+cu124 (True)"``, ``"v0.9.1, from source"``), else ``None``."""
    match = _VERSION.match(text.lstrip("`*\"'(= "))
    if match is None:
        return None
    word = match[1].rstrip(".,;:)-_+!")
    return word if is_version(word) else None


def range_at(text: str) -> str | None:
    """The range (PEP 440) that a text begins with: ``">= 4.51, < 4.57"``, ``"4.51.x"``; else ``None``."""
    text = text.strip("`*\"'( ")
    series = _SERIES.match(text)
    if series is not None:
        return f"=={series[1]}.*"
    match = _RANGE.match(text)
    if match is None:
        return None
    from compat.versions import ranges_of

    written = "".join(match[0].split())
    try:
        ranges_of(written)
    except ValueError:
        return None
    return written


def short_version(text: str) -> str | None:
    """Major and minor of a version ("12.4" of ``12.4.131``), as CUDA toolkits are told apart."""
    version = version_at(text)
    parts = version.split(".")[:2] if version else []
    return ".".join(parts) if parts and all(part.isascii() and part.isdigit() for part in parts) else None


# --- Text as it is pasted into an issue → plain lines: no Markdown marks, HTML, colours or odd blanks.


_LONGEST = 2000  # characters of one line that are looked at
_MOST = 50_000  # lines that are looked at


class Line(NamedTuple):
    """One line: ``number`` counts from 1 in the text, ``text`` has no blanks at its end; empty between paragraphs.

    ``edge`` marks where a fenced block begins or ends (the text is what stands behind the fence, mostly nothing),
    ``fenced`` is whether a block is open behind the line.
    """

    number: int
    text: str
    edge: bool = False
    fenced: bool = False


_BLANKS = str.maketrans({
    "\u00a0": " ", "\u2007": " ", "\u202f": " ", "\u3000": " ", "\t": " ", "\uff1a": ":", "\u200b": "", "\u200c": "",
    "\u200d": "", "\ufeff": "", "\x00": "",
})  # fmt: skip
_TAG = re.compile(
    r"</?(?:details|summary|pre|code|p|div|span|b|i|em|strong|font|sub|sup|ul|ol|li|table|tbody|thead|tr|t[dh]|h[1-6]|br)"
    r"(?: [^<>]{0,200})?/?>",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"(?: {0,3}>(?!>>) ?)+")
_FENCE = re.compile(r" {0,8}(?:```+|~~~+) ?(?P<rest>.*)")
_LANGUAGE = re.compile(r"[\w+#.-]{0,20}$")


def plain_lines(text: str) -> tuple[list[Line], str | None]:
    """The lines of a pasted text, and a remark where it is so long that only its beginning is read.

    Runs of empty lines become one. A line that begins a fenced block and goes on behind the fence keeps what it says.
    """
    found: list[Line] = []
    blank, fenced = True, False
    for number, raw in enumerate(_unified(text).split("\n"), 1):
        if not raw or raw.isspace():
            if not blank:
                found.append(Line(number, "", fenced=fenced))
            blank = True
            continue
        if len(found) >= _MOST:
            return found, f"only the first {number - 1} lines were read"
        line = _plain(number, raw[:_LONGEST])
        fenced = fenced != line.edge
        if line.text or line.edge or not blank:
            found.append(line._replace(fenced=fenced) if fenced else line)
        blank = not line.text
    return found, None


def _unified(text: str) -> str:
    text = without_escapes(text).replace("\r\n", "\n").replace("\r", "\n").translate(_BLANKS)
    if "&" in text and ";" in text:
        from html import unescape

        text = unescape(text).replace("\u00a0", " ")
    if "<" in text:
        text = _TAG.sub(_separated, text)
    return text


def _separated(tag: re.Match[str]) -> str:
    """Cells of a table and line breaks go on the next line; every other tag is just taken off."""
    name = tag[0].strip("</> ").partition(" ")[0].lower()
    return "\n" if name in ("br", "summary", "details", "tr", "li", "p", "pre", "div") else " "


def _plain(number: int, raw: str) -> Line:
    if raw.lstrip(" ")[:1] == ">" and (quote := _QUOTE.match(raw)):
        raw = raw[quote.end() :]
    fence = _FENCE.match(raw) if "```" in raw or "~~~" in raw else None
    if fence is not None:
        rest = fence["rest"].strip("`~ ")
        return Line(number, "" if _LANGUAGE.match(rest) else rest, edge=True)
    return Line(number, raw.replace("\\_", "_").rstrip())
