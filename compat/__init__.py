"""compat: which known-bad combinations hold in an environment that trains or serves language models."""

__version__ = "0.1.0"
