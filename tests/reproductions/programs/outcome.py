"""The one line of JSON that every program prints last: how the run ended, and what was measured on the way."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import traceback

SUBJECTS = ("accelerate", "torch", "transformers", "trl", "unsloth", "unsloth-zoo")


def report(outcome: str, error: BaseException | None = None, **detail: object) -> None:
    """Print the line.

    `outcome` is "ok", "error" (then with `error`, what was raised) or "data-lost" (nothing was raised, and part of the
    data took no part). `detail` is whatever the program measured; added are the installed releases, the traceback of
    `error` as Python writes it, and its frames, outermost first, as "package/module.py::function".
    """
    line = {
        "outcome": outcome,
        "exception": type(error).__name__ if error is not None else None,
        "message": str(error) if error is not None else None,
        "detail": {
            **detail,
            "releases": releases(),
            "traceback": "".join(traceback.format_exception(error)) if error is not None else "",
            "frames": frames(error),
        },
    }
    print(json.dumps(line), flush=True)


def report_and_leave(outcome: str, error: BaseException | None = None, **detail: object) -> None:
    """`report`, then end the process at once, so that a process group in disorder cannot hold it up."""
    report(outcome, error, **detail)
    sys.stderr.flush()
    os._exit(0 if error is None else 1)


def releases() -> dict[str, str]:
    """The installed releases of the packages that the programs are about, from their metadata."""
    found = {}
    for name in SUBJECTS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def frames(error: BaseException | None) -> list[str]:
    if error is None:
        return []
    return [f"{_below_search_path(frame.filename)}::{frame.name}" for frame in traceback.extract_tb(error.__traceback__)]


def _below_search_path(filename: str) -> str:
    roots = [root for root in map(os.path.abspath, sys.path) if filename.startswith(root + os.sep)]
    return os.path.relpath(filename, max(roots, key=len)) if roots else filename
