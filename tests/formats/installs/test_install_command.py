"""What install commands install: pip, uv, conda and their relatives."""

from __future__ import annotations

import shlex

import pytest

from compat.formats.installs.command import install_of
from compat.formats.installs.files import InstallFiles
from compat.formats.installs.steps import Installs
from compat.formats.installs.words import Command, Install
from compat.model import Distribution, Source
from compat.syntax.shell_commands import commands_of

CU124 = "https://download.pytorch.org/whl/cu124"


def read(command: str, **variables: str) -> Install:
    found = install_of(shlex.split(command), variables)
    assert found is not None
    return found


def versions(command: str, **variables: str) -> dict[str, str | None]:
    return {each.name: each.version or each.specifier for each in read(command, **variables).requirements}


@pytest.mark.parametrize(
    "command",
    [
        "pip install torch==2.6.0",
        "pip3 install -q torch==2.6.0",
        "pip3.11 --no-cache-dir install torch==2.6.0 --no-deps",
        "/opt/venv/bin/pip install torch==2.6.0",
        "python -m pip install -U --root-user-action ignore torch==2.6.0",
        "sudo -H python3.11 -u -m pip install torch==2.6.0",
        "env MAX_JOBS=4 pip install torch==2.6.0",
        "uv pip install --system --index-strategy unsafe-best-match torch==2.6.0",
        "uv --quiet pip install torch==2.6.0 -p 3.12",
        "uv add --group train torch==2.6.0",
        "poetry add torch@2.6.0",
        "conda run -n train pip install torch==2.6.0",
        "uv run --with torch==2.6.0 python train.py",
        "conda install -y -c pytorch pytorch==2.6.0",
    ],
)
def test_every_way_to_install_one_release(command: str) -> None:
    assert versions(command) == {"torch": "2.6.0"}


@pytest.mark.parametrize(
    "command",
    ["echo pip install torch", "pip download torch", "pip freeze", "python train.py", "uv run train.py", "conda activate train",
     "apt-get install -y python3", "python -m venv .venv", "", "uv tool install ruff"],
)  # fmt: skip
def test_other_commands_install_nothing(command: str) -> None:
    assert install_of(shlex.split(command)) is None


def test_ranges_extras_and_addresses() -> None:
    found = read('pip install "vllm>=0.8,<0.9" "trl[peft]" git+https://github.com/huggingface/peft.git@abc')
    vllm, trl, peft = found.requirements
    assert (vllm.version, vllm.specifier) == (None, ">=0.8,<0.9")
    assert trl.extra == {"extras": ["peft"]}
    assert peft.source == Source("vcs", {"url": "https://github.com/huggingface/peft.git", "requested_revision": "abc"})


def test_pytorchs_index_tells_the_cuda_release() -> None:
    torch, other = read(f"pip install torch==2.6.0 einops --index-url {CU124}").requirements
    assert torch.extra == {"cuda": "12.4"}
    assert torch.source == other.source == Source("index", {"url": CU124})
    assert other.extra == {}


def test_a_further_index_is_only_a_hint_for_pip_but_comes_first_for_uv() -> None:
    pip = read(f"pip install torch==2.6.0 --extra-index-url {CU124}")
    assert pip.requirements[0].extra == {}
    assert pip.requirements[0].source == Source("index", {"more": [CU124]})
    assert pip.notes == (f"torch: may come from {CU124}",)
    uv = read(f"uv pip install torch==2.6.0 trl --extra-index-url {CU124}")
    assert [each.extra for each in uv.requirements] == [{"cuda": "12.4"}, {}]


def test_credentials_are_taken_out_of_addresses() -> None:
    found = read("pip install torch --index-url https://me:secret@index.example/simple")
    assert found.index_url == "https://index.example/simple"
    assert "secret" not in repr(found)


def test_torch_backend_and_nightlies() -> None:
    assert read("uv pip install torch --torch-backend=cu128").requirements[0].extra == {"cuda": "12.8"}
    nightly = read("pip install --pre torch --index-url https://download.pytorch.org/whl/nightly/rocm6.3").requirements[0]
    assert (nightly.source and nightly.source.kind, nightly.extra) == ("nightly", {"rocm": "6.3"})


def test_variables_of_pip_and_uv_are_options() -> None:
    found = read("pip install torch", PIP_INDEX_URL=CU124, PIP_CONSTRAINT="c.txt", UV_CONSTRAINT="other.txt")
    assert found.constraints == ("c.txt",)
    assert found.requirements[0].extra == {"cuda": "12.4"}
    assert read("uv pip install torch", UV_TORCH_BACKEND="cpu").requirements[0].extra == {"cuda": "cpu"}


