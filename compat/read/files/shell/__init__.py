"""Shell scripts: the installs and the jobs they start."""
