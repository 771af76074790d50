"""Wheels with compiled code that is none: members that hold just what the reading of builds looks for, and an index of them."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.index.server import IndexServer

FLAGS = {"": 0, "a": 0x100000, "f": 0x200000}


def fatbin(*codes: str, payload: int = 40) -> bytes:
    """A container as the CUDA compiler embeds it: ``"90a"`` is code, ``"+90"`` PTX; what is in it can be anything."""
    entries = b""
    for code in codes:
        number = code.strip("+af")
        entry = struct.pack(
            "<HHIQ12xI8xQ16x", 1 if code[0] == "+" else 2, 0x101, 64, payload, int(number), FLAGS[code[-1:].strip("0123456789")]
        )
        entries += entry + b"\xba\x50\xed\x55" * (payload // 4)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def library(*fatbins: bytes, cuda: str = "", noise: int = 0) -> bytes:
    """A shared object: what it is linked with, bytes that nothing can be made of, and fatbins."""
    needed = b"\0libc.so.6\0libcudart.so." + cuda.encode() + b"\0" if cuda else b"\0libc.so.6\0"
    return b"\x7fELF" + needed + Random(1).randbytes(noise) + b"".join(b"\0" * 7 + each for each in fatbins)


@dataclass
class Published:
    """A wheel on the index of a test; stands in for the files that its server makes itself."""

    filename: str
    body: bytes
    metadata: bytes
    release: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()


def publish(
    server: IndexServer,
    name: str,
    version: str,
    members: Mapping[str, bytes | str],
    tag: str = "cp310-cp310-manylinux_2_28_x86_64",
    requires: Sequence[str] = (),
    uploaded: str = "",
) -> str:
    """Puts a wheel on the index and gives its file name."""
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = "\n".join(
        [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {each}" for each in requires)]
    )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in {**members, f"{stem}.dist-info/METADATA": metadata + "\n"}.items():
            archive.writestr(member, content)
    file = Published(f"{stem}-{tag}.whl", made.getvalue(), metadata.encode() + b"\n")
    file.release = {"uploaded": uploaded} if uploaded else {}
    server.files[file.filename] = file  # type: ignore[assignment]
    server.pages.setdefault(name, []).append(file.filename)
    return file.filename
