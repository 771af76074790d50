"""The user's own code: scripts, notebooks and package folders, read as records. Nothing is imported or run."""
