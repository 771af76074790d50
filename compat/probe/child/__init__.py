"""What runs inside a probe's process: the standard library and torch, on any Python from 3.9, ``compat`` not needed.

The interpreter under test starts :mod:`start`, which loads this folder as the package ``compat_probe``. Modules here
import one another relatively and nothing of ``compat``.
"""
