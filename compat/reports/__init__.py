"""Text that people paste: reports of tools, logs and tracebacks, as environments and errors."""
