"""conda's platforms (``linux-64``) and line selectors (``# [linux]``) as markers (PEP 508)."""

from __future__ import annotations

_SYSTEMS = {"linux": "linux", "osx": "darwin", "win": "win32"}
_MACHINES = {"64": "x86_64", "32": "i686"}
_WINDOWS_MACHINES = {"32": "x86", "arm64": "ARM64"}
_WINDOWS = "sys_platform == 'win32'"
_WINDOWS_64 = f"{_WINDOWS} and (platform_machine == 'AMD64' or platform_machine == 'x86_64')"
_UNIX = "(sys_platform == 'linux' or sys_platform == 'darwin')"


def platform_marker(platform: str) -> str | None:
    """The marker of a platform; ``None`` for ``noarch``, which is every one. ``ValueError`` for what is no platform."""
    if platform == "noarch":
        return None
    system, dash, machine = platform.partition("-")
    if not (dash and system.isalnum() and machine.isalnum() and platform.isascii()):
        raise ValueError(f"{platform[:40]!r} is no platform such as linux-64")
    if platform == "win-64":
        return _WINDOWS_64
    if system == "win":
        return f"{_WINDOWS} and platform_machine == '{_WINDOWS_MACHINES.get(machine, machine)}'"
    return f"sys_platform == '{_SYSTEMS.get(system, system)}' and platform_machine == '{_MACHINES.get(machine, machine)}'"


_SELECTORS = {
    "linux": "sys_platform == 'linux'", "osx": "sys_platform == 'darwin'", "win": _WINDOWS, "unix": _UNIX,
    "linux64": platform_marker("linux-64"), "osx64": platform_marker("osx-64"), "win64": _WINDOWS_64,
    "aarch64": platform_marker("linux-aarch64"), "ppc64le": platform_marker("linux-ppc64le"),
    "arm64": platform_marker("osx-arm64"), "x86_64": "platform_machine == 'x86_64'",
}  # fmt: skip
_NEGATED = {
    "linux": "sys_platform != 'linux'", "osx": "sys_platform != 'darwin'", "win": "sys_platform != 'win32'",
    "unix": "sys_platform != 'linux' and sys_platform != 'darwin'",
    "arm64": "(sys_platform != 'darwin' or platform_machine != 'arm64')", "aarch64": "platform_machine != 'aarch64'",
    "x86_64": "platform_machine != 'x86_64'",
}  # fmt: skip


def selector_marker(comment: str) -> str | None:
    """The marker of a comment such as ``# [linux and not aarch64]``; ``None`` where it is no selector that is known."""
    for part in comment.split("#"):
        text = part.strip()
        if text.startswith("[") and "]" in text:
            return _condition(text[1 : text.index("]")].split())
    return None


def _condition(words: list[str]) -> str | None:
    """``["linux", "or", "not", "win"]`` as a marker."""
    parts: list[str] = []
    wanted, negated = True, False
    for word in words:
        if wanted and word == "not" and not negated:
            negated = True
        elif wanted:
            known = _NEGATED.get(word) if negated else _selected(word)
            if known is None:
                return None
            parts.append(f"({known})" if len(words) > 2 and " and " in known else known)
            wanted = negated = False
        elif word in ("and", "or"):
            parts.append(word)
            wanted = True
        else:
            return None
    return None if wanted else " ".join(parts)


def _selected(word: str) -> str | None:
    if "-" not in word:
        return _SELECTORS.get(word)
    try:
        return platform_marker(word)
    except ValueError:
        return None
