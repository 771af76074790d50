"""Extensions that an image of NVIDIA has compiled for its own torch, beside a torch of an index that replaced it."""

from __future__ import annotations

from compat.checks.fix_commands import by_pip
from compat.checks.torch_build import Stack, image_of, replaced_image_of
from compat.model import Distribution, Finding, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_PUBLISHED = ("torchvision", "torchaudio", "torchtext")
"""What the index has for each release of torch."""
_OPTIONAL = ("transformer-engine", "apex", "flash-attn", "torch-tensorrt", "xformers")
"""What other packages import where they find it."""
_NVIDIA = "nvidia/pytorch"
_BETWEEN_RELEASES = "a0"
"""In the versions of what NVIDIA builds between two releases, for a torch that it builds likewise."""


def judge(stack: Stack) -> Iterator[Finding]:
    there = [each for each in stack.facts.environment.distributions or () if _of_image(each)]
    left = [each for each in there if each.name in (*_PUBLISHED, *_OPTIONAL)]
    torch = stack.torch
    if torch is None or not left or not any(map(_by_nvidia, there)) or not _of_index(torch):
        return
    names = [each.name for each in left]
    here = ", ".join(f"{each.name} {each.version or ''}".rstrip() for each in left)
    yield Finding(
        rule="image-torch-replaced", origin="build", severity="warning",
        title=f"{' and '.join(names)} of the image cannot be loaded with torch {torch.version}, which replaced its own",
        why="NVIDIA compiles them for its own torch, which lies between two releases: undefined symbol. transformers, "
        "accelerate and peft import some of them wherever they are installed, such as Transformer Engine.",
        packages={"torch": torch.version, **{each.name: each.version for each in left}}, facts=("build",),
        fixes=(
            *(by_pip("pin", name, None, "the release for this torch") for name in names if name in _PUBLISHED),
            *(Fix("uninstall", name, text="nothing finds it then", command=f"pip uninstall -y {name}")
              for name in names if name in _OPTIONAL),
            Fix("config", text="keep the torch of the image, whose /etc/pip/constraint.txt says what fits it"),
        ),
        evidence=("https://github.com/vllm-project/vllm/issues/431",), here=f"torch {torch.version}, {here}",
    )  # fmt: skip


def _of_image(copy: Distribution) -> bool:
    return copy.source is not None and copy.source.kind == "image"


def _by_nvidia(copy: Distribution) -> bool:
    return _BETWEEN_RELEASES in (copy.version or "") or f"{_NVIDIA}:" in image_of(copy)


def _of_index(torch: Distribution) -> bool:
    return bool(replaced_image_of(torch)) or (torch.source is not None and torch.source.kind == "index")
