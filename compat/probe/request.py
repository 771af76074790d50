"""What was asked of ``compat probe``, checked before anything is started."""

from __future__ import annotations

import os

from compat.errors import InputError
from compat.probe.groups import LIMITS, NAMES, NORMAL, QUICK, THOROUGH
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.options import Words

TRAINERS = ("sft", "grpo", "dpo")
LAUNCHERS = ("python", "torchrun", "accelerate")


@record(frozen=True)
class Request:
    """``device`` is ``all``, ``cpu``, ``cuda`` or ``cuda:N``; ``only`` names groups, or probes of them ("rotary/transformers"),
    and is empty for all of them; ``limit`` is a child's."""

    python: str
    device: str = "all"
    only: tuple[str, ...] = ()
    depth: str = NORMAL
    trainer: str | None = None
    launcher: str | None = None
    limit: float = LIMITS[NORMAL]
    device_required: bool = False
    seed: int = 0

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that ``only`` names, or names probes of."""
        return tuple(dict.fromkeys(name.partition("/")[0] for name in self.only))


def requested(words: Words) -> Request:
    """The request of a command line; :class:`InputError` for a group, a device or a time that is none."""
    if words.flag("quick") and words.flag("thorough"):
        raise InputError("--quick and --thorough: give one or the other")
    depth = QUICK if words.flag("quick") else THOROUGH if words.flag("thorough") else NORMAL
    only = tuple(dict.fromkeys(words.all("only")))
    for name in only:
        if name.partition("/")[0] not in NAMES:
            raise InputError(f"--only: {name!r} is no group of probes: {', '.join(NAMES)}")
    if words.flag("only") and not only:
        raise InputError(f"--only: expected groups of probes: {', '.join(NAMES)}")
    trainer = words.one("trainer")
    if trainer is not None and only and not any(name.partition("/")[0] == "trainer" for name in only):
        raise InputError("--trainer goes with the group 'trainer', which --only leaves out")
    return Request(
        python=interpreter(words.one("python")),
        device=_device(words.one("device") or "all"),
        only=only,
        depth=depth,
        trainer=trainer,
        launcher=words.one("launcher"),
        limit=_seconds(words.one("timeout"), LIMITS[depth]),
        device_required=words.flag("require-device"),
    )


def _device(name: str) -> str:
    kind, colon, index = name.partition(":")
    if name in ("all", "cpu", "cuda") or (kind == "cuda" and colon and index.isascii() and index.isdecimal()):
        return f"cuda:{int(index)}" if colon else name
    raise InputError(f"--device: expected all, cpu, cuda or cuda:NUMBER, not {name!r}")


def _seconds(text: str | None, default: float) -> float:
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise InputError(f"--timeout: expected seconds between 0 and 86400, not {text!r}")
    return seconds


def interpreter(given: str | None) -> str:
    """The interpreter that is started: the one given, the active environment's, or the one that runs this.

    Raises :class:`InputError` where there is none to start.
    """
    import sys

    from compat.read.machine.interpreter import default_target, target_at

    target = target_at(given) if given else default_target(os.environ)
    found = sys.executable if target.running else target.interpreter
    if not found or not os.access(os.path.expanduser(found), os.X_OK):
        where = given or target.label
        raise InputError(f"--python: {where} has no interpreter to start; give the path of its python")
    return os.path.abspath(os.path.expanduser(found))
