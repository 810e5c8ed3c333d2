"""Facts that travel with busbw: one reader for each kind of file in `busbw/data`, next to this folder.

A value that needs a citation belongs there, and never into code. Begin with `platforms`, `envvars` and `rules`.
"""
