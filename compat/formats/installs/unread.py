"""Commands that may install something that no reader of install commands understands: they are named, not passed over."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from itertools import pairwise

from compat.errors import InputError
from compat.formats.installs.command import is_pip_name
from compat.formats.installs.runners import Opener, started_files
from compat.formats.installs.words import is_unresolved
from compat.formats.listing import Entry
from compat.records import record
from compat.redact import excerpt
from compat.syntax.makefile import MakeText
from compat.syntax.shell_commands import ShellCommand
from compat.workload.wrappers import ELSEWHERE, SHELLS, is_python, program_name, reads_script, shell_script, unwrapped

_INSTALLERS = ("uv", "conda", "mamba", "micromamba", "poetry", "pdm", "pipenv", "pixi")
_HARMLESS = (
    *ELSEWHERE, "cat", "tee", "grep", "sed", "which", "test", "[", "[[", "apt", "apt-get", "apk", "dnf", "microdnf", "yum",
    "zypper", "brew", "rm", "ls",
)  # fmt: skip
"""Programs to which the name of an installer is data, or a package of the system."""
_RUNS_TEXT = (
    *SHELLS, "source", ".", "fish", "csh", "tcsh", "pwsh", "powershell", "busybox", "trap", "alias", "script", "sg", "at",
    "batch", "tmux", "screen", "watch", "sbatch", "parallel", "expect", "perl",
)  # fmt: skip
"""Programs that run a text, given as a word or on standard input."""
_COMMAND = re.compile(r"(?:^|[\s;&|(\"'/\[,!%=])(?:pip[\d.]*|uv pip|conda|mamba|micromamba)[\"',\s]+(?:-\S+\s+)*install\b")
_IN_PYTHON = re.compile(
    r"\b(?:system|popen|Popen|run|call|check_call|check_output|getoutput|getstatusoutput|exec\w*|spawn\w*)\s*\([^()]{0,120}?"
    r"\bpip[\d.]*[\"',\s]+(?:-\S+\s+)*install\b|\bpip(?:\._internal(?:\.\w+)*)?\.?main\(\s*\[\s*[\"']install"
)
"""A call in Python code that starts an installer; the same words in a message are none."""
_LOADED = re.compile(r"(?:\$\(|<\(|`)\s*(?:curl|wget)\s")
DOWNLOADERS = ("curl", "wget")


def mentions_install(text: str) -> bool:
    """Whether a text contains what looks like an install command."""
    return "install" in text and _COMMAND.search(text) is not None


def installs_from_code(text: str) -> bool:
    """Whether Python code contains what looks like a call that starts an installer."""
    return "install" in text and _IN_PYTHON.search(text) is not None


@record(frozen=True)
class Unread:
    """What a command installs without being read, as a remark; ``elsewhere``: something outside the project decides it.

    ``pins`` are those in the files that it starts; without a text there is nothing else to say.
    """

    text: str
    elsewhere: bool = False
    pins: tuple[Entry, ...] = ()


def unread_install(command: ShellCommand, opened: Opener) -> Unread | None:
    """Return what is not read of a command that no reader of install commands understood."""
    try:
        rest = unwrapped(command.words, {})
    except InputError:
        rest = list(command.words)
    name = program_name(rest[0]) if rest else ""
    if not name or name in _HARMLESS:
        return None
    if name == "pipx" and rest[1:2] in (["inject"], ["runpip"]):
        return Unread("what pipx installs into an environment of its own was not read", elsewhere=True)
    if _LOADED.match(rest[0]):
        return Unread("what a downloaded script installs was not read", elsewhere=True)
    if (text := _computed_text(name, rest, command.taken)) is not None:
        return Unread(text, elsewhere=True)
    found = any(_installs(rest[at + 1 : at + 7]) for at, word in enumerate(rest) if at and _is_installer(word))
    if name == "alias" and any(_is_installer((word.partition("=")[2].split() or [""])[0]) for word in rest[1:]):
        return Unread("what an alias of an installer installs was not read")
    is_pip = is_unresolved(name) and rest[1:2] == ["install"] and "pip" in name.lower()
    if is_pip or found or ((name in _RUNS_TEXT or is_python(name) or name.startswith("((")) and _has_text(rest, command.taken)):
        return Unread(f"what {name} installs was not read")
    if (text := _unknown_script(name, rest, command)) is not None:
        return Unread(text, elsewhere=True)
    if name in ("run-parts", *SHELLS, "source", ".") and any("*" in word or name == "run-parts" for word in rest[1:]):
        scripts = next(word for word in rest[1:] if "*" in word or name == "run-parts")
        if not scripts.startswith(("/", "~", "-")):
            return Unread(f"what {scripts} installs was not read")
    if name in ("source", ".") and rest[1:] and _is_missing(rest[1], command, opened):
        return Unread(f"what {rest[1]} installs was not read: it is not in the project", elsewhere=True)
    return _of_started(command, opened) or _of_goals(name, rest, command)


_TEST_RUNNERS = ("nox", "tox")
_INSTALLING = re.compile(r"(?:^|[-_])(?:install|deps|dependencies|requirements|setup|bootstrap|venv)(?:[-_]|$)")
"""The goals of a Makefile that install packages, by their names."""
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_SUBSTITUTION = re.compile(r"\$\(.*\)|`[^`]*`", re.DOTALL)
_SETTING_UP = re.compile(
    r"\b(?:hook|init|\w*env|activat\w+|agent|login|exports?|dircolors|lesspipe|\w*argcomplete|completions?|modulecmd|getopt|bash)\b"
)
"""Words of commands whose output sets up a shell (``eval "$(conda shell.bash hook)"``)."""


def _of_goals(name: str, words: Sequence[str], command: ShellCommand) -> Unread | None:
    """Return what is not read of a program that installs what a file of the project says: that file is not there."""
    if name in _TEST_RUNNERS and "--version" not in words:
        return Unread(f"what {name} installs into environments of its own was not read", elsewhere=True)
    goals = [word for word in words[1:] if _INSTALLING.search(word) and "=" not in word and not word.startswith("-")]
    # in another folder it builds software, which is no package of Python
    if name in ("make", "gmake") and goals and command.directory is None and "-C" not in words:
        text = f"what {name} {' '.join(goals)} installs was not read: there is no Makefile"
        return Unread(text, elsewhere=True)
    return None


def _computed_text(name: str, words: Sequence[str], taken: str | None) -> str | None:
    """Return what is not read of a shell that runs the text in a variable, or that another command prints."""
    text = words[-1] if len(words) == 1 or (name == "eval" and len(words) == 2) else None
    if name in SHELLS:
        options = (after for word, after in pairwise(words) if word.startswith("-") and word.endswith("c"))
        text = next(options, taken.strip() if taken and reads_script(words) else None)
    if text is None or text.strip("${}").isdecimal():
        return None
    if _VARIABLE.fullmatch(text):
        return f"what the text in {text} installs was not read: it is only known at run time"
    if _SUBSTITUTION.fullmatch(text) and not _SETTING_UP.search(text):
        return f"what the text that {excerpt(text, 60)} prints installs was not read"
    return None


def _of_started(command: ShellCommand, opened: Opener) -> Unread | None:
    """Return what the files that a command starts install."""
    pins: list[Entry] = []
    text, elsewhere = "", False
    for file in started_files(command.words, command.directory, opened):
        pins += file.pins
        if not text and (installs_from_code(file.text) if file.is_python else mentions_install(file.text)):
            text, elsewhere = f"what {file.name} installs was not read", file.is_read
    return Unread(text, elsewhere, tuple(pins)) if text or pins else None


def _is_installer(word: str) -> bool:
    name = program_name(word)
    return name in _INSTALLERS or is_pip_name(name)


def _installs(words: Sequence[str]) -> bool:
    """Whether the words behind the name of an installer install something."""
    commands = [word for word in words if not word.startswith("-")][:2]
    return (commands[1:] if commands[:1] == ["pip"] else commands)[:1] in (["install"], ["add"], ["sync"])


def _has_text(words: Sequence[str], taken: str | None) -> bool:
    """Whether a text that is run, given as words or on standard input, installs something."""
    texts = [" ".join(words), *(word for word in words[1:] if " " in word), taken or ""]
    return any(mentions_install(text) or installs_from_code(text) for text in texts)


def _unknown_script(name: str, words: Sequence[str], command: ShellCommand) -> str | None:
    """Return what is not read of a script that is downloaded (``curl … | sh``, ``bash -c "$(curl …)"``, ``source <(curl …)``),
    or that another program prints (``base64 -d x | sh``).
    """
    if name not in (*SHELLS, "source", ".") and not is_python(name):
        return None
    from_shell = reads_script(words)
    from_input = command.taken is None and (from_shell or (is_python(name) and not [word for word in words[1:] if word != "-"]))
    if any(_LOADED.match(word) for word in words[1:]) or (from_input and command.piped_from in DOWNLOADERS):
        return f"what the script that {name} downloads installs was not read"
    if from_input and from_shell and (command.piped_from or command.source):
        return f"what the text on the standard input of {name} installs was not read"
    return None


def _is_missing(name: str, command: ShellCommand, opened: Opener) -> bool:
    """Whether a sourced script that the project should have is not there; absolute names are those of other software."""
    if is_unresolved(name) or name.startswith(("/", "~", "<(")) or not name.endswith((".sh", ".bash")):
        return False
    return opened(name, command.directory, "source") is None


# --- Files of the project that a command starts, as shell text.


_FOLDER = re.compile(r"^(?:\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|\$\{[^{}]*\}|\$\w+)/+(?=[\w.])")
"""A computed folder before the name of a script, which is that of the script most times."""
_BATCH = ("sbatch", "qsub", "bsub")
_SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch", ".pbs")
_MAKE_VALUED = ("-f", "-C", "-I", "-o", "-W", "--file", "--makefile", "--directory", "--include-dir", "--old-file", "--what-if")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


def started_script(words: Sequence[str]) -> str | None:
    """Return the name of the shell script that a command starts; ``None`` if it starts none, or its name is unknown."""
    name = program_name(words[0]) if words else ""
    if name in _BATCH:
        found = next((word for word in words[1:] if word.endswith(_SCRIPTS)), None)
    else:
        found = shell_script(words)
        if found is None and words and words[0] != name and "." not in name and not is_unresolved(name):
            found = words[0]  # ./setup
    found = None if found is None else _FOLDER.sub("", found)
    return None if found is None or is_unresolved(found) else found


def is_shell_script(text: str) -> bool:
    """Whether the first line of a text names a shell as its interpreter."""
    first = text[:200].split("\n", 1)[0]
    return first.startswith("#!") and first.rstrip().endswith(SHELLS)


def made_commands(words: Sequence[str], directory: str | None, opened: Opener) -> str | None:
    """Return the shell text that ``make`` runs; ``None`` for any other command, or if the project has no such Makefile."""
    if not words or program_name(words[0]) not in ("make", "gmake"):
        return None
    files, folder, goals = [], "", []
    waiting = list(reversed(words[1:]))
    while waiting:
        word = waiting.pop()
        option, equals, value = word.partition("=")
        if len(word) > 2 and word[:2] in ("-f", "-C"):
            option, value = word[:2], word[2:]
        elif option in _MAKE_VALUED and not equals and waiting:
            value = waiting.pop()
        if option in ("-f", "--file", "--makefile"):
            files.append(value)
        elif option in ("-C", "--directory"):
            folder = value
        elif not option.startswith("-") and not equals:
            goals.append(word)
    purpose = f"make {' '.join(goals)}"
    texts = (opened(posixpath.join(folder, file), directory, purpose) for file in files or _MAKEFILES)
    text = next((text for text in texts if text is not None), None)
    return None if text is None else MakeText(text).commands(goals)
