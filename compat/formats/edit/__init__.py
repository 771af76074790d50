"""Edits of files: ``dispatch`` creates and verifies them, ``files`` shows and writes them."""
