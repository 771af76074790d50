"""The bill of materials of a wheel: what it requires and ships, with the digests of the wheel itself."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from scripts.sbom import bill, main

METADATA = """Metadata-Version: 2.4
Name: Compat_Doctor
Version: 0.1.0
Summary: a tool
License-Expression: Apache-2.0
Requires-Dist: packaging>=26
Requires-Dist: mcp>=2; extra == 'mcp'
Requires-Dist: torch; extra == 'torch'
"""


def wheel(folder: Path, digest: str | None = None) -> Path:
    table = b"rules"
    found = base64.urlsafe_b64encode(hashlib.sha256(table).digest()).rstrip(b"=").decode()
    path = folder / "compat_doctor-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("compat/data/rules.bin", table)
        archive.writestr("compat_doctor-0.1.0.dist-info/METADATA", METADATA)
        archive.writestr(
            "compat_doctor-0.1.0.dist-info/RECORD",
            f"compat/data/rules.bin,{digest or f'sha256={found}'},5\ncompat/a.py,sha256=x,1\n",
        )
    return path


def test_it_names_the_wheel_what_it_requires_and_the_tables_it_ships(tmp_path: Path) -> None:
    made = bill(wheel(tmp_path))
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    component = made["metadata"]["component"]
    assert (component["name"], component["version"], component["purl"]) == (
        "compat-doctor",
        "0.1.0",
        "pkg:pypi/compat-doctor@0.1.0",
    )
    content = (tmp_path / "compat_doctor-0.1.0-py3-none-any.whl").read_bytes()
    assert component["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]
    assert [(each["name"], each.get("scope")) for each in made["components"]] == [
        ("packaging", "required"), ("mcp", "optional"), ("torch", "optional"), ("compat/data/rules.bin", None),
    ]  # fmt: skip
    assert made["components"][3]["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"rules").hexdigest()}]
    references = [component["bom-ref"], *(each["bom-ref"] for each in made["components"])]
    assert len(set(references)) == len(references)
    assert set(made["dependencies"][0]["dependsOn"]) <= set(references)


def test_the_same_wheel_gives_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(wheel(tmp_path))
    assert main([path]) == 0
    (beside,) = capsys.readouterr().out.split()
    first = Path(beside).read_bytes()
    assert json.loads(first) == bill(Path(path))
    main([path])
    assert Path(beside).read_bytes() == first
    assert main([]) == 2


def test_a_record_without_a_digest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a sha256"):
        bill(wheel(tmp_path, "md5=abc"))
