"""Text editing: decode, replace, encode in the original encoding, and write atomically."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from compat.errors import InputError
from compat.files import MARKS, pending
from compat.records import record, replace

Replacement = tuple[int, int, str]
"""(start, end, replacement text)."""

_NONE: Mapping[int, int] = {}
_CODING = re.compile(rb"#.*?coding[:=][ \t]*([-\w.]+)")


@record(frozen=True)
class Encoded:
    """The encoding of a text and its byte order mark, which may be empty."""

    mark: bytes
    encoding: str

    def encode(self, text: str) -> bytes:
        """Encode the text; added characters that the encoding lacks become ``?``."""
        return self.mark + text.encode(self.encoding, "replace")


def encoding_of(path: str, content: bytes, text: str) -> Encoded:
    """Return the encoding in which ``content`` holds ``text``, as a reader decoded it.

    :class:`InputError` if encoding the text does not give back exactly these bytes.
    """
    candidates = [Encoded(mark, encoding) for mark, encoding in MARKS if content.startswith(mark)]
    candidates.append(Encoded(b"", "utf-8"))
    for line in content[:1000].split(b"\n")[:2]:
        declared = _CODING.match(line)
        if declared is not None:
            candidates.append(Encoded(b"", declared[1].decode("ascii")))
    for each in candidates:
        try:
            if each.mark + text.encode(each.encoding) == content:
                return each
        except (UnicodeEncodeError, LookupError):
            continue
    raise InputError("cannot be edited: writing it back would change its encoding", path)


def replaced(text: str, replacements: Iterable[Replacement]) -> str:
    """Return the text with the replacements applied, equal ones once; ``ValueError`` if two overlap."""
    parts: list[str] = []
    at = 0
    for start, end, new in sorted(dict.fromkeys(replacements), key=lambda each: (each[0], each[1])):
        if start < at:
            raise ValueError("two changes to the same place")
        parts += text[at:start], new
        at = end
    return "".join((*parts, text[at:]))


def smallest(old: str, new: str) -> Replacement:
    """Return the smallest part of ``old`` to replace to get ``new``, so that line continuations elsewhere are kept."""
    most = min(len(old), len(new))
    start = next((at for at in range(most) if old[at] != new[at]), most)
    behind = next((at for at in range(most - start) if old[-1 - at] != new[-1 - at]), most - start)
    return start, len(old) - behind, new[start : len(new) - behind]


def line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text.partition("\n")[0] + text.partition("\n")[1] else "\n"


def line_around(text: str, offset: int) -> tuple[int, int]:
    """Return start and end of the line that contains an offset, with its line ending."""
    return text.rfind("\n", 0, offset) + 1, (text.find("\n", offset) + 1) or len(text)


def line_at(text: str, offset: int) -> int:
    """Return the 1-based line of an offset."""
    return text.count("\n", 0, offset) + 1


@record(frozen=True)
class Mapped:
    """Text joined from pieces of a file (continued lines), with the offset of each letter in the file.

    ``widths`` are the widths there of the letters that an escape sequence stands for, by offset.
    """

    text: str
    offsets: Sequence[int]
    widths: Mapping[int, int] = _NONE

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return start and end of a part in the file; an empty part is after the preceding letter."""
        last = self.offsets[end - 1] if end else self.offsets[0] - 1
        behind = last + self.widths.get(last, 1)
        return (behind if start == end else self.offsets[start]), behind

    def part(self, start: int, end: int) -> Mapped:
        return Mapped(self.text[start:end], self.offsets[start:end], self.widths)

    def picked(self, text: str, places: Iterable[int]) -> Mapped:
        """Return a text that is made of letters at some places of this one."""
        return Mapped(text, [self.offsets[at] for at in places], self.widths)


def joined(pieces: Iterable[tuple[str, int]]) -> Mapped:
    """Join pieces, each with its offset in the file, into one text."""
    text: list[str] = []
    offsets: list[int] = []
    for piece, start in pieces:
        text.append(piece)
        offsets += range(start, start + len(piece))
    return Mapped("".join(text), offsets)


# --- Replacing one file atomically.


def difference(before: str, after: str, path: str) -> str:
    """Return the change as a unified diff without a final line ending; "" if nothing changes."""
    import difflib

    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm=""))


