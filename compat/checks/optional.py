"""Optional packages that are too old for a package that uses them, so that it takes them for not installed."""

from __future__ import annotations

from compat.checks.fix_commands import upgrade_to
from compat.checks.guards import ENGINES
from compat.interfaces.at_once import least_available
from compat.model import Distribution, Finding, is_release
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.rules.facts import Facts


_BY = "transformers"
_SOURCE = "https://github.com/huggingface/transformers/blob/main/src/transformers/utils/import_utils.py"


def judge(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for an accelerate that transformers ignores, and for such a bitsandbytes if the job quantizes with it.

    Without accelerate, the Trainer and ``device_map`` raise ImportError: an error if the job trains, otherwise a warning.
    """
    task = facts.value("workload.task")
    if task in _UNAFFECTED or (task is None and facts.workload.script is not None):
        return
    trains = task != "inference" if task else facts.has_trainers
    if not trains and any(isinstance(facts.package(engine), list) for engine in ENGINES):
        return
    yield from _ignored(facts, "accelerate", "error" if trains else "warning", "the Trainer and device_map raise")
    if facts.value("workload.quantization") in ("4bit", "8bit"):
        yield from _ignored(facts, "bitsandbytes", "error", "loading a quantized model raises")


_UNAFFECTED = ("serve", "import", "install", "build")


def _ignored(facts: Facts, name: str, severity: str, what: str) -> Iterator[Finding]:
    by, other = _only_release(facts, _BY), _only_release(facts, name)
    if by is None or other is None:
        return
    least = least_available(_BY, by, name)
    if least is not None and key_of(other) < key_of(least):
        yield Finding(
            rule=f"ignored-{_BY}-{name}", origin="guard", severity=severity,
            title=f"{_BY} {by} ignores {name} {other}: it uses {name}>={least}",
            why=f"{_BY} takes an older {name} for not installed, so {what} ImportError.",
            packages={_BY: by, name: other}, facts=("workload",),
            fixes=(upgrade_to(name, least, f"the first release that {_BY} {by} uses"),), evidence=(_SOURCE,),
            here=f"{_BY} {by}, {name} {other}",
        )  # fmt: skip


def _only_release(facts: Facts, name: str) -> str | None:
    """The version of a package of which one release is installed."""
    copies = facts.package(name)
    if not isinstance(copies, list) or len(copies) != 1:
        return None
    copy: Distribution = copies[0]
    return copy.version if copy.version is not None and is_version(copy.version) and is_release(copy) else None
