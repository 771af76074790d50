"""The example of docs/docker.md: its RUN lines, and with an engine (opt-in) the image itself.

``COMPAT_IMAGE_BUILD`` is the command that builds an image, up to its options: ``docker build``, or
``buildah --storage-driver vfs build --isolation chroot --pull-never``. tests/end_to_end/base_image.sh makes a stand-in for the
base image where none can be pulled.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.end_to_end.sample_project import BAD, GOOD, RULE, bare_environment, missing, transcript

pytestmark = pytest.mark.xdist_group("dist")  # what its fixtures install or build is made once, by one worker
EXAMPLE = ROOT / "docs" / "examples" / "docker"
CHECK = "compat check --installed --target train"
RUN = [
    line.removeprefix("RUN ")
    for line in (EXAMPLE / "Dockerfile").read_text(encoding="utf-8").splitlines()
    if line.startswith("RUN ")
]
COPIED = ("requirements.txt", "pyproject.toml")


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    """A wheel of this working tree."""
    (made,) = dist.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """A virtual environment in which the example has installed compat."""
    folder = tmp_path_factory.mktemp("image")
    app = context(folder / "app", wheel)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "python")], check=True)
    for command in RUN[1:-1]:
        done = in_image(command, app, folder / "python")
        assert done.returncode == 0, done.stderr
    return folder / "python"


def context(folder: Path, wheel: Path, *replaced: tuple[str, str]) -> Path:
    """The build context of the example, with other releases in its requirements."""
    folder.mkdir()
    for name in ("Dockerfile", *COPIED):
        shutil.copy(EXAMPLE / name, folder)
    shutil.copy(wheel, folder)
    path = folder / "requirements.txt"
    text = path.read_text(encoding="utf-8")
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return folder


DOWNGRADED = ((f"transformers=={GOOD}", f"transformers=={BAD}"), ("trl==0.24.0", "trl==0.17.0"))


def test_the_example_checks_what_it_installed_last() -> None:
    assert RUN[0] == "pip install --no-cache-dir -r requirements.txt"
    assert RUN[-1] == CHECK


def in_image(command: str, app: Path, python: Path) -> subprocess.CompletedProcess[str]:
    kept = bare_environment()
    variables = {**kept, "PATH": f"{python / 'bin'}:{kept['PATH']}", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(["sh", "-c", command], cwd=app, env=variables, capture_output=True, text=True, check=False)


@contextmanager
def with_requirements(python: Path, requirements: Path) -> Iterator[None]:
    """A virtual environment where the requirements are there by name only."""
    (site,) = python.glob("lib/python3.*/site-packages")
    for old in site.glob("setuptools-*.dist-info"):
        shutil.rmtree(old)  # pip would have put the one there that torch asks for
    made = []
    for line in requirements.read_text(encoding="utf-8").split():
        name, version = line.split("==")
        made.append(site / f"{name}-{version}.dist-info")
        made[-1].mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (made[-1] / "METADATA").write_text(metadata, encoding="utf-8")
    yield
    for folder in made:
        shutil.rmtree(folder)


def image(folder: Path, wheel: Path, python: Path, *replaced: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    """Executes the check of the example where its requirements are installed."""
    app = context(folder / "app", wheel, *replaced)
    with with_requirements(python, app / "requirements.txt"):
        return in_image(CHECK, app, python)


def test_the_build_goes_on_where_nothing_is_known_to_be_bad(tmp_path: Path, wheel: Path, installed: Path) -> None:
    done = image(tmp_path, wheel, installed)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert f"transformers {GOOD}" in done.stdout
    assert "4 × A100" in done.stdout
    assert "No known problems found." in done.stdout, done.stdout


def test_the_build_ends_at_a_combination_that_is_bad_for_the_target(tmp_path: Path, wheel: Path, installed: Path) -> None:
    done = image(tmp_path, wheel, installed, *DOWNGRADED)
    assert done.returncode == 1, done.stderr
    assert f"rule      {RULE} (" in done.stdout
    assert "target    train" in done.stdout
    # the first line and the last of the transcript are the engine's
    shown = transcript("docker.md", f"STEP 8/8: RUN {CHECK}\n  …\n  ✗")
    assert missing(shown[1:-1], done.stdout) == []


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "docker.md").read_text(encoding="utf-8")
    assert (EXAMPLE / "Dockerfile").read_text(encoding="utf-8") in page
    assert page.split("```toml\n")[1].split("```")[0] in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")


@pytest.fixture
def build() -> list[str]:
    command = shlex.split(os.environ.get("COMPAT_IMAGE_BUILD", ""))
    if not command or shutil.which(command[0]) is None:
        pytest.skip("COMPAT_IMAGE_BUILD names no command that builds an image")
    return command


def test_a_real_build_passes_the_good_image_and_stops_the_bad_one(tmp_path: Path, wheel: Path, build: list[str]) -> None:
    good = subprocess.run([*build, str(context(tmp_path / "good", wheel))], capture_output=True, text=True, check=False)
    assert good.returncode == 0, good.stderr
    assert "No known problems found." in good.stdout + good.stderr
    bad = subprocess.run(
        [*build, str(context(tmp_path / "bad", wheel, *DOWNGRADED))], capture_output=True, text=True, check=False
    )
    assert bad.returncode != 0
    assert CHECK in bad.stderr
    assert RULE in bad.stdout + bad.stderr
