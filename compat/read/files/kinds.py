"""Which reader a file needs: told by its name, and where that says too little by how it begins."""

from __future__ import annotations

import os

from compat.errors import InputError
from compat.read.files.launch_files import refuse_launch_json, refuse_launch_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.read.files.listing import Listing

LIMIT = 64 * 1024 * 1024
"""Bytes; the largest file that is read (the largest real lock is 3 MB)."""
EXPECTED = (
    "a lock file (uv, poetry, pdm, Pipenv, pylock, conda-lock, pixi), requirements, pyproject.toml, environment.yml, "
    "Dockerfile, compose file, notebook, script or described environment"
)
DESCRIBED = "described"
"""Kind of a described environment, which is no listing."""

_ENDINGS = (
    ("uv.lock", "uv"), (".py.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("pipfile.lock", "pipfile"),
    ("pixi.lock", "pixi"), ("conda-lock.yml", "conda-lock"), ("conda-lock.yaml", "conda-lock"), ("pylock.toml", "pylock"),
    ("pyproject.toml", "pyproject"), (".ipynb", "notebook"), (".sh", "shell"), (".bash", "shell"), (".slurm", "shell"),
    (".sbatch", "shell"), (".py", "script"), (".dockerfile", "dockerfile"), (".containerfile", "dockerfile"),
    ("dockerfile", "dockerfile"), ("containerfile", "dockerfile"), (".txt", "requirements"), (".in", "requirements"),
    (".pip", "requirements"),
)  # fmt: skip
_COMPOSE = ("compose.yml", "compose.yaml")


def kind_of(path: str, content: bytes) -> str:
    """The kind of a file; :class:`InputError` where it is none that is read."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    for ending, kind in _ENDINGS:
        if name.endswith(ending):
            return kind
    if name.endswith(".toml") and "pylock." in name:
        return "pylock"
    if name.startswith(("dockerfile", "containerfile")):
        return "dockerfile"
    if name.endswith(_COMPOSE) or (name.endswith((".yml", ".yaml")) and "compose" in name):
        return "compose"
    found = _by_content(path, name, content)
    if found is None:
        raise InputError(f"is no kind of file that is read here; expected {EXPECTED}", path)
    return found


def _by_content(path: str, name: str, content: bytes) -> str | None:
    if name.endswith((".yml", ".yaml")):
        return _yaml(path, content)
    start = content.lstrip()[:1]
    if name.endswith(".json") or start == b"{":
        if b'"cells"' in content and b'"nbformat"' in content:
            return "notebook"
        if b'"_meta"' in content and b'"pipfile-spec"' in content:
            return "pipfile"
        refuse_launch_json(path, content)
        return DESCRIBED
    if b"\n[[package]]" in content:
        return "poetry" if b"content-hash" in content else "pdm" if b"content_hash" in content else "uv"
    if name.endswith(".lock") and b"\npackages:" in content:
        return "pixi"
    first = content[:200].split(b"\n", 1)[0]
    if first.startswith(b"#!"):
        return "shell" if b"sh" in first else "script" if b"python" in first else None
    if "requirements" in name or "constraints" in name:
        return "requirements"
    return None


def _yaml(path: str, content: bytes) -> str | None:
    """The kind that the outermost keys of a YAML file tell."""
    keys = {line.partition(b":")[0].strip(b"'\"") for line in content.splitlines() if line[:1].strip() and b":" in line}
    if b"services" in keys:
        return "compose"
    if b"package" in keys and b"metadata" in keys:
        return "conda-lock"
    if b"environments" in keys and b"packages" in keys:
        return "pixi"
    if b"dependencies" in keys:
        return "conda"
    refuse_launch_keys(path, {key.decode("utf-8", "replace") for key in keys})
    return None


def read_listings(path: str) -> tuple[Listing, ...]:
    """What a file lists: one listing, or one for each stage or service of it.

    :class:`InputError` names file, line and what was expected where it cannot be read. Nothing is executed, and no file is
    opened but this one and those it includes from its own project.
    """
    content = read_content(path)
    return listings_of(path, kind_of(path, content), content)


def read_content(path: str) -> bytes:
    """The bytes of a regular file of at most :data:`LIMIT` bytes."""
    from compat.read.regular_file import regular

    try:
        with open(regular(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size  # a buffer of the size that is needed, not of what is allowed
            content = file.read(min(size, LIMIT) + 1)
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", path) from None
    if len(content) > LIMIT:
        raise InputError(f"is larger than {LIMIT // 1024 // 1024} MiB", path)
    return content


def listings_of(path: str, kind: str, content: bytes) -> tuple[Listing, ...]:
    """As :func:`read_listings`, for content whose kind is known."""
    from compat.read.files.limits import within_limits

    return tuple(map(within_limits, _read(path, kind, content)))


def _read(path: str, kind: str, content: bytes) -> tuple[Listing, ...]:
    if kind == "requirements":
        from compat.read.files.requirements.requirements import decode, read_requirements

        return read_requirements(path, decode(content, path))
    text = _decoded(path, content)
    if kind == "uv":
        from compat.read.files.locks.uv_lock import read_uv_lock as reader
    elif kind == "poetry":
        from compat.read.files.locks.poetry_lock import read_poetry_lock as reader
    elif kind == "pdm":
        from compat.read.files.locks.pdm_lock import read_pdm_lock as reader
    elif kind == "pipfile":
        from compat.read.files.locks.pipfile_lock import read_pipfile_lock as reader
    elif kind == "pylock":
        from compat.read.files.locks.pylock import read_pylock as reader
    elif kind == "pyproject":
        from compat.read.files.project.pyproject import read_pyproject as reader
    else:
        return _other(path, kind, text)
    return reader(path, text)


def _other(path: str, kind: str, text: str) -> tuple[Listing, ...]:
    if kind == "conda":
        from compat.read.files.conda.conda_environment import read_conda_environment as reader
    elif kind == "conda-lock":
        from compat.read.files.conda.conda_lock import read_conda_lock as reader
    elif kind == "pixi":
        from compat.read.files.conda.pixi_lock import read_pixi_lock as reader
    elif kind == "dockerfile":
        from compat.read.files.docker.dockerfile import read_dockerfile as reader
    elif kind == "compose":
        from compat.read.files.docker.compose import read_compose as reader
    elif kind == "notebook":
        from compat.read.files.notebook.notebook_installs import read_notebook as reader
    elif kind == "shell":
        from compat.read.files.shell.shell_script import read_shell_script as reader
    else:
        from compat.read.files.project.python_script import read_python_script as reader
    return reader(path, text)


def _decoded(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise InputError(f"is not UTF-8 text (byte {problem.start})", path, line) from None
