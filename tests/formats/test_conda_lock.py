"""conda-lock.yml: one entry for each package and platform."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.conda_lock import CondaLock
from compat.formats.listing import ROOT, Choice, Listing

TEXT = """\
version: 1
metadata:
  platforms: [linux-64, osx-arm64]
package:
- name: pytorch
  version: 2.3.1
  manager: conda
  platform: linux-64
  url: https://conda.example/pytorch/linux-64/pytorch-2.3.1-py3.10_cuda11.8_cudnn8.7.0_0.tar.bz2
  category: main
  optional: false
- name: pytorch
  version: 2.3.1
  manager: conda
  platform: osx-arm64
  url: https://conda.example/pytorch/osx-arm64/pytorch-2.3.1-py3.10_0.tar.bz2
  category: main
- name: Ruff
  version: '0.4'
  manager: conda
  platform: linux-64
  url: https://conda.example/conda-forge/linux-64/ruff-0.4-h1_0.conda
  category: dev
  optional: true
- name: trl
  version: 0.9.0
  manager: pip
  platform: linux-64
  url: git+https://github.com/huggingface/trl.git@3f75e6cd95b56fdf36aedcbe57cf2890c2828dc0
  source: {type: url, url: x}
  category: train
"""


def read(text: str) -> Listing:
    (listing,) = CondaLock().read("conda-lock.yml", text)
    return listing


def test_every_package_is_an_entry_for_its_platform() -> None:
    listing = read(TEXT)
    assert [(e.distribution.name, e.distribution.version, e.line) for e in listing.entries] == [
        ("torch", "2.3.1", 5), ("torch", "2.3.1", 12), ("ruff", "0.4", 18), ("trl", "0.9.0", 25),
    ]  # fmt: skip
    linux, apple = listing.entries[0].distribution, listing.entries[1].distribution
    assert linux.source is not None
    assert linux.source.to_json() == {
        "kind": "conda", "name": "pytorch", "platform": "linux-64", "build": "py3.10_cuda11.8_cudnn8.7.0_0",
        "url": "https://conda.example/pytorch/linux-64/pytorch-2.3.1-py3.10_cuda11.8_cudnn8.7.0_0.tar.bz2",
    }  # fmt: skip
    assert (linux.extra, apple.extra, linux.marker) == ({"cuda": "11.8"}, {}, None)
    trl = listing.entries[3].distribution.source
    assert trl is not None
    assert (trl.kind, trl.details["platform"]) == ("vcs", "linux-64")


def test_platforms_are_markers_and_categories_are_choices() -> None:
    listing = read(TEXT)
    linux, apple = (
        "sys_platform == 'linux' and platform_machine == 'x86_64'",
        "sys_platform == 'darwin' and platform_machine == 'arm64'",
    )
    assert listing.environments == (linux, apple)
    assert listing.choices == (Choice("group", "dev", default=True), Choice("group", "train"))
    assert listing.edges == ((ROOT, 0, linux, None), (ROOT, 1, apple, None), (ROOT, 2, linux, 0), (ROOT, 3, linux, 1))
    assert listing.complete


def test_a_package_of_several_categories_is_in_each() -> None:
    listing = read(TEXT.replace("category: dev", "categories: [dev, main]"))
    assert listing.edges is not None
    assert [choice for _, number, _, choice in listing.edges if number == 2] == [0, None]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("version: 1", "version: 2", 1, "expected a conda-lock.yml of version 1, not '2'"),
        ("package:", "packages:", 1, "expected the list 'package'"),
        ("[linux-64, osx-arm64]", "[5]", 3, "'5' is not a platform"),
        ("platform: osx-arm64\n", "platform: mac\n", 15, "'mac' is not a platform"),
        ("  platform: osx-arm64\n", "", 12, "expected the platform of pytorch"),
        ("manager: pip", "manager: npm", 27, "trl: expected the manager conda or pip, not 'npm'"),
        ("version: 0.9.0", "version: x y", 25, "trl: 'x y' is not a version"),
        ("name: Ruff", "name: [Ruff]", 18, "the name of a package to be a string, not a list"),
        ("category: train", "category: {}", 31, "the category of trl to be a string, not a table"),
    ],
)
def test_errors_name_the_line(old: str, new: str, line: int, message: str) -> None:
    assert TEXT.count(old) >= 1
    with pytest.raises(InputError, match=message) as caught:
        read(TEXT.replace(old, new, 1))
    assert caught.value.line == line
