"""``python -m scripts.messages.native [PACKAGE…]``: the messages of compiled code, from the source distributions of releases.

What an extension raises is in no Python file. Each table (``PACKAGE.native.bin``) is made anew from all final releases whose
source distribution has C++, CUDA or Rust files; other releases are not in it. Nothing is kept between runs.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from compat.index import File, Index, gather
from compat.index import Store as IndexStore
from compat.index.metadata import Unread
from compat.index.transport import Transport
from compat.interfaces.messages import NATIVE
from compat.interfaces.table import value_of
from scripts.messages.native_source import CPP, RUST, messages_of
from scripts.messages.raised import Message
from scripts.messages.tables import FOLDER, INDEXES, table_of, write
from scripts.surface.members import Contents, whole
from scripts.surface.packages import SINCE

PACKAGES = (
    "vllm", "flash-attn", "xformers", "deepspeed", "causal-conv1d", "mamba-ssm", "auto-gptq", "gptqmodel", "optimum-quanto",
    "exllamav2", "transformer-engine-torch", "tokenizers", "safetensors", "sentencepiece", "xgrammar", "llguidance",
    "outlines-core", "hf-xet", "tiktoken", "apache-tvm-ffi",
)  # fmt: skip
"""Packages whose source distributions have the source of their extensions; those of torch, bitsandbytes and Triton do not."""
_LEFT_OUT = re.compile(
    r"(^|/)(tests?|benchmarks?|bench|examples?|docs?|third_?party|3rdparty|external|_?vendor(ed)?|cutlass|composable_kernel|cub"
    r"|spdlog|nlohmann|fmt|pybind11|dlpack|catch2?|googletest|boost|eigen|minja|httplib|stb|protobuf(-lite)?|absl|darts_clone"
    r"|nvidia-(cutlass|mathdx)|ggml-(vulkan|sycl|opencl|cann|kompute|webgpu|hexagon|zdnn))(/|\.h|\.hpp|$)",
    re.IGNORECASE,
)
_LARGEST_FILE = 4 << 20


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.messages.native", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", default=FOLDER)
    words = parser.parse_args(arguments)
    tables = {path.stem: value_of(path.read_bytes()) for path in words.out.glob("*.bin") if path.stem not in INDEXES}
    settings = replace(gather(), timeout=60.0, retries=5)
    index, made_anew = Index(settings, IndexStore()), set()
    for package in words.packages or PACKAGES:
        made = mined(package, index, Transport(settings))
        if made is not None and made["texts"]:
            tables[f"{package}{NATIVE}"] = made
            made_anew.add(f"{package}{NATIVE}")
        print(
            f"{package}: {len(made['versions']) if made else 0} releases, {len(made['texts']) if made else 0} messages",
            flush=True,
        )
    index.close()
    write(words.out, tables, made_anew)
    return 0


def mined(package: str, index: Index, transport: Transport) -> dict[str, Any] | None:
    """Return the values of a package's table; ``None`` if no release has such files in a source distribution."""
    versions: list[str] = []
    found: dict[tuple[str, Message], int] = defaultdict(int)
    read: dict[tuple[str, bytes], list[Message]] = {}
    with ThreadPoolExecutor(3) as pool:
        files = source_distributions(index.files(package) or ())
        for file, members in zip(files, pool.map(lambda each: native_files(transport, each), files)):
            if not members:
                continue
            for path, source in members.items():
                key = path, hashlib.sha256(source).digest()
                if key not in read:
                    read[key] = messages_of(path, source.decode("utf-8", "replace"))
                for message in read[key]:
                    found[path, message] |= 1 << len(versions)
            versions.append(file.version)
    return table_of(package, versions, found) if versions else None


def source_distributions(files: Iterable[File]) -> list[File]:
    """Return the source distributions of the final releases since :data:`SINCE`, oldest first."""
    wanted = {
        file.version: file for file in files
        if file.filename.endswith(".tar.gz") and (file.uploaded or "") >= SINCE and not Version(file.version).is_prerelease
    }  # fmt: skip
    return [wanted[version] for version in sorted(wanted, key=Version)]


def native_files(transport: Transport, file: File) -> dict[str, bytes]:
    """Return the C++, CUDA and Rust files of a source distribution by their paths; none if it is unavailable."""
    members: dict[str, bytes] = {}
    try:
        body = whole(transport, file, Contents())
        with tarfile.open(fileobj=io.BytesIO(body)) as archive:
            for member in archive:
                path = member.name.removeprefix("./").partition("/")[2]
                if (
                    member.isfile()
                    and member.size <= _LARGEST_FILE
                    and path.endswith((*CPP, *RUST))
                    and not _LEFT_OUT.search(path)
                ):
                    opened = archive.extractfile(member)
                    members[path] = b"" if opened is None else opened.read()
    except (Unread, tarfile.TarError, EOFError, OSError, ValueError) as problem:
        print(f"messages: not read: {file.filename}: {problem}", file=sys.stderr)
    return members


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
