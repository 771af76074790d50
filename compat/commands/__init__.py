"""One module a command: parsed words in, output and exit code out."""
