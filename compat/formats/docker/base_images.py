"""Base images: the software implied by an image's name and tag. Nothing is pulled or queried.

A digest, ``latest`` and other tags without a version imply nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from compat.formats.installs.words import IMAGE_CONSTRAINT, backend_of
from compat.model import Distribution, Environment, Source
from compat.records import replace
from compat.versions import key_of

NGC_PYTORCH: Mapping[str, tuple[str, str]] = {
    "23.09": ("2.1.0a0+32f93b1", "12.2.1"),
    "23.10": ("2.1.0a0+32f93b1", "12.2.2"),
    "23.12": ("2.2.0a0+81ea7a4", "12.3"),
    "24.01": ("2.2.0a0+81ea7a4", "12.3"),
    "24.02": ("2.3.0a0+ebedce2", "12.3.2"),
    "24.03": ("2.3.0a0+40ec155e58.nv24.03", "12.4.0"),
    "24.04": ("2.3.0a0+6ddf5cf85e.nv24.04", "12.4.1"),
    "24.05": ("2.4.0a0+07cecf4168.nv24.05", "12.4.1"),
    "24.06": ("2.4.0a0+f70bd71a48.nv24.06", "12.5.0"),
    "24.07": ("2.4.0a0+3bcc3cddb5.nv24.07", "12.5.1"),
    "24.08": ("2.5.0a0+872d972e41.nv24.08", "12.6"),
    "24.09": ("2.5.0a0+b465a5843b.nv24.09", "12.6.1"),
    "24.10": ("2.5.0a0+e000cf0ad9.nv24.10", "12.6.2"),
    "24.11": ("2.6.0a0+df5bbc09d1.nv24.11", "12.6"),
    "24.12": ("2.6.0a0+df5bbc09d1.nv24.12", "12.6"),
    "25.01": ("2.6.0a0+ecf3bae40a.nv25.01", "12.8"),
    "25.02": ("2.7.0a0+ecf3bae40a.nv25.02", "12.8"),
    "25.03": ("2.7.0a0+7c8ec84dab.nv25.03", "12.8"),
    "25.04": ("2.7.0a0+79aa17489c.nv25.04", "12.9"),
    "25.05": ("2.8.0a0+5228986c39.nv25.05", "12.9"),
    "25.06": ("2.8.0a0+5228986c39.nv25.06", "12.9.1"),
    "25.08": ("2.8.0a0+34c6371d24.nv25.08", "13.0"),
    "25.09": ("2.9.0a0+50eac811a6.nv25.09", "13.0.1"),
    "25.10": ("2.9.0a0+145a3a7bda.nv25.10", "13.0"),
    "25.11": ("2.10.0a0+b558c986e8.nv25.11", "13.0.2"),
    "25.12": ("2.10.0a0+b4e4ee81d3.nv25.12", "13.1.0"),
    "26.01": ("2.10.0a0+a36e1d39eb.nv26.01", "13.1"),
    "26.02": ("2.11.0a0+eb65b36914.nv26.02", "13.1"),
    "26.03": ("2.11.0a0+a6c236b9fd.nv26.03", "13.2.0"),
}
"""``nvcr.io/nvidia/pytorch:YY.MM-py3`` → torch and CUDA toolkit.

Read on 2026-11-21: NVIDIA's PyTorch release notes (docs.nvidia.com/deeplearning/frameworks/pytorch-release-notes, 25.12 in
a stored copy, 24.02 to 24.10 as transcribed from there), the table "PyTorch compatibility with NVIDIA containers" of the
release notes for Jetson (April 2026), and for each release what ``torch.__version__`` and ``torch.version.cuda`` printed in
its container in public logs. Where those name no patch release of CUDA, none is given.
"""

VLLM_OPENAI: tuple[tuple[str, str, str], ...] = (
    ("0.2.6", "2.1.2", "12.1"), ("0.4.1", "2.2.1", "12.1"), ("0.4.2", "2.3.0", "12.1"), ("0.5.2", "2.3.1", "12.1"),
    ("0.5.4", "2.4.0", "12.1"), ("0.6.4", "2.5.1", "12.4"), ("0.8.0", "2.6.0", "12.4"), ("0.9.0", "2.7.0", "12.8"),
    ("0.10.0", "2.7.1", "12.6"), ("0.10.1", "2.7.1", "12.8"), ("0.10.2", "2.8.0", "12.8"), ("0.11.1", "2.9.0", "12.9"),
    ("0.14.0", "2.9.1", "12.9"),
    ("0.17.0", "2.10.0", "12.9"), ("0.20.0", "2.11.0", "13.0"), ("0.27.0", "2.13.0", "13.0"), ("0.33.0", "2.14.0", "13.0"),
    ("0.33.1", "", ""),
)  # fmt: skip
"""``vllm/vllm-openai:vX.Y.Z`` → torch and the CUDA it was built for: each row from that release to the next row's.

