"""Parse one Python module into records of what it defines and uses. Nothing is imported or run.

``module.read_module`` is a pure function of the bytes, the module's name and whether it is a package, so its results can be
cached by content. It raises nothing: a module that cannot be parsed is entirely unknown. ``records`` defines the results
and serialises them. Nothing is imported here: records are also used without reading source.
"""
