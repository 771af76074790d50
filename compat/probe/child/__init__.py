"""The code that runs in a probe's process: it needs Python 3.9 or later, the standard library and torch, but not ``compat``.

The interpreter under test starts :mod:`start`, which loads this folder as the package ``compat_probe``. Modules here
use relative imports only and never import ``compat``.
"""
