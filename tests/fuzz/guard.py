"""What a reader may not do while it reads one input: open other files, write, execute, use a socket, or take too long."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import packaging

SECONDS = 2.0
"""Processor time for one input."""
WAITING = 200.0
"""Seconds after which waiting (for a pipe, say) is given up; a busy machine may need as long for two of its own."""
_REFUSED = (
    "subprocess.", "socket.", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.startfile", "os.chdir",
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.putenv",
    "os.unsetenv", "os.utime", "os.kill", "shutil.", "tempfile.", "urllib.", "http.", "ftplib.", "webbrowser.", "ctypes.",
    "pickle.", "marshal.load", "builtins.input", "builtins.breakpoint", "pty.", "signal.", "code.__new__", "winreg.", "smtplib.",
)  # fmt: skip
"""Beginnings of audit events that no reader has a reason for."""
_FOLDERS = ("os.listdir", "os.scandir", "os.walk", "os.fwalk", "glob.glob", "glob.glob/2")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PACKAGES = {*sys.stdlib_module_names, "_wmi", "compat", "packaging", "yaml", "_yaml", "tomlkit", "tomli", "ruamel", "tests"}
"""What may be imported; ``_wmi`` is part of Windows' Python since 3.12, asked for by ``platform`` everywhere and listed nowhere."""


class Forbidden(BaseException):
    """A reader did what it may not do. No reader catches it by mistake: it is no ``Exception``."""


class TooSlow(BaseException):
    """A reader took too long."""


class Guard:
    """Watches this process while armed. There can be only one: an audit hook stays for ever."""

    def __init__(self, readable: str, package: str) -> None:
        """``readable`` is the only folder whose files may be read; ``package`` is where the code under test lies."""
        self.readable = os.path.realpath(readable)
        paths = sysconfig.get_paths()
        # a virtual environment may take its packages from another one
        folders = (
            *(paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")),
            os.path.dirname(packaging.__path__[0]),
        )
        library = set(map(os.path.realpath, folders))
        self._own = tuple(os.path.join(os.path.realpath(package), room, "") for room in ("tables", "rules", "interfaces"))
        self._library = tuple(sorted({*library, os.path.realpath(package)}))
        self._armed = False
        self._broken: BaseException | None = None
        sys.addaudithook(self._seen)
        signal.signal(signal.SIGPROF, self._late)
        signal.signal(signal.SIGALRM, self._late)

    @contextmanager
    def watching(self, seconds: float) -> Iterator[None]:
        """Raises :class:`Forbidden` or :class:`TooSlow` in the block, and once more behind it if the block swallowed it."""
        self._broken = None
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, WAITING)
        self._armed = True
        try:
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._broken is not None:
            raise self._broken

    def _late(self, number: int, frame: Any) -> None:
        if self._armed:
            self._broken = TooSlow("waits" if number == signal.SIGALRM else "computes")
            raise self._broken

    def _seen(self, event: str, values: tuple[Any, ...]) -> None:
        if not self._armed:
            return
        wrong: str | None = None
        if event == "open":
            wrong = self._opened(*values)
        elif event == "exec":
            wrong = self._executed(values[0])
        elif event == "import":
            wrong = None if str(values[0]).partition(".")[0] in _PACKAGES else f"imports {values[0]!r}"
        elif event in _FOLDERS:
            wrong = None if self._inside(str(values[0] or "."), self._library) else f"lists the folder {values[0]!r}"
        elif event == "marshal.loads" and sys._getframe(1).f_code.co_filename.startswith(self._own):
            wrong = None  # a table this package ships
        elif event.startswith(_REFUSED) and not _importing():
            wrong = f"{event} {values!r:.200}"
        if wrong is not None:
            self._armed = False  # what follows is clearing up
            self._broken = Forbidden(wrong)
            raise self._broken

    def _opened(self, path: Any, mode: Any, flags: Any) -> str | None:
        if isinstance(path, int):
            return None  # a descriptor, which was opened before
        if isinstance(flags, int) and flags & _WRITING:
            return f"writes {path!r}"
        name = os.fsdecode(path)
        if not self._inside(name, (self.readable, *self._library)):
            return f"opens {name!r}, which is none of the given files"
        waits = os.path.exists(name) and not os.path.isfile(name)
        return f"opens {name!r}, which is no regular file" if waits and not flags & os.O_NONBLOCK else None

    def _executed(self, code: Any) -> str | None:
        file = getattr(code, "co_filename", "")
        return None if file.startswith("<frozen") or self._inside(file, self._library) or _importing() else f"executes {file!r}"

    @staticmethod
    def _inside(path: str, folders: tuple[str, ...]) -> bool:
        real = os.path.realpath(path)
        return any(real == folder or real.startswith(folder + os.sep) for folder in folders)


def _importing() -> bool:
    """Whether Python is importing one of its own modules."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
