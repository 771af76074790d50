"""``python -m scripts.messages.extract [PACKAGE…]``: the messages of every distinct module in the store that were not read yet.

The store is that of ``scripts.surface.fetch``, which fills it. May be stopped at any time; the next run goes on.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from compat.records import values_of
from compat.versions import key_of
from scripts.messages.packages import PACKAGES
from scripts.messages.raised import FORM, Message, messages_of
from scripts.surface.collect import passed_over
from scripts.surface.extract import place_of
from scripts.surface.packages import tops_of
from scripts.surface.store import Release, Store

PLACE = "messages"
"""Under which records stand: what a module says does not depend on its name."""
BATCH = 200
_NEVER_RUN = re.compile(
    r"\.(modeling_(tf|flax)_\w+|dummy_\w+|_vendor|convert_\w+_checkpoint\w*|kernel_src)(\.|$)"
    r"|^(?!optimum\.)\w+(\.\w+)*\.onnx(\.|$)"
    r"|^(sglang\.multimodal_gen|ray\.(rllib|dashboard|autoscaler|tune|serve|data))\."
    r"|^litellm\.(proxy|integrations|llms\.(?!base|custom|openai|huggingface|vllm|hosted_vllm|ollama|llamafile|lm_studio)\w+)(\.|$)"
    r"|^sky\.(provision|clouds|adaptors|catalog|users|ssh_node_pools)\."
    r"|^nemo\.(collections\.(tts|vision|multimodal\w*|audio|diffusion|avlm)|agents)\.|^lmcache\.cli\."
    r"|^torch\.(_refs|_prims\w*|_meta_registrations|_decomp|_numpy|masked)(\.|$)"
    r"|^flashinfer\.(experimental|data|(\w+\.)*(cute_dsl|prims_ts|kernels|runners|backends))\."
)
"""Frameworks that are gone, stand-ins, converters of checkpoints, copies of other projects, parts for other purposes, and what
repeats the checks of native code in Python."""
MODELS = re.compile(
    r"^(transformers|vllm\.model_executor|sglang\.srt|optimum\.\w+|swift\.llm\.model|lmdeploy)\.models\.(?!auto\b|registry\b|utils\b)"
    r"|^diffusers\.(models|pipelines|modular_pipelines|schedulers)\.\w+\.|^timm\.|^mlx_(lm|vlm)\.models\.|^torchvision\.(models|datasets|prototype)\."
    r"|^(vllm\.model_executor|sglang\.srt)\.layers\.fused_moe\.|^torch\.(testing|_inductor\.codegen|ao|onnx|distributions)\."
)
"""Thousands of near-copies that mostly check their arguments."""
_OF_ENVIRONMENT = re.compile(rb"ImportError|pip install|_version\b|[Cc]ompute [Cc]apabilit|RuntimeError")
"""What a module among them has to hold to be read."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.messages.extract", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--release", action="append", default=[], metavar="VERSION", help="only this one (may be repeated)")
    words = parser.parse_args(arguments)
    store = Store(words.store)
    for package in words.packages or PACKAGES:
        began = time.monotonic()
        known = {source for source, place in store.recorded(FORM) if place == PLACE}
        releases = [each for each in store.releases(package) if not words.release or each.version in words.release]
        modules = {source: module for release in releases for module, source in modules_of(release).items()}
        wanted = sorted(modules.keys() - known)
        for at in range(0, len(wanted), BATCH):
            batch = wanted[at : at + BATCH]
            made = [(source, PLACE, packed(_messages(modules[source], store.body(source)))) for source in batch]
            store.keep_records(FORM, made)
        print(f"{package}: {len(wanted)} modules read in {time.monotonic() - began:.1f} s", flush=True)
    store.close()
    return 0


def modules_of(release: Release) -> dict[str, int]:
    """Return the modules of a release that run in production, with the number of each source."""
    tops = tops_of(release.package)
    found = {}
    for path, source in release.members.items():
        place = place_of(path)
        if place is None or place.endswith("?") or place.rstrip("/").partition(".")[0] not in tops:
            continue
        module = place.rstrip("/")
        if not passed_over(module) and not _NEVER_RUN.search(module):
            found[module] = source
    return found


def _messages(module: str, source: bytes) -> list[Message]:
    return [] if MODELS.search(module) and not _OF_ENVIRONMENT.search(source) else messages_of(source)


def packed(messages: Iterable[Message]) -> bytes:
    return zlib.compress(json.dumps([values_of(each) for each in messages]).encode())


def extracted(store: Store, package: str) -> tuple[list[Release], int]:
    """Return the fully read releases of a package, oldest first, and the number of the others."""
    known = {source for source, place in store.recorded(FORM) if place == PLACE}
    releases = sorted(store.releases(package), key=lambda release: key_of(release.version))
    whole = [release for release in releases if known.issuperset(modules_of(release).values())]
    return whole, len(releases) - len(whole)


def occurrences(store: Store, releases: list[Release]) -> dict[tuple[str, Message], int]:
    """Return the releases with each message, by module and message, as a bit mask.

    A module among near-copies counts if it was read in all releases: otherwise its messages would appear intermittent.
    """
    sources: dict[tuple[str, int], int] = defaultdict(int)
    for at, release in enumerate(releases):
        for module, source in modules_of(release).items():
            sources[module, source] |= 1 << at
    bodies = {source: store.record(FORM, source, PLACE) or b"" for _, source in sources}
    nothing = packed(())
    skipped = {module for module, source in sources if bodies[source] == nothing and MODELS.search(module)}
    found: dict[tuple[str, Message], int] = defaultdict(int)
    for (module, source), mask in sources.items():
        for kind, name, template, function, guards in (
            json.loads(zlib.decompress(bodies[source])) if module not in skipped else ()
        ):
            found[module, Message(kind, name, template, function, tuple(guards))] |= mask
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
