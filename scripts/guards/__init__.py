"""Mines the conditions on which releases refuse to work, for ``matrix/guards/``."""