def replace_file(path: str, text: str) -> None:
    """Write a text file atomically: write a temporary file next to it, then rename. Follows links and keeps the mode.

    :class:`InputError` if that fails; the file is then unchanged.
    """
    path = os.path.realpath(path)
    temporary = f"{path}.{os.getpid()}.new"
    try:
        mode = os.stat(path).st_mode & 0o7777 if os.path.exists(path) else None
        with open(temporary, "x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError as problem:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise InputError(f"cannot be written: {problem.strerror or problem}", path) from None


# --- Edits of files: shown as a diff first, then applied to all files or to none.
#
# A file is replaced by renaming a temporary one next to it, so that a reader sees either the old or the new bytes, whenever the
# process ends. All temporary files are written before the first rename; a rename that fails
# reverts those before it by renaming the kept old files back, which needs no space.


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@record(frozen=True)
class Edit:
    """The edit of one file: its path as the user wrote it, and its bytes before and after."""

    path: str
    before: bytes
    after: bytes

    @property
    def inverse(self) -> Edit:
        """The edit that undoes this one."""
        return Edit(self.path, self.after, self.before)


def merged(edits: Mapping[str, Edit], later: Iterable[Edit]) -> dict[str, Edit]:
    """Return the edits of files, by path, with those made in the files as edited."""
    new = {each.path: replace(each, before=edits[each.path].before) if each.path in edits else each for each in later}
    return {**edits, **new}


@contextlib.contextmanager
def as_if_written(edits: Iterable[Edit]) -> Iterator[None]:
    """Make readers see the content of edits that are not written yet."""
    around = dict(pending)
    pending.update({edit.path: edit.after for edit in edits})
    try:
        yield
    finally:
        pending.clear()
        pending.update(around)


def edits_difference(edit: Edit) -> str:
    """Return the edits as a unified diff; "" if nothing changes."""
    return difference(_shown(edit.before), _shown(edit.after), edit.path)


def _shown(content: bytes) -> str:
    mark, encoding = next((each for each in MARKS if content.startswith(each[0])), (b"", "utf-8"))
    return content[len(mark) :].decode(encoding, "replace")


def apply(edits: Sequence[Edit]) -> None:
    """Write all edits, or none.

    Links are followed; mode and owner are kept. :class:`InputError` if a file has changed since it was read, is
    read-only, or cannot be written: every file is then restored.
    """
    edits = [edit for edit in edits if edit.before != edit.after]
    real = {os.path.realpath(edit.path): edit for edit in edits}
    if len(real) != len(edits):
        raise InputError("expected one edit for a file, not two")
    with ExitStack() as stack:
        files = [stack.enter_context(_opened(path, edit)) for path, edit in sorted(real.items())]
        stack.enter_context(_signals_deferred())
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
    except BaseException:  # also Ctrl-C: never leave a partial write
        for file in reversed(done):
            file.restore()
        raise
    for folder in {os.path.dirname(file.path) for file in files}:
        # the renames reach the disk; some systems cannot open a folder, and do not need it
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait until the files are written and the temporary ones removed, which takes milliseconds."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _opened(path: str, edit: Edit) -> Iterator[_File]:
    """Open the file with a lock that prevents two runs from writing at once."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", edit.path) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError("is not a regular file", edit.path)
        if fcntl is not None:
            # a file system without locks: the comparison before the rename must suffice
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield _File(path, edit, os.fstat(descriptor))
    finally:
        os.close(descriptor)


class _File:
    """A file being changed from its old bytes to the new ones."""

    def __init__(self, path: str, edit: Edit, status: os.stat_result) -> None:
        self.path = path
        self._edit = edit
        self._status = status
        folder, name = os.path.split(path)
        mark = f".{name[:100]}.{os.getpid()}-{os.urandom(4).hex()}"
        self._new = os.path.join(folder, f"{mark}.new")
        self._old = os.path.join(folder, f"{mark}.old")

    def check(self) -> None:
        """Raise :class:`InputError` if the file has changed since it was read."""
        try:
            now = os.stat(self.path)
            with open(self.path, "rb") as file:
                same = file.read(len(self._edit.before) + 1) == self._edit.before
        except OSError as problem:
            raise self._error(problem) from None
        if not same or (now.st_dev, now.st_ino) != (self._status.st_dev, self._status.st_ino):
            raise InputError("was changed after it was read: nothing was written", self._edit.path)

    def prepare(self) -> None:
        """Write the temporary file, and keep the old one under a second name."""
        self.check()
        mode = stat.S_IMODE(self._status.st_mode)
        if not mode & 0o222 or not os.access(self.path, os.W_OK):
            raise InputError("is read-only: nothing was written", self._edit.path)
        # remove files left by a killed run, but not those of a running process
        folder, name = os.path.split(self.path)
        left = re.compile(rf"\.{re.escape(name[:100])}\.(\d{{1,10}})-[0-9a-f]{{8}}\.(?:new|old)")
        with contextlib.suppress(OSError):
            for each in os.listdir(folder or "."):
                match = left.fullmatch(each)
                if match is not None and os.name == "posix" and not _runs(int(match[1])):
                    os.unlink(os.path.join(folder, each))
        try:
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
            self._keep()
        except OSError as problem:
            raise self._error(problem) from None

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
        """Rename the temporary file over the target."""
        try:
            os.replace(self._new, self.path)
        except OSError as problem:
            raise self._error(problem) from None

    def restore(self) -> None:
        """Undo the replacement if it was made; the prepared file is then gone."""
        if not os.path.lexists(self._new):
            os.replace(self._old, self.path)

    def clean(self) -> None:
        for path in (self._new, self._old):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _error(self, problem: OSError) -> InputError:
        return InputError(f"cannot be written: {problem.strerror or problem}", self._edit.path)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True
