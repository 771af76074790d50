"""A plan checked by others: our own evaluator over the planned environment, and uv over its requirements."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compat.index import Settings
from compat.index.address import host_of
from compat.records import record
from compat.repair.questions import Question
from compat.repair.target import Target

_SECONDS = 180
_KEPT = ("UV_CACHE_DIR", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_KEYRING_PROVIDER")
"""Variables for uv that change no answer."""


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

    def to_json(self) -> dict[str, Any]:
        return {"rules": self.rules, "uv": self.uv, **({"why": self.why} if self.why else {})}


def uv_binary() -> str | None:
    """uv from its distribution, else the one on ``PATH``."""
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return shutil.which("uv")


def accepted_by_uv(question: Question, target: Target, settings: Settings, *, offline: bool = False) -> tuple[bool | None, str]:
    """Whether ``uv pip compile`` finds the releases installable together, and what it says otherwise; it builds nothing."""
    uv = uv_binary()
    if uv is None:
        return None, "uv is not installed (pip install 'compat-doctor[fix]'): only our own evaluator has checked the plan"
    with tempfile.TemporaryDirectory(prefix="compat-fix-") as folder:
        wanted, overrides = Path(folder, "requirements.in"), Path(folder, "overrides.txt")
        wanted.write_text("".join(f"{line}\n" for line in question.lines()), encoding="utf-8")
        overrides.write_text("".join(f"{line}\n" for line in question.overrides()), encoding="utf-8")
        command = [
            uv,
            "pip",
            "compile",
            "--quiet",
            "--no-header",
            "--no-annotate",
            "--no-config",
            "--no-build",
            "--color",
            "never",
        ]
        command += ["--python", sys.executable]  # uv otherwise looks for one of the target's very version, on the whole machine
        command += ["--python-version", target.python, "--python-platform", target.uv_platform, str(wanted)]
        command += ["--override", str(overrides)] if question.overrides() else []
        command += ["--offline"] if offline else []
        accepted, why = _ran([*command, *_indexes(settings)], question, _variables(settings))
    return (None, f"uv, with what its own cache holds: {why}") if offline and accepted is False else (accepted, why)


def _ran(command: list[str], question: Question, variables: Mapping[str, str]) -> tuple[bool | None, str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=dict(variables))
    except subprocess.TimeoutExpired:
        return None, f"uv did not answer within {_SECONDS} s"
    except OSError as problem:
        return None, f"uv cannot be run: {problem.strerror}"
    if done.returncode:
        text = " ".join(done.stderr.split())
        return (False if "No solution found" in text else None), text[:600]
    found = [line.partition("==")[0] for line in done.stdout.splitlines() if "==" in line]
    other = sorted(name for name in found if name not in question.pins)
    return (True, "") if not other else (False, f"uv wants {', '.join(other)} as well")


def _indexes(settings: Settings) -> list[str]:
    """The indexes as uv's options, each with a name for its credentials."""
    words: list[str] = []
    plain = [(number, source) for number, source in enumerate(settings.sources) if not source.flat]
    for source in settings.sources:
        if source.flat and source.url is not None:
            words += ["--find-links", source.url]
    if not plain:
        return [*words, "--no-index"]
    for place, (number, source) in enumerate(plain):
        option = "--default-index" if place == len(plain) - 1 else "--index"
        words += [option, f"compat{number}={source.url}"] if source.url is not None else []  # that of the client is uv's too
    if settings.strategy != "first-index" or any(source.explicit for _, source in plain):
        words += ["--index-strategy", "unsafe-best-match"]  # the versions are pinned
    for host in settings.trusted:
        words += ["--allow-insecure-host", host]
    return words


def _variables(settings: Settings) -> dict[str, str]:
    """The environment for uv: what decides which releases it takes is in its options, how it reaches them is as for us."""
    found = {name: text for name, text in os.environ.items() if not name.startswith("UV_") or name in _KEPT}
    for number, source in enumerate(settings.sources):
        known = settings.credentials.get(host_of(source.url)) if source.url is not None else None
        if known is not None:
            found[f"UV_INDEX_COMPAT{number}_USERNAME"], found[f"UV_INDEX_COMPAT{number}_PASSWORD"] = known.user, known.password
    found.update(UV_HTTP_TIMEOUT=str(int(settings.timeout) or 1), UV_HTTP_RETRIES=str(settings.retries))
    if settings.certificates is not None:
        found["SSL_CERT_FILE"] = settings.certificates
    if settings.proxy is not None:
        found["HTTP_PROXY"] = found["HTTPS_PROXY"] = settings.proxy
    return found
