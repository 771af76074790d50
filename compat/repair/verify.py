"""A plan checked by others: our own evaluator over the planned environment, and uv over its requirements."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from compat.index import Settings
from compat.records import record
from compat.repair.candidates import Release
from compat.repair.target import Target

_SECONDS = 180


@record(frozen=True)
class Verified:
    """``rules``: our evaluator finds no error that the plan does not name. ``uv``: uv accepts it; ``None`` where it was not
    asked, and ``why`` says why."""

    rules: bool
    uv: bool | None
    why: str = ""

    @property
    def stands(self) -> bool:
        return self.rules and self.uv is not False


def uv_binary() -> str | None:
    """uv from its distribution, else the one on ``PATH``."""
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return shutil.which("uv")


def accepted_by_uv(
    chosen: Mapping[str, Release],
    tolerated: Iterable[str],
    target: Target,
    settings: Settings,
    *,
    unbuilt: Iterable[str] = (),
    offline: bool = False,
) -> tuple[bool | None, str]:
    """Whether ``uv pip compile`` finds the plan's releases installable together, and what it says otherwise.

    ``tolerated`` are packages whose present version contradicts another's requirement already: they are overrides. ``unbuilt``
    have no wheel: what their source distributions declare is read, and nothing is built.
    Releases that no index has (source installs, local builds) are left to our own evaluator.
    """
    uv = uv_binary()
    if uv is None:
        return None, "uv is not installed (pip install 'compat-doctor[fix]'): only our own evaluator has checked the plan"
    pins = {name: release for name, release in chosen.items() if release.source is None or release.source.kind == "index"}
    loose = set(tolerated)
    with tempfile.TemporaryDirectory(prefix="compat-fix-") as folder:
        wanted, overrides = Path(folder, "requirements.in"), Path(folder, "overrides.txt")
        lines = [f"{name}=={release.version}" for name, release in sorted(pins.items())]
        wanted.write_text("\n".join(lines) + "\n", encoding="utf-8")
        overrides.write_text("".join(f"{line}\n" for line in lines if line.partition("==")[0] in loose), encoding="utf-8")
        command = [uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--color", "never"]
        command += ["--python-version", target.minor, "--python-platform", target.uv_platform, str(wanted)]
        command += ["--override", str(overrides)] if loose else []
        sources = set(unbuilt)
        command += (
            [word for name in pins if name not in sources for word in ("--only-binary", name)] if sources else ["--no-build"]
        )
        command += ["--offline"] if offline else []
        command += _indexes(settings)
        return _ran(command, pins)


def _ran(command: list[str], pins: Mapping[str, Release]) -> tuple[bool | None, str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=os.environ)
    except subprocess.TimeoutExpired:
        return None, f"uv did not answer within {_SECONDS} s"
    if done.returncode:
        text = " ".join(done.stderr.split())
        reached = not any(word in text for word in ("error sending request", "Failed to fetch", "network", "dns error"))
        return (False if reached else None), text[:600]
    found = dict(line.partition("==")[::2] for line in done.stdout.splitlines() if "==" in line)
    other = sorted(name for name in found if name not in pins)
    return (True, "") if not other else (False, f"uv wants {', '.join(other)} as well")


def _indexes(settings: Settings) -> list[str]:
    """The indexes as uv's options; what uv is configured with itself stays out of the way."""
    plain = [source.url for source in settings.sources if not source.flat and not source.explicit]
    words: list[str] = []
    for source in settings.sources:
        if source.flat and source.url is not None:
            words += ["--find-links", source.url]
    last = plain.pop() if plain else None  # where that is nobody's, it is the default of the client
    words += ["--default-index", last] if last is not None else []
    for url in plain:
        words += ["--index", url] if url is not None else []
    if settings.strategy != "first-index":
        words += ["--index-strategy", "unsafe-best-match"]
    return words
