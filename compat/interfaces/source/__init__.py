"""One Python module's source → what it defines and what it uses. Nothing is imported or run.

``module.read_module`` is a pure function of the bytes, the module's name and whether it is a package, so what it gives may be
kept by content. It raises nothing: what cannot be parsed is a module of which everything is unknown. ``records`` holds what
comes out, ``packed`` writes it as bytes. Nothing is imported here: records are used where no source is read.
"""
