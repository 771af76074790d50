"""Brings matrix/facts up to the newest releases of an index: ``python -m scripts.refresh``."""
