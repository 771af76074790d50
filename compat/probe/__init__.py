"""Device smoke tests, on their own: the parent imports no torch, the children nothing of ``compat``."""
