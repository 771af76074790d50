"""Findings → a plan: the smallest set of changes that fixes them, proven, explained and verified.

Packages are variables, their releases the values; declared requirements, findings and the user's pins are clauses. clingo
minimises level by level; metadata is opened only where the optimum looks (``solve``).
"""
