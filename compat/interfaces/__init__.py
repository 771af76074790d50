"""What releases define and use of one another: tables mined from published source, and the questions put to them.

``table.open_table`` opens the shipped table of a package, ``release.SourceSurface`` is the same for source that was read on
the spot, ``world.World`` puts releases together and answers. Nothing is imported here: a check without a script needs none.
"""
