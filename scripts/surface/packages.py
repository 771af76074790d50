"""The packages whose releases are mined, in the order in which they are read: small and central ones first."""

from __future__ import annotations

TRACKED = (
    "trl", "peft", "accelerate", "transformers", "datasets", "huggingface-hub", "unsloth-zoo", "tokenizers", "unsloth", "torch",
    "vllm", "deepspeed", "bitsandbytes", "liger-kernel", "xformers", "sentence-transformers", "diffusers", "llamafactory",
    "axolotl", "verl", "lm-eval", "outlines",
)  # fmt: skip
"""Both sides: what they define, and what they use of the others."""

BESIDE = (
    "compressed-tensors", "torchao", "triton", "optimum", "auto-gptq", "autoawq", "evaluate", "safetensors", "torchvision",
    "xgrammar", "llmcompressor", "ms-swift", "lighteval", "timm", "pydantic", "fastapi", "starlette", "numpy", "pyarrow",
    "sglang", "openai",
)  # fmt: skip
"""Packages that the tracked ones use, or that use them: read once the others are there."""

AROUND = (
    "setuptools", "packaging", "typing-extensions", "importlib-metadata", "pandas", "scipy", "scikit-learn", "numba",
    "tiktoken", "sentencepiece", "gguf", "mistral-common", "guidance", "llguidance", "outlines-core", "lm-format-enforcer",
    "einops", "kernels", "torchaudio", "torchdata", "torchtune", "torchtitan", "torchmetrics", "lightning",
    "pytorch-lightning", "tensordict", "gptqmodel", "hqq", "aqlm", "quanto", "auto-round", "nvidia-modelopt", "openrlhf",
    "lmdeploy", "flash-attn", "mamba-ssm", "causal-conv1d", "flash-linear-attention", "flashinfer-python",
    "transformer-engine", "megatron-core", "open-clip-torch", "cut-cross-entropy", "galore-torch", "qwen-vl-utils",
    "flagembedding", "deepspeed-mii", "autotrain-advanced", "fschat", "langchain-core",
    "openai-harmony", "httpx", "requests", "urllib3", "anyio", "uvicorn", "typer", "click", "tyro", "omegaconf",
    "hydra-core", "pydantic-settings", "fsspec", "gradio", "gradio-client", "wandb", "tensorboard", "tensorboardx",
    "nvidia-ml-py", "ray", "setfit",
)  # fmt: skip
"""What stacks lock around them: mined like the others, and in the tables with their names."""

USERS = (
    "adapters", "ai2-olmo", "alpaca-eval", "angle-emb", "aphrodite-engine", "audiocraft", "basicsr", "bert-score", "bertopic",
    "bertviz", "byaldi", "captum", "chatterbox-tts", "chronos-forecasting", "clip-interrogator", "colbert-ai",
    "colpali-engine", "compel", "controlnet-aux", "coqui-tts", "datatrove", "detoxify", "diffsynth", "distilabel", "docling",
    "docling-ibm-models", "easyocr", "esm", "evalplus", "exllamav2", "exllamav3", "f5-tts", "fairscale", "fairseq",
    "faster-whisper", "flair", "fms-hf-tuning", "funasr", "gfpgan", "gliner", "granite-tsfm", "gritlm", "happytransformer",
    "haystack-ai", "infinity-emb", "inseq", "instructlab-training", "instructorembedding", "intel-extension-for-pytorch",
    "intel-extension-for-transformers", "k-diffusion", "keybert", "kokoro", "ktransformers", "langchain-huggingface",
    "lerobot", "lightning-fabric", "litgpt", "llm-blender", "llm-foundry", "llm-guard", "llm2vec", "lm-polygraph", "lmcache",
    "lmms-eval", "lycoris-lora", "magic-pdf", "marker-pdf", "mergekit", "mineru", "mlx-lm", "mlx-vlm", "mmengine",
    "modelscope", "moondream", "mosaicml", "nanotron", "nemo-curator", "nemo-toolkit", "neural-compressor", "nncf", "nnsight",
    "openai-whisper", "opencompass", "optimum-benchmark", "outetts", "parler-tts", "petals", "pyannote-audio", "pylate",
    "python-doctr", "pytorch-metric-learning", "pytorchvideo", "pyvene", "ragas", "ragatouille", "realesrgan", "repeng",
    "salesforce-lavis", "simpletransformers", "smolagents", "spacy-llm", "spacy-transformers", "span-marker", "sparseml",
    "speechbrain", "stable-audio-tools", "stable-ts", "stanza", "surya-ocr", "swanlab", "textattack", "torch-geometric",
    "torch-tensorrt", "torchrec", "transformer-lens", "transformers-interpret", "transformers-stream-generator", "txtai",
    "unbabel-comet", "uni2ts", "unstructured-inference", "vllm-ascend", "whisper-timestamped", "whisperx", "xfuser",
)  # fmt: skip
"""Packages that work on top of the others: only what they use of them is mined."""

