"""Programs that build, check and measure the matrix and the package; not part of the package."""
