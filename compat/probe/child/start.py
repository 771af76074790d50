"""``python start.py JOB.json``: the entry point of a probe's process, run by the interpreter under test.

Python puts the folder of a script first on ``sys.path``, where its modules could hide those of real packages: the folder is
removed from there and loaded as the package ``compat_probe`` instead.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def end_with_parent() -> None:
    """On Linux, end this process when its parent ends for any reason; elsewhere the time limit ends it."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL


def load_package() -> None:
    spec = importlib.util.spec_from_file_location(
        "compat_probe", os.path.join(HERE, "__init__.py"), submodule_search_locations=[HERE]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["compat_probe"] = package
    spec.loader.exec_module(package)


def start(job_file: str) -> int:
    faulthandler.enable()  # a crash prints its line of Python on stderr
    end_with_parent()
    if sys.path and os.path.abspath(sys.path[0] or ".") == HERE:
        del sys.path[0]
    load_package()
    work = importlib.import_module("compat_probe.work")
    code: int = work.main(job_file)
    return code


if __name__ == "__main__":
    ended = start(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ended)  # library threads or a broken context must not affect the exit