Read on 2026-11-22 in the source distributions of 0.6.2 to 0.33.0 (0.15 has none): the Dockerfile's CUDA_VERSION, and the torch
that requirements/cuda.txt pins. Those before 0.6.2 have no Dockerfile: the torch that requirements-cuda.txt pins (read on
2026-11-29) with the CUDA of its wheel on the default index, from which the Dockerfile of 0.6.2 installs it as well. What
``collect_env`` printed in the image of 0.4.1 (vLLM's issue 4462) agrees. Later releases have not been read. The torch in the
image of 0.10.0 has no sm_120 and the architectures of the build for CUDA 12.6, by vLLM's issues 14452 and 21633.
"""

SGLANG: tuple[tuple[str, str], ...] = (
    ("0.4.3.post3", "2.5.1"), ("0.4.5.post3", "2.6.0"), ("0.4.7", "2.7.1"), ("0.5.1", "2.8.0"), ("0.5.6", "2.9.1"),
    ("0.5.11", "2.11.0"), ("0.5.18", "2.13.0"), ("0.5.22", "2.14.1"), ("0.5.24", ""),
)  # fmt: skip
"""``lmsysorg/sglang:vX.Y.Z`` → torch: each row from that release to the next row's.

What the releases up to 0.5.23 pin in their metadata (matrix/facts/requirements.csv), from torch's index for the CUDA of the
tag (``-cu130``), by the Dockerfile of 0.5.5; a tag without one does not say it. Later releases have not been read.
"""

_PYTORCH_PYTHON = (
    ("1.11", "3.8"), ("1.12", "3.7"), ("1.13", ""), ("2.0", "3.10"), ("2.4", ""), ("2.5", "3.11"), ("2.9", ""),
)  # fmt: skip
"""``pytorch/pytorch:X.Y.Z-…`` → Python: each row from that series to the next row's, "" where it is not known.

Read on 2026-11-29: PyTorch's issue 73714 on the images of 1.11 and 1.12, ``PYTHON_VERSION`` of docker.Makefile with CUDA 12.1.1
(3.10) and later (3.11), and what ``python --version`` printed in the image of 2.5.1 in a public issue.
"""

_LEADING = {
    "pytorch/pytorch": "torch", "runpod/pytorch": "torch", "mosaicml/pytorch": "torch", "vllm/vllm-openai": "vllm",
    "lmsysorg/sglang": "sglang", "openmmlab/lmdeploy": "lmdeploy", "huggingface/trl": "trl", "huggingface/peft-gpu": "peft",
    "huggingface/transformers-pytorch-gpu": "transformers", "huggingface/text-generation-inference": "text-generation-server",
    "axolotlai/axolotl-base": "torch", "pytorch-training": "torch", "pytorch-inference": "torch",
    "huggingface-pytorch-training": "torch", "huggingface-pytorch-inference": "torch", "rayproject/ray": "ray",
    "rayproject/ray-ml": "ray", "rayproject/ray-llm": "ray",
}  # fmt: skip
"""Images → the distribution whose release is their tag: the one token of the tag that is a plain version."""

_TOKENS = {
    "torch": "torch", "pytorch": "torch", "th": "torch", "pt": "torch", "vllm": "vllm", "sglang": "sglang", "fa": "flash-attn",
    "flashattn": "flash-attn", "flash_attn": "flash-attn", "transformers": "transformers", "flashinfer": "flashinfer-python",
    "mcore": "megatron-core", "te": "transformer-engine", "deepspeed": "deepspeed", "trl": "trl", "unsloth": "unsloth",
    "xformers": "xformers",
}  # fmt: skip
"""``vllm0.8.5`` and similar tokens in the tag of any image."""

_GLIBC = {
    "ubuntu18.04": "2.27", "ubuntu20.04": "2.31", "ubuntu22.04": "2.35", "ubuntu24.04": "2.39", "debian10": "2.28",
    "debian11": "2.31", "debian12": "2.36", "debian13": "2.41", "ubi8": "2.28", "ubi9": "2.34", "rockylinux8": "2.28",
    "rockylinux9": "2.34",
}  # fmt: skip
_NAMED = {
    "bionic": "ubuntu18.04", "focal": "ubuntu20.04", "jammy": "ubuntu22.04", "noble": "ubuntu24.04", "buster": "debian10",
    "bullseye": "debian11", "bookworm": "debian12", "trixie": "debian13",
}  # fmt: skip
_SYSTEM_PYTHON = {
    "ubuntu18.04": "3.6", "ubuntu20.04": "3.8", "ubuntu22.04": "3.10", "ubuntu24.04": "3.12", "debian10": "3.7",
    "debian11": "3.9", "debian12": "3.11", "debian13": "3.13",
}  # fmt: skip
"""Versions of the package ``python3`` by release of the system."""


_BARE = ("nvidia/cuda", "rocm/dev-ubuntu-22.04", "rocm/dev-ubuntu-24.04", "python", "ubuntu", "debian", "astral-sh/uv")
"""Images without any Python package but the installers: what a Dockerfile does not install is not there."""


def vllm_with_older_cuda(release: str | None, cuda: str) -> tuple[str, str, str] | None:
    """The newest releases of vLLM's image with a CUDA older than ``cuda``: from one on, up to before another, and their CUDA.

    Only those before ``release``, if it is known.
    """
    known = key_of(release) if release is not None and _is_version(release) else None
    for (first, _, has), (following, _, _) in zip(VLLM_OPENAI[-2::-1], VLLM_OPENAI[:0:-1]):
        if key_of(first) < key_of(_BASE_KNOWN):
            break
        if has and key_of(has) < key_of(cuda) and (known is None or key_of(first) < known):
            return first, following, has
    return None


_BASE_KNOWN = "0.6.4"
"""The first row whose CUDA is also that of the base image, which a container's driver has to support: torch 2.4.0 for CUDA 12.1
was installed on a base image for 12.4, and older base images have not been read."""


def is_bare(image: str) -> bool:
    """Whether nothing is installed in an image that a package of this file could meet."""
    return name_and_tag(image)[0] in _BARE


_COMPILERS = re.compile(
    r"nvcc|cuda-(?:toolkit|compiler|minimal|command)|cudatoolkit|nvidia-cuda|/usr/local/cuda|cuda_\d|CUDA_HOME|SKIP_CUDA_BUILD"
)
"""What a command says that installs the CUDA compiler, relies on one, or has nothing compiled."""
_COMMANDS = re.compile(r"[&;|\n]")
_CUDA = re.compile(r"\scuda(?:[\s=]|-\d|$)")
"""The package ``cuda`` among those that a command installs."""


def has_no_compiler(image: str) -> bool:
    """Whether an image is known to have no CUDA compiler: bare ones, and those of CUDA and PyTorch for running only."""
    name, tag = name_and_tag(image)
    if name in ("nvidia/cuda", "pytorch/pytorch"):
        return not {"base", "runtime"}.isdisjoint(tag.split("-"))
    return name in ("python", "ubuntu", "debian", "astral-sh/uv")


def with_compiler(image: str) -> str | None:
    """Return the image for development that belongs to one for running only; ``None`` if there is none."""
    name, tag = name_and_tag(image)
    parts = ["devel" if part in ("base", "runtime") else part for part in tag.split("-")]
    return with_tag(image, "-".join(parts)) if name in ("nvidia/cuda", "pytorch/pytorch") and has_no_compiler(image) else None


_OF_CUDA = {"12": "12.8.1", "13": "13.0.1"}
"""A release of NVIDIA's images for development for each major version of CUDA, on Ubuntu 22.04 and 24.04.

Read on 2026-12-01: every one of these tags, with and without ``cudnn``, is what public Dockerfiles are built from.
"""


def compiler_of(image: str) -> str | None:
    """The CUDA release of the compiler in one of NVIDIA's images for development, as ``12.4``; ``None`` for any other image."""
    name, tag = name_and_tag(image)
    parts = tag.split("-")
    own = name == "nvidia/cuda" and "devel" in parts and _is_version(parts[0])
    return ".".join(parts[0].split(".")[:2]) if own else None


def with_compiler_for(image: str, cuda: str) -> str | None:
    """The image for development with a compiler for the major version of a CUDA release; ``None`` if none is known."""
    parts = name_and_tag(image)[1].split("-")
    other = _OF_CUDA.get(cuda.partition(".")[0])
    if compiler_of(image) is None or other is None or parts[-1] not in ("ubuntu22.04", "ubuntu24.04"):
        return None
    return with_tag(image, "-".join((other, *("cudnn" if part.startswith("cudnn") else part for part in parts[1:]))))


def mentions_compiler(text: str) -> bool:
    """Whether a command may install a CUDA compiler, or rely on one."""
    installed = (part.partition("install")[2] for part in _COMMANDS.split(text))
    return _COMPILERS.search(text) is not None or any(map(_CUDA.search, installed))


def known_stack(image: str) -> Environment:
    """Return the environment implied by an image: torch and related distributions, Python, CUDA toolkit, glibc."""
    name, tag = name_and_tag(image)
    system = "windows" if "windows" in name or "nanoserver" in name else "linux"
    if not tag:
        return Environment(os=system)
    if name == "nvidia/pytorch" and tag[:5] in NGC_PYTORCH and tag[5:6] in ("", "-"):
        return _ngc(image, tag[:5])
    if name == "vllm/vllm-openai" and tag[:1] == "v" and _is_version(tag[1:]) and (found := _vllm(image, tag[1:])):
        return found
    tokens = tag.replace("_", "-").split("-")
    distributions: dict[str, Distribution] = {}
    named = [] if name.startswith("rocm/vllm") else _named(tokens)  # builds between two releases
    leading = _leading(name, tokens)
    pinned = [torch for each in leading if each.name == "sglang" for torch in _torch_of_sglang(each.version or "", tokens)]
    for distribution in (*leading, *named, *pinned):
        distributions.setdefault(distribution.name, distribution)
    build = next((b for token in tokens if (b := _build(token))), {})
    source = Source("image", {"image": image})
    copies = [
        replace(each, source=source, extra=build if each.name in ("torch", "torchvision") else {})
        for each in distributions.values()
    ]
    copies += filter(None, [beside_torch(each, "torchvision") for each in copies])
    return Environment(
        python=_python(name, tokens) or _python_of_torch(name, leading),
        os=system,
        glibc=_GLIBC.get(system_of(image) or ""),
        cuda_toolkit=_toolkit(name, tokens) if "devel" in tokens or name.endswith("cuda-dl-base") else None,
        distributions=tuple(copies) or None,
    )


def has_known_stack(image: str) -> bool:
    """Whether the release of every package that :func:`known_stack` names is known, torch among them."""
    found = {copy.name: copy.version for copy in known_stack(image).distributions or ()}
    return bool(found.get("torch")) and all(found.values())


def with_tag(image: str, tag: str) -> str:
    """Return an image of the same registry and name with another tag, without a digest."""
    folder, slash, last = image.partition("@")[0].rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}:{tag}"


