"""The matrix of known-bad combinations: loading, compiling and looking it up."""
