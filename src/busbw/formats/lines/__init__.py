"""How a file becomes tables: lines split, prefixes taken off, each line given to the reader it belongs to.

Every line is accounted for. Begin with `driver`.
"""
