"""Requirements files that a resolver wrote: the command in their header, and the files that it reads."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from compat.formats.registry import Relocking
from compat.formats.requirements.lines import header
from compat.records import record

UV, PIP_TOOLS = "uv pip compile", "pip-compile"
COMPILERS = (UV, PIP_TOOLS)
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ ./=:,@+-")
_IN_QUOTES = _PLAIN | frozenset("[]<>!~")
"""Characters allowed in a command that is rerun from a comment: none that a shell treats specially there."""
_FLAGS = frozenset((
    "--generate-hashes", "--no-annotate", "--no-header", "--strip-extras", "--no-strip-extras", "--universal", "--pre",
    "--emit-index-url", "--emit-find-links", "--emit-index-annotation", "--emit-build-options", "--no-emit-index-url",
    "--no-emit-find-links", "--allow-unsafe", "--no-allow-unsafe", "--annotate", "--header", "--resolver=backtracking",
))  # fmt: skip
_VALUED = frozenset((
    "--output-file", "--constraint", "--constraints", "--override", "--overrides", "--python-version", "--python-platform",
    "--resolution", "--prerelease", "--index-strategy", "--annotation-style", "--no-emit-package", "--unsafe-package",
    "--torch-backend", "--exclude-newer", "--index-url", "--extra-index-url", "--default-index", "--index", "--find-links",
    "--fork-strategy",
))  # fmt: skip
_SHORT = {"-o": "--output-file", "-c": "--constraint", "-i": "--index-url", "-f": "--find-links", "-p": "--python-version"}
_FILES = ("--constraint", "--constraints", "--override", "--overrides")
_ONLY_ONCE = ("--upgrade", "-U", "--quiet", "-q", "--verbose", "-v")
"""Options of that run, not of the file."""


@record(frozen=True)
class Compiled:
    """The command that wrote a file, as its header has it: ``options`` are (name, value) pairs, "" for a flag.

    ``sources`` and the constraints in ``options`` are relative to ``folder``, where it was run.
    """

    command: str
    folder: str
    output: str
    sources: tuple[str, ...]
    options: tuple[tuple[str, str], ...]

    def relocking(self, files: Sequence[str]) -> Relocking | None:
        """Return how uv compiles it again, if uv did; ``files`` are all that the sources include."""
        from compat.formats.registry import Relocking

        if not self.command.startswith(UV):
            return None
        options = (word for option in self.options for word in filter(None, option))
        words = (
            "pip",
            "compile",
            *self.sources,
            "--output-file",
            self.output,
            *options,
            "--custom-compile-command",
            self.command,
        )
        named = (value for name, value in self.options if name in _FILES)
        return Relocking(words, tuple(dict.fromkeys((*files, *named, self.output))), self.folder)


def is_harmless(command: str) -> bool:
    """Whether a shell only splits it into words: ``> ~/.profile`` in a comment is a redirection, ``'torch>2'`` a word."""
    parts = command.replace('"', "'").split("'")
    plain, quoted = parts[::2], parts[1::2]
    return len(parts) % 2 == 1 and _PLAIN.issuperset("".join(plain)) and _IN_QUOTES.issuperset("".join(quoted))


def compile_command(text: str) -> str:
    """Return the command that a resolver wrote into the header of a file, or ""."""
    return next((line for line in header(text.splitlines()) if line.startswith((*COMPILERS, "uv export"))), "")


def compiled_from(path: str, text: str) -> Compiled | None:
    """Return how a file was compiled; ``None`` unless its sources are requirements files that are there.

    The header of a file is not trusted: only options that select releases or their form are taken from it.
    """
    command = compile_command(text)
    name = next((each for each in COMPILERS if command.startswith(each)), None)
    if name is None or not is_harmless(command):
        return None
    words = list(_words(shlex.split(command)[len(name.split()) :]))
    if None in words:
        return None
    options = [word for word in words if word is not None and word[0]]
    sources = tuple(value for option, value in filter(None, words) if not option)
    output = next((value for option, value in options if option == "--output-file"), os.path.basename(path))
    parts, real = os.path.normpath(output).split(os.sep), os.path.realpath(path).split(os.sep)
    if real[-len(parts) :] != parts:
        return None
    given = os.path.normpath(os.path.join(os.path.dirname(path) or ".", *[os.pardir] * (len(parts) - 1)))
    folder = "" if given == "." else given
    files = [each for option, each in options if option in _FILES] + list(sources)
    if not sources or not all(_is_requirements(os.path.join(folder, each)) for each in files):
        return None
    return Compiled(command, folder, output, sources, tuple(each for each in options if each[0] != "--output-file"))


def _is_requirements(path: str) -> bool:
    return not os.path.isabs(path) and path.endswith((".in", ".txt")) and os.path.isfile(path)


def _words(words: Sequence[str]) -> Iterator[tuple[str, str] | None]:
    """Yield the options of a command, operands without a name, and ``None`` for anything unknown."""
    waiting = ""
    for word in words:
        name, equals, value = word.partition("=")
        name = _SHORT.get(name, name)
        if waiting:
            yield waiting, word
            waiting = ""
        elif not word.startswith("-"):
            yield "", word
        elif word in _FLAGS:
            yield word, ""
        elif name in _VALUED and equals:
            yield name, value
        elif name in _VALUED:
            waiting = name
        elif word not in _ONLY_ONCE and name != "--upgrade-package":
            yield None
    if waiting:
        yield None
