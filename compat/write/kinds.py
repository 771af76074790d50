"""Which module edits a file, by its kind; what it answers is read back before anybody sees it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from compat.errors import InputError
from compat.read.files.kinds import kind_of, read_content
from compat.write.changes import Change, checked
from compat.write.edits import Edit
from compat.write.verify import problem_of

_SOURCES = {
    "uv": ("pyproject.toml",), "poetry": ("pyproject.toml",), "pdm": ("pyproject.toml",), "pipfile": ("Pipfile",),
    "pylock": ("pyproject.toml", "requirements.in", "requirements.txt"), "conda-lock": ("environment.yml", "environment.yaml"),
    "pixi": ("pyproject.toml",),
}  # fmt: skip
"""Lock files by kind: what they are made from, beside them."""
LOCK_KINDS = {"uv": "uv", "poetry": "poetry", "pdm": "pdm", "pipfile": "pipenv", "pylock": "pylock", "pixi": "pixi"}
"""The tools that write them."""
_DEEPEST = 4


def edits_of_file(path: str, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
    """See :func:`compat.write.edits_for`."""
    wanted = checked(changes)
    if not wanted:
        return ()
    content = read_content(path)
    kind = "Pipfile" if os.path.basename(path) == "Pipfile" else kind_of(path, content)
    if kind in _SOURCES:
        return edits_of_file(source_of_lock(path, kind), wanted, depth)
    _refuse_builds(path, kind, wanted)
    return _joined(_edits(path, kind, content, wanted, depth))


def _refuse_builds(path: str, kind: str, changes: Sequence[Change]) -> None:
    """:class:`InputError` for a release that is to be built although it has wheels, where a file cannot say so."""
    built = next((change.name for change in changes if change.no_binary), None)
    if built is not None and kind not in ("requirements", "pyproject", "script"):
        raise InputError(f"cannot say that {built} is built from source: add --no-binary {built} to its install command", path)


def source_of_lock(path: str, kind: str) -> str:
    """The file that a lock file is made from; :class:`InputError` where none lies beside it."""
    if path.endswith(".py.lock"):
        return path.removesuffix(".lock")
    folder = os.path.dirname(path)
    for name in _SOURCES[kind]:
        found = os.path.join(folder, name)
        if os.path.isfile(found):
            return found
    raise InputError(f"is a lock file, which is never edited: expected {' or '.join(_SOURCES[kind])} beside it", path)


def _edits(path: str, kind: str, content: bytes, changes: Sequence[Change], depth: int) -> tuple[Edit, ...]:
    if kind == "requirements":
        from compat.write.requirements import edit_requirements

        return edit_requirements(path, content, changes, compiled=_is_compiled(path))
    if kind in ("shell", "dockerfile"):
        return _installs(path, kind, content, changes, depth)
    if kind == "conda":
        from compat.write.conda import edit_conda as editor
    elif kind == "pyproject":
        from compat.write.pyproject import edit_pyproject as editor
    elif kind == "script":
        from compat.write.inline_script import edit_script as editor
    elif kind == "Pipfile":
        from compat.write.pipfile import edit_pipfile

        return edit_pipfile(path, content, changes)  # no reader knows it: what pipenv locks is read
    else:
        what = {"compose": "change the Dockerfile or the image it names", "notebook": "change its cells by hand"}.get(kind)
        raise InputError(f"is no kind of file that is edited here{f': {what}' if what else ''}", path)
    edits = editor(path, content, changes)
    for edit in edits:
        problem = problem_of(edit, kind, changes)
        if problem is not None:
            raise InputError(f"cannot be changed safely: {problem}", path)
    return edits


def _is_compiled(path: str) -> bool:
    """Whether pip-compile has made another file of this one, which has the exact releases."""
    stem, ending = os.path.splitext(path)
    return ending == ".in" and os.path.isfile(f"{stem}.txt")


def _installs(path: str, kind: str, content: bytes, changes: Sequence[Change], depth: int) -> tuple[Edit, ...]:
    from compat.write.installs import edit_dockerfile, edit_shell

    if depth > _DEEPEST:
        raise InputError(f"is installed from more than {_DEEPEST} files deep", path)
    found = (edit_dockerfile if kind == "dockerfile" else edit_shell)(path, content, changes)
    others = [edit for file, named in found.elsewhere.items() for edit in edits_of_file(file, named, depth + 1)]
    return (found.edit, *others)


def _joined(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits that change something, each file once; :class:`InputError` where a file would change in two ways."""
    found: dict[str, Edit] = {}
    for edit in edits:
        other = found.setdefault(os.path.realpath(edit.path), edit)
        if other.after != edit.after:
            raise InputError("is reached in two ways that change it differently", edit.path)
    return tuple(sorted((edit for edit in found.values() if edit.before != edit.after), key=lambda edit: edit.path))
