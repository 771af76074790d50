"""Anything that says what is installed, where, and what is run → Environment. Nothing that is read is executed."""
