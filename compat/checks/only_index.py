"""Requirements that the only index a command or a file names does not have: torch's own index has no other libraries.

``pip install --index-url https://download.pytorch.org/whl/cu118 torch transformers`` replaces the default index, where
``--extra-index-url`` adds one.
"""

from __future__ import annotations

from collections.abc import Iterator

from compat.checks.torch_build import INDEX
from compat.formats.listing import Listing
from compat.model import Finding, Fix, Location

_NOT_THERE = (
    "transformers", "trl", "peft", "datasets", "deepspeed", "bitsandbytes", "unsloth", "sentence-transformers", "evaluate",
    "diffusers", "gradio", "liger-kernel", "axolotl", "llamafactory", "ms-swift", "wandb", "openai", "langchain",
)  # fmt: skip
"""Only what torch's index has never had: it also has what torch and its own libraries require."""
_MORE = ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
_EVIDENCE = "https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-i"
_SHOWN = 4


def judge(listing: Listing) -> Iterator[Finding]:
    """Yield an error about the requirements that torch's index is asked for alone, one for each file or command."""
    variables = listing.context.variables or {}
    if any(variables.get(name) for name in _MORE):
        return
    found: dict[str, list[int]] = {}
    for number, entry in enumerate(listing.entries):
        source = entry.distribution.source
        url = source.details.get("url") if source is not None and source.kind == "index" else None
        of_torch = isinstance(url, str) and url.startswith(f"{INDEX}/") and source is not None and "more" not in source.details
        if of_torch and entry.distribution.name in _NOT_THERE:
            found.setdefault(str(url), []).append(number)
    for url, numbers in found.items():
        entries = [listing.entries[number] for number in numbers]
        names = list(dict.fromkeys(entry.distribution.name for entry in entries))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield Finding(
            rule="requirements-not-in-index", origin="metadata", effect="install",
            title=f"{url.rstrip('/')} is the only index, and does not have {', '.join(names[:_SHOWN])}{more}",
            why="--index-url replaces the default index: pip finds no version of what torch's index does not have, "
            "unless it is installed already.",
            packages={entry.distribution.name: entry.distribution.version for entry in entries},
            fixes=(
                Fix("config", text=f"write --extra-index-url {url} instead of --index-url"),
                Fix("config", text="install torch, torchvision and torchaudio first, by their own command with this index"),
            ),
            evidence=(_EVIDENCE,), here=", ".join(names),
            location=Location(entries[0].file or listing.file, entries[0].line),
        )  # fmt: skip
