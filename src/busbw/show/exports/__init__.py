"""Results in the formats of other tools, one format a module.

Every one is written from the rows of `rows`. Begin with `registry`.
"""