_SERVERS = {"vllm/vllm-openai": ("vllm", "serve")}
"""Images whose entry point is a known server, so that their command has only its options."""


def server_of(image: str) -> tuple[str, ...] | None:
    """Return the entry point of an image if it is a known server."""
    folder, slash, last = image.partition("@")[0].rpartition("/")
    repository = f"{folder}{slash}{last.partition(':')[0]}"
    return next((words for name, words in _SERVERS.items() if repository.endswith(name)), None)


def system_of(image: str) -> str | None:
    """Return the Linux release of an image from its name and tag: ``"ubuntu22.04"``, ``"debian12"``."""
    name, tag = name_and_tag(image)
    if name in ("ubuntu", "debian", "rockylinux"):
        release = tag.partition("-")[0]
        release = release if name == "ubuntu" else release.partition(".")[0]
        return _NAMED.get(release) or (f"{name}{release}" if f"{name}{release}" in _GLIBC else None)
    if name == "nvidia/pytorch" and tag[:5] in NGC_PYTORCH:
        return "ubuntu24.04" if tag[:5] >= "24.11" else "ubuntu22.04"
    for token in tag.replace("_", "-").split("-"):
        system = _NAMED.get(token) or (token if token in _GLIBC else None)
        if system:
            return system
    return None


def system_python(image: str) -> str | None:
    """Return the version of the system package ``python3``."""
    return _SYSTEM_PYTHON.get(system_of(image) or "")


