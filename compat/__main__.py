"""``python -m compat``."""

from compat.cli import entry

entry()
