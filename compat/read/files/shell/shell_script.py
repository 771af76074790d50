"""A shell script that installs or launches → listing: what it installs, and the job it starts. Nothing is run."""

from __future__ import annotations

from compat.environment import Environment
from compat.errors import InputError, printable
from compat.read.files.declared_variables import without_secrets
from compat.read.files.installs.conditional_installs import Installs
from compat.read.files.installs.install_files import InstallFiles
from compat.read.files.installs.working_folders import WorkingFolders
from compat.read.files.listing import Listing
from compat.read.files.shell.shell_job import batch_devices, read_job
from compat.read.files.shell.shell_steps import ShellSteps
from compat.read.workload.wrappers import program_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.read.workload.shell_text import ShellCommand

_LIMIT = 1024 * 1024
"""Characters of a script; what is larger carries data."""
_CONFLICT = ("<<<<<<< ", ">>>>>>> ", "||||||| ")


def read_shell_script(path: str, text: str) -> tuple[Listing, ...]:
    """The listing of a shell script or Slurm batch script; it is never complete.

    ``context`` has the workload of the job it starts, the variables it exports, and the CUDA toolkit it loads. Raises
    :class:`InputError` for what cannot be a script: too large, or with a merge conflict in it.
    """
    if len(text) > _LIMIT:
        raise InputError(f"is larger than {_LIMIT // 1024 // 1024} MiB: expected a script that installs or launches", path)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\0", "")
    lines = list(enumerate(text.split("\n"), 1))
    for number, line in lines:
        if line.startswith(_CONFLICT):
            raise InputError("a merge conflict that is not resolved", path, number)
    read = ShellSteps(lines, lambda number: f"{path}:{number}")
    folders = WorkingFolders(path)
    files = InstallFiles(path, folders)
    installs = Installs(files)
    installs.run(read.steps)
    job = read_job(path, text, read.others, folders, read.exported)
    for note in job.notes:
        files.note("", note)
    for problem in job.unread:
        files.not_read("", problem)
    for number, problem in read.unread:
        files.not_read(f"{path}:{number}", problem)
    entries, edges = installs.listed()
    python = installs.python
    whole = python is not None and python.count(".") == 2
    return (
        Listing(
            path, "shell", entries, edges,
            requires_python=None if python is None or whole else f"=={python}.*",
            context=Environment(
                python=python if whole else None,
                accelerators=batch_devices(text),
                cuda_toolkit=_cuda_module(read.others),
                variables=without_secrets({**read.exported, **(job.variables or {})}) or None,
                workload=job.workload,
            ),
            notes=tuple(map(printable, files.notes)), unread=tuple(map(printable, files.unread)),
        ),
    )  # fmt: skip


def _cuda_module(commands: Sequence[tuple[ShellCommand, int]]) -> str | None:
    """The release that ``module load cuda/12.4`` makes the toolkit; ``None`` where two are named or none is."""
    found: set[str] = set()
    for command, _ in commands:
        words = command.words
        if program_name(words[0]) in ("module", "ml") and words[1:2] not in (["purge"], ["unload"], ["list"], ["avail"]):
            for word in words[1:]:
                name, _, version = word.lower().replace("cuda-", "cuda/").partition("/")
                parts = version.split(".")
                if name in ("cuda", "cudatoolkit") and len(parts) in (2, 3) and all(p.isascii() and p.isdigit() for p in parts):
                    found.add(".".join(parts[:2]))
    return found.pop() if len(found) == 1 else None