def python_of(image: str) -> str | None:
    """Return the Python of an image, or of its system's packages."""
    return known_stack(image).python or system_python(image)


_HELD = ("25.03", "25.09")
"""The first and the last release of NVIDIA's PyTorch image that are known to hold what they contain with a constraint of pip.

"Starting from the 25.03 release", by its release notes. Those of later ones repeat that, but the file is said to be empty.
"""


def image_variables(image: str) -> dict[str, str]:
    """Return the environment variables an image is known to set."""
    name, tag = name_and_tag(image)
    release = tag.partition("-")[0]
    if name == "nvidia/pytorch" and release in NGC_PYTORCH and key_of(_HELD[0]) <= key_of(release) <= key_of(_HELD[1]):
        return {"PIP_CONSTRAINT": IMAGE_CONSTRAINT}
    return {"CUDA_VERSION": release} if name == "nvidia/cuda" and release.count(".") == 2 and _is_version(release) else {}


def name_and_tag(image: str) -> tuple[str, str]:
    """Split an image into its name without registry and its tag; a digest is ignored."""
    text = image.partition("@")[0]
    host, slash, rest = text.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        text = rest
    text = text.removeprefix("library/")
    name, _, tag = text.partition(":")
    return name.lower(), tag.lower()


def _ngc(image: str, release: str) -> Environment:
    torch, cuda = NGC_PYTORCH[release]
    system = system_of(image) or ""
    source = Source("image", {"image": image})
    distribution = Distribution("torch", torch, source, extra={"cuda": ".".join(cuda.split(".")[:2])})
    return Environment(
        python=_SYSTEM_PYTHON[system], os="linux", glibc=_GLIBC[system], cuda_toolkit=cuda, distributions=(distribution,)
    )


