"""Statistics on the samples of one point: up to tens of thousands of numbers, in plain Python.

Numbers in, numbers out; imports `base`, and of `model` the values it returns. Begin with `median`.
"""
