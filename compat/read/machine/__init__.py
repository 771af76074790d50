"""This machine: its Python environments, its accelerators and driver, its system. Files only; nothing is started."""