def _vllm(image: str, release: str) -> Environment | None:
    """Return the stack of a release that was read; tags with a suffix (``-cu129``) have another CUDA."""
    key = key_of(release)
    torch, cuda = next(((torch, cuda) for first, torch, cuda in reversed(VLLM_OPENAI) if key_of(first) <= key), ("", ""))
    if not torch:
        return None
    source = Source("image", {"image": image})
    built = Distribution("torch", torch, source, extra={"cuda": cuda})
    # by the Dockerfiles since 0.6.2, and by collect_env in the image of 0.4.1 (vLLM's issue 4462); those between are unknown
    python = "3.12" if key >= key_of("0.6.2") else "3.10" if key < key_of("0.4.2") else None
    return Environment(python=python, os="linux", distributions=(Distribution("vllm", release, source), built))


def _torch_of_sglang(release: str, tokens: Sequence[str]) -> list[Distribution]:
    """Return the torch that a release of SGLang pins; images for AMD and other devices have separate builds."""
    if not all(each in (f"v{release}", "runtime") or each.startswith("cu") for each in tokens):
        return []
    key = key_of(release)
    if key < key_of("0.5.6") and any(each.startswith("cu13") for each in tokens):
        return []  # their Dockerfile replaces torch by another release
    torch = next((torch for first, torch in reversed(SGLANG) if key_of(first) <= key), "")
    return [Distribution("torch", torch)] if torch else []


def _leading(name: str, tokens: list[str]) -> list[Distribution]:
    """Return the distribution an image is built for; its version is the only plain version in the tag."""
    package = _LEADING.get(name) or _LEADING.get(name.rpartition("/")[2])
    if package is None or any(token.startswith("torch") for token in tokens):
        return []  # 1.0.2-cu1281-torch280 is a release of the image
    for token in tokens:
        version = token.removeprefix("v")
        if version.count(".") >= 2 and _is_version(version):
            return [Distribution(package, version)]
    return []


_WITH_TORCHVISION = key_of("2.1.0"), key_of("2.11.0")
"""The torch releases, from the first up to before the second, whose images have a torchvision that is known.

PyTorch's Dockerfile installs torch, torchvision and torchaudio from one index (read on 2026-12-01), and each release pins the
torch that it is built for; the torchvision of 2.0.0 is not certain, and from 2.11 on torchaudio pins none.
"""


def beside_torch(torch: Distribution, name: str) -> Distribution | None:
    """Return the torchvision or torchaudio in PyTorch's image of a torch; ``None`` if it is not known, or for another image."""
    first, later = _WITH_TORCHVISION
    version, source = torch.version or "", torch.source if torch.name == "torch" else None
    image = "" if source is None or source.kind != "image" else name_and_tag(str(source.details.get("image", "")))[0]
    if image != "pytorch/pytorch" or not _is_version(version) or not first <= key_of(version) < later:
        return None
    parts = version.split(".")
    if len(parts) != 3 or not all(map(str.isdecimal, parts)):
        return None
    own = {"torchvision": f"0.{int(parts[1]) + 15}.{parts[2]}", "torchaudio": version}.get(name)
    return None if own is None else replace(torch, name=name, version=own, requires=(f"torch=={version}",))


