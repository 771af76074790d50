"""Device smoke tests: a device in, a verdict out. Stands alone; the parent imports no torch, the children nothing of ours."""
