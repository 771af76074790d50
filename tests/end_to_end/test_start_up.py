"""What starting Python costs is half of what a check may cost: modules that take as long as a whole check are not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SLOW = (
    "typing",
    "re",
    "collections",
    "functools",
    "contextlib",
    "enum",
    "dataclasses",
    "json",
    "argparse",
    "logging",
    "packaging",
)
SHOW = "import sys; from compat.cli import main; main(sys.argv[2:]); print(*set(sys.argv[1].split()) & set(sys.modules))"


@pytest.mark.parametrize("command", [["check", "--installed"], ["doctor"]])
def test_judging_an_installation_imports_nothing_slow(command: list[str], tmp_path: Path) -> None:
    """The requirements of what is installed included, in the forms that nearly all of them have."""
    packages = tmp_path / "site-packages"
    required = [
        "numpy (>=1.22,<3.0)", 'tomli>=1.1.0,!=1.2.*; python_version < "3.11"', "tqdm~=4.66.1", 'pytest>8; extra == "dev"',
        "transformers[torch]>=4.46.0rc1,<4.50", "filelock", "requests==2.32.*", "fsspec[http]!=2023.9.2,<=2024.12.0,>2023",
    ]  # fmt: skip
    for name, version, lines in (("trl", "0.14.0", required), ("numpy", "1.21.0", []), ("transformers", "4.51.3", [])):
        folder = packages / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        requires = "".join(f"Requires-Dist: {line}\n" for line in lines)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}\nText\n")
    arguments = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(_root())!r}); {SHOW}", " ".join(SLOW)]
    done = subprocess.run([*arguments, *command, "--python", str(packages)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "numpy>=1.22,<3.0" in done.stdout
    assert done.stdout.splitlines()[-1] == ""


def test_judging_a_described_environment_imports_nothing_slow(tmp_path: Path) -> None:
    described = tmp_path / "environment.json"
    described.write_text(
        '{"python": "3.11.9", "os": "linux", "driver": "550", "distributions_complete": true,'
        ' "distributions": [{"name": "torch", "version": "2.6.0"}]}'
    )
    arguments = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(_root())!r}); {SHOW}", " ".join(SLOW)]
    done = subprocess.run([*arguments, "check", "--environment", str(described)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "torch" in done.stdout
    assert done.stdout.splitlines()[-1] == ""


def test_a_guard_of_a_script_imports_no_reader_of_other_files(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    slow = {"yaml", "multiprocessing", "compat.syntax.shell", "packaging", "json", "dataclasses"}
    script.write_text(f"import sys, compat\ncompat.guard()\nprint(*{slow!r} & set(sys.modules))\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-S", str(script)], capture_output=True, text=True, check=False, env={"PYTHONPATH": str(_root())}
    )
    assert "Traceback" not in done.stderr
    assert done.stdout.strip() == ""


def _root() -> Path:
    import compat

    return Path(compat.__file__).parent.parent
