"""The vocabulary of reports in any format: names of distributions and GPUs, versions, "not installed"."""

from __future__ import annotations

import re

from compat import versions
from compat.machine.gpu_names import lookup
from compat.model import Accelerator, normalized

_CALLED = {
    "pytorch": "torch", "hf-hub": "huggingface-hub", "hugging-face-hub": "huggingface-hub", "pil": "pillow", "zmq": "pyzmq",
    "multipart": "python-multipart", "flashattention": "flash-attn", "flash-attention": "flash-attn",
    "flash-attention-2": "flash-attn", "flashattention-2": "flash-attn", "fa2": "flash-attn", "bnb": "bitsandbytes",
    "swift": "ms-swift", "llama-factory": "llamafactory", "transformer": "transformers", "liger": "liger-kernel",
    "pytorch-lightning": "pytorch-lightning", "hf-datasets": "datasets", "hf-dataset": "datasets",
    "hf-transformers": "transformers",
    "hf-accelerate": "accelerate", "torch-vision": "torchvision", "torch-audio": "torchaudio", "sgl-kernel": "sgl-kernel",
    "sklearn": "scikit-learn", "cudnn-frontend": "nvidia-cudnn-frontend", "cutlass-dsl": "nvidia-cutlass-dsl",
    "modelopt": "nvidia-modelopt", "hydra": "hydra-core",
    "te": "transformer-engine", "transformerengine": "transformer-engine", "openai-triton": "triton",
}  # fmt: skip
_KNOWN = frozenset({
    "accelerate", "aiohttp", "aiter", "alpaca-eval", "angle-emb", "anthropic", "anyio", "apache-tvm-ffi", "apex",
    "aphrodite-engine", "aqlm", "audiocraft", "auto-gptq", "auto-round", "autoawq", "autotrain-advanced", "axolotl",
    "beautifulsoup4", "bert-score", "bertopic", "bertviz", "bitsandbytes", "bitsandbytes-windows", "blobfile", "byaldi",
    "cachetools", "captum", "causal-conv1d", "chatterbox-tts", "chromadb", "chronos-forecasting", "clearml", "click",
    "colbert-ai", "colpali-engine", "comet-ml", "compressed-tensors", "coqui-tts", "ctranslate2", "cuda-bindings",
    "cuda-python", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x", "cut-cross-entropy", "datasets", "decord", "decord2",
    "deep-ep", "deep-gemm", "deepspeed", "deepspeed-mii", "detoxify", "diffsynth", "diffusers", "distilabel", "docling",
    "docling-ibm-models", "easyocr", "einops", "evalplus", "evaluate", "exllamav2", "exllamav3", "f5-tts", "fairscale",
    "fairseq", "faiss-cpu", "faiss-gpu", "fastapi", "fastembed", "faster-whisper", "fbgemm-gpu", "fbgemm-gpu-genai",
    "fla-core", "flagembedding", "flash-attn", "flash-attn-3", "flash-attn-4", "flash-linear-attention", "flashinfer",
    "flashinfer-cubin", "flashinfer-jit-cache", "flashinfer-python", "flax", "fms-hf-tuning", "fschat", "fsspec", "ftfy",
    "galore-torch", "gguf", "gliner", "gptqmodel", "gradio", "gradio-client", "granite-tsfm", "gritlm", "guidance",
    "hf-transfer", "hf-xet", "hqq", "httpx", "huggingface-hub", "hydra-core", "importlib-metadata", "infinity-emb", "inseq",
    "instructlab-training", "instructorembedding", "intel-extension-for-transformers", "ipex-llm", "ipykernel", "ipywidgets",
    "jax", "jaxlib", "jieba", "jinja2", "jiwer", "joblib", "k-diffusion", "keras", "kernels", "keybert", "ktransformers",
    "langchain-core", "langchain-huggingface", "lerobot", "levenshtein", "librosa", "liger-kernel", "lighteval", "lightning",
    "lightning-fabric", "lightning-utilities", "litdata", "litellm", "litgpt", "llama-cpp-python", "llamafactory",
    "llguidance", "llm-blender", "llm-foundry", "llm-guard", "llm2vec", "llmcompressor", "lm-eval", "lm-format-enforcer",
    "lm-polygraph", "lmcache", "lmdeploy", "lmms-eval", "lycoris-lora", "magic-pdf", "mamba-ssm", "marker-pdf", "math-verify",
    "mcp", "megatron-core", "mergekit", "mineru", "mistral-common", "mkl", "mlflow", "mlx", "mlx-lm", "mlx-vlm", "mmengine",
    "modelscope", "mosaicml", "mpi4py", "ms-swift", "nemo-curator", "nemo-toolkit", "neural-compressor", "ninja", "nixl-cu12",
    "nixl-cu13", "nltk", "nncf", "nnsight", "num2words", "numba", "numpy", "nvidia-cuda-nvrtc-cu11", "nvidia-cuda-nvrtc-cu12",
    "nvidia-cublas-cu12",
    "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cudnn-frontend",
    "nvidia-curand", "nvidia-cusparse-cu12", "nvidia-cutlass-dsl", "nvidia-ml-py", "nvidia-modelopt", "nvidia-nccl-cu12",
    "nvidia-nccl-cu13", "nvidia-nvjitlink-cu12", "omegaconf", "onnx", "onnxruntime", "onnxruntime-directml",
    "onnxruntime-genai", "onnxruntime-gpu", "onnxruntime-training", "open-clip-torch", "openai", "openai-harmony",
    "openai-whisper", "opencompass", "opencv-python", "opencv-python-headless", "openrlhf",
    "opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk", "optimum", "optimum-executorch", "optimum-habana",
    "optimum-neuron", "optimum-onnx", "optimum-quanto", "optuna", "orjson", "outetts", "outlines", "outlines-core",
    "packaging", "pandas", "parler-tts", "peft", "petals", "phonemizer", "pillow", "prometheus-fastapi-instrumentator",
    "protobuf", "psutil", "pyairports", "pyannote-audio", "pyarrow", "pydantic", "pydantic-settings", "pylate", "pynvml",
    "pytesseract", "python-doctr", "python-multipart", "pytorch-lightning", "pytorch-metric-learning", "pytorch-triton",
    "pytorch-triton-rocm", "pyvene", "pyzmq", "quack-kernels", "quanto", "qwen-omni-utils", "qwen-vl-utils", "ragatouille",
    "ray", "requests", "rich", "rocm-sdk-core", "rouge-score", "sacrebleu", "safetensors", "sageattention", "salesforce-lavis",
    "scikit-learn", "scipy", "sentence-transformers", "sentencepiece", "seqeval", "setfit", "setuptools", "sgl-kernel",
    "sglang", "sglang-kernel", "simpletransformers", "smolagents", "soundfile", "spacy-llm", "spacy-transformers",
    "span-marker", "sparseml", "speechbrain", "stable-audio-tools", "stable-ts", "stanza", "starlette", "starlette-context",
    "surya-ocr", "swanlab", "tensorboard", "tensorboardx", "tensordict", "tensorflow", "tensorrt", "tensorrt-llm",
    "text-generation-server", "textattack", "tf-keras", "tiktoken", "tilelang", "timm", "tokenizers", "torch",
    "torch-geometric", "torch-memory-saver", "torch-npu", "torch-tensorrt", "torch-xla", "torchao", "torchaudio", "torchcodec",
    "torchdata", "torchmetrics", "torchrec", "torchsde", "torchtext", "torchtitan", "torchtune", "torchvision", "trackio",
    "transformer-engine", "transformer-engine-cu12", "transformer-engine-torch", "transformer-lens", "transformers",
    "transformers-stream-generator", "triton", "triton-windows", "trl", "txtai", "typer", "typing-extensions", "tyro",
    "uni2ts", "unsloth", "unsloth-zoo", "unstructured-inference", "urllib3", "uvicorn", "uvloop", "verl", "vllm",
    "vllm-ascend", "vllm-bnb-plugin", "vllm-flash-attn", "vllm-gguf-plugin", "wandb", "weave", "whisper-timestamped",
    "whisperx", "xformers", "xfuser", "xgrammar", "xtuner", "zstandard",
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
    """Return the distribution that reports call by this name ("PyTorch", "`huggingface_hub`"), or ``None``."""
    if len(words) > 60:
        return None
    name = normalized(words.strip("`*_\"' ").replace(" ", "-"))
    name = _CALLED.get(name, name)
    return name if name in _KNOWN else None


def is_name(word: str) -> bool:
    """Whether a word can be the name of a distribution."""
    return _NAME.fullmatch(word) is not None


def is_absent(text: str) -> bool:
    """Whether a value means none or unknown ("N/A", "Not installed", an unchanged placeholder)."""
    return text.strip("`*_\"'. ").lower() in _ABSENT or text.startswith(("<", "e.g.", "[e.g.", "i.e.", "eg."))


def is_tool(name: str) -> bool:
    """Whether a name that is pinned like a distribution (``cuda==12.4``) is not one."""
    return name in ("cuda", "python", "cudnn", "nvcc", "gcc", "gpu", "driver", "cuda-driver", "nvidia-driver", "os", "ubuntu")


def is_version(text: str) -> bool:
    """Whether a text is a version (PEP 440)."""
    return 0 < len(text) <= 80 and text.isascii() and versions.is_version(text)


def version_at(text: str) -> str | None:
    """Return the version at the start of a text (``"2.6.0+cu124 (True)"``, ``"v0.9.1, from source"``), or ``None``."""
    match = _VERSION.match(text.lstrip("`*\"'(= "))
    if match is None:
        return None
    word = match[1].rstrip(".,;:)-_+!")
    return word if is_version(word) else None


def range_at(text: str) -> str | None:
    """Return the PEP 440 specifier at the start of a text, without spaces (``"4.51.x"`` is ``==4.51.*``), or ``None``."""
    text = text.strip("`*\"'( ")
    series = _SERIES.match(text)
    if series is not None:
        return f"=={series[1]}.*"
    match = _RANGE.match(text)
    if match is None:
        return None
    written = "".join(match[0].split())
    return written if is_specifier(written) else None


def is_specifier(text: str) -> bool:
    """Whether a text is a specifier set (PEP 440)."""
    try:
        versions.ranges_of(text)
    except ValueError:
        return False
    return True


def short_version(text: str) -> str | None:
    """Major and minor of a version, as CUDA toolkits are named: ``12.4`` of ``12.4.131``."""
    version = version_at(text)
    parts = version.split(".")[:2] if version else []
    return ".".join(parts) if parts and all(part.isascii() and part.isdecimal() for part in parts) else None


# --- GPUs: "2x RTX 4090", "NVIDIA A100-SXM4-80GB (x8)"


_NAMED = re.compile(
    r"(?<![A-Za-z\d])(?:"
    r"(?:amd (?:radeon|instinct|mi)|nvidia(?![-_.\w])|geforce|tesla|quadro|radeon|instinct|jetson(?!-))"
    r"(?=[\w ()-]{0,40}?\d|[\w ()-]{0,24}(?:titan|thor|orin|graphics|device))|"
    r"(?:amd )?ryzen ai max\+? ?(?:pro )?\d{3}|titan (?:rtx|xp?|v)|"
    r"rtx ?(?:pro ?)?\d{3,4}\w{0,6}|gtx ?\d{3,4}\w{0,3}|rx ?\d{3,4}\w{0,4}|gaudi ?\d?|dgx spark|"
    r"a100\w?|a800|a10g?|a16|a30|a40|h100s?|h200s?|h800|h20|gh200|gb\d{2,3}|b[123]00|v100s?|p100|p40|p4|k80|t4|l4|l40s?|"
    r"a[456]000|[2345]0[5-9]0(?: ?ti| ?super| ?d)*|mi\d{2,3}[xa]?|gfx\d[0-9a-f]{2,3}|ascend ?\w{0,6}|910b\d?|"
    r"apple m\d|intel arc|arc [ab]\d{3}|data center gpu max|(?:6000|5000) ada|pro 6000"
    r")(?![A-Za-z\d])",
    re.IGNORECASE,
)
_NUMBER = {"one": 1, "single": 1, "two": 2, "dual": 2, "three": 3, "four": 4, "quad": 4, "five": 5, "six": 6, "eight": 8}
_BEFORE = re.compile(
    r"(?:(?<![\d.])(?P<times>\d{1,3}) ?[x×*]|(?<![A-Za-z\d])[x×*] ?(?P<x>\d{1,3})|(?<![\w.])(?P<count>\d{1,3})(?!\d)|"
    r"\b(?P<word>one|single|two|dual|three|four|quad|five|six|eight))[\s-]*(?:\d{1,3} ?gi?b?\s+)?$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?:(?<=[\s(*])|(?<=\dG)|(?<=GB))[x×*]? ?(?:(?<=[x×*])|(?<=[x×*] ))(?P<times>\d{1,3})(?! ?gi?b|\d)|"
    r"(?<![\d.])(?P<cards>\d{1,3}) ?(?:gpus?\b|cards?\b|pcs\b|卡)|\((?P<count>\d{1,3}) ?x?\)",
    re.IGNORECASE,
)
_GLUED = re.compile(r"(?<![A-Za-z\d.])(\d{1,3}) ?[x×*] ?(?=[A-Za-z\d])", re.IGNORECASE)
_REMARK = re.compile(r" ?\((?:UUID|\d+ ?Gi?B|\d+ ?MiB)[^()]*\).*$")
_TARGET = re.compile(r"gfx\d[0-9a-f]{2,3}")
_BEHIND = re.compile(r"[(,;\n]| (?:with|on|gpus|cards?|each|per|and|instances?|x ?\d)\b", re.IGNORECASE)
_KINDS = re.compile(r" \+ | and (?=\d|[A-Z])|[;,](?= ?(?:\d ?[x×]|nvidia|amd|rtx|gtx|tesla))|、", re.IGNORECASE)
_WORDS = frozenset((
    "nvidia", "geforce", "rtx", "gtx", "tesla", "quadro", "titan", "gpu", "gpus", "card", "cards", "pcie", "laptop", "ti",
    "super", "ada", "generation", "blackwell", "hopper", "ampere", "hbm3", "hbm2e", "each", "with", "of", "a", "an", "on",
    "single", "dual", "vram", "memory", "ram", "pro", "workstation", "server", "edition", "max", "q", "amd", "radeon", "xt",
    "instinct", "xtx", "x", "gb", "gib", "gddr6", "gddr6x", "gddr7", "nvl", "d", "i", "have", "one", "two", "four", "eight",
    "google", "colab", "kaggle", "runpod", "aws", "gcp", "azure", "free", "tier", "instance", "notebook",
))  # fmt: skip
_TOKEN = re.compile(
    r"\d{1,4}(?:x|gi?b?|s|ti|d)?|x\d{1,3}|sxm\d?|[a-z]{1,2}\d{1,4}[a-z]{0,3}|[rg]tx\d{4}|\d{4}\w{0,2}|mi\d{2,3}\w?"
)
MOST_DEVICES = 1024
"""Maximum number of devices per machine; a larger number is not a count."""


_BOARD = re.compile(
    r"(?<![A-Za-z\d-])(?:nvidia )?(?:jetson (?:agx )?(?:orin|xavier|thor)(?: (?:nx|nano(?: super)?))?|jetson (?:nano|tx2)"
    r"|dgx spark|(?:amd )?ryzen ai max\+? ?(?:pro )?\d{3})(?![A-Za-z\d-])",
    re.IGNORECASE,
)
"""Computers named like their GPU; texts with these names mean the computer, not the GPU alone."""


def boards_in(text: str) -> list[Accelerator]:
    """Return the computers with a built-in GPU that a text names, without duplicates."""
    names = {match[0].lower().removeprefix("nvidia ").removeprefix("amd "): match[0] for match in _BOARD.finditer(text)}
    longest = [name for name in names if not any(name != other and other.startswith(name) for other in names)]
    return [device(names[name]) for name in longest]


def is_gpu(text: str) -> bool:
    """Whether a text names a kind of accelerator."""
    return len(text) < 400 and _NAMED.search(text) is not None


def is_phrase(text: str) -> bool:
    """Whether a text consists of devices only: "2x RTX 4090 24GB", not "please support the RTX 4090"."""
    words = re.split(r"[\s()*×/-]+", text.strip(" .`*()").lower())
    return len(words) < 12 and all(not word or word in _WORDS or _TOKEN.fullmatch(word) for word in words) and is_gpu(text)


def vendor_of(name: str) -> str | None:
    """Return nvidia, amd, intel or apple, by a device's name; ``None`` if unknown."""
    return lookup(((), (), {}), name).vendor


def device(name: str, memory_mib: int | None = None, capability: str | None = None) -> Accelerator:
    """Return a device by its name in a program's output: ``AMD Instinct MI210 (gfx90a:sramecc+:xnack-)``."""
    target = _TARGET.search(name)
    if target is not None:
        name = name.partition(f"({target[0]}")[0].strip() or target[0]
        return Accelerator("amd", name, None, memory_mib, target[0])
    name = _REMARK.sub("", name).strip(" .…,;`*\"'")[:100]
    return Accelerator(vendor_of(name), name, capability, memory_mib)


def devices_in(text: str) -> tuple[tuple[Accelerator, ...], bool] | None:
    """Return the devices in a hand-written description and whether it states their number; ``None`` if it names none.

    Several kinds ("2x RTX 4090 + RTX 3090") each have their own number.
    """
    text = _GLUED.sub(r"\1x ", text.strip("`*\"' ")) if len(text) < 200 else ""
    if not is_gpu(text):
        return None
    found: list[Accelerator] = []
    counted = False
    for part in _KINDS.split(text):
        name = _NAMED.search(part)
        if name is None:
            continue
        number, kind = _counted(part, name)
        if number is not None and not 0 < number <= MOST_DEVICES:
            return None
        counted = counted or number is not None
        found.extend([device(kind)] * (number or 1))
    counted = counted or len(found) > 1 or any(each.vendor == "apple" for each in found)
    return (tuple(found), counted) if 0 < len(found) <= MOST_DEVICES else None


def _counted(part: str, name: re.Match[str]) -> tuple[int | None, str]:
    """Return the number of devices of one kind, and the name without the number."""
    before = _BEFORE.search(part[: name.start()])
    if before is not None:
        number = before["times"] or before["x"] or before["count"]
        return int(number) if number else _NUMBER[before["word"].lower()], _named(part[name.start() :])
    after = _AFTER.search(part, name.end())
    if after is not None:
        return int(after["times"] or after["count"] or after["cards"]), _named(part[name.start() : after.start()])
    return None, _named(part[name.start() :])


def _named(text: str) -> str:
    """Return a device name without the words after it."""
    text = _BEHIND.split(text, maxsplit=1)[0]
    return re.sub(r"(?<=\d)s$", "", text.strip(" -.…*×"))
