"""Python imports this before anything else where the folder is on PYTHONPATH: it breaks one thing, named by COMPAT_TEST_FAULT.

The probes' own code knows nothing of it. A fault waits until its module has been imported and then replaces a function of
it, in every process that inherits the variables: ranks of torchrun too.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys


class _After(importlib.abc.MetaPathFinder):
    """Calls a function with a module as soon as it has been imported."""

    def __init__(self, waiting):
        self.waiting = waiting

    def find_spec(self, name, path=None, target=None):
        if name not in self.waiting:
            return None
        call = self.waiting.pop(name)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def then(module):
            execute(module)
            call(module)

        spec.loader.exec_module = then
        return spec


_FAULT = os.environ.get("COMPAT_TEST_FAULT")
if _FAULT:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import compat_test_ends  # noqa: F401
    import compat_test_wrong_numbers  # noqa: F401
    from compat_test_faults import FAULTS

    sys.path.pop()
    sys.meta_path.insert(0, _After(dict(FAULTS[_FAULT])))
