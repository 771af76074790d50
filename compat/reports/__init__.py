"""Parse text that users paste (tool reports, logs, tracebacks) into environments and errors."""
