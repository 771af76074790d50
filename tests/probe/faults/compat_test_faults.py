"""Things that go wrong on real machines, each as a function that breaks one imported module: see ``sitecustomize.py``.

``FAULTS`` gives for every fault the modules it waits for. torch is passed in: these modules must not import it.
"""

from __future__ import annotations

FAULTS = {}


def fault(name, module):
    def keep(function):
        FAULTS.setdefault(name, []).append((module, function))
        return function

    return keep
