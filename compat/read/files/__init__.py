"""Files that teams commit → what they install: lock files, requirements, conda, Dockerfiles, notebooks, scripts."""
