"""Shell scripts, Slurm batch scripts and Makefiles: what they install, and the jobs they start. Nothing is run."""

from __future__ import annotations

from collections.abc import Sequence

from compat.errors import InputError
from compat.formats.containers import container_listings, image_of_job
from compat.formats.edit.files import Mapped
from compat.formats.include import NotRead
from compat.formats.installs.edit import InstallScript
from compat.formats.installs.files import InstallFormat
from compat.formats.installs.unread import mentions_install
from compat.formats.installs.words import is_release
from compat.formats.jobs import Job, Placed, Script, check_size, count_of, unread_installs
from compat.formats.listing import Listing
from compat.model import Accelerator, Environment
from compat.records import replace
from compat.redact import excerpt
from compat.syntax.makefile import MakeText
from compat.syntax.shell_commands import ShellCommand, slurm_directives
from compat.workload.command import SBATCH_VALUED
from compat.workload.launchers import slurm_tasks
from compat.workload.wrappers import program_name, take_options

_MOST_DEVICES = 64


class Batch:
    """The resources requested by the ``#SBATCH`` lines of a batch script."""

    def __init__(self, text: str) -> None:
        options, _ = take_options(slurm_directives(text), valued=SBATCH_VALUED)
        self._options = {_SHORT.get(name, name): value for name, value in options}
        self._tasks = slurm_tasks(options, {})
        self._nodes = count_of(self._options.get("nodes", "").partition("-")[0])

    @property
    def image(self) -> str:
        """Return the image that the job runs in; "" if none is requested."""
        return self._options.get("container_image", "")

    def variables(self) -> dict[str, str]:
        """Return the known variables that Slurm sets for the job."""
        found = {
            "SLURM_NTASKS": self._tasks, "SLURM_NPROCS": self._tasks, "SLURM_NNODES": self._nodes,
            "SLURM_JOB_NUM_NODES": self._nodes, "SLURM_NTASKS_PER_NODE": self._number("ntasks_per_node"),
            "SLURM_GPUS_PER_NODE": self._number("gpus_per_node"), "SLURM_GPUS_ON_NODE": len(self.devices() or ()) or None,
        }  # fmt: skip
        return {name: str(value) for name, value in found.items() if value is not None}

    def _number(self, name: str) -> int | None:
        return count_of(self._options.get(name, "").rpartition(":")[2])

    def devices(self) -> tuple[Accelerator, ...] | None:
        """Return the GPUs of a node: ``--gres=gpu:a100:8``, ``--gpus-per-node=8``, ``--gpus=8`` and ``--gpus-per-task=1``."""
        for name in ("gpus_per_node", "gres", "gpus_per_task", "gpus"):
            for part in filter(None, self._options.get(name, "").split(",")):
                kind, _, rest = part.partition("(")[0].partition(":")
                if name == "gres" and kind != "gpu":
                    continue
                model, _, number = (rest if name == "gres" else part).rpartition(":")
                if not number.isdecimal():
                    model, number = number, "1"  # a GPU type without a number means one
                count = self._on_node(name, count_of(number))
                device = Accelerator(name=model) if model.replace("_", "").replace("-", "").isalnum() else Accelerator()
                if count is not None and 0 < count <= _MOST_DEVICES:
                    return (device,) * count
        return None

    def _on_node(self, name: str, count: int | None) -> int | None:
        """Return the GPUs of one node, from those requested per task or for the whole job; ``None`` if unknown."""
        if name == "gpus_per_task":
            tasks = self._number("ntasks_per_node") or self._each(self._tasks)
            return None if count is None or tasks is None else count * tasks
        return self._each(count) if name == "gpus" else count

    def _each(self, whole: int | None) -> int | None:
        """Return the share of one node; ``None`` if the nodes do not share evenly."""
        return None if whole is None or not self._nodes or whole % self._nodes else whole // self._nodes


_SHORT = {"G": "gpus", "N": "nodes", "n": "ntasks"}


# --- A shell script → listing: what it installs, and the job it starts. Nothing is run.


_CONFLICT = ("<<<<<<< ", ">>>>>>> ", "||||||| ")


def _cuda_module(commands: Sequence[tuple[ShellCommand, int]]) -> str | None:
    """Return the CUDA release loaded by ``module load cuda/12.4``; ``None`` if there are two or none."""
    found: set[str] = set()
    for command, _ in commands:
        words = command.words
        if program_name(words[0]) in ("module", "ml") and words[1:2] not in (["purge"], ["unload"], ["list"], ["avail"]):
            for word in words[1:]:
                name, _, version = word.lower().replace("cuda-", "cuda/").partition("/")
                if name in ("cuda", "cudatoolkit") and is_release(version, 2, 3):
                    found.add(".".join(version.split(".")[:2]))
    return found.pop() if len(found) == 1 else None


