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
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.end_to_end.sample_project import BAD, GOOD, RULE, bare_environment, git, missing, this_project, transcript

EXAMPLE = ROOT / "docs" / "examples" / "docker"
CHECK = "compat check --installed --target train"
RUN = [
    line.removeprefix("RUN ")
    for line in (EXAMPLE / "Dockerfile").read_text(encoding="utf-8").splitlines()
    if line.startswith("RUN ")
]
COPIED = ("requirements.txt", "pyproject.toml")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this working tree."""
    folder = tmp_path_factory.mktemp("wheel")
    repository, _ = this_project(folder / "compat.git")
    git(folder, "clone", "--quiet", str(repository), str(folder / "source"))
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(folder / "source")]
    subprocess.run(build, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


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


def image(folder: Path, wheel: Path, *replaced: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    """Executes the example up to its check, in a virtual environment where the requirements are there by name only."""
    app = context(folder / "app", wheel, *replaced)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "python")], check=True)
    (site,) = (folder / "python").glob("lib/python3.*/site-packages")
    for old in site.glob("setuptools-*.dist-info"):
        shutil.rmtree(old)  # pip would have put the one there that torch asks for
    for line in (app / "requirements.txt").read_text(encoding="utf-8").split():
        name, version = line.split("==")
        (site / f"{name}-{version}.dist-info").mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (site / f"{name}-{version}.dist-info" / "METADATA").write_text(metadata, encoding="utf-8")
    kept = bare_environment()
    variables = {**kept, "PATH": f"{folder / 'python' / 'bin'}:{kept['PATH']}", "CUDA_VISIBLE_DEVICES": ""}
    for command in RUN[1:]:
        done = subprocess.run(["sh", "-c", command], cwd=app, env=variables, capture_output=True, text=True, check=False)
        assert command == CHECK or done.returncode == 0, done.stderr
    return done


def test_the_build_goes_on_where_nothing_is_known_to_be_bad(tmp_path: Path, wheel: Path) -> None:
    done = image(tmp_path, wheel)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert f"transformers {GOOD}" in done.stdout
    assert "4 × A100" in done.stdout
    assert "Nothing known to be bad." in done.stdout, done.stdout


def test_the_build_ends_at_a_combination_that_is_bad_for_the_target(tmp_path: Path, wheel: Path) -> None:
    done = image(tmp_path, wheel, *DOWNGRADED)
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
    assert "Nothing known to be bad." in good.stdout + good.stderr
    bad = subprocess.run(
        [*build, str(context(tmp_path / "bad", wheel, *DOWNGRADED))], capture_output=True, text=True, check=False
    )
    assert bad.returncode != 0
    assert CHECK in bad.stderr
    assert RULE in bad.stdout + bad.stderr
