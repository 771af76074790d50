"""pixi.toml: features, environments and platforms, and edits of conda packages and of requirements from an index."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import commands_for, edits_for
from compat.formats.listing import Listing
from compat.formats.registry import format_of, lock_next_to
from compat.model import Source

PIXI = """\
[workspace]
channels = ["pytorch", "conda-forge"]
platforms = ["linux-64"]

[dependencies]
python = "3.10.*"

[pypi-dependencies]
# shared
pandas = ">=2.0.0,<2.3.0"
mine = { path = ".", editable = true }

[feature.old.dependencies]
pytorch = "2.4.*"          # with torchvision
torchvision = { version = "0.19.*", build = "*cuda*" }

[feature.train.target.linux-64.pypi-dependencies]
trl = { version = "==0.17.0", extras = ["peft"] }
transformers = "*"

[environments]
old = ["old"]
train = { features = ["train"], no-default-feature = true }
"""


def read(text: str = PIXI) -> Listing:
    (listing,) = format_of("pixi.toml", text.encode()).listings("pixi.toml", text.encode())
    return listing


def test_environments_have_the_requirements_of_their_features() -> None:
    listing = read()
    assert [(each.name, each.default) for each in listing.choices] == [("default", True), ("old", False), ("train", False)]
    assert listing.exclusive
    names = [entry.distribution.name for entry in listing.entries]
    found = {number: {names[edge.child] for edge in listing.edges or () if edge.choice == number} for number in range(3)}
    assert found == {
        0: {"python", "pandas", "mine"}, 1: {"python", "pandas", "mine", "torch", "torchvision"}, 2: {"trl", "transformers"},
    }  # fmt: skip
    assert listing.requires_python == "==3.10.*"
    assert "linux" in listing.environments[0]


def test_what_a_requirement_says() -> None:
    by_name = {entry.distribution.name: entry for entry in read().entries}
    torch, trl = by_name["torch"].distribution, by_name["trl"].distribution
    assert torch.specifier == "==2.4.*"
    assert torch.source == Source("conda", {"name": "pytorch", "channel": "pytorch"})
    assert by_name["torch"].line == 14
    assert (trl.version, trl.extra["extras"]) == ("0.17.0", ["peft"])
    assert by_name["mine"].distribution.source == Source("directory", {"path": ".", "editable": True})
    assert by_name["transformers"].distribution.specifier is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('pandas = ">=2.0.0,<2.3.0"', "pandas"), ('platforms = ["linux-64"]', "'nowhere' is not a platform"),
    ],
)  # fmt: skip
def test_what_is_invalid_is_named_with_its_line(line: str, problem: str) -> None:
    bad = line.replace(">=2.0.0,<2.3.0", ">=two").replace("linux-64", "nowhere")
    with pytest.raises(InputError, match=problem):
        read(PIXI.replace(line, bad))


def edited(folder: Path, *changes: Change) -> str:
    path = folder / "pixi.toml"
    path.write_text(PIXI)
    (edit,) = edits_for(str(path), changes)
    return edit.after.decode()


def test_versions_change_where_they_are_written(tmp_path: Path) -> None:
    trl, pandas = Change("trl", "0.17.0", "0.18.0"), Change("pandas", "2.2.0", "2.3.1")
    expected = PIXI.replace("==0.17.0", "==0.18.0").replace(">=2.0.0,<2.3.0", "==2.3.1")
    assert edited(tmp_path, trl, pandas) == expected


def test_conda_packages_lose_the_build_and_may_change_the_channel(tmp_path: Path) -> None:
    forge = Source("conda", {"channel": "conda-forge", "variant": "cuda*"})
    new = edited(tmp_path, Change("torch", "2.4.0", "2.8.0", forge), Change("torchvision", "0.19.0", "0.23.0"))
    assert 'pytorch = { version = "==2.8.0", channel = "conda-forge", build = "cuda*" }' in new.replace("{v", "{ v").replace(
        '"}', '" }'
    )
    assert 'torchvision = { version = "==0.23.0" }' in new
    assert "# with torchvision" in new


def test_what_is_new_comes_from_an_index(tmp_path: Path) -> None:
    new = edited(tmp_path, Change("peft", None, "0.15.0", why="needed"))
    assert 'peft = "==0.15.0"' in new
    assert new.index("peft =") < new.index("[feature.old")


def test_the_lock_is_made_from_it(tmp_path: Path) -> None:
    path = tmp_path / "pixi.toml"
    path.write_text(PIXI)
    (tmp_path / "pixi.lock").write_text("version: 6\nenvironments: {}\npackages: []\n")
    registered = lock_next_to(str(path))
    assert registered is not None
    assert registered.kind == "pixi.lock"
    commands = commands_for(str(path), [Change("trl", "0.17.0", "0.18.0")])
    assert [line.rpartition(" && ")[2] for line in commands.install] == ["pixi install"]


def test_the_metapackages_of_torch_state_its_release() -> None:
    (entry,) = read('[workspace]\nplatforms = ["linux-64"]\n[dependencies]\npytorch-gpu = "==2.5.1"\n').entries
    found = entry.distribution
    assert (found.name, found.version, found.source and found.source.details["name"]) == ("torch", "2.5.1", "pytorch-gpu")
    (entry,) = read('[workspace]\nplatforms = ["linux-64"]\n[dependencies]\npytorch-cpu = "==2.5.1"\n').entries
    assert (entry.distribution.name, entry.distribution.extra) == ("torch", {"cuda": "cpu"})