def _named(tokens: list[str]) -> list[Distribution]:
    """Return the distributions named in a tag: ``torch2.6`` leaves the patch release unknown, a post release is exact."""
    found = []
    words = [token for token in tokens if token != "release"]
    for word, following in zip(words, [*words[1:], ""]):
        name = word.rstrip("0123456789.") if ".post" not in word else word.partition(".post")[0].rstrip("0123456789.")
        version = word[len(name) :] or following  # vllm-0.10.1
        package = _TOKENS.get(name)
        if package and "." in version and _is_version(version):
            exact = ".post" in version
            found.append(Distribution(package, version if exact else None, specifier=None if exact else f"=={version}.*"))
    return found


def _build(token: str) -> dict[str, str]:
    """Parse ``cu124``, ``cuda12.4`` or ``cuda12.4.1``, as :func:`backend_of` does."""
    if token.startswith("cuda") and "." in token:
        parts = token[4:].split(".")
        return {"cuda": ".".join(parts[:2])} if _is_version(token[4:]) else {}
    return backend_of(token) if token.startswith(("cu", "rocm")) else {}


def _toolkit(name: str, tokens: list[str]) -> str | None:
    if name == "nvidia/cuda":
        return tokens[0] if _is_version(tokens[0]) else None
    for token in tokens:
        if token.startswith("cuda") and "." in token and _is_version(token[4:]):
            return token[4:]
    return next((build["cuda"] for token in tokens if "cuda" in (build := backend_of(token))), None)


def _python(name: str, tokens: list[str]) -> str | None:
    if name == "python":
        return tokens[0] if "." in tokens[0] and _is_version(tokens[0]) else None
    for token in tokens:
        for mark in ("python", "py"):
            text = token[len(mark) :] if token.startswith(mark) else ""
            if text.isascii() and text.isdecimal() and len(text) == 3 and text[0] == "3":
                return f"3.{text[1:]}"
            if text[:2] == "3." and _is_version(text):
                return text
    return None


def _python_of_torch(name: str, leading: Sequence[Distribution]) -> str | None:
    """Return the Python of PyTorch's own images."""
    if name != "pytorch/pytorch" or not leading:
        return None
    release = key_of(leading[0].version or "0")
    return next((python for first, python in reversed(_PYTORCH_PYTHON) if key_of(first) <= release), "") or None


_SYSTEMS = ("ubuntu18.04", "ubuntu20.04", "ubuntu22.04", "ubuntu24.04")
_CUDA_ON = {"ubuntu20.04": "11.0", "ubuntu22.04": "11.7", "ubuntu24.04": "12.6"}
"""The first CUDA with images for a release of Ubuntu."""
LAST_PYTHON = 14
"""The last Python 3 that is suggested."""


def on_newer_pythons(image: str) -> Iterator[tuple[str, str]]:
    """Yield images with a newer Python and the same CUDA, and their Python, the nearest first: of CUDA, Ubuntu and Python."""
    name, tag = name_and_tag(image)
    system, python = system_of(image), python_of(image)
    if python is None:
        return
    if name == "python":
        kind = tag.partition("-")[2]
        if kind in ("", "slim", "slim-bookworm", "bookworm", "slim-bullseye", "bullseye"):
            minor = int(python.split(".")[1])
            for newer in range(minor + 1, LAST_PYTHON + 1):
                yield with_tag(image, f"3.{newer}" + (f"-{kind}" if kind else "")), f"3.{newer}"
    elif system in _SYSTEMS and name in ("ubuntu", "nvidia/cuda"):
        for other in _SYSTEMS[_SYSTEMS.index(system) + 1 :]:
            cuda = tag.partition("-")[0]
            if name == "nvidia/cuda" and not (_is_version(cuda) and key_of(cuda) >= key_of(_CUDA_ON[other])):
                continue
            if name == "nvidia/cuda" and not tag.endswith(f"-{system}"):
                continue
            yield with_tag(image, tag.replace(system, other) if name == "nvidia/cuda" else other[6:]), _SYSTEM_PYTHON[other]


def _is_version(text: str) -> bool:
    if not text[:1].isdecimal() or not text.isascii():
        return False
    try:
        key_of(text)
    except ValueError:
        return False
    return True
