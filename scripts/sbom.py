"""The SBOM of a wheel (CycloneDX 1.6): ``python -m scripts.sbom dist/*.whl`` writes a ``.cdx.json`` next to each.

Its content is read from the wheel: metadata and requirements (METADATA), and the digests of the shipped data (RECORD).
The output is reproducible.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import sys
import uuid
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def bill(wheel: Path) -> dict[str, Any]:
    """Return the SBOM of a wheel as plain JSON values."""
    with zipfile.ZipFile(wheel) as archive:
        folder = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA")).rpartition("/")[0]
        metadata = HeaderParser().parsestr(archive.read(f"{folder}/METADATA").decode())
        record = list(csv.reader(io.StringIO(archive.read(f"{folder}/RECORD").decode())))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    name, version = canonicalize_name(metadata["Name"]), metadata["Version"]
    here = f"pkg:pypi/{name}@{version}"
    required = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    needed = list(map(_needed, required))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.UUID(digest[:32], version=4)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": here,
                "name": name,
                "version": version,
                "description": metadata["Summary"],
                "licenses": [{"expression": metadata["License-Expression"]}],
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "purl": here,
            }
        },
        "components": [*needed, *(_file(path, said) for path, said, _ in record if "/data/" in path)],
        "dependencies": [{"ref": here, "dependsOn": sorted({each["bom-ref"] for each in needed})}],
    }


def _needed(requirement: Requirement) -> dict[str, Any]:
    """Return a dependency with its range, since the release is chosen at installation."""
    name = canonicalize_name(requirement.name)
    optional = requirement.marker is not None and "extra" in str(requirement.marker)
    return {
        "type": "library",
        "bom-ref": f"requires:{requirement}",
        "name": name,
        "purl": f"pkg:pypi/{name}",
        "scope": "optional" if optional else "required",
        "properties": [{"name": "requirement", "value": str(requirement)}],
    }


def _file(path: str, said: str) -> dict[str, Any]:
    algorithm, _, text = said.partition("=")
    if algorithm != "sha256":
        raise ValueError(f"{path}: expected a sha256 in RECORD, not {said!r}")
    content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()
    return {"type": "file", "bom-ref": f"file:{path}", "name": path, "hashes": [{"alg": "SHA-256", "content": content}]}


def main(wheels: list[str]) -> int:
    for wheel in map(Path, wheels):
        beside = wheel.with_suffix(".cdx.json")
        beside.write_text(json.dumps(bill(wheel), indent=2) + "\n", encoding="utf-8")
        print(beside)
    return 0 if wheels else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
