"""Edits of files: shown as a difference first, then applied to all files or to none of them.

A file is replaced by renaming a temporary one that lies beside it, so that whoever looks, at whatever moment the process
ends, sees the old bytes or the new ones. All temporary files are written before the first rename; a rename that fails
takes back those before it, by renaming what was kept of the old files, which needs no space.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from compat.errors import InputError
from compat.records import record

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@record(frozen=True)
class Edit:
    """One file: its path as the user wrote it, the bytes that were read, and those that shall be there."""

    path: str
    before: bytes
    after: bytes

    @property
    def inverse(self) -> Edit:
        """The edit that takes this one back."""
        return Edit(self.path, self.after, self.before)


def difference(edit: Edit) -> str:
    """The edit as a unified diff, without a line end behind the last line; "" where nothing changes."""
    before, after = (_shown(content).splitlines() for content in (edit.before, edit.after))
    return "\n".join(difflib.unified_diff(before, after, edit.path, edit.path, lineterm=""))


def _shown(content: bytes) -> str:
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8")):
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    return content.decode("utf-8", "replace")


def apply(edits: Sequence[Edit]) -> None:
    """Write all edits, or none.

    Links are followed; mode and owner are kept. :class:`InputError` where a file is not what was read any more, is
    read-only, or cannot be written: every file is then as it was.
    """
    edits = [edit for edit in edits if edit.before != edit.after]
    real = {os.path.realpath(edit.path): edit for edit in edits}
    if len(real) != len(edits):
        raise InputError("expected one edit for a file, not two")
    with ExitStack() as stack:
        files = [stack.enter_context(_opened(path, edit)) for path, edit in sorted(real.items())]
        try:
            for file in files:
                file.prepare()
            for file in files:
                file.check()
            _replace(files)
        finally:
            for file in files:
                file.clean()


def _replace(files: Sequence[_File]) -> None:
    done: list[_File] = []
    try:
        for file in files:
            done.append(file)
            file.replace()
    except BaseException:  # also Ctrl-C: nothing may stay half done
        for file in reversed(done):
            file.restore()
        raise
    for folder in {os.path.dirname(file.path) for file in files}:
        _flush_folder(folder)


@contextlib.contextmanager
def _opened(path: str, edit: Edit) -> Iterator[_File]:
    """The file, with the lock that keeps two runs from writing at once."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", edit.path) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError("is not a regular file", edit.path)
        if fcntl is not None:
            # a file system without locks: what is compared before the rename has to do
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield _File(path, edit, os.fstat(descriptor))
    finally:
        os.close(descriptor)


class _File:
    """One file on its way from the old bytes to the new ones."""

    def __init__(self, path: str, edit: Edit, status: os.stat_result) -> None:
        self.path = path
        self._edit = edit
        self._status = status
        folder, name = os.path.split(path)
        mark = f".{name[:100]}.{os.getpid()}-{secrets.token_hex(4)}"
        self._new = os.path.join(folder, f"{mark}.new")
        self._old = os.path.join(folder, f"{mark}.old")

    def check(self) -> None:
        """:class:`InputError` unless the file still is what was read."""
        try:
            now = os.stat(self.path)
            with open(self.path, "rb") as file:
                same = file.read(len(self._edit.before) + 1) == self._edit.before
        except OSError as problem:
            raise self._error(problem) from None
        if not same or (now.st_dev, now.st_ino) != (self._status.st_dev, self._status.st_ino):
            raise InputError("has been changed since it was read: nothing was written", self._edit.path)

    def prepare(self) -> None:
        """Write the temporary file, and keep the old one under a second name."""
        self.check()
        mode = stat.S_IMODE(self._status.st_mode)
        if not mode & 0o222 or not os.access(self.path, os.W_OK):
            raise InputError("is read-only: nothing was written", self._edit.path)
        try:
            self._write(mode)
            self._keep()
        except OSError as problem:
            raise self._error(problem) from None

    def _write(self, mode: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._new, flags, 0o600)
        with open(descriptor, "wb") as file:
            file.write(self._edit.after)
            file.flush()
            if hasattr(os, "fchown"):
                status = os.fstat(descriptor)
                if (status.st_uid, status.st_gid) != (self._status.st_uid, self._status.st_gid):
                    os.fchown(descriptor, self._status.st_uid, self._status.st_gid)
            os.chmod(self._new, mode)
            os.fsync(descriptor)

    def _keep(self) -> None:
        try:
            os.link(self.path, self._old)
        except OSError:  # a file system without hard links
            with open(self._old, "xb") as file:
                file.write(self._edit.before)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(self._old, stat.S_IMODE(self._status.st_mode))

    def replace(self) -> None:
        """The step that counts."""
        try:
            os.replace(self._new, self.path)
        except OSError as problem:
            raise self._error(problem) from None

    def restore(self) -> None:
        """Take the step back, if it was done; the new file lies no more where it was prepared then."""
        if not os.path.lexists(self._new):
            os.replace(self._old, self.path)

    def clean(self) -> None:
        """Take away what lies beside the file."""
        for path in (self._new, self._old):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _error(self, problem: OSError) -> InputError:
        return InputError(f"cannot be written: {problem.strerror or problem}", self._edit.path)


def _flush_folder(folder: str) -> None:
    """Make the renames last; some systems cannot open a folder, and do not need it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