def test_files_folders_and_flags() -> None:
    found = read("pip install -Ur requirements.txt -c pins.txt --no-build-isolation --no-deps ./core -e .[train]")
    assert (found.files, found.constraints) == (("requirements.txt",), ("pins.txt",))
    assert found.directories == ("./core", ".[train]")
    assert (found.no_deps, found.upgrade) == (True, True)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("torch==$TORCH_VERSION", "torch"),
        ("flash_attn==${FA}+cu12", "flash-attn"),
        ("xformers=={version}", "xformers"),
        ("torch[opt]==$V", "torch"),
        ("https://host.example/flash_attn-${V}-cp311-cp311-linux_x86_64.whl", "flash-attn"),
        ("git+https://github.com/huggingface/trl.git@$REF", "trl"),
        ("torch @ https://host.example/${FILE}", "torch"),
    ],
)
def test_a_version_that_is_known_at_run_time_only(word: str, name: str) -> None:
    found = install_of(["pip", "install", word])
    assert found is not None
    assert [(each.name, each.version, each.specifier) for each in found.requirements] == [(name, None, None)]
    assert len(found.notes) == 1
    assert word in found.notes[0]


@pytest.mark.parametrize("word", ["$PACKAGES", "{get_numpy}", "torch$SUFFIX", "${X}torch==1", "git+https://host.example/$REPO"])
def test_no_name_is_guessed(word: str) -> None:
    found = install_of(["pip", "install", word, "einops"])
    assert found is not None
    assert [each.name for each in found.requirements] == ["einops"]
    assert found.notes + found.unknown


def test_a_substitution_is_one_word() -> None:
    (command,) = commands_of("pip install torch==$(cat version.txt | head -1) trl==0.17.0")
    found = install_of(command.words)
    assert found is not None
    assert [(each.name, each.version) for each in found.requirements] == [("torch", None), ("trl", "0.17.0")]


def test_what_is_uninstalled() -> None:
    assert read("pip uninstall -y torch flash_attn").removed == ("torch", "flash-attn")
    assert read("conda remove pytorch").removed == ("torch",)


def test_locks_and_what_is_asked_of_them() -> None:
    (lock,) = read("uv sync --frozen --extra vllm --no-dev --no-install-package torch").locks
    assert (lock.file, lock.extras, lock.without, lock.left_out) == ("uv.lock", ("vllm",), ("dev",), ("torch",))
    (lock,) = read("uv run --frozen --no-default-groups --group cuda12 python -m nltk.downloader punkt").locks
    assert (lock.groups, lock.default_groups) == (("cuda12",), False)
    (lock,) = read("poetry install --no-root -E 'a b' --without dev,docs").locks
    assert (lock.file, lock.extras, lock.without) == ("poetry.lock", ("a", "b"), ("dev", "docs"))
    assert read("conda env create -f train.yml").locks[0].file == "train.yml"
    assert read("uv sync --project core").locks[0].file == "core/uv.lock"


@pytest.mark.parametrize(
    ("command", "python"),
    [("conda create -n a python=3.11 pip", "3.11"), ("uv venv --python 3.12 --seed", "3.12"), ("uv python install 3.13", "3.13"),
     ("uv venv --python /usr/bin/python3", None)],
)  # fmt: skip
def test_the_python_that_is_asked_for(command: str, python: str | None) -> None:
    found = install_of(shlex.split(command))
    assert (found.python if found else None) == python


def test_another_folder_is_another_environment() -> None:
    assert read("pip install --target /opt/tool torch==2.6.0").requirements == ()


def installed(*commands: str) -> dict[str, str | None]:
    state = Installs(InstallFiles("setup.sh"))
    for line, command in enumerate(commands, 1):
        state.run([Command(read(command), f"setup.sh:{line}", ((line, command),))])
    return {each.distribution.name: each.distribution.version or each.distribution.specifier for each in state.entries()}


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (("pip install torch==2.5.1", "pip install torch==2.6.0"), {"torch": "2.6.0"}),
        (("pip install torch==2.5.1", "pip install torch trl"), {"torch": "2.5.1", "trl": None}),
        (("pip install torch==2.5.1", "pip install -U torch"), {"torch": None}),
        (("pip install torch==2.5.1", "pip install 'torch>=2.4'"), {"torch": "2.5.1"}),
        (("pip install torch==2.5.1", "pip install 'torch>=2.6'"), {"torch": ">=2.6"}),
        (("pip install 'torch>=2.4'", "pip install torch"), {"torch": ">=2.4"}),
        (("pip install torch==2.5.1 trl", "pip uninstall -y torch"), {"trl": None}),
        (("pip install trl==0.17.0", "pip install git+https://github.com/huggingface/trl"), {"trl": None}),
    ],
)
def test_commands_applied_in_order(commands: tuple[str, ...], expected: dict[str, str | None]) -> None:
    assert installed(*commands) == expected


def test_releases_for_several_platforms_stay_side_by_side() -> None:
    state = Installs(InstallFiles("setup.sh"))
    command = ["pip", "install", "torch==2.6.0; sys_platform == 'linux'", "torch==2.5.1; sys_platform == 'darwin'"]
    state.run([Command(install_of(command) or Install(), "setup.sh:1")])
    assert [each.distribution.version for each in state.entries()] == ["2.6.0", "2.5.1"]
    state.run([Command(Install(requirements=(Distribution("torch", "2.7.0"),)), "setup.sh:2")])
    assert [each.distribution.version for each in state.entries()] == ["2.7.0"]
