"""The options that may stand in a requirements file, alone on a line or behind a requirement."""

from __future__ import annotations

from compat.errors import InputError

_SHORT = {"-r": "--requirement", "-c": "--constraint", "-e": "--editable", "-i": "--index-url", "-f": "--find-links",
          "-C": "--config-settings", "-U": "--upgrade"}  # fmt: skip
INDEX_URL = ("--index-url", "--pypi-url", "--default-index")
"""Names of the option that replaces the index."""
_VALUED = frozenset((
    "--requirement", "--constraint", "--editable", *INDEX_URL, "--extra-index-url", "--find-links", "--no-binary",
    "--only-binary", "--trusted-host", "--use-feature", "--hash", "--global-option", "--install-option", "--build-option",
    "--config-setting",
    "--config-settings", "--only-final", "--all-releases",
))  # fmt: skip
_FLAGS = frozenset((
    "--no-index", "--pre", "--prefer-binary", "--require-hashes", "--no-build-isolation", "--no-deps", "--upgrade",
    "--no-cache-dir", "--process-dependency-links", "--always-unzip",
))  # fmt: skip
"""Some belong to the command line; people write them here all the same, and they change nothing that is listed."""


def options_of(line: str, path: str, number: int) -> list[tuple[str, str]]:
    """The options of a line with their values (``""`` for a flag); :class:`InputError` for what is none.

    What stands behind ``-e`` up to the end of the line is its operand: a marker may follow an address.
    """
    words = _words(line, path, number)
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, given, value = word.partition("=")
        if word[:2] in _SHORT:
            name, given, value = _SHORT[word[:2]], word[2:], word[2:]
        if name in _FLAGS and not given:
            found.append((name, ""))
            continue
        if name not in _VALUED:
            raise InputError(f"'{word[:60]}' is not an option of a requirements file", path, number)
        if not given and at == len(words):
            raise InputError(f"expected a value behind {name}", path, number)
        if not given:
            value = words[at]
            at += 1
        if name == "--editable":
            value = " ".join((value, *words[at:]))
            at = len(words)
        found.append((name, value))
    return found


def _words(line: str, path: str, number: int) -> list[str]:
    """Words as a shell splits them: quotes hold one together. A marker keeps its own quotes."""
    if ";" in line or ("'" not in line and '"' not in line and "\\" not in line):
        return line.split()
    from compat.read.workload.shell_words import shell_words

    try:
        return shell_words(line)
    except ValueError:
        raise InputError(f"expected a closing quote in '{line[:60]}'", path, number) from None
