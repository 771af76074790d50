"""Tracebacks and logs, as people paste them."""
