"""The APIs that releases define and use: tables mined from published source, and queries on them.

``table.open_table`` opens the shipped table of a package, ``release.SourceSurface`` is its counterpart for source read at run
time, and ``world.World`` answers queries on a set of releases. Nothing is imported here: a check without a script needs none.
"""