class ShellScript(InstallFormat):
    """A shell script or a Slurm batch script."""

    kind = "shell"
    apply = "bash {path}"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        """Return the listing of a shell script or Slurm batch script; it is never complete.

        ``context`` has the workload of the job it starts, the variables it exports, and the CUDA toolkit it loads. Raises
        :class:`InputError` for a file that is too large or has a merge conflict.
        """
        check_size(path, text, "a script that installs or launches")
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\0", "")
        lines = [Placed(number, line, None) for number, line in enumerate(text.split("\n"), 1)]
        for line in lines:
            if line.text.startswith(_CONFLICT):
                raise InputError("has an unresolved merge conflict", path, line.number)
        batch = Batch(text)
        scheduler = batch.variables()
        script = Script(tuple(lines))
        job = Job(path)
        job.run(script, scheduler)
        image, at = image_of_job(job.commands, batch.image)
        if image is not None:  # the last job runs in it, on its packages
            job = Job(path, image=image, line=at)
            job.run(script, scheduler)
            job.note_image()
        job.start_last_command(scheduler=scheduler)
        context = Environment(accelerators=batch.devices(), cuda_toolkit=_cuda_module(job.commands))
        containers = tuple(container_listings(job, "shell"))
        own = job.listing("shell", context=context, variables=job.exported)
        return (own, *containers) if job.is_relevant or not containers else containers

    def collect(self, script: InstallScript) -> None:
        lead = 1 if script.text.startswith("\ufeff") else 0
        script.read(Mapped(script.text[lead:], range(lead, len(script.text))))


_NOTHING = "no target installs a package or starts a known program"
_WIDEST = 1 << 18
"""Characters of all recipes after their variables are replaced; the longest real ones have 60,000."""


class Makefile(InstallFormat):
    """A Makefile; what ``include`` adds, and functions of make, are unknown."""

    kind = "makefile"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        check_size(path, text, "a Makefile")
        make = MakeText(text)
        variables = {name: make.expanded(make.variables[name]) for name in make.exported if name in make.variables}
        found = []
        size = 0
        for targets in make.roots():
            job = Job(path)
            self._note_includes(job, make)
            for lines in (lines for target in targets for lines in target.recipe):
                for call in {text for line in lines for text in make.calls(line.text) if mentions_install(text)}:
                    job.files.not_read(f"{path}:{lines[0].number}", f"what {excerpt(call, 60)!r} installs was not read")
                if any(make.is_unknown(line.text) for line in lines):
                    job.files.not_here(f"{path}:{lines[0].number}", "what a function of make installs was not read")
                expanded = tuple(Placed(each.number, make.expanded(each.text), None) for each in lines)
                size += sum(len(each.text) for each in expanded)
                if size > _WIDEST:
                    raise InputError(f"its variables expand to more than {_WIDEST // 1024} KiB", path, lines[0].number)
                job.run(Script(expanded), variables)
            job.start_last_command(only_jobs=True)
            label = f"target {targets[-1].name}"
            containers = [replace(each, label=f"{label}, {each.label}") for each in container_listings(job, self.kind)]
            found += [job.listing(self.kind, label=label, context=Environment()), *containers]
        kept = tuple(each for each in found if each.is_relevant)
        if kept:
            return kept
        job = Job(path)
        self._note_includes(job, make)
        return (replace(
            job.listing(self.kind, context=Environment()), notes=(f"{path}: {_NOTHING}",), unread=unread_installs(path, text),
        ),)  # fmt: skip

    def _note_includes(self, job: Job, make: MakeText) -> None:
        """Name the included files that may install something, or that are missing."""
        for number, name, optional in make.includes:
            try:
                text = job.files.find(name, None, "include").content.decode("utf-8", "replace")
            except NotRead as reason:
                if not optional and "$" not in name:
                    job.files.not_here(f"{job.path}:{number}", f"{name} was not read: {reason}")
                continue
            if mentions_install(text):
                job.files.not_here(f"{job.path}:{number}", f"what {name} installs was not read: check that file")

    def collect(self, script: InstallScript) -> None:
        check_size(script.path, script.text, "a Makefile")
        make = MakeText(script.text)
        for target in make.targets:
            for lines in target.recipe:
                letters: list[str] = []
                offsets: list[int] = []
                for line in lines:
                    for text, at in make.mapped(line):
                        letters.append(text)
                        offsets += at
                script.read(Mapped("".join(letters), offsets))
