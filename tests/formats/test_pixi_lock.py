"""pixi.lock: environments and platforms over one list of packages, versions 4 to 6."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.conda_lock import PixiLock
from compat.formats.listing import ROOT, Choice, Listing

SIX = """\
version: 6
environments:
  cuda:
    channels:
    - url: https://conda.example/conda-forge/
    packages:
      linux-64:
      - conda: https://conda.example/conda-forge/linux-64/pytorch-2.5.1-cuda126_mkl_py311_h1_300.conda
      - pypi: https://files.example/trl-0.17.0-py3-none-any.whl
      - pypi: .
  default:
    packages:
      linux-64:
      - conda: https://conda.example/conda-forge/linux-64/pytorch-2.5.1-cpu_generic_py311_h1_0.conda
      osx-arm64:
      - pypi: https://files.example/trl-0.17.0-py3-none-any.whl
packages:
- conda: https://conda.example/conda-forge/linux-64/pytorch-2.5.1-cpu_generic_py311_h1_0.conda
  sha256: aa
- conda: https://conda.example/conda-forge/linux-64/pytorch-2.5.1-cuda126_mkl_py311_h1_300.conda
  depends:
  - python
- pypi: https://files.example/trl-0.17.0-py3-none-any.whl
  name: trl
  version: 0.17.0
- pypi: .
  name: Mine
  editable: true
"""
FIVE = """\
version: 5
environments:
  only:
    packages:
      linux-64:
      - conda: https://conda.example/conda-forge/linux-64/openssl-1.1.1w-hd590300_0.conda
      - pypi: .
packages:
- kind: conda
  name: openssl
  version: 1.1.1w
  build: hd590300_0
  subdir: linux-64
  url: https://conda.example/conda-forge/linux-64/openssl-1.1.1w-hd590300_0.conda
- kind: conda
  name: openssl
  version: 1.1.1w
  build: hd590300_0
  subdir: linux-64
  url: https://conda.example/conda-forge/linux-64/openssl-1.1.1w-hd590300_0.conda
- kind: pypi
  name: mine
  version: 0.0.1
  path: .
"""
LINUX, APPLE = (
    "sys_platform == 'linux' and platform_machine == 'x86_64'",
    "sys_platform == 'darwin' and platform_machine == 'arm64'",
)


def read(text: str) -> Listing:
    (listing,) = PixiLock().read("pixi.lock", text)
    return listing


def test_version_6_names_packages_by_their_artefacts() -> None:
    listing = read(SIX)
    assert [(e.distribution.name, e.distribution.version, e.distribution.extra, e.line) for e in listing.entries] == [
        ("torch", "2.5.1", {"cuda": "cpu"}, 18), ("torch", "2.5.1", {"cuda": "12.6"}, 20), ("trl", "0.17.0", {}, 23),
        ("mine", None, {}, 26),
    ]  # fmt: skip
    torch, mine = listing.entries[0].distribution.source, listing.entries[3].distribution.source
    assert torch is not None
    assert (torch.kind, torch.details["name"], torch.details["platform"]) == ("conda", "pytorch", "linux-64")
    assert torch.details["build"] == "cpu_generic_py311_h1_0"
    assert mine is not None
    assert mine.to_json() == {"kind": "directory", "path": ".", "editable": True}
    assert listing.complete


def test_one_environment_is_chosen_and_uses_packages_by_platform() -> None:
    listing = read(SIX)
    assert listing.exclusive
    assert listing.choices == (Choice("environment", "cuda"), Choice("environment", "default", default=True))
    assert listing.edges == (
        (ROOT, 1, LINUX, 0), (ROOT, 2, LINUX, 0), (ROOT, 3, LINUX, 0), (ROOT, 0, LINUX, 1), (ROOT, 2, APPLE, 1),
    )  # fmt: skip
    assert listing.environments == (LINUX, APPLE)


@pytest.mark.parametrize("version", ["4", "5"])
def test_older_versions_describe_packages_by_their_keys(version: str) -> None:
    listing = read(FIVE.replace("version: 5", f"version: {version}", 1))
    assert [(e.distribution.name, e.distribution.version) for e in listing.entries] == [
        ("openssl", "1.1.1w"), ("openssl", "1.1.1w"), ("mine", "0.0.1"),
    ]  # fmt: skip
    assert listing.edges == ((ROOT, 0, LINUX, 0), (ROOT, 2, LINUX, 0))
    assert listing.choices == (Choice("environment", "only", default=True),)


def test_a_newer_version_is_read_with_a_note() -> None:
    assert read(SIX).notes == ()
    assert read(SIX.replace("version: 6", "version: 7", 1)).unread == ("pixi.lock of version 7: read as version 6",)


def test_a_package_that_is_not_described_is_said() -> None:
    listing = read(SIX.replace("- pypi: .\n  name: Mine\n  editable: true\n", ""))
    assert listing.unread == ("pixi.lock:10: . is not in the package list of the lock",)
    assert not listing.complete


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("version: 6", "version: 3", 1, "of version 4 or later, not '3'"),
        ("version: 6", "v: 6", 1, "of version 4 or later, not ''"),
        ("\npackages:", "\npackage:", 1, "expected the 'packages' of a pixi.lock"),
        ("  cuda:\n", "  cuda: 1\n  x:\n", 3, "environments.cuda to be a table"),
        ("osx-arm64:", "mac:", 16, "'mac' is not a platform"),
        ("- pypi: .\n  name: Mine\n", "- pypi: .\n", 26, "expected the name of a package"),
        ("- pypi: .\n  name: Mine\n", "- npm: .\n", 26, "expected a conda or pypi package"),
        ("version: 0.17.0", "version: x", 25, "trl: 'x' is not a version"),
        ("editable: true", "editable: maybe", 28, "editable of Mine to be true or false"),
        ("- conda: https://conda.example/conda-forge/linux-64/pytorch-2.5.1-cpu_generic_py311_h1_0.conda\n  sha", "- conda: x\n  sha", 18, "'x' does not contain"),
    ],
)  # fmt: skip
def test_errors_name_the_line(old: str, new: str, line: int, message: str) -> None:
    assert old in SIX
    with pytest.raises(InputError, match=message) as caught:
        read(SIX.replace(old, new, 1))
    assert caught.value.line == line
