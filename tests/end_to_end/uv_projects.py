"""Small projects that uv locks without a network: forks, extras, conflicts, groups and a workspace.

Their releases are wheels of nothing but metadata.
"""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

RELEASES: Mapping[tuple[str, str], Sequence[str]] = {
    ("numpy", "1.26.4"): (),
    ("numpy", "2.2.6"): (),
    ("torch", "2.5.1"): ("numpy<2", "triton==3.1.0 ; sys_platform == 'linux' and platform_machine == 'x86_64'"),
    ("torch", "2.6.0"): ("numpy", "triton==3.2.0 ; sys_platform == 'linux' and platform_machine == 'x86_64'"),
    ("torch", "2.6.0+cpu"): ("numpy",),
    ("torch", "2.6.0+cu124"): ("numpy", "triton==3.2.0 ; platform_machine == 'x86_64'"),
    ("triton", "3.1.0"): (),
    ("triton", "3.2.0"): (),
    ("transformers", "4.51.3"): ("numpy", "torch ; extra == 'torch'", "peft ; extra == 'peft'"),
    ("transformers", "4.57.1"): ("numpy", "torch ; extra == 'torch'", "peft ; extra == 'peft'"),
    ("peft", "0.15.0"): ("torch", "transformers"),
    ("trl", "0.17.0"): ("transformers", "vllm ; extra == 'vllm' and sys_platform == 'linux'"),
    ("vllm", "0.8.5"): ("torch", "uvloop ; sys_platform != 'win32' and implementation_name == 'cpython'"),
    ("uvloop", "0.21.0"): (),
    ("ruff", "0.9.0"): (),
    ("pytest", "8.3.0"): ("colorama ; os_name == 'nt'", "tomli ; python_version < '3.11'"),
    ("colorama", "0.4.6"): (),
    ("tomli", "2.2.1"): (),
}

MEMBERS = {
    "kit": """
        [project]
        name = "kit"
        version = "2"
        requires-python = ">=3.10"
        dependencies = ["transformers"]
        [project.optional-dependencies]
        gpu = ["torch==2.6.0+cu124 ; sys_platform == 'linux'", "torch==2.5.1 ; sys_platform != 'linux'"]
        cpu = ["torch"]
        [build-system]
        requires = []
        build-backend = "none"
    """,
    "other": """
        [project]
        name = "other"
        version = "3"
        requires-python = ">=3.10"
        dependencies = ["vllm"]
        [project.optional-dependencies]
        gpu = ["ruff"]
    """,
}

PROJECTS: Mapping[str, Mapping[str, str]] = {
    "forks": {
        "": """
            [project]
            name = "mine"
            version = "1"
            requires-python = ">=3.10"
            dependencies = [
                "numpy<2 ; python_full_version < '3.11.4' and sys_platform == 'linux'",
                "numpy>=2 ; python_full_version >= '3.11.4' or sys_platform != 'linux'",
                "torch==2.6.0+cu124 ; sys_platform == 'linux'",
                "torch==2.6.0 ; sys_platform != 'linux'",
                "trl[vllm] ; platform_machine == 'x86_64'",
                "trl",
            ]
            [project.optional-dependencies]
            tune = ["peft", "transformers[peft]"]
            all = ["mine[tune]", "pytest ; python_version >= '3.12'"]
        """
    },
    "conflicts": {
        "": """
            [project]
            name = "mine"
            version = "1"
            requires-python = ">=3.10"
            dependencies = ["transformers", "trl"]
            [project.optional-dependencies]
            cpu = ["torch==2.6.0+cpu"]
            cu124 = ["torch==2.6.0+cu124 ; sys_platform == 'linux'", "torch==2.6.0 ; sys_platform != 'linux'"]
            old = ["torch==2.5.1", "trl[vllm]"]
            tune = ["peft"]
            [dependency-groups]
            dev = ["pytest"]
            former = ["transformers<4.52"]
            latest = ["transformers>=4.57"]
            [tool.uv]
            conflicts = [
                [{ extra = "cpu" }, { extra = "cu124" }, { extra = "old" }],
                [{ group = "former" }, { group = "latest" }],
                [{ extra = "old" }, { group = "latest" }],
            ]
        """
    },
    "groups": {
        "": """
            [project]
            name = "mine"
            version = "1"
            requires-python = ">=3.10"
            dependencies = ["numpy"]
            [dependency-groups]
            dev = [{ include-group = "lint" }, "pytest"]
            lint = ["ruff ; sys_platform != 'win32'"]
            gpu = ["torch==2.6.0+cu124 ; sys_platform == 'linux'", "torch==2.6.0+cpu ; sys_platform != 'linux'"]
        """
    },
    "workspace": {
        "": """
            [project]
            name = "mine"
            version = "1"
            requires-python = ">=3.10"
            dependencies = ["kit", "transformers>=4.57 ; python_version >= '3.12'"]
            [project.optional-dependencies]
            gpu = ["kit[gpu]"]
            [dependency-groups]
            dev = ["kit[cpu]"]
            [tool.uv.workspace]
            members = ["kit", "other"]
            [tool.uv.sources]
            kit = { workspace = true }
        """,
        **MEMBERS,
    },
    "members that conflict": {
        "": """
            [project]
            name = "mine"
            version = "1"
            requires-python = ">=3.10"
            dependencies = ["kit"]
            [project.optional-dependencies]
            gpu = ["kit[gpu]"]
            cpu = ["kit[cpu]"]
            [tool.uv]
            conflicts = [
                [{ extra = "gpu" }, { extra = "cpu" }],
                [{ package = "kit", extra = "gpu" }, { package = "kit", extra = "cpu" }],
                [{ package = "mine", extra = "gpu" }, { package = "kit", extra = "cpu" }],
                [{ package = "mine", extra = "cpu" }, { package = "kit", extra = "gpu" }],
            ]
            [tool.uv.workspace]
            members = ["kit", "other"]
            [tool.uv.sources]
            kit = { workspace = true }
        """,
        "kit": MEMBERS["kit"].replace('cpu = ["torch"]', 'cpu = ["torch==2.6.0+cpu"]'),
        "other": MEMBERS["other"],
    },
}


def write_project(name: str, folder: Path, uv: str, python: str) -> None:
    """Writes a project and has uv lock it."""
    wheels = folder / "wheels"
    wheels.mkdir()
    for (release, version), needed in RELEASES.items():
        _write_wheel(wheels, release, version, needed)
    for member, text in PROJECTS[name].items():
        (folder / member).mkdir(exist_ok=True)
        (folder / member / "pyproject.toml").write_text(text, encoding="utf-8")
    words = [uv, "lock", "--offline", "--no-config", "--no-index", "--find-links", "wheels", "--python", python]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "UV_PYTHON_DOWNLOADS": "never"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _write_wheel(folder: Path, name: str, version: str, needed: Sequence[str]) -> None:
    extras = {part.split("'")[1] for each in needed for part in each.split("extra ==")[1:]}
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {each}" for each in needed] + [f"Provides-Extra: {each}" for each in sorted(extras)]
    metadata = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{metadata}/METADATA", "\n".join([*lines, ""]))
        wheel.writestr(f"{metadata}/WHEEL", "Wheel-Version: 1.0\nGenerator: none\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{metadata}/RECORD", "")
