"""Requirements files, and requirements as they are written elsewhere."""
