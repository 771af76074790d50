"""A pytest plugin: ``pytest --compat`` fails the session at its start if a known-bad combination is installed.

``compat = error`` (or ``warning``) in pytest's configuration does the same for every run.
"""

from __future__ import annotations

import pytest

_LEVELS = ("error", "warning")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the option and its counterpart in the configuration file."""
    group = parser.getgroup("compat")
    # flags without a value: an optional value would consume a following path
    for name, level in (("--compat", "error"), ("--compat-warnings", "warning")):
        group.addoption(
            name, dest="compat", action="store_const", const=level, default=None,
            help=f"fail at once if a known-bad combination of at least level {level} is installed",
        )  # fmt: skip
    parser.addini("compat", "same as --compat: error or warning", default="")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Check once, in the main process of the session; pytest-xdist workers do nothing."""
    config = session.config
    level = config.getoption("compat") or config.getini("compat")
    if not level or hasattr(config, "workerinput"):
        return
    if level not in _LEVELS:
        raise pytest.UsageError(f"compat: {level!r} is not one of {', '.join(_LEVELS)}")
    from compat.integrations.guard import KnownBad, check_workload
    from compat.model import Workload

    try:
        check_workload(Workload(), level)
    except KnownBad as problem:
        pytest.exit(f"compat: {problem}", returncode=1)