RAISING = (
    "pydantic", "sgl-kernel", "sglang-kernel", "llama-cpp-python", "numba-cuda", "lmcache", "nemo-toolkit", "ctranslate2",
    "faster-whisper", "whisperx", "openai-whisper", "pyannote-audio", "mlx-lm", "mlx-vlm", "xtuner", "mmengine", "jsonargparse",
    "lightning-utilities", "litdata", "litgpt", "mosaicml", "sageattention", "ktransformers", "exllamav2", "onnxruntime",
    "optimum-intel", "optimum-habana", "optimum-neuron", "optimum-onnx", "optimum-quanto", "intel-extension-for-pytorch",
    "gradio-client", "bert-score", "cuda-bindings", "cuda-core", "cuda-pathfinder", "skypilot", "litellm",
    "langchain-huggingface", "llama-index-llms-huggingface", "torchrec", "fairscale", "mergekit", "adapters",
    "simpletransformers", "colpali-engine", "swanlab",
)  # fmt: skip
"""Packages of which the messages are mined, and not what they define; some are mined otherwise as well."""

UNTABLED = frozenset(("pyarrow", "timm"))
"""Of these the rows tell what others need; scripts are not judged against them: most of what they have is compiled, or made
when they run."""

SINCE = "2022-12-15"
"""The day from which releases are read: the newest release of many packages at the start of 2023 is some weeks older."""

SINCE_OF = {"litellm": "2026-10-25", "llama-cpp-python": "2024-01-01"}
"""The same for packages with very many or large releases."""

PRE_RELEASES = {
    "transformers": ("5.0.0rc0", "5.0.0rc1", "5.0.0rc2", "5.0.0rc3"),
}
"""Pre-releases that published locks and reports use; all other pre-releases are left out."""

TOPS = {
    "huggingface-hub": ("huggingface_hub",), "sentence-transformers": ("sentence_transformers",), "lm-eval": ("lm_eval",),
    "ms-swift": ("swift",), "flashinfer-python": ("flashinfer",),
    "autoawq": ("awq",), "llamafactory": ("llamafactory", "llmtuner"), "torch": ("torch", "functorch"),
    "setuptools": ("setuptools", "pkg_resources"), "scikit-learn": ("sklearn",), "lm-format-enforcer": ("lmformatenforcer",),
    "nvidia-modelopt": ("modelopt",), "flash-linear-attention": ("fla",), "megatron-core": ("megatron",),
    "open-clip-torch": ("open_clip",), "flagembedding": ("FlagEmbedding",), "deepspeed-mii": ("mii",),
    "autotrain-advanced": ("autotrain",), "fschat": ("fastchat",), "hydra-core": ("hydra",), "tensorboardx": ("tensorboardX",),
    "colbert-ai": ("colbert",), "coqui-tts": ("TTS",), "haystack-ai": ("haystack",),
    "instructlab-training": ("instructlab",), "pyannote-audio": ("pyannote",), "salesforce-lavis": ("lavis",),
    "python-doctr": ("doctr",), "marker-pdf": ("marker",), "surya-ocr": ("surya",), "llm-foundry": ("llmfoundry",),
    "mosaicml": ("composer",), "instructorembedding": ("InstructorEmbedding",), "granite-tsfm": ("tsfm_public",),
    "unbabel-comet": ("comet",), "aphrodite-engine": ("aphrodite",), "fms-hf-tuning": ("tuning",), "ai2-olmo": ("olmo",),
    "stable-ts": ("stable_whisper",), "lycoris-lora": ("lycoris",), "chronos-forecasting": ("chronos",),
    "chatterbox-tts": ("chatterbox",),
    "nvidia-ml-py": ("pynvml",), "openai-whisper": ("whisper",), "optimum-quanto": ("optimum",), "nemo-toolkit": ("nemo",),
    "sglang-kernel": ("sgl_kernel",), "llama-cpp-python": ("llama_cpp",), "numba-cuda": ("numba_cuda",),
    "optimum-intel": ("optimum",), "optimum-habana": ("optimum",), "optimum-neuron": ("optimum",), "optimum-onnx": ("optimum",),
    "cuda-bindings": ("cuda",), "cuda-core": ("cuda",), "cuda-pathfinder": ("cuda",), "skypilot": ("sky",),
    "llama-index-llms-huggingface": ("llama_index",), "quack-kernels": ("quack",),
}  # fmt: skip
"""What is imported, where that is not the package's own name."""


def tops_of(package: str) -> tuple[str, ...]:
    """Return the top-level modules of a package."""
    return TOPS.get(package, (package.replace("-", "_"),))
