"""Lock files: uv, poetry, pdm, Pipenv and PEP 751."""
