"""pyproject.toml and inline script metadata: what may be installed."""
