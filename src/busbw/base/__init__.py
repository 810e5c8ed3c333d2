"""What everything stands on: errors, units, names of collectives, sets of CPUs, the layout of a run directory.

Imports nothing else of busbw; every room may import it. Begin with `errors` and `units`.
"""
