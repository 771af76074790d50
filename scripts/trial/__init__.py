"""Random environments tried for real: whether a small program fails in them, and whether compat says so."""
