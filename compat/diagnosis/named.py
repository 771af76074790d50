"""A name that an error reports as missing, and the releases that have it."""

from __future__ import annotations

from collections.abc import Iterator

from compat.interfaces.at_once import place_of
from compat.model import Fix
from compat.records import record
from compat.versions import is_version, key_of


@record(frozen=True)
class Named:
    """A name (``trl.GRPOConfig``), the releases of ``package`` that have it, and its name in other releases.

    ``lacks``: known releases that certainly lack it, in order; ``leans``: some inherit it from a base in another package;
    ``read``: the releases in the tables, in order.
    ``again``: the first release of a later series that has it again, after one that does not.
    ``doubt`` states what was guessed; ``derived``: the class in the message is assumed to derive from this one.
    ``call``: the name is a call that these releases accept. ``partly``: of some of them it is only not known that they lack it.
    ``older``: all releases in the tables have it, so that a release from before the first of them must lack it.
    """

    what: str
    package: str
    specifier: str
    span: str
    why: str
    renamed: str | None
    lacks: tuple[str, ...]
    leans: bool
    read: tuple[str, ...]
    doubt: str = ""
    derived: bool = False
    again: str | None = None
    call: bool = False
    partly: bool = False
    older: bool = False

    def lacked_by(self, version: str) -> bool:
        """Whether a release lacks the name; a development version counts as the release it precedes.

        A release that the tables do not have may lack what the nearest older or newer one in them lacks; the number of a
        development version among them (``0.0.0.dev7``) says nothing.
        """
        known = version.partition(".dev")[0]
        if not self.unread(version):
            return place_of(self.lacks, known) is not None
        if self.older:
            return key_of(version) < key_of(self.read[0])
        at = sum(key_of(each) < key_of(version) for each in self.read)
        return any(each in self.lacks for each in self.read[max(at - 1, 0) : at + 1])

    def unread(self, version: str) -> bool:
        """Whether a release is in none of the tables: older or newer than all, or a build between two of them."""
        return is_version(version) and ".dev" not in version and place_of(self.read, version) is None

    @property
    def gone(self) -> bool:
        """Whether the newest release no longer has the name."""
        return "<=" in self.specifier

    @property
    def title(self) -> str:
        return f"{self.what} {'works with' if self.call else 'is in'} {self.package} {self.span}"

    def sentence(self) -> str:
        """How the releases are known, as one or two sentences."""
        return f"Its published source says so{f': {self.why}' if self.why else ''}.{self.doubt}"

    def fixes(self, installed: str | None) -> Iterator[Fix]:
        """Yield the fixes: the name in other releases, if known, and a release that has this one."""
        kind = "pin"
        if installed is not None:
            kind = "downgrade" if self.gone else "upgrade"
        if self.renamed is not None:
            yield Fix("config", None, None, f"use {self.renamed}, its name in the other releases")
        has = f"{'accepts' if self.call else 'has'} {self.what}"
        yield Fix(kind, self.package, self.specifier, has, f'pip install "{self.package}{self.specifier}"')
        if self.again is not None:
            spec = f">={self.again}"
            yield Fix("upgrade", self.package, spec, f"{has} again", f'pip install "{self.package}{spec}"')
