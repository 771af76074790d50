"""Notebooks: install cells and code cells."""
