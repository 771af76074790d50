"""Planning of fixes: the smallest set of changes that fixes the findings, proven, explained and verified.

Packages are variables, their releases the values; declared requirements, findings and the user's pins are clauses. clingo
minimises level by level; metadata is only read for releases that a candidate optimum selects (``solve``).
"""
