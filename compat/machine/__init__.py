"""Inspect this machine: interpreter, hardware, driver and system."""
