"""Changes to files: shown first, then written whole or not at all."""
